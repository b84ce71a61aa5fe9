"""One story of everything that may happen to the data, in steps.

A step is what arrives or is asked for, and the process that deals with it. Each kind of node has its part.
The short story is for Spark, where each process takes seconds.
"""

import pytest

from strandline.app.maintain import MaintainOutcome
from strandline.app.planning import RunRequest
from strandline.app.run import RunOutcome

from .kinds import KINDS
from .kinds.kind import Act, Step
from .world import World

STORY = (
    Step(name="what was there before"),
    *(step for kind in KINDS for step in kind.story),
    Step(name="maintain", act=lambda w, fail: w.maintain(fail)),
    *(step for kind in KINDS for step in kind.after_cleaning),
    Step(
        name="a clock that went back",
        act=lambda w, fail: w.run(RunRequest(as_of=w.fate.clock.replace(year=2001)), fail),
        only_long=True,
    ),
)


def _tell_together(*steps: Step) -> Step:
    """What comes in several steps, all at once. The last one's process deals with it."""

    def before(world: World) -> None:
        for step in steps:
            step.before(world)

    many_keys = any(step.many_keys for step in steps)
    act = _act_on_many_keys(steps[-1].act) if many_keys else steps[-1].act
    return Step(name=steps[0].name, before=before, act=act)


def _act_on_many_keys(act: Act) -> Act:
    """A key that vanishes among many is buried, and purged later."""

    def act_on_many(world: World, fail: str) -> RunOutcome | MaintainOutcome | None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("STRANDLINE_THRESHOLDS", "named_keys=0")
            return act(world, fail)

    return act_on_many


SHORT_STORY = tuple(
    _tell_together(step, *(other for other in STORY if other.told_with == step.name))
    for step in STORY
    if not step.only_long and not step.told_with
)
