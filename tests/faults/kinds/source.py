"""Sources: each line of a file is received once, as it came. Every stream of the other kinds brings one."""

from collections.abc import Iterable
from functools import partial

import pyarrow as pa

from strandline.ingest.inbox import begin
from strandline.ingest.listing import list_files
from strandline.ingest.survey import Piece, survey
from strandline.ingest.waiting import add_to_entry, find_entry, look
from strandline.lake.received import find_received
from strandline.lake.work import Prepared
from strandline.model.columns import INGESTED_AT, PAYLOAD, POSITION
from strandline.model.commits import Operation
from strandline.model.project import FileSource, HttpSource
from strandline.model.scope import NOTHING, Rows
from tests.faults.evidence import Evidence, require
from tests.faults.plain_work import INGESTED_COLUMN, POSITION_COLUMN, Work, write_rows
from tests.faults.table_log import Row

from .kind import Kind

_RECEIVED = pa.schema([(PAYLOAD, pa.string()), POSITION_COLUMN, INGESTED_COLUMN])


def prepare(work: Work) -> Prepared:
    source = work.node.definition
    if isinstance(source, HttpSource):
        return _receive_posts(work, source)
    assert isinstance(source, FileSource)
    folder, wanted = work.desk.project.folder, set(work.task.files)
    known = dict(work.record.files) if work.record else {}
    found = survey(
        source, folder, tuple(f for f in list_files(source.files, folder) if f.path in wanted), known
    )
    rows = [
        {PAYLOAD: text, POSITION: at, INGESTED_AT: work.desk.now()}
        for piece in found.pieces
        for at, text in _lines(piece)
    ]
    if not rows and work.own_version is not None:
        return Prepared(
            write=None, scope=NOTHING, live_rows=work.live_rows, files=found.seen, notes=found.notes
        )
    operation = Operation.APPEND if rows else Operation.COUNTS
    return Prepared(
        write=write_rows(operation, _RECEIVED, rows, received=True),
        scope=Rows(count=len(rows)),
        rows_read=len(rows),
        rows_written=len(rows),
        live_rows=work.live_rows + len(rows),
        counts={"received": len(rows)},
        files=(*(p.read for p in found.pieces), *found.seen),
    )


def _receive_posts(work: Work, source: HttpSource) -> Prepared:
    inbox, table = work.desk.lake.inbox(source.name), work.desk.lake.table(source.name)
    entry = find_entry(source, work.record.files if work.record else {})
    if work.own_version is None:
        begin(inbox)
    find = None if work.own_version is None else partial(find_received, table, work.own_version)
    waiting = look(source, inbox, work.task.files, entry, find)
    rows = [
        {
            PAYLOAD: text,
            POSITION: {"name": post.head.key, "part": post.part, "place": place},
            INGESTED_AT: work.desk.now(),
        }
        for post in waiting.new
        for place, text in post.read()
    ]
    if not rows and work.own_version is not None:
        return Prepared(write=None, scope=NOTHING, live_rows=work.live_rows, posts=waiting.paths)
    return Prepared(
        write=write_rows(Operation.APPEND if rows else Operation.COUNTS, _RECEIVED, rows, received=True),
        scope=Rows(count=len(waiting.new), of="posts"),
        rows_read=len(rows),
        rows_written=len(rows),
        live_rows=work.live_rows + len(rows),
        counts={"received": len(rows)},
        files=(add_to_entry(entry, waiting.new, len(rows)),),
        posts=waiting.paths,
    )


def _lines(piece: Piece) -> Iterable[tuple[Row, str]]:
    data = piece.file.read_bytes()[piece.start : piece.end]
    for offset, line in enumerate(data.decode().split("\n")):
        if line.strip():
            yield (
                {"name": piece.read.path, "part": piece.read.revision, "place": piece.first_place + offset},
                line,
            )


def check(evidence: Evidence) -> None:
    """L1: each line is once in the source's table; at rest all of them are."""
    for stream in evidence.world.streams:
        lines = evidence.lines(stream)
        received = {place: row[PAYLOAD] for place, row in evidence.by_place(stream.source, "L1").items()}
        require(received.items() <= lines.items(), "L1 received as it came", stream.source)
        if evidence.at_rest:
            missing = lines.keys() - received.keys()
            require(not missing, "L1 all is received", stream.source, missing)


KIND = Kind(name="source", prepare=prepare, check=check)
