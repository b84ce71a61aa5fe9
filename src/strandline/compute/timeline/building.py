"""The first write of an output of a timeline, or one that gives it another shape.

Files are clustered by date, so that a later correction reads only those of the dates it reaches.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.keys import user_columns
from strandline.lake.work import ErrorNamer, Prepared, Work, Write
from strandline.model.columns import ROLE
from strandline.model.commits import Operation
from strandline.model.plan import Cause
from strandline.model.scope import EVERYTHING
from strandline.model.timeline import DATE

from .superseding import Candidates, make_first_rows

ROWS_PER_FILE = 300_000


def keep_published(work: Work, columns: Collection[str]) -> Work:
    """A task that may write its table anew compares with it, if the table has the same columns.

    So epochs and superseded rows outlive a lost catalog and a declaration that changed. If a type turns out
    to be another one, the task is prepared again, and then the table is written anew. It always is if
    somebody else has put it in the place of ours.
    """
    task, own = work.task, work.find_shape()
    if not task.overwrite or task.reshapes or task.cause is Cause.GAP or own is None:
        return work
    if ROLE not in own.columns or set(user_columns(own.columns)) != set(columns):
        return work
    return replace(work, task=replace(task, overwrite=False, reshapes=True))


def build_table(
    work: Work,
    candidates: Candidates,
    count: int,
    order: Sequence[str] = (DATE,),
    name_error: ErrorNamer | None = None,
) -> Prepared:
    """Everything that was computed, `count` rows and the heads, as a new table.

    Rows are written in an order, so that each page of a file has few of the values in it.
    """
    read = sum(work.input_rows.values())
    rows = make_first_rows(work, candidates, one_file=count <= ROWS_PER_FILE, order=order)
    return Prepared(
        write=Write(operation=Operation.OVERWRITE, rows=rows, name_error=name_error),
        scope=EVERYTHING,
        rows_read=read,
        rows_written=count,
        rows_full=read,
        live_rows=count,
        whole=True,
    )


def cluster(rows: DataFrame, count: int) -> DataFrame:
    """Rows of near dates together, in as many parts as there will be files."""
    return rows.repartitionByRange(count // ROWS_PER_FILE + 1, F.col(DATE)) if count > ROWS_PER_FILE else rows
