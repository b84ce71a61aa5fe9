"""The datasets that a timeline reads, and checks of their columns."""

from strandline.declare.reading import check_column
from strandline.model.errors import Place
from strandline.model.report import Report
from strandline.sql.known_columns import Known

FOLLOWING = ("timeline-date", "reference-not-unique")
"""Mistakes that may only follow from a dataset that was not understood."""


def check_date(
    column: str, what: str, dataset: str, known: Known, place: Place, report: Report, *, is_computed: bool
) -> bool:
    """Report a column whose type is known and is not `date`. A timestamp is not a date.

    A type that is not known is checked when the table is read.
    """
    if not check_column(column, what, dataset, known, place, report):
        return False
    stored = known.type_of(column)
    if stored in (None, "date"):
        return True
    mistake = f"{what} names `{column}` of `{dataset}`, which is {stored}, not a date."
    date = f"cast({column} as date)" if stored == "string" else f"local_date({column})"
    if stored not in ("string", "timestamp"):
        remedy = "Name a date column."
    elif is_computed:
        remedy = f"Let the query that makes `{dataset}` return `{date}`."
    elif stored == "string":
        remedy = (
            f"Give it the type under `columns:` of the dataset: `{column}: {{type: date}}`, beside its `path`"
            " if it has one."
        )
    else:
        remedy = f'Add `{column}_on: {{sql: "{date}"}}` under `columns:` of the dataset, and name that.'
    report.add("timeline-date", mistake, remedy, place)
    return False
