"""Partition versions, invalidations, and what waits to be final."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

INSTANT = sa.DateTime(timezone=True).with_variant(sa.String(24), "sqlite")


def upgrade() -> None:
    op.add_column("datasets", sa.Column("waiting", sa.Text, nullable=False, server_default="[]"))
    op.create_table(
        "partition_versions",
        sa.Column(
            "dataset", sa.Text, sa.ForeignKey("datasets.dataset", ondelete="CASCADE"), primary_key=True
        ),
        sa.Column("partition_key", sa.Text, primary_key=True),
        sa.Column("version", INSTANT, nullable=False),
        sa.Column("config_hash", sa.Text, nullable=False),
        sa.Column("schema_hash", sa.Text, nullable=False),
        sa.Column("location", sa.Text, nullable=False),
        sa.Column("row_count", sa.BigInteger, nullable=False),
        sa.Column("bytes", sa.BigInteger, nullable=False),
        sa.Column("table_version", sa.BigInteger, nullable=False),
    )
    op.create_table(
        "data_invalidations",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("dataset", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("partition_key", sa.Text),
        sa.Column("row_filter", sa.Text),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("source_event", sa.Text),
        sa.Column("created_at", INSTANT, nullable=False),
        sa.Column("table_id", sa.Text, nullable=False),
        sa.Column("table_version", sa.BigInteger, nullable=False),
    )
    op.create_index("invalidations_by_dataset", "data_invalidations", ["dataset", "table_version"])
    op.create_table(
        "invalidation_jobs",
        sa.Column(
            "invalidation_id",
            sa.Text,
            sa.ForeignKey("data_invalidations.id", ondelete="CASCADE"),
            primary_key=True,
        ),
        sa.Column("job", sa.Text, primary_key=True),
        sa.Column("processed_at", INSTANT),
    )
