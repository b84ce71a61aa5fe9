"""Values and tables as they are printed."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from strandline.cli.tables import as_text, render_table
from strandline.model.json_values import json_value
from strandline.pages.wording import share, size


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2024, 1, 13, 8, 30, tzinfo=UTC), "2024-01-13T08:30:00.000000Z"),
        (datetime.fromisoformat("2024-01-13T14:00:00.5+05:30"), "2024-01-13T08:30:00.500000Z"),
        (date(2024, 1, 13), "2024-01-13"),
        (Decimal("5000.00"), "5000.00"),
        (Decimal("1E+3"), "1000"),
        (Decimal("1E-7"), "0.0000001"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
        (1.5, 1.5),
        (9_007_199_254_740_993, 9_007_199_254_740_993),
        (True, True),
        (None, None),
        ([Decimal("1.0"), {"a": date(2024, 1, 1)}], ["1.0", {"a": "2024-01-01"}]),
    ],
)
def test_a_value_has_one_form_in_json(value: object, expected: object) -> None:
    assert json_value(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "NULL"),
        (True, "true"),
        (datetime(2024, 1, 13, 8, 30, tzinfo=UTC), "2024-01-13 08:30:00"),
        (datetime(2024, 1, 13, 8, 30, 0, 120000, tzinfo=UTC), "2024-01-13 08:30:00.12"),
        ("two\nlines", "two\\nlines"),
        (["a", 0, 1], '["a", 0, 1]'),
    ],
)
def test_a_value_is_one_line_for_people(value: object, expected: str) -> None:
    assert as_text(value) == expected


def test_numbers_stand_to_the_right_and_lines_end_without_blanks() -> None:
    table = render_table(("name", "rows", "note"), [("a", 5, ""), ("longer", 1234, "x")], grouped=True)

    assert table.splitlines() == [
        "name     rows  note",
        "------  -----  ----",
        "a           5",
        "longer  1,234  x",
    ]


def test_the_last_column_wraps_to_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")

    table = render_table(("node", "because"), [("demand", "word " * 40)], wrap_last=True)

    assert len(table.splitlines()) == 5
    assert max(len(line) for line in table.splitlines()) <= 80


def test_wide_characters_take_two_columns() -> None:
    assert render_table(("名", "n"), [("東京", 1)]).splitlines() == ["名    n", "----  -", "東京  1"]


@pytest.mark.parametrize(
    ("number", "expected"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (250_000, "250 kB"), (3_200_000_000, "3.2 GB")],
)
def test_bytes_have_the_unit_people_use(number: int, expected: str) -> None:
    assert size(number) == expected


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [(1, 0, ""), (0, 5, "0 %"), (5, 5, "100 %"), (44, 2585, "1.7 %"), (1, 100_000, "< 0.1 %")],
)
def test_a_share_has_the_digits_that_say_something(part: int, whole: int, expected: str) -> None:
    assert share(part, whole) == expected
