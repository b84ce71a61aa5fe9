"""Which commits wrote the rows of one key in a table of a timeline (ADR 14). Starts no Spark."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime

import pyarrow as pa
import pyarrow.dataset

from strandline.model.columns import ROLE, Role
from strandline.model.timeline import DATE, EPOCH

from .location import open_folder
from .log import AddedFile, LogEntry
from .query import CHECKED_PARQUET, FILE, match_values
from .table import Table


def find_superseding(
    table: Table, entries: Sequence[LogEntry], key: Mapping[str, object], superseded_at: datetime
) -> LogEntry | None:
    """The commit with this `as_of` that put rows of the key aside. None if the log does not tell.

    Batches of one run have the same `as_of`: then their files are looked into.
    """
    written = [entry for entry in entries if _as_of(entry) == superseded_at and _files_of(entry, Role.EPOCH)]
    if len(written) > 1:
        inside = (e for e in written if _contains(table, _files_of(e, Role.EPOCH), key))
        return next(inside, written[0])
    return written[0] if written else None


def find_first_writer(
    table: Table, entries: Iterable[LogEntry], key: Mapping[str, object], epoch: int
) -> tuple[LogEntry | None, list[date]]:
    """The commit that wrote the oldest row of an epoch of the key that is still published.

    Also the dates of the rows that it wrote. None if a compaction has written them anew since.
    """
    paths = [path for path in table.paths if f"{ROLE}={Role.ROW}/" in path]
    root, rows = _read(table, paths, {**key, EPOCH: epoch}, [DATE, FILE])
    dates_by_file: dict[str, list[date]] = {}
    for row in rows.to_pylist():
        dates_by_file.setdefault(str(row[FILE]).removeprefix(f"{root}/"), []).append(row[DATE])
    for entry in entries:
        dates = [day for added in entry.added for day in dates_by_file.get(added.path, ())]
        if dates:
            return (entry if entry.changes_rows else None), dates
    return None, []


def _as_of(entry: LogEntry) -> datetime | None:
    text = entry.metadata.as_of if entry.metadata and not entry.metadata.operation.is_bare else ""
    return datetime.fromisoformat(text) if text else None


def _files_of(entry: LogEntry, role: Role) -> list[AddedFile]:
    return [file for file in entry.added if (ROLE, str(role)) in file.partition]


def _contains(table: Table, files: Iterable[AddedFile], key: Mapping[str, object]) -> bool:
    try:
        return bool(_read(table, [file.path for file in files], key, list(key))[1].num_rows)
    except FileNotFoundError:  # the files were compacted and removed
        return False


def _read(
    table: Table, paths: Sequence[str], where: Mapping[str, object], columns: Sequence[str]
) -> tuple[str, pa.Table]:
    """Rows of some files, whether or not a deletion vector removed them. Also the folder of the table."""
    file_system, root = open_folder(table.uri)
    schema = table.arrow_schema
    if not paths:
        return root, pa.table({name: pa.array([], pa.string()) for name in columns})
    files = pyarrow.dataset.dataset(
        [f"{root}/{path}" for path in paths], schema, CHECKED_PARQUET, file_system
    )
    return root, files.to_table(list(columns), match_values(where, schema))
