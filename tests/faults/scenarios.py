"""Small stories that end in a check of every law, and kill the mutants. Each starts after the first run."""

import itertools
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from strandline.app.planning import RunRequest
from strandline.lake.writes import Ticket
from strandline.model.commits import CommitMetadata, Operation
from strandline.model.errors import ConflictError
from strandline.model.metadata import to_json
from strandline.model.plan import Cause

from . import table_log
from .evidence import require
from .fate import soon
from .kinds.chain.data import BLOCKS, block
from .kinds.job.results import factor_of
from .kinds.snapshot.data import ITEMS, RATES, item, rates, send_first_items
from .laws import check_always, check_rest
from .world import World, new_catalog

Scenario = Callable[[World], None]


def first(world: World) -> None:
    """What every scenario starts with."""
    send_first_items(world)
    run_well(world)


def run_well(world: World, fail: str = "", exit_code: int = 0) -> None:
    """A run that must end well and leave nothing to do."""
    outcome = world.run(fail=fail)
    require(
        outcome is not None and outcome.exit_code == exit_code,
        "the run ends well",
        outcome and [r.error for r in outcome.results],
    )
    tasks = world.plan().tasks
    require(tasks == (), "L14 one run is enough", [(t.node, t.reason) for t in tasks])
    check_always(world)


def mend(world: World) -> None:
    check_always(world)
    world.settle_down()
    check_rest(world, rebuilt=False)


def the_past_changes(world: World) -> None:
    """Corrections, late facts, ties in both orders, a delete and what follows it, moving keys, NULLs."""
    world.send(ITEMS, item("d", 2, "x", None), item("e", 9, None, "x"), item("f", 1, "x", "red", 2))
    run_well(world)
    world.send(ITEMS, item("g", 3, "z"), item("a", 3, "late"), item("b", 5, None, "red", 7))
    run_well(world)
    world.send(ITEMS, *(item(id_, 5, name) for id_ in "hijk" for name in ("one", "two", "three")))
    run_well(world)
    world.send(
        ITEMS, *(item(id_, 5, name) for id_ in "hijk" for name in ("four", "five")), item("g", 6, op="D")
    )
    run_well(world)
    world.send(ITEMS, item("g", 4, "back"), item("d", 7, "moved", "blue"), "broken too")
    run_well(world)
    world.send(RATES, *rates(7, at=2))
    run_well(world)
    world.send(ITEMS, item("d", 8, "moved", "red", 3), item("k", 1, "moved", "red", 3))
    run_well(world)
    check_rest(world)


def much_changes_at_once(world: World) -> None:
    """What other scenarios tell one after the other, in three runs: on Spark each takes seconds."""
    ties = [item(id_, 5, name) for id_ in "hijk" for name in ("one", "two", "three")]
    world.send(
        ITEMS,
        item("d", 2, "x", None),
        item("e", 9, None, "x"),
        item("f", 1, "x", "red", 2),
        item("g", 6, "gone", "blue", 6),
        *ties,
    )
    world.send(
        BLOCKS,
        block("a2", "a1", 2),
        block("a3", "a2", 3),
        block("a4", "a3", 4),
        block("a5", "a4", 5),
        block("a7", "a6", 9),
    )
    run_well(world)
    ties = [item(id_, 5, name) for id_ in "hijk" for name in ("four", "five")]
    world.send(
        ITEMS,
        item("g", 7, op="D"),
        item("l", 1, "late"),
        item("m", 5, None, "blue", None),
        item("d", 7, "moved", "blue"),
        "broken",
        *ties,
    )
    world.send(BLOCKS, block("b2", "a1", 20))
    run_well(world)
    check_rest(world, rebuilt=False)
    world.send(
        ITEMS,
        item("g", 4, "back"),
        item("d", 8, "moved", "red", 3),
        item("a", 3, "late"),
        item("m", 6, None, "green", None),
    )
    world.send(BLOCKS, block("a6", "a5", 21))
    run_well(world)
    check_rest(world)


def _kill_at(world: World, point: str, *nodes: str) -> None:
    for node in nodes:
        world.send(ITEMS, item("d", 5, "x"), item("e", 5, f"only {node}", "red", len(node)))
        world.run(fail=f"{soon(point, node)}=kill")
        mend(world)
    check_rest(world)


def killed_behind_the_write(world: World) -> None:
    _kill_at(world, "after-write", "events", "item_facts", "names", "told")


