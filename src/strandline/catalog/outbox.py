"""The outbox: events become deliveries, senders claim them and record what came of each attempt.

Every state change names the claim's token and is refused if another sender has the delivery by now. All times
are those of the database's clock.
"""

import hashlib
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, func, insert, or_, select, update

from strandline.model.deliveries import (
    DISABLED_AFTER,
    ENDED,
    FAILING_DELIVERIES,
    PROBE_PAUSE,
    Attempt,
    Claim,
    DeliveryStatus,
    NewDelivery,
    Outcome,
)
from strandline.model.endpoints import Ordering
from strandline.model.errors import ConflictError

from .endpoint_states import disable, is_disabled, lock_endpoint, note_failure, note_success
from .handle import Catalog, insert_into
from .sqltypes import database_now
from .tables import deliveries, delivery_attempts, delivery_cursors, endpoints

_WAITING = (str(DeliveryStatus.PENDING), str(DeliveryStatus.SENDING))
_BATCH = 500
_DIGITS = 32
"""Of the digest of a key, as the migration that brought it has them."""


def find_delivery_cursor(catalog: Catalog, trigger: str) -> tuple[str, int] | None:
    """How far the events of a trigger have become deliveries: (table id, table version)."""
    with catalog.reading() as connection:
        row = connection.execute(
            select(delivery_cursors).where(delivery_cursors.c.trigger_name == trigger)
        ).first()
    return (row.table_id, row.table_version) if row else None


def enqueue_deliveries(
    catalog: Catalog,
    trigger: str,
    before: tuple[str, int] | None,
    after: tuple[str, int],
    owed: Collection[NewDelivery],
) -> int:
    """Record what is owed and move the cursor, in one transaction. Returns how many deliveries are new.

    A delivery that was recorded before stays as it is. Raises ConflictError if another moved the cursor.
    """
    with catalog.writing() as connection:
        _move_cursor(connection, trigger, before, after)
        rows = [
            {
                "id": one.id,
                "event_id": one.event_id,
                "event_type": one.event_type,
                "trigger_name": one.trigger,
                "endpoint": one.endpoint,
                "key": one.key,
                "key_digest": hashlib.sha256(one.key.encode()).hexdigest()[:_DIGITS],
                "source_timestamp": one.source_timestamp,
                "body": one.body,
            }
            for one in owed
        ]
        names = sorted({one.endpoint for one in owed})  # locked in this order by everybody
        held = {name for name in names if is_disabled(connection, name)}
        return sum(
            _insert(connection, rows[start : start + _BATCH], held) for start in range(0, len(rows), _BATCH)
        )


def claim_deliveries(
    catalog: Catalog, endpoint: str, holder: str, seconds: float, limit: int, ordering: Ordering
) -> tuple[Claim, ...]:
    """Take up to `limit` deliveries of an endpoint that are due, oldest first, for some seconds.

    With `per_key`, a delivery waits while an earlier one of its key has not ended. While an endpoint fails,
    one delivery a minute is given out.
    """
    with catalog.writing() as connection:
        state = lock_endpoint(connection, endpoint)
        if state.disabled:
            _hold_what_waits(connection, endpoint)
            return ()
        if state.is_paused:
            limit = min(limit, 1) if _may_probe(connection, endpoint) else 0
        numbers = _find_due(connection, endpoint, limit, ordering)
        if not numbers:
            return ()
        taken = connection.execute(
            update(deliveries)
            .where(deliveries.c.number.in_(numbers), or_(_IS_DUE, _HAS_RUN_OUT))
            .values(
                status=str(DeliveryStatus.SENDING),
                claim_token=deliveries.c.claim_token + 1,
                claimed_by=holder,
                claimed_until=database_now(seconds),
            )
            .returning(deliveries)
        ).all()
        if state.is_paused:
            pause = database_now(PROBE_PAUSE.total_seconds())
            connection.execute(
                update(endpoints).where(endpoints.c.endpoint == endpoint).values(probe_at=pause)
            )
    return tuple(sorted(map(_claim, taken), key=lambda claim: claim.number))


def record_outcomes(catalog: Catalog, endpoint: str, attempts: Sequence[Attempt]) -> tuple[bool, ...]:
    """Record attempts at one endpoint, in one transaction.

    False for each whose claim was lost: nothing is recorded of it.
    """
    with catalog.writing() as connection:
        lock_endpoint(connection, endpoint)
        return tuple(_record(connection, attempt) for attempt in attempts)


def release_claims(catalog: Catalog, claims: Collection[Claim]) -> int:
    """Give back what was not tried. It is due at once and has lost no attempt.

    If its endpoint was disabled meanwhile, it is held.
    """
    with catalog.writing() as connection:
        names = sorted({claim.endpoint for claim in claims})  # locked in this order by everybody
        held = {name for name in names if is_disabled(connection, name)}
        return sum(
            connection.execute(
                update(deliveries)
                .where(_is_ours(claim))
                .values(
                    status=str(DeliveryStatus.HELD if claim.endpoint in held else DeliveryStatus.PENDING),
                    claimed_until=None,
                )
            ).rowcount
            for claim in claims
        )


def find_next_due(catalog: Catalog, names: Collection[str]) -> datetime | None:
    """When the next delivery of these endpoints is due or its claim runs out. None if none waits."""
    with catalog.reading() as connection:
        at = func.min(func.coalesce(deliveries.c.claimed_until, deliveries.c.next_at))
        waiting = and_(deliveries.c.status.in_(_WAITING), deliveries.c.endpoint.in_(names))
        found: datetime | None = connection.execute(select(at).where(waiting)).scalar()
        return found


