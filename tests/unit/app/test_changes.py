"""The changes of a dataset after a cursor, and as they come."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from strandline.app.changes import (
    ChangesReplacedError,
    FollowedLog,
    SeenChange,
    find_published,
    read_changes,
)
from strandline.app.rows import RowsRequest, read_rows
from strandline.model.errors import CallError
from tests.published_log import PROJECT, PublishedLog, trade


@pytest.fixture
def log(tmp_path: Path) -> PublishedLog:
    log = PublishedLog.create(tmp_path)
    log.commit({1: trade(1, quantity=5, price=Decimal("1.5000")), 2: trade(2, quantity=50)}, timestamp=7)
    log.commit({1: trade(1, quantity=20), 3: trade(3, quantity=1)}, timestamp=8)
    log.commit({2: None}, timestamp=9)
    return log


def shown(page: Any) -> list[tuple[str, str, tuple[str, ...]]]:
    return [(str(c.operation), c.key, c.fields) for c in page.changes]


def test_changes_come_in_order_and_pages_of_any_size_are_the_whole(log: PublishedLog) -> None:
    workspace = log.open()
    whole = read_changes(workspace, "trades", None, None, 100)

    cursor, pieces = None, list[SeenChange]()
    for _ in range(10):
        page = read_changes(workspace, "trades", cursor, None, 2)
        pieces += page.changes
        cursor = page.next
        if page.complete:
            break

    assert [c.operation for c in whole.changes] == ["INSERT", "INSERT", "UPDATE", "INSERT", "DELETE"]
    assert [c.timestamp for c in whole.changes] == ["7", "7", "8", "8", "9"]
    assert whole.changes[2].fields == ("quantity", "price")
    assert whole.changes[2].before == {"quantity": 5, "price": "1.5000"}
    assert tuple(pieces) == whole.changes
    assert whole.complete
    assert read_changes(workspace, "trades", whole.next, None, 100).changes == ()


def test_cursors_order_as_text_and_name_their_dataset(log: PublishedLog) -> None:
    cursors = [str(c.cursor) for c in read_changes(log.open(), "trades", None, None, 100).changes]

    assert cursors == sorted(cursors)
    assert len(set(cursors)) == 5
    assert {len(c) for c in cursors} == {50}


def test_a_row_that_enters_a_condition_is_inserted_and_one_that_leaves_it_deleted(log: PublishedLog) -> None:
    page = read_changes(log.open(), "trades", None, {"quantity": {"_gte": 10}}, 100)

    assert [(c.operation, c.key) for c in page.changes] == [("INSERT", "2"), ("INSERT", "1"), ("DELETE", "2")]
    assert page.changes[1].before is None
    assert page.changes[1].fields == tuple(page.changes[1].row)
    leaving = read_changes(log.open(), "trades", None, {"quantity": {"_lt": 10}}, 100).changes
    assert [(c.operation, c.key) for c in leaving] == [("INSERT", "1"), ("DELETE", "1"), ("INSERT", "3")]
    assert leaving[1].row["quantity"] == 5


@pytest.mark.parametrize(
    ("after", "slug"),
    [("nonsense", "bad-cursor"), ("0" * 50, "cursor-of-another-dataset"), ("A" * 50, "bad-cursor")],
)
def test_what_is_not_a_cursor_of_the_dataset_is_refused(log: PublishedLog, after: str, slug: str) -> None:
    with pytest.raises(CallError) as refused:
        read_changes(log.open(), "trades", after, None, 10)

    assert refused.value.slug == slug
    assert read_changes(log.open(), "trades", None, None, 10).changes  # the remedy: a cursor as it was given


def test_a_cursor_from_before_a_reset_has_expired_and_reading_begins_after_it(log: PublishedLog) -> None:
    before = read_changes(log.open(), "trades", None, None, 100)
    log.reset()
    log.commit({9: trade(9)})

    with pytest.raises(CallError) as refused:
        read_changes(log.open(), "trades", before.next, None, 10)

    after = read_changes(log.open(), "trades", None, None, 10)
    assert refused.value.slug == "cursor-expired"
    assert shown(after)[0][:2] == ("INSERT", "9")
    assert str(after.changes[0].cursor) > before.next


def test_a_cursor_has_expired_if_the_log_was_written_anew(log: PublishedLog) -> None:
    before = read_changes(log.open(), "trades", None, None, 100)
    log.append([], 2, anew=True)

    with pytest.raises(CallError, match="began anew"):
        read_changes(log.open(), "trades", before.next, None, 10)


def test_a_compacted_log_is_read_as_before(log: PublishedLog) -> None:
    first = read_changes(log.open(), "trades", None, None, 1)
    rest = read_changes(log.open(), "trades", first.next, None, 100)

    log.compact()

    assert read_changes(log.open(), "trades", first.next, None, 100).changes == rest.changes


def test_a_log_that_is_followed_gives_each_change_once(log: PublishedLog) -> None:
    follower = FollowedLog(log.open(), "trades")
    assert not follower.has_grown()
    assert list(follower.grow()) == []

    log.commit({4: trade(4)})
    log.commit({5: trade(5), 4: None})

    assert follower.has_grown()
    grown = list(follower.grow())
    assert [(c.operation, c.key) for g in grown for c in g.changes] == [
        ("INSERT", "4"),
        ("DELETE", "4"),
        ("INSERT", "5"),
    ]
    assert follower.version == 4
    assert not follower.has_grown()
    assert list(follower.grow()) == []


def test_a_reset_ends_following(log: PublishedLog) -> None:
    follower = FollowedLog(log.open(), "trades")
    log.reset()

    with pytest.raises(ChangesReplacedError):
        list(follower.grow())


@pytest.mark.parametrize(
    ("name", "slug"), [("nobody", "unknown-dataset"), ("quotes", "no-change-log"), ("trades", "never-built")]
)
def test_a_dataset_without_a_log_is_refused(tmp_path: Path, name: str, slug: str) -> None:
    with pytest.raises(CallError) as refused:
        FollowedLog(PublishedLog.create(tmp_path).open(), name)

    assert refused.value.slug == slug


def test_what_a_refused_reader_is_told_to_do_settles_it(log: PublishedLog) -> None:
    """`bad-cursor`, `cursor-of-another-dataset`, `cursor-expired` and `no-change-log`."""
    cursor = str(read_changes(log.open(), "trades", None, None, 1).changes[0].cursor)
    slugs = []
    for after in (cursor[:-1], "0" * len(cursor)):
        with pytest.raises(CallError) as refused:
            read_changes(log.open(), "trades", after, None, 10)
        slugs.append(refused.value.slug)
    unchanged = read_changes(log.open(), "trades", cursor, None, 10)

    log.reset()
    with pytest.raises(CallError) as refused:
        read_changes(log.open(), "trades", cursor, None, 10)
    rows = read_rows(log.open(), RowsRequest(dataset="trades"))
    begun_anew = read_changes(log.open(), "trades", None, None, 10)

    with pytest.raises(CallError) as unpublished:
        FollowedLog(log.open(), "quotes")
    log.folder.joinpath("strandline.yaml").write_text(
        PROJECT.replace("publish: [trades]", "publish: [trades, quotes]")
    )
    assert slugs == ["bad-cursor", "cursor-of-another-dataset"]
    assert len(unchanged.changes) == 4
    assert refused.value.slug == "cursor-expired"
    assert len(rows.rows) == 2
    assert begun_anew.changes == ()
    assert unpublished.value.slug == "no-change-log"
    assert set(find_published(log.open().project)) == {"trades", "quotes"}