def killed_before_the_write(world: World) -> None:
    _kill_at(world, "before-write", "events", "item_facts", "item", "names", "told")


def answers_are_lost(world: World) -> None:
    for at, node in enumerate(("events", "item_facts", "item", "names", "told"), 5):
        world.send(ITEMS, item("d", at, f"only {node}", "red", len(node)))
        run_well(world, f"{soon('after-write', node)}=lose")
    check_rest(world)


def run_while(world: World, point: str, node: str, happening: Callable[[], object], fail: str = "") -> None:
    """A run that stands still at a point while something happens."""
    world.fate.meanwhile = happening
    world.run(fail=f"{soon(point, node)}=call,{fail}".rstrip(","))
    require(world.fate.meanwhile is None, "the point was reached", point, node)


def _overtake(world: World, point: str, node: str, at: int) -> None:
    """Another dispatcher does all the work, and new work, while the first stands still."""

    def other() -> None:
        world.send(ITEMS, item("e", at + 1, "y"), "broken meanwhile")
        world.another(world.run)

    world.send(ITEMS, item("d", at, node), item("e", at, node))
    run_while(world, point, node, other)
    mend(world)


def a_writer_is_overtaken(world: World) -> None:
    _overtake(world, "before-write", "item_facts", 10)
    _overtake(world, "before-record", "item_quarantine", 20)
    _overtake(world, "before-write", "names", 30)
    check_rest(world)


def another_run_reads_on_meanwhile(world: World) -> None:
    """A run pins versions when it begins, and uses a later one if another run has published from that."""
    for at, (point, node) in enumerate(
        (("before-lease", "item_facts"), ("before-write", "item"), ("before-lease", "names")), 5
    ):

        def other(at: int = at) -> None:
            world.send(RATES, *rates(at, at=at))
            world.another(lambda: world.run(RunRequest(select="rates rate names")))

        world.send(ITEMS, item("d", at, f"pinned {point}"), item("e", at, "x"))
        run_while(world, point, node, other)
        mend(world)
    check_rest(world)


def a_write_lands_late(world: World) -> None:
    """The process is dead, what it sent is not: it arrives while the next one is about to write the same."""
    for at, node in enumerate(("item_facts", "told"), 5):
        world.send(ITEMS, item("d", at, f"late {node}", "red", len(node)))
        _land_late(world, node)
    check_rest(world)


def a_first_write_lands_late(world: World) -> None:
    """There is no table yet that could be fenced. Of two processes that would make it only the first may."""
    for node in [node.name for node in world.project.nodes if world.rows(node.name)]:
        shutil.rmtree(world.lake.root)
        world.use_catalog(new_catalog())
        _land_late(world, node)
    check_rest(world)


def _land_late(world: World, node: str) -> None:
    world.fate.holds_back = node
    world.run()
    require(world.fate.in_flight is not None, "something is on its way", node)
    run_while(world, "before-write", node, lambda: _arrive(world))
    mend(world)


def _arrive(world: World) -> None:
    """Nobody is there to be told that it was refused."""
    with suppress(ConflictError):
        world.fate.arrive()


def a_table_is_deleted_under_a_task(world: World) -> None:
    """The write then makes a table of a part of the rows. Nobody takes it for the whole table.

    That is so after a kill and without a catalog, too.
    """
    world.send(BLOCKS, block("a2", "a1", 2), block("a3", "a2", 3), block("a4", "a3", 4))
    run_well(world)
    nodes = ("item_facts", "item_quarantine", "item", "names", "told", "main", "stretches")
    for at, (node, killed) in enumerate(itertools.product(nodes, (False, True)), 5):
        world.send(ITEMS, item("d", at, f"{node} {at}", "red", at), "broken")
        world.send(
            BLOCKS,
            block(f"a{2 * at - 5}", f"a{2 * at - 6}", at),
            block(f"a{2 * at - 4}", f"a{2 * at - 5}", at),
        )
        fail = f"{soon('before-confirm', node)}=kill" if killed else ""
        run_while(world, "before-write", node, partial(shutil.rmtree, world.lake.table(node)), fail)
        if killed:
            world.use_catalog(new_catalog())
        world.settle_down()
        check_rest(world, rebuilt=False)
    check_rest(world)


def a_write_is_passed_over(world: World) -> None:
    """Someone with a larger token was there: the table takes the write without a word and does nothing."""

    world.send(ITEMS, item("d", 5, "x"))
    world.fate.meanwhile = lambda: _fence(world, "item_facts")
    run_well(world, f"{soon('before-write', 'item_facts')}=call")
    check_rest(world)


