"""The plain worker of snapshots."""

from collections.abc import Iterable
from typing import Any

from strandline.lake.work import Prepared
from strandline.model.columns import CONFIG, KEY
from strandline.model.commits import WrittenConfig
from strandline.model.project import FactDataset
from tests.faults.kinds.facts import facts_of, facts_schema
from tests.faults.plain_work import Work, compare, place_of, row_hash, write_whole
from tests.faults.table_log import Row


def prepare(work: Work) -> Prepared:
    """The best row of each key among what is new and what stands (L3)."""
    dataset = facts_of(work.node)
    name = work.node.inputs[0].dataset
    own = None if work.task.overwrite else work.read_own()
    if own is None:
        return write_whole(facts_schema(dataset), fold(work.read(name), dataset, work.config))
    if work.full:
        return compare(
            work, facts_schema(dataset), fold(work.read(name), dataset, work.config), own, bury=True
        )
    incoming = read_increment(work, name)
    scope = {row[KEY] for row in incoming}
    old = [row for row in stands(own) if row[KEY] in scope]
    return compare(
        work, facts_schema(dataset), fold([*incoming, *old], dataset, work.config), old, bury=False
    )


def stands(own: list[Row]) -> list[Row]:
    """The rows that stand for all earlier facts. Deleted ones keep older facts from reviving a record."""
    return own


def read_increment(work: Work, name: str) -> list[Row]:
    return work.read_added(name)


def fold(facts: Iterable[Row], dataset: FactDataset, config: WrittenConfig) -> list[Row]:
    best: dict[int, Row] = {}
    for fact in facts:
        key = fact[KEY]
        best[key] = fact if key not in best else choose(best[key], fact, dataset)
    return [{**row, CONFIG: config.hash} for row in best.values()]


def choose(one: Row, other: Row, dataset: FactDataset) -> Row:
    """The whole row that wins."""
    return max(one, other, key=lambda row: rank(row, dataset))


def rank(row: Row, dataset: FactDataset) -> tuple[Any, ...]:
    assert dataset.record_set is not None
    ordered = tuple((row[c] is not None, row[c]) for c in dataset.record_set.order_by)
    return (ordered, row_hash(row), place_of(row))
