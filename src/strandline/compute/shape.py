"""The columns and types of a result against those of its table."""

from collections.abc import Callable
from dataclasses import replace

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from strandline.lake.work import Prepared, Work
from strandline.model.errors import StrandlineError, WorkError

from .keys import user_columns


class ReshapedError(StrandlineError):
    """The result has different columns or types from the table, and the task may replace the table."""


def prepare_in_shape(work: Work, prepare: Callable[[Work], Prepared]) -> Prepared:
    """Prepare a task.

    If its result does not fit the table and the task may reshape it, it is prepared to replace the table.
    """
    try:
        return prepare(work)
    except ReshapedError:
        return prepare(replace(work, task=replace(work.task, overwrite=True, reshapes=True)))


def fit_types(rows: DataFrame, own: DataFrame, work: Work) -> DataFrame:
    """The result in the types of the table.

    If an existing column has another type, only a backfill may make that change.
    """
    retyped = _type_changes(rows.schema, own.schema)
    gone = set(user_columns(own.columns)) - set(rows.columns) if work.task.reshapes else set()
    if not retyped and not gone:
        return rows
    kind = ReshapedError if work.task.reshapes else WorkError
    name = work.node.name.removesuffix("_facts")
    raise kind(
        f"`{work.node.name}` now gives {', '.join(retyped)}, and its table has other types.",
        remedy=f"Run `strandline backfill {name} --all` to rewrite it with these types.",
        slug="types-changed",
    )


def _type_changes(new: StructType, old: StructType) -> list[str]:
    stored = {f.name: f.dataType.simpleString() for f in old}
    return [
        f"`{f.name}` as {f.dataType.simpleString()}"
        for f in new
        if f.name in stored and stored[f.name] != f.dataType.simpleString()
    ]