def _fence(world: World, dataset: str) -> None:
    """Somebody with a token far ahead."""
    token = table_log.read_snapshot(world.lake.table(dataset)).tokens[dataset] + 50
    metadata = CommitMetadata.bare(
        run="another", node=dataset, token=token, operation=Operation.FENCE, as_of=""
    )
    table_log.commit_nothing(world.lake, Ticket(dataset=dataset, token=token, metadata=to_json(metadata)))


def an_invalidation_after_a_change_of_configuration(world: World) -> None:
    """What is invalidated is computed anew, by the configuration of now; the rest waits for a backfill."""
    world.switches["factor"] = 2
    world.invalidate("item", where="name = 'x'")
    run_well(world)
    factors = _factors(world, "names", "name")
    require(factors == {"x": 2, "y": 1, None: 1}, "the invalidated scope alone is new", factors)
    world.backfill("names")
    factors = _factors(world, "names", "name")
    require(set(factors.values()) == {2}, "after a backfill everything is", factors)
    check_rest(world)


def _factors(world: World, dataset: str, column: str) -> dict[Any, int]:
    """The factor that each row was computed by."""
    return {row[column]: factor_of(world, row) for row in world.rows(dataset)}


def an_invalidation_is_killed(world: World) -> None:
    """Its commit is processed before the catalog knows of it. The catalog must not wait for it afterwards."""
    world.invalidate("item", f"{soon('before-record', 'item')}=kill", where="name = 'x'")
    mend(world)
    world.send(ITEMS, item("a", 4))
    run_well(world)
    check_rest(world)


def an_invalidation_of_what_the_catalog_lost(world: World) -> None:
    """The rows that are recorded with it are those of the table, not of an empty catalog."""
    world.use_catalog(new_catalog())
    world.invalidate("item", where="name = 'x'")
    mend(world)
    check_rest(world)


def catalogs_come_and_go(world: World) -> None:
    """An old one is put back, then it is lost; a compaction in between is nobody's business."""
    kept = world.copy_catalog()
    world.send(ITEMS, item("d", 5, "x"), "broken too")
    run_well(world)
    world.compact("item_facts")
    world.compact("names")
    require(world.plan().tasks == (), "a compaction makes nobody behind")
    world.use_catalog(kept)
    mend(world)
    _fence(world, "item_facts")
    world.use_catalog(new_catalog())
    mend(world)
    world.send(ITEMS, item("d", 6, "y"))
    run_well(world)
    check_rest(world)


def a_backfill_is_killed(world: World) -> None:
    """Its commit makes nobody behind, and the catalog must hear of it all the same."""
    for name, node in (("item", "item_facts"), ("names", "names")):
        world.switches["factor"] += 1
        world.backfill(name, f"{soon('after-write', node)}=kill")
        mend(world)
    check_rest(world)


def branches_overtake_each_other(world: World) -> None:
    """Branch a, then a heavier and shorter one, then a longer branch a.

    One block waits. Another is announced twice, with different values.
    """
    world.send(BLOCKS, block("a2", "a1", 2), block("a3", "a2", 3), block("a4", "a3", 4), block("a6", "a5", 7))
    run_well(world)
    check_rest(world, rebuilt=False)
    world.send(BLOCKS, block("b2", "a1", 5), block("a3", "x2", 99))
    run_well(world)
    check_rest(world, rebuilt=False)
    world.send(BLOCKS, block("a5", "a4", 6))
    run_well(world)
    check_rest(world)


def partitions_come_and_go(world: World) -> None:
    """One waits until it is final, one becomes empty, one is invalidated, one backfilled. Others stay."""
    world.send(BLOCKS, *(block(f"a{n}", f"a{n - 1}", n) for n in range(2, 6)))
    run_well(world)
    world.send(BLOCKS, block("a6", "a5", 6))
    run_well(world)
    check_rest(world, rebuilt=False)
    world.send(BLOCKS, block("b2", "a1", 20))
    run_well(world)
    check_rest(world, rebuilt=False)
    world.switches["factor"] = 2
    world.invalidate("main", partition="0-2")
    run_well(world)
    factors = _factors(world, "stretches", "number")
    require(factors == {1: 2, 2: 1}, "the invalidated partition alone is new", factors)
    world.backfill("stretches", partitions=("2-4",))
    factors = _factors(world, "stretches", "number")
    require(factors == {1: 2, 2: 2}, "and then the one that was asked for", factors)
    check_rest(world)