def _record(connection: Connection, attempt: Attempt) -> bool:
    claim, outcome, status = attempt.claim, attempt.outcome, attempt.leaves
    changed = connection.execute(
        update(deliveries)
        .where(_is_ours(claim))
        .values(
            status=str(status),
            attempts=deliveries.c.attempts + 1,
            next_at=None if attempt.pause_seconds is None else database_now(attempt.pause_seconds),
            ended_at=database_now() if status in ENDED else None,
            status_code=outcome.status_code,
            error=outcome.error,
            claimed_until=None,
        )
    ).rowcount
    if changed != 1:
        return False
    connection.execute(
        insert(delivery_attempts).values(
            delivery=claim.number,
            at=database_now(),
            seconds=outcome.seconds,
            status_code=outcome.status_code,
            error=outcome.error,
        )
    )
    _judge_endpoint(connection, claim, outcome)
    return True


def _insert(connection: Connection, rows: list[dict[str, Any]], held: set[str]) -> int:
    statement = insert_into(connection.dialect.name, deliveries).on_conflict_do_nothing(index_elements=["id"])
    new = 0
    for status, some in (
        (DeliveryStatus.PENDING, [row for row in rows if row["endpoint"] not in held]),
        (DeliveryStatus.HELD, [row for row in rows if row["endpoint"] in held]),
    ):
        if some:
            known = connection.execute(
                select(func.count()).where(deliveries.c.id.in_([row["id"] for row in some]))
            ).scalar_one()
            connection.execute(
                statement.values(
                    status=str(status),
                    attempts=0,
                    next_at=database_now(),
                    created_at=database_now(),
                    error="",
                    claim_token=0,
                    claimed_by="",
                ),
                some,
            )
            new += len({row["id"] for row in some}) - known
    return new


def _move_cursor(
    connection: Connection, trigger: str, before: tuple[str, int] | None, after: tuple[str, int]
) -> None:
    values = {"table_id": after[0], "table_version": after[1], "updated_at": database_now()}
    if before is None:
        first = insert_into(connection.dialect.name, delivery_cursors).values(trigger_name=trigger, **values)
        made = first.on_conflict_do_nothing().returning(delivery_cursors.c.trigger_name)
        moved = len(connection.execute(made).all())
    else:
        here = and_(
            delivery_cursors.c.trigger_name == trigger,
            delivery_cursors.c.table_id == before[0],
            delivery_cursors.c.table_version == before[1],
        )
        moved = connection.execute(update(delivery_cursors).where(here).values(**values)).rowcount
    if moved != 1:
        raise ConflictError(f"The events of `{trigger}` were turned into deliveries by somebody else.")


_IS_DUE = and_(deliveries.c.status == str(DeliveryStatus.PENDING), deliveries.c.next_at <= database_now())
_HAS_RUN_OUT = and_(
    deliveries.c.status == str(DeliveryStatus.SENDING), deliveries.c.claimed_until <= database_now()
)


def _find_due(connection: Connection, endpoint: str, limit: int, ordering: Ordering) -> list[int]:
    """The oldest deliveries that can be claimed. Two queries, because each then follows the index."""
    numbers: list[int] = []
    for condition in (_HAS_RUN_OUT, _IS_DUE):
        due = select(deliveries.c.number).where(deliveries.c.endpoint == endpoint, condition)
        if ordering is Ordering.PER_KEY:
            due = due.where(~_has_earlier())
        numbers += connection.execute(due.order_by(deliveries.c.number).limit(limit)).scalars()
    return sorted(numbers)[:limit]


def _hold_what_waits(connection: Connection, endpoint: str) -> None:
    """Hold what a sender that died had claimed, and what a replay owed, while its endpoint was disabled."""
    connection.execute(
        update(deliveries)
        .where(
            deliveries.c.endpoint == endpoint,
            or_(deliveries.c.status == str(DeliveryStatus.PENDING), _HAS_RUN_OUT),
        )
        .values(status=str(DeliveryStatus.HELD), claim_token=deliveries.c.claim_token + 1, claimed_until=None)
    )


def _has_earlier() -> ColumnElement[bool]:
    earlier = deliveries.alias("earlier")
    return exists().where(
        earlier.c.endpoint == deliveries.c.endpoint,
        earlier.c.key_digest == deliveries.c.key_digest,
        earlier.c.number < deliveries.c.number,
        earlier.c.status.in_(_WAITING),
    )


def _may_probe(connection: Connection, endpoint: str) -> bool:
    ready = or_(endpoints.c.probe_at.is_(None), endpoints.c.probe_at <= database_now())
    found = select(endpoints.c.endpoint).where(endpoints.c.endpoint == endpoint, ready)
    return connection.execute(found).first() is not None


def _judge_endpoint(connection: Connection, claim: Claim, outcome: Outcome) -> None:
    if outcome.delivered:
        note_success(connection, claim.endpoint)
    elif outcome.status_code == 410:
        disable(connection, claim.endpoint, "It answered 410: it wants no more webhooks.")
    elif not outcome.hopeless:
        note_failure(connection, claim.endpoint, claim.number, FAILING_DELIVERIES, DISABLED_AFTER)


def _is_ours(claim: Claim) -> ColumnElement[bool]:
    return and_(
        deliveries.c.number == claim.number,
        deliveries.c.claim_token == claim.token,
        deliveries.c.status == str(DeliveryStatus.SENDING),
    )


def _claim(row: Row[Any]) -> Claim:
    return Claim(
        number=row.number,
        id=row.id,
        event_id=row.event_id,
        endpoint=row.endpoint,
        key=row.key,
        body=bytes(row.body),
        attempts=row.attempts,
        token=row.claim_token,
    )
