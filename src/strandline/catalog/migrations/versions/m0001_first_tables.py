"""Datasets, cursors, leases, runs, tasks, audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

INSTANT = sa.DateTime(timezone=True).with_variant(sa.String(24), "sqlite")
IDENTITY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "datasets",
        sa.Column("dataset", sa.Text, primary_key=True),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("table_id", sa.Text, nullable=False),
        sa.Column("table_version", sa.BigInteger, nullable=False),
        sa.Column("configs", sa.Text, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("row_count", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("as_of", sa.Text, nullable=False),
        sa.Column("counts", sa.Text, nullable=False),
        sa.Column("updated_at", INSTANT),
    )
    op.create_table(
        "dataset_cursors",
        sa.Column(
            "dataset", sa.Text, sa.ForeignKey("datasets.dataset", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("cursor_column", sa.Text, primary_key=True),
        sa.Column("input", sa.Text, primary_key=True),
        sa.Column("cursor_value", sa.Text),
        sa.Column("table_id", sa.Text),
        sa.Column("table_version", sa.BigInteger),
        sa.Column("updated_at", INSTANT, nullable=False),
    )
    op.create_table(
        "leases",
        sa.Column("dataset", sa.Text, primary_key=True),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("token", sa.BigInteger, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("acquired_at", INSTANT, nullable=False),
        sa.Column("expires_at", INSTANT, nullable=False),
    )
    op.create_table(
        "runs",
        sa.Column("number", IDENTITY, primary_key=True, autoincrement=True),
        sa.Column("run", sa.Text, nullable=False, unique=True),
        sa.Column("as_of", sa.Text, nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("ended_at", INSTANT),
        sa.Column("status", sa.Text, nullable=False),
    )
    op.create_table(
        "tasks",
        sa.Column("id", IDENTITY, primary_key=True, autoincrement=True),
        sa.Column("run", sa.Text, sa.ForeignKey("runs.run"), nullable=False),
        sa.Column("node", sa.Text, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("cause", sa.Text, nullable=False),
        sa.Column("strategy", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("scope_kind", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("status_since", INSTANT, nullable=False),
        sa.Column("result", sa.Text, nullable=False),
        sa.Column("error", sa.Text, nullable=False),
        sa.Column("slug", sa.Text, nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("ended_at", INSTANT, nullable=False),
        sa.UniqueConstraint("run", "node", "attempt", name="tasks_by_attempt"),
    )
    op.create_index("tasks_by_node", "tasks", ["node", "id"])
    op.create_table(
        "audit_log",
        sa.Column("id", IDENTITY, primary_key=True, autoincrement=True),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("verb", sa.Text, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
    )
