"""The state of a table as planners and pages need it, read through delta-rs: no Spark is started."""

from strandline.model.commits import TableState
from strandline.model.errors import OutsideError

from .location import Lake
from .log import find_sums, list_versions, read_entries
from .table import Table, open_table


def find_state(lake: Lake, dataset: str, after: int | None) -> TableState | None:
    """A table now, with its commits after `after` (all of them for None); None when there is no table yet."""
    uri = lake.table(dataset)
    table = open_table(uri)
    if table is None:
        return None
    require_all_files(table)
    version = table.version
    floor = -1 if after is None else after
    commits = tuple(entry.summary() for entry in read_entries(uri, floor)) if floor < version else ()
    versions = list_versions(uri)
    return TableState(
        dataset=dataset,
        table_id=table.id,
        version=version,
        rows=table.rows,
        bytes=table.bytes,
        commits=commits,
        earliest=versions[0] if versions else version,
        columns=table.columns,
    )


def require_all_files(table: Table) -> None:
    """Refuse a table whose log entry lost some of its lines.

    Such an entry reads like any other. Only the sums that Spark wrote beside it show that files are missing.
    """
    sums = find_sums(table.uri, table.version)
    if sums is not None and (sums.files, sums.bytes) != (table.file_count, table.bytes):
        raise OutsideError(
            f"The table at `{table.uri}` cannot be trusted: for version {table.version} its log gives "
            f"{table.file_count} files of {table.bytes} bytes, "
            f"and {sums.files} of {sums.bytes} were written.",
            remedy="Run `strandline doctor`: an entry of the table's log is damaged.",
            slug="table-unreadable",
        )


def read_token(lake: Lake, dataset: str) -> int:
    """The largest token the table has recorded, 0 when it has none."""
    table = open_table(lake.table(dataset))
    return table.token(dataset) if table else 0
