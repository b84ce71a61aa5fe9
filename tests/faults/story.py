"""Stories of everything that may happen to the data of a world, in steps.

A step is what arrives or is asked for, and the process that deals with it. Each kind of node has its part.
The short stories are for Spark, where each process takes seconds.
"""

import pytest

from strandline.app.maintain import MaintainOutcome
from strandline.app.planning import RunRequest
from strandline.app.run import RunOutcome

from .kinds import DESK, LEDGER, REGISTER, ROOMS
from .kinds.kind import Act, Kind, Step
from .world import World


def _tell_all(kinds: tuple[Kind, ...], where: str = "", *, goes_back: bool = False) -> tuple[Step, ...]:
    """`goes_back`: a clock that a person sets back is set forward again by the next run."""
    return (
        Step(name=f"what was there before{where}"),
        *(step for kind in kinds for step in kind.story),
        Step(name=f"maintain{where}", act=lambda w, fail: w.maintain(fail)),
        *(step for kind in kinds for step in kind.after_cleaning),
        Step(
            name=f"a clock that went back{where}",
            act=lambda w, fail: w.run(RunRequest(as_of=w.fate.clock.replace(year=2001)), fail),
            only_long=True,
            leaves_work=goes_back,
        ),
    )


STORY = _tell_all(REGISTER)
LEDGER_STORY = _tell_all(LEDGER, " in the ledger")
ROOMS_STORY = _tell_all(ROOMS, " in the rooms", goes_back=True)
DESK_STORY = _tell_all(DESK, " on the desk")


def _tell_together(*steps: Step) -> Step:
    """What comes in several steps, all at once. The last one's process deals with it."""

    def before(world: World) -> None:
        for step in steps:
            step.before(world)

    many_keys = any(step.many_keys for step in steps)
    act = _act_on_many_keys(steps[-1].act) if many_keys else steps[-1].act
    exit_code = max(step.exit_code for step in steps)
    return Step(name=steps[0].name, before=before, act=act, exit_code=exit_code)


def _act_on_many_keys(act: Act) -> Act:
    """A key that vanishes among many is buried, and purged later."""

    def act_on_many(world: World, fail: str) -> RunOutcome | MaintainOutcome | None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("STRANDLINE_THRESHOLDS", "named_keys=0")
            return act(world, fail)

    return act_on_many


def _shorten(story: tuple[Step, ...]) -> tuple[Step, ...]:
    return tuple(
        _tell_together(step, *(other for other in story if other.told_with == step.name))
        for step in story
        if not step.only_long and not step.told_with
    )


SHORT_STORY = _shorten(STORY)
SHORT_LEDGER_STORY = _shorten(LEDGER_STORY)
SHORT_ROOMS_STORY = _shorten(ROOMS_STORY)
SHORT_DESK_STORY = _shorten(DESK_STORY)
