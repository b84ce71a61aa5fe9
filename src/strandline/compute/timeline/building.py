"""The first write of an output of a timeline, or one that gives it another shape.

Files are clustered by date, so that a later correction reads only those of the dates it reaches.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.lake.staging import Staged
from strandline.lake.work import SIDE, Prepared, Work, Write
from strandline.model.columns import Role
from strandline.model.commits import Operation
from strandline.model.scope import EVERYTHING
from strandline.model.timeline import DATE

from .layout import read_part
from .superseding import Candidates, stage_superseding

_ROWS_PER_FILE = 300_000


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
