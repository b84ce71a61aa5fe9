"""What people do with deliveries: look at them, replay them, cancel those of endpoints that are gone."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, case, delete, func, select, update

from strandline.model.deliveries import ENDED, DeliveryRecord, DeliveryStatus
from strandline.model.errors import CallError

from .handle import Catalog
from .sqltypes import database_now
from .tables import deliveries, delivery_attempts, endpoints

_ENDED = tuple(map(str, ENDED))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryFilter:
    """All that is set must hold. A delivery was recorded at `since` or later, and before `until`."""

    endpoint: str | None = None
    trigger: str | None = None
    status: DeliveryStatus | None = None
    since: datetime | None = None
    until: datetime | None = None


def count_deliveries(catalog: Catalog, wanted: DeliveryFilter) -> dict[DeliveryStatus, int]:
    with catalog.reading() as connection:
        counts = (
            select(deliveries.c.status, func.count()).where(_matches(wanted)).group_by(deliveries.c.status)
        )
        found = {DeliveryStatus(status): count for status, count in connection.execute(counts)}
    return {status: found[status] for status in DeliveryStatus if status in found}


def count_by_endpoint(catalog: Catalog) -> dict[tuple[str, DeliveryStatus], int]:
    """By endpoint and status, also of endpoints that are no longer declared."""
    columns = (deliveries.c.endpoint, deliveries.c.status)
    counts = select(*columns, func.count()).where(deliveries.c.number > 0).group_by(*columns)
    with catalog.reading() as connection:
        return {
            (endpoint, DeliveryStatus(status)): count
            for endpoint, status, count in connection.execute(counts)
        }


def find_oldest_waiting(catalog: Catalog) -> dict[str, datetime]:
    """By endpoint: when the oldest delivery was recorded that is pending or being sent."""
    waiting = [str(DeliveryStatus.PENDING), str(DeliveryStatus.SENDING)]
    oldest = (
        select(deliveries.c.endpoint, func.min(deliveries.c.created_at))
        .where(deliveries.c.status.in_(waiting))
        .group_by(deliveries.c.endpoint)
    )
    with catalog.reading() as connection:
        return {row[0]: row[1] for row in connection.execute(oldest)}


def find_delivery(catalog: Catalog, delivery_id: str) -> DeliveryRecord | None:
    with catalog.reading() as connection:
        row = connection.execute(select(deliveries).where(deliveries.c.id == delivery_id)).first()
    return _record(row) if row else None


def read_deliveries(
    catalog: Catalog, wanted: DeliveryFilter, limit: int, after: int | None = None
) -> tuple[tuple[int, DeliveryRecord], ...]:
    """The newest first, each with its number. `after` is the last number of the part before."""
    statement = select(deliveries).where(_matches(wanted)).order_by(deliveries.c.number.desc()).limit(limit)
    if after is not None:
        statement = statement.where(deliveries.c.number < after)
    with catalog.reading() as connection:
        return tuple((row.number, _record(row)) for row in connection.execute(statement))


def read_attempts(catalog: Catalog, delivery_id: str) -> tuple[dict[str, object], ...]:
    """The attempts of one delivery, oldest first."""
    columns = ("at", "seconds", "status_code", "error")
    statement = (
        select(*(delivery_attempts.c[name] for name in columns))
        .join(deliveries, deliveries.c.number == delivery_attempts.c.delivery)
        .where(deliveries.c.id == delivery_id)
        .order_by(delivery_attempts.c.id)
    )
    with catalog.reading() as connection:
        return tuple(dict(row) for row in connection.execute(statement).mappings())


def has_delivery(catalog: Catalog, delivery_id: str) -> bool:
    with catalog.reading() as connection:
        found = connection.execute(select(deliveries.c.number).where(deliveries.c.id == delivery_id))
        return found.first() is not None


def replay_delivery(catalog: Catalog, delivery_id: str, declared: Collection[str]) -> None:
    """Owe one delivery again, with the same id and the same bytes."""
    this = deliveries.c.id == delivery_id
    if _replay(catalog, and_(this, deliveries.c.endpoint.in_(list(declared)))):
        return
    with catalog.reading() as connection:
        row = connection.execute(select(deliveries.c.status, deliveries.c.endpoint).where(this)).first()
    if row is None:
        raise CallError(
            f"There is no delivery `{delivery_id}`.",
            remedy="`strandline deliveries` lists them.",
            slug="unknown-delivery",
        )
    if row.endpoint not in declared:
        raise CallError(
            f"The endpoint `{row.endpoint}` of the delivery `{delivery_id}` is no longer declared.",
            remedy=f"Declare `{row.endpoint}` under `endpoints` again.",
            slug="endpoint-gone",
        )
    raise CallError(
        f"The delivery `{delivery_id}` is {row.status}: it has not ended, so it is sent anyway.",
        remedy=f"Wait for it. If it is held: `strandline deliveries --endpoint {row.endpoint} --enable`.",
        slug="delivery-not-ended",
    )


def replay_deliveries(catalog: Catalog, wanted: DeliveryFilter, declared: Collection[str]) -> int:
    """Owe every matching delivery that ended again, at endpoints that are declared. Returns how many."""
    return _replay(catalog, and_(_matches(wanted), deliveries.c.endpoint.in_(list(declared))))


def cancel_deliveries(catalog: Catalog, declared: Collection[str]) -> int:
    """Cancel what waits for endpoints that are no longer declared. Returns how many."""
    waiting = (DeliveryStatus.PENDING, DeliveryStatus.HELD, DeliveryStatus.SENDING)
    gone = and_(
        deliveries.c.endpoint.not_in(list(declared)), deliveries.c.status.in_([str(one) for one in waiting])
    )
    with catalog.writing() as connection:
        return connection.execute(
            update(deliveries)
            .where(gone)
            .values(
                status=str(DeliveryStatus.CANCELLED),
                claim_token=deliveries.c.claim_token + 1,
                claimed_until=None,
                next_at=None,
                ended_at=database_now(),
            )
        ).rowcount


def forget_deliveries(catalog: Catalog, keep: timedelta) -> int:
    """Remove deliveries that ended longer ago than `keep`, with their attempts. Returns how many."""
    with catalog.writing() as connection:
        return connection.execute(delete(deliveries).where(_ended_before(keep))).rowcount


def count_forgettable(catalog: Catalog, keep: timedelta) -> int:
    """How many deliveries `forget_deliveries` would remove."""
    counted = select(func.count()).select_from(deliveries).where(_ended_before(keep))
    with catalog.reading() as connection:
        return connection.execute(counted).scalar_one()


def list_waiting(catalog: Catalog) -> frozenset[str]:
    """The endpoints for which deliveries are pending or being sent."""
    waiting = [str(DeliveryStatus.PENDING), str(DeliveryStatus.SENDING)]
    named = select(deliveries.c.endpoint).where(deliveries.c.status.in_(waiting)).distinct()
    with catalog.reading() as connection:
        return frozenset(connection.execute(named).scalars())


def list_named(catalog: Catalog) -> tuple[frozenset[str], frozenset[str]]:
    """The endpoints and the triggers of all deliveries that are kept, also of those no longer declared."""
    with catalog.reading() as connection:
        pairs = connection.execute(select(deliveries.c.endpoint, deliveries.c.trigger_name).distinct()).all()
    return frozenset(row[0] for row in pairs), frozenset(row[1] for row in pairs)


def _ended_before(keep: timedelta) -> ColumnElement[bool]:
    ended = deliveries.c.status.in_(_ENDED)
    return and_(ended, deliveries.c.ended_at < database_now(-keep.total_seconds()))


def _replay(catalog: Catalog, which: ColumnElement[bool]) -> int:
    """What is owed to a disabled endpoint is held."""
    disabled = select(endpoints.c.endpoint).where(endpoints.c.disabled != "")
    with catalog.writing() as connection:
        return connection.execute(
            update(deliveries)
            .where(which, deliveries.c.status.in_(_ENDED))
            .values(
                status=case(
                    (deliveries.c.endpoint.in_(disabled), str(DeliveryStatus.HELD)),
                    else_=str(DeliveryStatus.PENDING),
                ),
                attempts=0,
                next_at=database_now(),
                ended_at=None,
                status_code=None,
                error="",
                claim_token=deliveries.c.claim_token + 1,
            )
        ).rowcount


def _matches(wanted: DeliveryFilter) -> ColumnElement[bool]:
    conditions: list[ColumnElement[bool]] = [deliveries.c.number > 0]
    if wanted.endpoint is not None:
        conditions.append(deliveries.c.endpoint == wanted.endpoint)
    if wanted.trigger is not None:
        conditions.append(deliveries.c.trigger_name == wanted.trigger)
    if wanted.status is not None:
        conditions.append(deliveries.c.status == str(wanted.status))
    if wanted.since is not None:
        conditions.append(deliveries.c.created_at >= wanted.since)
    if wanted.until is not None:
        conditions.append(deliveries.c.created_at < wanted.until)
    return and_(*conditions)


def _record(row: Row[Any]) -> DeliveryRecord:
    return DeliveryRecord(
        id=row.id,
        event_id=row.event_id,
        event_type=row.event_type,
        trigger=row.trigger_name,
        endpoint=row.endpoint,
        key=row.key,
        source_timestamp=row.source_timestamp,
        status=DeliveryStatus(row.status),
        attempts=row.attempts,
        next_at=row.next_at,
        created_at=row.created_at,
        ended_at=row.ended_at,
        status_code=row.status_code,
        error=row.error,
    )
