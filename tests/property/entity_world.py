"""A small world of entities: rows, variables, and what each variable is by definition (brute force)."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

Owner = int | None
Values = dict[str, int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of a dataset. `at` is the column of windows, `order` another one that ranks facts."""

    dataset: str
    record: int
    owner: Owner
    value: int | None
    at: int | None
    order: int
    deleted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    name: str
    dataset: str
    aggregate: str
    """`count`, `sum`, `avg`, `max` or `distinct`."""
    least: int = 0
    """`where value >= least`."""
    window: int | None = None
    default: int | None = None


RECORDS, STREAM, COMPUTED = "records", "stream", "computed"
DATASETS = (RECORDS, STREAM, COMPUTED)


@dataclass(slots=True)
class World:
    """What has happened: every fact of two datasets, and the rows of a computed one."""

    facts: list[Row] = field(default_factory=list)
    computed: dict[int, Row] = field(default_factory=dict)

    def rows(self, dataset: str) -> set[Row]:
        """The live rows of a dataset."""
        if dataset == COMPUTED:
            return set(self.computed.values())
        if dataset == STREAM:
            return {fact for fact in self.facts if fact.dataset == STREAM}
        newest: dict[int, Row] = {}
        for fact in self.facts:
            best = newest.get(fact.record)
            if fact.dataset == RECORDS and (best is None or fact.order > best.order):
                newest[fact.record] = fact
        return {row for row in newest.values() if not row.deleted}

    def names(self, dataset: str) -> set[int]:
        """Who exists through a dataset: through facts for ever, through others while a row names it."""
        named = self.computed.values() if dataset == COMPUTED else self.facts
        return {row.owner for row in named if row.dataset == dataset and row.owner is not None}


def weigh(row: Row, variable: Variable, as_of: int) -> bool:
    """Whether a variable counts a row at a time: windows are half open, NULL lies in none."""
    if row.value is None or row.value < variable.least:
        return False
    if variable.window is None:
        return True
    return row.at is not None and as_of - variable.window <= row.at < as_of


def aggregate(rows: Iterable[Row], variable: Variable) -> int | None:
    """The value over these rows. An average is the sum times 1000 over the count, rounded down."""
    values = [row.value for row in rows if row.value is not None]
    match variable.aggregate:
        case "count":
            value: int | None = len(values)
        case "sum":
            value = sum(values) if values else None
        case "avg":
            value = sum(values) * 1000 // len(values) if values else None
        case "max":
            value = max(values, default=None)
        case _:
            value = len(set(values))
    return variable.default if value is None else value


def compute_all(world: World, variables: Collection[Variable], as_of: int) -> dict[int, Values]:
    """Every variable of every entity, from everything."""
    used = {v.dataset for v in variables}
    everybody = {owner for dataset in used for owner in world.names(dataset)}
    rows_by_owner: Mapping[str, dict[Owner, list[Row]]] = {dataset: {} for dataset in used}
    for dataset in used:
        for row in world.rows(dataset):
            rows_by_owner[dataset].setdefault(row.owner, []).append(row)
    return {
        owner: {
            v.name: aggregate(
                (row for row in rows_by_owner[v.dataset].get(owner, ()) if weigh(row, v, as_of)), v
            )
            for v in variables
        }
        for owner in everybody
    }
