"""What is remembered about endpoints: which of them fail, since when, and which are disabled."""

from datetime import timedelta

from sqlalchemy import Connection, select, update

from strandline.model.deliveries import DeliveryStatus, EndpointState

from .handle import Catalog, insert_into
from .sqltypes import database_now
from .tables import deliveries, endpoints


def read_endpoint_states(catalog: Catalog) -> dict[str, EndpointState]:
    """By name: the endpoints at which something was ever tried."""
    with catalog.reading() as connection:
        names = connection.execute(select(endpoints.c.endpoint)).scalars().all()
        return {name: _read(connection, name) for name in names}


def enable_endpoint(catalog: Catalog, endpoint: str) -> int:
    """Send to an endpoint again. Returns how many held deliveries are due now."""
    with catalog.writing() as connection:
        lock_endpoint(connection, endpoint)
        connection.execute(
            update(endpoints)
            .where(endpoints.c.endpoint == endpoint)
            .values(disabled="", failing=[], failing_since=None, probe_at=None, updated_at=database_now())
        )
        return _move(connection, endpoint, DeliveryStatus.HELD, DeliveryStatus.PENDING)


def disable_endpoint(catalog: Catalog, endpoint: str, reason: str) -> None:
    """Send nothing more to an endpoint until it is enabled."""
    with catalog.writing() as connection:
        lock_endpoint(connection, endpoint)
        disable(connection, endpoint, reason)


def lock_endpoint(connection: Connection, endpoint: str) -> EndpointState:
    """The state of an endpoint, which nobody else changes until the transaction ends."""
    connection.execute(
        insert_into(connection.dialect.name, endpoints)
        .values(endpoint=endpoint, disabled="", failing=[], updated_at=database_now())
        .on_conflict_do_nothing()
    )
    connection.execute(select(endpoints.c.endpoint).where(endpoints.c.endpoint == endpoint).with_for_update())
    return _read(connection, endpoint)


def is_disabled(connection: Connection, endpoint: str) -> bool:
    return bool(lock_endpoint(connection, endpoint).disabled)


def disable(connection: Connection, endpoint: str, reason: str) -> None:
    """What waits is held. A delivery that is being sent ends as its attempt does, or is held afterwards."""
    connection.execute(
        update(endpoints)
        .where(endpoints.c.endpoint == endpoint)
        .values(disabled=reason, updated_at=database_now())
    )
    _move(connection, endpoint, DeliveryStatus.PENDING, DeliveryStatus.HELD)


def note_success(connection: Connection, endpoint: str) -> None:
    connection.execute(
        update(endpoints)
        .where(endpoints.c.endpoint == endpoint, endpoints.c.failing_since.is_not(None))
        .values(failing=[], failing_since=None, probe_at=None, updated_at=database_now())
    )


def note_failure(
    connection: Connection, endpoint: str, delivery: int, most: int, disabled_after: timedelta
) -> None:
    """Count a delivery that failed. An endpoint at which everything has failed for too long is disabled."""
    state = _read(connection, endpoint)
    failing = list(dict.fromkeys((*state.failing, delivery)))[:most]
    values: dict[str, object] = {"failing": failing, "updated_at": database_now()}
    if state.failing_since is None:
        values["failing_since"] = database_now()
    connection.execute(update(endpoints).where(endpoints.c.endpoint == endpoint).values(**values))
    long_ago = endpoints.c.failing_since <= database_now(-disabled_after.total_seconds())
    too_long = select(endpoints.c.endpoint).where(endpoints.c.endpoint == endpoint, long_ago)
    if connection.execute(too_long).first():
        disable(connection, endpoint, f"Everything has failed for {disabled_after.days} days.")
    elif state.disabled:
        _move(connection, endpoint, DeliveryStatus.PENDING, DeliveryStatus.HELD)


def _move(connection: Connection, endpoint: str, old: DeliveryStatus, new: DeliveryStatus) -> int:
    return connection.execute(
        update(deliveries)
        .where(deliveries.c.endpoint == endpoint, deliveries.c.status == str(old))
        .values(status=str(new), next_at=database_now())
    ).rowcount


def _read(connection: Connection, endpoint: str) -> EndpointState:
    row = connection.execute(select(endpoints).where(endpoints.c.endpoint == endpoint)).one()
    return EndpointState(
        endpoint=endpoint,
        disabled=row.disabled,
        failing=tuple(row.failing),
        failing_since=row.failing_since,
    )
