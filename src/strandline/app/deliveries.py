"""`deliveries`: what is owed, sent and failed; send what is due, owe again, enable an endpoint.

Starts no Spark. Secrets are read only to send.
"""

import asyncio
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from strandline.catalog import (
    DeliveryFilter,
    audit,
    cancel_deliveries,
    count_deliveries,
    enable_endpoint,
    find_next_due,
    has_delivery,
    list_named,
    list_waiting,
    read_deliveries,
    read_endpoint_states,
    replay_deliveries,
    replay_delivery,
)
from strandline.dispatch.deliver import find_sendable, make_sender, send_due
from strandline.dispatch.lane import Pace
from strandline.dispatch.lane import Sent as Sent  # re-exported: `serve` counts what was sent
from strandline.dispatch.outbox import Filled, fill_outbox
from strandline.dispatch.replay import RemovedRange, owe_removed, owe_removed_one
from strandline.model.deliveries import DeliveryRecord, DeliveryStatus, EndpointState
from strandline.model.errors import CallError, StrandlineError
from strandline.model.report import suggest

from .clock import now
from .workspace import Workspace

_PART = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveriesRequest:
    endpoint: str | None = None
    trigger: str | None = None
    dead: bool = False
    send: bool = False
    enable: bool = False
    replay: str | None = None
    """The id of one delivery to owe again."""
    since: datetime | None = None
    """Owe again all that match, ended, and were recorded from then on."""
    until: datetime | None = None
    limit: int | None = None
    """At most this many are listed. None for all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveriesOutcome:
    counts: Mapping[DeliveryStatus, int]
    """Of the deliveries of the endpoint, trigger and time that were named."""
    matching: int
    """How many there are to list."""
    deliveries: tuple[DeliveryRecord, ...]
    """The newest first."""
    troubled: tuple[EndpointState, ...]
    """The endpoints that are disabled, or tried once a minute."""
    filled: Filled
    cancelled: int
    enabled: int | None = None
    """How many deliveries are no longer held."""
    replayed: int | None = None
    sent: Sent | None = None
    refused: tuple[StrandlineError, ...] = ()
    """Why nothing could be sent to an endpoint, such as a secret that is not set."""

    @property
    def exit_code(self) -> int:
        if self.refused:
            return max(error.exit_code for error in self.refused)
        if self.filled.failures:
            return 1
        if self.sent is None:
            return 0
        held = any(state.disabled for state in self.troubled) and DeliveryStatus.HELD in self.counts
        return 1 if held or self.sent.total("failed") or self.sent.total("dead") else 0


def show_deliveries(
    workspace: Workspace, request: DeliveriesRequest, environ: Mapping[str, str] | None = None
) -> DeliveriesOutcome:
    """Bring the outbox up to date, do what is asked for, then list."""
    project, catalog = workspace.project, workspace.catalog
    _check(workspace, request)
    filled = fill_outbox(project, catalog, workspace.lake, now)
    cancelled = cancel_deliveries(catalog, list(project.endpoints))
    enabled = _enable(workspace, request) if request.enable else None
    replayed = _replay(workspace, request)
    sent, refused = _send(workspace, request, environ) if request.send else (None, ())
    # What was dead and is owed again is not dead any more.
    listed = _filter(request, every_status=request.since is not None)
    return DeliveriesOutcome(
        counts=count_deliveries(catalog, _filter(request, every_status=True)),
        matching=sum(count_deliveries(catalog, listed).values()),
        deliveries=_read(workspace, request, listed),
        troubled=_find_troubled(workspace, request),
        filled=filled,
        cancelled=cancelled,
        enabled=enabled,
        replayed=replayed,
        sent=sent,
        refused=refused,
    )


def _check(workspace: Workspace, request: DeliveriesRequest) -> None:
    """Refuse a call that means nothing. Names may be those of deliveries whose endpoint is gone."""
    project = workspace.project
    endpoints, triggers = list_named(workspace.catalog)
    endpoints |= frozenset(project.endpoints)
    triggers |= {node.name for node in project.nodes if node.traits.told_to is not None}
    if request.endpoint is not None and request.endpoint not in endpoints:
        raise CallError(
            f"There is no endpoint `{request.endpoint}`.",
            remedy=suggest(request.endpoint, endpoints, "endpoints"),
            slug="unknown-endpoint",
        )
    if request.trigger is not None and request.trigger not in triggers:
        raise CallError(
            f"There is no trigger `{request.trigger}`.",
            remedy=suggest(request.trigger, triggers, "triggers"),
            slug="unknown-trigger",
        )
    if request.until is not None and request.since is None:
        raise _wrong("`--until` ends a range that `--since` begins", "Add `--since T`.")
    if request.enable and request.endpoint is None:
        raise _wrong("`--enable` needs to know which endpoint", "Add `--endpoint NAME`.")
    if request.send and request.trigger is not None:
        raise _wrong("`--send` sends all that is due, whichever trigger it is of", "Leave out `--trigger`.")


def _wrong(what: str, remedy: str) -> CallError:
    return CallError(f"{what}.", remedy=remedy, slug="call")


def _enable(workspace: Workspace, request: DeliveriesRequest) -> int:
    assert request.endpoint is not None
    audit(workspace.catalog, "enable", {"endpoint": request.endpoint})
    return enable_endpoint(workspace.catalog, request.endpoint)


def _replay(workspace: Workspace, request: DeliveriesRequest) -> int | None:
    """Owe again what was asked for. None if nothing was."""
    catalog, declared = workspace.catalog, list(workspace.project.endpoints)
    if request.replay is not None:
        owe_one_again(workspace, request.replay)
        audit(catalog, "replay", {"id": request.replay})
        return 1
    if request.since is None:
        return None
    replayed = replay_deliveries(catalog, _filter(request), declared)
    if not request.dead:
        replayed += owe_removed_since(
            workspace, request.since, request.until, trigger=request.trigger, endpoint=request.endpoint
        )
    audit(
        catalog,
        "replay",
        {
            "since": request.since.isoformat(),
            "until": request.until.isoformat() if request.until else "",
            "endpoint": request.endpoint or "",
            "trigger": request.trigger or "",
            "dead": request.dead,
            "deliveries": replayed,
        },
    )
    return replayed


def owe_one_again(workspace: Workspace, delivery_id: str) -> None:
    """Owe an ended delivery once more. `maintain` may have removed it: then it is made from its event."""
    kept = has_delivery(workspace.catalog, delivery_id)
    if kept or not owe_removed_one(workspace.project, workspace.catalog, workspace.lake, delivery_id):
        replay_delivery(workspace.catalog, delivery_id, list(workspace.project.endpoints))


def owe_removed_since(
    workspace: Workspace,
    since: datetime,
    until: datetime | None,
    *,
    trigger: str | None,
    endpoint: str | None,
) -> int:
    """Owe once more what `maintain` has removed, whether it was dead or delivered. Returns how many."""
    kept_since = now() - workspace.project.settings.keep
    wanted = RemovedRange(
        since=since,
        until=kept_since if until is None else min(until, kept_since),
        trigger=trigger,
        endpoint=endpoint,
    )
    return owe_removed(workspace.project, workspace.catalog, workspace.lake, wanted)


def _send(
    workspace: Workspace, request: DeliveriesRequest, environ: Mapping[str, str] | None
) -> tuple[Sent, tuple[StrandlineError, ...]]:
    """Send what is due. An endpoint for which nothing waits needs no secret."""
    variables = os.environ if environ is None else environ
    waiting = list_waiting(workspace.catalog)
    declared = {
        name: endpoint
        for name, endpoint in workspace.project.endpoints.items()
        if name in waiting and request.endpoint in (None, name)
    }
    sendable, refused = find_sendable(declared, variables)
    holder = f"{socket.gethostname()}:{os.getpid()}"
    make = partial(make_sender, environ=variables)
    sent = asyncio.run(send_due(workspace.catalog, sendable, holder, make, Pace(now=now)))
    return sent, refused


def _filter(request: DeliveriesRequest, *, every_status: bool = False) -> DeliveryFilter:
    return DeliveryFilter(
        endpoint=request.endpoint,
        trigger=request.trigger,
        status=DeliveryStatus.DEAD if request.dead and not every_status else None,
        since=request.since,
        until=request.until,
    )


def _read(
    workspace: Workspace, request: DeliveriesRequest, wanted: DeliveryFilter
) -> tuple[DeliveryRecord, ...]:
    found: list[DeliveryRecord] = []
    after: int | None = None
    while request.limit is None or len(found) < request.limit:
        size = _PART if request.limit is None else min(_PART, request.limit - len(found))
        part = read_deliveries(workspace.catalog, wanted, size, after)
        found += [record for _, record in part]
        if len(part) < size:
            break
        after = part[-1][0]
    return tuple(found)


def _find_troubled(workspace: Workspace, request: DeliveriesRequest) -> tuple[EndpointState, ...]:
    states = read_endpoint_states(workspace.catalog)
    return tuple(
        state
        for name, state in sorted(states.items())
        if name in workspace.project.endpoints
        and request.endpoint in (None, name)
        and (state.disabled or state.is_paused)
    )


def fill(workspace: Workspace) -> Filled:
    """Owe what the triggers have recorded, and cancel what is owed to endpoints that are gone."""
    filled = fill_outbox(workspace.project, workspace.catalog, workspace.lake, now)
    cancel_deliveries(workspace.catalog, list(workspace.project.endpoints))
    return filled


def find_due(workspace: Workspace, endpoint: str) -> datetime | None:
    """When the next delivery of an endpoint is due. None if none waits."""
    return find_next_due(workspace.catalog, [endpoint])


async def send_to(
    workspace: Workspace, endpoint: str, holder: str, environ: Mapping[str, str]
) -> tuple[Sent, tuple[StrandlineError, ...]]:
    """Send what is due to one endpoint. Also why nothing could be sent, such as a secret that is not set."""
    declared = {endpoint: workspace.project.endpoints[endpoint]}
    sendable, refused = find_sendable(declared, environ)
    make = partial(make_sender, environ=environ)
    return await send_due(workspace.catalog, sendable, holder, make, Pace(now=now)), refused
