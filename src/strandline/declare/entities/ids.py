"""The id of an entity: its columns and their types."""

from collections.abc import Iterable, Mapping

from strandline.declare.datasets.values import parse_type
from strandline.declare.names import check_column_name, lowered
from strandline.declare.yaml_lines import DataPath, Document
from strandline.model.columns import ColumnType, TypeName, find_type
from strandline.model.report import Report, listed

from .spec import EntitySpec

_REFUSED = {
    TypeName.DOUBLE: "decimal(18,2)",
    TypeName.TIMESTAMP_MS: "timestamp",
    TypeName.TIMESTAMP_US: "timestamp",
    TypeName.JSON: "string",
}
"""Types that an id may not have, and what to write instead."""


def make_id(
    name: str, spec: EntitySpec, path: DataPath, document: Document, report: Report
) -> tuple[tuple[str, ...], dict[str, ColumnType]]:
    """The columns of the id, and the types that are declared for them."""
    words = [spec.id] if isinstance(spec.id, str) else list(spec.id)
    place = document.place(*path, "id")
    columns = lowered(words)
    if len(columns) < len(words):
        what = f"the id of the entity `{name}` names a column twice."
        report.add("named-twice", what, "Keep one of them.", place)
    for column in columns:
        check_column_name(column, place, report)
    types = {}
    for word, text in spec.id.items() if isinstance(spec.id, dict) else ():
        type_ = parse_type(text, document.place(*path, "id", word), report)
        if type_ is not None and type_.name in _REFUSED:
            what = f"the id `{word}` of the entity `{name}` is `{type_}`, which cannot name an entity."
            remedy = f"Write `{_REFUSED[type_.name]}`."
            report.add("entity-id-type", what, remedy, document.place(*path, "id", word))
        elif type_ is not None:
            types[word.lower()] = type_
    return columns, types


def settle_types(
    name: str,
    columns: tuple[str, ...],
    declared: Mapping[str, ColumnType],
    found: Mapping[str, Iterable[tuple[str, str]]],
    path: DataPath,
    document: Document,
    report: Report,
) -> tuple[ColumnType | None, ...]:
    """The type of each id column. `found`: by id column, the (dataset, type) pairs that are known.

    None for a type that nothing declares. It is then that of the tables.
    """
    types: list[ColumnType | None] = []
    for column in columns:
        if column in declared:
            types.append(declared[column])
            continue
        datasets_by_type: dict[str, str] = {}
        for dataset, type_ in found.get(column, ()):
            datasets_by_type.setdefault(type_, dataset)
        place = document.place(*path, "id")
        if len(datasets_by_type) > 1:
            each = [f"{type_} in `{dataset}`" for type_, dataset in datasets_by_type.items()]
            what = f"the id `{column}` of the entity `{name}` is {' and '.join(each)}."
            remedy = f"Say which it is: `id: {{{column}: {_choose(datasets_by_type)}}}`."
            report.add("entity-id-type", what, remedy, place)
        stored = next(iter(datasets_by_type), "")
        if len(datasets_by_type) == 1 and stored == "double":
            datasets = listed(datasets_by_type.values())
            what = f"the id `{column}` of the entity `{name}` is {stored} in {datasets}."
            remedy = f"A double cannot name an entity. Say its type: `id: {{{column}: bigint}}`."
            report.add("entity-id-type", what, remedy, place)
        types.append(find_type(stored) if len(datasets_by_type) == 1 else None)
    return tuple(types)


def _choose(types: Iterable[str]) -> str:
    """A type that a user probably means: text, if one of them is text."""
    return "string" if "string" in types else "bigint"
