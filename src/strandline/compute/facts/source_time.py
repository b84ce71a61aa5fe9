"""When a fact happened, according to its source: `_source_at` and `_source_ts`.

`_source_ts` is the source's own integer. All numbers of one dataset are in one unit.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegralType

from strandline.model.columns import TimeUnit, TypeName, native_name, quote
from strandline.model.project import FactDataset, SourceTime

from .payload import MESSAGE, get_text
from .values import decode_text


def find_source_time(rows: DataFrame, dataset: FactDataset, raw_prefix: str) -> tuple[Column, Column]:
    """The instant and the source's integer.

    A bigint is a logical clock: it has no instant. The text of a column as it was received is found under its
    name with the prefix.
    """
    declared = dataset.source_at
    if declared is None:
        return _no_instant(), F.lit(None).cast("bigint")
    if declared.column is not None:
        return _from_column(rows, dataset, declared.column, raw_prefix)
    return _from_path(rows, declared)


def convert_column(value: Column, rows: DataFrame, dataset: FactDataset, name: str) -> tuple[Column, Column]:
    """The instant and the integer of a value that was decoded as the column of this name."""
    kind = dataset.type_of(name)
    stored = rows.schema[name].dataType if kind is None else None
    if isinstance(stored, IntegralType) or (kind is not None and kind.name is TypeName.BIGINT):
        return _no_instant(), value.cast("bigint")
    at = value.cast("timestamp")
    return at, _in_unit(at, kind.unit if kind else TimeUnit.MICROSECONDS)


def _no_instant() -> Column:
    return F.lit(None).cast("timestamp")


def _from_column(rows: DataFrame, dataset: FactDataset, name: str, raw_prefix: str) -> tuple[Column, Column]:
    kind = dataset.type_of(name)
    at, number = convert_column(F.col(quote(name)), rows, dataset, name)
    if raw_prefix + name in rows.columns and kind is not None and kind.is_integer_time:
        return at, F.coalesce(_whole(F.col(quote(raw_prefix + name))), number)
    return at, number


def _from_path(rows: DataFrame, declared: SourceTime) -> tuple[Column, Column]:
    kind = declared.type
    assert kind is not None
    raw = (
        get_text(rows, declared.path)
        if MESSAGE in rows.columns
        else F.col(quote(native_name(".".join(declared.path)))).cast("string")
    )
    if kind.name is TypeName.BIGINT:
        return _no_instant(), decode_text(raw, kind)
    at = decode_text(raw, kind).cast("timestamp")
    number = _in_unit(at, kind.unit)
    return at, F.coalesce(_whole(raw), number) if kind.is_integer_time else number


def _whole(raw: Column) -> Column:
    return raw.try_cast("decimal(38,0)").try_cast("bigint")


def _in_unit(at: Column, unit: TimeUnit) -> Column:
    match unit:
        case TimeUnit.MILLISECONDS:
            return F.unix_millis(at)
        case TimeUnit.MICROSECONDS:
            return F.unix_micros(at)
        case TimeUnit.NANOSECONDS:  # NULL before 1677 and after 2262: 64 bits reach no further
            return F.try_multiply(F.unix_micros(at), F.lit(1000))
