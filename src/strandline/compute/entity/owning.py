"""Whose a row is: the id that it names, or the ids that the rows name which it finds in other datasets."""

from collections.abc import Callable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from strandline.model.columns import quote
from strandline.model.entity import Entity, Use

from .ids import Types, are_named, id_names, with_ids

Reader = Callable[[str], DataFrame]
"""Reads the rows of a dataset in which owners are looked up."""
_OWN = -1
"""The level of the use's own dataset. The datasets of its lookups follow from 0 on."""


def own_rows(rows: DataFrame, use: Use, entity: Entity, types: Types, read: Reader) -> DataFrame:
    """Rows of the dataset of a use, each with the id of its owner, once for each of its owners.

    A row of nobody has a NULL in the id. With `via`, one that finds nobody is left out.
    """
    return _reach(rows, use, _OWN, entity, types, read)


def find_owners(
    rows: DataFrame, use: Use, level: int, entity: Entity, types: Types, read: Reader
) -> DataFrame:
    """The ids that rows of the `level`th dataset of a lookup lead to."""
    reached = _reach(rows, use, level, entity, types, read)
    return reached.where(are_named(entity)).select(*id_names(entity))


def _reach(rows: DataFrame, use: Use, level: int, entity: Entity, types: Types, read: Reader) -> DataFrame:
    """The rows of one dataset on the way with the ids that they lead to."""
    if level + 1 == len(use.via):
        return with_ids(rows, use.columns, entity, types)
    step = use.via[level + 1]
    there = _reach(read(step.dataset), use, level + 1, entity, types, read).where(are_named(entity))
    values = [F.col(quote(column)).alias(f"__on{i}") for i, (_, column) in enumerate(step.on)]
    # Each pair once: a row that finds two rows of one owner belongs to it once.
    owners = there.select(*values, *id_names(entity)).distinct()
    same = [F.col(quote(column)) == F.col(f"__on{i}") for i, (column, _) in enumerate(step.on)]
    return rows.join(owners, same).drop(*(f"__on{i}" for i in range(len(step.on))))
