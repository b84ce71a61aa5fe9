"""The datasets that an entry reads, and checks of their columns."""

from strandline.model.columns import METADATA_COLUMNS
from strandline.model.errors import Place
from strandline.model.report import Report, find_nearest, suggest
from strandline.sql.known_columns import NOTHING, Known

from .loading import Loading
from .yaml_lines import DataPath


def find_dataset(name: str, what: str, path: DataPath, own: tuple[str, ...], loading: Loading) -> str:
    """The dataset that a name means. One that does not exist is reported, and the nearest is read instead.

    `what` says what reads it. `own` are the entry's own outputs, which are never meant.
    """
    if not name or name in loading.tables or name in loading.registry.broken:
        return name  # a name that is missing has already been reported
    others = [table for table in loading.tables if table not in own]
    remedy = suggest(name, others, "datasets")
    report = loading.report_of(*path[:2])
    report.add(
        "unknown-dataset",
        f"{what} reads `{name}`, which is not a dataset.",
        remedy,
        loading.document.place(*path),
    )
    return find_nearest(name, others) or name


def is_understood(name: str, loading: Loading) -> bool:
    return name in loading.known and name not in loading.registry.broken


def find_known(name: str, loading: Loading) -> Known:
    return loading.known.get(name, NOTHING)


def check_column(column: str, what: str, dataset: str, known: Known, place: Place, report: Report) -> bool:
    """Report a column that a dataset does not have. `what` says what names it."""
    if column in METADATA_COLUMNS:
        mistake = f"{what} names the metadata column `{column}`."
        report.add("metadata-column", mistake, f"Name another column of `{dataset}`.", place)
        return False
    if not known.may_have(column):
        mistake = f"{what} names `{column}`, which is not a column of `{dataset}`."
        report.add("unknown-column", mistake, suggest(column, known.names or (), "columns"), place)
        return False
    return True
