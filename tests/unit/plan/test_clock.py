"""What a moved clock touches: nothing, everything, or a scope."""

from dataclasses import replace

import pytest

from strandline.app.planning import plan_request
from strandline.model.node import Project
from strandline.model.plan import Cause, Strategy, Task
from strandline.model.scope import EVERYTHING, ClockMove, Increment, Keys, Partitions
from strandline.model.traits import OnClock
from strandline.plan import plan
from tests.golden.cases import World, tell

BUILT = "2024-05-01T00:00:00+00:00"
LATER = "2024-05-02T00:00:00+00:00"
MOVE = ClockMove(before=BUILT, now=LATER)


def with_clock(project: Project, name: str, clock: OnClock) -> Project:
    nodes = (
        replace(n, traits=replace(n.traits, clock=clock)) if n.name == name else n for n in project.nodes
    )
    return replace(project, nodes=tuple(nodes))


def plan_of(world: World, name: str, clock: OnClock) -> Task | None:
    request = plan_request(world.workspace, world.observed, world.request)
    made = plan(with_clock(world.project, name, clock), world.observed, request)
    return next((task for task in made.tasks if task.node == name), None)


@pytest.mark.parametrize("clock", OnClock)
def test_a_clock_that_stands_still_touches_nothing(clock: OnClock) -> None:
    assert plan_of(tell(("project shop", "built")), "pieces", clock) is None


def test_a_moved_clock_recomputes_a_scope_although_no_input_has_changed() -> None:
    task = plan_of(tell(("project shop", "built", f"ask --as-of {LATER}")), "pieces", OnClock.SCOPE)

    assert task is not None
    assert (task.cause, task.strategy) == (Cause.CLOCK, Strategy.RECOMPUTE)
    assert task.scope == Keys(origins=(MOVE,))


def test_a_moved_clock_recomputes_everything_of_a_node_whose_every_row_depends_on_it() -> None:
    task = plan_of(tell(("project shop", "built", f"ask --as-of {LATER}")), "pieces", OnClock.EVERYTHING)

    assert task is not None
    assert (task.cause, task.strategy, task.scope) == (Cause.CLOCK, Strategy.FULL, EVERYTHING)


def test_a_moved_clock_is_nothing_to_a_node_that_does_not_depend_on_it() -> None:
    assert plan_of(tell(("project shop", "built", f"ask --as-of {LATER}")), "pieces", OnClock.NOTHING) is None


def test_what_the_clock_touches_is_added_to_what_changed_inputs_touch() -> None:
    world = tell(("project shop", "built", "commit sale replace_keys 3 rows", f"ask --as-of {LATER}"))

    task = plan_of(world, "pieces", OnClock.SCOPE)

    assert task is not None
    assert (task.cause, task.strategy) == (Cause.NEW_INPUT, Strategy.RECOMPUTE)
    assert task.scope == Keys(origins=(Increment(dataset="sale", first=1, last=1, rows=3), MOVE))
    assert "it uses :as_of" in task.reason


def test_of_a_node_with_partitions_the_clock_touches_partitions() -> None:
    task = plan_of(tell(("project chain", "built", f"ask --as-of {LATER}")), "cold_blocks", OnClock.SCOPE)

    assert task is not None
    assert task.scope == Partitions(origins=(MOVE,))


def test_a_backfill_of_some_keys_takes_what_the_clock_touches_along() -> None:
    asked = f"ask backfill pieces --where \"shop_id = 'a'\" --as-of {LATER}"
    world = tell(("project shop", "built", "columns pieces shop_id:string", asked))

    task = plan_of(world, "pieces", OnClock.SCOPE)

    assert task is not None
    assert task.cause is Cause.PERSON
    assert isinstance(task.scope, Keys)
    assert task.scope.where is not None
    assert task.scope.origins == (MOVE,)
