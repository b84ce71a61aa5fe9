"""What the fault suite has to know of a kind of node."""

from collections.abc import Callable
from dataclasses import dataclass

from strandline.lake.work import Prepared
from tests.faults.plain_work import Work


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    name: str
    """As the engine names it."""
    prepare: Callable[[Work], Prepared]
    """The plain worker: what a task will write, in plain Python over rows."""
