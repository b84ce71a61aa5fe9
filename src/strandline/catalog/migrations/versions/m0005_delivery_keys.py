"""Deliveries of one key are found by a digest of it: Postgres refuses long keys in an index."""

import hashlib

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"

_AT_ONCE = 1_000


def upgrade() -> None:
    op.add_column("deliveries", sa.Column("key_digest", sa.Text, nullable=False, server_default=""))
    _fill()
    op.drop_index("deliveries_by_key", "deliveries")
    op.create_index("deliveries_by_key", "deliveries", ["endpoint", "key_digest", "status", "number"])


def _fill() -> None:
    deliveries = sa.table(
        "deliveries",
        sa.column("number", sa.BigInteger),
        sa.column("key", sa.Text),
        sa.column("key_digest", sa.Text),
    )
    here = deliveries.c.number == sa.bindparam("at", type_=sa.BigInteger)
    write = deliveries.update().where(here).values(key_digest=sa.bindparam("digest", type_=sa.Text))
    connection, last = op.get_bind(), -1
    while True:
        read = sa.select(deliveries.c.number, deliveries.c.key).where(deliveries.c.number > last)
        rows = connection.execute(read.order_by(deliveries.c.number).limit(_AT_ONCE)).all()
        if not rows:
            return
        last = rows[-1].number
        connection.execute(write, [{"at": row.number, "digest": _digest(row.key)} for row in rows])


def _digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()[:32]
