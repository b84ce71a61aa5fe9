"""Partitions: their names, what each contains, and when one is final."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.model.partitions import (
    Span,
    cover,
    decode_group,
    encode_group,
    find_edges,
    find_span,
    is_final,
    name_number,
)
from strandline.model.project import Calendar, Partitioning, Unit

UTC_DAYS = Calendar()
BERLIN = Calendar(timezone="Europe/Berlin")
KOLKATA = Calendar(timezone="Asia/Kolkata")
SPELT = {Unit.HOUR: "%Y-%m-%dT%H", Unit.DAY: "%Y-%m-%d", Unit.MONTH: "%Y-%m"}

sizes = st.integers(1, 10**12)
numbers = st.integers(-(2**62), 2**62)
units = st.sampled_from(Unit)
zones = st.sampled_from(
    [
        "UTC",
        "Asia/Kolkata",
        "Europe/Berlin",
        "America/New_York",
        "America/Sao_Paulo",  # daylight saving began at midnight
        "America/Havana",  # and ends at one, so that midnight comes twice
        "Australia/Lord_Howe",  # by half an hour
        "Pacific/Apia",  # which left out a day
    ]
)
instants = st.datetimes(datetime(1975, 1, 1), datetime(2090, 1, 1)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001 given its zone


def by_size(size: int, *by: str, final_after: int | None = None) -> Partitioning:
    return Partitioning(column="block_number", size=size, by=by, final_after=final_after)


def by_unit(unit: Unit, *by: str, final_after: int | None = None) -> Partitioning:
    return Partitioning(column="block_at", unit=unit, by=by, final_after=final_after)


def name_instant(unit: Unit, calendar: Calendar, at: datetime) -> str:
    """The name that Spark gives it: the local time, truncated to the unit."""
    return at.astimezone(ZoneInfo(calendar.timezone)).strftime(SPELT[unit])


def numbers_of(partitioning: Partitioning, name: str) -> tuple[int, int]:
    span = find_span(partitioning, UTC_DAYS, name)
    assert span is not None
    assert isinstance(span.start, int)
    assert isinstance(span.end, int)
    return span.start, span.end


def times_of(unit: Unit, name: str, calendar: Calendar = UTC_DAYS) -> tuple[datetime, datetime]:
    span = find_span(by_unit(unit), calendar, name)
    assert span is not None
    assert isinstance(span.start, datetime)
    assert isinstance(span.end, datetime)
    return span.start, span.end


# numbers


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (0, "0-10"),
        (9, "0-10"),
        (10, "10-20"),
        (1_000_009, "1000000-1000010"),
        (-1, "-10-0"),
        (-10, "-10-0"),
        (-11, "-20--10"),
    ],
)
def test_a_number_lies_in_the_range_that_starts_at_or_below_it(value: int, name: str) -> None:
    assert name_number(by_size(10), value) == name


def test_a_range_holds_its_start_and_not_its_end() -> None:
    assert numbers_of(by_size(10_000), "1000000-1010000") == (1_000_000, 1_010_000)
    assert numbers_of(by_size(10), "-20--10") == (-20, -10)


@given(sizes, numbers)
def test_the_span_of_a_numbers_partition_holds_it_and_names_it_again(size: int, value: int) -> None:
    partitioning = by_size(size)
    name = name_number(partitioning, value)

    start, end = numbers_of(partitioning, name)

    assert start <= value < end == start + size
    assert {name_number(partitioning, start), name_number(partitioning, end - 1)} == {name}


@given(sizes, numbers)
def test_neighbours_of_numbers_share_none_and_leave_none_out(size: int, value: int) -> None:
    partitioning = by_size(size)

    start, end = numbers_of(partitioning, name_number(partitioning, value))

    assert numbers_of(partitioning, name_number(partitioning, end))[0] == end
    assert numbers_of(partitioning, name_number(partitioning, start - 1))[1] == start


# times


@given(units, zones, instants)
def test_the_span_of_an_instants_partition_holds_it_and_names_it_again(
    unit: Unit, zone: str, at: datetime
) -> None:
    calendar = Calendar(timezone=zone)
    name = name_instant(unit, calendar, at)

    start, end = times_of(unit, name, calendar)

    assert start <= at < end
    assert {
        name_instant(unit, calendar, start),
        name_instant(unit, calendar, end - timedelta(microseconds=1)),
    } == {name}


@given(units, zones, instants)
def test_neighbours_in_time_share_no_instant_and_leave_none_out(unit: Unit, zone: str, at: datetime) -> None:
    calendar = Calendar(timezone=zone)

    start, end = times_of(unit, name_instant(unit, calendar, at), calendar)

    assert times_of(unit, name_instant(unit, calendar, end), calendar)[0] == end
    assert (
        times_of(unit, name_instant(unit, calendar, start - timedelta(microseconds=1)), calendar)[1] == start
    )


def test_a_day_is_one_of_the_projects_time_zone() -> None:
    assert times_of(Unit.DAY, "2024-03-05") == (
        datetime(2024, 3, 5, tzinfo=UTC),
        datetime(2024, 3, 6, tzinfo=UTC),
    )
    assert times_of(Unit.DAY, "2024-03-05", KOLKATA) == (
        datetime(2024, 3, 4, 18, 30, tzinfo=UTC),
        datetime(2024, 3, 5, 18, 30, tzinfo=UTC),
    )


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("2024-03-30", 24),
        ("2024-03-31", 23),
        ("2024-04-01", 24),
        ("2024-10-26", 24),
        ("2024-10-27", 25),
        ("2024-10-28", 24),
    ],
)
def test_the_days_on_which_clocks_are_changed_have_23_and_25_hours(name: str, hours: int) -> None:
    start, end = times_of(Unit.DAY, name, BERLIN)

    assert end - start == timedelta(hours=hours)


def test_a_day_whose_last_hour_comes_twice_ends_with_the_second_one() -> None:
    """America/St_Johns went back at 00:01 until 2011: 23:01 to 24:00 of the day before came again."""
    newfoundland = Calendar(timezone="America/St_Johns")

    begun, ended = times_of(Unit.DAY, "2010-11-06", newfoundland)
    following, _ = times_of(Unit.DAY, "2010-11-07", newfoundland)

    assert begun == datetime.fromisoformat("2010-11-06T02:30+00:00")
    assert ended == datetime.fromisoformat("2010-11-07T03:30+00:00")
    assert following == datetime.fromisoformat("2010-11-07T02:30+00:00")


@pytest.mark.parametrize(
    ("name", "start", "minutes"),
    [
        ("2024-03-31T01", "2024-03-31T00:00+00:00", 60),
        ("2024-03-31T03", "2024-03-31T01:00+00:00", 60),
        ("2024-10-27T01", "2024-10-26T23:00+00:00", 60),
        ("2024-10-27T02", "2024-10-27T00:00+00:00", 120),
        ("2024-10-27T03", "2024-10-27T02:00+00:00", 60),
    ],
)
def test_an_hour_that_comes_twice_is_one_partition(name: str, start: str, minutes: int) -> None:
    begun, ended = times_of(Unit.HOUR, name, BERLIN)

    assert begun == datetime.fromisoformat(start)
    assert ended - begun == timedelta(minutes=minutes)


@pytest.mark.parametrize(
    ("name", "hours"),
    [
        ("2024-02", 29 * 24),
        ("2023-02", 28 * 24),
        ("2024-03", 31 * 24 - 1),
        ("2024-10", 31 * 24 + 1),
        ("2024-12", 31 * 24),
    ],
)
def test_a_month_is_as_long_as_its_days(name: str, hours: int) -> None:
    start, end = times_of(Unit.MONTH, name, BERLIN)

    assert end - start == timedelta(hours=hours)


def test_december_is_followed_by_january() -> None:
    assert times_of(Unit.MONTH, "2024-12") == (
        datetime(2024, 12, 1, tzinfo=UTC),
        datetime(2025, 1, 1, tzinfo=UTC),
    )


# rows without value, groups, names that are none


@pytest.mark.parametrize("partitioning", [by_size(10), by_unit(Unit.DAY)], ids=["numbers", "times"])
def test_rows_without_value_are_a_partition_of_their_own(partitioning: Partitioning) -> None:
    assert find_span(partitioning, UTC_DAYS, "null") == Span(group="", start=None, end=None)


@pytest.mark.parametrize(
    ("partitioning", "name", "group"),
    [
        (by_size(10, "chain_id"), "1/0-10", "1"),
        (by_size(10, "chain_id"), "-1/-10-0", "-1"),
        (by_size(10, "chain_id"), "null/0-10", "null"),
        (by_size(10, "chain_id", "shard"), "1/a/0-10", "1/a"),
        (by_unit(Unit.DAY, "chain_id"), "main-net/2024-03-05", "main-net"),
    ],
)
def test_a_group_stands_before_the_range(partitioning: Partitioning, name: str, group: str) -> None:
    span = find_span(partitioning, UTC_DAYS, name)

    assert span is not None
    assert span.group == group
    plain = Partitioning(column="x", size=partitioning.size, unit=partitioning.unit)
    assert replace(span, group="") == find_span(plain, UTC_DAYS, name.split("/")[-1])


@given(st.lists(st.none() | st.just("null") | st.text(min_size=1), min_size=1, max_size=3))
def test_values_of_any_text_stand_in_a_name_and_are_read_back_from_it(values: list[str | None]) -> None:
    by = [f"column_{place}" for place in range(len(values))]

    span = find_span(by_size(10, *by), UTC_DAYS, f"{encode_group(values)}/-10-0")

    assert span is not None
    assert decode_group(span.group) == values
    assert (span.start, span.end) == (-10, 0)


@given(st.lists(st.text(), min_size=2, max_size=2), st.lists(st.text(), min_size=2, max_size=2))
def test_no_two_groups_share_a_name(one: list[str], other: list[str]) -> None:
    assert (encode_group(one) == encode_group(other)) == (one == other)


def test_a_slash_in_a_value_is_no_second_group() -> None:
    assert encode_group(["a/b", "50%", None]) == "a%2Fb/50%25/null"
    assert encode_group(["a/b", "c"]) != encode_group(["a", "b/c"])


def test_each_group_has_rows_without_value_of_its_own() -> None:
    assert find_span(by_size(10, "chain_id"), UTC_DAYS, "7/null") == Span(group="7", start=None, end=None)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "0",
        "0-",
        "-10",
        "5-15",
        "0-11",
        "10-0",
        "00-10",
        "0-010",
        "-0-10",
        "+0-10",
        "0 - 10",
        "0-10 ",
        "a-b",
        "NULL",
        "1/0-10",
        "2024-03-05",
    ],
)
def test_a_name_that_no_range_has_has_no_span(name: str) -> None:
    assert find_span(by_size(10), UTC_DAYS, name) is None


@pytest.mark.parametrize(
    ("unit", "name"),
    [
        (Unit.DAY, ""),
        (Unit.DAY, "2024-03"),
        (Unit.DAY, "2024-3-5"),
        (Unit.DAY, "2023-02-29"),
        (Unit.DAY, "2024-03-05T00"),
        (Unit.DAY, "2024-03-05 "),
        (Unit.DAY, "0-10"),
        (Unit.DAY, "1/2024-03-05"),
        (Unit.HOUR, "2024-03-05"),
        (Unit.HOUR, "2024-03-05T24"),
        (Unit.HOUR, "2024-03-05T7"),
        (Unit.MONTH, "2024-13"),
        (Unit.MONTH, "2024-03-05"),
    ],
)
def test_a_name_that_no_time_has_has_no_span(unit: Unit, name: str) -> None:
    assert find_span(by_unit(unit), UTC_DAYS, name) is None


@pytest.mark.parametrize("name", ["0-10", "null", "1/0-10", "1/a/b/0-10", "1/a/5-15", "1/a/"])
def test_a_name_without_each_group_has_no_span(name: str) -> None:
    assert find_span(by_size(10, "chain_id", "shard"), UTC_DAYS, name) is None


# finality

TEN = Span(group="", start=0, end=10)
NEW_YEAR = Span(group="", start=datetime(2024, 1, 1, tzinfo=UTC), end=datetime(2024, 1, 2, tzinfo=UTC))


@pytest.mark.parametrize(
    ("final_after", "tip", "final"),
    [(0, 8, False), (0, 9, True), (100, 108, False), (100, 109, True), (100, 10_000, True), (None, 0, True)],
)
def test_a_range_is_final_when_its_last_number_lies_so_far_behind_the_tip(
    final_after: int | None, tip: int, *, final: bool
) -> None:
    assert is_final(by_size(10, final_after=final_after), TEN, {"": tip}) is final


@pytest.mark.parametrize(
    ("final_after", "tip", "final"),
    [
        (0, datetime(2024, 1, 1, 23, 59, 59, 999999, tzinfo=UTC), False),
        (0, datetime(2024, 1, 2, tzinfo=UTC), True),
        (7200, datetime(2024, 1, 2, 1, 59, 59, 999999, tzinfo=UTC), False),
        (7200, datetime(2024, 1, 2, 2, tzinfo=UTC), True),
        (7200, datetime(2024, 1, 2, 7, 29, tzinfo=ZoneInfo("Asia/Kolkata")), False),
        (7200, datetime(2024, 1, 2, 7, 30, tzinfo=ZoneInfo("Asia/Kolkata")), True),
        (86_400, date(2024, 1, 2), False),
        (86_400, date(2024, 1, 3), True),
        (None, datetime(2023, 1, 1, tzinfo=UTC), True),
    ],
)
def test_a_day_is_final_when_its_end_lies_so_far_behind_the_newest(
    final_after: int | None, tip: date, *, final: bool
) -> None:
    assert is_final(by_unit(Unit.DAY, final_after=final_after), NEW_YEAR, {"": tip}) is final


@pytest.mark.parametrize(
    "zone", ["America/New_York", "Pacific/Honolulu", "UTC", "Asia/Kolkata", "Pacific/Kiritimati"]
)
@pytest.mark.parametrize(
    ("final_after", "tip", "final"),
    [
        (0, date(2024, 1, 1), False),
        (0, date(2024, 1, 2), True),
        (3600, date(2024, 1, 2), False),
        (3600, date(2024, 1, 3), True),
        (86_400, date(2024, 1, 2), False),
        (86_400, date(2024, 1, 3), True),
    ],
)
def test_a_day_of_dates_is_final_at_the_same_date_in_every_zone(
    final_after: int, tip: date, zone: str, *, final: bool
) -> None:
    days = by_unit(Unit.DAY, final_after=final_after)
    span = find_span(days, Calendar(timezone=zone), "2024-01-01")
    assert span is not None

    assert is_final(days, span, {"": tip}) is final


@pytest.mark.parametrize("zone", ["America/New_York", "UTC", "Asia/Kolkata"])
@pytest.mark.parametrize("tip", [date.min, date.max])
def test_the_first_and_the_last_date_are_tips_too(tip: date, zone: str) -> None:
    days = by_unit(Unit.DAY, final_after=172_800)
    span = find_span(days, Calendar(timezone=zone), "2024-01-01")
    assert span is not None

    assert is_final(days, span, {"": tip}) is (tip == date.max)


def test_a_column_without_a_zone_is_taken_as_utc() -> None:
    naive = datetime(2024, 1, 2)  # noqa: DTZ001 what is tested

    assert is_final(by_unit(Unit.DAY, final_after=0), NEW_YEAR, {"": naive})
    assert not is_final(by_unit(Unit.DAY, final_after=1), NEW_YEAR, {"": naive})


def test_each_group_has_a_tip_of_its_own() -> None:
    partitioning = by_size(10, "chain_id", final_after=5)
    tips = {"1": 1000, "2": 3}

    assert is_final(partitioning, Span(group="1", start=0, end=10), tips)
    assert not is_final(partitioning, Span(group="2", start=0, end=10), tips)
    assert not is_final(partitioning, Span(group="3", start=0, end=10), tips)


def test_rows_without_value_wait_for_nothing() -> None:
    assert is_final(by_size(10, final_after=5), Span(group="", start=None, end=None), {})


def test_a_tip_of_another_kind_makes_nothing_final() -> None:
    assert not is_final(by_unit(Unit.DAY, final_after=0), NEW_YEAR, {"": 10**12})
    assert not is_final(by_size(10, final_after=0), TEN, {"": datetime(2024, 1, 1, tzinfo=UTC)})


@given(sizes, st.integers(0, 10**6), numbers, numbers)
def test_what_is_final_stays_final_as_the_tip_moves_on(
    size: int, final_after: int, value: int, tip: int
) -> None:
    partitioning = by_size(size, final_after=final_after)
    span = find_span(partitioning, UTC_DAYS, name_number(partitioning, value))
    assert span is not None
    assert isinstance(span.end, int)

    before, after = (is_final(partitioning, span, {"": t}) for t in (tip, tip + 1))

    assert after or not before
    assert (before, after) != (False, True) or tip + 1 == span.end - 1 + final_after


def test_a_cover_reaches_from_the_first_start_to_the_last_end() -> None:
    spans = [Span(group="", start=start, end=start + 10) for start in (20, 0, 50)]

    assert cover(spans) == (0, 60)
    assert cover([*spans, Span(group="", start=None, end=None)]) is None
    assert cover([]) is None


@pytest.mark.parametrize("zone", ["UTC", "Asia/Kolkata", "America/New_York"])
@pytest.mark.parametrize(
    ("unit", "name"),
    [
        (Unit.DAY, "9999-12-31"),
        (Unit.MONTH, "9999-12"),
        (Unit.DAY, "0001-01-01"),
        (Unit.HOUR, "9999-12-31T23"),
    ],
)
def test_dates_that_people_write_for_never_are_partitions_too(zone: str, unit: Unit, name: str) -> None:
    span = find_span(Partitioning(column="at", unit=unit, final_after=60), Calendar(timezone=zone), name)

    assert span is not None
    assert isinstance(span.start, datetime)
    assert isinstance(span.end, datetime)
    assert span.start <= span.end
    assert cover([span]) is None or name.startswith(
        "0001"
    )  # its rows are not looked for by a range that ends
    assert not is_final(
        Partitioning(column="at", unit=unit, final_after=60), span, {"": datetime(1, 1, 1, 1, tzinfo=UTC)}
    )


def test_a_decimal_tip_is_a_number_like_any_other() -> None:
    partitioning = Partitioning(column="n", size=10, final_after=5)
    span = find_span(partitioning, Calendar(), "0-10")

    assert span is not None
    assert [is_final(partitioning, span, {"": Decimal(tip)}) for tip in (13, 14)] == [False, True]


def test_a_name_without_its_group_is_no_partition() -> None:
    grouped = Partitioning(column="n", size=10, by=("chain",))

    assert find_span(grouped, Calendar(), "0-10") is None
    assert find_span(grouped, Calendar(), "x/0-10") is not None


@pytest.mark.parametrize(
    ("zone", "unit", "name", "edges"),
    [
        ("Asia/Kolkata", Unit.MONTH, "2024-03", (date(2024, 3, 1), date(2024, 4, 1))),
        ("Pacific/Apia", Unit.DAY, "2011-12-30", (date(2011, 12, 30), date(2011, 12, 31))),
        ("Pacific/Apia", Unit.DAY, "x/2011-12-29", (date(2011, 12, 29), date(2011, 12, 30))),
        ("America/St_Johns", Unit.DAY, "9999-12-31", (date(9999, 12, 31), None)),
        ("Asia/Kolkata", Unit.MONTH, "0001-01", (date(1, 1, 1), date(1, 2, 1))),
    ],
)
def test_of_a_column_of_dates_the_edges_of_a_partition_are_days_whatever_the_clocks_did(
    zone: str, unit: Unit, name: str, edges: tuple[date, date | None]
) -> None:
    partitioning = Partitioning(column="at", unit=unit, by=("group",) if "/" in name else ())
    span = find_span(partitioning, Calendar(timezone=zone), name)

    assert span is not None
    assert find_edges(partitioning, span, name, "date") == edges
    assert find_edges(partitioning, span, name, "timestamp") == (
        span.start,
        None if edges[1] is None else span.end,
    )


def test_the_edges_of_a_partition_of_numbers_are_its_numbers() -> None:
    span = find_span(by_size(10), UTC_DAYS, "-10-0")

    assert span is not None
    assert find_edges(by_size(10), span, "-10-0", "long") == (-10, 0)
