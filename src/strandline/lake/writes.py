"""Write primitives. Each is one Delta commit that carries a token and the engine's metadata; there is no other way to write.

Never dynamic partition overwrite (it leaves what became empty), never MERGE (slow, and no token of its own).
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, NumericType, StringType, TimestampNTZType, TimestampType

from strandline.model.columns import DELETED, KEY, quote
from strandline.model.errors import ConflictError, OutsideError, StrandlineError
from strandline.spark.session import SPARK_LOST, answers

from .compaction import Compaction, Step
from .location import Lake

_TABLE = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.logRetentionDuration": "interval 36500 days",
    # A checkpoint costs as much as a commit, and reading fifty small log entries does not.
    "delta.checkpointInterval": "50",
    # Statistics of few columns: keys are hashes, so ranges would skip nothing and cost at each write.
    "delta.dataSkippingNumIndexedCols": "2",
}
_RANGED = NumericType | StringType | DateType | TimestampType | TimestampNTZType
"""Types of which Delta keeps the least and the greatest value of a file; it refuses to for others."""
RECEIVED_TABLE = {**_TABLE, "delta.appendOnly": "true"}
"""A source's table: what was received is never changed (L1)."""
OWNED_TABLE = {**_TABLE, "delta.enableDeletionVectors": "true", "delta.isolationLevel": "Serializable"}


_RACED = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED", "DELTA_PATH_EXISTS")
"""What Delta says of a table that another writer committed to, changed or made since it was read."""
_UNANSWERED = re.compile(r"An error occurred while calling \S+")
"""What py4j says of a call whose connection broke. Of one that Java refused it also says why."""


_HERE, _THERE = "__here", "__there"
"""The two sides of a replace. A column of the table hides a side of the same name, and no column begins with two underscores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The right to one commit: the fence's token, and what the commit says of itself (L6)."""

    dataset: str
    token: int
    metadata: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """A range of a whole number that all rows of the keys at stake lie in."""

    column: str
    low: int
    high: int

    def spell(self, prefix: str = "") -> str:
        """As a condition of Spark's SQL."""
        column = prefix + quote(self.column)
        return f" AND {column} >= {self.low} AND {column} <= {self.high}"


def append(
    rows: DataFrame, lake: Lake, ticket: Ticket, *, received: bool = False, first: bool = False
) -> None:
    """Add rows; columns that are new evolve the table.

    `first`: the table is not there yet. No fence could stand in it, so whoever made it meanwhile is in the way.
    """
    writer = _writer(rows, ticket).options(**(RECEIVED_TABLE if received else OWNED_TABLE))
    _save(writer.option("mergeSchema", "true").mode("errorifexists" if first else "append"), lake, ticket)


def only_new(rows: DataFrame, own: DataFrame, unique_key: Sequence[str]) -> DataFrame:
    """The rows whose key (null-safe, L5) is not among `own`, one row a key: what `insert_new` is given."""
    theirs = own.select(*(F.col(quote(c)).alias(f"__own_{c}") for c in unique_key))
    same = [F.col(quote(c)).eqNullSafe(F.col(quote(f"__own_{c}"))) for c in unique_key]
    return rows.dropDuplicates(list(unique_key)).join(theirs, on=same, how="left_anti")


def insert_new(rows: DataFrame, lake: Lake, ticket: Ticket) -> None:
    """Add rows whose unique key the table does not have at the pinned version. Whoever confirms looks for commits in between."""
    append(rows, lake, ticket)


def replace_keys(rows: DataFrame, lake: Lake, ticket: Ticket, *, within: Within | None = None) -> None:
    """Replace all rows of the key hashes in `rows` by `rows`, through deletion vectors. `within` says where they are: files are skipped.

    `rows` must be staged: without a known size Spark sorts and shuffles the whole table. A key that vanishes needs a row, `_deleted`.
    """
    near = within.spell(f"{_THERE}.") if within else ""
    condition = f"{_THERE}.{KEY} = {_HERE}.{KEY}{near}"
    writer = _writer(rows.alias(_HERE), ticket).option("replaceOn", condition).option("targetAlias", _THERE)
    _save(writer.option("mergeSchema", "true").mode("overwrite"), lake, ticket)


def replace_listed(
    rows: DataFrame, lake: Lake, ticket: Ticket, hashes: Sequence[int], *, within: Within | None = None
) -> None:
    """Replace all rows of these hashes by `rows`; one that has none among them is cleared (L4). The list stands in the commit: for few."""
    condition = f"{KEY} IN ({', '.join(map(str, hashes))})" + (within.spell() if within else "")
    replace_where(rows, lake, ticket, condition=condition)


