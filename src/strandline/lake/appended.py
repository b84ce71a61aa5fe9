"""Rows of a table that is only appended to, in the order of their places, read without Spark.

What a commit appended is what is in the files that it added. A place is a version of a dataset and a position
among the rows of that version. Where versions may begin anew, a number comes before it that only grows.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs

from strandline.model.errors import OutsideError

from .checksums import require_sound
from .location import open_folder
from .plain_values import plain_rows
from .query import CHECKED_PARQUET
from .table import Table

Place = tuple[int, ...]
"""Version and position, or the values of the columns that a reader names."""
EVERY_ROW = pyarrow.dataset.scalar(True)
VERSION_AND_POSITION = ("version", "position")


class RowsGoneError(Exception):
    """What commits appended can no longer be read commit by commit: log entries or files are gone."""


def read_windows(
    table: Table,
    columns: Sequence[str],
    paths: Sequence[str],
    size: int,
    wanted: pyarrow.dataset.Expression,
    *,
    whole: bool,
    most: int,
    place: Sequence[str] = VERSION_AND_POSITION,
) -> Iterator[list[dict[str, object]]]:
    """The rows of these files, of this total size, for which a condition is true: about `most` at once.

    `whole`: there are not more than `most`, so they are read at once. `place`: the whole numbers that order
    them. Raises RowsGoneError if a file is gone.
    """
    if not paths:
        return
    file_system, root = open_folder(table.uri)
    files = [f"{root}/{path}" if root else path for path in paths]
    if any(info.type is pyarrow.fs.FileType.NotFound for info in file_system.get_file_info(files)):
        raise RowsGoneError
    require_sound(table.uri, paths, size)
    try:
        content = pyarrow.dataset.dataset(files, table.arrow_schema, CHECKED_PARQUET, file_system)
        windows = [wanted] if whole else [wanted & window for window in _cut(content, wanted, most, place)]
        for window in windows:
            rows = plain_rows(content.to_table(list(columns), window))
            rows.sort(key=lambda row: tuple(row[name] for name in place))
            yield rows
    except (OSError, pa.ArrowException) as error:
        name = table.uri.rstrip("/").rpartition("/")[2]
        raise OutsideError(
            f"The rows of `{name}` cannot be read: {' '.join(str(error).split())}",
            remedy="Run `strandline doctor --deep`; the table's files were moved, removed or damaged.",
            slug="lake-unreadable",
        ) from error


def at_or_after(place: Place, columns: Sequence[str] = VERSION_AND_POSITION) -> pyarrow.dataset.Expression:
    """The condition that a row is at a place, or later."""
    *before, last = zip(columns, place, strict=True)
    condition = pyarrow.dataset.field(last[0]) >= last[1]
    for name, value in reversed(before):
        field = pyarrow.dataset.field(name)
        condition = (field > value) | ((field == value) & condition)
    return condition


def _cut(
    content: pyarrow.dataset.Dataset, wanted: pyarrow.dataset.Expression, most: int, place: Sequence[str]
) -> list[pyarrow.dataset.Expression]:
    """Conditions that divide rows into windows of about `most`, in order. Only their places are read."""
    places = content.to_table(list(place), wanted).sort_by([(name, "ascending") for name in place])
    starts = places.take(pa.array(range(0, places.num_rows, most), pa.int64()))  # none if no row is wanted
    edges: list[Place] = list(dict.fromkeys(zip(*(starts[name].to_pylist() for name in place), strict=True)))
    return [
        at_or_after(edge, place) & ~at_or_after(edges[nth + 1], place)
        if nth + 1 < len(edges)
        else at_or_after(edge, place)
        for nth, edge in enumerate(edges)
    ]
