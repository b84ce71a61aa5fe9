"""Where the rows of a task lie, as conditions of two kinds of SQL and for the statistics of files."""

from datetime import date

import pytest

from strandline.lake.near import ANYWHERE, Among, Near

MAY, JUNE, JULY = date(2024, 5, 1), date(2024, 6, 1), date(2024, 7, 1)


def test_texts_are_quoted_as_each_engine_reads_them() -> None:
    among = Among(column='odd `name"', values=("it's", "back\\slash"))

    assert among.spell("t.") == "t.`odd ``name\"` IN ('it\\'s', 'back\\\\slash')"
    assert among.ask() == "\"odd `name\"\"\" IN ('it''s', 'back\\slash')"


def test_whole_numbers_below_zero_are_one_literal() -> None:
    assert Among(column="n", values=(-7, 7)).spell() == "`n` IN ((-7), 7)"


def test_ranges_are_alternatives_and_values_are_not() -> None:
    near = Near(dates=((None, MAY), (JUNE, JULY)), among=(Among(column="a", values=(1,)),))

    assert near.spell() == (
        "(`date` < DATE'2024-05-01' OR `date` >= DATE'2024-06-01' AND `date` < DATE'2024-07-01')"
        " AND `a` IN (1)"
    )
    assert near.ask() == (
        "(\"date\" < DATE '2024-05-01' OR \"date\" >= DATE '2024-06-01' AND \"date\" < DATE '2024-07-01')"
        ' AND "a" IN (1)'
    )


def test_no_range_is_nowhere_and_a_range_without_bounds_is_everywhere() -> None:
    assert Near(dates=()).spell() == "(false)"
    assert ANYWHERE.spell() == "(true)"


@pytest.mark.parametrize(
    ("first", "last", "contained"),
    [
        (MAY, MAY, False),
        (MAY, JUNE, True),
        (JUNE, JUNE, True),
        (JULY, JULY, False),
        (MAY, JULY, True),
        (None, MAY, False),
        (None, None, True),
        (JULY, None, False),
    ],
)
def test_a_file_is_skipped_only_if_all_its_dates_are_outside(
    first: date | None, last: date | None, contained: bool
) -> None:
    assert Near(dates=((JUNE, JULY),)).may_contain(first, last) is contained
