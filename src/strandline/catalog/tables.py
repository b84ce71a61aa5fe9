"""The catalog's tables as they are now. `migrations` contains the way there; a test compares the two."""

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from .sqltypes import FreeText, Instant, JsonText, KeyText

metadata = MetaData()

IDENTITY = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite numbers rows by itself only for a key of type INTEGER."""

datasets = Table(
    "datasets",
    metadata,
    Column("dataset", Text, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("table_id", Text, nullable=False),
    Column("table_version", BigInteger, nullable=False),
    Column("configs", JsonText, nullable=False),
    Column("location", Text, nullable=False),
    Column("row_count", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("as_of", Text, nullable=False),
    Column("counts", JsonText, nullable=False),
    Column("waiting", JsonText, nullable=False),
    Column("updated_at", Instant),
)


def no_table() -> dict[str, Any]:
    """The row in `datasets` of a node that was tried and has no table yet."""
    return {
        "table_id": "",
        "table_version": -1,
        "configs": [],
        "location": "",
        "row_count": 0,
        "bytes": 0,
        "as_of": "",
        "counts": {},
        "waiting": [],
    }


TABLE_CURSOR = "table"
FILE_CURSOR = "file"

dataset_cursors = Table(
    "dataset_cursors",
    metadata,
    Column("dataset", Text, ForeignKey("datasets.dataset", ondelete="CASCADE"), primary_key=True),
    Column("cursor_column", Text, primary_key=True),
    Column("input", Text, primary_key=True),
    Column("cursor_value", JsonText),
    Column("table_id", Text),
    Column("table_version", BigInteger),
    Column("updated_at", Instant, nullable=False),
)

partition_versions = Table(
    "partition_versions",
    metadata,
    Column("dataset", Text, ForeignKey("datasets.dataset", ondelete="CASCADE"), primary_key=True),
    Column("partition_key", Text, primary_key=True),
    Column("version", Instant, nullable=False),
    Column("config_hash", Text, nullable=False),
    Column("schema_hash", Text, nullable=False),
    Column("location", Text, nullable=False),
    Column("row_count", BigInteger, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("table_version", BigInteger, nullable=False),
)

data_invalidations = Table(
    "data_invalidations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("dataset", Text, nullable=False),
    Column("scope", Text, nullable=False),
    Column("partition_key", Text),
    Column("row_filter", JsonText),
    Column("reason", FreeText, nullable=False),
    Column("source_event", JsonText),
    Column("created_at", Instant, nullable=False),
    Column("table_id", Text, nullable=False),
    Column("table_version", BigInteger, nullable=False),
    Index("invalidations_by_dataset", "dataset", "table_version"),
)

invalidation_jobs = Table(
    "invalidation_jobs",
    metadata,
    Column(
        "invalidation_id", Text, ForeignKey("data_invalidations.id", ondelete="CASCADE"), primary_key=True
    ),
    Column("job", Text, primary_key=True),
    Column("processed_at", Instant),
)

HELD = "held"
RELEASED = "released"

leases = Table(
    "leases",
    metadata,
    Column("dataset", Text, primary_key=True),
    Column("holder", Text, nullable=False),
    Column("token", BigInteger, nullable=False),
    Column("state", Text, nullable=False),
    Column("acquired_at", Instant, nullable=False),
    Column("expires_at", Instant, nullable=False),
)

runs = Table(
    "runs",
    metadata,
    Column("number", IDENTITY, primary_key=True, autoincrement=True),
    Column("run", Text, nullable=False, unique=True),
    Column("as_of", Text, nullable=False),
    Column("cause", FreeText, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("status", Text, nullable=False),
)

tasks = Table(
    "tasks",
    metadata,
    Column("id", IDENTITY, primary_key=True, autoincrement=True),
    Column("run", Text, ForeignKey("runs.run"), nullable=False),
    Column("node", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("kind", Text, nullable=False),
    Column("cause", Text, nullable=False),
    Column("strategy", Text, nullable=False),
    Column("reason", FreeText, nullable=False),
    Column("scope_kind", Text, nullable=False),
    Column("scope", FreeText, nullable=False),
    Column("status", Text, nullable=False),
    Column("status_since", Instant, nullable=False),
    Column("result", JsonText, nullable=False),
    Column("error", FreeText, nullable=False),
    Column("slug", Text, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("ended_at", Instant, nullable=False),
    UniqueConstraint("run", "node", "attempt", name="tasks_by_attempt"),
    Index("tasks_by_node", "node", "id"),
)

audit_log = Table(
    "audit_log",
    metadata,
    Column("id", IDENTITY, primary_key=True, autoincrement=True),
    Column("at", Instant, nullable=False),
    Column("verb", Text, nullable=False),
    Column("detail", JsonText, nullable=False),
)

requests = Table(
    "requests",
    metadata,
    Column("number", IDENTITY, primary_key=True, autoincrement=True),
    Column("request", Text, nullable=False, unique=True),
    Column("verb", Text, nullable=False),
    Column("arguments", JsonText),
    Column("actor", FreeText, nullable=False),
    Column("status", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("started_at", Instant),
    Column("ended_at", Instant),
    Column("result", JsonText),
    Column("error", JsonText),
    Column("claim_token", BigInteger, nullable=False),
    Column("claimed_by", Text, nullable=False),
    Column("claimed_until", Instant),
    Index("requests_by_status", "status", "number"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("number", IDENTITY, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("event_id", Text, nullable=False),
    Column("event_type", Text, nullable=False),
    Column("trigger_name", Text, nullable=False),
    Column("endpoint", Text, nullable=False),
    Column("key", KeyText, nullable=False),
    Column("key_digest", Text, nullable=False, server_default=""),  # a key may be too long for an index
    Column("source_timestamp", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("status", Text, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("next_at", Instant),
    Column("created_at", Instant, nullable=False),
    Column("ended_at", Instant),
    Column("status_code", Integer),
    Column("error", FreeText, nullable=False),
    Column("claim_token", BigInteger, nullable=False),
    Column("claimed_by", Text, nullable=False),
    Column("claimed_until", Instant),
    Index("deliveries_by_status", "endpoint", "status", "number"),
    Index("deliveries_by_key", "endpoint", "key_digest", "status", "number"),
)

delivery_attempts = Table(
    "delivery_attempts",
    metadata,
    Column("id", IDENTITY, primary_key=True, autoincrement=True),
    Column("delivery", BigInteger, ForeignKey("deliveries.number", ondelete="CASCADE"), nullable=False),
    Column("at", Instant, nullable=False),
    Column("seconds", Float, nullable=False),
    Column("status_code", Integer),
    Column("error", FreeText, nullable=False),
    Index("attempts_by_delivery", "delivery", "id"),
)

endpoints = Table(
    "endpoints",
    metadata,
    Column("endpoint", Text, primary_key=True),
    Column("disabled", FreeText, nullable=False),
    Column("failing", JsonText, nullable=False),
    Column("failing_since", Instant),
    Column("probe_at", Instant),
    Column("updated_at", Instant, nullable=False),
)

delivery_cursors = Table(
    "delivery_cursors",
    metadata,
    Column("trigger_name", Text, primary_key=True),
    Column("table_id", Text, nullable=False),
    Column("table_version", BigInteger, nullable=False),
    Column("updated_at", Instant, nullable=False),
)
