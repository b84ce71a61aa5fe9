"""Deliveries and endpoints one by one: look at them, owe again, enable, disable, test. Starts no Spark.

Each change is in the audit log, with who made it.
"""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from strandline.catalog import (
    DeliveryFilter,
    audit,
    count_by_endpoint,
    count_deliveries,
    disable_endpoint,
    enable_endpoint,
    find_delivery,
    read_attempts,
    read_deliveries,
    read_endpoint_states,
    replay_deliveries,
)
from strandline.dispatch.deliver import make_sender
from strandline.model.deliveries import DeliveryRecord, DeliveryStatus, EndpointState, Outcome
from strandline.model.endpoints import Endpoint
from strandline.model.errors import CallError
from strandline.model.hashing import digest
from strandline.model.json_values import instant_text, write_json
from strandline.model.report import suggest

from .clock import now
from .deliveries import owe_one_again, owe_removed_since
from .workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which deliveries: all that is set must hold. `since` and `until` are about when they were recorded."""

    endpoint: str | None = None
    trigger: str | None = None
    status: DeliveryStatus | None = None
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A part of the list of deliveries, newest first."""

    deliveries: tuple[DeliveryRecord, ...]
    counts: Mapping[DeliveryStatus, int]
    next: int | None
    """Where the next part begins. None at the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryDetail:
    record: DeliveryRecord
    attempts: tuple[Mapping[str, object], ...]
    """Oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointStatus:
    name: str
    host: str
    """Scheme and host of its URL. The rest may be a secret."""
    ordering: str
    state: EndpointState
    counts: Mapping[str, int]
    """Of its deliveries, by status."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerStatus:
    name: str
    inputs: tuple[str, ...]
    endpoints: tuple[str, ...]
    counts: Mapping[DeliveryStatus, int]
    """Of its deliveries, by status."""


def list_deliveries(workspace: Workspace, wanted: Wanted, limit: int, after: int | None) -> Page:
    _check(workspace, wanted)
    chosen = _filter(wanted)
    part = read_deliveries(workspace.catalog, chosen, limit + 1, after)
    return Page(
        deliveries=tuple(record for _, record in part[:limit]),
        counts=count_deliveries(workspace.catalog, chosen),
        next=part[limit - 1][0] if len(part) > limit else None,
    )


def get_delivery(workspace: Workspace, delivery_id: str) -> DeliveryDetail:
    record = find_delivery(workspace.catalog, delivery_id)
    if record is None:
        raise CallError(
            f"There is no delivery `{delivery_id}`.",
            remedy="`strandline deliveries` lists them.",
            slug="unknown-delivery",
        )
    return DeliveryDetail(record=record, attempts=read_attempts(workspace.catalog, delivery_id))


def replay_one(workspace: Workspace, delivery_id: str, actor: str) -> DeliveryDetail:
    """Owe an ended delivery once more, with the same id and bytes. `maintain` may have removed it."""
    owe_one_again(workspace, delivery_id)
    audit(workspace.catalog, "replay", {"id": delivery_id, "actor": actor})
    return get_delivery(workspace, delivery_id)


def replay_range(workspace: Workspace, wanted: Wanted, actor: str) -> int:
    """Owe every ended delivery that matches once more. Returns how many.

    Those that `maintain` has removed are included, unless a status is asked for: theirs is not known.
    """
    _check(workspace, wanted)
    replayed = replay_deliveries(workspace.catalog, _filter(wanted), list(workspace.project.endpoints))
    if wanted.since is not None and wanted.status is None:
        replayed += owe_removed_since(
            workspace, wanted.since, wanted.until, trigger=wanted.trigger, endpoint=wanted.endpoint
        )
    audit(
        workspace.catalog,
        "replay",
        {
            "endpoint": wanted.endpoint or "",
            "trigger": wanted.trigger or "",
            "status": str(wanted.status or ""),
            "since": wanted.since.isoformat() if wanted.since else "",
            "until": wanted.until.isoformat() if wanted.until else "",
            "deliveries": replayed,
            "actor": actor,
        },
    )
    return replayed


def list_endpoints(workspace: Workspace) -> tuple[EndpointStatus, ...]:
    states, counts = read_endpoint_states(workspace.catalog), count_by_endpoint(workspace.catalog)
    return tuple(
        EndpointStatus(
            name=name,
            host=_host(endpoint),
            ordering=str(endpoint.ordering),
            state=states.get(name, EndpointState(endpoint=name)),
            counts={str(status): count for (of, status), count in counts.items() if of == name},
        )
        for name, endpoint in sorted(workspace.project.endpoints.items())
    )


def list_triggers(workspace: Workspace) -> tuple[TriggerStatus, ...]:
    return tuple(
        TriggerStatus(
            name=node.name,
            inputs=tuple(i.dataset for i in node.inputs),
            endpoints=tuple(node.traits.told_to),
            counts=count_deliveries(workspace.catalog, DeliveryFilter(trigger=node.name)),
        )
        for node in workspace.project.nodes
        if node.traits.told_to is not None
    )


def enable(workspace: Workspace, name: str, actor: str) -> int:
    """Send to an endpoint again. Returns how many deliveries are no longer held."""
    get_endpoint(workspace, name)
    audit(workspace.catalog, "enable", {"endpoint": name, "actor": actor})
    return enable_endpoint(workspace.catalog, name)


def disable(workspace: Workspace, name: str, reason: str, actor: str) -> None:
    """Send nothing more to an endpoint until it is enabled."""
    get_endpoint(workspace, name)
    audit(workspace.catalog, "disable", {"endpoint": name, "reason": reason, "actor": actor})
    disable_endpoint(workspace.catalog, name, reason or f"Disabled by {actor}.")


def send_test(
    workspace: Workspace, name: str, actor: str, environ: Mapping[str, str] | None = None
) -> Outcome:
    """Send one signed message of the type TEST, which is no delivery and is not tried again."""
    endpoint = get_endpoint(workspace, name)
    sender = make_sender(endpoint, os.environ if environ is None else environ)
    audit(workspace.catalog, "test", {"endpoint": name, "actor": actor})
    at = now()
    message_id = digest(["test", name, at.isoformat()])
    body = write_json(
        {"event_id": message_id, "event_type": "TEST", "endpoint": name, "timestamp": instant_text(at)}
    )

    async def send() -> Outcome:
        async with sender:
            return await sender.send(message_id, body.encode(), at)

    return asyncio.run(send())


def get_endpoint(workspace: Workspace, name: str) -> Endpoint:
    endpoints = workspace.project.endpoints
    if name not in endpoints:
        raise CallError(
            f"There is no endpoint `{name}`.",
            remedy=suggest(name, endpoints, "endpoints"),
            slug="unknown-endpoint",
        )
    return endpoints[name]


def get_trigger(workspace: Workspace, name: str) -> TriggerStatus:
    triggers = {trigger.name: trigger for trigger in list_triggers(workspace)}
    if name not in triggers:
        raise CallError(
            f"There is no trigger `{name}`.",
            remedy=suggest(name, triggers, "triggers"),
            slug="unknown-trigger",
        )
    return triggers[name]


def _check(workspace: Workspace, wanted: Wanted) -> None:
    if wanted.endpoint is not None:
        get_endpoint(workspace, wanted.endpoint)
    if wanted.trigger is not None:
        get_trigger(workspace, wanted.trigger)


def _filter(wanted: Wanted) -> DeliveryFilter:
    return DeliveryFilter(
        endpoint=wanted.endpoint,
        trigger=wanted.trigger,
        status=wanted.status,
        since=wanted.since,
        until=wanted.until,
    )


def _host(endpoint: Endpoint) -> str:
    parts = urlsplit(endpoint.url)
    return f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}"
