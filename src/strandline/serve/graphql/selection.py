"""The selection of a subscription, compiled once: a change -> the text of its message."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLObjectType, get_named_type

from strandline.app.changes import SeenChange
from strandline.serve.subscriptions.group import Wanted

from .operations import Operation
from .scalars import WRITTEN_AS_TEXT, find_scalar
from .schema import Dataset

_TYPE_NAME = "__typename"


@dataclass(frozen=True, slots=True, kw_only=True)
class Picked:
    """One entry of an answer. Equal entries give equal texts."""

    name: str
    """In the answer."""
    field: str
    """The field of `<dataset>Update`, or the column."""
    type_name: str = ""
    """What `__typename` says."""
    as_text: bool = False
    inner: tuple["Picked", ...] = ()
    """Of `data`: the columns."""


def compile_subscription(operation: Operation) -> Wanted:
    """What is subscribed to. The operation has one field at its root: validation has seen to that."""
    ((name, nodes),) = operation.collect(operation.root, operation.node.selection_set).items()
    field = operation.root.fields[nodes[0].name.value]
    update = get_named_type(field.type)
    assert isinstance(update, GraphQLObjectType)
    dataset = operation.catalogue.datasets[nodes[0].name.value]
    picked = _pick_update(operation, update, nodes, dataset)
    arguments = operation.read_arguments(operation.root, nodes[0])
    where = arguments.get("where")
    return Wanted(
        dataset=dataset.name,
        where=where,
        same=(name, picked, dataset.columns, json.dumps(where, default=str)),
        encode=_make_encode(name, picked, frozenset(column for column, _ in dataset.columns)),
        after=arguments.get("after"),
        snapshot=arguments.get("snapshot") is not False,
    )


def _pick_update(
    operation: Operation, update: GraphQLObjectType, nodes: list[Any], dataset: Dataset
) -> tuple[Picked, ...]:
    picked = []
    kinds = {column: find_scalar(type_).name for column, type_ in dataset.columns}
    for name, parts in operation.collect(update, *_selections(nodes)).items():
        field = parts[0].name.value
        inner: tuple[Picked, ...] = ()
        if field == "data":
            row = get_named_type(update.fields[field].type)
            assert isinstance(row, GraphQLObjectType)
            inner = tuple(
                Picked(
                    name=its_name,
                    field=columns[0].name.value,
                    type_name=row.name if columns[0].name.value == _TYPE_NAME else "",
                    as_text=kinds.get(columns[0].name.value) in WRITTEN_AS_TEXT,
                )
                for its_name, columns in operation.collect(row, *_selections(parts)).items()
            )
        picked.append(
            Picked(name=name, field=field, type_name=update.name if field == _TYPE_NAME else "", inner=inner)
        )
    return tuple(picked)


def _selections(nodes: list[Any]) -> list[Any]:
    return [node.selection_set for node in nodes if node.selection_set]


def _make_encode(
    name: str, picked: tuple[Picked, ...], columns: frozenset[str]
) -> Callable[[SeenChange], str]:
    readers = [(one.name, _make_reader(one, columns)) for one in picked]
    before = json.dumps({"data": {name: None}}, ensure_ascii=False, separators=(",", ":"))[: -len("null}}")]

    def encode(change: SeenChange) -> str:
        answer = {key: read(change) for key, read in readers}
        return f"{before}{json.dumps(answer, ensure_ascii=False, separators=(',', ':'))}}}}}"

    return encode


def _make_reader(one: Picked, columns: frozenset[str]) -> Callable[[SeenChange], object]:
    match one.field:
        case "operation":
            return lambda change: str(change.operation)
        case "data":
            return lambda change: _pick_columns(one.inner, change.row)
        case "fields":
            return lambda change: [field for field in change.fields if field in columns]
        case "ts_timestamp":
            return lambda change: change.timestamp
        case "ts_cursor":
            return lambda change: change.cursor
        case _:
            return lambda _: one.type_name


def _pick_columns(picked: tuple[Picked, ...], row: Mapping[str, Any]) -> dict[str, object]:
    answer: dict[str, object] = {}
    for one in picked:
        if one.type_name:
            answer[one.name] = one.type_name
            continue
        value = row.get(one.field)
        answer[one.name] = str(value) if one.as_text and value is not None else value
    return answer
