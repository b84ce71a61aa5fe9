"""What the jobs of the project give, in Python in place of their SQL, and which keys a change touches."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from strandline.model.columns import CONFIG, DELETED, KEY
from strandline.model.conditions import EVERY_ROW, AllOf, Comparison, Operator, find_comparisons
from strandline.model.node import By, Node, Relation
from strandline.model.project import Job
from strandline.model.scope import find_filter
from tests.faults.plain_work import KEYED_COLUMNS, Key, Work, declared, key_hash, values_of
from tests.faults.table_log import Row

if TYPE_CHECKING:
    from tests.faults.world import World

Compute = Callable[[Mapping[str, Sequence[Row]], Mapping[str, object]], list[Row]]
"""The rows of a job, by its inputs and its configuration."""


def keyed_rows(work: Work, job: Job, scope: Collection[Key] | None) -> list[Row]:
    """The job's rows inside the scope. Other rows may have been computed from a part of their inputs."""
    rows = compute(work, job, scope)
    beside = {DELETED: False, CONFIG: work.config.hash}
    kept = [row for row in rows if scope is None or values_of(row, job.key) in scope]
    return [{**row, **beside, KEY: key_hash(values_of(row, job.key))} for row in kept]


def compute(work: Work, job: Job, scope: Collection[Key] | None) -> list[Row]:
    """The Python of the job's SQL, over its inputs inside the scope where their relation says how."""
    inputs = {}
    for given in work.node.inputs:
        rows = [declared(row) for row in work.read_live(given.dataset)]
        columns = restricting_columns(given.relation)
        inputs[given.name] = [
            r for r in rows if scope is None or not columns or values_of(r, columns) in scope
        ]
    return JOBS[job.output](inputs, job.config)


def restricting_columns(relation: Relation) -> tuple[str, ...]:
    """What an input is restricted by: nothing, unless its relation says so."""
    return relation.columns if isinstance(relation, By) else ()


def find_affected(work: Work, job: Job) -> set[Key]:
    """The keys of rows that left and came, and of what someone says is wrong."""
    keys: set[Key] = set()
    for given in work.node.inputs:
        if not isinstance(given.relation, By):
            continue
        columns = given.relation.columns
        keys |= changed_keys(work.read_changes(given.dataset), columns)
        keys |= {values_of(row, columns) for row in find_invalidated(work, given.dataset)}
    return keys


def find_invalidated(work: Work, dataset: str) -> list[Row]:
    """The rows that someone says are wrong. Commits that changed rows are read as changes instead."""
    invalidations = [
        i
        for e in work.entries(dataset)
        if e.metadata and not e.changes_rows
        for i in e.metadata.invalidations
    ]
    filters = [find_filter(i.scope) or EVERY_ROW for i in invalidations]
    return (
        [row for row in work.read_live(dataset) if any(matches(f, row) for f in filters)] if filters else []
    )


def changed_keys(changes: Iterable[tuple[int, Row]], columns: Sequence[str]) -> set[Key]:
    """Of the rows that left as well as of those that came: a row that moves repairs both keys."""
    return {values_of(row, columns) for _, row in changes}


def matches(given: AllOf, row: Row) -> bool:
    return all(_compares(c, row[c.column]) for c in find_comparisons(given))


def _compares(asked: Comparison, value: Any) -> bool:
    match asked.operator:
        case Operator.IS_NULL:
            return value is None
        case Operator.EQ:
            return bool(value == asked.value)
        case Operator.GTE:
            return value is not None and value >= asked.value
        case Operator.LT:
            return value is not None and value < asked.value
        case other:
            raise ValueError(f"no story asks for {other}")


def schema_of(job: Job) -> pa.Schema:
    return pa.schema([*_COLUMNS[job.output].items(), *KEYED_COLUMNS])


def factor_of(world: "World", row: Row) -> int:
    """The factor in the configuration that a row names."""
    return int(world.configured[row[CONFIG]]["factor"])


def job_of(node: Node) -> Job:
    assert isinstance(node.definition, Job)
    return node.definition


def compute_names(inputs: Mapping[str, Sequence[Row]], config: Mapping[str, object]) -> list[Row]:
    percents = [r["percent"] for r in inputs["rate"] if r["name"] == "*"]
    counts = Counter((r["name"], r["colour"]) for r in inputs["item"])
    factor = int(str(config["factor"]))
    return [
        {"name": n, "colour": c, "worth": k * max(percents) * factor}
        for (n, c), k in counts.items()
        if percents
    ]


def compute_colours(inputs: Mapping[str, Sequence[Row]], config: Mapping[str, object]) -> list[Row]:
    totals: Counter[str | None] = Counter()
    for row in inputs["names"]:
        totals[row["colour"]] += row["worth"]
    return [{"colour": colour, "worth": worth} for colour, worth in totals.items()]


def compute_sums(key: str) -> Compute:
    """Rows and their worth, by a column of a valuation."""

    def compute_sum(inputs: Mapping[str, Sequence[Row]], config: Mapping[str, object]) -> list[Row]:
        days = Counter(row[key] for row in inputs["stock_daily"])
        worths = {of: [r["worth"] for r in inputs["stock_daily"] if r[key] == of] for of in days}
        known = {of: [worth for worth in worths[of] if worth is not None] for of in days}
        return [
            {key: of, "days": n, "worth": sum(known[of]) if known[of] else None} for of, n in days.items()
        ]

    return compute_sum


def compute_told(inputs: Mapping[str, Sequence[Row]], config: Mapping[str, object]) -> list[Row]:
    return [{"name": r["name"], "price": r["price"]} for r in inputs["item"]]


def compute_stretches(inputs: Mapping[str, Sequence[Row]], config: Mapping[str, object]) -> list[Row]:
    factor = int(str(config["factor"]))
    return [
        {"number": r["number"], "hash": r["hash"], "weight": r["weight"] * factor} for r in inputs["main"]
    ]


JOBS: dict[str, Compute] = {
    "names": compute_names,
    "colours": compute_colours,
    "told": compute_told,
    "stretches": compute_stretches,
    "portfolios": compute_sums("portfolio"),
    "securities": compute_sums("security"),
}
_COLUMNS = {
    "names": {"name": pa.string(), "colour": pa.string(), "worth": pa.int64()},
    "colours": {"colour": pa.string(), "worth": pa.int64()},
    "told": {"name": pa.string(), "price": pa.int64()},
    "stretches": {"number": pa.int64(), "hash": pa.string(), "weight": pa.int64()},
    "portfolios": {"portfolio": pa.string(), "days": pa.int64(), "worth": pa.int64()},
    "securities": {"security": pa.string(), "days": pa.int64(), "worth": pa.int64()},
}
