"""What all routes share: the project that is in force, and the parts of the server."""

from dataclasses import dataclass
from typing import Protocol

from strandline.app.workspace import Workspace
from strandline.model.requests import RequestRecord


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


@dataclass(slots=True, kw_only=True)
class Served:
    """Mutable in one place only: the dispatcher sets `workspace` when a changed project file was read."""

    workspace: Workspace
    work: Work
    project_error: str = ""
    """Why the project file as it is now is not in force. Empty if it is."""