def a_unique_key_changes(world: World) -> None:
    """What was appended by another key is frozen. A backfill writes it again with all it ever published."""
    world.send(ITEMS, item("a", 5, "x", "red", 2))
    run_well(world)
    world.switches["unique"] = "price, name"
    world.send(ITEMS, item("a", 6, "x", "red", 3))
    run_well(world)
    check_rest(world, rebuilt=False)
    world.backfill("told")
    check_rest(world)
    require({2, 3} <= {r["price"] for r in world.rows("told")}, "what was published stays")


def what_is_frozen_is_backfilled_without_a_catalog(world: World) -> None:
    """Nobody knows by which unique key the table was written: not even when a part of it is asked for."""
    world.use_catalog(new_catalog())
    world.switches["unique"] = "price, name"
    world.backfill("told")
    mend(world)
    world.use_catalog(new_catalog())
    world.run(RunRequest(backfill="names", where="name = 'x'", reason="a test"))
    mend(world)


def an_old_catalog_does_not_know_what_froze(world: World) -> None:
    """It was written anew by another unique key since; the catalog and the project are as before."""
    kept = world.copy_catalog()
    world.switches["unique"] = "price, name"
    world.backfill("told")
    world.switches["unique"] = "name, price"
    world.use_catalog(kept)
    world.send(ITEMS, item("d", 5, "z", "red", 9))
    outcome = world.run()
    require(
        outcome is not None and [r.slug for r in outcome.results if r.error] == ["frozen"],
        "it is refused",
        outcome,
    )
    check_always(world)
    world.backfill("told")
    mend(world)


def a_reader_lags_behind_a_cleaning(world: World) -> None:
    """A frozen job still needs the version that it has read up to."""
    world.switches["unique"] = "price, name"
    for price in (2, 3):
        world.send(ITEMS, item("a", 4 + price, "x", "red", price))
        run_well(world)
    world.maintain()
    check_rest(world, rebuilt=False)
    world.switches["unique"] = "name, price"
    gaps = [task.reason for task in world.plan().tasks if task.cause is Cause.GAP]
    require(not gaps, "nothing that a cursor needs is cleaned away", gaps)
    run_well(world)
    check_rest(world)


def an_old_catalog_after_a_cleaning(world: World) -> None:
    """It knows cursors whose versions can be read no more: the tables say so."""
    kept = world.copy_catalog()
    for at in (5, 6):
        world.send(ITEMS, item("a", at, "y", "blue", at), item("b", at, "x"))
        world.send(BLOCKS, block(f"a{at - 3}", f"a{at - 4}", at))
        run_well(world)
    world.maintain()
    check_rest(world, rebuilt=False)
    world.use_catalog(kept)
    mend(world)
    check_rest(world)


def a_cleaning_is_killed(world: World) -> None:
    """Before and after each of its two steps, and where nobody knows whether its commit stands."""
    hits = (
        ("before-compact", "events"),
        ("after-compact", "item_facts"),
        ("after-write", "main"),
        ("before-vacuum", "names"),
        ("after-vacuum", "item"),
    )
    for number, (point, node) in enumerate(hits, 2):
        world.send(ITEMS, item("a", 4 + number, point, "blue"), item("b", 4 + number, node))
        world.send(BLOCKS, block(f"a{number}", f"a{number - 1}", number))
        run_well(world)
        require(world.maintain(f"{soon(point, node)}=kill") is None, "it was killed", point, node)
        mend(world)
    check_rest(world)


SCENARIOS: tuple[Scenario, ...] = (
    the_past_changes,
    much_changes_at_once,
    killed_behind_the_write,
    killed_before_the_write,
    answers_are_lost,
    a_writer_is_overtaken,
    another_run_reads_on_meanwhile,
    a_write_lands_late,
    a_first_write_lands_late,
    a_table_is_deleted_under_a_task,
    a_write_is_passed_over,
    an_invalidation_after_a_change_of_configuration,
    an_invalidation_is_killed,
    an_invalidation_of_what_the_catalog_lost,
    catalogs_come_and_go,
    a_backfill_is_killed,
    branches_overtake_each_other,
    partitions_come_and_go,
    a_unique_key_changes,
    what_is_frozen_is_backfilled_without_a_catalog,
    an_old_catalog_does_not_know_what_froze,
    a_reader_lags_behind_a_cleaning,
    an_old_catalog_after_a_cleaning,
    a_cleaning_is_killed,
)
