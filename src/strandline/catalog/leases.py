"""Leases: who may write a dataset, until when, and with which token (step 1 of the commit protocol, L7).

A lease that has run out still belongs to its holder until another takes it: the token decides, not the clock.
"""

from dataclasses import replace

from sqlalchemy import ColumnElement, Connection, and_, or_, select, true, update

from strandline.model.errors import ConflictError, FencedError
from strandline.model.leases import Lease, LeaseState

from .handle import Catalog, insert_into
from .sqltypes import database_now
from .tables import HELD, RELEASED, leases


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
            update(leases)
            .where(_is_ours(lease))
            .values(token=leases.c.token + 1)
            .returning(leases.c.expires_at)
        )
        expires_at = connection.execute(change).scalar()
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
    change = update(leases).where(_is_ours(lease)).values(state=RELEASED if release else HELD)
    if connection.execute(change).rowcount != 1:
        raise fenced(lease)


def fenced(lease: Lease) -> FencedError:
    return FencedError(
        f"`{lease.dataset}`: {lease.holder} no longer holds the lease with token {lease.token};"
        " nothing was recorded."
    )


def _is_ours(lease: Lease) -> ColumnElement[bool]:
    return and_(
        leases.c.dataset == lease.dataset,
        leases.c.holder == lease.holder,
        leases.c.token == lease.token,
        leases.c.state == HELD,
    )


def _find_first(
    connection: Connection, dataset: str, holder: str, seconds: float, table_token: int
) -> Lease | None:
    """The lease, if the catalog has never had one for the dataset."""
    token = table_token + 1
    values = {"dataset": dataset, "holder": holder, "token": token, "state": HELD}
    insert = insert_into(connection, leases).values(
        **values, acquired_at=database_now(), expires_at=database_now(seconds)
    )
    expires_at = connection.execute(insert.on_conflict_do_nothing().returning(leases.c.expires_at)).scalar()
    if expires_at is None:
        return None
    # The table has a token but the catalog no lease: the catalog was lost, and with it the last writer's
    # name.
    return Lease(
        dataset=dataset, holder=holder, token=token, expires_at=expires_at, must_fence=table_token > 0
    )


def _find_next(
    connection: Connection, dataset: str, holder: str, seconds: float, table_token: int, break_others: bool
) -> Lease | None:
    """The lease, if it is free: given back, run out, already ours, or broken on request."""
    previous = connection.execute(
        select(leases.c.token, leases.c.state).where(leases.c.dataset == dataset)
    ).one()
    token = max(previous.token, table_token) + 1
    free = (
        true()
        if break_others
        else or_(leases.c.state != HELD, leases.c.holder == holder, leases.c.expires_at <= database_now())
    )
    change = (
        update(leases)
        .where(
            leases.c.dataset == dataset,
            leases.c.token == previous.token,
            leases.c.state == previous.state,
            free,
        )
        .values(
            holder=holder,
            token=token,
            state=HELD,
            acquired_at=database_now(),
            expires_at=database_now(seconds),
        )
        .returning(leases.c.expires_at)
    )
    expires_at = connection.execute(change).scalar()
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
