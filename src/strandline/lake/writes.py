"""Write primitives. Each is one Delta commit that carries a token and the engine's metadata.

There is no other way to write: never dynamic partition overwrite (it leaves what became empty), never MERGE
(slow, and without its own token).
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DateType, NumericType, StringType, TimestampNTZType, TimestampType

from strandline.model.columns import DELETED, HEAD, KEY, ROLE, Role, quote
from strandline.model.errors import ConflictError, OutsideError, StrandlineError
from strandline.model.timeline import DATE
from strandline.spark.session import SPARK_LOST, answers
from strandline.sql.literals import spark_literal

from .ahead import take_tokens
from .compaction import MANY_DELETED, Compaction, Step
from .location import Lake
from .near import Among
from .statistics import KEPT_OF, spell_columns

_TABLE = {
    "delta.enableChangeDataFeed": "true",
    "delta.enableInCommitTimestamps": "true",
    "delta.logRetentionDuration": "interval 36500 days",
    # A checkpoint costs as much as a commit, and reading fifty small log entries costs less.
    "delta.checkpointInterval": "50",
    # Statistics of few columns: keys are hashes, so ranges would skip nothing and cost something at each
    # write.
    "delta.dataSkippingNumIndexedCols": "2",
}
_RANGED = NumericType | StringType | DateType | TimestampType | TimestampNTZType
"""Types for which Delta records a file's least and greatest value. It refuses to for others."""
RECEIVED_TABLE = {**_TABLE, "delta.appendOnly": "true"}
"""A source's table: what was received is never changed (L1)."""
OWNED_TABLE = {**_TABLE, "delta.enableDeletionVectors": "true", "delta.isolationLevel": "Serializable"}


_RACED = ("DELTA_CONCURRENT", "DELTA_METADATA_CHANGED", "DELTA_PROTOCOL_CHANGED", "DELTA_PATH_EXISTS")
"""Delta's errors for a table that another writer committed to, changed or created since it was read."""
_UNANSWERED = re.compile(r"An error occurred while calling \S+")
"""py4j's text for a call whose connection broke. For a call that Java refused it also gives the reason."""


_USER_METADATA = "spark.databricks.delta.commitInfo.userMetadata"
"""The setting of a session from which a statement of SQL takes the metadata of its commit."""
_HERE, _THERE = "__here", "__there"
"""The two sides of a replace.

A column of the table would hide a side of the same name, and no column begins with two underscores.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """The right to one commit: the fence's token, and the metadata of the commit (L6)."""

    dataset: str
    token: int
    metadata: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """A range of a whole number that contains all rows of the affected keys."""

    column: str
    low: int
    high: int

    def spell(self, prefix: str = "") -> str:
        """As a condition of Spark's SQL."""
        column = prefix + quote(self.column)
        return f" AND {column} >= {self.low} AND {column} <= {self.high}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseding:
    """Which published rows a write may take the place of. At least one of `dates` and `heads` is set."""

    key: tuple[str, ...]
    """The columns that a row and the one it takes the place of have in common, besides the date."""
    dates: tuple[tuple[date, date], ...] = ()
    """Few ranges, each with its first and its last date, that contain those rows. None: only heads."""
    heads: bool = True
    """Whether heads are replaced. They have no date."""
    among: tuple[Among, ...] = ()

    def spell(self) -> str:
        """Which rows are replaced, as a condition of Spark's SQL.

        What it says about the table alone saves reading: superseded rows are left out as a partition, other
        dates as row groups, other keys as pages, by the statistics in the files. An alternative between a
        partition and a date would leave out neither, so heads are found by the missing date.
        """
        same = [
            f"{_THERE}.{KEY} = {_HERE}.{HEAD}.replaces",
            *(f"{_THERE}.{quote(column)} <=> {_HERE}.{quote(column)}" for column in (*self.key, DATE)),
        ]
        among = [one.spell(f"{_THERE}.") for one in self.among]
        return " AND ".join([*same, f"{_THERE}.{ROLE} IN ({self._roles()})", *self._dates(), *among])

    def _roles(self) -> str:
        roles = [Role.ROW] if self.dates else []
        return ", ".join(f"'{role}'" for role in [*roles, *([Role.HEAD] if self.heads else [])])

    def _dates(self) -> Iterator[str]:
        if self.dates:
            missing = [f"{_THERE}.{DATE} IS NULL"] if self.heads else []
            between = [f"{_THERE}.{DATE} BETWEEN DATE'{low}' AND DATE'{high}'" for low, high in self.dates]
            yield f"({' OR '.join(missing + between)})"


