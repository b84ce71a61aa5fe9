"""Random conditions and rows of every type that a condition can compare, from a seed."""

from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random

import pyarrow as pa

from strandline.model.conditions import AllOf, AnyOf, Comparison, Condition, Negation, Operator, Scalar

TYPES: dict[str, tuple[str, pa.DataType]] = {
    "n": ("bigint", pa.int64()),
    "small": ("int", pa.int32()),
    "x": ("double", pa.float64()),
    "price": ("decimal(18,4)", pa.decimal128(18, 4)),
    "wide": ("decimal(38,0)", pa.decimal128(38, 0)),
    "t": ("string", pa.string()),
    "on": ("date", pa.date32()),
    "at": ("timestamp", pa.timestamp("us", "UTC")),
    "ok": ("boolean", pa.bool_()),
}
"""By column: its type as Spark spells it, and as Arrow does."""

POOLS: dict[str, list[Scalar]] = {
    "n": [0, 1, -1, 9_999, 10_000, 2**53 + 1, 2**53, 2**63 - 1, -(2**63)],
    "small": [0, 1, -1, 2**31 - 1, -(2**31)],
    "x": [0.0, -0.0, 1.5, -1.5, 5e-324, 1e308, float("inf"), float("-inf"), float("nan"), 2.0**63],
    "price": [Decimal("0.0000"), Decimal("-0.0001"), Decimal("0.1000"), Decimal("99999999999999.9999")],
    "wide": [Decimal(2**63), Decimal(2**63 - 1), Decimal(10**38 - 1), Decimal(-(10**38) + 1), Decimal(0)],
    "t": [
        "",
        "a",
        "A",
        "é",
        "e\u0301",
        "ß",
        "\uff21\uff22",
        "日本",
        "שלום",
        "😀",
        "\uffff",
        "a'b",
        "\\",
        "a\nb",
        '"',
        "%_",
    ],
    "on": [date(1, 1, 1), date(1582, 10, 4), date(1582, 10, 15), date(2024, 2, 29), date(9999, 12, 31)],
    "at": [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(1500, 3, 1, 12, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
        datetime(2024, 2, 29, 23, 59, 59, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ],
    "ok": [True, False],
}
"""By column: values near which comparisons go wrong. Rows and conditions use the same ones."""

_ORDERED = [Operator.EQ, Operator.NEQ, Operator.GT, Operator.GTE, Operator.LT, Operator.LTE]
Row = dict[str, Scalar | None]


def draw_rows(random: Random, count: int) -> list[Row]:
    """The first row has only NULLs."""
    rows: list[Row] = [dict.fromkeys(POOLS)]
    while len(rows) < count:
        rows.append({name: random.choice([None, *pool]) for name, pool in POOLS.items()})
    return rows


def draw_condition(random: Random, depth: int = 4) -> Condition:
    if depth == 0 or random.random() < 0.4:
        return _draw_comparison(random)
    if random.random() < 0.3:
        return Negation(part=draw_condition(random, depth - 1))
    parts = tuple(draw_condition(random, depth - 1) for _ in range(random.choice([0, 1, 2, 2, 3])))
    return AllOf(parts=parts) if random.random() < 0.5 else AnyOf(parts=parts)


def _draw_comparison(random: Random) -> Comparison:
    column = random.choice(list(POOLS))
    operator = random.choice([*_ORDERED, Operator.IN, Operator.NIN, Operator.IS_NULL])
    if operator is Operator.IS_NULL:
        return Comparison(column=column, operator=operator, value=random.random() < 0.5)
    if operator in (Operator.IN, Operator.NIN):
        # Spark turns a list of more than ten values into a set.
        values = random.choices(POOLS[column], k=random.choice([0, 1, 2, 12]))
        return Comparison(column=column, operator=operator, value=tuple(values))
    return Comparison(column=column, operator=operator, value=random.choice(POOLS[column]))
