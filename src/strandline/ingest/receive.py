"""A source's task: what its files hold that was not received yet, with positions."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.lake.small import spark_schema
from strandline.lake.state import get_table
from strandline.lake.work import Prepared, Work, Write
from strandline.model.columns import INGESTED_AT, PAYLOAD, POSITION
from strandline.model.project import FileSource
from strandline.model.records import Operation

from .listing import list_files
from .messages import POSITION_TYPE, read_messages
from .survey import Piece, survey
from .tabular import read_tabular


def prepare_source(work: Work) -> Prepared:
    """Receive the task's files."""
    source = work.node.definition
    assert isinstance(source, FileSource)
    wanted = set(work.task.files)
    listed = list_files(source, work.project.folder)
    found = survey(source, work.project.folder, tuple(f for f in listed if f.path in wanted), dict(work.files))
    rows, counts = _read(work, source, found.pieces)
    empty = [p for p in found.pieces if not counts.get(p.read.path)] if source.complete else []
    if empty:
        rows = _add_markers(work, rows, empty)
    if rows is None:
        if work.own_version is not None or not source.format.holds_messages:
            return Prepared(write=None, live_rows=work.live_rows, files=found.seen, notes=found.notes, scope="nothing new")
        rows = work.session.createDataFrame([], f"{PAYLOAD} string, {POSITION} {POSITION_TYPE}")
    rows = rows.withColumn(INGESTED_AT, F.lit(work.now))
    received = sum(counts.values())
    files = (*(p.read for p in found.pieces), *found.seen)
    return Prepared(
        write=Write(operation=Operation.APPEND if received or empty else Operation.COUNTS, rows=rows, received=True),
        rows_read=received,
        rows_written=received,
        rows_full=work.live_rows + received,
        live_rows=work.live_rows + received,
        counts={"received": received},
        whole=False,
        files=files,
        scope=f"{len(found.pieces)} files",
        notes=found.notes,
    )


def _read(work: Work, source: FileSource, pieces: tuple[Piece, ...]) -> tuple[DataFrame | None, dict[str, int]]:
    if not pieces:
        return None, {}
    if source.format.holds_messages:
        return read_messages(work.session, source, pieces, f"{work.staging}/received")
    stored = None if work.own_version is None else spark_schema(get_table(work.lake.table(work.node.name), work.own_version))
    return read_tabular(work.session, source, pieces, f"{work.staging}/received", stored)


def _add_markers(work: Work, rows: DataFrame | None, empty: list[Piece]) -> DataFrame:
    """A complete export without rows says that everything is gone: it is kept as one row at place 0."""
    markers = work.session.createDataFrame(
        [(None, (p.read.path, p.read.revision, 0)) for p in empty], f"{PAYLOAD} string, {POSITION} {POSITION_TYPE}"
    )
    frames = [markers] if rows is None else [rows, markers]
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)
