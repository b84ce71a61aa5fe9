"""Deliveries, their attempts, the state of endpoints, and how far events have become deliveries."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

INSTANT = sa.DateTime(timezone=True).with_variant(sa.String(24), "sqlite")
IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "deliveries",
        sa.Column("number", IDENTITY, primary_key=True, autoincrement=True),
        sa.Column("id", sa.Text, nullable=False, unique=True),
        sa.Column("event_id", sa.Text, nullable=False),
        sa.Column("event_type", sa.Text, nullable=False),
        sa.Column("trigger_name", sa.Text, nullable=False),
        sa.Column("endpoint", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("source_timestamp", sa.BigInteger, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("next_at", INSTANT),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("ended_at", INSTANT),
        sa.Column("status_code", sa.Integer),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("claim_token", sa.BigInteger, nullable=False),
        sa.Column("claimed_by", sa.Text, nullable=False),
        sa.Column("claimed_until", INSTANT),
    )
    op.create_index("deliveries_by_status", "deliveries", ["endpoint", "status", "number"])
    op.create_index("deliveries_by_key", "deliveries", ["endpoint", "key", "status", "number"])
    op.create_table(
        "delivery_attempts",
        sa.Column("id", IDENTITY, primary_key=True, autoincrement=True),
        sa.Column(
            "delivery",
            sa.BigInteger,
            sa.ForeignKey("deliveries.number", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("seconds", sa.Float, nullable=False),
        sa.Column("status_code", sa.Integer),
        sa.Column("error", sa.Text, nullable=False),
    )
    op.create_index("attempts_by_delivery", "delivery_attempts", ["delivery", "id"])
    op.create_table(
        "endpoints",
        sa.Column("endpoint", sa.Text, primary_key=True),
        sa.Column("disabled", sa.Text, nullable=False),
        sa.Column("failing", sa.Text, nullable=False),
        sa.Column("failing_since", INSTANT),
        sa.Column("probe_at", INSTANT),
        sa.Column("updated_at", INSTANT, nullable=False),
    )
    op.create_table(
        "delivery_cursors",
        sa.Column("trigger_name", sa.Text, primary_key=True),
        sa.Column("table_id", sa.Text, nullable=False),
        sa.Column("table_version", sa.BigInteger, nullable=False),
        sa.Column("updated_at", INSTANT, nullable=False),
    )
