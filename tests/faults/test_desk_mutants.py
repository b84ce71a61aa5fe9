"""Known defects of what is published, switched on one at a time. A law must break under each of them."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from strandline.dispatch import attempt
from strandline.ingest import inbox
from strandline.model import events
from strandline.model.node import Project
from strandline.plan import rules
from strandline.publish.change_log.pieces import find_unread
from strandline.publish.trigger_fold import Recorded

from . import desk_scenarios
from .desk_scenarios import SCENARIOS
from .killing import Mutant, make_mutant_tests
from .kinds import source
from .kinds.changes import kind as changes
from .kinds.trigger import kind as trigger
from .scenarios import Scenario
from .world import PublishingDesk

pytestmark = pytest.mark.faults

Patch = pytest.MonkeyPatch


def id_from_a_random_source(patch: Patch) -> None:
    numbers = itertools.count()
    patch.setattr(events, "make_event_id", lambda *_: f"{next(numbers):032x}")


def id_without_n(patch: Patch) -> None:
    really = events.make_event_id
    patch.setattr(events, "make_event_id", lambda name, key, time, n=1: really(name, key, time))


def state_in_memory(patch: Patch) -> None:
    """What was recorded is not read, as after a restart."""
    patch.setattr(trigger, "recorded_of", lambda events, revision: Recorded(revision=revision))


def state_of_an_old_revision(patch: Patch) -> None:
    really = trigger.recorded_of

    def of_any(events: Any, revision: int) -> Recorded:
        return really([{**row, "revision": revision} for row in events], revision)

    patch.setattr(trigger, "recorded_of", of_any)


def n_counts_one_revision(patch: Patch) -> None:
    really = trigger.recorded_of

    def of_this(events: Any, revision: int) -> Recorded:
        return really([row for row in events if row["revision"] == revision], revision)

    patch.setattr(trigger, "recorded_of", of_this)


def quiet_event_delivered(patch: Patch) -> None:
    """Everything is told, whoever was declared when it happened."""
    patch.setattr(trigger, "find_told", lambda entries, _: frozenset(e.version for e in entries))


def nobody_is_named_in_commits(patch: Patch) -> None:
    patch.setattr(Project, "published_to", lambda *_: ())


def cursor_of_the_plan(patch: Patch) -> None:
    """A commit that settling found does not move where the next one begins."""
    patch.setattr(attempt, "_with_cursors", lambda task, _: task)


def log_written_anew(patch: Patch) -> None:
    """A log that has read nothing new begins again: what it told is told once more."""
    really = find_unread

    def from_the_start(entries: Any, name: str, cursor: Any, now: Any, **more: Any) -> Any:
        return really(entries, name, cursor and replace(cursor, version=cursor.version - 1), now, **more)

    patch.setattr(changes, "find_unread", from_the_start)


def edited_view_forgotten(patch: Patch) -> None:
    patch.setattr(rules, "find_changed", lambda *_: "")


def table_not_asked(patch: Patch) -> None:
    """A post that waits was not received, whatever its task came to."""
    patch.setattr(source, "find_received", lambda *_: {})


def older_than_the_newest_is_received(patch: Patch) -> None:
    """Whatever is not newer than the newest post that was received is thought to be received."""

    def had(uri: Any, version: int, names: Any) -> Any:
        return dict.fromkeys(names, (1, datetime.max.replace(tzinfo=UTC)))

    patch.setattr(source, "find_received", had)


def put_away_before_it_is_committed(patch: Patch) -> None:
    really = attempt._commit

    def too_early(this: Any, prepared: Any, *more: Any) -> Any:
        if prepared.posts:
            inbox.put_away(this.desk.lake.inbox(this.node.name), prepared.posts, this.desk.now())
        return really(this, prepared, *more)

    patch.setattr(attempt, "_commit", too_early)


def key_not_remembered(patch: Patch) -> None:
    patch.setattr(inbox, "_find", lambda *_: None)


MUTANTS: dict[Mutant, Scenario] = {
    id_from_a_random_source: desk_scenarios.trades_cross_the_limits,
    id_without_n: desk_scenarios.trades_cross_the_limits,
    state_in_memory: desk_scenarios.trades_cross_the_limits,
    state_of_an_old_revision: desk_scenarios.a_trigger_is_edited,
    n_counts_one_revision: desk_scenarios.a_trigger_is_edited,
    quiet_event_delivered: desk_scenarios.a_trigger_is_removed_and_put_back,
    nobody_is_named_in_commits: desk_scenarios.trades_cross_the_limits,
    cursor_of_the_plan: desk_scenarios.processes_die_and_catalogs_are_lost,
    log_written_anew: desk_scenarios.trades_cross_the_limits,
    edited_view_forgotten: desk_scenarios.a_view_is_edited,
    table_not_asked: desk_scenarios.posts_outlive_deaths_and_are_forgotten,
    older_than_the_newest_is_received: desk_scenarios.posts_outlive_deaths_and_are_forgotten,
    put_away_before_it_is_committed: desk_scenarios.posts_outlive_deaths_and_are_forgotten,
    key_not_remembered: desk_scenarios.posts_outlive_deaths_and_are_forgotten,
}
"""Each with the scenario that kills it."""


(
    start,
    test_without_a_mutant_no_law_breaks,
    test_a_mutant_is_killed,
    test_all_mutants_were_killed,
) = make_mutant_tests(
    MUTANTS, SCENARIOS, PublishingDesk, first=desk_scenarios.first, what="of what is published: "
)
