"""Leases: who may write a dataset, until when, and with which token (step 1 of the commit protocol, L7).

A lease that has run out still belongs to its holder until another takes it: the token decides, not the clock.
"""

from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import Connection, Float, and_, bindparam, or_, select, update

from strandline.model.errors import ConflictError, FencedError
from strandline.model.leases import Lease, LeaseState

from .handle import Catalog, insert_into
from .sqltypes import database_now
from .tables import HELD, RELEASED, leases

_IS_OURS = and_(
    leases.c.dataset == bindparam("one"),
    leases.c.holder == bindparam("ours"),
    leases.c.token == bindparam("our_token"),
    leases.c.state == HELD,
)
_AFTER_SECONDS = database_now(bindparam("seconds", type_=Float))
_CHECK_TOKEN = update(leases).where(_IS_OURS).values(state=bindparam("next_state"))

_PREVIOUS = select(leases.c.token, leases.c.state).where(leases.c.dataset == bindparam("one"))
_TAKE_ANYHOW = (
    update(leases)
    .where(
        leases.c.dataset == bindparam("one"),
        leases.c.token == bindparam("previous_token"),
        leases.c.state == bindparam("previous_state"),
    )
    .values(
        holder=bindparam("ours"),
        token=bindparam("our_token"),
        state=HELD,
        acquired_at=database_now(),
        expires_at=_AFTER_SECONDS,
    )
    .returning(leases.c.expires_at)
)
_TAKE_IF_FREE = _TAKE_ANYHOW.where(
    or_(
        leases.c.state != HELD,
        leases.c.holder == bindparam("ours"),
        leases.c.expires_at <= database_now(),
    )
)


def acquire_lease(
    catalog: Catalog, dataset: str, holder: str, seconds: float, table_token: int, break_others: bool
) -> Lease:
    """Take the lease with a token above all earlier ones.

    Earlier tokens are those in the catalog and the table's own (`table_token`, 0 if it has none).
    """
    with catalog.writing() as connection:
        while True:
            lease = _find_first(connection, dataset, holder, seconds, table_token) or _find_next(
                connection, dataset, holder, seconds, table_token, break_others
            )
            if lease:
                return lease
            _refuse_if_held(connection, dataset, holder, break_others)


def next_token(catalog: Catalog, lease: Lease) -> Lease:
    """The same lease with the next token. It is taken once the fence is in place, so it needs no other."""
    with catalog.writing() as connection:
        change = (
            update(leases).where(_IS_OURS).values(token=leases.c.token + 1).returning(leases.c.expires_at)
        )
        expires_at = connection.execute(change, _ours(lease)).scalar()
    if expires_at is None:
        raise fenced(lease)
    return replace(lease, token=lease.token + 1, expires_at=expires_at, must_fence=False)


def renew_leases(catalog: Catalog, holder: str, seconds: float) -> int:
    """Prolong all leases of a holder. Returns how many there are."""
    with catalog.writing() as connection:
        mine = and_(leases.c.holder == holder, leases.c.state == HELD)
        return connection.execute(
            update(leases).where(mine).values(expires_at=database_now(seconds))
        ).rowcount


def list_leases(catalog: Catalog) -> tuple[LeaseState, ...]:
    """The newest lease of each dataset, ordered by dataset."""
    running = (leases.c.expires_at > database_now()).label("running")
    with catalog.reading() as connection:
        rows = connection.execute(select(leases, running).order_by(leases.c.dataset)).all()
    return tuple(
        LeaseState(
            dataset=row.dataset,
            holder=row.holder,
            token=row.token,
            expires_at=row.expires_at,
            returned=row.state == RELEASED,
            held=row.state == HELD and bool(row.running),
        )
        for row in rows
    )


def release_lease(catalog: Catalog, lease: Lease) -> None:
    """Give the lease back: its work ended cleanly, so the next holder need not fence."""
    with catalog.writing() as connection:
        check_token(connection, lease, release=True)


def check_token(connection: Connection, lease: Lease, *, release: bool) -> None:
    """Refuse a lease that was lost.

    Otherwise lock its row until the transaction ends, and release it if asked.
    """
    change = {**_ours(lease), "next_state": RELEASED if release else HELD}
    if connection.execute(_CHECK_TOKEN, change).rowcount != 1:
        raise fenced(lease)


def fenced(lease: Lease) -> FencedError:
    return FencedError(
        f"`{lease.dataset}`: {lease.holder} no longer holds the lease with token {lease.token};"
        " nothing was recorded."
    )


def _ours(lease: Lease) -> dict[str, object]:
    """The parameters of `_IS_OURS`."""
    return {"one": lease.dataset, "ours": lease.holder, "our_token": lease.token}


def _find_first(
    connection: Connection, dataset: str, holder: str, seconds: float, table_token: int
) -> Lease | None:
    """The lease, if the catalog has never had one for the dataset."""
    token = table_token + 1
    expires_at = connection.execute(
        _insert_first(connection.dialect.name),
        {"one": dataset, "ours": holder, "our_token": token, "seconds": seconds},
    ).scalar()
    if expires_at is None:
        return None
    # The table has a token but the catalog no lease: the catalog was lost, and with it the last writer's
    # name.
    return Lease(
        dataset=dataset, holder=holder, token=token, expires_at=expires_at, must_fence=table_token > 0
    )


@cache
def _insert_first(dialect: str) -> Any:
    insert = insert_into(dialect, leases).values(
        dataset=bindparam("one"),
        holder=bindparam("ours"),
        token=bindparam("our_token"),
        state=HELD,
        acquired_at=database_now(),
        expires_at=_AFTER_SECONDS,
    )
    return insert.on_conflict_do_nothing().returning(leases.c.expires_at)


def _find_next(
    connection: Connection, dataset: str, holder: str, seconds: float, table_token: int, break_others: bool
) -> Lease | None:
    """The lease, if it is free: given back, run out, already ours, or broken on request."""
    previous = connection.execute(_PREVIOUS, {"one": dataset}).one()
    token = max(previous.token, table_token) + 1
    expires_at = connection.execute(
        _TAKE_ANYHOW if break_others else _TAKE_IF_FREE,
        {
            "one": dataset,
            "previous_token": previous.token,
            "previous_state": previous.state,
            "ours": holder,
            "our_token": token,
            "seconds": seconds,
        },
    ).scalar()
    if expires_at is None:
        return None
    # The table is ahead: the catalog was restored from a copy.
    unclean = previous.state != RELEASED or table_token > previous.token
    return Lease(dataset=dataset, holder=holder, token=token, expires_at=expires_at, must_fence=unclean)


def _refuse_if_held(connection: Connection, dataset: str, holder: str, break_others: bool) -> None:
    """Raise if another holds the lease. Return if the row only changed between reading and writing it."""
    held = and_(
        leases.c.dataset == dataset,
        leases.c.state == HELD,
        leases.c.holder != holder,
        leases.c.expires_at > database_now(),
    )
    other = None if break_others else connection.execute(select(leases).where(held)).first()
    if other:
        raise ConflictError(
            f"`{dataset}` is being written by {other.holder}, whose lease runs until"
            f" {other.expires_at:%Y-%m-%d %H:%M:%S} UTC.",
            remedy="Wait for it to end; if it was killed, the lease runs out by itself.",
            slug="lease-held",
        )
