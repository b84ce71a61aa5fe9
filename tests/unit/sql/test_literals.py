"""Literals are exact: delta-rs matches only rows with the value, or there is no literal."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from strandline.sql.literals import datafusion_literal, spark_literal

TIMES = [
    datetime(1, 1, 1, tzinfo=UTC),
    datetime(999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(1582, 10, 4, tzinfo=UTC),
    datetime(1677, 9, 20, tzinfo=UTC),
    datetime(2024, 1, 1, 0, 0, 0, 123456, tzinfo=UTC),
    datetime(2262, 4, 12, tzinfo=UTC),
    datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
]
COLUMNS: dict[str, tuple[pa.DataType, list[object]]] = {
    "boolean": (pa.bool_(), [True, False]),
    "tinyint": (pa.int8(), [-128, 0, 127]),
    "bigint": (pa.int64(), [-(2**63), -1, 0, 2**53 + 1, 2**63 - 1]),
    "decimal": (
        pa.decimal128(14, 4),
        [Decimal("-9999999999.9999"), Decimal("0.0001"), Decimal("0.0000"), Decimal("1.5000")],
    ),
    "string": (
        pa.string(),
        ["", " ", "it's", "back\\slash", "nul\0", "é", "e\u0301", "😀", "\uffff", "x" * 5000],
    ),
    "binary": (pa.binary(), [b"", b"\0", b"\x01\xff", b"'", "é".encode()]),
    "date": (pa.date32(), [date(1, 1, 1), date(999, 12, 31), date(1582, 10, 4), date(9999, 12, 31)]),
    "timestamp": (pa.timestamp("us", "UTC"), list(TIMES)),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_delta_rs_finds_just_the_row_of_a_value(kind: str, tmp_path: Path) -> None:
    type_, values = COLUMNS[kind]
    write_deltalake(
        str(tmp_path / "t"), pa.table({"v": pa.array([*values, None], type_), "n": range(len(values) + 1)})
    )
    session = QueryBuilder().register("t", DeltaTable(str(tmp_path / "t")))

    for n, value in enumerate(values):
        for condition in (f"v = {datafusion_literal(value)}", f"v IN ({datafusion_literal(value)})"):
            rows = pa.table(session.execute(f"SELECT n FROM t WHERE {condition}").read_all())
            assert rows.column("n").to_pylist() == [n], f"{value!r} as {condition}"


def test_what_has_no_exact_literal_has_none() -> None:
    for value in ([1], {"a": 1}, (1,), object(), Decimal("NaN"), Decimal(10) ** 38):
        assert spark_literal(value) is None, value
        assert datafusion_literal(value) is None, value
    assert datafusion_literal(float("nan")) is None
    assert datafusion_literal(1.5) is None


def test_spark_literals_are_text_that_needs_no_calendar() -> None:
    spelt = {
        None: "NULL",
        True: "true",
        -7: "(-7)",
        2**63: "CAST('9223372036854775808' AS DECIMAL(19, 0))",
        Decimal("-0.10"): "CAST('-0.10' AS DECIMAL(3, 2))",
        Decimal("1E+3"): "CAST('1000' AS DECIMAL(4, 0))",
        float("inf"): "CAST('inf' AS DOUBLE)",
        "it's \\": "'it\\'s \\\\'",
        b"\x01\xff": "X'01ff'",
        date(1, 1, 1): "DATE '0001-01-01'",
        datetime(1, 1, 1, tzinfo=UTC): "TIMESTAMP '0001-01-01 00:00:00.000000+00:00'",
        datetime(2024, 1, 1): "TIMESTAMP '2024-01-01 00:00:00.000000+00:00'",  # noqa: DTZ001 without a zone it is UTC
        datetime(2024, 1, 1, tzinfo=UTC)
        - timedelta(microseconds=1): "TIMESTAMP '2023-12-31 23:59:59.999999+00:00'",
    }

    assert {value: spark_literal(value) for value in spelt} == spelt
