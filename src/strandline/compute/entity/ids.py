"""The ids that rows name, in the types of the entity. A row without one belongs to nobody."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DataType, DoubleType, FloatType, LongType, StringType

from strandline.compute.keys import key_hash
from strandline.lake.small import spark_schema
from strandline.lake.table import get_table
from strandline.lake.work import Work
from strandline.model.columns import quote
from strandline.model.definitions import ROWS_PART
from strandline.model.entity import Entity
from strandline.model.errors import WorkError
from strandline.model.node import Node

Types = Sequence[DataType]


def id_names(entity: Entity) -> list[str]:
    """The columns of an id inside of a computation. An input may have columns of any other name."""
    return [f"__id{place}" for place in range(len(entity.id))]


def find_types(work: Work, entity: Entity, own: DataFrame | None) -> Types:
    """The types of the id: those of the table, else as declared, else those that all inputs agree on."""
    if own is not None:
        return [own.schema[column].dataType for column in entity.id]
    found = [_types_in(work, namer.dataset, namer.columns) for namer in entity.namers]
    types = []
    for place, (column, declared) in enumerate(zip(entity.id, entity.types, strict=True)):
        if declared is not None:
            types.append(_parse(declared.stored))
            continue
        by_type = {of[place].simpleString(): of[place] for of in found}
        if len(by_type) > 1:
            datasets = ", ".join(f"`{namer.dataset}`" for namer in entity.namers)
            raise WorkError(
                f"{entity.place}: the id `{column}` of `{entity.name}` is {' and '.join(by_type)}"
                f" in {datasets}.",
                remedy=f"Say which it is: `id: {{{column}: {next(iter(by_type))}}}`.",
                slug="entity-id-type",
            )
        types.append(next(iter(by_type.values())))
    return types


def _types_in(work: Work, dataset: str, columns: Sequence[str]) -> list[DataType]:
    schema = spark_schema(get_table(work.lake.table(dataset), work.version(dataset)))
    return [schema[column].dataType for column in columns]


def _parse(stored: str) -> DataType:
    return DataType.fromDDL(stored)


def with_ids(rows: DataFrame, columns: Sequence[str], entity: Entity, types: Types) -> DataFrame:
    """The rows with the id that they name. It has a NULL if they name none."""
    fitted = {
        name: _fit(rows, column, type_)
        for name, column, type_ in zip(id_names(entity), columns, types, strict=True)
    }
    return rows.withColumns(fitted)


def _fit(rows: DataFrame, column: str, type_: DataType) -> Column:
    """A value in the type of the id, NULL if it does not fit.

    A number fits if it is the same when it is cast there and back. A text fits if it can be read.
    """
    value, kind = F.col(quote(column)), rows.schema[column].dataType
    if kind == type_:
        return value
    fitted = value.try_cast(type_)
    if isinstance(kind, StringType) or isinstance(type_, StringType):
        return fitted
    same = fitted.try_cast(kind) == value
    if isinstance(type_, LongType) and isinstance(kind, DoubleType | FloatType):
        # Spark casts 2^63 to the greatest number, which is 2^63 as a double.
        same &= value < F.lit(2.0**63)
    return F.when(same, fitted)


def are_named(entity: Entity) -> Column:
    """Whether a row names an entity: no part of its id is NULL (L5)."""
    return reduce(and_, (F.col(name).isNotNull() for name in id_names(entity)))


def key_of(entity: Entity) -> Column:
    """`_key` of the entity that a row names."""
    return key_hash([F.col(name) for name in id_names(entity)])


def entity_of(node: Node) -> Entity:
    assert isinstance(node.definition, Entity)
    return node.definition


def part_of(entity: Entity, variables: Collection[str], namers: Collection[str]) -> Entity:
    """An entity with some of its variables, and the uses and namers that these need.

    `namers` are parts of its configuration.
    """
    kept = tuple(v for v in entity.variables if v.name in variables)
    used = {v.use for v in kept}
    return replace(
        entity,
        variables=kept,
        uses=tuple(use for use in entity.uses if use.name in used),
        namers=tuple(n for n in entity.namers if f"{ROWS_PART} {n.name}" in namers),
    )


def rename_ids(entity: Entity) -> Mapping[str, str]:
    """By column inside of a computation: the column of the output."""
    return dict(zip(id_names(entity), entity.id, strict=True))
