"""Requests of a server: recorded before they are answered, executed once, ended with an outcome or error."""

from collections.abc import Mapping

from strandline.catalog import (
    add_request,
    claim_request,
    find_request,
    finish_request,
    forget_requests,
    give_back_requests,
    list_requests,
    renew_claims,
)
from strandline.model.errors import CallError, ConflictError, OutsideError, StrandlineError
from strandline.model.hashing import digest
from strandline.model.requests import RequestClaim, RequestRecord

from .clock import now
from .work import WORK, from_wire, to_wire
from .workspace import Workspace

_CLAIM_SECONDS = 60.0
"""A server that is alive renews its claims three times as often."""
RENEW_SECONDS = _CLAIM_SECONDS / 3
_MOST_TRIES = 3
"""A request that ends its server each time is not tried more often."""


def request_name(server: str) -> str:
    """The id of a new request. Ids of one server sort by time."""
    at = now()
    return f"{at:%Y%m%dT%H%M%S}.{at.microsecond:06}-{digest([server, at.isoformat()])[:6]}"


def record_request(
    workspace: Workspace, server: str, verb: str, request: object, actor: str
) -> RequestRecord:
    """Record a request before it is answered."""
    while True:
        try:
            return add_request(workspace.catalog, request_name(server), verb, to_wire(request), actor)
        except ConflictError:
            continue  # two in one microsecond


def take_request(workspace: Workspace, server: str) -> RequestClaim | None:
    """The next request to execute. One that has ended its server too often is ended instead."""
    while (claim := claim_request(workspace.catalog, server, _CLAIM_SECONDS)) is not None:
        if claim.token <= _MOST_TRIES:
            return claim
        gave_up = OutsideError(
            f"The server ended {_MOST_TRIES} times while it executed this request.",
            remedy="Look at the server's log for the reason, then ask again.",
            slug="request-ends-server",
        )
        end_with_error(workspace, claim, gave_up)
    return None


def read_request(claim: RequestClaim) -> object:
    """The request value. Refuses what an older or newer Strandline recorded and this one cannot read."""
    try:
        request = from_wire(claim.record.arguments)
        if claim.record.verb in WORK and isinstance(request, WORK[claim.record.verb].request):
            return request
        reason = f"`{claim.record.verb}` does not take it"
    except ValueError as error:
        reason = str(error)
    raise CallError(f"The request cannot be read: {reason}.", remedy="Ask again.", slug="request-unreadable")


def end_with_outcome(workspace: Workspace, claim: RequestClaim, outcome: object) -> RequestRecord | None:
    return finish_request(workspace.catalog, claim, result=to_wire(outcome))


def end_with_error(workspace: Workspace, claim: RequestClaim, error: StrandlineError) -> RequestRecord | None:
    return finish_request(workspace.catalog, claim, error=describe_error(error))


def describe_error(error: StrandlineError) -> Mapping[str, object]:
    """An error as requests and HTTP answers show it."""
    return {
        "slug": error.slug,
        "message": error.what,
        "remedy": error.remedy,
        "exit_code": error.exit_code,
    }


def give_back(workspace: Workspace, server: str) -> int:
    """Let requests wait again: those that this server was executing, which is ending."""
    return give_back_requests(workspace.catalog, server)


def give_back_of_the_dead(workspace: Workspace) -> int:
    """Let requests wait again whose server has died.

    On a lake with one writer, whoever holds the lake knows that all others are dead. Elsewhere their claims
    run out.
    """
    return give_back_requests(workspace.catalog) if workspace.lake.local is not None else 0


def renew(workspace: Workspace, server: str) -> None:
    renew_claims(workspace.catalog, server, _CLAIM_SECONDS)


def find(workspace: Workspace, name: str) -> RequestRecord | None:
    return find_request(workspace.catalog, name)


def list_newest(workspace: Workspace, limit: int, after: str | None = None) -> tuple[RequestRecord, ...]:
    """The newest first; `after` is the last one of the page before."""
    return list_requests(workspace.catalog, limit, after)


def forget(workspace: Workspace) -> int:
    """Remove requests that ended before `settings.keep`."""
    return forget_requests(workspace.catalog, workspace.project.settings.keep)
