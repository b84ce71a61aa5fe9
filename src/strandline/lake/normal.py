"""Values of any type in forms that Spark can group by and hash without losing a difference.

Spark cannot group by maps, and `xxhash64` skips the NULLs inside nested values: struct(1, NULL) and
struct(NULL, 1) have the same hash.
"""

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DoubleType, FloatType, MapType, StructType


def groupable(value: Column, kind: DataType) -> Column:
    """The value with every map in it as a list of its entries, ordered by key."""
    return _rebuild(value, kind, lambda leaf, _: leaf)


def comparable(value: Column, kind: DataType) -> Column:
    """The same, with doubles rounded to 12 significant digits: what counts as equal."""
    return _rebuild(value, kind, _round)


def fingerprint(value: Column, kind: DataType) -> Column:
    """A hash of the comparable value that also depends on which parts of it are NULL.

    It is never NULL itself.
    """
    match kind:
        case StructType():
            inner = F.xxhash64(
                F.lit("struct"), *(fingerprint(value.getField(f.name), f.dataType) for f in kind)
            )
        case ArrayType():
            elements = F.transform(value, lambda element: fingerprint(element, kind.elementType))
            inner = F.xxhash64(F.lit("array"), F.size(value), elements)
        case MapType():
            entry = StructType().add("key", kind.keyType).add("value", kind.valueType)
            hashes = F.transform(F.map_entries(value), lambda pair: fingerprint(pair, entry))
            inner = F.xxhash64(F.lit("map"), F.size(value), F.sort_array(hashes))
        case _:
            inner = F.xxhash64(F.lit("value"), _round(value, kind))
    return F.when(value.isNull(), F.xxhash64(F.lit("null"))).otherwise(inner)


def holds_map(kind: DataType) -> bool:
    return "map<" in kind.simpleString()


def is_nested(kind: DataType) -> bool:
    return isinstance(kind, StructType | ArrayType | MapType)


def _round(value: Column, kind: DataType) -> Column:
    if isinstance(kind, DoubleType | FloatType):
        return F.format_string("%.11e", value.cast("double") + F.lit(0.0))
    return value


def _rebuild(value: Column, kind: DataType, leaf: Callable[[Column, DataType], Column]) -> Column:
    match kind:
        case StructType():
            fields = [_rebuild(value.getField(f.name), f.dataType, leaf).alias(f.name) for f in kind]
            return F.when(value.isNotNull(), F.struct(*fields)) if fields else value
        case ArrayType():
            return F.transform(value, lambda element: _rebuild(element, kind.elementType, leaf))
        case MapType():
            return _entries(value, kind, leaf)
        case _:
            return leaf(value, kind)


def _entries(value: Column, kind: MapType, leaf: Callable[[Column, DataType], Column]) -> Column:
    """The entries of a map as structs of key and value, by key. Equal maps may have them in any order."""
    entries = F.transform(
        F.map_entries(value),
        lambda entry: F.struct(
            _rebuild(entry.getField("key"), kind.keyType, leaf).alias("key"),
            _rebuild(entry.getField("value"), kind.valueType, leaf).alias("value"),
        ),
    )
    return F.sort_array(entries)
