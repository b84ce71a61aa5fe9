"""Builders of small values for the catalog's tests. Each needs only what its test is about."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import delete

from strandline.catalog import Catalog, record_commit, record_unchanged
from strandline.catalog.tables import metadata
from strandline.model.commits import (
    BuiltPartition,
    CommitMetadata,
    CommitRecord,
    Invalidation,
    Operation,
    WrittenConfig,
)
from strandline.model.files import FileRead
from strandline.model.kind import NodeKind
from strandline.model.leases import Lease
from strandline.model.plan import Cause, Cursor, Status, Strategy, TaskResult
from strandline.model.project import Chain, FactDataset, Job, Quarantine
from strandline.model.scope import EVERYTHING, Increment, Keys, Range
from strandline.model.traits import Recount

COMMITTED_AT = datetime(2024, 1, 1, tzinfo=UTC)


def a_cursor(version: int, table_id: str = "source-table") -> Cursor:
    return Cursor(table_id=table_id, version=version)


def a_file(path: str, rows: int = 1, modified_ns: int = 1_700_000_000_123_456_789) -> FileRead:
    return FileRead(
        path=path,
        revision=1,
        bytes=rows * 10,
        rows=rows,
        digest=f"d{rows}",
        size=rows * 10,
        modified_ns=modified_ns,
    )


def an_invalidation(id_: str, reason: str = "checked") -> Invalidation:
    return Invalidation(id=id_, scope=Range(column="block_number", low=5, high=9), reason=reason)


def a_commit(
    version: int,
    *,
    node: str = "orders",
    table_id: str = "table-1",
    operation: Operation = Operation.APPEND,
    config: str = "config-a",
    whole: bool = False,
    inputs: Mapping[str, Cursor] | None = None,
    files: tuple[FileRead, ...] = (),
    counts: Mapping[str, int] | None = None,
    as_of: str = "2024-01-01T00:00:00Z",
    partitions: Mapping[str, int] | None = None,
    waiting: tuple[str, ...] = (),
    invalidations: tuple[Invalidation, ...] = (),
    committed_at: datetime = COMMITTED_AT,
    bytes_added: int = 0,
) -> CommitRecord:
    """`partitions` holds the number of rows of each partition that the commit built."""
    carried = CommitMetadata(
        run="run-1",
        task=f"run-1/{node}/{version}",
        node=node,
        token=version + 1,
        operation=operation,
        inputs=inputs or {},
        scope=EVERYTHING,
        cause="new_input",
        config=WrittenConfig(hash=config, parts={"sql": f"digest of {config}"}),
        whole=whole,
        as_of=as_of,
        counts=counts or {},
        files=files,
        schema_hash=f"schema of {config}" if partitions else "",
        partitions=tuple(
            BuiltPartition(partition_key=key, rows=rows) for key, rows in (partitions or {}).items()
        ),
        waiting=waiting,
        invalidations=invalidations,
    )
    return CommitRecord(
        metadata=carried,
        table_id=table_id,
        version=version,
        committed_at=committed_at,
        bytes_added=bytes_added,
    )


def a_result(
    node: str = "orders", status: Status = Status.DONE, error: str = "", seconds: float = 1.5
) -> TaskResult:
    return TaskResult(
        node=node,
        kind=Job.kind,
        cause=Cause.NEW_INPUT,
        strategy=Strategy.RECOMPUTE,
        reason="3 keys changed",
        scope=Keys(origins=(Increment(dataset="sales", first=3, last=3, rows=10),)),
        covered=Keys(count=3),
        status=status,
        input_versions={"sales": 3},
        rows_read=10,
        rows_written=4,
        rows_full=100,
        seconds=seconds,
        table_version=7,
        counts={"accepted": 4},
        error=error,
        slug="work" if error else "",
        tombstones=2,
        notes=("a file was skipped",),
    )


RECOUNTS = {
    FactDataset.kind: Recount.ON_OVERWRITE,
    Quarantine.kind: Recount.ON_OVERWRITE,
    Chain.kind: Recount.WHEN_WHOLE,
}


def record(
    catalog: Catalog,
    lease: Lease,
    *commits: CommitRecord,
    kind: NodeKind = FactDataset.kind,
    release: bool = False,
    readers: Sequence[str] = (),
) -> None:
    last = max((commit.version for commit in commits), default=0)
    counted = {"row_count": 10 * last, "bytes_": 100 * last}
    recount = RECOUNTS.get(kind, Recount.NEVER)
    record_commit(
        catalog,
        lease,
        commits,
        kind=kind,
        recount=recount,
        location="/lake/orders",
        **counted,
        release=release,
        readers=readers,
    )


def record_nothing_new(
    catalog: Catalog,
    lease: Lease,
    *,
    version: int,
    files: tuple[FileRead, ...] = (),
    table_version: int | None = None,
    release: bool = False,
    waiting: tuple[str, ...] = (),
    cursors: Mapping[str, Cursor] | None = None,
) -> None:
    record_unchanged(
        catalog,
        lease,
        kind=FactDataset.kind,
        cursors={"sales": a_cursor(version)} if cursors is None else cursors,
        files=files,
        as_of=f"2024-01-02T00:00:{version % 60:02d}Z",
        table_version=table_version,
        release=release,
        waiting=waiting,
    )


def emptied(catalog: Catalog) -> Catalog:
    with catalog.writing() as connection:
        for table in reversed(metadata.sorted_tables):
            connection.execute(delete(table))
    return catalog
