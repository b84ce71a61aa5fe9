"""Requests of servers: added, claimed by one server at a time, finished, listed.

Every change of state is a compare-and-set. All times are those of the database's clock. A server that died
loses its claims: at once when another takes its place, or when they run out.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Row, and_, delete, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from strandline.model.errors import ConflictError
from strandline.model.requests import RequestClaim, RequestRecord, RequestStatus

from .handle import Catalog
from .sqltypes import database_now
from .tables import audit_log, requests

_CLAIMABLE = or_(
    requests.c.status == str(RequestStatus.PENDING),
    and_(
        requests.c.status == str(RequestStatus.RUNNING),
        requests.c.claimed_until <= database_now(),
    ),
)
_RACES = 20
"""How often a claim that another server took first is tried with the next request."""


def add_request(catalog: Catalog, name: str, verb: str, arguments: object, actor: str) -> RequestRecord:
    """Record a request that waits to be executed, and in the audit log who asked for it.

    Raises ConflictError if there is one of this name.
    """
    row = {"request": name, "verb": verb, "arguments": arguments, "actor": actor}
    try:
        with catalog.writing() as connection:
            added = connection.execute(
                insert(requests)
                .values(
                    **row,
                    status=str(RequestStatus.PENDING),
                    created_at=database_now(),
                    claim_token=0,
                    claimed_by="",
                )
                .returning(requests)
            ).one()
            detail = {"request": name, "actor": actor}
            connection.execute(insert(audit_log).values(at=database_now(), verb=verb, detail=detail))
            return _record(added)
    except IntegrityError as error:
        raise ConflictError(f"There is a request `{name}` already.", slug="request-exists") from error


def claim_request(catalog: Catalog, server: str, seconds: float) -> RequestClaim | None:
    """Take the oldest request that waits, or whose server died, for some seconds. None if there is none."""
    oldest = select(requests.c.number).where(_CLAIMABLE).order_by(requests.c.number).limit(1)
    for _ in range(_RACES):
        with catalog.writing() as connection:
            number = connection.execute(oldest).scalar()
            if number is None:
                return None
            row = connection.execute(
                update(requests)
                .where(requests.c.number == number, _CLAIMABLE)
                .values(
                    status=str(RequestStatus.RUNNING),
                    started_at=database_now(),
                    claim_token=requests.c.claim_token + 1,
                    claimed_by=server,
                    claimed_until=database_now(seconds),
                )
                .returning(requests)
            ).first()
        if row is not None:
            return RequestClaim(record=_record(row), token=row.claim_token)
    return None


def renew_claims(catalog: Catalog, server: str, seconds: float) -> None:
    """Keep what this server executes for some more seconds."""
    with catalog.writing() as connection:
        connection.execute(
            update(requests).where(_is_run_by(server)).values(claimed_until=database_now(seconds))
        )


def finish_request(
    catalog: Catalog,
    claim: RequestClaim,
    *,
    result: object = None,
    error: Mapping[str, object] | None = None,
) -> RequestRecord | None:
    """Record the end of a request. None if the claim was lost: another server executes it again."""
    status = RequestStatus.DONE if error is None else RequestStatus.FAILED
    with catalog.writing() as connection:
        row = connection.execute(
            update(requests)
            .where(
                requests.c.request == claim.record.request,
                requests.c.status == str(RequestStatus.RUNNING),
                requests.c.claim_token == claim.token,
            )
            .values(
                status=str(status),
                result=result,
                error=None if error is None else dict(error),
                ended_at=database_now(),
                claimed_until=None,
            )
            .returning(requests)
        ).first()
    return _record(row) if row else None


def give_back_requests(catalog: Catalog, server: str | None = None) -> int:
    """What this server was executing waits again. None: what any server was, because all of them are dead."""
    running = requests.c.status == str(RequestStatus.RUNNING) if server is None else _is_run_by(server)
    with catalog.writing() as connection:
        return connection.execute(
            update(requests)
            .where(running)
            .values(status=str(RequestStatus.PENDING), started_at=None, claimed_until=None)
        ).rowcount


def find_request(catalog: Catalog, name: str) -> RequestRecord | None:
    with catalog.reading() as connection:
        row = connection.execute(select(requests).where(requests.c.request == name)).first()
    return _record(row) if row else None


def list_requests(catalog: Catalog, limit: int, after: str | None = None) -> tuple[RequestRecord, ...]:
    """The newest first. `after`: only those that come after this one in the list."""
    listed = select(requests).order_by(requests.c.number.desc()).limit(limit)
    if after is not None:
        place = select(requests.c.number).where(requests.c.request == after).scalar_subquery()
        listed = listed.where(requests.c.number < place)
    with catalog.reading() as connection:
        return tuple(_record(row) for row in connection.execute(listed))


def forget_requests(catalog: Catalog, keep: timedelta) -> int:
    """Remove requests that ended longer ago than `keep`. Returns how many."""
    with catalog.writing() as connection:
        ended = requests.c.ended_at < database_now(-keep.total_seconds())
        return connection.execute(delete(requests).where(ended)).rowcount


def _is_run_by(server: str) -> ColumnElement[bool]:
    return and_(requests.c.claimed_by == server, requests.c.status == str(RequestStatus.RUNNING))


def _record(row: Row[Any]) -> RequestRecord:
    return RequestRecord(
        request=row.request,
        verb=row.verb,
        arguments=row.arguments,
        actor=row.actor,
        status=RequestStatus(row.status),
        created_at=row.created_at,
        started_at=row.started_at,
        ended_at=row.ended_at,
        result=row.result,
        error=row.error,
    )
