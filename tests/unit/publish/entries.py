"""Entries of logs, as tests of what is published need them."""

from datetime import UTC, datetime

from strandline.lake.log import LogEntry
from strandline.model.commits import CommitMetadata, Operation, WrittenConfig
from strandline.model.plan import Cursor
from strandline.model.scope import NOTHING


def make_entry(
    version: int,
    operation: Operation = Operation.REPLACE_KEYS,
    *,
    published_to: tuple[str, ...] = (),
    rows: int = 1,
    readable_from: int = 0,
    read: int | None = None,
) -> LogEntry:
    """`read`: up to which version of `trades` it tells, for a commit of a change log."""
    metadata = CommitMetadata(
        run="run",
        task=f"run/trades/{version}",
        node="trades",
        token=version + 1,
        operation=operation,
        inputs={} if read is None else {"trades": Cursor(table_id="trades", version=read)},
        scope=NOTHING,
        cause="new_input",
        config=WrittenConfig(hash="", parts={}),
        whole=False,
        as_of="",
        counts={},
        rows=rows,
        readable_from=readable_from,
        published_to=published_to,
    )
    return LogEntry(
        version=version,
        operation="WRITE",
        committed_at=datetime(2024, 1, 1, tzinfo=UTC),
        metadata=metadata,
        tokens={},
        added=(),
        removes_rows=False,
        data_change=operation.changes_rows,
        table_id=None,
    )
