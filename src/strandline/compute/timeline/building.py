"""The first write of an output of a timeline, or one that gives it another shape.

Files are clustered by date, so that a later correction reads only those of the dates it reaches.
"""

from collections.abc import Collection
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.keys import user_columns
from strandline.lake.staging import Staged
from strandline.lake.work import SIDE, Prepared, Work, Write
from strandline.model.columns import ROLE, Role
from strandline.model.commits import Operation
from strandline.model.plan import Cause
from strandline.model.scope import EVERYTHING
from strandline.model.timeline import DATE

from .layout import read_part
from .superseding import Candidates, stage_superseding

_ROWS_PER_FILE = 300_000


def keep_published(work: Work, columns: Collection[str]) -> Work:
    """A task that may write its table anew compares with it, if the table has the same columns.

    So epochs and superseded rows outlive a lost catalog and a declaration that changed. If a type turns out
    to be another one, the task is prepared again, and then the table is written anew. It always is if
    somebody else has put it in the place of ours.
    """
    task, own = work.task, work.read_own()
    if not task.overwrite or task.reshapes or task.cause is Cause.GAP or own is None:
        return work
    if ROLE not in own.columns or set(user_columns(own.columns)) != set(columns):
        return work
    return replace(work, task=replace(task, overwrite=False, reshapes=True))


def build_table(work: Work, candidates: Candidates) -> Prepared:
    """Everything that was computed, as a new table."""
    staged = stage_superseding(work, candidates)
    rows = staged.read(work.session).drop(SIDE)
    read = sum(work.input_rows.values())
    return Prepared(
        write=Write(operation=Operation.OVERWRITE, rows=cluster(rows, staged)),
        scope=EVERYTHING,
        rows_read=read,
        rows_written=staged.counts["new_rows"],
        rows_full=read,
        live_rows=staged.counts["new_rows"],
        whole=True,
    )


def cluster(rows: DataFrame, staged: Staged) -> DataFrame:
    """Rows of near dates together, in as many parts as there will be files."""
    files = staged.counts["new_rows"] // _ROWS_PER_FILE + 1
    if files == 1:
        return rows.coalesce(1)
    heads = read_part(rows, Role.HEAD)
    return read_part(rows, Role.ROW).repartitionByRange(files, F.col(DATE)).unionByName(heads)
