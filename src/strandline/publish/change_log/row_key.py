"""The row key as it is stored: types that were not declared are known only now."""

from strandline.lake.table import get_table
from strandline.lake.work import Work
from strandline.model.errors import WorkError
from strandline.model.publishing import ChangeLog
from strandline.model.report import listed

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
