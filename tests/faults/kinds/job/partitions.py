"""Jobs by partition: each partition that a change touches is built again as a whole, once it is final."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import strategies as st

from strandline.lake.work import Prepared
from strandline.model import scope as scopes
from strandline.model.columns import CONFIG, DELETED, KEY
from strandline.model.commits import BuiltPartition, Operation
from strandline.model.partitions import find_span, is_final, name_number
from strandline.model.plan import Cause
from strandline.model.project import Partitioning
from tests.faults.evidence import Evidence, require
from tests.faults.kinds.chain.data import BLOCKS
from tests.faults.kinds.chain.oracle import canonical
from tests.faults.kinds.facts import facts_sent
from tests.faults.kinds.kind import Happening, Step, Switches
from tests.faults.plain_work import (
    Work,
    by_key,
    declared,
    key_hash,
    live,
    signature,
    write_rows,
    write_whole,
)
from tests.faults.table_log import Row

from .results import JOBS, factor_of, find_invalidated, job_of, schema_of

if TYPE_CHECKING:
    from tests.faults.world import World

_SIZE = 2
"""Numbers in a partition of `stretches`."""
_STRETCHES = f"""
- name: stretch
  input_datasets: [main]
  output_dataset: stretches
  incremental: {{mode: partition}}
  partition: {{column: number, size: {_SIZE}, final_after: 1}}
  update_strategy: replace
  config: {{factor: FACTOR}}
  sql: select number, hash, weight * :factor as weight from main
