"""Keyed jobs: the rows of the keys that a change touches are computed again and replaced."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from strandline.lake.work import Prepared
from tests.faults.evidence import Evidence, require
from tests.faults.kinds.chain.data import BLOCKS
from tests.faults.kinds.facts import facts_sent
from tests.faults.kinds.kind import Happening, Step, Switches
from tests.faults.kinds.snapshot.data import ITEMS, RATES, item
from tests.faults.kinds.snapshot.oracle import latest
from tests.faults.plain_work import Work, compare, live, values_of, write_whole
from tests.faults.table_log import Row

from .results import factor_of, find_affected, job_of, keyed_rows, schema_of

if TYPE_CHECKING:
    from tests.faults.world import World

_NAMES = """
- name: count_names
  input_datasets: [item, rate]
  output_dataset: names
  incremental: {mode: keyed, key: [name, colour], inputs: {item: {by: [name, colour]}, rate: whole}}
  config: {factor: FACTOR}
  sql: |
    select i.name, i.colour, count(*) * max(r.percent) * :factor as worth
    from item i join rate r on r.name = '*' group by i.name, i.colour
"""
_COLOURS = """
- name: sum_colours
  input_datasets: [names]
  output_dataset: colours
  incremental: {mode: keyed, key: [colour]}
  sql: select colour, sum(worth) as worth from names group by colour
"""


def declare(switches: Switches) -> str:
    names = _NAMES.replace("FACTOR", str(switches["factor"]))
    return names + _COLOURS if switches["colours"] else names


def prepare(work: Work) -> Prepared:
    """Compute the job over the keys that changed, or everything, and write the keys that differ."""
    job = job_of(work.node)
    own = None if work.task.overwrite else work.read_own()
    schema = schema_of(job)
    if own is None:
        return write_whole(schema, keyed_rows(work, job, None))
    if work.full:
        return compare(work, schema, keyed_rows(work, job, None), live(own), bury=True)
    scope = find_affected(work, job)
    old = [row for row in live(own) if values_of(row, job.key) in scope]
    return compare(work, schema, keyed_rows(work, job, scope), old, bury=True)


def check(evidence: Evidence) -> None:
    """L2, L8: a full recompute of the inputs that the last commit read; at rest, of all that was sent."""
    if inputs := evidence.inputs("names"):
        _check_names(evidence, live(inputs["item"]), live(inputs["rate"]))
    if inputs := evidence.inputs("colours"):
        _check_colours(evidence, live(inputs["names"]))
    if evidence.at_rest:
        items = latest(facts_sent(evidence, ITEMS), "id").values()
        _check_names(evidence, items, latest(facts_sent(evidence, RATES), "name").values())


def _check_names(evidence: Evidence, items: Iterable[Row], rates: Iterable[Row]) -> None:
    """Each row by the configuration that it names: others stay as they are until a backfill."""
    rows = evidence.live("names")
    seen = {(r["name"], r["colour"]): r["worth"] for r in rows}
    factors = {(r["name"], r["colour"]): factor_of(evidence.world, r) for r in rows}
    counts = _count_names(items, rates)
    expected = {key: count * factors.get(key, 0) for key, count in counts.items()}
    require(len(rows) == len(seen), "L2 names once", rows)
    require(seen == expected, "L2 names", seen, counts)


def _count_names(items: Iterable[Row], rates: Iterable[Row]) -> dict[tuple[Any, Any], int]:
    """Count times percent, before the factor."""
    percent = next((r["percent"] for r in rates if r["name"] == "*"), None)
    if percent is None:
        return {}
    return {key: n * percent for key, n in Counter((i["name"], i["colour"]) for i in items).items()}


def _check_colours(evidence: Evidence, names: Iterable[Row]) -> None:
    totals: Counter[Any] = Counter()
    for row in names:
        totals[row["colour"]] += row["worth"]
    colours = {row["colour"]: row["worth"] for row in evidence.live("colours")}
    require(colours == dict(totals), "L2 colours", colours, totals)


def _set_factor(world: "World") -> None:
    world.switches["factor"] = 3
    world.send(ITEMS, item("b", 9, "x", "blue", 4))


def _drop_job(world: "World") -> None:
    world.switches["colours"] = False
    world.send(ITEMS, item("f", 11, "y", "red", 5))


def _bring_job_back(world: "World") -> None:
    world.switches["colours"] = True
    world.send(ITEMS, item("f", 12, "y", "blue", 5))
    world.send(BLOCKS, "broken again")


STORY = (
    Step(name="invalidation", act=lambda w, fail: w.invalidate("item", fail, where="name = 'x'")),
    Step(name="what the invalidation asks for", only_long=True),
    Step(name="configuration change", before=_set_factor),
    Step(name="backfill", act=lambda w, fail: w.backfill("names", fail), only_long=True),
)
AFTER_CLEANING = (
    Step(name="a job is removed", before=_drop_job, told_with="a configuration that freezes"),
    Step(name="a job is added", before=_bring_job_back),
)


def the_configuration_changes(world: "World", factor: int) -> None:
    """The factors are far apart, so that no row is equal by two of them.

    A row that is equal by both keeps the older configuration, and is right by the newer.
    """
    world.switches["factor"] = factor


def a_job_is_added_or_removed(world: "World") -> None:
    world.switches["colours"] = not world.switches["colours"]


HAPPENINGS = (
    Happening(do=the_configuration_changes, drawn={"factor": st.sampled_from([1, 1_000, 1_000_000])}),
    Happening(do=a_job_is_added_or_removed),
)


def invalidate(world: "World", fail: str, where: str) -> None:
    world.invalidate("item", fail, where=where)


REQUESTS = (Happening(do=invalidate, drawn={"where": st.sampled_from(["name = 'x'", "colour is null"])}),)
