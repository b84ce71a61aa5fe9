"""The events of a trigger, folded again from the log (L2). The state is kept here, not looked up.

Only the current revision can be folded again, because the conditions of earlier ones are gone. Events by
which the rows were compared with the state are taken as they are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import functions as F

from strandline.lake.log import LogEntry, read_entries
from strandline.lake.reads import scan_added
from strandline.lake.work import Expected, Work
from strandline.model.events import EVENT_COLUMNS, EventType
from strandline.model.plan import Cursor
from strandline.model.publishing import Trigger
from strandline.model.scope import Increment, find_origins
from strandline.publish.trigger_fold import Recorded, fold_changes

from .reading import ChangeReader, find_covered, find_unread
from .rule import COMPARED, REVISIONS, find_told, make_rule

_NAMES = ("event_id", *(name for name in EVENT_COLUMNS if name != "quiet"))
_SHAPE = (
    "event_id string, event_type string, key string, source_timestamp bigint, n bigint, data string,"
    " version bigint, position bigint, revision bigint"
)
EventRow = Mapping[str, Any]


@dataclass(slots=True)
class _Remembered:
    """What the fold so far has made, of all keys."""

    revision: int
    last: dict[str, EventType] = field(default_factory=dict)
    counts: dict[tuple[str, int], int] = field(default_factory=dict)

    def add(self, events: Iterable[EventRow]) -> None:
        for event in events:
            counted = event["key"], event["source_timestamp"]
            self.counts[counted] = self.counts.get(counted, 0) + 1
            if event["revision"] > self.revision:
                self.revision, self.last = event["revision"], {}
            if event["revision"] == self.revision:
                self.last[event["key"]] = EventType(event["event_type"])

    @property
    def recorded(self) -> Recorded:
        return Recorded(revision=self.revision, last=self.last, counts=self.counts)


def expect_events(work: Work, trigger: Trigger) -> Expected:
    """The events since the current revision began."""
    own = work.read_own()
    assert own is not None
    assert work.own_version is not None
    commits = [
        e
        for e in read_entries(work.lake.table(work.node.name), -1)
        if e.version <= work.own_version and e.metadata and not e.metadata.operation.is_bare
    ]
    start = max(i for i, e in enumerate(commits) if _count(e, REVISIONS))
    revision = sum(_count(e, REVISIONS) for e in commits[:start]) + 1
    rows = [tuple(row[c] for c in _NAMES) for row in _fold_again(work, trigger, commits, start, revision)]
    return Expected(
        rows=work.session.createDataFrame(rows, _SHAPE),
        published=own.where(F.col("revision") >= revision).select(*_NAMES),
        sampled_by=("key",),
    )


def _fold_again(
    work: Work, trigger: Trigger, commits: list[LogEntry], start: int, revision: int
) -> list[EventRow]:
    """Each commit from `start` on read the log from where the one before ended, and so does the cursor."""
    log = work.node.inputs[0].dataset
    log_entries = list(read_entries(work.lake.table(log), -1))
    covered = find_covered(log_entries, trigger.dataset, work.version(log))
    entries = [e for e in read_entries(work.lake.table(trigger.dataset), -1) if e.version <= covered]
    rule, kinds = make_rule(work, trigger, covered)
    remembered = _Remembered(revision)
    for commit in commits[:start]:
        remembered.add(_read_events(work, commit))
    cursor = _find_begin(commits[start], log) if start else None
    events: list[EventRow] = []
    ends: list[tuple[LogEntry | None, Cursor | None]] = [
        (commit, _cursor_of(commit, log)) for commit in commits[start:]
    ]
    for end, upto in [*ends, (None, work.inputs[log])]:
        if end is not None and (_count(end, COMPARED) or upto is None):
            new = _read_events(work, end)
        else:
            assert upto is not None
            before = [e for e in log_entries if e.version <= upto.version]
            told_until = find_covered(before, trigger.dataset, upto.version)
            seen = [e for e in entries if e.version <= told_until]
            reader = ChangeReader(
                lake=work.lake,
                log=log,
                unread=find_unread(trigger.name, cursor, upto, trigger.dataset, before, seen),
                upto=upto.version,
                told=find_told(seen, trigger.name),
                kinds=kinds,
                shares=1,
            )
            folded = fold_changes(rule, reader.read(0), remembered.recorded)
            new = [{name: getattr(event, name) for name in _NAMES} for event in folded.events]
            if folded.revision > remembered.revision:
                remembered.revision, remembered.last = folded.revision, {}
        remembered.add(new)
        events += new
        cursor = upto or cursor
    return events


def _count(entry: LogEntry, name: str) -> int:
    return entry.metadata.counts.get(name, 0) if entry.metadata else 0


def _cursor_of(entry: LogEntry, log: str) -> Cursor | None:
    return entry.metadata.inputs.get(log) if entry.metadata else None


def _find_begin(entry: LogEntry, log: str) -> Cursor | None:
    """The cursor before a commit: earlier reading that gave no event left no commit."""
    upto = _cursor_of(entry, log)
    origins = find_origins(entry.metadata.scope) if entry.metadata else ()
    first = next((o.first for o in origins if isinstance(o, Increment) and o.dataset == log), None)
    return replace(upto, version=first - 1) if upto is not None and first is not None else upto


def _read_events(work: Work, commit: LogEntry) -> list[EventRow]:
    """The events of one commit, in the order in which they were recorded."""
    added = scan_added(work.lake, work.node.name, commit.version - 1, commit.version, _NAMES)
    rows = [row for _, batch in added for row in batch.to_pylist()]
    return sorted(rows, key=lambda row: (row["revision"], row["version"], row["position"]))
