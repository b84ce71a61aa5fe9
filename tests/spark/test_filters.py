"""Filters in Spark: every operator on every kind of value, against plain Python. NULL never matches (L5)."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from operator import eq, ge, gt, le, lt, ne
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.compute.filtering import any_of, filter_column
from strandline.model.filters import Comparison, Filter, Operator
from strandline.model.project import Settings
from strandline.spark.session import get_session

pytestmark = pytest.mark.spark

OLD, LATE, NEXT = (
    datetime(1500, 1, 1, tzinfo=UTC),
    datetime(2024, 2, 29, 23, 59, tzinfo=UTC),
    datetime(2024, 3, 1, tzinfo=UTC),
)
COLUMNS: dict[str, tuple[str, list[object]]] = {
    "n": ("bigint", [-1, 0, 7, None]),
    "t": ("string", ["", "a'b", "z", None]),
    "d": ("decimal(38,2)", [Decimal("-0.10"), Decimal("7.00"), Decimal("12345678901234567890.12"), None]),
    "on": ("date", [date(1500, 1, 1), date(2024, 2, 29), date(2024, 3, 1), None]),
    "at": (
        "timestamp",
        [
            datetime(1500, 1, 1, tzinfo=UTC),
            datetime(2024, 2, 29, 23, 59, tzinfo=UTC),
            datetime(2024, 3, 1, tzinfo=UTC),
            None,
        ],
    ),
    "ok": ("boolean", [False, True, True, None]),
}
ORDERED: dict[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQ: eq,
    Operator.NEQ: ne,
    Operator.GT: gt,
    Operator.GTE: ge,
    Operator.LT: lt,
    Operator.LTE: le,
}


def expected(column: str) -> list[tuple[Filter, set[int]]]:
    """Each filter over a column, with the indexes of the rows that match."""
    values = COLUMNS[column][1]
    there = [(i, v) for i, v in enumerate(values) if v is not None]
    picked = there[1][1]

    def filter_of(operator: Operator, value: object) -> Filter:
        return Filter(comparisons=(Comparison(column=column, operator=operator, value=value),))  # type: ignore[arg-type]

    cases = [
        (filter_of(o, picked), {i for i, v in there if holds(v, picked)}) for o, holds in ORDERED.items()
    ]
    two = (there[0][1], there[2][1])
    cases.append((filter_of(Operator.IN, two), {i for i, v in there if v in two}))
    cases.append((filter_of(Operator.NIN, two), {i for i, v in there if v not in two}))
    cases.append((filter_of(Operator.IS_NULL, True), {3}))
    cases.append((filter_of(Operator.IS_NULL, False), {0, 1, 2}))
    return cases


def test_every_operator_holds_the_rows_that_plain_python_holds() -> None:
    session = get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    schema = ", ".join(f"`{name}` {kind}" for name, (kind, _) in COLUMNS.items())
    rows = session.createDataFrame(
        [(i, *(values[i] for _, values in COLUMNS.values())) for i in range(4)], f"place int, {schema}"
    )
    cases = [(name, filter, held) for name in COLUMNS for filter, held in expected(name)]

    # One query for all of them, with a column per case.
    matches = rows.select(
        "place", *(filter_column(filter).alias(f"c{i}") for i, (_, filter, _) in enumerate(cases))
    ).collect()

    for i, (name, filter, held) in enumerate(cases):
        assert {row["place"] for row in matches if row[f"c{i}"]} == held, (name, filter)
    both = any_of([cases[0][1], cases[1][1]])
    assert {row["place"] for row in rows.where(both).collect()} == cases[0][2] | cases[1][2]
    assert rows.where(any_of([])).count() == 0


@pytest.mark.parametrize("stored", [0.0, -0.0])
@pytest.mark.parametrize("operator", [Operator.EQ, Operator.GTE, Operator.LTE])
def test_a_zero_that_is_stored_is_found_whatever_its_sign(
    stored: float, operator: Operator, tmp_path: Path
) -> None:
    session = get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    pq.write_table(pa.table({"ratio": [stored, 5.0]}), tmp_path / "rows.parquet")  # with a dictionary
    rows = session.read.parquet(str(tmp_path / "rows.parquet")).where("ratio < 1")

    for value in (0.0, -0.0):
        filter = Filter(comparisons=(Comparison(column="ratio", operator=operator, value=value),))
        assert rows.where(filter_column(filter)).count() == 1, value
