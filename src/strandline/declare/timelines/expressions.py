"""The expressions of a valuation: its columns and its condition."""

from collections.abc import Mapping

from strandline.declare.yaml_lines import DataPath
from strandline.model.errors import Place
from strandline.model.report import Report, suggest
from strandline.model.timeline import ValuedColumn
from strandline.sql.checks import check_deterministic, check_row_wise
from strandline.sql.parse import parse_expression
from strandline.sql.row_names import RowName, find_row_names, find_stars

from .references import References

_CLOCK = "Use `date`, the date of the row."


def make_columns(
    declared: Mapping[str, str], visible: tuple[str, ...], references: References, report: Report
) -> tuple[ValuedColumn, ...]:
    """`visible` are the key, `date` and the fields. A column may also use the columns above it."""
    names = [word.lower() for word in declared]
    columns = []
    for number, (word, sql) in enumerate(declared.items()):
        what = f"the column `{word}` of the timeline `{references.timeline}`"
        _check(
            sql,
            what,
            (*references.path, "columns", word),
            (*visible, *names[:number]),
            names[number + 1 :],
            references,
            report,
        )
        columns.append(ValuedColumn(name=word.lower(), sql=sql))
    return tuple(columns)


def check_where(sql: str, visible: tuple[str, ...], references: References, report: Report) -> None:
    what = f"`where` of the timeline `{references.timeline}`"
    _check(sql, what, (*references.path, "where"), visible, [], references, report)


def _check(
    sql: str,
    what: str,
    path: DataPath,
    visible: tuple[str, ...],
    below: list[str],
    references: References,
    report: Report,
) -> None:
    document = references.loading.document
    place = document.place(*path)

    def place_of(line: int) -> Place:
        return document.place_in_text(path, line)

    tree = parse_expression(sql, what, place_of, report)
    if tree is None:
        return
    check_deterministic(tree, sql, place_of, report, what, _CLOCK)
    check_row_wise(tree, what, place, report, sees="row")
    for line in find_stars(tree):
        report.add(
            "star-in-expression", f"{what} uses `*`.", "Name each column that it needs.", place_of(line)
        )
    for name in find_row_names(tree):
        if name.first in references.known and name.second:
            references.use(name.first, name.second, what, place_of(name.line), report)
        elif name.first not in visible:
            remedy = _find_remedy(name, visible, below, references)
            mistake = f"{what} names `{name}`, which is not a column."
            report.add("unknown-column", mistake, remedy, place_of(name.line))


def _find_remedy(name: RowName, visible: tuple[str, ...], below: list[str], references: References) -> str:
    if name.first in references.known:
        return f"Name a column of that reference: `{name.first}.<column>`."
    if name.first in below:
        return f"Declare `{name.first}` above it: a column may use the columns above."
    if name.second:
        return suggest(name.first, references.known, "references")
    having = [ref for ref, known in references.known.items() if name.first in (known.names or ())]
    if having:
        return f"Did you mean `{having[0]}.{name.first}`?"
    return suggest(name.first, visible, "columns")
