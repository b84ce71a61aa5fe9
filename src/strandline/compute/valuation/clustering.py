"""The first write of a valuation: its parts are put together by date before they are laid onto dates.

There are far fewer parts than cells, so this costs a fraction of what sorting the cells would cost.
"""

from bisect import bisect_right
from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.compute.timeline.building import ROWS_PER_FILE

from .grid import HIGH, LOW, list_numbers

_FILE = "__file"


def cluster_parts(parts: DataFrame, dates: int, most: int = ROWS_PER_FILE) -> DataFrame:
    """Located parts of ranges, cut where a file ends, with those of one file in one Spark partition.

    `dates` is the number of dates of the grid, `most` the number of rows of a file.
    """
    starts = cut_dates(_count_cells(parts, dates), most)
    if len(starts) == 1:
        return parts
    file_of = list_numbers(bisect_right(starts, place) - 1 for place in range(dates))
    first = list_numbers([*starts, dates])
    cut = parts.withColumn(_FILE, F.expr(f"explode(sequence({file_of}[{LOW}], {file_of}[{HIGH} - 1]))"))
    cut = cut.withColumns(
        {
            LOW: F.expr(f"greatest({LOW}, {first}[{_FILE}])"),
            HIGH: F.expr(f"least({HIGH}, {first}[{_FILE} + 1])"),
        }
    )
    return cut.repartitionById(len(starts), _FILE).drop(_FILE)


def _count_cells(parts: DataFrame, dates: int) -> list[int]:
    """The number of cells on each date."""
    edges = f"explode(array(struct({LOW} AS place, 1L AS n), struct({HIGH} AS place, -1L AS n)))"
    changes = parts.select(F.expr(edges).alias("edge")).groupBy("edge.place").agg(F.sum("edge.n"))
    change_at = {row[0]: row[1] for row in changes.collect()}
    cells, counts = 0, []
    for place in range(dates):
        cells += change_at.get(place, 0)
        counts.append(cells)
    return counts


def cut_dates(counts: Sequence[int], most: int) -> list[int]:
    """The first date of each file, such that no file of more than one date has more rows than allowed."""
    starts, rows = [0], 0
    for place, count in enumerate(counts):
        if rows and rows + count > most:
            starts.append(place)
            rows = 0
        rows += count
    return starts
