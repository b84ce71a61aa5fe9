"""A Delta table at one version, read through delta-rs: its files, schema and rows. Starts no Spark."""

from collections import OrderedDict
from collections.abc import Callable
from functools import cached_property, lru_cache
from threading import RLock
from typing import Any, TypeVar
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import TableNotFoundError

from strandline.model.columns import DELETED, ROLE, Role
from strandline.model.errors import OutsideError
from strandline.model.timeline import DATE

from .checksums import require_sound
from .location import for_delta_rs
from .log import find_log
from .near import ANYWHERE, Near

T = TypeVar("T")
_KEPT_VERSIONS = 4
"""Versions of one table that are kept open. A run uses the one it started with and the ones it wrote."""


class Table:
    """One version of a table. It never changes, so whatever is asked of it is worked out once."""

    def __init__(self, uri: str, opened: DeltaTable, lock: RLock) -> None:
        self.uri = uri
        self.version = opened.version()
        self.id = str(opened.metadata().id)
        self._opened = opened
        self._lock = lock
        """Held while the opened table is used: `_Versions` moves it on to later versions."""

    def _look(self, look: Callable[[DeltaTable], T]) -> T:
        """Ask the opened table at this version. If it was moved on meanwhile, this version is opened anew."""
        with self._lock:
            if self._opened.version() != self.version:
                self._opened, self._lock = self._open_again(), RLock()
            return look(self._opened)

    def _open_again(self) -> DeltaTable:
        opened = open_delta(self.uri, self.version)
        if str(opened.metadata().id) != self.id:
            raise OutsideError(
                f"The table at `{self.uri}` was deleted and made again while it was read.",
                remedy="Run again.",
                slug="table-replaced",
            )
        return opened

    @cached_property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """Names and types, as Delta spells them."""
        fields = self._look(lambda opened: opened.schema().fields)
        return tuple(
            (field.name, str(field.type.type) if hasattr(field.type, "type") else str(field.type))
            for field in fields
        )

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.columns]

    @cached_property
    def schema_json(self) -> str:
        """The schema as Delta keeps it: in Spark's own JSON."""
        return str(self._look(lambda opened: opened.schema().to_json()))

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema(self._look(lambda opened: opened.schema().to_arrow()))

    @cached_property
    def _files(self) -> pa.Table:
        return pa.table(self._look(lambda opened: opened.get_add_actions(flatten=True)))

    @cached_property
    def partitioned_by(self) -> tuple[str, ...]:
        """The columns whose values are in the log, and perhaps not in the files."""
        return tuple(self._look(lambda opened: opened.metadata().partition_columns))

    def _of_files(self, column: str) -> list[int]:
        """A number of each file; none where no file has it."""
        return (
            [value or 0 for value in self._files.column(column).to_pylist()]
            if column in self._files.column_names
            else []
        )

    @property
    def paths(self) -> list[str]:
        """The live files, relative to the table's folder."""
        return [unquote(path) for path in self._files.column("path").to_pylist()] if self.file_count else []

    @property
    def file_count(self) -> int:
        return int(self._files.num_rows)

    @cached_property
    def rows(self) -> int:
        """Rows by the statistics of the files, deleted ones among them.

        Partitions that readers do not see are left out.
        """
        rows, deleted = self._of_files("num_records"), self._of_files(f"partition.{DELETED}")
        return sum(rows) - sum(n for n, hidden in zip(rows, deleted, strict=False) if hidden)

    @cached_property
    def bytes(self) -> int:
        """The size of the live files."""
        return sum(self._of_files("size_bytes"))

    def count_bytes(self, role: Role, near: Near = ANYWHERE) -> int:
        """The size of the live files that may have such rows of one role, in a table that has roles."""
        return sum(size for _, size in self._list_files(role, near))

    def _list_files(self, role: Role, near: Near) -> list[tuple[str, int]]:
        """Path and size of those files."""
        roles = self._files.column(f"partition.{ROLE}").to_pylist() if self.file_count else []
        dates = (self._statistics(f"{edge}.{DATE}") for edge in ("min", "max"))
        files = zip(self.paths, self._of_files("size_bytes"), roles, *dates, strict=True)
        return [
            (path, size)
            for path, size, its_role, first, last in files
            if its_role == role and near.may_contain(first, last)
        ]

    def _statistics(self, name: str) -> list[Any]:
        """A statistic of each file. None where a file has none."""
        known = name in self._files.column_names
        return list(self._files.column(name).to_pylist()) if known else [None] * self.file_count

    @cached_property
    def live_rows(self) -> int:
        """The rows a reader sees, counted."""
        where = f'WHERE NOT "{DELETED}"' if DELETED in self.names else ""
        return int(self.ask(f"SELECT count(*) AS n FROM t {where}").column("n")[0].as_py())

    @cached_property
    def properties(self) -> dict[str, str]:
        """The table's properties: `delta.appendOnly` and the like."""
        return dict(self._look(lambda opened: opened.metadata().configuration))

    def newest_by_file(self, column: str) -> list[object]:
        """The largest value of a column in each live file, by statistics. None where a file has none."""
        return self._statistics(f"max.{column}")

    @property
    def rows_by_path(self) -> dict[str, int]:
        """By live file: its rows, by statistics."""
        rows = self._of_files("num_records") or [0] * self.file_count
        return dict(zip(self.paths, rows, strict=True))

    def token(self, application: str) -> int:
        """The largest token that an application has recorded here, 0 when there is none."""
        return self._look(lambda opened: opened.transaction_version(application)) or 0

    def require_sound(self) -> None:
        """Refuse a table of whose live files one does not have the bytes that were written."""
        require_sound(self.uri, self.paths, self.bytes)

    def register(self, session: QueryBuilder, name: str) -> QueryBuilder:
        """Give the table a name in a SQL session, after its files were checked.

        This is the only way in which rows are read through delta-rs.
        """
        self.require_sound()
        return self._look(lambda opened: session.register(name, opened))

    @cached_property
    def _session(self) -> QueryBuilder:
        return self.register(QueryBuilder(), "t")

    def read_role(self, role: Role, near: Near = ANYWHERE, most: int | None = None) -> pa.Table:
        """The rows of one role. Its files are checked, also where the whole table is too large for that.

        `most` is the number of rows after which to stop.
        """
        files = self._list_files(role, near)
        require_sound(self.uri, [path for path, _ in files], sum(size for _, size in files))
        limit = "" if most is None else f" LIMIT {most}"
        where = "" if near == ANYWHERE else f" AND {near.ask()}"
        return self.ask(f"SELECT * FROM t WHERE {ROLE} = '{role}'{where}{limit}")

    def ask(self, sql: str) -> pa.Table:
        """Rows by DataFusion's SQL, in which the table is `t`."""
        return pa.table(self._session.execute(sql).read_all())


