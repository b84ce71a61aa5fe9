"""The state of a table as planners and pages need it, read through delta-rs: no Spark is started."""

from typing import TYPE_CHECKING

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError

from strandline.model.columns import DELETED
from strandline.model.errors import OutsideError
from strandline.model.records import TableState

from .checksums import register
from .location import Lake, for_delta_rs
from .log import find_sums, list_versions, read_entries

if TYPE_CHECKING:
    from arro3.core import Table


def open_table(uri: str, version: int | None = None) -> DeltaTable | None:
    """The table at a version, or None when there is none."""
    try:
        return DeltaTable(for_delta_rs(uri), version=version)
    except TableNotFoundError:
        return None
    except Exception as error:
        raise OutsideError(
            f"The table at `{uri}` cannot be read: {str(error).splitlines()[0]}",
            remedy="Run `strandline doctor`; if the storage is reachable, the table's log is damaged.",
            slug="table-unreadable",
        ) from error


def get_table(uri: str, version: int | None = None) -> DeltaTable:
    """The table at a version; it must be there."""
    table = open_table(uri, version)
    if table is None:
        raise OutsideError(f"There is no table at `{uri}`.", remedy="Run `strandline doctor`.", slug="table-missing")
    return table


def count_bytes(table: DeltaTable) -> int:
    """The size of a table's live files."""
    return sum(_column(table.get_add_actions(flatten=True), "size_bytes"))


def _column(adds: "Table", name: str) -> list[int]:
    """Of a table's files; none where no file says it."""
    return [value or 0 for value in adds.column(name).to_pylist()] if adds.num_rows and name in adds.schema.names else []


def count_live(table: DeltaTable) -> int:
    """The rows a reader sees, counted."""
    where = f'WHERE NOT "{DELETED}"' if DELETED in {field.name for field in table.schema().fields} else ""
    found = pa.table(register(QueryBuilder(), "t", table).execute(f"SELECT count(*) AS n FROM t {where}").read_all())
    return int(found.column("n")[0].as_py())


def find_state(lake: Lake, dataset: str, after: int | None) -> TableState | None:
    """A table now, with its commits after `after` (all of them for None); None when there is no table yet."""
    uri = lake.table(dataset)
    table = open_table(uri)
    if table is None:
        return None
    version = table.version()
    adds = table.get_add_actions(flatten=True)
    _require_all(uri, version, adds)
    floor = -1 if after is None else after
    commits = tuple(entry.summary() for entry in read_entries(uri, floor)) if floor < version else ()
    versions = list_versions(uri)
    return TableState(
        dataset=dataset,
        table_id=str(table.metadata().id),
        version=version,
        rows=sum(_column(adds, "num_records")),
        bytes=sum(_column(adds, "size_bytes")),
        commits=commits,
        earliest=versions[0] if versions else version,
        columns=tuple(
            (field.name, str(field.type.type) if hasattr(field.type, "type") else str(field.type)) for field in table.schema().fields
        ),
    )


def require_all_files(uri: str, table: DeltaTable) -> None:
    """A log entry that lost its end between two lines reads like any other: only the sums that Spark wrote beside it know of its files."""
    _require_all(uri, table.version(), table.get_add_actions(flatten=True))


def _require_all(uri: str, version: int, adds: "Table") -> None:
    sums = find_sums(uri, version)
    if sums is None:
        return
    files, size = adds.num_rows, sum(_column(adds, "size_bytes"))
    if (sums.files, sums.bytes) != (files, size):
        raise OutsideError(
            f"The table at `{uri}` cannot be trusted: its log gives {files} files of {size} bytes for version {version}, "
            f"and {sums.files} of {sums.bytes} were written.",
            remedy="Run `strandline doctor`: an entry of the table's log is damaged.",
            slug="table-unreadable",
        )


def read_token(lake: Lake, dataset: str) -> int:
    """The largest token the table has recorded, 0 when it has none."""
    table = open_table(lake.table(dataset))
    return (table.transaction_version(dataset) or 0) if table else 0
