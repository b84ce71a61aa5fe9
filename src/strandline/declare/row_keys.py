"""The row key of a dataset, by which a published change names its row."""

from strandline.model.errors import Place
from strandline.model.report import Report, listed
from strandline.sql.known_columns import Known

_INEXACT = ("double", "float")


def check_row_key(dataset: str, known: Known, what: str, place: Place, report: Report) -> None:
    """Report a dataset whose rows cannot be named. `what` says what publishes it."""
    if not known.row_key:
        report.add(
            "no-row-key",
            f"{what} needs a row key, and nothing identifies the rows of `{dataset}`.",
            "Describe its key: `key: [<columns>]` under `datasets:` for a job's output,"
            " `event_stream: {identity: [<columns>]}` or `record_set` for facts.",
            place,
        )
    elif inexact := [column for column in known.row_key if known.type_of(column) in _INEXACT]:
        report.add(
            "double-in-row-key",
            f"{what} needs a row key without doubles, and that of `{dataset}` contains {listed(inexact)}.",
            "Give the column an exact type, such as a decimal or a string.",
            place,
        )
