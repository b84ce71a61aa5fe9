"""The row key as it is stored: types that were not declared are known only now."""

from pyspark.sql import DataFrame
from pyspark.sql.types import DoubleType, FloatType, StructType

from strandline.lake.table import get_table
from strandline.lake.work import Work
from strandline.model.errors import WorkError
from strandline.model.publishing import ChangeLog
from strandline.model.report import listed

from .netting import NEW_ROW, OLD_ROW

_INEXACT = ("double", "float")


def check_row_key(work: Work, log: ChangeLog) -> None:
    """Raises WorkError if the key has a double: two computations of it may differ in the last digit."""
    columns = dict(get_table(work.lake.table(log.dataset), work.version(log.dataset)).columns)
    inexact = [name for name in log.key if columns.get(name) in _INEXACT]
    if inexact:
        raise WorkError(
            f"The change log `{work.node.name}` needs a row key without doubles, and that of `{log.dataset}`"
            f" contains {listed(inexact)}.",
            remedy="Give the column an exact type, such as a decimal or a string, and backfill"
            f" `{log.dataset}`.",
            slug="double-in-row-key",
        )


def has_inexact_key(net: DataFrame, log: ChangeLog) -> bool:
    """Whether net changes are of rows whose key had a double then. Nothing can name such a row."""
    rows = [net.schema[name].dataType for name in (NEW_ROW, OLD_ROW)]
    return any(
        isinstance(field.dataType, DoubleType | FloatType)
        for row in rows
        if isinstance(row, StructType)
        for field in row.fields
        if field.name in log.key
    )
