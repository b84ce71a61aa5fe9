"""The fold of a trigger against a model that remembers every key, over random schedules (L6, L12).

The fold knows nothing but recorded events and the changes that it reads, so every read is also a restart.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random

import pytest

from strandline.model.conditions import Comparison, Operator
from strandline.model.events import Event, EventType
from strandline.publish.changes import Change, ExistingRow, RowChange
from strandline.publish.trigger_fold import Folded, Recorded, TriggerRule, fold_changes, fold_existing
from tests.property.trigger_brute import (
    Brute,
    Commit,
    Compare,
    Edit,
    Limits,
    Lose,
    Noted,
    Read,
    Row,
    Step,
    draw_limits,
    draw_schedule,
)

SEEDS = range(4_000)
Fold = Callable[[TriggerRule, list[RowChange], Recorded, list[Event]], Folded]
Last = dict[str, EventType]
FoldExisting = Callable[
    [TriggerRule, list[ExistingRow], list[ExistingRow], Recorded, Last, int, int], tuple[Event, ...]
]


def rule_of(limits: Limits) -> TriggerRule:
    clear = Comparison(column="q", operator=Operator.LT, value=limits.clear) if limits.clear else None
    fire = Comparison(column="q", operator=Operator.GTE, value=limits.fire)
    return TriggerRule(name="alert", fire=fire, clear=clear)


def changes_of(commit: Commit, rows: dict[str, Row]) -> list[RowChange]:
    changes = []
    for position, (key, row) in enumerate(sorted(commit.changed.items())):
        old = rows.get(key)
        operation = Change.DELETE if row is None else Change.UPDATE if old else Change.INSERT
        changes.append(
            RowChange(
                version=commit.version,
                position=position,
                operation=operation,
                key=key,
                source_timestamp=commit.timestamp_by_key[key],
                data=json.dumps(row or old),
                row=row,
                old=old,
                told=commit.told,
            )
        )
    if not commit.reset:
        return changes
    reset = {"version": commit.version, "position": 0, "operation": Change.RESET, "told": commit.told}
    return [RowChange(key="", source_timestamp=0, data="", row=None, old=None, **reset)]  # type: ignore[arg-type]


def compare_rightly(
    rule: TriggerRule,
    rows: list[ExistingRow],
    gone: list[ExistingRow],
    recorded: Recorded,
    last: Last,
    version: int,
    first: int,
) -> tuple[Event, ...]:
    return fold_existing(rule, rows, gone, recorded, last, version=version, first_position=first)


def play(
    limits: Limits, steps: list[Step], fold: Fold, compare: FoldExisting = compare_rightly
) -> list[Event]:
    """What is recorded. Only `events` and `revision` survive from one read to the next, as in a table."""
    events: list[Event] = []
    revision, unread = 1, list[RowChange]()
    uncommitted: list[RowChange] = []
    """What was read since the last commit. Without an event there is none."""
    committed = revision
    rows: dict[str, Row] = {}
    times: dict[str, int] = {}
    version = 0
    for step in steps:
        match step:
            case Commit():
                unread += changes_of(step, rows)
                times |= step.timestamp_by_key
                version = step.version
                rows |= {key: row for key, row in step.changed.items() if row is not None}
                rows = {key: row for key, row in rows.items() if step.changed.get(key, row) is not None}
            case Edit():
                limits, revision = step.limits, revision + 1
            case Read():
                folded = fold(rule_of(limits), unread, recorded_of(events, revision), events)
                events += folded.events
                revision = folded.revision
                uncommitted = [] if folded.events or revision > committed else [*uncommitted, *unread]
                committed, unread = revision, []
            case Lose() if revision == committed:  # of an edited one more is read by its new conditions
                unread, uncommitted = [*uncommitted, *unread], []
            case Compare():
                revision += any(change.operation is Change.RESET for change in unread)
                last = {event.key: event.event_type for event in events}
                on = sorted(key for key, kind in last.items() if kind is EventType.MATCH)
                events += compare(
                    rule_of(limits),
                    [existing(key, times[key], row) for key, row in rows.items()],
                    [existing(key, times[key], {}) for key in on if key not in rows],
                    recorded_of(events, revision),
                    last,
                    version,
                    max((e.position + 1 for e in events if e.version == version), default=0),
                )
                committed, unread, uncommitted = revision, [], []
    return events


def recorded_of(events: list[Event], revision: int) -> Recorded:
    last = {event.key: event.event_type for event in events if event.revision == revision}
    counts = Counter((event.key, event.source_timestamp) for event in events)
    return Recorded(revision=revision, last=last, counts=counts)


def existing(key: str, timestamp: int, row: Row) -> ExistingRow:
    return ExistingRow(key=key, source_timestamp=timestamp, data=json.dumps(row), row=row)


def note(event: Event) -> Noted:
    return (
        str(event.event_type),
        event.key,
        event.source_timestamp,
        event.n,
        event.version,
        event.position,
        event.revision,
        event.quiet,
    )


def right(rule: TriggerRule, changes: list[RowChange], recorded: Recorded, _: list[Event]) -> Folded:
    return fold_changes(rule, changes, recorded)


def find_difference(seeds: Iterable[int], fold: Fold, compare: FoldExisting = compare_rightly) -> int | None:
    """The first seed for which fold and model differ."""
    for seed in seeds:
        random = Random(seed)
        limits, steps = draw_limits(random), draw_schedule(random)
        events = play(limits, steps, fold, compare)
        if [note(event) for event in events] != Brute(limits).play(steps):
            return seed
    return None


def test_the_fold_records_what_a_model_records_that_remembers_every_key() -> None:
    assert find_difference(SEEDS, right) is None


def test_every_event_has_an_id_of_its_own_and_reading_in_other_batches_repeats_them() -> None:
    for seed in range(500):
        random = Random(seed)
        limits, steps = draw_limits(random), draw_schedule(random)
        commits = [step for step in steps if isinstance(step, Commit)]

        at_once = play(limits, [*commits, Read()], right)
        one_by_one = play(limits, [step for commit in commits for step in (commit, Read())], right)

        assert [event.event_id for event in at_once] == [event.event_id for event in one_by_one]
        assert len({event.event_id for event in at_once}) == len(at_once)


def without_n(rule: TriggerRule, changes: list[RowChange], recorded: Recorded, _: list[Event]) -> Folded:
    folded = fold_changes(rule, changes, recorded)
    return replace(folded, events=tuple(replace(event, n=1) for event in folded.events))


def counting_one_revision(
    rule: TriggerRule, changes: list[RowChange], recorded: Recorded, events: list[Event]
) -> Folded:
    own = Counter((e.key, e.source_timestamp) for e in events if e.revision == recorded.revision)
    return fold_changes(rule, changes, replace(recorded, counts=own))


def counting_only_what_was_told(
    rule: TriggerRule, changes: list[RowChange], recorded: Recorded, events: list[Event]
) -> Folded:
    own = Counter((e.key, e.source_timestamp) for e in events if not e.quiet)
    return fold_changes(rule, changes, replace(recorded, counts=own))


def with_state_in_memory(
    rule: TriggerRule, changes: list[RowChange], recorded: Recorded, _: list[Event]
) -> Folded:
    return fold_changes(rule, changes, replace(recorded, last={}))


def with_state_of_an_old_revision(
    rule: TriggerRule, changes: list[RowChange], recorded: Recorded, events: list[Event]
) -> Folded:
    return fold_changes(rule, changes, replace(recorded, last={e.key: e.event_type for e in events}))


def telling_quiet_events(
    rule: TriggerRule, changes: list[RowChange], recorded: Recorded, _: list[Event]
) -> Folded:
    folded = fold_changes(rule, changes, recorded)
    return replace(folded, events=tuple(replace(event, quiet=False) for event in folded.events))


def telling_what_was_not_declared(
    rule: TriggerRule, changes: list[RowChange], recorded: Recorded, _: list[Event]
) -> Folded:
    return fold_changes(rule, [replace(change, told=True) for change in changes], recorded)


def without_notes(rule: TriggerRule, changes: list[RowChange], recorded: Recorded, _: list[Event]) -> Folded:
    folded = fold_changes(rule, changes, recorded)
    rows = {(change.version, change.key): change for change in changes}
    kept = (
        event
        for event in folded.events
        if event.event_type is EventType.UNMATCH or is_firing(rule, rows[event.version, event.key].row)
    )
    return replace(folded, events=tuple(kept))


def is_firing(rule: TriggerRule, row: object) -> bool:
    assert isinstance(rule.fire, Comparison)
    assert isinstance(rule.fire.value, int)
    return isinstance(row, dict) and row["q"] is not None and row["q"] >= rule.fire.value


def without_hysteresis(
    rule: TriggerRule, changes: list[RowChange], recorded: Recorded, _: list[Event]
) -> Folded:
    return fold_changes(replace(rule, clear=None), changes, recorded)


def blind_to_deletions(
    rule: TriggerRule, changes: list[RowChange], recorded: Recorded, _: list[Event]
) -> Folded:
    return fold_changes(rule, [c for c in changes if c.operation is not Change.DELETE], recorded)


def blind_to_resets(
    rule: TriggerRule, changes: list[RowChange], recorded: Recorded, _: list[Event]
) -> Folded:
    return fold_changes(rule, [c for c in changes if c.operation is not Change.RESET], recorded)


@pytest.mark.parametrize(
    "mutant",
    [
        without_n,
        counting_one_revision,
        counting_only_what_was_told,
        with_state_in_memory,
        with_state_of_an_old_revision,
        telling_quiet_events,
        telling_what_was_not_declared,
        without_notes,
        without_hysteresis,
        blind_to_deletions,
        blind_to_resets,
    ],
    ids=lambda mutant: mutant.__name__,
)
def test_the_schedules_find_a_fold_with_a_defect(mutant: Fold) -> None:
    assert find_difference(SEEDS, mutant) is not None


def comparing_with_one_revision(
    rule: TriggerRule,
    rows: list[ExistingRow],
    gone: list[ExistingRow],
    recorded: Recorded,
    _: Last,
    version: int,
    first: int,
) -> tuple[Event, ...]:
    return compare_rightly(rule, rows, gone, recorded, dict(recorded.last), version, first)


def comparing_without_history(
    rule: TriggerRule,
    rows: list[ExistingRow],
    gone: list[ExistingRow],
    recorded: Recorded,
    _: Last,
    version: int,
    first: int,
) -> tuple[Event, ...]:
    return compare_rightly(rule, rows, gone, recorded, {}, version, first)


def comparing_only_what_is_there(
    rule: TriggerRule,
    rows: list[ExistingRow],
    _: list[ExistingRow],
    recorded: Recorded,
    last: Last,
    version: int,
    first: int,
) -> tuple[Event, ...]:
    return compare_rightly(rule, rows, [], recorded, last, version, first)


def comparing_without_notes(
    rule: TriggerRule,
    rows: list[ExistingRow],
    gone: list[ExistingRow],
    recorded: Recorded,
    last: Last,
    version: int,
    first: int,
) -> tuple[Event, ...]:
    events = compare_rightly(rule, rows, gone, recorded, last, version, first)
    return tuple(event for event in events if not event.quiet)


@pytest.mark.parametrize(
    "mutant",
    [
        comparing_with_one_revision,
        comparing_without_history,
        comparing_only_what_is_there,
        comparing_without_notes,
    ],
    ids=lambda mutant: mutant.__name__,
)
def test_the_schedules_find_a_comparison_with_a_defect(mutant: FoldExisting) -> None:
    assert find_difference(SEEDS, right, mutant) is not None
