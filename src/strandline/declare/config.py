"""Which parts of a declaration a node's rows depend on, and which freeze it when they change.

An explicit list (DESIGN 7): settings, guards, places and the order of the file are not in it, and a secret never is.
"""

from strandline.model.hashing import make_config
from strandline.model.node import By, Input, NodeConfig, Relation, Via, Whole
from strandline.model.project import Calendar, Chain, FactColumn, FactDataset, FileSource, Job, Language, Partitioning

from .schema import SourceSpec
from .settings import as_text
from .sql_parse import hashed_sql, uses_calendar


def source_config(source: FileSource, spec: SourceSpec) -> NodeConfig:
    """From what was declared, not from the source, whose options have their secrets filled in."""
    options = {key: as_text(value) for key, value in spec.options.items()}
    return make_config({"format": str(source.format), "options": options, "complete": source.complete})


def facts_config(dataset: FactDataset, source: FileSource, calendar: Calendar) -> NodeConfig:
    return make_config({**_decode_parts(dataset, calendar), "complete": source.complete}, FREEZING)


def quarantine_config(dataset: FactDataset, calendar: Calendar) -> NodeConfig:
    """The quarantine holds the other side of the same decode; it has no key, order or types of its own to freeze."""
    return make_config(_decode_parts(dataset, calendar))


def snapshot_config(dataset: FactDataset, source: FileSource) -> NodeConfig:
    parts = {name: value for name, value in _kind_parts(dataset).items() if name != "identity"} | _type_parts(dataset)
    return make_config({**parts, "complete": source.complete}, FREEZING)


def job_config(job: Job, inputs: tuple[Input, ...], lookups: tuple[str, ...], calendar: Calendar) -> NodeConfig:
    parts: dict[str, object] = {
        str(job.language): hashed_sql(job.code) if job.language is Language.SQL else job.code,
        "function": job.function,
        "mode": str(job.mode),
        "key": job.key,
        "unique_key": job.unique_key,
        "partition": _partition(job.partition, calendar) if job.partition else None,
        "final_after": job.partition.final_after if job.partition else None,
        "inputs": {i.name: _spell(i.relation) for i in inputs if i.name not in lookups},
        "lookups": sorted(lookups),
        "config": dict(job.config),
        "calendar": _calendar(calendar) if uses_calendar(job.code) else None,
    }
    return make_config(parts, frozenset({"mode", "key", "unique_key", "partition"}))


def chain_config(chain: Chain) -> NodeConfig:
    """Any change of it may change any block, and the branch is kept from block to block: all of it freezes."""
    parts: dict[str, object] = {
        "from": chain.blocks,
        "number": chain.number,
        "hash": chain.hash,
        "parent": chain.parent,
        "head": [str(chain.head.kind), chain.head.column],
        "order_by": chain.order_by,
        "group_by": chain.group_by,
        "anchor": None if chain.anchor is None else str(chain.anchor),
    }
    return make_config(parts, frozenset(parts))


FREEZING = frozenset({"key", "order_by", "deleted", "children", "latest_non_null", "identity", "explode", "complete", "type *", "cast **"})
"""Of fact datasets and snapshots. An added column has a type that nothing was written by; an added cast changes a column that was there."""


def _decode_parts(dataset: FactDataset, calendar: Calendar) -> dict[str, object]:
    parts: dict[str, object] = {
        "where": hashed_sql(dataset.where),
        "explode": dataset.explode,
        "require": sorted(dataset.require),
        "source_at": _source_at(dataset),
        **_kind_parts(dataset),
        **_type_parts(dataset),
    }
    for column in dataset.columns:
        spelt = str(column.type) if column.type else None
        parts[f"column {column.name}"] = {"path": column.path, "sql": hashed_sql(column.sql), "default": column.default, "type": spelt}
    if any(uses_calendar(sql) for sql in (dataset.where, *(column.sql for column in dataset.columns)) if sql):
        parts["calendar"] = _calendar(calendar)
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


def _type_parts(dataset: FactDataset) -> dict[str, object]:
    """One part per column, so that an added column is told apart from a changed one."""
    return {f"{_type_word(dataset, column)} {column.name}": column.type.stored for column in dataset.columns if column.type is not None}


def _type_word(dataset: FactDataset, column: FactColumn) -> str:
    """A source with columns of its own had this one, in its own type, before it was declared."""
    in_place = dataset.takes_other_columns and len(column.path) == 1 and column.path[0].lower() == column.name
    return "cast" if in_place else "type"


def _source_at(dataset: FactDataset) -> object:
    if dataset.source_at is None:
        return None
    return [dataset.source_at.column, dataset.source_at.path, str(dataset.source_at.type) if dataset.source_at.type else None]


def _partition(partition: Partitioning, calendar: Calendar) -> object:
    """Days and months are those of a time zone: in another each partition has other rows."""
    return [partition.size, partition.unit, len(partition.by), *([calendar.timezone] if partition.unit else [])]


def _calendar(calendar: Calendar) -> object:
    return [calendar.timezone, calendar.year_starts_month, calendar.year_starts_day]


def _spell(relation: Relation) -> object:
    match relation:
        case By(columns=columns):
            return {"by": columns}
        case Via(input=name, on=on):
            return {"via": name, "on": on}
        case Whole():
            return "whole"
        case _:
            return str(relation)
