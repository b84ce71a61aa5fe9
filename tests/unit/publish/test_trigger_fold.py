"""Triggers, told as stories: when they fire and clear, what is quiet, what a backfill tells."""

import json
from dataclasses import replace
from itertools import pairwise

import pytest

from strandline.model.condition_json import parse_condition
from strandline.model.errors import GuardedError
from strandline.model.events import Event, EventType
from strandline.publish.changes import Change, ExistingRow, RowChange
from strandline.publish.trigger_fold import Recorded, TriggerRule, check_guard, fold_changes, fold_existing

RULE = TriggerRule(
    name="large_trade_alert",
    fire=parse_condition({"quantity": {"_gte": 10_000}}),
    clear=parse_condition({"quantity": {"_lt": 9_500}}),
)
NEW = Recorded(revision=1)


def row(quantity: int | None) -> dict[str, object]:
    return {"trade_id": 123, "quantity": quantity}


def change(old: int | None, new: int | None, at: int = 1, *, told: bool = True) -> RowChange:
    """-1 stands for no row."""
    before, after = (row(q) if q != -1 else None for q in (old, new))
    operation = Change.INSERT if before is None else Change.DELETE if after is None else Change.UPDATE
    return RowChange(
        version=at,
        position=0,
        operation=operation,
        key="123",
        source_timestamp=1000 + at,
        data=json.dumps(after or before),
        row=after,
        old=before,
        told=told,
    )


def told(events: tuple[Event, ...]) -> list[str]:
    return [str(event.event_type) for event in events if not event.quiet]


def path(*quantities: int | None) -> list[RowChange]:
    """The changes of one row from one quantity to the next."""
    return [change(old, new, at) for at, (old, new) in enumerate(pairwise(quantities))]


@pytest.mark.parametrize(
    ("quantities", "expected"),
    [
        ((-1, 15_000), ["MATCH"]),
        ((-1, 9_000), []),
        ((-1, 15_000, 20_000), ["MATCH"]),
        ((-1, 15_000, 9_700), ["MATCH"]),
        ((-1, 15_000, 9_700, 9_400), ["MATCH", "UNMATCH"]),
        ((-1, 15_000, 9_700, 15_000), ["MATCH"]),
        ((-1, 15_000, 9_000, 9_700, 15_000), ["MATCH", "UNMATCH", "MATCH"]),
        ((-1, 15_000, 9_700, -1), ["MATCH", "UNMATCH"]),
        ((-1, 15_000, -1, 15_000), ["MATCH", "UNMATCH", "MATCH"]),
        ((-1, 15_000, None), ["MATCH"]),
        ((-1, None, 15_000), ["MATCH"]),
        ((-1, 9_000, -1), []),
    ],
    ids=str,
)
def test_a_key_is_on_from_fire_until_clear_or_its_deletion(
    quantities: tuple[int | None, ...], expected: list[str]
) -> None:
    assert told(fold_changes(RULE, path(*quantities), NEW).events) == expected


def test_without_clear_a_key_is_off_as_soon_as_fire_is_not_true() -> None:
    rule = TriggerRule(name="alert", fire=RULE.fire)

    folded = fold_changes(rule, path(-1, 15_000, None, 15_000, 9_999), NEW)

    assert told(folded.events) == ["MATCH", "UNMATCH", "MATCH", "UNMATCH"]


def test_a_row_that_was_there_sets_the_state_and_sends_nothing() -> None:
    assert fold_changes(RULE, [change(15_000, 16_000)], NEW).events == ()
    assert told(fold_changes(RULE, [change(15_000, 9_000)], NEW).events) == ["UNMATCH"]


def test_what_no_later_change_could_see_is_noted_quietly() -> None:
    (noted,) = fold_changes(RULE, [change(15_000, 9_700)], NEW).events

    assert (noted.event_type, noted.quiet) == (EventType.MATCH, True)
    later = Recorded(revision=1, last={"123": noted.event_type})
    assert told(fold_changes(RULE, [change(9_700, 9_400)], later).events) == ["UNMATCH"]


def test_what_changes_while_the_trigger_is_not_declared_sets_its_state_quietly() -> None:
    folded = fold_changes(RULE, [change(-1, 15_000, told=False), change(15_000, 9_000, 2)], NEW)

    assert [(str(e.event_type), e.quiet) for e in folded.events] == [("MATCH", True), ("UNMATCH", False)]


def test_quiet_records_every_event_and_tells_none() -> None:
    folded = fold_changes(RULE, path(-1, 15_000, 9_000), NEW, quiet=True)

    assert [event.quiet for event in folded.events] == [True, True]


def test_the_data_is_the_row_now_and_of_a_deletion_the_last_one() -> None:
    match, unmatch = fold_changes(RULE, path(-1, 15_000, -1), NEW).events

    assert json.loads(match.data) == json.loads(unmatch.data) == row(15_000)


def test_a_reset_starts_a_revision_in_which_rows_are_taken_as_existing() -> None:
    reset = replace(change(-1, -1, 5), operation=Change.RESET, key="")

    folded = fold_changes(RULE, [change(-1, 15_000), reset, change(9_000, 15_000, 6)], NEW)

    assert [(e.event_type, e.revision) for e in folded.events] == [("MATCH", 1), ("MATCH", 2)]
    assert folded.revision == 2


def existing(key: str, quantity: int) -> ExistingRow:
    return ExistingRow(key=key, source_timestamp=7, data="{}", row=row(quantity))


def test_a_backfill_tells_what_differs_from_what_was_told_last() -> None:
    rows = [
        existing(key, q) for key, q in (("a", 15_000), ("b", 15_000), ("c", 9_000), ("d", 9_700), ("f", 1))
    ]
    last = dict.fromkeys("acdeg", EventType.MATCH) | {"f": EventType.UNMATCH}
    recorded = Recorded(revision=3, last={"d": EventType.MATCH}, counts={("b", 7): 2})

    events = fold_existing(RULE, rows, [existing("e", 15_000)], recorded, last, version=9)

    assert [(e.key, str(e.event_type), e.n, e.position, e.revision) for e in events] == [
        ("b", "MATCH", 3, 0, 3),
        ("c", "UNMATCH", 1, 1, 3),
        ("e", "UNMATCH", 1, 2, 3),
    ]


def test_a_row_that_stays_on_without_firing_is_recorded_quietly_in_a_new_revision() -> None:
    recorded = Recorded(revision=4)

    (event,) = fold_existing(
        RULE, [existing("d", 9_700)], [], recorded, {"d": EventType.MATCH}, version=9, first_position=5
    )

    assert (event.key, event.event_type, event.quiet, event.position) == ("d", "MATCH", True, 5)


def test_more_events_than_the_guard_allows_are_neither_recorded_nor_sent() -> None:
    check_guard(RULE.name, 3, 3, accepted=False)
    check_guard(RULE.name, 3, 2, accepted=True)
    with pytest.raises(GuardedError, match="would tell its endpoints about 3 events at once") as guarded:
        check_guard(RULE.name, 3, 2, accepted=False)

    assert "--accept-guard large_trade_alert" in guarded.value.remedy
    assert "--quiet large_trade_alert" in guarded.value.remedy
