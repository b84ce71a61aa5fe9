"""The datasets whose rows have names, as they are built now: what subscribers and GraphQL know."""

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.lake.log import find_log

from .changes import find_published
from .reading import Readable
from .rows import find_columns

_INEXACT = ("double", "float")


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
    """All that have been built. Only those whose tables differ from `before` are read again."""
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
        if stamp[1] < 0:
            continue
        stamps[name] = stamp
        if before is not None and before.stamp.get(name) == stamp and name in known:
            tables.append(known[name])
            continue
        columns = find_columns(workspace, name)
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
