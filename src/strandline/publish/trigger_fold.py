"""A trigger folds changes into events. Pure: the same changes and recorded events give the same new events.

The state of a key is its last event of this revision. A key without one is on if `fire` was true for its row
before the change. So a trigger that is added to a table reads none of its rows.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from strandline.model.condition_truth import is_true
from strandline.model.conditions import Condition
from strandline.model.errors import GuardedError
from strandline.model.events import Event, EventType

from .changes import Change, ExistingRow, RowChange


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerRule:
    """What a trigger watches. Without `clear`, a key is off as soon as `fire` is not true."""

    name: str
    fire: Condition
    clear: Condition | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the recorded events say about the keys of the changes that are folded."""

    revision: int
    """The configuration of the trigger is the n-th that it has had. A RESET counts too."""
    last: Mapping[str, EventType] = field(default_factory=dict)
    """By key: its last event of this revision."""
    counts: Mapping[tuple[str, int], int] = field(default_factory=dict)
    """By key and source timestamp: the number of events of all revisions, quiet ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    events: tuple[Event, ...]
    revision: int
    """The revision at the end: a RESET starts a new one."""


def fold_changes(
    rule: TriggerRule, changes: Iterable[RowChange], recorded: Recorded, *, quiet: bool = False
) -> Folded:
    """The events of changes, which are in the order of the log. `quiet`: nobody is told about any."""
    folding = _Folding(rule, recorded)
    events: list[Event] = []
    for change in changes:
        if change.operation is Change.RESET:
            folding.start_revision()
        else:
            events += folding.fold(change, quiet=quiet or not change.told)
    return Folded(events=tuple(events), revision=folding.revision)


def fold_existing(
    rule: TriggerRule,
    rows: Iterable[ExistingRow],
    gone: Iterable[ExistingRow],
    recorded: Recorded,
    last_told: Mapping[str, EventType],
    *,
    version: int,
    first_position: int = 0,
    quiet: bool = False,
) -> tuple[Event, ...]:
    """The events that bring receivers to the rows as they are now, for `existing: deliver` and backfills.

    `last_told` contains the last recorded event of each key, of any revision. A key without one is off.
    `gone` are the keys that are on and have no row any more, each with its last row. `first_position` comes
    after the positions of all events that were recorded for the version.
    """
    folding = _Folding(rule, recorded)
    ends: list[tuple[ExistingRow, bool, bool]] = []
    for existing in rows:
        was_on = last_told.get(existing.key) is EventType.MATCH
        is_on = folding.is_on_after(was_on, existing.row)
        if is_on is not was_on:
            ends.append((existing, is_on, quiet))
        elif is_on and existing.key not in recorded.last and not is_true(rule.fire, existing.row):
            ends.append((existing, True, True))  # as in `fold`: no later change can see that it is on
    ends += ((existing, False, quiet) for existing in gone)
    ends.sort(key=lambda end: end[0].key)
    return tuple(
        folding.record(existing, version, position, is_on=is_on, quiet=is_quiet)
        for position, (existing, is_on, is_quiet) in enumerate(ends, start=first_position)
    )


def check_guard(name: str, told: int, max_events: int, *, accepted: bool) -> None:
    """Raises GuardedError if receivers would be told about more events than the guard allows."""
    if told > max_events and not accepted:
        raise GuardedError(
            f"The trigger `{name}` would tell its endpoints about {told:,} events at once,"
            f" and its guard allows {max_events:,}.",
            remedy=f"Pass `--accept-guard {name}` to send them, or `--quiet {name}` to record them without"
            " telling anybody.",
            slug="guarded",
        )


class _Folding:
    """One fold: what was recorded, and what this fold adds to it."""

    def __init__(self, rule: TriggerRule, recorded: Recorded) -> None:
        self.rule = rule
        self.revision = recorded.revision
        self._last = dict(recorded.last)
        self._counts = dict(recorded.counts)

    def start_revision(self) -> None:
        """Rows are taken as existing: what earlier events said about them no longer counts."""
        self.revision += 1
        self._last.clear()

    def fold(self, change: RowChange, *, quiet: bool) -> Iterator[Event]:
        last = self._last.get(change.key)
        was_on = last is EventType.MATCH if last is not None else self._fires(change.old)
        is_on = self.is_on_after(was_on, change.row)
        if is_on is not was_on:
            yield self.record(change, change.version, change.position, is_on=is_on, quiet=quiet)
        elif is_on and last is None and not self._fires(change.row):
            # No later change can see that the key is on, so an event that nobody is told about says it.
            yield self.record(change, change.version, change.position, is_on=True, quiet=True)

    def is_on_after(self, was_on: bool, row: Mapping[str, object] | None) -> bool:
        if row is None:
            return False
        if self._fires(row):
            return True
        return was_on and self.rule.clear is not None and not is_true(self.rule.clear, row)

    def record(
        self, row: RowChange | ExistingRow, version: int, position: int, *, is_on: bool, quiet: bool
    ) -> Event:
        event_type = EventType.MATCH if is_on else EventType.UNMATCH
        place = (row.key, row.source_timestamp)
        self._counts[place] = self._counts.get(place, 0) + 1
        self._last[row.key] = event_type
        return Event(
            trigger=self.rule.name,
            event_type=event_type,
            key=row.key,
            source_timestamp=row.source_timestamp,
            n=self._counts[place],
            data=row.data,
            version=version,
            position=position,
            revision=self.revision,
            quiet=quiet,
        )

    def _fires(self, row: Mapping[str, object] | None) -> bool:
        return row is not None and is_true(self.rule.fire, row)