class _Versions:
    """The versions of one table that this process has opened. The newest moves on when the log has grown."""

    def __init__(self, uri: str) -> None:
        self._uri = uri
        self._log = find_log(uri)
        """One object for good: how often another one was listed cannot be compared with `_seen`."""
        self._lock = RLock()
        self._opened: DeltaTable | None = None
        self._seen = (0, -1)
        """What the log had when `_opened` was opened or moved on."""
        self._tables: OrderedDict[int, Table] = OrderedDict()

    def find(self, version: int | None) -> Table | None:
        with self._lock:
            seen = self._log.newest()
            if seen[0] != self._seen[0]:  # deleted, or made again
                self._opened, self._tables, self._seen = None, OrderedDict(), seen
            if seen[1] < 0 and not self._log.may_exist():
                return None
            if version is None:
                return self._find_newest(seen)
            table = self._tables.get(version)
            return table or self._keep(Table(self._uri, open_delta(self._uri, version), RLock()))

    def _find_newest(self, seen: tuple[int, int]) -> Table | None:
        if self._opened is None:
            try:
                self._opened = open_delta(self._uri, None)
            except TableNotFoundError:
                return None
        elif seen != self._seen:
            self._opened.update_incremental()
        self._seen = seen
        table = self._tables.get(self._opened.version())
        return table or self._keep(Table(self._uri, self._opened, self._lock))

    def _keep(self, table: Table) -> Table:
        self._tables[table.version] = table
        if len(self._tables) > _KEPT_VERSIONS:
            self._tables.popitem(last=False)
        return table


_find_versions = lru_cache(maxsize=1_000)(_Versions)


def open_delta(uri: str, version: int | None) -> DeltaTable:
    return DeltaTable(for_delta_rs(uri), version=version)


def open_table(uri: str, version: int | None = None) -> Table | None:
    """The table at a version, or None when there is none."""
    try:
        return _find_versions(uri).find(version)
    except TableNotFoundError:
        return None
    except Exception as error:
        raise OutsideError(
            f"The table at `{uri}` cannot be read: {str(error).splitlines()[0]}",
            remedy="Run `strandline doctor`; if the storage is reachable, the table's log is damaged.",
            slug="table-unreadable",
        ) from error


def get_table(uri: str, version: int | None = None) -> Table:
    """The table at a version; it must be there."""
    table = open_table(uri, version)
    if table is None:
        raise OutsideError(
            f"There is no table at `{uri}`.", remedy="Run `strandline doctor`.", slug="table-missing"
        )
    return table
