"""The algorithm of timelines agrees with brute force on random histories, and known defects of it do not."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from tests.property import timeline_fold, timeline_model, timeline_reach, timeline_table
from tests.property.timeline_fold import FoldNode
from tests.property.timeline_model import Task, ValuationNode, Work
from tests.property.timeline_play import HAPPENINGS, Play, WrongError
from tests.property.timeline_reach import unite, within
from tests.property.timeline_table import (
    CURRENT,
    FAILED,
    FOREVER,
    DoubledRowError,
    Group,
    Head,
    KeyChange,
    Ranges,
    Row,
    Superseded,
)
from tests.property.timeline_world import Date, Fact, Key, Values

HISTORIES = 4000
RARE = (12_809, 18_983)
"""Histories in which an earlier version of the model was wrong."""
EXAMPLES = 1500
"""How many histories a mutant may survive at most."""

Patch = pytest.MonkeyPatch
Mutant = Callable[[Patch], None]


def test_random_histories_are_published_as_brute_force_says(say: Callable[[str], None]) -> None:
    counts: Counter[str] = Counter()

    for seed in (*range(HISTORIES), *RARE):
        play = Play(seed)
        play.play()
        counts += play.counts

    rare = {what: counts[what] for what in HAPPENINGS if counts[what] < HISTORIES / 40}
    assert rare == {}
    say(f"timelines: {HISTORIES} histories, {counts['commits']} commits of valuations as by brute force")


def window_one_date_short(patch: Patch) -> None:
    really = timeline_reach.changed_steps
    patch.setattr(
        timeline_reach,
        "changed_steps",
        lambda old, new: unite((start, end - (end < FOREVER)) for start, end in really(old, new)),
    )


def epoch_on_no_change(patch: Patch) -> None:
    """Every commit that names a key with a head counts, also one that writes the head alone."""
    patch.setattr(timeline_table, "is_restatement", lambda change: change.watermark is not None)


def cursor_moved_without_marks(patch: Patch) -> None:
    def forget(node: ValuationNode, key: Key) -> KeyChange:
        return KeyChange(head=node.table.heads[key], watermark=node.watermark(key))

    patch.setattr(ValuationNode, "_mark", forget)


def group_published_in_part(patch: Patch) -> None:
    really = ValuationNode._next_batch
    patch.setattr(ValuationNode, "_next_batch", lambda node, task: really(node, task)[:1])


def stored_state_not_replaced(patch: Patch) -> None:
    """A key that is folded again and whose rows come out the same keeps the state it had."""

    def keep(node: FoldNode, before: Head, after: Head, put: Mapping[Date, Values]) -> Head:
        return after if put or after.last_on is None else replace(after, state=before.state)

    patch.setattr(FoldNode, "_keep", keep)


def held_key_valued(patch: Patch) -> None:
    patch.setattr(timeline_model, "is_held", lambda history, key: False)


def changes_missed_while_held(patch: Patch) -> None:
    patch.setattr(ValuationNode, "_is_computed_anew", lambda node, key: key not in node.table.heads)


def clock_goes_back(patch: Patch) -> None:
    patch.setattr(timeline_model, "move_clock", lambda recorded, as_of: as_of)


def superseded_row_lost(patch: Patch) -> None:
    """A removed row is not put aside; a replaced one is."""
    really = timeline_table.set_aside

    def lose(key: Key, change: KeyChange, published: Mapping[Date, Row], epoch: int) -> list[Superseded]:
        return [row for row in really(key, change, published, epoch) if row.on in change.put]

    patch.setattr(timeline_table, "set_aside", lose)


def fact_on_the_last_date_goes_on(patch: Patch) -> None:
    def goes_on(head: Head, came: list[Fact]) -> bool:
        return head.status != FAILED and all(fact.on >= (head.last_on or 0) for fact in came if fact.on)

    patch.setattr(timeline_fold, "goes_on", goes_on)


def failed_key_goes_on(patch: Patch) -> None:
    """Facts that came while a key failed are not in the state that it goes on from."""
    really = timeline_fold.goes_on
    patch.setattr(timeline_fold, "goes_on", lambda head, came: really(replace(head, status=CURRENT), came))


def watermark_of_a_fold_goes_back(patch: Patch) -> None:
    patch.setattr(timeline_fold, "later", lambda first, second: second)


def same_rows_written_again(patch: Patch) -> None:
    def compare(published: Mapping[Date, Values], computed: dict[Date, Values]) -> Any:
        return computed, frozenset(published)

    patch.setattr(timeline_model, "compare", compare)


def lookups_by_the_last_date(patch: Patch) -> None:
    """Every reference is taken to be looked up by the same values on all dates."""
    patch.setattr(timeline_reach, "is_fixed_by_key", lambda declaration, reference: True)


def undated_reference_reaches_only_new_dates(patch: Patch) -> None:
    patch.setattr(timeline_reach, "EVERYTHING", ((6, FOREVER),))


def waiting_dates_forgotten(patch: Patch) -> None:
    """What a key waits for is taken from the dates computed last alone."""
    really = ValuationNode._value

    def forget(node: ValuationNode, key: Key, ranges: Ranges, task: Task) -> KeyChange:
        change = really(node, key, ranges, task)
        waits = frozenset(on for on in change.head.waits if within(on, ranges))
        watermark = timeline_model.last_due(task.now.calendar, min(waits) - 1) if waits else None
        status = FAILED if waits else CURRENT
        return replace(change, head=replace(change.head, waits=waits, watermark=watermark, status=status))

    patch.setattr(ValuationNode, "_value", forget)


def rows_compared_on_business_dates_alone(patch: Patch) -> None:
    """The row of a date that left the calendar while its key was held or waited stays for good."""
    really = ValuationNode._published

    def overlook(node: ValuationNode, key: Key, ranges: Ranges, task: Task) -> dict[Date, Values]:
        dates = task.before.calendar | task.now.calendar
        return {on: row for on, row in really(node, key, ranges, task).items() if on in dates}

    patch.setattr(ValuationNode, "_published", overlook)


def marks_replaced_by_the_next(patch: Patch) -> None:
    """A second herd forgets the dates of the first."""
    really = ValuationNode._find_work

    def forget(node: ValuationNode, task: Task, everything: bool) -> Work:
        with pytest.MonkeyPatch.context() as blind:
            blind.setattr(ValuationNode, "_pending", lambda node, key: ())
            return really(node, task, everything)

    patch.setattr(ValuationNode, "_find_work", forget)


def facts_wait_with_the_herd(patch: Patch) -> None:
    """Only keys that were never valued go first."""
    really = ValuationNode._find_work

    def forget(node: ValuationNode, task: Task, everything: bool) -> Work:
        work = really(node, task, everything)
        return replace(work, facts_touched=work.facts_touched - node.table.heads.keys())

    patch.setattr(ValuationNode, "_find_work", forget)


def new_dates_go_before_the_batch(patch: Patch) -> None:
    """A marked key gets its new dates at once, so readers see two states of it."""
    really_first, really_mark = ValuationNode._commit_first, ValuationNode._mark
    tasks: list[Task] = []

    def remember(node: ValuationNode, task: Task, waiting: frozenset[Group]) -> int:
        tasks.append(task)
        return really_first(node, task, waiting)

    def value_new_dates(node: ValuationNode, key: Key) -> KeyChange:
        newly_due = unite((on, on + 1) for on in tasks[-1].now.calendar if on > node.clock)
        return replace(really_mark(node, key), put=node._value(key, newly_due, tasks[-1]).put)

    patch.setattr(ValuationNode, "_commit_first", remember)
    patch.setattr(ValuationNode, "_mark", value_new_dates)


def incomplete_version_read(patch: Patch) -> None:
    patch.setattr(ValuationNode, "complete", property(lambda node: node.versions[-1]))


def marks_lower_the_watermark(patch: Patch) -> None:
    really = ValuationNode._mark

    def lower(node: ValuationNode, key: Key) -> KeyChange:
        change = really(node, key)
        return replace(change, head=replace(change.head, watermark=change.head.pending[0][0] - 1))

    patch.setattr(ValuationNode, "_mark", lower)


MUTANTS: tuple[Mutant, ...] = (
    window_one_date_short,
    epoch_on_no_change,
    cursor_moved_without_marks,
    group_published_in_part,
    stored_state_not_replaced,
    held_key_valued,
    changes_missed_while_held,
    clock_goes_back,
    superseded_row_lost,
    fact_on_the_last_date_goes_on,
    failed_key_goes_on,
    watermark_of_a_fold_goes_back,
    same_rows_written_again,
    lookups_by_the_last_date,
    undated_reference_reaches_only_new_dates,
    waiting_dates_forgotten,
    rows_compared_on_business_dates_alone,
    marks_replaced_by_the_next,
    facts_wait_with_the_herd,
    new_dates_go_before_the_batch,
    incomplete_version_read,
    marks_lower_the_watermark,
)


def find(mutant: Mutant) -> int | None:
    """The first history in which a mutant does something wrong."""
    with pytest.MonkeyPatch.context() as patch:
        mutant(patch)
        for seed in range(EXAMPLES):
            try:
                Play(seed).play()
            except (WrongError, DoubledRowError):
                return seed
    return None


def test_mutants_of_the_model_are_found(say: Callable[[str], None]) -> None:
    found = {mutant.__name__: find(mutant) for mutant in MUTANTS}

    assert [name for name, seed in found.items() if seed is None] == []
    say(f"mutants of the timeline model found {len(found)} of {len(MUTANTS)}")
