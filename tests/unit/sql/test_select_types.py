"""The type of a `select`, where a default can be checked against it before Spark is asked."""

import pytest

from strandline.sql.leaves import cut_select
from strandline.sql.select_types import find_select_type

COLUMNS = {"n": "int", "d": "decimal(30,2)", "x": "double", "t": "string", "at": "timestamp"}


@pytest.mark.parametrize(
    ("select", "type_"),
    [
        ("count(*)", "bigint"),
        ("count(distinct T)", "bigint"),
        ("bool_or(n > 1)", "boolean"),
        ("stddev(n)", "double"),
        ("sum(n)", "bigint"),
        ("sum(d)", "decimal(38,2)"),
        ("sum(x)", "double"),
        ("avg(n)", "double"),
        ("latest(t)", "string"),
        ("max_by(at, n)", "timestamp"),
        ("MIN(D) FILTER (WHERE n > 1)", "decimal(30,2)"),
    ],
)
def test_a_type_is_known_where_it_follows_from_columns(select: str, type_: str) -> None:
    assert str(find_select_type(cut_select(select), COLUMNS.get)) == type_


@pytest.mark.parametrize(
    "select", ["latest(t, 3)", "sum(n + 1)", "sum(t)", "avg(d)", "sum(n) + 1", "sum(other)", "collect_set(n)"]
)
def test_any_other_type_is_left_to_spark(select: str) -> None:
    assert find_select_type(cut_select(select), COLUMNS.get) is None
