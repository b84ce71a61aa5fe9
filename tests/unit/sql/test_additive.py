"""What a `select` needs to be added to: its aggregates, and the types of what they add."""

import pytest

from strandline.model.accumulation import Adding
from strandline.model.number_types import Digits, find_digits
from strandline.sql.additive import find_addends, find_number_type
from strandline.sql.job_sql import parse_known
from strandline.sql.leaves import cut_select

TYPES = {"a": "int", "b": "bigint", "price": "decimal(18,2)", "ratio": "double"}


@pytest.mark.parametrize(
    ("select", "adding"),
    [
        ("count(*)", [Adding.COUNT]),
        ("count_if(a > 1)", [Adding.COUNT]),
        ("count(a) FILTER (WHERE a > 1) + 1", [Adding.COUNT]),
        ("sum(price) / count(*)", [Adding.SUM, Adding.COUNT]),
        ("avg(a)", [Adding.AVERAGE]),
        ("mean(a)", [Adding.AVERAGE]),
    ],
)
def test_counts_sums_and_averages_can_be_added_to(select: str, adding: list[Adding]) -> None:
    addends, refused = find_addends(cut_select(select), only_grows=False)

    assert ([addend.adding for addend in addends], refused) == (adding, "")


@pytest.mark.parametrize(
    ("select", "why"),
    [
        ("count(distinct a)", "`count(distinct ...)` depends on all rows"),
        ("sum(distinct a)", "`sum(distinct ...)` depends on all rows"),
        ("latest(a)", "`latest` depends on all rows"),
        ("try_sum(a)", "`try_sum` depends on all rows"),
        ("count(*) + median(a)", "`median` depends on all rows"),
        ("max(a)", "`max` cannot tell what is left when a row goes"),
    ],
)
def test_everything_else_is_recomputed_and_says_why(select: str, why: str) -> None:
    assert find_addends(cut_select(select), only_grows=False) == ((), why)


def test_extremes_can_be_added_to_where_rows_only_come() -> None:
    (least, greatest), refused = find_addends(cut_select("max(a) - min(b + 1)"), only_grows=True)

    assert (least.adding, least.column, refused) == (Adding.GREATEST, "a", "")
    assert (greatest.adding, greatest.column) == (Adding.LEAST, "")


@pytest.mark.parametrize(
    ("expression", "digits"),
    [
        ("a", Digits(precision=10, is_whole=True)),
        ("`a`", Digits(precision=10, is_whole=True)),
        ("-(a)", Digits(precision=10, is_whole=True)),
        ("a + 1", Digits(precision=10, is_whole=True)),
        ("a * 3000000000", Digits(precision=20, is_whole=True)),
        ("price * 1.50", Digits(precision=22, scale=4)),
        ("price - 0.005", Digits(precision=20, scale=3)),
        ("CASE WHEN ratio > 1 THEN price ELSE 0 END", Digits(precision=18, scale=2)),
        ("CASE WHEN ratio > 1 THEN a END", Digits(precision=10, is_whole=True)),
        ("if(ratio > 1, NULL, b)", Digits(precision=20, is_whole=True)),
        ("coalesce(price, 0)", Digits(precision=18, scale=2)),
        ("abs(price)", Digits(precision=18, scale=2)),
        ("CAST(ratio AS BIGINT)", Digits(precision=20, is_whole=True)),
        ("try_cast(name AS DECIMAL(12,3))", Digits(precision=12, scale=3)),
        ("ratio", None),
        ("a / 2", None),
        ("a + ratio", None),
        ("1e3", None),
        ("length(name)", None),
        ("s.a", None),
        ("CAST(a AS DOUBLE)", None),
        ("CASE WHEN a > 1 THEN a ELSE ratio END", None),
    ],
)
def test_the_type_of_what_is_added_is_known_or_nothing_is_claimed(
    expression: str, digits: Digits | None
) -> None:
    number = find_number_type(parse_known(expression))

    assert (find_digits(number, TYPES) if number else None) == digits