"""


def declare(switches: Switches) -> str:
    return _STRETCHES.replace("FACTOR", str(switches["factor"]))


def prepare(work: Work, partitioning: Partitioning) -> Prepared:
    """Build the partitions that changed rows fall in, and those that have become final; the others wait."""
    job = job_of(work.node)
    own = None if work.task.overwrite else work.read_own()
    (given,) = work.node.inputs
    rows = work.read_live(given.dataset)
    names = find_partitions(work, partitioning, given.dataset, whole=own is None or work.full)
    tip = max((row[partitioning.column] for row in rows), default=None)
    built = set(work.partitions) if own is not None else set()
    due = [n for n in sorted(names) if n in built or _is_final(work, partitioning, n, tip)]
    waiting = tuple(sorted(names - set(due)))
    if not due and own is not None:
        return Prepared(write=None, scope=scopes.NOTHING, live_rows=work.live_rows, waiting=waiting)
    inside = [declared(row) for row in rows if _partition(partitioning, row) in due]
    beside = {DELETED: False, CONFIG: work.config.hash}
    results = JOBS[job.output]({given.name: inside}, job.config)
    new = [{**row, **beside, KEY: key_hash((_partition(partitioning, row),))} for row in results]
    schema = schema_of(job)
    counts = Counter(_partition(partitioning, row) for row in new)
    if own is None:
        partitions = tuple(BuiltPartition(partition_key=n, rows=counts[n]) for n in due)
        return replace(write_whole(schema, new), partitions=partitions, waiting=waiting)
    return _replace_partitions(work, schema, {key_hash((n,)): n for n in due}, new, own, waiting)


def find_partitions(work: Work, partitioning: Partitioning, dataset: str, *, whole: bool) -> set[str]:
    """The partitions that a task may have to build.

    They are those of rows that left or came, those that someone says are wrong, and those that waited.
    """
    if whole:
        return {_partition(partitioning, row) for row in work.read_live(dataset)} | set(work.partitions)
    rows = [row for _, row in work.read_changes(dataset)] + find_invalidated(work, dataset)
    return {_partition(partitioning, row) for row in rows} | {
        *scopes.find_partitions(work.task.scope),
        *work.waiting,
    }


def _replace_partitions(
    work: Work,
    schema: pa.Schema,
    due: Mapping[int, str],
    new: Sequence[Row],
    own: Sequence[Row],
    waiting: tuple[str, ...],
) -> Prepared:
    """The write of the partitions that differ, whole; those that do not are as they were."""
    asked = work.task.cause is Cause.PERSON
    after, before = by_key(new), by_key(row for row in live(own) if row[KEY] in due)
    differing = [key for key in due if signature(after[key], asked) != signature(before[key], asked)]
    same = [name for key, name in due.items() if key not in differing]
    # Built and found as it was: new, or now known to be what this configuration gives.
    unchanged = [n for n in same if n not in work.partitions or ((work.full or asked) and work.stale)]
    built = [BuiltPartition(partition_key=due[key], rows=len(after[key])) for key in differing]
    built += [
        BuiltPartition(partition_key=n, rows=work.partitions[n].row_count if n in work.partitions else 0)
        for n in unchanged
    ]
    rows = [row for key in differing for row in after[key]]
    write = None
    if differing:
        write = replace(write_rows(Operation.REPLACE_PARTITIONS, schema, rows), replaced=tuple(differing))
    elif built or (work.full and work.stale):
        write = write_rows(Operation.COUNTS, schema, [])
    return Prepared(
        write=write,
        scope=scopes.Partitions.counted(due.values(), len(waiting)),
        rows_written=len(rows),
        live_rows=work.live_rows + len(rows) - sum(len(before[key]) for key in differing),
        whole=work.full,
        partitions=tuple(built),
        waiting=waiting,
    )


def _partition(partitioning: Partitioning, row: Row) -> str:
    return name_number(partitioning, row[partitioning.column])


def _is_final(work: Work, partitioning: Partitioning, name: str, tip: int | None) -> bool:
    span = find_span(partitioning, work.desk.project.calendar, name)
    return span is not None and is_final(partitioning, span, {} if tip is None else {"": tip})


def check(evidence: Evidence) -> None:
    """L2: over the chain that the last commit has read; at rest over the blocks that were sent."""
    if inputs := evidence.inputs("stretches"):
        _check_stretches(evidence, live(inputs["main"]))
    if evidence.at_rest:
        branch, _ = canonical(facts_sent(evidence, BLOCKS))
        _check_stretches(evidence, list(branch.values()))
        _check_recorded(evidence)


def _check_stretches(evidence: Evidence, branch: Sequence[Row]) -> None:
    """L2: a partition that is there is there with all its rows; one that is final is there."""
    rows = evidence.live("stretches")
    seen: defaultdict[int, dict[Any, int]] = defaultdict(dict)
    for row in rows:
        weight, rest = divmod(row["weight"], factor_of(evidence.world, row))
        require(rest == 0, "L2 a row is of its configuration", row)
        seen[row["number"] // _SIZE][row["number"], row["hash"]] = weight
    expected: defaultdict[int, dict[Any, int]] = defaultdict(dict)
    for block in branch:
        expected[block["number"] // _SIZE][block["number"], block["hash"]] = block["weight"]
    require(len(rows) == sum(map(len, seen.values())), "L2 stretches once", rows)
    tip = max((block["number"] for block in branch), default=0)
    final = {stretch for stretch in expected if (stretch + 1) * _SIZE <= tip}
    for stretch in seen.keys() | final:
        require(seen.get(stretch) == expected.get(stretch), "L2 stretches", stretch, seen, expected)


def _check_recorded(evidence: Evidence) -> None:
    rows = Counter(row["number"] // _SIZE for row in evidence.live("stretches"))
    partitions = evidence.nodes["stretches"].partitions
    recorded = {int(n.split("-")[0]) // _SIZE: p.row_count for n, p in partitions.items() if p.row_count}
    require(recorded == dict(rows), "L6 rows of each partition", recorded, rows)


STORY = (
    Step(
        name="invalidation of a partition",
        act=lambda w, fail: w.invalidate("main", fail, partition="2-4"),
    ),
    Step(name="a partition that was invalidated", only_long=True),
    Step(
        name="backfill of a partition",
        act=lambda w, fail: w.backfill("stretches", fail, partitions=("0-2", "4-6")),
    ),
)


def invalidate_a_partition(world: "World", fail: str, name: str) -> None:
    world.invalidate("main", fail, partition=name)


def backfill_partitions(world: "World", fail: str, names: list[str]) -> None:
    """One that was never built is refused."""
    world.backfill("stretches", fail, partitions=tuple(names))


_PARTITIONS = st.sampled_from(["0-2", "2-4", "4-6"])
REQUESTS = (
    Happening(do=invalidate_a_partition, drawn={"name": _PARTITIONS}),
    Happening(do=backfill_partitions, drawn={"names": st.lists(_PARTITIONS, min_size=1, max_size=2)}),
)
