"""Parquet files of every type and encoding that pyarrow writes, with the expected values.

The values are those of the column `v`.
"""

import decimal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

D = decimal.Decimal
_NOON = datetime(2024, 1, 13, 12, 0, 0, 123456)  # noqa: DTZ001 - a zone is given or not by each file
_OLD = datetime(1677, 9, 22, 0, 0, 0, 999999)  # noqa: DTZ001


@dataclass(frozen=True)
class ParquetFile:
    """One column, named after the file. `expected` holds a value per row, as `query` returns it."""

    name: str
    write: Callable[[Path], object]
    expected: list[object] = field(default_factory=list)
    refused: str = ""


def _of(name: str, values: pa.Array, expected: Sequence[object], **options: object) -> ParquetFile:
    return ParquetFile(
        name, lambda path: pq.write_table(pa.table({name: values}), path, **options), list(expected)
    )


def _typed(
    name: str, kind: pa.DataType, values: list[object], expected: list[object] | None = None
) -> ParquetFile:
    return _of(name, pa.array(values, kind), values if expected is None else expected)


def _cut_off(path: Path) -> None:
    pq.write_table(pa.table({"x": [1, 2, 3]}), path)
    path.write_bytes(path.read_bytes()[:-5])


def _damaged_page(path: Path) -> None:
    """The footer is valid, but its codec could not have written the first page."""
    pq.write_table(
        pa.table({"damaged_page": pa.array([f"value {i % 97}" for i in range(5000)])}),
        path,
        compression="snappy",
    )
    data = bytearray(path.read_bytes())
    data[40:400] = bytes(byte ^ 0xFF for byte in data[40:400])
    path.write_bytes(data)


def _too_many_digits(path: Path) -> None:
    pq.write_table(pa.table({"d": pa.array([D(1)], pa.decimal256(50, 2))}), path)


def _odd_names(path: Path) -> None:
    nested = pa.array([{"in ner": 1, "in_ner": 2, "a,b": [{"c d": "x"}]}])
    pq.write_table(pa.table({"Odd Name": nested, "a b": pa.array([1])}), path)


def _empty_groups(path: Path) -> None:
    table = pa.table({"empty_groups": pa.array([1, 2, 3], pa.int16())})
    with pq.ParquetWriter(path, table.schema) as out:
        out.write_table(table.slice(0, 0))
        out.write_table(table.slice(0, 1), row_group_size=1)
        out.write_table(table.slice(0, 0))
        out.write_table(table.slice(1))


_NANOS = pa.array([1_705_147_200_123_456_789, -1, None], pa.timestamp("ns"))
_NANOS_READ: list[object] = [
    _NOON.replace(tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    None,
]
_NUMBERS = list(range(1000))

PARQUET_FILES = [
    _typed("int8", pa.int8(), [-128, 127, None]),
    _typed("int64", pa.int64(), [-(2**63), 2**63 - 1, None]),
    _typed("uint8", pa.uint8(), [0, 255]),
    _typed("uint32", pa.uint32(), [0, 2**32 - 1]),
    _typed("uint64", pa.uint64(), [0, 2**64 - 1], [D(0), D(2**64 - 1)]),
    _typed("float16", pa.float16(), [1.5, None]),
    _typed("float32", pa.float32(), [1.5, None]),
    _typed("decimal128", pa.decimal128(38, 10), [D("1234567890123456789012345678.0123456789"), None]),
    _typed("decimal256", pa.decimal256(38, 2), [D("123456789012345678901234567890123456.78")]),
    _typed("date32", pa.date32(), [date(1, 1, 1), date(9999, 12, 31)]),
    _typed("date64", pa.date64(), [date(2024, 2, 29)]),
    _typed("time32", pa.time32("ms"), [time(1, 2, 3, 4000)], ["01:02:03.004"]),
    _typed("time64", pa.time64("us"), [time(23, 59, 59, 999999)], ["23:59:59.999999"]),
    _typed(
        "timestamp_s",
        pa.timestamp("s"),
        [_NOON.replace(microsecond=0)],
        [_NOON.replace(microsecond=0, tzinfo=UTC)],
    ),
    _typed(
        "timestamp_us",
        pa.timestamp("us"),
        [_NOON, _OLD],
        [_NOON.replace(tzinfo=UTC), _OLD.replace(tzinfo=UTC)],
    ),
    _typed("timestamp_zone", pa.timestamp("us", tz="Asia/Kolkata"), [_NOON.replace(tzinfo=UTC)]),
    _of("timestamp_ns", _NANOS, _NANOS_READ),
    _of("timestamp_ns_zone", _NANOS.cast(pa.timestamp("ns", tz="UTC")), _NANOS_READ),
    _of("int96", _NANOS, _NANOS_READ, use_deprecated_int96_timestamps=True),
    _typed("boolean", pa.bool_(), [True, None, False]),
    _typed("binary", pa.binary(), [b"\xff\x00", None]),
    _typed("fixed_binary", pa.binary(2), [b"\xff\x00"]),
    _typed("large_string", pa.large_string(), ["a\u00e9\U0001f600", "", None]),
    _of("dictionary", pa.array(["a", "b", "a"]).dictionary_encode(), ["a", "b", "a"]),
    _of("delta", pa.array(_NUMBERS), _NUMBERS, use_dictionary=False, column_encoding="DELTA_BINARY_PACKED"),
    _of(
        "delta_text",
        pa.array(["a", "ab", "abc"]),
        ["a", "ab", "abc"],
        use_dictionary=False,
        column_encoding="DELTA_BYTE_ARRAY",
    ),
    _of("split", pa.array([1.5, 2.5]), [1.5, 2.5], use_dictionary=False, column_encoding="BYTE_STREAM_SPLIT"),
    _of("brotli", pa.array([1, 2]), [1, 2], compression="brotli"),
    _of("lz4", pa.array([1, 2]), [1, 2], compression="lz4"),
    _of("zstd", pa.array([1, 2]), [1, 2], compression="zstd"),
    _of("gzip", pa.array([1, 2]), [1, 2], compression="gzip", data_page_version="2.0"),
    _typed("list", pa.list_(pa.int64()), [[1, None], [], None]),
    _typed("list_of_nothing", pa.list_(pa.null()), [[None], []]),
    _typed("list_of_ns", pa.list_(pa.timestamp("ns")), [[_NOON]], [[_NOON.replace(tzinfo=UTC)]]),
    _typed("struct", pa.struct({"a": pa.int64(), "b": pa.string()}), [{"a": 1, "b": None}]),
    _of("nothing", pa.nulls(2), []),
    ParquetFile("empty_groups", _empty_groups, [1, 2, 3]),
    ParquetFile(
        "no_rows", lambda path: pq.write_table(pa.table({"no_rows": pa.array([], pa.int64())}), path), []
    ),
    ParquetFile("odd_names", _odd_names),
    ParquetFile("cut_off", _cut_off, refused="file-unreadable"),
    ParquetFile("damaged_page", _damaged_page, refused="file-unreadable"),
    ParquetFile("no_bytes", lambda path: path.write_bytes(b"")),
    ParquetFile(
        "not_parquet", lambda path: path.write_bytes(b"PAR1 is how it begins"), refused="file-unreadable"
    ),
    ParquetFile("decimal_50", _too_many_digits, refused="type-not-kept"),
]
