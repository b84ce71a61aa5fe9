"""From where on a trigger reads its change log, and the values that its conditions compare."""

from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from strandline.lake.log import LogEntry
from strandline.model.columns import find_type
from strandline.model.commits import Operation
from strandline.model.plan import Cursor
from strandline.publish.trigger.reading import Unread, find_unread
from strandline.publish.trigger.typed_rows import read_typed
from tests.unit.publish.entries import make_entry

NAMED = ("alert",)


def unread(
    log: list[LogEntry], dataset: list[LogEntry], after: int | None = None, table: str = "log"
) -> Unread:
    cursor = None if after is None else Cursor(table_id=table, version=after)
    now = Cursor(table_id="log", version=log[-1].version)
    return find_unread("alert", cursor, now, "trades", log, dataset)


def told(version: int, read: int, operation: Operation = Operation.APPEND) -> LogEntry:
    return make_entry(version, operation, read=read)


def test_a_new_trigger_begins_with_the_first_commit_that_names_it() -> None:
    dataset = [make_entry(0), make_entry(1), make_entry(2, published_to=NAMED), make_entry(3)]
    log = [told(0, 0), told(1, 1), told(2, 3), make_entry(3, Operation.FENCE)]

    assert unread(log, dataset) == Unread(after=1, from_version=2)
    assert unread(log, dataset[:2]) == Unread(after=3)


def test_a_trigger_that_was_declared_with_its_dataset_reads_the_log_from_its_start() -> None:
    assert unread([told(0, 1)], [make_entry(0, published_to=NAMED)]) == Unread(after=-1, from_version=0)


def test_a_trigger_goes_on_from_its_cursor() -> None:
    assert unread([told(0, 0), told(1, 1)], [], after=0) == Unread(after=0)


def test_a_log_that_was_written_anew_is_read_from_what_was_not_folded() -> None:
    log = [told(0, 0), told(1, 4), told(2, 7, Operation.OVERWRITE), told(3, 8)]

    assert unread(log, [], after=1) == Unread(after=1, from_version=5)
    assert unread(log, [], after=2) == Unread(after=2)


@pytest.mark.parametrize(("after", "table"), [(0, "another"), (5, "log")])
def test_another_log_in_its_place_begins_anew(after: int, table: str) -> None:
    assert unread([told(0, 0), told(1, 1)], [], after, table) == Unread(after=1, broken=True)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("bigint", 2**60, 2**60),
        ("string", "NaN", "NaN"),
        ("double", "NaN", float("nan")),
        ("double", "-Infinity", float("-inf")),
        ("double", 1, 1.0),
        ("decimal(38,4)", "12345678901234567890.1234", Decimal("12345678901234567890.1234")),
        ("boolean", True, True),
        ("date", "2024-01-13", date(2024, 1, 13)),
        ("date", "+10000-01-01", date.max),
        ("date", "-0001-01-01", date.min),
        ("timestamp", "2024-01-13T08:30:00.000001Z", datetime(2024, 1, 13, 8, 30, 0, 1, UTC)),
        ("timestamp", "+10000-01-01T00:00:00Z", datetime(9999, 12, 31, tzinfo=UTC)),
        ("timestamp", None, None),
    ],
)
def test_a_value_is_read_from_json_in_the_type_of_its_column(kind: str, text: object, value: object) -> None:
    known = find_type(kind)
    assert known is not None

    row = read_typed({"x": text, "other": 1}, {"x": known})

    assert row is not None
    assert row.keys() == {"x"}
    assert row["x"] == value or str(row["x"]) == str(value) == "nan"
    assert read_typed(None, {"x": known}) is None


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("bigint", "15000", 15000),
        ("bigint", "15000.00", 15000),
        ("bigint", 7.5, None),
        ("bigint", "a lot", None),
        ("bigint", "1e999999999", None),
        ("bigint", str(2**63), None),
        ("bigint", str(-(2**63)), -(2**63)),
        ("bigint", True, None),
        ("string", 15000, "15000"),
        ("string", True, "true"),
        ("double", "a lot", None),
        ("double", {"x": 1}, None),
        ("decimal(9,2)", "a lot", None),
        ("decimal(9,2)", "NaN", None),
        ("decimal(9,2)", 7, Decimal(7)),
        ("boolean", "true", True),
        ("boolean", 1, None),
        ("date", "a lot", None),
        ("date", 5, None),
        ("date", "2024-01-13T08:30:00.000000Z", date(2024, 1, 13)),
        ("timestamp", "2024-01-13", datetime(2024, 1, 13, tzinfo=UTC)),
        ("timestamp", "0001-01-01T00:00:00+14:00", None),
        ("timestamp", 5, None),
    ],
)
def test_a_value_from_before_the_column_had_its_type_is_read_as_one_or_is_null(
    kind: str, text: object, value: object
) -> None:
    known = find_type(kind)
    assert known is not None

    row = read_typed({"x": text}, {"x": known})

    assert row is not None
    assert (row["x"], type(row["x"])) == (value, type(value))