def append(
    rows: DataFrame,
    lake: Lake,
    ticket: Ticket,
    *,
    received: bool = False,
    first: bool = False,
    indexed: Sequence[str] = (),
) -> None:
    """Add rows. New columns are added to the table.

    `first`: the table does not exist yet. It cannot contain a fence, so another process that created it
    meanwhile is a conflict. `indexed` are the columns with statistics, which only the first write says.
    """
    writer = _writer(rows, ticket).options(**(RECEIVED_TABLE if received else OWNED_TABLE))
    writer = writer.options(**_statistics(rows, indexed)) if first else writer
    _save(writer.option("mergeSchema", "true").mode("errorifexists" if first else "append"), lake, ticket)


def only_new(rows: DataFrame, own: DataFrame, unique_key: Sequence[str]) -> DataFrame:
    """The rows whose key (null-safe, L5) is not in `own`, one row per key.

    This is the input of `insert_new`.
    """
    theirs = own.select(*(F.col(quote(c)).alias(f"__own_{c}") for c in unique_key))
    same = [F.col(quote(c)).eqNullSafe(F.col(quote(f"__own_{c}"))) for c in unique_key]
    return rows.dropDuplicates(list(unique_key)).join(theirs, on=same, how="left_anti")


def insert_new(rows: DataFrame, lake: Lake, ticket: Ticket) -> None:
    """Add rows whose unique key the table lacks at the pinned version.

    The confirmation looks for commits in between.
    """
    append(rows, lake, ticket)


def replace_keys(rows: DataFrame, lake: Lake, ticket: Ticket, *, within: Within | None = None) -> None:
    """Replace all rows of the key hashes in `rows` by `rows`, through deletion vectors.

    `within` is the range they are in, by which files are skipped. `rows` must be staged: without a known size
    Spark sorts and shuffles the whole table. A key that vanishes needs a `_deleted` row.
    """
    near = within.spell(f"{_THERE}.") if within else ""
    condition = f"{_THERE}.{KEY} = {_HERE}.{KEY}{near}"
    writer = _writer(rows.alias(_HERE), ticket).option("replaceOn", condition).option("targetAlias", _THERE)
    _save(writer.option("mergeSchema", "true").mode("overwrite"), lake, ticket)


def replace_superseded(rows: DataFrame, lake: Lake, ticket: Ticket, superseding: Superseding) -> None:
    """Add rows, and remove each published row that one of them takes the place of (ADR 14).

    `_head.replaces` of a row is the hash of that one. Key and date are compared as well, so that two keys
    with one hash do not touch each other. `rows` must be staged, as for `replace_keys`.
    """
    writer = _writer(rows.sortWithinPartitions(DATE).alias(_HERE), ticket).option(
        "replaceOn", superseding.spell()
    )
    _save(writer.option("targetAlias", _THERE).option("mergeSchema", "true").mode("overwrite"), lake, ticket)


def replace_listed(
    rows: DataFrame, lake: Lake, ticket: Ticket, hashes: Sequence[int], *, within: Within | None = None
) -> None:
    """Replace all rows of these hashes by `rows`. A hash without rows among them is cleared (L4).

    Only for few hashes, because the commit contains the list.
    """
    condition = f"{KEY} IN ({', '.join(map(str, hashes))})" + (within.spell() if within else "")
    replace_where(rows, lake, ticket, condition=condition)


def replace_where(rows: DataFrame, lake: Lake, ticket: Ticket, *, condition: str) -> None:
    """Replace the rows that match a condition. Without rows, clear them (L4)."""
    writer = _writer(rows, ticket).option("replaceWhere", condition).option("mergeSchema", "true")
    _save(writer.mode("overwrite"), lake, ticket)


def _statistics(rows: DataFrame, indexed: Sequence[str]) -> dict[str, str]:
    """The property of a table that says of which columns its files have statistics."""
    columns = [f.name for f in rows.schema if f.name in indexed and isinstance(f.dataType, _RANGED)]
    return {KEPT_OF: spell_columns(columns)} if columns else {}


def overwrite(
    rows: DataFrame,
    lake: Lake,
    ticket: Ticket,
    *,
    indexed: Sequence[str] = (),
    partitioned_by: Sequence[str] = (),
) -> None:
    """Replace the table, and its schema, in one commit. This is also the first write of a table.

    `indexed` are the columns with statistics.
    """
    _save(
        _writer(rows, ticket)
        .options(**OWNED_TABLE, **_statistics(rows, indexed))
        .option("overwriteSchema", "true")
        .partitionBy(*partitioned_by)
        .mode("overwrite"),
        lake,
        ticket,
    )


