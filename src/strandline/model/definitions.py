"""Columns that have a definition each: which of them a table has as they are declared, and which it lacks.

A commit records the definition of each column, as a part of its configuration. A column whose declaration
has changed keeps its values, and the recorded part is marked once the column misses what has arrived.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .catalog_records import NodeRecord
from .commits import WrittenConfig
from .hashing import digest
from .node import Node, NodeConfig
from .plan import Task
from .traits import ColumnOrigin

COLUMN_PART = "variable"
"""The first word of a part that defines a column. Its name follows."""
ROWS_PART = "named by"
"""The first words of a part that says which rows exist."""
_KEPT = " kept"
"""Added to the definition of a column that is no longer kept up to date."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definitions:
    """The declared columns of a node against those of its table. Names are parts of the configuration."""

    current: tuple[str, ...] = ()
    """The table has them as they are declared."""
    added: tuple[str, ...] = ()
    """The table lacks them, and all that they read is there."""
    returned: tuple[str, ...] = ()
    """They were changed and changed back. The column has missed what arrived in between."""
    changed: tuple[str, ...] = ()
    """The column has another definition, and keeps its values until a person has it filled."""
    fillable: tuple[str, ...] = ()
    """Those that are changed and of which everything that they read is there."""
    waiting: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By part that nothing can be computed of yet: the datasets that were never received.

    None of them for an expression over a column that is changed.
    """
    removed: tuple[str, ...] = ()
    """The table has them, and they are not declared any more."""
    rows: tuple[str, ...] = ()
    """What says which rows exist, and has changed."""

    @property
    def due(self) -> tuple[str, ...]:
        """What the next run applies without being asked."""
        return (*self.added, *self.returned, *self.removed, *self.rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnWork:
    """What one task does with the columns of its table."""

    filled: frozenset[str]
    """Columns that are computed for every row."""
    followed: frozenset[str]
    """Columns that are as declared, and for which the task computes what has changed."""
    kept: frozenset[str]
    """Columns of another definition. They stay as they are, and are NULL in new rows."""
    dropped: frozenset[str]
    """Columns that the table loses."""
    rows: frozenset[str]
    """The parts that say which rows exist, as they hold after the task."""
    named: frozenset[str]
    """Those of them that the task applies: it reads whole what they name."""
    changes_rows: bool
    """Whether one of these parts has changed."""
    config: WrittenConfig
    """The definitions that the columns have after the task."""

    @property
    def computed(self) -> frozenset[str]:
        return self.filled | self.followed

    @property
    def is_whole(self) -> bool:
        """Whether the task changes more than what its inputs and the clock change."""
        return bool(self.filled or self.dropped or self.changes_rows)


def column_of(part: str) -> str:
    """The column that a part defines."""
    return part.removeprefix(f"{COLUMN_PART} ")


def find_definitions(
    node: Node,
    written: Mapping[str, str] | None,
    config: NodeConfig,
    present: Collection[str],
    applies: Collection[str] = (),
) -> Definitions:
    """Compare what is declared with what the last commit recorded.

    `written` is None if there is no table. `present` are the datasets that exist. `applies` are the changed
    parts that a task fills.
    """
    had = written or {}
    found: dict[str, list[str]] = {n: [] for n in ("current", "added", "returned", "changed", "fillable")}
    waiting: dict[str, tuple[str, ...]] = {}
    ready, fillable = set[str](), set[str]()
    for origin in _in_order(node.traits.origins):
        was, now = had.get(origin.part), config.parts[origin.part]
        missing = tuple(d for d in origin.datasets if d not in present)
        if was is None and (missing or not ready.issuperset(origin.needs)):
            behind = [d for name in origin.needs for d in waiting.get(f"{COLUMN_PART} {name}", ())]
            waiting[origin.part] = tuple(dict.fromkeys((*missing, *behind)))
            continue
        state = _compare(was, now)
        found[state].append(origin.part)
        if state != "changed":
            ready.add(origin.name)
        elif not missing and (ready | fillable).issuperset(origin.needs):
            found["fillable"].append(origin.part)
            (ready if origin.part in applies else fillable).add(origin.name)
    order = {origin.part: place for place, origin in enumerate(node.traits.origins)}
    rows = {part: config.parts[part] for part, dataset in node.traits.row_parts.items() if dataset in present}
    return Definitions(
        **{state: tuple(sorted(parts, key=lambda part: order[part])) for state, parts in found.items()},
        waiting={part: waiting[part] for part in order if part in waiting},
        removed=tuple(part for part in had if _is_column(part) and part not in config.parts),
        rows=tuple(
            part
            for part in dict.fromkeys((*had, *rows))
            if part.startswith(f"{ROWS_PART} ") and had.get(part) != rows.get(part)
        ),
    )


def plan_task(
    node: Node, task: Task, record: NodeRecord | None, config: NodeConfig, present: Collection[str]
) -> ColumnWork:
    """What a task does with each column of its table, of which `record` is the last recorded state."""
    written = record.configs[-1].parts if record and record.configs else None
    return plan_columns(node, written, config, present, task.applies, anew=task.overwrite)


def as_recorded(node: Node, record: NodeRecord) -> ColumnWork:
    """The columns of a table as its last commit recorded them, for a recompute that changes nothing."""
    written = record.configs[-1].parts if record.configs else {}
    return plan_columns(node, written, node.config, record.cursors, (), anew=False)


def plan_columns(
    node: Node,
    written: Mapping[str, str] | None,
    config: NodeConfig,
    present: Collection[str],
    applies: Collection[str],
    *,
    anew: bool,
) -> ColumnWork:
    """What a task does with each column. `applies` are the changed parts that it was planned to apply.

    `anew`: the task replaces the table.
    """
    had: Mapping[str, str] = {} if anew or written is None else written
    found = find_definitions(node, None if anew else written, config, present, applies)
    filled = {p for p in (*found.added, *found.returned, *found.fillable) if anew or p in applies}
    kept = {p for p in (*found.changed, *found.returned) if p not in filled}
    dropped = {p for p in found.removed if p in applies}
    changes_rows = anew or any(part in applies for part in found.rows)
    rows = {p: config.parts[p] for p, dataset in node.traits.row_parts.items() if dataset in present}
    if not changes_rows:
        rows = {part: value for part, value in had.items() if part.startswith(f"{ROWS_PART} ")}
    others = {p: v for p, v in config.parts.items() if not _is_column(p) and not p.startswith(ROWS_PART)}
    left = kept | (set(found.removed) - dropped)
    parts = {
        **others,
        **rows,
        **{part: config.parts[part] for part in (*found.current, *filled)},
        **{part: had[part].removesuffix(_KEPT) + _KEPT for part in left},
    }
    return ColumnWork(
        filled=_columns(filled),
        followed=_columns(found.current),
        kept=_columns(kept),
        dropped=_columns(dropped),
        rows=frozenset(rows),
        named=frozenset(part for part in rows if had.get(part) != rows[part]),
        changes_rows=changes_rows and bool(found.rows) and not anew,
        config=_as_written(config, parts),
    )


def read_whole(node: Node, applies: Collection[str]) -> frozenset[str]:
    """The datasets that a task reads whole to apply these parts."""
    filled = {d for origin in node.traits.origins if origin.part in applies for d in origin.datasets}
    return frozenset(filled | {d for part, d in node.traits.row_parts.items() if part in applies})


def _compare(was: str | None, now: str) -> str:
    if was is None:
        return "added"
    return "current" if was == now else "returned" if was == now + _KEPT else "changed"


def _in_order(origins: Sequence[ColumnOrigin]) -> Iterable[ColumnOrigin]:
    """Each column after those that it is computed from."""
    left, done = list(origins), set[str]()
    while left:
        ready = [origin for origin in left if done.issuperset(origin.needs)]
        assert ready, "a cycle of expressions is refused when it is declared"
        yield from ready
        done.update(origin.name for origin in ready)
        left = [origin for origin in left if origin not in ready]


def _is_column(part: str) -> bool:
    return part.startswith(f"{COLUMN_PART} ")


def _columns(parts: Iterable[str]) -> frozenset[str]:
    return frozenset(map(column_of, parts))


def _as_written(config: NodeConfig, parts: Mapping[str, str]) -> WrittenConfig:
    ordered = dict(sorted(parts.items()))
    return WrittenConfig(hash=digest([config.version, ordered]), parts=ordered)
