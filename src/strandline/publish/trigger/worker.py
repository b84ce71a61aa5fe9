"""Triggers: the changes of a dataset are folded into events, which are appended."""

from dataclasses import dataclass

from strandline.lake.log import LogEntry, count_added, read_newest_entries
from strandline.lake.work import Expected, Prepared, Work, Write
from strandline.model.commits import Operation
from strandline.model.plan import Cause
from strandline.model.publishing import Trigger
from strandline.model.scope import Increment, Rows
from strandline.publish.trigger_fold import TriggerRule, check_guard, fold_changes

from .event_file import SPARK_SCHEMA, EventFile
from .existing import Comparing, compare_rows
from .oracle import expect_events
from .reading import (
    ChangeReader,
    find_covered,
    find_unread,
    list_keys,
    read_dataset_entries,
    read_log_entries,
)
from .recorded import read_history
from .rule import COMPARED, REVISIONS, find_told, make_rule, trigger_of
from .way import choose_way

_ROWS_AT_ONCE = 200_000
"""Changes that are folded at once, which bounds the memory that a task needs."""


UNCOMMITTED = 100
"""At most this many commits of the log are read without a commit that says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Folding:
    """What one task of a trigger folds."""

    rule: TriggerRule
    reader: ChangeReader
    revision: int
    version: int
    """The version of the dataset that the log is complete to."""
    quiet: bool
    compares: bool
    """The rows as they are now are compared with the state, and changes are not folded."""


def prepare(work: Work) -> Prepared:
    """Fold what the log has since the cursor, and append the events."""
    trigger = trigger_of(work)
    folding = _start(work, trigger)
    path = f"{work.staging}/events.parquet"
    file = EventFile(path, work.now)
    try:
        revision, read = _fold(work, trigger, folding, file)
    finally:
        file.close()
    check_guard(trigger.name, file.told, trigger.max_events, accepted=work.accept_guard)
    counts = {COMPARED: 1} if folding.compares else {}
    revisions = revision - work.counts.get(REVISIONS, 0)
    rewrites = work.task.overwrite and work.own_version is not None
    operation: Operation | None = None
    if rewrites:
        operation = Operation.OVERWRITE
    elif work.own_version is None or file.rows:
        operation = Operation.APPEND
    elif revisions or folding.compares or _is_far_ahead(work, folding.reader):
        operation = Operation.COUNTS  # what was read is not folded again after a lost catalog
    rows = work.session.read.schema(SPARK_SCHEMA).parquet(path)
    return Prepared(
        write=None if operation is None else Write(operation=operation, rows=rows),
        scope=Rows(count=read, of="changes", origins=(_name_read(folding),)),
        rows_read=read,
        rows_written=file.rows,
        rows_full=sum(work.input_rows.values()),
        live_rows=file.rows if rewrites else work.live_rows + file.rows,
        counts={**counts, REVISIONS: revisions} if revisions else counts,
        task_counts={"told": file.told},
        whole=True,
    )


def _is_far_ahead(work: Work, reader: ChangeReader) -> bool:
    """Whether much was read since the last commit that says what was read.

    A commit for each change without an event would cost as much as one with events. Without any, a trigger
    that is edited while its catalog is lost would fold by its new conditions all that it has read since its
    last event.
    """
    entries = read_newest_entries(work.lake.table(work.node.name), lambda e: _find_read(e, reader.log) >= 0)
    return reader.upto - _find_read(entries[0], reader.log) >= UNCOMMITTED


def _find_read(entry: LogEntry, log: str) -> int:
    """The version of the log that a commit of the trigger has read. -1 if it does not say."""
    cursor = entry.metadata.inputs.get(log) if entry.metadata else None
    return -1 if cursor is None else cursor.version


def _name_read(folding: Folding) -> Increment:
    """The versions of the log that were read. Cursors move without a commit if there is no event."""
    reader = folding.reader
    return Increment(dataset=reader.log, first=reader.unread.after + 1, last=reader.upto)


def expect(work: Work) -> Expected:
    return expect_events(work, trigger_of(work))


def _start(work: Work, trigger: Trigger) -> Folding:
    log = work.node.inputs[0].dataset
    now = work.inputs[log]
    cursor = next(i.after for i in work.task.inputs if i.dataset == log)
    log_entries = read_log_entries(work.lake.table(log), trigger.dataset, cursor, now.version)
    covered = find_covered(log_entries, trigger.dataset, now.version)
    dataset = work.lake.table(trigger.dataset)
    entries = read_dataset_entries(dataset, trigger.dataset, log_entries, cursor, covered)
    unread = find_unread(trigger.name, cursor, now, trigger.dataset, log_entries, entries)
    known = work.counts.get(REVISIONS, 0)
    starts = not known or work.stale or unread.broken or work.task.overwrite
    rule, kinds = make_rule(work, trigger, covered)
    told = find_told(entries, trigger.name)
    rows = count_added(work.lake.table(log), unread.after, now.version)
    reader = ChangeReader(
        lake=work.lake,
        log=log,
        unread=unread,
        upto=now.version,
        told=told,
        kinds=kinds,
        shares=rows // _ROWS_AT_ONCE + 1,
    )
    were_there = cursor is not None or any(e.changes_rows and e.version not in told for e in entries)
    way = choose_way(
        trigger.existing,
        starts=starts,
        asked=work.task.cause is Cause.PERSON,
        were_there=were_there,
        has_existing=reader.has_existing,
        has_reset=reader.has_reset,
    )
    return Folding(
        rule=rule,
        reader=reader,
        compares=way.compares,
        revision=known + 1 if way.starts else known,
        version=covered,
        quiet=work.quiet or (work.task.overwrite and work.own_version is not None),
    )


def _fold(work: Work, trigger: Trigger, folding: Folding, file: EventFile) -> tuple[int, int]:
    """The revision at the end, and how many changes or rows were read."""
    reader, revision, read = folding.reader, folding.revision, 0
    if folding.compares:
        comparing = Comparing(
            rule=folding.rule,
            dataset=trigger.dataset,
            key=trigger.key,
            version=folding.version,
            log=reader.log,
            kinds=reader.kinds,
            revision=revision,
            quiet=folding.quiet,
        )
        file.add(compare_rows(work, comparing))
        return revision, work.input_rows.get(trigger.dataset, 0)
    for share in range(reader.shares):
        changes = reader.read(share)
        read += len(changes)
        recorded = read_history(work, list(list_keys(changes)), folding.revision).recorded
        folded = fold_changes(folding.rule, changes, recorded, quiet=folding.quiet)
        file.add(folded.events)
        revision = folded.revision
    return revision, read
