"""Appending jobs: rows whose unique key is new are inserted, and what was published stays."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from strandline.lake.work import Prepared
from strandline.model.columns import KEY
from strandline.model.commits import Operation
from strandline.model.project import Job
from strandline.model.scope import EVERYTHING, Keys
from tests.faults.evidence import Evidence, require
from tests.faults.kinds.facts import facts_sent
from tests.faults.kinds.kind import Happening, Step, Switches
from tests.faults.kinds.snapshot.data import ITEMS, item
from tests.faults.kinds.snapshot.oracle import latest
from tests.faults.plain_work import Key, Work, key_hash, live, row_hash, values_of, write_rows, write_whole
from tests.faults.table_log import Row

from .results import find_affected, job_of, keyed_rows, schema_of

if TYPE_CHECKING:
    from tests.faults.world import World

_TOLD = """
- name: tell
  input_datasets: [item]
  output_dataset: told
  incremental: {mode: cursor, cursor_column: price, unique_key: [UNIQUE]}
  update_strategy: append
  sql: select name, price from item
"""


def declare(switches: Switches) -> str:
    return _TOLD.replace("UNIQUE", switches["unique"])


def prepare(work: Work) -> Prepared:
    """Insert the rows whose unique key is new; what was published stays."""
    job = job_of(work.node)
    own = work.read_own()
    scope = None if work.full or own is None else find_affected(work, job)
    schema = schema_of(job)
    rows = [{**row, KEY: key_hash(values_of(row, job.unique_key))} for row in keyed_rows(work, job, scope)]
    if own is None or work.task.overwrite:
        kept = published(own or [], job)
        return write_whole(schema, [*kept, *only_new(rows, kept, job.unique_key)])
    new = only_new(rows, own, job.unique_key)
    operation = Operation.INSERT_NEW if new else Operation.COUNTS
    write = write_rows(operation, schema, new) if new or (work.full and work.stale) else None
    return Prepared(
        write=write,
        scope=EVERYTHING if scope is None else Keys(count=len(scope)),
        rows_written=len(new),
        live_rows=work.live_rows + len(new),
        whole=work.full,
    )


def published(own: Sequence[Row], job: Job) -> list[Row]:
    """What a table that is written anew keeps: everything it ever had."""
    return [{**row, KEY: key_hash(values_of(row, job.unique_key))} for row in own]


def only_new(rows: Sequence[Row], own: Sequence[Row], unique_key: Sequence[str]) -> list[Row]:
    """One row a unique key that is not there yet, null-safe."""
    there = {values_of(row, unique_key) for row in own}
    first: dict[Key, Row] = {}
    for row in sorted(rows, key=row_hash):
        first.setdefault(values_of(row, unique_key), row)
    return [row for key, row in first.items() if key not in there]


def check(evidence: Evidence) -> None:
    """L2, L5: no row is there twice, no published row leaves, none is missing. At rest none is invented."""
    rows = [_pair(row) for row in evidence.rows("told")]
    told = set(rows)
    require(len(rows) == len(told), "L5 a unique key is inserted once", rows)
    if rows:
        published = {_pair(row) for row in evidence.rows("told", evidence.readable_from("told"))}
        require(published <= told, "L2 what was published stays", told, published)
    if inputs := evidence.inputs("told"):
        given = {_pair(row) for row in live(inputs["item"])}
        require(given <= told, "L2 told misses nothing", told, given)
    if evidence.at_rest:
        _check_sent(evidence, told)
    _check_frozen(evidence)


def _check_sent(evidence: Evidence, told: set[Key]) -> None:
    facts = facts_sent(evidence, ITEMS)
    if "told" not in evidence.frozen:
        expected = {_pair(row) for row in latest(facts, "id").values()}
        require(expected <= told, "L2 told misses nothing", told, expected)
    require(told <= {_pair(fact) for _, fact in facts}, "L2 told invents nothing", told)


def _check_frozen(evidence: Evidence) -> None:
    """What a change of the unique key has frozen is written anew as a whole, or not at all."""
    computed = [e.metadata for e in evidence.entries("told") if e.metadata and e.metadata.inputs]
    unique_keys = [evidence.world.configured[metadata.config.hash]["unique"] for metadata in computed]
    for (before, after), metadata in zip(pairwise(unique_keys), computed[1:], strict=True):
        whole = metadata.operation is Operation.OVERWRITE
        require(whole or before == after, "what is frozen is not written", metadata.task, metadata.operation)


def _pair(row: Row) -> tuple[Any, Any]:
    return (row["name"], row["price"])


def _change_unique_key(world: "World") -> None:
    world.switches["unique"] = "price, name"
    world.send(ITEMS, item("f", 10, "x", "red", 6))


AFTER_CLEANING = (
    Step(
        name="append",
        before=lambda w: w.send(ITEMS, item("f", 9, "x", "red", 8), item("g", 9, None, None, 8)),
        told_with="configuration change",
    ),
    Step(name="a configuration that freezes", before=_change_unique_key),
    Step(name="backfill of what is frozen", act=lambda w, fail: w.backfill("told", fail)),
)


def the_unique_key_changes(world: "World") -> None:
    """What was appended by another is frozen until a backfill."""
    world.switches["unique"] = "price, name" if world.switches["unique"] == "name, price" else "name, price"


HAPPENINGS = (Happening(do=the_unique_key_changes),)
