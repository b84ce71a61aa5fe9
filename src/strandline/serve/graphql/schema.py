"""The schema: a type, a condition, an order and its fields for each dataset whose rows have names."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphql import (
    GraphQLArgument,
    GraphQLBoolean,
    GraphQLEnumType,
    GraphQLField,
    GraphQLInputField,
    GraphQLInputObjectType,
    GraphQLInt,
    GraphQLList,
    GraphQLNonNull,
    GraphQLObjectType,
    GraphQLScalarType,
    GraphQLSchema,
    GraphQLString,
)

from strandline.app.keyed import KeyedTable
from strandline.app.rows import DEFAULT_ROWS
from strandline.model.typed_values import find_stored_type

from .scalars import BIG_INT, DATE, DECIMAL, DOUBLE, JSON, TIMESTAMP, find_scalar

_NAME = re.compile(r"(?!__)[_A-Za-z][_0-9A-Za-z]*")
ROW_OPERATION = GraphQLEnumType("RowOperation", {name: name for name in ("INSERT", "UPDATE", "DELETE")})
ORDER = GraphQLEnumType("Order", {name: name for name in ("asc", "desc")})
_ONE = ("_eq", "_neq", "_gt", "_gte", "_lt", "_lte")
_SEVERAL = ("_in", "_nin")
_SUFFIXES = ("", "Update", "Expression", "Order")
_OWN = {"Query", "Subscription", "Mutation", "RowOperation", "Order", "NullComparison"}
_OWN |= {
    "BigInt",
    "Decimal",
    "Timestamp",
    "Date",
    "Double",
    "JSON",
    "String",
    "Int",
    "Float",
    "Boolean",
    "ID",
}
_OWN |= {f"{name}Comparison" for name in _OWN}
_JOINED = ("_and", "_or", "_not")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """A dataset with the columns that GraphQL can name."""

    table: KeyedTable
    columns: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        return self.table.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalogue:
    """The schema, and what it was made from."""

    schema: GraphQLSchema
    datasets: Mapping[str, Dataset]
    left_out: tuple[str, ...]
    """What GraphQL cannot name, in words."""


Resolve = Callable[..., Any]


def make_catalogue(tables: Sequence[KeyedTable], rows: Resolve, by_key: Resolve) -> Catalogue:
    """`rows` and `by_key` answer the fields of queries. The name of the field says which dataset is meant."""
    datasets, left_out = _choose(tables)
    comparisons = {name: _make_comparison(name, scalar) for name, scalar in _SCALARS.items()}
    nothing = GraphQLInputObjectType("NullComparison", {"_is_null": GraphQLInputField(GraphQLBoolean)})
    query: dict[str, GraphQLField] = {}
    subscription: dict[str, GraphQLField] = {}
    for dataset in datasets:
        made = _Types(dataset, comparisons, nothing)
        query[dataset.name] = made.make_rows_field(rows)
        if (field := made.make_key_field(by_key)) is not None:
            query[f"{dataset.name}_by_pk"] = field
        if dataset.table.published:
            subscription[dataset.name] = made.make_subscription_field()
    description = "\n".join(("Left out, because GraphQL cannot name it:", *left_out)) if left_out else None
    nobody = {"_": GraphQLField(GraphQLBoolean, description="Nothing has been built yet.")}
    schema = GraphQLSchema(
        GraphQLObjectType("Query", query or nobody),
        subscription=GraphQLObjectType("Subscription", subscription) if subscription else None,
        description=description,
    )
    return Catalogue(schema=schema, datasets={d.name: d for d in datasets}, left_out=left_out)


_SCALARS: dict[str, GraphQLScalarType] = {
    scalar.name: scalar
    for scalar in (GraphQLString, GraphQLInt, BIG_INT, DECIMAL, DOUBLE, GraphQLBoolean, DATE, TIMESTAMP)
}


def _choose(tables: Sequence[KeyedTable]) -> tuple[list[Dataset], tuple[str, ...]]:
    """The datasets and columns that have names in GraphQL, and what is left out."""
    left_out: list[str] = []
    names = Counter(f"{table.name}{suffix}" for table in tables for suffix in _SUFFIXES)
    fields = Counter(name for table in tables for name in (table.name, f"{table.name}_by_pk"))
    datasets: list[Dataset] = []
    for table in tables:
        its_own = [f"{table.name}{suffix}" for suffix in _SUFFIXES]
        its_fields = (table.name, f"{table.name}_by_pk")
        if not _NAME.fullmatch(table.name):
            left_out.append(f"the dataset `{table.name}`: its name has characters that a name may not have")
        elif any(names[name] > 1 or name in _OWN for name in its_own):
            left_out.append(f"the dataset `{table.name}`: another type has a name that it needs")
        elif any(fields[name] > 1 for name in its_fields):
            left_out.append(f"the dataset `{table.name}`: another field has a name that it needs")
        else:
            datasets.append(_choose_columns(table, left_out))
    return [dataset for dataset in datasets if dataset.columns], tuple(left_out)


def _choose_columns(table: KeyedTable, left_out: list[str]) -> Dataset:
    columns = []
    for name, type_ in table.columns:
        if _NAME.fullmatch(name) and name not in _JOINED:
            columns.append((name, type_))
        else:
            left_out.append(f"the column `{name}` of `{table.name}`")
    return Dataset(table=table, columns=tuple(columns))


def _make_comparison(name: str, scalar: GraphQLScalarType) -> GraphQLInputObjectType:
    fields = {operator: GraphQLInputField(scalar) for operator in _ONE}
    fields |= {operator: GraphQLInputField(GraphQLList(GraphQLNonNull(scalar))) for operator in _SEVERAL}
    fields["_is_null"] = GraphQLInputField(GraphQLBoolean)
    return GraphQLInputObjectType(f"{name}Comparison", fields)


class _Types:
    """The types of one dataset."""

    def __init__(
        self,
        dataset: Dataset,
        comparisons: Mapping[str, GraphQLInputObjectType],
        nothing: GraphQLInputObjectType,
    ) -> None:
        self._dataset = dataset
        self._scalars = {name: find_scalar(type_) for name, type_ in dataset.columns}
        self._compared = {name: find_stored_type(type_) is not None for name, type_ in dataset.columns}
        name = dataset.name
        self.row = GraphQLObjectType(name, {c: GraphQLField(self._type_of(c)) for c in self._scalars})
        self.order = GraphQLInputObjectType(
            f"{name}Order",
            {c: GraphQLInputField(ORDER) for c, scalar in self._scalars.items() if scalar is not JSON},
        )

        def make_fields() -> dict[str, GraphQLInputField]:
            fields = {
                c: GraphQLInputField(comparisons[scalar.name] if self._compared[c] else nothing)
                for c, scalar in self._scalars.items()
            }
            several = GraphQLList(GraphQLNonNull(self.expression))
            joined: dict[str, Any] = {"_and": several, "_or": several, "_not": self.expression}
            return fields | {word: GraphQLInputField(type_) for word, type_ in joined.items()}

        self.expression = GraphQLInputObjectType(f"{name}Expression", make_fields)

    def make_rows_field(self, resolve: Resolve) -> GraphQLField:
        arguments = {
            "where": GraphQLArgument(self.expression),
            "order_by": GraphQLArgument(GraphQLList(GraphQLNonNull(self.order))),
            "limit": GraphQLArgument(GraphQLInt, default_value=DEFAULT_ROWS),
            "offset": GraphQLArgument(GraphQLInt, default_value=0),
        }
        if not self.order.fields:
            del arguments["order_by"]
        type_ = GraphQLNonNull(GraphQLList(GraphQLNonNull(self.row)))
        return GraphQLField(type_, arguments, resolve=resolve)

    def make_key_field(self, resolve: Resolve) -> GraphQLField | None:
        """None if a column of the key has no name here, or cannot be compared."""
        key = self._dataset.table.key
        if not all(self._compared.get(column) for column in key):
            return None
        arguments = {column: GraphQLArgument(self._type_of(column)) for column in key}
        return GraphQLField(self.row, arguments, resolve=resolve)

    def make_subscription_field(self) -> GraphQLField:
        update = GraphQLObjectType(
            f"{self._dataset.name}Update",
            {
                "operation": GraphQLField(GraphQLNonNull(ROW_OPERATION)),
                "data": GraphQLField(GraphQLNonNull(self.row)),
                "fields": GraphQLField(GraphQLNonNull(GraphQLList(GraphQLNonNull(GraphQLString)))),
                "ts_timestamp": GraphQLField(GraphQLString),
                "ts_cursor": GraphQLField(GraphQLString),
            },
        )
        arguments = {
            "where": GraphQLArgument(self.expression),
            "after": GraphQLArgument(GraphQLString),
            "snapshot": GraphQLArgument(GraphQLBoolean, default_value=True),
        }
        return GraphQLField(GraphQLNonNull(update), arguments)

    def _type_of(self, column: str) -> Any:
        table, scalar = self._dataset.table, self._scalars[column]
        never_null = table.always_named and column in table.key
        return GraphQLNonNull(scalar) if never_null else scalar
