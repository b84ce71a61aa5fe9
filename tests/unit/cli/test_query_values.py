"""Values of every type, as `query` writes them in JSON, CSV and tables."""

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from strandline.lake.plain_values import interval_text, plain_column
from tests.unit.cli.builders import INSTANT, Shop, make_shop, printed

NAN, INF = float("nan"), float("inf")
POINT = pa.struct([("x", pa.float64()), ("at", INSTANT), ("d", pa.decimal128(10, 4))])
FIRST, LAST = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, UTC)
CASES: list[tuple[pa.DataType, Any, Any]] = [
    (pa.bool_(), True, True),
    (pa.int8(), -128, -128),
    (pa.int64(), 9223372036854775807, 9223372036854775807),
    (pa.float32(), 0.5, 0.5),
    (pa.float64(), -0.0, -0.0),
    (pa.float64(), NAN, "NaN"),
    (pa.float64(), -INF, "-Infinity"),
    (pa.float64(), 1e300, 1e300),
    (pa.decimal128(38, 10), Decimal("0E-10"), "0.0000000000"),
    (pa.decimal128(38, 0), Decimal("9" * 38), "9" * 38),
    (pa.decimal128(12, 2), Decimal("-1.5"), "-1.50"),
    (pa.string(), "", ""),
    (pa.string(), 'a"b\n\u2028\U0001f600', 'a"b\n\u2028\U0001f600'),
    (pa.string(), "x" * 200_000, "x" * 200_000),
    (pa.binary(), b"\x00\xff", "00ff"),
    (pa.binary(), b"", ""),
    (pa.date32(), date(1, 1, 1), "0001-01-01"),
    (pa.date32(), date(999, 12, 31), "0999-12-31"),
    (pa.date32(), date(9999, 12, 31), "9999-12-31"),
    (INSTANT, FIRST, "0001-01-01T00:00:00.000000Z"),
    (INSTANT, LAST, "9999-12-31T23:59:59.999999Z"),
    (INSTANT, datetime(1582, 10, 4, 12, tzinfo=UTC), "1582-10-04T12:00:00.000000Z"),
    (pa.timestamp("us"), datetime(2024, 3, 31, 2, 30), "2024-03-31T02:30:00.000000Z"),  # noqa: DTZ001 it has no zone
    (pa.list_(pa.float64()), [NAN, None, 1.5], ["NaN", None, 1.5]),
    (pa.list_(pa.binary()), [b"a", None], ["61", None]),
    (pa.list_(pa.list_(pa.date32())), [[date(1, 1, 1)], None, []], [["0001-01-01"], None, []]),
    (
        POINT,
        {"x": INF, "at": FIRST, "d": Decimal("1.5")},
        {"x": "Infinity", "at": "0001-01-01T00:00:00.000000Z", "d": "1.5000"},
    ),
    (POINT, {"x": None, "at": None, "d": None}, {"x": None, "at": None, "d": None}),
    (pa.list_(POINT), [None, {"x": NAN, "at": None, "d": None}], [None, {"x": "NaN", "at": None, "d": None}]),
    (pa.map_(pa.string(), pa.decimal128(5, 2)), [("a", Decimal(1)), ("", None)], {"a": "1.00", "": None}),
    (pa.map_(pa.int32(), pa.list_(pa.float64())), [(7, [NAN])], {"7": ["NaN"]}),
    (pa.map_(pa.bool_(), pa.int32()), [(True, 1)], {"true": 1}),
    (
        pa.map_(INSTANT, pa.date32()),
        [(FIRST, date(9999, 1, 1))],
        {"0001-01-01T00:00:00.000000Z": "9999-01-01"},
    ),
    (pa.struct([("m", pa.map_(pa.string(), pa.int32()))]), {"m": [("k", None)]}, {"m": {"k": None}}),
    (pa.list_(pa.map_(pa.string(), POINT)), [[("k", None)]], [{"k": None}]),
]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return make_shop(tmp_path)


def test_every_type_has_its_json_form(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.write("orders_facts", *_table())

    code = shop.call("query", "SELECT * FROM orders_facts", "--output", "json")

    answer = printed(capsys)
    assert code == 0
    assert answer["notes"] == []
    values, missing = answer["rows"]
    assert [repr(value) for value in values] == [repr(expected) for _, _, expected in CASES]
    assert set(missing) == {None}


def test_every_type_has_a_text(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.write("orders_facts", *_table())
    number = next(i for i, (kind, _, _) in enumerate(CASES) if kind == pa.list_(POINT))
    sql = f"SELECT c1, c5, c8, c14, c16, c19, c{number} FROM orders_facts"

    shop.call("query", sql, "--output", "csv")
    lines = capsys.readouterr().out.splitlines()
    shop.call("query", sql)
    table = capsys.readouterr().out

    nested = '[null, {"x": "NaN", "at": null, "d": null}]'
    quoted = nested.replace('"', '""')
    assert lines[1] == f'-128,NaN,0.0000000000,00ff,0001-01-01,0001-01-01T00:00:00.000000Z,"{quoted}"'
    assert lines[2] == ",,,,,,"
    assert table.splitlines()[2].split("  ")[-1] == nested


def test_what_python_has_no_value_for_is_text() -> None:
    days = pa.array([2932897, -719529], pa.date32())
    instants = pa.array([253402300800000000, -62167219200000001, None], INSTANT)

    assert plain_column(pa.chunked_array([days])) == ["10000-01-01", "-0001-12-31"]
    assert plain_column(pa.chunked_array([instants])) == [
        "10000-01-01T00:00:00.000000Z",
        "-0001-12-31T23:59:59.999999Z",
        None,
    ]
    assert plain_column(pa.array([[2932897]], pa.list_(pa.date32()))) == [["10000-01-01"]]


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ((0, 0, 0), "PT0S"),
        ((0, 0, 2_676_600_123_456), "P30DT23H30M0.123456S"),
        ((0, 0, -3_600_000_000), "-PT1H"),
        ((0, 0, -86_400_000_000), "-P1D"),
        ((14, 3, 5_000_000), "P14M3DT5S"),
        ((1, -2, 0), "P1M-2D"),
        ((0, 1, -60_000_000), "P1DT-1M"),
        ((-1, -2, -500_000), "-P1M2DT0.5S"),
    ],
)
def test_an_interval_is_iso_8601(parts: tuple[int, int, int], text: str) -> None:
    assert interval_text(*parts) == text


def _table() -> tuple[list[dict[str, Any]], pa.Schema]:
    """A column per case: a row with its value, and one with NULL."""
    schema = pa.schema([(f"c{i}", kind) for i, (kind, _, _) in enumerate(CASES)])
    return [{f"c{i}": value for i, (_, value, _) in enumerate(CASES)}, dict.fromkeys(schema.names)], schema
