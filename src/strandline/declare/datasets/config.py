"""Which parts of a fact dataset's declaration its rows depend on, and which freeze it when they change.

The list is explicit (DESIGN 7). It does not contain settings, guards, places or the order of the file, and
never a secret.
"""

from collections.abc import Iterable, Mapping

from strandline.declare.settings import calendar_part
from strandline.model.hashing import make_config
from strandline.model.node import NodeConfig
from strandline.model.project import Calendar, FactColumn, FactDataset
from strandline.sql.parse import hashed_sql, uses_calendar


def facts_config(dataset: FactDataset, calendar: Calendar) -> NodeConfig:
    """The configuration of the facts, and of the snapshot that is folded from them: its rows are facts."""
    return make_config({**_decode_parts(dataset, calendar), "complete": dataset.complete}, FREEZING)


def quarantine_config(dataset: FactDataset, calendar: Calendar) -> NodeConfig:
    """The configuration of the quarantine.

    The quarantine contains the rows that the same decoding refused. It has no key, order or types that could
    freeze it.
    """
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
"""The parts that freeze fact datasets and snapshots.

Another source has its own positions, so its facts cannot be distinguished from existing ones. An added column
does not freeze, because nothing was written with its type yet. An added cast does: it changes an existing
column.
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
    """Columns in which a fact must have a value.

    A default that is added to one lets refused facts pass. It does not change facts that passed before.
    """
    return frozenset((*dataset.require, *(dataset.record_set.key if dataset.record_set else ())))


def _deciding(dataset: FactDataset, columns: Mapping[str, object]) -> list[str]:
    """The columns whose values decide which rows exist.

    They decide what is refused, which facts are about the same record, and which of these wins.
    """
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
    """By column: everything on which its values depend, including the earlier columns that its SQL names."""
    parts: dict[str, object] = {}
    for column in dataset.columns:
        type_name = str(column.type) if column.type else None
        default = None if column.name in _never_null(dataset) else column.default
        part: dict[str, object] = {
            "path": column.path,
            "sql": hashed_sql(column.sql),
            "default": default,
            "type": type_name,
        }
        if column.sql:
            part["above"] = {name: parts[name] for name in _mentioned(column.sql, parts)}
            part["calendar"] = calendar_part(calendar) if uses_calendar(column.sql) else None
        parts[column.name] = part
        # A renamed column of the source no longer exists under its own name.
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
    """The names that occur in the SQL, perhaps as part of another word. One too many does no harm."""
    return [name for name in names if name in sql.lower()]


def _type_parts(dataset: FactDataset) -> dict[str, object]:
    """One part per column, so that an added column can be distinguished from a changed one."""
    return {
        f"{_type_word(dataset, column)} {column.name}": column.type.stored
        for column in dataset.columns
        if column.type is not None
    }


def _type_word(dataset: FactDataset, column: FactColumn) -> str:
    """`cast` if the source's own columns included this one before it was declared, with its own type."""
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
