"""The algorithm of entities in plain Python (ADR 15): what a task reads, what it changes, what it keeps.

Rows of a dataset are seen only through what a task may read: changes since its cursor, rows of affected
entities, and rows in bands. Each step is a function of this module, so that a test can spoil one.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field

from tests.property.entity_world import COMPUTED, Owner, Row, Values, Variable, World

Change = tuple[int, Row]
"""A row that came (1) or left (-1)."""
INVERTIBLE = ("count", "sum", "avg")


@dataclass(slots=True)
class Published:
    """The row of an entity, with its `_state`."""

    values: Values
    named: set[str]
    leaves: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By variable that can be accumulated: the sum and the number of the values that it counts."""


@dataclass(slots=True)
class Node:
    """The output, and how far its inputs were read."""

    table: dict[int, Published] = field(default_factory=dict)
    as_of: int = 0
    read: dict[str, set[Row]] = field(default_factory=dict)
    """By dataset: its live rows when it was last read."""
    facts_read: int = 0
    defined: dict[str, Variable] = field(default_factory=dict)
    """By variable: the definition that its column has."""
    rows_read: int = 0


def in_window(at: int | None, length: int, as_of: int) -> bool:
    return at is not None and as_of - length <= at < as_of


def counts(row: Row, variable: Variable, as_of: int) -> bool:
    """Whether a variable counts a row at a time."""
    if row.value is None or row.value < variable.least:
        return False
    return variable.window is None or in_window(row.at, variable.window, as_of)


def find_changes(before: set[Row], now: set[Row]) -> list[Change]:
    """The rows that left and came, netted on what variables read: neither record nor order is."""
    net: Counter[Row] = Counter()
    for sign, rows in ((1, now), (-1, before)):
        for row in rows:
            seen = Row(dataset=row.dataset, record=0, owner=row.owner, value=row.value, at=row.at, order=0)
            net[seen] += sign
    return [(1 if n > 0 else -1, row) for row, n in net.items() for _ in range(abs(n))]


def owners_of(changes: Iterable[Change]) -> set[int]:
    """The old and the new owners of changed rows."""
    return {row.owner for _, row in changes if row.owner is not None}


def bands_of(variables: Iterable[Variable], before: int, now: int) -> list[tuple[int, int]]:
    """The closed ranges of `at` in which a row may cross a border."""
    lengths = {length for v in variables if v.window is not None for length in (0, v.window)}
    low, high = min(before, now), max(before, now)
    return [(low - length, high - length) for length in lengths] if before != now else []


def rows_in(rows: Iterable[Row], bands: Collection[tuple[int, int]]) -> list[Row]:
    return [row for row in rows if row.at is not None and any(a <= row.at <= b for a, b in bands)]


def section_of(rows: Iterable[Row], variables: Collection[Variable], as_of: int) -> list[Row]:
    """The rows that a recompute reads: bounded only if every variable has a window."""
    if any(v.window is None for v in variables):
        return list(rows)
    longest = max(v.window or 0 for v in variables)
    return [row for row in rows if row.at is not None and as_of - longest <= row.at < as_of]


def new_names(facts: Iterable[Row], used: Collection[str]) -> set[tuple[int, str]]:
    """Whom new facts name, whether they won or not."""
    return {(f.owner, f.dataset) for f in facts if f.owner is not None and f.dataset in used}


def value_of(rows: Collection[Row], variable: Variable) -> int | None:
    values = [row.value for row in rows if row.value is not None]
    if variable.aggregate in INVERTIBLE:
        return from_leaf((sum(values), len(values)), variable)
    found = max(values, default=None) if variable.aggregate == "max" else len(set(values))
    return with_default(found, variable)


