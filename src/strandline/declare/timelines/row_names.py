"""The names in the rows of a timeline. One name may mean one thing only."""

from collections.abc import Iterator, Mapping

from strandline.declare.names import check_column_name
from strandline.declare.yaml_lines import DataPath, Document
from strandline.model.report import Report
from strandline.model.timeline import DATE, EPOCH

from .nodes import STATE_COLUMNS, SUPERSEDED_COLUMNS
from .spec import TimelineSpec

_ADDED = {
    DATE: "the date of a row",
    EPOCH: "the epoch of a row",
    **dict.fromkeys(SUPERSEDED_COLUMNS, "what replaced a row"),
}
"""The columns that each timeline adds."""
_ADDED_TO_KEY = {**_ADDED, **dict.fromkeys(STATE_COLUMNS, "the state of a key")}
"""The columns that stand beside the key in some dataset of the timeline."""


def check_row_names(
    name: str, spec: TimelineSpec, path: DataPath, document: Document, report: Report
) -> None:
    """Report each name that cannot be a column, or that already means something else."""
    taken = _check_key(name, spec, path, document, report)
    for kind, word, where in _declared(spec):
        place, lower = document.place(*path, *where), word.lower()
        if lower in taken:
            other = "another" if taken[lower] == kind else "a"
            what = f"the {kind} `{word}` of the timeline `{name}` has the name of {other} {taken[lower]}."
            report.add("timeline-name", what, "Rename one of them: names are compared in lower case.", place)
        elif lower in _ADDED:
            what = (
                f"the {kind} `{word}` of the timeline `{name}` has the name of a column that each timeline"
                f" adds: {_ADDED[lower]}."
            )
            report.add("timeline-name", what, "Give it another name.", place)
        elif check_column_name(lower, place, report):
            taken[lower] = kind


def _check_key(
    name: str, spec: TimelineSpec, path: DataPath, document: Document, report: Report
) -> dict[str, str]:
    """By column of the key: what it is."""
    taken: dict[str, str] = {}
    place = document.place(*path, "key")
    for column in spec.key:
        if column.lower() in taken:
            what = f"`{column}` occurs twice in `key` of the timeline `{name}`."
            report.add("named-twice", what, "Keep one of them.", place)
        if column.lower() in _ADDED_TO_KEY:
            what = (
                f"`key` of the timeline `{name}` names `{column}`, the name of a column that each timeline"
                f" adds: {_ADDED_TO_KEY[column.lower()]}."
            )
            remedy = f"Give the column another name in `{spec.facts}`, and use that."
            report.add("timeline-name", what, remedy, place)
        taken[column.lower()] = "column of the key"
    return taken


def _declared(spec: TimelineSpec) -> Iterator[tuple[str, str, DataPath]]:
    """The other names of an entry: what each is, the name, and its place in the entry."""
    parts: list[tuple[str, Mapping[str, object], DataPath]] = [("field", spec.fields, ("fields",))]
    if spec.valuation is not None:
        parts += [
            ("reference", spec.valuation.references, ("valuation", "references")),
            ("column", spec.valuation.columns, ("valuation", "columns")),
        ]
    return ((kind, word, (*path, word)) for kind, words, path in parts for word in words)
