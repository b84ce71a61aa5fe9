"""Which parts of a fact dataset's declaration its rows depend on, and which freeze it when they change.

An explicit list (DESIGN 7): settings, guards, places and the order of the file are not in it, and a secret never is.
"""

from collections.abc import Iterable, Mapping

from strandline.declare.settings import calendar_part
from strandline.model.hashing import make_config
from strandline.model.node import NodeConfig
from strandline.model.project import Calendar, FactColumn, FactDataset
from strandline.sql.parse import hashed_sql, uses_calendar


def facts_config(dataset: FactDataset, calendar: Calendar) -> NodeConfig:
    """Of the facts, and of the snapshot that is folded from them: its rows are theirs."""
    return make_config({**_decode_parts(dataset, calendar), "complete": dataset.complete}, FREEZING)


def quarantine_config(dataset: FactDataset, calendar: Calendar) -> NodeConfig:
    """The quarantine holds the other side of the same decode; it has no key, order or types of its own to freeze."""
    return make_config(_decode_parts(dataset, calendar), frozenset({"from"}))


FREEZING = frozenset(
    {
        "from",
        "key",
        "order_by",
        "deleted",
        "children",
        "latest_non_null",
        "identity",
        "explode",
        "complete",
        "type *",
        "cast **",
    }
)
"""Of fact datasets and snapshots. Another source has positions of its own, by which its facts cannot be told from those there are.
An added column has a type that nothing was written by; an added cast changes a column that was there.
"""


def _decode_parts(dataset: FactDataset, calendar: Calendar) -> dict[str, object]:
    columns = _column_parts(dataset, calendar)
    filled = {c.name: c.default for c in dataset.columns if c.name in _never_null(dataset)}
    parts: dict[str, object] = {
        "from": dataset.source,
        "where": hashed_sql(dataset.where),
        "explode": dataset.explode,
        "require": sorted(dataset.require),
        "source_at": _source_at(dataset, columns),
        **_kind_parts(dataset),
        "deciding columns": {name: columns[name] for name in _deciding(dataset, columns)},
        **{f"column {name}": value for name, value in columns.items()},
        **{f"default {name}": [value] for name, value in filled.items() if value is not None},
        **_type_parts(dataset),
    }
    if dataset.where and uses_calendar(dataset.where):
        parts["calendar"] = calendar_part(calendar)
    return parts


def _never_null(dataset: FactDataset) -> frozenset[str]:
    """Columns in which a fact without a value is refused: a default added to one lets refused facts pass and changes none that did."""
    return frozenset((*dataset.require, *(dataset.record_set.key if dataset.record_set else ())))


def _deciding(dataset: FactDataset, columns: Mapping[str, object]) -> list[str]:
    """The columns whose values decide which rows there are: what is refused, which facts are about one record, and which of them wins."""
    record_set = dataset.record_set
    if record_set is None:
        named = {*dataset.identity, *dataset.require}
    else:
        named = {
            *record_set.key,
            *record_set.order_by,
            *_mentioned(record_set.deleted or "", columns),
            *dataset.require,
        }
    return sorted(named & set(columns))


def _column_parts(dataset: FactDataset, calendar: Calendar) -> dict[str, object]:
    """By column: all that its values depend on, the columns above it that its SQL names among it."""
    parts: dict[str, object] = {}
    for column in dataset.columns:
        spelt = str(column.type) if column.type else None
        default = None if column.name in _never_null(dataset) else column.default
        part: dict[str, object] = {
            "path": column.path,
            "sql": hashed_sql(column.sql),
            "default": default,
            "type": spelt,
        }
        if column.sql:
            part["above"] = {name: parts[name] for name in _mentioned(column.sql, parts)}
            part["calendar"] = calendar_part(calendar) if uses_calendar(column.sql) else None
        parts[column.name] = part
        # A column of the source that is taken under another name is no longer there under its own.
        if dataset.takes_other_columns and column.path and (native := column.path[0].lower()) not in parts:
            parts[native] = {"taken as": column.name}
    return parts


def _kind_parts(dataset: FactDataset) -> dict[str, object]:
    record_set = dataset.record_set
    if record_set is None:
        return {"identity": dataset.identity}
    return {
        "key": record_set.key,
        "order_by": record_set.order_by,
        "deleted": hashed_sql(record_set.deleted),
        "children": record_set.children if record_set.children != "upsert" else None,
        "latest_non_null": sorted(record_set.latest_non_null),
    }


def _mentioned(sql: str, names: Iterable[str]) -> list[str]:
    """The names that stand in the SQL, perhaps as part of another word: one too many does no harm."""
    return [name for name in names if name in sql.lower()]


def _type_parts(dataset: FactDataset) -> dict[str, object]:
    """One part per column, so that an added column is told apart from a changed one."""
    return {
        f"{_type_word(dataset, column)} {column.name}": column.type.stored
        for column in dataset.columns
        if column.type is not None
    }


def _type_word(dataset: FactDataset, column: FactColumn) -> str:
    """A source with columns of its own had this one, in its own type, before it was declared."""
    in_place = dataset.takes_other_columns and len(column.path) == 1 and column.path[0].lower() == column.name
    return "cast" if in_place else "type"


def _source_at(dataset: FactDataset, columns: Mapping[str, object]) -> object:
    if dataset.source_at is None:
        return None
    column, type_ = dataset.source_at.column, dataset.source_at.type
    return [
        column,
        dataset.source_at.path,
        str(type_) if type_ else None,
        columns.get(column) if column else None,
    ]
