"""What all routes share: the project that is in force, and the parts of the server."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Protocol

from strandline.app.watching import Happening
from strandline.app.workspace import Workspace
from strandline.model.dispatching import DispatcherState
from strandline.model.errors import StrandlineError
from strandline.model.requests import RequestRecord

from .live import Live
from .measures import Measures
from .receipts import Receipts


class Work(Protocol):
    """Where routes hand in work. The dispatcher is one."""

    def submit(self, verb: str, request: object, actor: str) -> RequestRecord:
        """Record a request, wake the dispatcher and return at once. The request is executed once."""
        ...

    async def wait(self, request: str, seconds: float) -> RequestRecord:
        """The request as it is when it has ended, or when the time is up."""
        ...

    def wake(self) -> None:
        """There is something new to look for, such as received facts."""
        ...

    def state(self) -> DispatcherState:
        """What is being done, and what is put off."""
        ...


class Dispatching(Work, Protocol):
    """What the parts of the server beyond the routes use."""

    def watch(self, request: str) -> AsyncIterator[Happening]:
        """What happens while a request is executed, from its beginning to its end."""
        ...

    def find_end(self, request: str) -> tuple[object, StrandlineError | None]:
        """The outcome and the error of a request that has been watched to its end."""
        ...

    def abandon(self, request: str) -> None:
        """Nobody waits for this any more. What changes nothing and has not begun is left out."""
        ...


@dataclass(slots=True, kw_only=True)
class Served:
    """Mutable in one place only: the dispatcher sets `workspace` when a changed project file was read."""

    workspace: Workspace
    work: Work
    project_error: str = ""
    """Why the project file as it is now is not in force. Empty if it is."""
    machine_key: str = field(default="", repr=False)
    """The access key that the holder file gives to the command line of this machine. Empty: there is none."""
    address: str = ""
    """Host and port by which this machine reaches the server. Empty: nobody does."""
    unsendable: dict[str, StrandlineError] = field(default_factory=dict)
    """By endpoint: why nothing can be sent to it, such as a secret that is not set. What is owed waits."""
    measures: Measures = field(default_factory=Measures)
    owed: Callable[[], None] = lambda: None
    """Called when a route has deliveries owed again, so that they are sent at once."""
    receipts: Receipts = field(default_factory=Receipts)
    live: Live = field(default_factory=Live)
    """GraphQL, and who follows changes. The dispatcher wakes it when something was published."""
    missing: str = "The dispatcher has not started yet."
    """What is missing until the server is ready, for `/readyz`. Empty once it is."""
