"""Change logs: what a dataset's commits changed is appended, one net change a row key and commit."""

from collections.abc import Mapping
from datetime import datetime

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.lake.log import LogEntry, read_entries, read_entries_since, read_newest_entries
from strandline.lake.reads import read_added, read_commits
from strandline.lake.staging import stage
from strandline.lake.work import OLD, SIDE, Expected, Prepared, Work, Write
from strandline.model.commits import Operation
from strandline.model.plan import Cursor
from strandline.model.publishing import ChangeLog
from strandline.model.scope import Rows

from .handed_on import NetChange, net_few
from .netting import Netting, Sides, net_changes
from .oracle import expect_log
from .pieces import Commits, Piece, Reset, Rewrite, find_publishing_time, find_unread
from .row_key import check_row_key, has_inexact_key
from .rows import LogFile

_SCHEMA = (
    "version bigint, position bigint, operation string, key string, source_timestamp bigint,"
    " fields array<string>, data string, before string, published_at timestamp"
)
_COLUMNS = (
    "version",
    "position",
    "operation",
    "key",
    "source_timestamp",
    "fields",
    "data",
    "before",
    "published_at",
)


def prepare(work: Work) -> Prepared:
    """Append the net changes of the dataset's commits since the cursor."""
    log = log_of(work)
    check_row_key(work, log)
    upto = work.version(log.dataset)
    own = read_newest_entries(work.lake.table(work.node.name), _is_timed)
    cursor = next(i.after for i in work.task.inputs if i.dataset == log.dataset)
    entries = read_dataset_log(work.lake.table(log.dataset), cursor, upto)
    now = work.inputs[log.dataset]
    pieces = find_unread(entries, work.node.name, cursor, now, redeclared=work.stale)
    file = LogFile(f"{work.staging}/log.parquet", find_publishing_time(own, work.now))
    try:
        for number, piece in enumerate(pieces):
            _tell(work, log, entries, piece, number, file)
    finally:
        file.close()
    is_first = work.own_version is None or work.task.overwrite
    rewrites = work.task.overwrite and work.own_version is not None
    operation = Operation.OVERWRITE if rewrites else Operation.APPEND if file.rows or is_first else None
    if operation is None and work.stale:
        operation = Operation.COUNTS
    rows = _read_file(work, f"{work.staging}/log.parquet", placed=file.placed)
    return Prepared(
        write=None if operation is None else Write(operation=operation, rows=rows),
        scope=Rows(count=file.rows, of="changes"),
        rows_read=file.rows,
        rows_written=file.rows,
        rows_full=work.input_rows.get(log.dataset, 0),
        live_rows=file.rows if rewrites else work.live_rows + file.rows,
        whole=True,
    )


def expect(work: Work) -> Expected:
    return expect_log(work, log_of(work))


def log_of(work: Work) -> ChangeLog:
    assert isinstance(work.node.definition, ChangeLog)
    return work.node.definition


def netting_of(work: Work, log: ChangeLog) -> Netting:
    node = work.project.get(log.dataset)
    return Netting(key=log.key, place=node.key, order=node.columns, unit=work.node.traits.time_unit)


def read_dataset_log(uri: str, cursor: Cursor | None, upto: int) -> list[LogEntry]:
    """The commits since the cursor, and the last one before that says how many rows there were."""
    if cursor is None:
        return [e for e in read_entries(uri, -1) if e.version <= upto]
    return read_entries_since(uri, cursor.version, upto, lambda e: e.metadata is not None)


def _is_timed(entry: LogEntry) -> bool:
    return entry.metadata is not None and entry.committed_at is not None


def _tell(
    work: Work, log: ChangeLog, entries: list[LogEntry], piece: Piece, number: int, file: LogFile
) -> None:
    if isinstance(piece, Reset):
        file.add_reset(piece.version)
        return
    times = {e.version: e.committed_at for e in entries}
    if isinstance(piece, Commits) and (few := _net_few(work, log, piece, times)) is not None:
        file.add_few(few, log.key)
        return
    sides = (
        _read_rewrite(work, log, piece, times[piece.version])
        if isinstance(piece, Rewrite)
        else (_read_commits(work, log, piece, times[piece.versions[-1]]),)
    )
    net = net_changes(sides, netting_of(work, log))
    if has_inexact_key(net, log):
        file.add_reset(piece.version if isinstance(piece, Rewrite) else piece.versions[-1])
        return
    staged = stage(net, f"{work.staging}/net_{number}", {"rows": F.count(F.lit(1))})
    file.add_changes(staged, log.key)


def _net_few(
    work: Work, log: ChangeLog, piece: Commits, times: Mapping[int, datetime | None]
) -> tuple[NetChange, ...] | None:
    """The changes of one commit of this run, if they are few. None leaves them to Spark."""
    *earlier, last = piece.versions
    staged = None if earlier else work.shared.find_changes(log.dataset, last - 1, last)
    if staged is None:
        return None
    if staged.counts["new_rows"] + staged.counts["old_rows"] > work.project.settings.thresholds.examined_rows:
        return None
    return net_few(staged, netting_of(work, log), last, times[last])


def _read_rewrite(work: Work, log: ChangeLog, piece: Rewrite, at: datetime | None) -> tuple[Sides, ...]:
    """The state before the rewrite and the one after it."""
    version, instant = F.lit(piece.version), F.lit(at)
    came = Sides(rows=work.read(log.dataset, piece.version), came=F.lit(True), version=version, at=instant)
    if piece.before is None:
        return (came,)
    left = Sides(rows=work.read(log.dataset, piece.before), came=F.lit(False), version=version, at=instant)
    return left, came


def _read_commits(work: Work, log: ChangeLog, piece: Commits, at: datetime | None) -> Sides:
    """What the compare step handed on, if it is all of it. Otherwise the feed tells, commit by commit."""
    *earlier, last = piece.versions
    if not earlier:
        version, instant = F.lit(last), F.lit(at)
        staged = work.shared.find_changes(log.dataset, last - 1, last)
        if staged is not None:
            rows = staged.read(work.session)
            return Sides(rows=rows, came=F.col(SIDE) != OLD, version=version, at=instant)
        if work.project.get(log.dataset).traits.only_grows:
            added = read_added(work.session, work.lake, log.dataset, last - 1, last)
            return Sides(rows=added, came=F.lit(True), version=version, at=instant)
    feed = read_commits(work.session, work.lake, log.dataset, piece.versions)
    return Sides(
        rows=feed.rows, came=F.expr(feed.came), version=F.expr(feed.version), at=F.expr(feed.committed_at)
    )


def _read_file(work: Work, path: str, *, placed: bool) -> DataFrame:
    """The rows with their place among the changes of their version, by the text of their key."""
    rows = work.session.read.schema(_SCHEMA).parquet(path)
    if not placed:
        position = "row_number() OVER (PARTITION BY version ORDER BY key) - 1"
        rows = rows.withColumn("position", F.expr(f"cast({position} AS bigint)"))
    return rows.select(*_COLUMNS)
