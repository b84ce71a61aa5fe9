"""The algorithm of timelines in plain Python: what ADR 14 says, without Spark, files or hashes.

Read `timeline_table` first (what a commit does), then `timeline_fold`, `timeline_reach` (which dates a
change reaches) and this module (the valuation and its herds). A node keeps what it has read, which is its
cursor, and the versions of its table. `run` looks at what changed since, computes what that reaches, compares
it with what is published, and commits what differs.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace

from tests.property.timeline_reach import (
    FoldVersion,
    Lookups,
    Seen,
    reach_of_history,
    reach_of_reference,
    unite,
    within,
)
from tests.property.timeline_table import (
    BEGINNING,
    CURRENT,
    EVERYTHING,
    FAILED,
    REPROCESSING,
    Group,
    Head,
    KeyChange,
    Ranges,
    Table,
    commit,
    compare,
)
from tests.property.timeline_world import Date, Declaration, Key, Values


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuationVersion:
    table: Table
    seen: Seen
    clock: Date


def is_held(history: Table, key: Key) -> bool:
    """Whether a key cannot be valued, because its fold failed."""
    return history.heads[key].status == FAILED


def was_held(head: Head) -> bool:
    """A held key is FAILED and waits for nothing."""
    return head.status == FAILED and not head.waits


def move_clock(recorded: Date, as_of: Date) -> Date:
    """The clock of a valuation never goes back: an earlier `as_of` is recorded as the later one."""
    return max(recorded, as_of)


def last_due(calendar: frozenset[Date], clock: Date) -> Date | None:
    return max((on for on in calendar if on <= clock), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a task has to do, found once from what changed."""

    ranges: Mapping[Key, Ranges]
    """The dates of each key to compute: reached now, left pending before, or newly due."""
    reached: Mapping[Key, Ranges]
    """Of these, the dates reached by what changed. Without those that are newly due or were pending."""
    facts_touched: frozenset[Key]
    """The keys whose history changed, that failed, or that fold again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What one run computes with. All its commits see the same versions and the same clock."""

    now: Seen
    clock: Date
    lookups: Lookups
    before: Seen
    """What had been read when the run began."""

    def count_dates(self, key: Key, ranges: Ranges) -> int:
        """How many rows ranges may have: business dates, before or now, from the first date of the key on."""
        first = self.lookups.first_date(key)
        dates = self.before.calendar | self.now.calendar
        return sum(first <= on <= self.clock and within(on, ranges) for on in dates)