def commit_nothing(session: SparkSession, lake: Lake, ticket: Ticket) -> None:
    """An empty commit: a fence, or the counts of an increment that gave no rows."""
    rows = session.read.format("delta").load(lake.table(ticket.dataset)).limit(0)
    _save(_writer(rows, ticket).mode("append"), lake, ticket)


def purge(session: SparkSession, lake: Lake, ticket: Ticket) -> None:
    """Remove the `_deleted` rows of a keyed output."""
    rows = session.read.format("delta").load(lake.table(ticket.dataset)).limit(0)
    replace_where(rows, lake, ticket, condition=f"{DELETED} = true")


def keep_statistics(own: SparkSession, lake: Lake, ticket: Ticket, columns: Sequence[str]) -> None:
    """From now on, new files have statistics of these columns. Older files stay as they are.

    Like a compaction it changes no row, takes its metadata from the session, and needs no token.
    """
    own.conf.set(_USER_METADATA, ticket.metadata)
    kept = spark_literal(spell_columns(columns))
    with explained(ticket.dataset):
        own.sql(f"ALTER TABLE {_name(lake, ticket)} SET TBLPROPERTIES ('{KEPT_OF}' = {kept})").collect()


def compact(own: SparkSession, lake: Lake, ticket: Ticket, compaction: Compaction) -> None:
    """Rewrite the same rows in other files. Delta marks the commit as changing no data.

    Delta commits nothing if there is nothing to do. It takes the metadata of this commit from the settings of
    a session, so a compaction has a session of its own. The commit carries no token that a newer writer could
    fence. It needs none: a compaction by a writer that lost its lease changes no row (L7).
    """
    own.conf.set(_USER_METADATA, ticket.metadata)
    own.conf.set("spark.databricks.delta.optimize.minFileSize", str(compaction.small_bytes))
    own.conf.set("spark.databricks.delta.optimize.maxFileSize", str(compaction.file_bytes))
    own.conf.set("spark.databricks.delta.optimize.maxDeletedRowsRatio", str(MANY_DELETED))
    # So that the parts of a file are narrow too, and more than a thousand files do not overlap.
    own.conf.set("spark.databricks.io.skipping.mdc.sortWithinFiles", "true")
    own.conf.set("spark.databricks.io.skipping.mdc.rangeId.max", str(max(1_000, 4 * compaction.files)))
    with explained(ticket.dataset):
        own.sql(_spell_compaction(_name(lake, ticket), compaction)).collect()


def _spell_compaction(table: str, compaction: Compaction) -> str:
    match compaction.step:
        case Step.PURGE:
            return f"REORG TABLE {table} APPLY (PURGE)"
        case Step.MERGE:
            return f"OPTIMIZE {table}"
        case Step.SORT:
            return f"OPTIMIZE {table} ZORDER BY ({', '.join(map(quote, compaction.sorted_by))})"


def _name(lake: Lake, ticket: Ticket) -> str:
    return f"delta.{quote(lake.table(ticket.dataset))}"


def _writer(rows: DataFrame, ticket: Ticket) -> DataFrameWriter:
    return (
        rows.write.format("delta")
        .option("txnAppId", ticket.dataset)
        .option("txnVersion", ticket.token)
        .option("userMetadata", ticket.metadata)
    )


def _save(writer: DataFrameWriter, lake: Lake, ticket: Ticket) -> None:
    uri = lake.table(ticket.dataset)
    with explained(ticket.dataset):
        take_tokens(writer._df.sparkSession, uri)
        writer.save(uri)


@contextmanager
def explained(dataset: str) -> Iterator[None]:
    """Distinguish a race with another writer, and the end of Spark, from every other error."""
    try:
        yield
    except Exception as error:
        if is_lost(error):
            raise OutsideError(
                f"Spark ended, or no longer answers, while `{dataset}` was worked on.",
                remedy="Run again: the table's log says whether a commit was made.",
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
    """Whether it is unknown what a call to Spark did.

    It is known if Java raised or refused something, or users' code failed: that came as an answer.
    """
    if isinstance(error, StrandlineError) and error.__cause__ is not None:
        return is_lost(error.__cause__)  # the error may be reported as one of users' code
    if isinstance(error, Py4JNetworkError):
        return True
    if isinstance(error, Py4JJavaError) or not isinstance(error, Py4JError | ConnectionError):
        return False
    return _UNANSWERED.fullmatch(str(error)) is not None or not answers()
