"""Keys, ranks and row signatures as Spark columns."""

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType

from strandline.lake.normal import comparable, fingerprint, is_nested
from strandline.model.columns import METADATA_COLUMNS, POSITION, quote


def key_hash(columns: Sequence[Column]) -> Column:
    """`_key` (L5): a hash of the values, cast to the key's types, and of which of them are NULL."""
    return F.xxhash64(*(part for column in columns for part in (column, column.isNull())))


def spell_hash(columns: Sequence[str]) -> str:
    """The same in SQL, over columns that are SQL."""
    return f"xxhash64({', '.join(f'{column}, {column} IS NULL' for column in columns)})"


def typed_key(
    names: Sequence[str], types: Mapping[str, DataType] | None = None, key: Sequence[str] | None = None
) -> Column:
    """`_key` from columns of a row.

    `types` are the declared key types by key column, for rows whose types may differ.
    """
    columns = [F.col(quote(name)) for name in names]
    if types is not None:
        columns = [column.cast(types[k]) for column, k in zip(columns, key or names, strict=True)]
    return key_hash(columns)


def row_hash(declared: Iterable[str]) -> Column:
    """The tie-breaker of L3, over the non-NULL declared columns as (name, text) pairs in name order.

    A column that is added later changes nothing.
    """
    pairs = [
        F.concat(F.lit(f"{name}="), F.length(text).cast("string"), F.lit(":"), text)
        for name in sorted(declared)
        for text in [_text(name)]
    ]
    return F.xxhash64(F.concat_ws(";", *pairs))


def _text(name: str) -> Column:
    return F.col(quote(name)).cast("string")


def rank(order_by: Sequence[str], declared: Iterable[str]) -> Column:
    """L3's total order as one comparable value.

    NULL sorts first. The row's hash and then its position break ties.
    """
    ordered = [F.col(quote(c)).alias(f"o{i}") for i, c in enumerate(order_by)]
    return F.struct(*ordered, row_hash(declared).alias("h"), F.col(POSITION).alias("p"))


def signatures(rows: DataFrame, columns: Sequence[str]) -> tuple[Column, Column]:
    """Two independent hashes of a row as it is compared.

    Doubles count with 12 significant digits. NULLs inside nested values count too.
    """
    parts = [part for name in columns for part in _compared(rows, name)]
    return F.xxhash64(F.lit(1), *parts), F.xxhash64(F.lit(2), *parts)


def _compared(rows: DataFrame, name: str) -> tuple[Column, ...]:
    column, kind = F.col(quote(name)), rows.schema[name].dataType
    return (fingerprint(column, kind),) if is_nested(kind) else (comparable(column, kind), column.isNull())


def user_columns(columns: Iterable[str]) -> list[str]:
    """The columns that users declared, without metadata columns."""
    return [c for c in columns if c not in METADATA_COLUMNS]
