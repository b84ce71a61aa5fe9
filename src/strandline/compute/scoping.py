"""What a scope of a job is made of: keys, values of the cursor's column, or partitions; and how a row tells which is its own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DateType, DecimalType, IntegralType, TimestampNTZType, TimestampType

from strandline.lake.query import literal
from strandline.lake.work import Work
from strandline.lake.writes import Within
from strandline.model.columns import KEY, quote
from strandline.model.errors import WorkError
from strandline.model.partitions import NULL, cover, find_span, spark_format
from strandline.model.project import Calendar, Job, Mode, Partitioning

from .keys import key_hash, typed_key
from .scope import FEW, VALUE, Keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoping:
    """Of one job. `types` are those of its output's key columns; a partition's name needs none."""

    job: Job
    calendar: Calendar
    types: Mapping[str, DataType]

    def hash(self, rows: DataFrame, columns: Sequence[str]) -> Column:
        """`_key` of rows whose `columns` hold what the scope is made of, in the order of the job's key."""
        if self.job.partition is not None:
            return key_hash([self.name(rows, columns)])
        return typed_key(columns, self.types, self.job.key)

    def select(self, rows: DataFrame, columns: Sequence[str]) -> DataFrame:
        """The hashes of rows, and for a cursor or a partition what they stand for."""
        valued = []
        if self.job.partition is not None:
            valued = [self.name(rows, columns).alias(VALUE)]
        elif len(columns) == 1:
            valued = [F.col(quote(columns[0])).cast(self.types[self.job.key[0]]).alias(VALUE)]
        return rows.select(self.hash(rows, columns).alias(KEY), *valued)

    def select_names(self, session: SparkSession, names: Sequence[str]) -> DataFrame:
        """The hashes of partitions given by name."""
        rows = session.createDataFrame([(name,) for name in names], f"{VALUE} string")
        return rows.select(key_hash([F.col(VALUE)]).alias(KEY), VALUE)

    def condition(self, columns: Sequence[str], keys: Keys, kinds: Mapping[str, DataType]) -> str | None:
        """A scope's rows, or a few more, as a condition of DataFusion's SQL over the last of the columns; None where there is none."""
        column, kind = columns[-1], kinds.get(columns[-1])
        if self.job.partition is not None:
            span = self._span(keys)
            if span is None or not isinstance(kind, TimestampType if isinstance(span[0], datetime) else IntegralType):
                return None
            return f'"{column}" >= {literal(span[0])} AND "{column}" < {literal(span[1])}'
        values = self._values(keys)
        if not values or kind != self.types[self.job.key[-1]] or any(isinstance(v, float) for v in values):
            return None
        listed = ", ".join(literal(v) for v in values if v is not None)
        parts = [f'"{column}" IN ({listed})'] if listed else []
        return " OR ".join([*parts, *([f'"{column}" IS NULL'] if None in values else [])])

    def is_stray(self, keys: Keys) -> Column:
        """Whether a row of the output has the hash of a key in the scope and is of another, which the scope's values do not tell."""
        values = self._values(keys)
        if not values:
            return F.lit(False)
        column = F.col(quote(self.job.key[0]))
        known = column.isin([v for v in values if v is not None])
        return ~F.coalesce(known | column.isNull() if None in values else known, F.lit(False))

    def within(self, keys: Keys) -> Within | None:
        """The range of a cursor's values in a scope. Right for a write once no row under their hashes is a stray."""
        values = self._values(keys)
        if self.job.mode is not Mode.CURSOR or not values:
            return None
        numbers = [v for v in values if isinstance(v, int) and not isinstance(v, bool)]
        return Within(column=self.job.key[0], low=min(numbers), high=max(numbers)) if len(numbers) == len(values) else None

    def _values(self, keys: Keys) -> list[object]:
        """The values of a key of one column, where they are told and few."""
        told = self.job.partition is None and len(self.job.key) == 1 and len(keys.values) <= FEW
        return list(keys.values.values()) if told else []

    def restrict(self, rows: DataFrame, columns: Sequence[str], keys: Keys) -> DataFrame:
        """The rows inside a scope; by a range too, where there is one: Delta skips files by it."""
        return keys.restrict(self._narrow(rows, columns, keys), self.hash(rows, columns))

    def name(self, rows: DataFrame, columns: Sequence[str]) -> Column:
        """The name of each row's partition."""
        partition = self.job.partition
        assert partition is not None
        own = F.coalesce(_own_name(partition, self.calendar, rows, columns[-1], self.job), F.lit(NULL))
        groups = [F.coalesce(_encoded(F.col(quote(c)).cast("string")), F.lit(NULL)) for c in columns[:-1]]
        return F.concat_ws("/", *groups, own)

    def _narrow(self, rows: DataFrame, columns: Sequence[str], keys: Keys) -> DataFrame:
        column, kind = F.col(quote(columns[-1])), rows.schema[columns[-1]].dataType
        if self.job.partition is not None:
            span = self._span(keys)
            if span is None or (isinstance(span[0], datetime) and not isinstance(kind, TimestampType)):
                return rows
            return rows.where((column >= F.lit(span[0])) & (column < F.lit(span[1])))
        values = self._values(keys)
        if self.job.mode is not Mode.CURSOR or not values or None in values or kind != self.types[self.job.key[-1]]:
            return rows
        return rows.where(column.between(F.lit(min(values)), F.lit(max(values))))  # type: ignore[type-var]

    def _span(self, keys: Keys) -> tuple[int | datetime, int | datetime] | None:
        """The range that a scope's partitions cover."""
        assert self.job.partition is not None
        spans = [find_span(self.job.partition, self.calendar, str(name)) for name in keys.values.values()]
        return None if None in spans else cover([s for s in spans if s is not None])


def _encoded(text: Column) -> Column:
    """A group's value with the separator of names in it spelt otherwise, as `partitions.encode_group` does."""
    return F.replace(F.replace(text, F.lit("%"), F.lit("%25")), F.lit("/"), F.lit("%2F"))


def make_scoping(work: Work, job: Job, own: DataFrame | None) -> Scoping:
    types = {c: own.schema[c].dataType for c in job.key if c in own.columns} if own is not None else {}
    return Scoping(job=job, calendar=work.project.calendar, types=types)


def _own_name(partition: Partitioning, calendar: Calendar, rows: DataFrame, name: str, job: Job) -> Column:
    column, kind = F.col(quote(name)), rows.schema[name].dataType
    whole = isinstance(kind, IntegralType) or (isinstance(kind, DecimalType) and kind.scale == 0)
    if partition.size is not None and whole:
        start = (column - F.pmod(column, F.lit(partition.size).cast(kind))).cast("bigint")
        return F.concat(start.cast("string"), F.lit("-"), (start + F.lit(partition.size)).cast("string"))
    if partition.unit is not None:
        if isinstance(kind, DateType):
            return F.date_format(column, spark_format(partition.unit))
        if isinstance(kind, TimestampType | TimestampNTZType):
            return F.date_format(F.from_utc_timestamp(column.cast("timestamp"), calendar.timezone), spark_format(partition.unit))
    wanted = "a whole number" if partition.size is not None else "a date or a timestamp"
    raise WorkError(
        f"{job.place}: `partition` of `{job.name}` names `{name}`, which is {kind.simpleString()} and not {wanted}.",
        remedy="Give the column a type where it is declared, or name another.",
        slug="partition-type",
    )
