"""The datasets whose rows have names: what subscribers and GraphQL know.

Those that are built have the columns of their tables. Others are known if all their types are declared.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.lake.log import find_log
from strandline.model.publishing import RowKey

from .changes import find_published
from .reading import Readable
from .rows import find_columns

_INEXACT = ("double", "float")
_AS_DELTA_SPELLS = {"tinyint": "byte", "smallint": "short", "int": "integer", "bigint": "long"}


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedTable:
    name: str
    columns: tuple[tuple[str, str], ...]
    """In the dataset's order: name and type, as Delta spells it. Nested types by their kind."""
    key: tuple[str, ...]
    always_named: bool
    """No column of the key is ever NULL."""
    published: bool
    """It has a change log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedTables:
    tables: tuple[KeyedTable, ...]
    stamp: Mapping[str, tuple[int, int]]
    """By dataset: what changes whenever its table does."""


def find_keyed_tables(workspace: Readable, before: KeyedTables | None = None) -> KeyedTables:
    """All that are known. Only those whose tables differ from `before` are read again."""
    project = workspace.project
    published = find_published(project)
    known = {table.name: table for table in before.tables} if before else {}
    tables, stamps = [], {}
    for name, row_key in project.row_keys.items():
        node = project.tables[name]
        if name == node and any(
            other != name and node == project.tables[other] for other in project.row_keys
        ):
            continue  # `trades_facts` of an event stream is known as `trades`
        stamp = find_log(workspace.lake.table(node)).newest()
        if stamp[1] < 0 and not row_key.types:
            continue
        stamps[name] = stamp
        if before is not None and before.stamp.get(name) == stamp and name in known:
            tables.append(known[name])
            continue
        columns = find_columns(workspace, name) if stamp[1] >= 0 else _find_declared(row_key)
        if all(columns.get(column, "double") not in _INEXACT for column in row_key.columns):
            tables.append(
                KeyedTable(
                    name=name,
                    columns=tuple(columns.items()),
                    key=row_key.columns,
                    always_named=row_key.always_named,
                    published=name in published,
                )
            )
    return KeyedTables(tables=tuple(tables), stamp=stamps)


def _find_declared(row_key: RowKey) -> dict[str, str]:
    """The columns that the table will have."""
    return {name: _AS_DELTA_SPELLS.get(type_, type_) for name, type_ in row_key.types}
