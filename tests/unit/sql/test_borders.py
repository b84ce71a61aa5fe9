"""What a column is compared with, if it depends on `:as_of` alone, and its value without Spark."""

from datetime import UTC, date, datetime

import pytest

from strandline.model.border_steps import evaluate
from strandline.sql.borders import find_borders, find_steps
from strandline.sql.job_sql import parse_known

AT = datetime(2024, 3, 14, 22, 30, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("condition", "columns", "elsewhere"),
    [
        ("a > :as_of", ["a"], False),
        (":as_of <= a", ["a"], False),
        ("a BETWEEN :as_of - INTERVAL 3 DAYS AND :as_of", ["a", "a"], False),
        (":as_of BETWEEN a AND b", ["a", "b"], False),
        ("NOT (a <=> local_date(:as_of)) OR b", ["a"], False),
        ("CASE WHEN a < date_trunc('month', :as_of) THEN 1 END = 1", ["a"], False),
        ("a > b", [], False),
        ("a + INTERVAL 1 DAY > :as_of", [], True),
        ("a.b > :as_of", [], True),
        ("datediff(:as_of, a) > 3", [], True),
        ("a > :as_of - make_interval(0, 0, 0, b)", [], True),
        ("a > greatest(:as_of, b)", [], True),
        (":as_of BETWEEN a AND b + INTERVAL 1 DAY", [], True),
        ("a > some_function(:as_of)", [], True),
        ("a > :as_of AND year(a) = year(:as_of)", ["a"], True),
    ],
)
def test_only_a_bare_column_against_an_understood_value_is_a_border(
    condition: str, columns: list[str], elsewhere: bool
) -> None:
    borders, found_elsewhere = find_borders(parse_known(condition))

    assert [border.column for border in borders] == columns
    assert found_elsewhere is elsewhere


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        (":as_of", AT),
        (":as_of - INTERVAL 604800 SECONDS", datetime(2024, 3, 7, 22, 30, 5, tzinfo=UTC)),
        ("(:as_of + INTERVAL '2' WEEKS)", datetime(2024, 3, 28, 22, 30, 5, tzinfo=UTC)),
        ("local_date(:as_of)", date(2024, 3, 15)),
        ("CAST(:as_of AS DATE)", date(2024, 3, 14)),
        ("to_date(:as_of)", date(2024, 3, 14)),
        ("date_trunc('month', :as_of)", datetime(2024, 3, 1, tzinfo=UTC)),
        ("date_trunc('WEEK', :as_of - INTERVAL 1 DAY)", datetime(2024, 3, 11, tzinfo=UTC)),
        (":as_of - INTERVAL 1 MONTH", None),
        ("add_months(:as_of, -1)", None),
        ("local_date(:as_of) - INTERVAL 1 DAY", None),
        ("date_trunc('quarter', :as_of)", None),
        (":as_of - INTERVAL 9999999 DAYS", None),
    ],
)
def test_a_value_is_known_without_spark_or_not_at_all(sql: str, value: datetime | date | None) -> None:
    steps = find_steps(parse_known(sql))

    assert (None if steps is None else evaluate(steps, AT, "Asia/Kolkata")) == value
