"""Requests: work that somebody asked a server for."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

INSTANT = sa.DateTime(timezone=True).with_variant(sa.String(24), "sqlite")
IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "requests",
        sa.Column("number", IDENTITY, primary_key=True, autoincrement=True),
        sa.Column("request", sa.Text, nullable=False, unique=True),
        sa.Column("verb", sa.Text, nullable=False),
        sa.Column("arguments", sa.Text),
        sa.Column("actor", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("started_at", INSTANT),
        sa.Column("ended_at", INSTANT),
        sa.Column("result", sa.Text),
        sa.Column("error", sa.Text),
        sa.Column("claim_token", sa.BigInteger, nullable=False),
        sa.Column("claimed_by", sa.Text, nullable=False),
        sa.Column("claimed_until", INSTANT),
    )
    op.create_index("requests_by_status", "requests", ["status", "number"])
