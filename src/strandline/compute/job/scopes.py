"""What a scope of a job consists of: keys, cursor values or partitions.

And which of them a row belongs to.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegralType,
    TimestampNTZType,
    TimestampType,
)

from strandline.compute.key_set import VALUE, KeySet
from strandline.compute.keys import key_hash, typed_key
from strandline.lake.work import Work
from strandline.lake.writes import Within
from strandline.model.columns import KEY, quote
from strandline.model.errors import WorkError
from strandline.model.partitions import NULL, NULL_TEXT, cover, find_span, format_after_year
from strandline.model.project import Calendar, Job, Mode, Partitioning, Unit
from strandline.sql.literals import datafusion_literal, datafusion_name, spark_literal

_MARGIN = timedelta(days=2)
"""Margin around the instants of a partition.

Spark names partitions by Java's time-zone rules and these spans come from Python's, which may differ. An hour
that occurs twice around midnight belongs to a day that is not one continuous span of time.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoping:
    """The scopes of one job. `types` are those of its output's key columns; a partition's name needs none."""

    job: Job
    calendar: Calendar
    types: Mapping[str, DataType]
    listed_keys: int
    """At most this many values are listed in a condition."""

    def hash(self, rows: DataFrame, columns: Sequence[str]) -> Column:
        """`_key` of rows whose `columns` contain the parts of the scope, in the order of the job's key."""
        if self.job.partition is not None:
            return key_hash([self.name(rows, columns)])
        return typed_key(columns, self.types, self.job.key)

    def select(self, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
        """The hashes of rows and, for a cursor or a partition, the values they stand for."""
        valued = []
        if self.job.partition is not None:
            valued = [self.name(rows, columns).alias(VALUE)]
        elif len(columns) == 1:
            valued = [F.col(quote(columns[0])).cast(self.types[self.job.key[0]]).alias(VALUE)]
        return rows.select(self.hash(rows, columns).alias(KEY), *valued)

    def select_names(self, session: SparkSession, names: Sequence[str]) -> DataFrame:
        """The hashes of partitions with these names."""
        rows = session.createDataFrame([(name,) for name in names], f"{VALUE} string")
        return rows.select(key_hash([F.col(VALUE)]).alias(KEY), VALUE)

    def condition(self, columns: Sequence[str], keys: KeySet, kinds: Mapping[str, DataType]) -> str | None:
        """A DataFusion condition on the last of the columns that every row of the scope meets.

        Other rows may meet it too. None if no such condition can be written exactly.
        """
        column, kind = datafusion_name(columns[-1]), kinds.get(columns[-1])
        if self.job.partition is not None:
            low, high = self._span(keys, kind)
            parts = [
                f"{column} >= {datafusion_literal(low)}" if low is not None else "",
                f"{column} < {datafusion_literal(high)}",
            ]
            return " AND ".join(filter(None, parts)) if high is not None else None
        values = self._values(keys)
        if not values or kind != self.types[self.job.key[-1]]:
            return None
        literals = [datafusion_literal(v) for v in values if v is not None]
        if None in literals:
            return None
        listed = [f"{column} IN ({', '.join(filter(None, literals))})"] if literals else []
        return " OR ".join([*listed, *([f"{column} IS NULL"] if None in values else [])])

    def is_stray(self, keys: KeySet) -> Column:
        """Whether a row of the output shares the hash of a key in the scope but has another value."""
        values = self._values(keys)
        if not values:
            return F.lit(False)
        column = quote(self.job.key[0])
        listed = ", ".join(spark_literal(v) or "" for v in values if v is not None)
        parts = [f"{column} IN ({listed})"] if listed else []
        parts += [f"{column} IS NULL"] if None in values else []
        return F.expr(f"NOT coalesce({' OR '.join(parts)}, false)")

    def within(self, keys: KeySet) -> Within | None:
        """The range of a cursor's values in a scope.

        Valid for a write once no row under their hashes is a stray.
        """
        values = self._values(keys)
        if self.job.mode is not Mode.CURSOR or not values:
            return None
        numbers = [v for v in values if isinstance(v, int) and not isinstance(v, bool)]
        return (
            Within(column=self.job.key[0], low=min(numbers), high=max(numbers))
            if len(numbers) == len(values)
            else None
        )

    def _values(self, keys: KeySet) -> list[object]:
        """The values of a key of one column, if they are known, few, and each has an exact literal."""
        if self.job.partition is not None or len(self.job.key) != 1 or len(keys.values) > self.listed_keys:
            return []
        # Doubles are selected by their hashes: NaN, and -0.0 beside 0.0, have their own rules of order.
        if isinstance(self.types.get(self.job.key[0]), DoubleType | FloatType):
            return []
        values = list(keys.values.values())
        return values if all(spark_literal(v) is not None for v in values) else []

    def restrict(self, rows: DataFrame, columns: Sequence[str], keys: KeySet) -> DataFrame:
        """The rows inside a scope. Where there is a range it is used too, because Delta skips files by it."""
        return keys.restrict(self._narrow(rows, columns, keys), self.hash(rows, columns))

    def name(self, rows: DataFrame, columns: Sequence[str]) -> Column:
        """The name of each row's partition."""
        partition = self.job.partition
        assert partition is not None
        own = F.coalesce(_own_name(partition, self.calendar, rows, columns[-1], self.job), F.lit(NULL))
        return F.concat_ws("/", *self._groups(rows, columns), own)

    def newest(self, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
        """The largest value of the partition's column, by the group's part of a partition's name."""
        group = F.concat_ws("/", *self._groups(rows, columns))
        return rows.groupBy(group.alias("group")).agg(F.max(quote(columns[-1])).alias("newest"))

    def _groups(self, rows: DataFrame, columns: Sequence[str]) -> list[Column]:
        for group in columns[:-1]:
            _require_group_type(rows, group, self.job)
        return [F.coalesce(_encoded(F.col(quote(c)).cast("string")), F.lit(NULL)) for c in columns[:-1]]

    def _narrow(self, rows: DataFrame, columns: Sequence[str], keys: KeySet) -> DataFrame:
        """Rows in a range that contains the scope, so that Delta skips files.

        The hash decides. This may only leave out rows that the hash would leave out.
        """
        column, kind = quote(columns[-1]), rows.schema[columns[-1]].dataType
        if self.job.partition is not None:
            low, high = self._span(keys, kind)
            parts = [f"{column} >= {spark_literal(low)}" if low is not None else ""]
            parts += [f"{column} < {spark_literal(high)}" if high is not None else ""]
            return rows.where(" AND ".join(filter(None, parts))) if any(parts) else rows
        values = self._values(keys)
        if (
            self.job.mode is not Mode.CURSOR
            or not values
            or None in values
            or kind != self.types[self.job.key[-1]]
        ):
            return rows
        least, greatest = min(values), max(values)  # type: ignore[type-var]
        return rows.where(f"{column} >= {spark_literal(least)} AND {column} <= {spark_literal(greatest)}")

    def _span(
        self, keys: KeySet, kind: DataType | None
    ) -> tuple[int | datetime | None, int | datetime | None]:
        """A range of a column of this type that contains the scope's partitions. None where it is open."""
        assert self.job.partition is not None
        spans = [find_span(self.job.partition, self.calendar, str(name)) for name in keys.values.values()]
        covered = None if None in spans else cover([s for s in spans if s is not None])
        if covered is None or not keys.values:
            return None, None
        low, high = covered
        if isinstance(low, datetime) and isinstance(high, datetime):
            return (_earlier(low), _later(high)) if isinstance(kind, TimestampType) else (None, None)
        if not isinstance(kind, IntegralType) or isinstance(low, datetime) or isinstance(high, datetime):
            return None, None
        return low if low >= -(2**63) else None, high if high < 2**63 else None


def _earlier(at: datetime) -> datetime | None:
    return at - _MARGIN if at.year > 2 else None


def _later(at: datetime) -> datetime | None:
    return at + _MARGIN if at.year < 9998 else None


def _encoded(text: Column) -> Column:
    """A group's value with the separator of names escaped, as `partitions.encode_group` does."""
    spelt = F.replace(F.replace(text, F.lit("%"), F.lit("%25")), F.lit("/"), F.lit("%2F"))
    return F.when(text == NULL, F.lit(NULL_TEXT)).otherwise(spelt)


def make_scoping(work: Work, job: Job, own: DataFrame | None) -> Scoping:
    types = {c: own.schema[c].dataType for c in job.key if c in own.columns} if own is not None else {}
    listed = work.project.settings.thresholds.listed_keys
    return Scoping(job=job, calendar=work.project.calendar, types=types, listed_keys=listed)


def _own_name(partition: Partitioning, calendar: Calendar, rows: DataFrame, name: str, job: Job) -> Column:
    column, kind = F.col(quote(name)), rows.schema[name].dataType
    if partition.size is not None and isinstance(kind, IntegralType):
        # Near the ends of a bigint the edges of a partition are outside it.
        far = ~column.between(F.lit(-(1 << 62)), F.lit(1 << 62))
        return F.when(far, _range_name(column.cast("decimal(20,0)"), partition.size)).otherwise(
            _range_name(column.cast("bigint"), partition.size)
        )
    if (
        partition.size is not None
        and isinstance(kind, DecimalType)
        and kind.scale == 0
        and kind.precision < 38
    ):
        return _range_name(column, partition.size)
    if partition.unit is not None and isinstance(kind, DateType):
        return _time_name(column, partition.unit)
    if partition.unit is not None and isinstance(kind, TimestampType | TimestampNTZType):
        return _time_name(F.from_utc_timestamp(column.cast("timestamp"), calendar.timezone), partition.unit)
    expected = (
        "a whole number of at most 37 digits" if partition.size is not None else "a date or a timestamp"
    )
    raise WorkError(
        f"{job.place}: `partition` of `{job.name}` names `{name}`, which is {kind.simpleString()}"
        f" and not {expected}.",
        remedy="Give the column a type where it is declared and backfill that dataset with `--all`,"
        " or name another.",
        slug="partition-type",
    )


def _require_group_type(rows: DataFrame, name: str, job: Job) -> None:
    """A group is part of a partition's name, so equal values must have one text."""
    kind = rows.schema[name].dataType
    if isinstance(kind, AtomicType) and not isinstance(kind, BinaryType | DoubleType | FloatType):
        return
    raise WorkError(
        f"{job.place}: `by` of `{job.name}` names `{name}`, which is {kind.simpleString()}."
        " Partitions cannot be grouped by it.",
        remedy="Name a column of text, whole numbers, decimals, dates or timestamps.",
        slug="partition-type",
    )


def _range_name(number: Column, size: int) -> Column:
    start = number - F.pmod(number, F.lit(size))
    return F.concat(start.cast("string"), F.lit("-"), (start + F.lit(size)).cast("string"))


def _time_name(local: Column, unit: Unit) -> Column:
    return F.concat(F.format_string("%04d", F.year(local)), F.date_format(local, format_after_year(unit)))
