"""What a change log reads to tell what happened to its dataset."""

import pytest

from strandline.lake.log import LogEntry
from strandline.model.commits import Operation
from strandline.model.plan import Cursor
from strandline.publish.change_log.pieces import MOST_TOLD, Commits, Piece, Reset, Rewrite, find_unread
from tests.unit.publish.entries import make_entry

LOG = "trades_changes"
NAMED = (LOG,)


def unread(
    entries: list[LogEntry], after: int | None, table: str = "trades", *, redeclared: bool = False
) -> tuple[Piece, ...]:
    cursor = None if after is None else Cursor(table_id=table, version=after)
    now = Cursor(table_id="trades", version=entries[-1].version)
    return find_unread(entries, LOG, cursor, now, redeclared=redeclared)


def first(*, published_to: tuple[str, ...] = NAMED, rows: int = 1) -> LogEntry:
    return make_entry(0, Operation.OVERWRITE, published_to=published_to, rows=rows)


def test_a_dataset_that_was_built_with_its_log_is_told_from_its_first_row_on() -> None:
    entries = [first(), make_entry(1, published_to=NAMED), make_entry(2, Operation.PURGE)]

    assert unread(entries, None) == (Rewrite(version=0, before=None), Commits(versions=(1,)))


def test_what_was_there_before_the_log_is_not_read() -> None:
    entries = [first(published_to=()), make_entry(1), make_entry(2, published_to=NAMED)]

    assert unread(entries, None) == (Reset(version=1), Commits(versions=(2,)))
    assert unread(entries[:2], None) == (Reset(version=1),)


def test_commits_after_the_cursor_are_told_and_those_that_change_nothing_are_not() -> None:
    entries = [first(), make_entry(1), make_entry(2, Operation.COMPACT), make_entry(3), make_entry(4)]

    assert unread(entries, 1) == (Commits(versions=(3, 4)),)
    assert unread(entries, 4) == ()


def test_a_rewrite_is_told_by_the_states_around_it() -> None:
    entries = [first(), make_entry(1), make_entry(2, Operation.OVERWRITE), make_entry(3)]

    assert unread(entries, 0) == (
        Commits(versions=(1,)),
        Rewrite(version=2, before=1),
        Commits(versions=(3,)),
    )


@pytest.mark.parametrize(("before", "after"), [(MOST_TOLD + 1, 1), (1, MOST_TOLD + 1)])
def test_a_large_rewrite_is_a_reset_and_what_came_before_it_is_not_told(before: int, after: int) -> None:
    entries = [first(), make_entry(1, rows=before), make_entry(2, Operation.OVERWRITE, rows=after)]

    assert unread(entries, 0) == (Reset(version=2),)
    assert unread([first(rows=MOST_TOLD + 1)], None) == (Reset(version=0),)
    assert unread([first(rows=MOST_TOLD)], None) == (Rewrite(version=0, before=None),)


def test_a_gap_whose_old_state_is_gone_is_a_reset() -> None:
    entries = [first(), make_entry(1), make_entry(2), make_entry(3, Operation.CLEAN, readable_from=2)]

    assert unread(entries, 1) == (Reset(version=3),)
    assert unread(entries, 2) == ()
    assert unread(entries, 9) == (Reset(version=3),)
    assert unread(entries, 2, table="another") == (Reset(version=3),)
    assert unread(entries, 2, redeclared=True) == (Reset(version=3),)
    assert unread(entries[2:], 0) == (Reset(version=3),)


def test_a_log_that_was_declared_before_what_was_cleaned_away_begins_with_a_reset() -> None:
    cleaned = make_entry(2, Operation.CLEAN, readable_from=1)

    assert unread([first(), make_entry(1), cleaned], None) == (Reset(version=2),)
    assert unread([first(), make_entry(1)], None) == (Rewrite(version=0, before=None), Commits(versions=(1,)))
