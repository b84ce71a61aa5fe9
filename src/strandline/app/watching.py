"""What happens while work is done: callbacks here, and values where they cross to another process."""

from collections.abc import Callable
from dataclasses import dataclass

from strandline.model.plan import Plan, Task, TaskResult
from strandline.model.verified import VerifiedDataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Watcher:
    """The callbacks of work that is being done."""

    planned: Callable[[Plan], None] = lambda _: None
    started: Callable[[Task], None] = lambda _: None
    ended: Callable[[TaskResult], None] = lambda _: None
    waiting: Callable[[str], None] = lambda _: None
    """Called with the holder of the lake while a run waits for it."""
    verified: Callable[[VerifiedDataset], None] = lambda _: None
    stopping: Callable[[], bool] = lambda: False
    """Asked again and again. Once it is true, a run ends as by Ctrl-C."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waited:
    """The work waits for this. For people."""

    holder: str


Happening = Plan | Task | TaskResult | VerifiedDataset | Waited


def tell(happened: Callable[[Happening], None], stopping: Callable[[], bool]) -> Watcher:
    """A watcher that hands on everything as a value."""
    return Watcher(
        planned=happened,
        started=happened,
        ended=happened,
        waiting=lambda holder: happened(Waited(holder=holder)),
        verified=happened,
        stopping=stopping,
    )


def replay(happening: Happening, watcher: Watcher) -> None:
    """Call the callback of what happened elsewhere."""
    match happening:
        case Plan():
            watcher.planned(happening)
        case Task():
            watcher.started(happening)
        case TaskResult():
            watcher.ended(happening)
        case VerifiedDataset():
            watcher.verified(happening)
        case Waited(holder=holder):
            watcher.waiting(holder)