def replace_where(rows: DataFrame, lake: Lake, ticket: Ticket, *, condition: str) -> None:
    """Replace the rows a condition describes; with no rows, clear them (L4)."""
    writer = _writer(rows, ticket).option("replaceWhere", condition).option("mergeSchema", "true")
    _save(writer.mode("overwrite"), lake, ticket)


def overwrite(rows: DataFrame, lake: Lake, ticket: Ticket, *, indexed: Sequence[str] = ()) -> None:
    """Replace the table, and its schema, in one commit; the first write of a table too. `indexed`: the columns statistics are kept of."""
    columns = [f.name for f in rows.schema if f.name in indexed and isinstance(f.dataType, _RANGED)]
    statistics = {"delta.dataSkippingStatsColumns": ",".join(map(quote, columns))} if columns else {}
    _save(
        _writer(rows, ticket)
        .options(**OWNED_TABLE, **statistics)
        .option("overwriteSchema", "true")
        .mode("overwrite"),
        lake,
        ticket,
    )


def commit_nothing(session: SparkSession, lake: Lake, ticket: Ticket) -> None:
    """An empty commit: a fence, or counts of an increment that gave no rows."""
    rows = session.read.format("delta").load(lake.table(ticket.dataset)).limit(0)
    _save(_writer(rows, ticket).mode("append"), lake, ticket)


def purge(session: SparkSession, lake: Lake, ticket: Ticket) -> None:
    """Remove the `_deleted` rows that a keyed output was written with."""
    rows = session.read.format("delta").load(lake.table(ticket.dataset)).limit(0)
    replace_where(rows, lake, ticket, condition=f"{DELETED} = true")


def compact(session: SparkSession, lake: Lake, ticket: Ticket, compaction: Compaction) -> None:
    """The same rows in other files; Delta marks the commit as changing no data, and commits nothing where it finds nothing to do.

    It takes what the commit says of itself from a session's settings alone, hence a session of its own, and no token: a compaction that
    comes late, by a writer that lost its lease, changes nothing visible either (L7).
    """
    own = session.newSession()
    own.conf.set("spark.databricks.delta.commitInfo.userMetadata", ticket.metadata)
    own.conf.set("spark.databricks.delta.optimize.minFileSize", str(compaction.small_bytes))
    own.conf.set("spark.databricks.delta.optimize.maxFileSize", str(compaction.file_bytes))
    table = f"delta.{quote(lake.table(ticket.dataset))}"
    with explained(ticket.dataset):
        own.sql(
            f"OPTIMIZE {table}" if compaction.step is Step.MERGE else f"REORG TABLE {table} APPLY (PURGE)"
        ).collect()


def _writer(rows: DataFrame, ticket: Ticket) -> DataFrameWriter:
    return (
        rows.write.format("delta")
        .option("txnAppId", ticket.dataset)
        .option("txnVersion", ticket.token)
        .option("userMetadata", ticket.metadata)
    )


def _save(writer: DataFrameWriter, lake: Lake, ticket: Ticket) -> None:
    with explained(ticket.dataset):
        writer.save(lake.table(ticket.dataset))


@contextmanager
def explained(dataset: str) -> Iterator[None]:
    """Tell a race with another writer, and the end of Spark, from every other error."""
    try:
        yield
    except Exception as error:
        if is_lost(error):
            raise OutsideError(
                f"Spark ended, or no longer answers, while `{dataset}` was worked on.",
                remedy="Run again: whether a commit stands is read from the table's log.",
                slug=SPARK_LOST,
            ) from error
        if any(word in str(error) for word in _RACED) or "Concurrent" in type(error).__name__:
            raise ConflictError(
                f"Another writer committed to `{dataset}` while this task was writing it.",
                remedy="It is tried again; if that fails too, run again.",
                slug="conflict",
            ) from error
        raise


def is_lost(error: BaseException) -> bool:
    """Whether nobody knows what became of a call to Spark. What Java raised, or refused, came as its answer; so did users' own errors."""
    if isinstance(error, StrandlineError) and error.__cause__ is not None:
        return is_lost(error.__cause__)  # users' code may be told as the one that failed
    if isinstance(error, Py4JNetworkError):
        return True
    if isinstance(error, Py4JJavaError) or not isinstance(error, Py4JError | ConnectionError):
        return False
    return _UNANSWERED.fullmatch(str(error)) is not None or not answers()
