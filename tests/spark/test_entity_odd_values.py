"""Entities over values that have caused mistakes: ids that barely fit, early dates, odd names, ties, NaN.

One project has them all, because a run costs more than an entity.
"""

import math
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from tests.harness import TestProject, at

pytestmark = pytest.mark.spark

YAML = """
    project: odd
    timezone: America/Sao_Paulo
    sources:
      number_events: {files: "n/*.jsonl"}
      text_events: {files: "t/*.jsonl"}
    datasets:
      numbers:
        from: number_events
        columns:
          big: {path: big, type: bigint}
          digits: {path: digits, type: "decimal(38,0)"}
          double: {path: double, type: double}
          day: {path: day, type: date}
          at: {path: at, type: timestamp}
          text: text
      texts:
        from: text_events
        columns:
          id: id
          big: big
          order: order
          rank: {path: rank, type: int}
          value: value
          n: {path: n, type: int}
        record_set: {key: [id], order_by: [rank]}
    entities:
      by_number:
        id: {big: bigint}
        by: {texts: big}
        variables:
          rows: {from: numbers, select: count(*)}
          of_digits: {from: numbers, by: digits, select: count(*)}
          of_doubles: {from: numbers, by: double, select: count(*)}
          records: {from: texts, select: count(*)}
      by_text:
        id: {name: string}
        by: {texts: big, numbers: big}
        variables: {rows: {from: numbers, select: count(*)}, records: {from: texts, select: count(*)}}
      by_day:
        id: {day: date}
        every: day
        variables:
          rows: {from: numbers, select: count(*)}
          past: {from: numbers, select: count(*), where: "at < :as_of"}
      by_spelled_time:
        id: {big: bigint}
        variables: {past: {from: numbers, select: count(*), where: "text <= :as_of"}}
      by_order:
        id: order
        variables:
          select: {from: texts, select: "latest(value)"}
          "from": {from: texts, select: "latest(value, 3)"}
          oldest: {from: texts, select: "earliest(value, 2)"}
          best: {from: texts, select: "max_by(value, n)"}
          both: {expr: "concat(`select`, '-', best)", default: none}
      everybody:
        id: [big, day]
        variables:
          a: {from: numbers, select: "count(*)", window: {column: day, last: 1 day}}
          b: {from: numbers, select: "count(*)", window: {column: at, last: 1 hour}}
          nan: {from: numbers, select: "max(double)"}
          users: {from: numbers, select: "approx_count_distinct(text)"}
          sum: {from: numbers, select: "try_sum(digits)", default: -1}
"""


BEFORE, AFTER = "2018-11-04T04:00:00+00:00", "2018-11-04T09:30:00+00:00"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> TestProject:
    """One run. Its tests only read."""
    made = TestProject.create(tmp_path_factory.mktemp("odd") / "odd", YAML)
    made.lines(
        "n/1.jsonl",
        {"big": 2**63 - 1, "digits": "9223372036854775807", "double": 9.2e18, "day": "1969-12-31"},
        {"big": -(2**63), "digits": "9223372036854775808", "double": 2.0**63, "day": "0001-01-01"},
        {
            "big": 0,
            "digits": "9" * 38,
            "double": -0.0,
            "day": "2018-11-04",
            "at": "2018-11-04T02:59:59.999999Z",
        },
        {"big": 0, "digits": "9" * 38, "double": 0.5, "day": "2018-11-04", "at": "2018-11-04T03:00:00Z"},
        {"big": 0, "digits": "-1", "double": "NaN", "day": "2018-11-03", "text": "2018-11-04 09:00:00"},
        {"big": 1, "double": "NaN", "day": "9999-12-31", "text": "2018-11-04T01:00:00"},
    )
    made.lines(
        "t/1.jsonl",
        {"id": "a", "big": "7", "order": "x", "rank": 1, "value": "one", "n": 1},
        {"id": "b", "big": " 7", "order": "x", "rank": 1, "value": "two", "n": 1},
        {"id": "c", "big": "9223372036854775808", "order": "x", "rank": 1, "value": None, "n": 1},
        {"id": "d", "big": "7.5", "order": "x", "rank": 0, "value": "zero", "n": None},
        {"id": "e", "big": "x__y", "order": "", "rank": None, "value": "", "n": None},
    )
    made.run(at(BEFORE))
    made.assert_verified()
    return made


def test_a_number_names_an_entity_if_it_is_the_same_in_the_type_of_the_id(built: TestProject) -> None:
    assert built.rows("by_number") == {
        (2**63 - 1, 1, 1, 0, 0),
        (-(2**63), 1, 0, 0, 0),
        (0, 3, 0, 1, 0),
        (1, 1, 0, 0, 0),
        (-1, 0, 1, 0, 0),
        (9_200_000_000_000_000_000, 0, 0, 1, 0),
        (7, 0, 0, 0, 2),
    }


def test_a_text_names_an_entity_as_it_is_spelled(built: TestProject) -> None:
    numbers = {(str(2**63 - 1), 1, 0), (str(-(2**63)), 1, 0), ("0", 3, 0), ("1", 1, 0)}
    texts = {("7", 0, 1), (" 7", 0, 1), (str(2**63), 0, 1), ("7.5", 0, 1), ("x__y", 0, 1)}

    assert built.rows("by_text") == numbers | texts


def test_ties_are_decided_alike_for_one_row_and_for_several(built: TestProject) -> None:
    rows = {row[0]: row[1:] for row in built.query("SELECT * FROM by_order")}

    newest, three, oldest, best, both = rows["x"]
    assert set(three) == {"one", "two", None}, "the three of rank 1, and not the one of rank 0"
    assert three[0] == newest
    assert oldest == ["zero", three[-1]]
    assert best in ("one", "two", None)
    assert both == (f"{newest}-{best}" if newest and best else "none")
    assert rows[""] == ("", [""], [""], None, "none")


def test_dates_are_midnights_of_the_time_zone_at_both_ends_of_the_calendar(built: TestProject) -> None:
    """On 2018-11-04 there was no midnight in São Paulo: the day began at one o'clock, 03:00 UTC."""
    sums = built.query("SELECT big, day, a, b, nan, sum FROM everybody")
    rows = {(big, day): rest for big, day, *rest in sums}

    assert rows[0, date(2018, 11, 4)] == [2, 1, 0.5, Decimal(-1)], "a sum that overflows is NULL"
    assert rows[0, date(2018, 11, 3)][:2] == [0, 0]
    assert rows[1, date(9999, 12, 31)][:2] == [0, 0]
    assert math.isnan(rows[1, date(9999, 12, 31)][2])
    assert rows[-(2**63), date(1, 1, 1)] == [0, 0, 2.0**63, Decimal(2**63)]
    assert len(rows) == 5


def test_the_clock_reaches_times_that_are_spelled_and_the_year_1(built: TestProject, tmp_path: Path) -> None:
    """Texts are in another order than the times that they spell, so their ranges in files say nothing."""
    project = built.copy(tmp_path / "odd")

    project.run(at(AFTER))

    assert project.rows("by_spelled_time") == {(2**63 - 1, 0), (-(2**63), 0), (0, 1), (1, 1)}
    for time in ("0001-01-01T00:00:00+00:00", "9999-12-31T23:00:00+00:00"):
        project.run(at(time))
        past = sum(n for (n,) in project.query("SELECT past FROM by_day"))
        assert past == (2 if time.startswith("9") else 0)
        project.assert_verified("by_day", "by_spelled_time", "everybody")
