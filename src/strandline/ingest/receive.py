"""A source's task: what its files contain that was not received yet, with positions."""

from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.lake.small import spark_schema
from strandline.lake.table import get_table
from strandline.lake.work import Expected, Prepared, Work, Write
from strandline.model.columns import INGESTED_AT, PAYLOAD, POSITION
from strandline.model.commits import Operation
from strandline.model.errors import WorkError
from strandline.model.project import FileSource, HttpSource
from strandline.model.scope import NOTHING, Rows

from .listing import list_files
from .messages import POSITION_TYPE, read_messages
from .posts import receive_posts
from .received import Received
from .survey import Piece, survey
from .tabular import read_tabular
from .text import FileRefusedError


def prepare(work: Work) -> Prepared:
    """Receive the task's files, or what was posted.

    A file that cannot be read is refused alone: the others are received, and the task says which failed.
    """
    source = work.node.definition
    if isinstance(source, HttpSource):
        return receive_posts(work, source)
    assert isinstance(source, FileSource)
    requested = set(work.task.files)
    listed = list_files(source.files, work.project.folder)
    surveyed = survey(
        source, work.project.folder, tuple(f for f in listed if f.path in requested), dict(work.files)
    )
    rows, received = _read(work, source, surveyed.pieces)
    refused = {**surveyed.refused, **received.refused}
    empty = (
        [p for p in received.pieces.values() if not received.counts[p.read.path]] if source.complete else []
    )
    if empty:
        rows = _add_markers(work, rows, empty)
    files = (*(p.read for p in received.pieces.values()), *surveyed.seen)
    notes = (*surveyed.notes, *received.notes)
    total = sum(received.counts.values())
    if rows is None:
        if work.own_version is not None or not source.format.holds_messages:
            return Prepared(
                write=None,
                live_rows=work.live_rows,
                files=files,
                notes=notes,
                refused=_explain(refused),
                scope=NOTHING,
            )
        rows = work.session.createDataFrame([], f"{PAYLOAD} string, {POSITION} {POSITION_TYPE}")
    rows = rows.withColumn(INGESTED_AT, F.lit(work.now))
    return Prepared(
        write=Write(
            operation=Operation.APPEND if total or empty else Operation.COUNTS, rows=rows, received=True
        ),
        rows_read=total,
        rows_written=total,
        rows_full=work.live_rows + total,
        live_rows=work.live_rows + total,
        counts={"received": total},
        whole=False,
        files=files,
        scope=Rows(count=len(received.pieces), of="files"),
        notes=notes,
        refused=_explain(refused),
    )


def expect(work: Work) -> Expected:
    """Check the table for positions that occur twice. What was received cannot be received again."""
    own = work.read_own()
    assert own is not None
    return Expected(rows=None, published=own, sampled_by=[POSITION])


def _read(work: Work, source: FileSource, pieces: tuple[Piece, ...]) -> tuple[DataFrame | None, Received]:
    if not pieces:
        return None, Received()
    staging = f"{work.staging}/received"
    if source.format.holds_messages:
        return read_messages(work.session, source, pieces, staging)
    stored = (
        None
        if work.own_version is None
        else spark_schema(get_table(work.lake.table(work.node.name), work.own_version))
    )
    return read_tabular(work.session, source, pieces, staging, stored)


def _explain(refused: dict[str, FileRefusedError]) -> WorkError | None:
    """The refusals of a task as one error: the first in full, the others by name."""
    if not refused:
        return None
    first, *others = refused.values()
    if not others:
        return first
    names = ", ".join(f"`{path}` [{error.slug}]" for path, error in list(refused.items())[1:20])
    more = f" and {len(others) - 19} more" if len(others) > 19 else ""
    return WorkError(f"{first.what}\n  Also refused: {names}{more}.", remedy=first.remedy, slug=first.slug)


def _add_markers(work: Work, rows: DataFrame | None, empty: list[Piece]) -> DataFrame:
    """A complete export without rows says that everything is deleted. It is kept as one row at place 0."""
    markers = work.session.createDataFrame(
        [(None, (p.read.path, p.read.revision, 0)) for p in empty],
        f"{PAYLOAD} string, {POSITION} {POSITION_TYPE}",
    )
    frames = [markers] if rows is None else [rows, markers]
    return reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)