class ValuationNode:
    """The history, one row per key and business date, with values from references."""

    def __init__(self, declaration: Declaration, batch_rows: int) -> None:
        self.declaration = declaration
        self.batch_rows = batch_rows
        nothing = Seen(history=FoldVersion(table=Table(), facts={}), calendar=frozenset(), references={})
        self.seen, self.clock = nothing, BEGINNING
        self.versions = [ValuationVersion(table=Table(), seen=nothing, clock=BEGINNING)]
        self.work = Work(ranges={}, reached={}, facts_touched=frozenset())
        self.computed = 0
        """The number of cells that the first commit of the last run computed."""
        self.batches = 0
        """The number of batches of the last run."""

    @property
    def table(self) -> Table:
        return self.versions[-1].table

    @property
    def complete(self) -> ValuationVersion:
        """What nodes downstream read, unless their key holds `together`."""
        return next(version for version in reversed(self.versions) if version.table.is_complete)

    def run(self, now: Seen, as_of: Date, batches: int | None = None, everything: bool = False) -> int:
        """Bring the output up to date, in at most so many batches. Returns how many commits were made.

        A first commit that computes nothing and only marks keys is no batch.
        `everything` is a backfill: all dates of all keys are computed again and compared.
        """
        task = self.begin(now, move_clock(self.clock, as_of), everything)
        made = self.publish_first(task)
        self.batches = made if self.computed else 0
        while (batches is None or self.batches < batches) and (published := self.publish_batch(task)):
            made, self.batches = made + published, self.batches + published
        return made

    def begin(self, now: Seen, clock: Date, everything: bool = False) -> Task:
        """Find what there is to do."""
        task = Task(now=now, clock=clock, lookups=Lookups(self.declaration, now), before=self.seen)
        self.work = self._find_work(task, everything)
        return task

    def publish_first(self, task: Task) -> int:
        """The first commit of a run. Too many keys to be published at once are marked by it."""
        return self._commit_first(task, self._choose_who_waits(task))

    def publish_all(self, task: Task) -> int:
        """One commit with everything, of keys that an earlier commit marked too."""
        return self._commit_first(task, frozenset())

    def publish_batch(self, task: Task) -> int:
        """The next commit for keys that were marked. 0 if there are none."""
        batch = self._next_batch(task)
        if not batch:
            return 0
        return self._commit({key: self._value(key, self._pending(key), task) for key in batch}, task)

    def watermark(self, key: Key) -> Date | None:
        """Complete up to here, by what was read and recorded last. None for nowhere."""
        head = self.table.heads.get(key)
        if head is None:
            return None
        return last_due(self.seen.calendar, self.clock) if head.status == CURRENT else head.watermark

    def _find_work(self, task: Task, everything: bool) -> Work:
        """Compare the versions that were read last with those of the task."""
        old, now, history = self.seen, task.now, task.now.history.table
        by_history = reach_of_history(old.history.table, history)
        reached: dict[Key, Ranges] = dict(by_history)
        due = sorted(on for on in now.calendar if on <= task.clock)
        for reference in self.declaration.references:
            rows_before, rows = old.references.get(reference.name, {}), now.references[reference.name]
            by_reference = reach_of_reference(reference, rows_before, rows, task.lookups, due)
            for key, dates in by_reference.items():
                reached[key] = unite(reached.get(key, ()), dates)
        by_calendar = unite((on, on + 1) for on in old.calendar ^ now.calendar)
        newly_due = unite((on, on + 1) for on in due if on > self.clock)
        for key in history.heads:
            anew = everything or self._is_computed_anew(key)
            reached[key] = EVERYTHING if anew else unite(reached.get(key, ()), by_calendar)
        return Work(
            ranges={
                key: unite(reached[key], newly_due, self._pending(key))
                for key in history.heads
                if not is_held(history, key)
            },
            reached=reached,
            facts_touched=frozenset(
                key for key in history.heads if key in by_history or self._fails_or_folds_again(key, history)
            ),
        )

    def _group_of(self, key: Key) -> Group:
        return key[:1] if self.declaration.together else key

    def _pending(self, key: Key) -> Ranges:
        return self.table.heads.get(key, Head()).pending

    def _is_computed_anew(self, key: Key) -> bool:
        """A key that was held missed what changed meanwhile."""
        return key not in self.table.heads or was_held(self.table.heads[key])

    def _fails_or_folds_again(self, key: Key, history: Table) -> bool:
        head = self.table.heads.get(key)
        return head is None or was_held(head) != is_held(history, key)

    def _choose_who_waits(self, task: Task) -> frozenset[Group]:
        """The groups that are published later: those reached by anything but facts, if they are too many.

        A group that only has dates newly due does not wait.
        """
        facts_touched = {self._group_of(key) for key in self.work.facts_touched}
        rows_by_group: dict[Group, int] = defaultdict(int)
        reached_groups = set()
        for key, ranges in self.work.ranges.items():
            group = self._group_of(key)
            if group in facts_touched:
                continue
            rows_by_group[group] += task.count_dates(key, ranges)
            if self._pending(key) or task.count_dates(key, self.work.reached[key]):
                reached_groups.add(group)
        if sum(rows_by_group[group] for group in reached_groups) <= self.batch_rows:
            return frozenset()
        return frozenset(reached_groups)

    def _commit_first(self, task: Task, waiting: frozenset[Group]) -> int:
        """Publish everything of the groups that need not wait. Mark the others, new dates included.

        This commit moves the cursors. From then on the marks alone say what is left to do.
        """
        changes: dict[Key, KeyChange] = {}
        self.computed = 0
        for key, head in task.now.history.table.heads.items():
            if is_held(task.now.history.table, key):
                changes[key] = self._hold(key, head.reason)
            elif self._group_of(key) in waiting and self._has_dates(key, task):
                changes[key] = self._mark(key)
            else:  # the calendar may move the watermark of a key, although no date of the key is reached
                changes[key] = self._value(key, self.work.ranges[key], task)
                self.computed += task.count_dates(key, self.work.ranges[key])
        return self._commit(changes, task)

    def _has_dates(self, key: Key, task: Task) -> bool:
        """Whether a key has something to compute, now or left from before."""
        return bool(self._pending(key)) or task.count_dates(key, self.work.ranges[key]) > 0

    def _commit(self, changes: Mapping[Key, KeyChange], task: Task) -> int:
        """One commit carries rows, heads, superseded rows and the cursors. Returns how many were made.

        If nothing differs, nothing is written, and the cursors move in the catalog alone. But dates that
        became due are always recorded by a commit, an empty one if need be.
        """
        after = commit(self.table, changes)
        news = any(self.clock < on <= task.clock for on in task.now.calendar)
        self.seen, self.clock = task.now, task.clock
        if after is None and not news:
            return 0
        self.versions.append(ValuationVersion(table=after or self.table, seen=self.seen, clock=self.clock))
        return 1

    def _hold(self, key: Key, reason: str) -> KeyChange:
        """A key that does not fold keeps its rows and its watermark, and gets nothing new."""
        head = self.table.heads.get(key, Head())
        watermark = self.watermark(key)
        held = Head(epoch=head.epoch, status=FAILED, reason=reason, watermark=watermark)
        return KeyChange(head=held, watermark=watermark)

    def _mark(self, key: Key) -> KeyChange:
        """A key that waits keeps its rows, its watermark and what it waited for. Its dates are noted."""
        head, watermark = self.table.heads[key], self.watermark(key)
        marked = replace(head, status=REPROCESSING, watermark=watermark, pending=self.work.ranges[key])
        return KeyChange(head=marked, watermark=watermark)

    def _value(self, key: Key, ranges: Ranges, task: Task) -> KeyChange:
        """Compute the cells of a key, and compare them with what is published on them."""
        head = self.table.heads.get(key, Head())
        computed: dict[Date, Values] = {}
        missing: set[Date] = {on for on in head.waits if not within(on, ranges)}
        for on in sorted(on for on in task.now.calendar if on <= task.clock and within(on, ranges)):
            resolved = task.lookups.resolve(key, on)
            if resolved is None:
                continue
            names, misses = resolved
            if misses:
                missing.add(on)
            elif self.declaration.where(names):
                fields = {name: names[name] for name in self.declaration.fields}
                computed[on] = fields | dict(self.declaration.columns(names))
        put, replaced = compare(self._published(key, ranges, task), computed)
        after = Head(
            epoch=head.epoch,
            status=FAILED if missing else CURRENT,
            reason="a required reference has no row" if missing else "",
            watermark=last_due(task.now.calendar, min(missing) - 1) if missing else None,
            waits=frozenset(missing),
        )
        return KeyChange(head=after, watermark=self.watermark(key), put=put, replaced=replaced)

    def _published(self, key: Key, ranges: Ranges, task: Task) -> dict[Date, Values]:
        """The published rows in ranges, whatever the calendar says now.

        A date may have left it while the key was held or waited. Dates newly due have no row: none is read.
        """
        published = self.table.values_by_date(key)
        return {on: row for on, row in published.items() if within(on, ranges) and on <= self.clock}

    def _next_batch(self, task: Task) -> list[Key]:
        """Whole groups of marked keys, as many as `batch_rows` lets in, and at least one."""
        marked: dict[Group, list[Key]] = defaultdict(list)
        for key, head in sorted(self.table.heads.items()):
            if head.pending:
                marked[self._group_of(key)].append(key)
        batch: list[Key] = []
        rows = 0
        for _, keys in sorted(marked.items()):
            rows += sum(task.count_dates(key, self._pending(key)) for key in keys)
            if batch and rows > self.batch_rows:
                break
            batch += keys
        return batch