def from_leaf(leaf: tuple[int, int], variable: Variable) -> int | None:
    total, number = leaf
    match variable.aggregate:
        case "count":
            return with_default(number, variable)
        case "sum":
            return with_default(total if number else None, variable)
        case _:
            return with_default(total * 1000 // number if number else None, variable)


def with_default(value: int | None, variable: Variable) -> int | None:
    return variable.default if value is None else value


def add_leaf(
    leaf: tuple[int, int],
    changes: Iterable[Change],
    crossing: Iterable[Row],
    variable: Variable,
    before: int,
    now: int,
) -> tuple[int, int]:
    """Changed rows weighed at the old time, and rows of the new state in bands at the new less the old."""
    total, number = leaf
    for sign, row in changes:
        weight = sign * counts(row, variable, before)
        total, number = total + weight * (row.value or 0), number + weight
    for row in crossing:
        weight = counts(row, variable, now) - counts(row, variable, before)
        total, number = total + weight * (row.value or 0), number + weight
    return total, number


def held_of(node: Node, declared: Collection[Variable]) -> set[str]:
    """The variables whose definition changed. Their columns stay as they are."""
    return {v.name for v in declared if v.name in node.defined and node.defined[v.name] != v}


def run(
    node: Node,
    world: World,
    declared: Collection[Variable],
    as_of: int,
    *,
    backfill: bool,
    accumulates: Callable[[Variable], bool],
) -> None:
    """One task: affected entities, touched uses, new values; everything else is carried over."""
    held = set() if backfill else held_of(node, declared)
    live = [v for v in declared if v.name not in held]
    fresh = {v.name for v in live if node.defined.get(v.name) != v}
    used = {v.dataset for v in declared}
    gone = {v.dataset for v in node.defined.values()} - used
    settled = [v for v in live if v.name not in fresh]
    facts = world.facts[node.facts_read :] if node.table or node.read else world.facts
    added = used - node.read.keys()
    named = new_names(facts, used - {COMPUTED}) | new_names(
        (f for f in world.facts if f.dataset in added), used - {COMPUTED}
    )
    changes, crossing, affected = {}, {}, {}
    for dataset in used:
        rows, variables = world.rows(dataset), [v for v in settled if v.dataset == dataset]
        changes[dataset] = find_changes(node.read.get(dataset, set()), rows)
        crossing[dataset] = rows_in(rows, bands_of(variables, node.as_of, as_of))
        affected[dataset] = owners_of(changes[dataset])
        affected[dataset] |= owners_of((1, row) for row in crossing[dataset])
        if dataset == COMPUTED:
            named |= {(row.owner, dataset) for row in rows if row.owner in affected[dataset]}
    _name(node, named, affected, used, gone, declared)
    for dataset in used:
        _compute(
            node,
            world,
            dataset,
            [v for v in settled if v.dataset == dataset],
            as_of,
            changes[dataset],
            crossing[dataset],
            affected[dataset],
            accumulates,
        )
        _fill(node, world, dataset, [v for v in live if v.name in fresh and v.dataset == dataset], as_of)
    for published in node.table.values():
        published.values = {v.name: published.values.get(v.name) for v in declared}
    node.as_of, node.facts_read = as_of, len(world.facts)
    node.read = {dataset: world.rows(dataset) for dataset in used}
    node.defined = {v.name: v if v.name not in held else node.defined[v.name] for v in declared}


def _name(
    node: Node,
    named: set[tuple[int, str]],
    affected: dict[str, set[int]],
    used: set[str],
    gone: set[str],
    declared: Collection[Variable],
) -> None:
    """Who exists now. What a computed dataset says is known anew for those whose rows changed."""
    for owner, published in list(node.table.items()):
        published.named -= gone
        if COMPUTED in used and owner in affected[COMPUTED]:
            published.named.discard(COMPUTED)
        if not published.named and owner not in {o for o, _ in named}:
            del node.table[owner]
    for owner, dataset in named:
        if owner not in node.table:
            node.table[owner] = Published(values={}, named=set())
            _start(node.table[owner], [v for v in declared if node.defined.get(v.name) == v])
        node.table[owner].named.add(dataset)


def _start(published: Published, variables: Iterable[Variable]) -> None:
    """An entity without rows."""
    for v in variables:
        published.values[v.name] = value_of([], v)
        published.leaves[v.name] = (0, 0)


def _compute(
    node: Node,
    world: World,
    dataset: str,
    variables: Collection[Variable],
    as_of: int,
    changes: list[Change],
    crossing: list[Row],
    affected: Collection[Owner],
    accumulates: Callable[[Variable], bool],
) -> None:
    """The variables of a use, for its affected entities."""
    owners = [owner for owner in affected if owner is not None and owner in node.table]
    recomputed = [v for v in variables if not (v.aggregate in INVERTIBLE and accumulates(v))]
    rows: dict[Owner, list[Row]] = {}
    if owners and recomputed:
        for row in section_of(world.rows(dataset), recomputed, as_of):
            rows.setdefault(row.owner, []).append(row)
    for owner in owners:
        published = node.table[owner]
        for v in variables:
            if v in recomputed:
                counted = [row for row in rows.get(owner, ()) if counts(row, v, as_of)]
                published.values[v.name] = value_of(counted, v)
                published.leaves[v.name] = (sum(r.value or 0 for r in counted), len(counted))
                node.rows_read += len(rows.get(owner, ()))
                continue
            own = [change for change in changes if change[1].owner == owner]
            near = [row for row in crossing if row.owner == owner]
            leaf = add_leaf(published.leaves[v.name], own, near, v, node.as_of, as_of)
            published.leaves[v.name], published.values[v.name] = leaf, from_leaf(leaf, v)


def _fill(node: Node, world: World, dataset: str, variables: Collection[Variable], as_of: int) -> None:
    """Added and backfilled variables: their own input for everybody."""
    rows: dict[Owner, list[Row]] = {}
    for row in world.rows(dataset) if variables else ():
        rows.setdefault(row.owner, []).append(row)
    for owner, published in node.table.items():
        for v in variables:
            counted = [row for row in rows.get(owner, ()) if counts(row, v, as_of)]
            published.values[v.name] = value_of(counted, v)
            published.leaves[v.name] = (sum(r.value or 0 for r in counted), len(counted))
