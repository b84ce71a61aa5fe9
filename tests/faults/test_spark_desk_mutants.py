"""Known defects of what is published, in the engine's own reads and writes on Spark.

`make test-faults` runs them. Without a source time, changes have the time of their commit here. So defects of
`n` are left to the plain world, where all changes have one time.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from strandline.lake.log import LogEntry
from strandline.model import events
from strandline.publish.change_log import handed_on, pieces, rows
from strandline.publish.change_log import worker as change_log
from strandline.publish.change_log.handed_on import NetChange
from strandline.publish.trigger import reading, recorded
from strandline.publish.trigger import worker as trigger

from . import desk_scenarios as scenarios
from .killing import Mutant, make_mutant_tests
from .processes import all_faults
from .scenarios import Scenario
from .spark_world import SparkDesk, SparkFate

pytestmark = [pytest.mark.spark, pytest.mark.faults, all_faults]

Patch = pytest.MonkeyPatch


def id_from_a_random_source(patch: Patch) -> None:
    numbers = itertools.count()
    patch.setattr(events, "make_event_id", lambda *_: f"{next(numbers):032x}")


def state_in_memory(patch: Patch) -> None:
    """What was recorded is not read, as after a restart."""
    patch.setattr(trigger, "read_history", lambda work, keys, revision: recorded.History(revision))


def state_of_an_old_revision(patch: Patch) -> None:
    really = recorded.History.add
    patch.setattr(recorded.History, "add", lambda self, row: really(self, {**row, "revision": self.revision}))


def quiet_event_delivered(patch: Patch) -> None:
    """Everything is told, whoever was declared when it happened."""
    patch.setattr(trigger, "find_told", lambda entries, _: frozenset(e.version for e in entries))


def first_unread_commit_not_looked_at(patch: Patch) -> None:
    """Who was declared when it was made is not known, so nobody is told."""
    really = reading.read_dataset_entries

    def all_but_the_first(*given: Any) -> Sequence[LogEntry]:
        return really(*given)[1:]

    patch.setattr(trigger, "read_dataset_entries", all_but_the_first)


def log_written_anew(patch: Patch) -> None:
    """A log begins one commit too early: what it told is told once more."""
    really, really_read = pieces.find_unread, change_log.read_dataset_log

    def back(cursor: Any) -> Any:
        return replace(cursor, version=cursor.version - 1) if cursor and cursor.version else cursor

    def from_the_start(entries: Any, name: str, cursor: Any, now: Any, **more: Any) -> Any:
        return really(entries, name, back(cursor), now, **more)

    patch.setattr(change_log, "find_unread", from_the_start)
    patch.setattr(
        change_log, "read_dataset_log", lambda uri, cursor, upto: really_read(uri, back(cursor), upto)
    )


def deletes_not_told(patch: Patch) -> None:
    _net(patch, lambda change: None if change.operation == "DELETE" else change)


def former_row_told(patch: Patch) -> None:
    _net(patch, lambda change: replace(change, new=change.old) if change.operation == "UPDATE" else change)


def _net(patch: Patch, change: Callable[[NetChange], NetChange | None]) -> None:
    really = handed_on.net_few

    def net(*given: Any) -> tuple[NetChange, ...] | None:
        found = really(*given)
        return found and tuple(made for one in found if (made := change(one)) is not None)

    patch.setattr(change_log, "net_few", net)


def positions_as_they_come(patch: Patch) -> None:
    """By the hash of the key, or however Spark returns them."""

    def place(changes: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        shuffled = sorted(changes, key=lambda row: (row["version"], row["key"] or ""), reverse=True)
        return [{**row, "position": nth} for nth, row in enumerate(shuffled)]

    patch.setattr(rows, "_place", place)


MUTANTS: dict[Mutant, Scenario] = {
    id_from_a_random_source: scenarios.much_changes_at_once,
    state_in_memory: scenarios.much_changes_at_once,
    first_unread_commit_not_looked_at: scenarios.much_changes_at_once,
    log_written_anew: scenarios.much_changes_at_once,
    deletes_not_told: scenarios.much_changes_at_once,
    former_row_told: scenarios.much_changes_at_once,
    positions_as_they_come: scenarios.much_changes_at_once,
    state_of_an_old_revision: scenarios.a_trigger_is_edited,
    quiet_event_delivered: scenarios.a_trigger_is_removed_and_put_back,
}
"""Each with the scenario that kills it."""
PLAYED = tuple(dict.fromkeys(MUTANTS.values()))

(
    start,
    test_without_a_mutant_no_law_breaks,
    test_a_mutant_is_killed,
    test_all_mutants_were_killed,
) = make_mutant_tests(
    MUTANTS, PLAYED, SparkDesk, SparkFate, scenarios.first, what="of what is published, with Spark: "
)
