"""The columns of a fact dataset."""

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.declare.names import check_column_name
from strandline.declare.yaml_lines import Document
from strandline.model.columns import STRING, native_name
from strandline.model.errors import Place
from strandline.model.project import FactColumn, FileFormat
from strandline.model.report import Report, suggest
from strandline.sql.checks import check_deterministic, check_row_wise
from strandline.sql.job_sql import find_first_names
from strandline.sql.parse import parse_expression

from .paths import is_of_item, parse_path
from .spec import ColumnSpec
from .values import fit_default, parse_type


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetContext:
    """What the columns of one dataset are checked against."""

    name: str
    format: FileFormat
    native: frozenset[str] | None
    """The columns of the source's files. None if they are not known."""
    exploded: bool
    nested: bool
    """Whether the list is inside another one, so that `parent` exists."""
    document: Document
    report: Report


def make_columns(declared: Mapping[str, str | ColumnSpec], context: DatasetContext) -> tuple[FactColumn, ...]:
    columns: dict[str, FactColumn] = {}
    written: dict[str, str] = {}
    for word, spec in declared.items():
        place = context.document.place("datasets", context.name, "columns", word)
        name = word.lower()
        if name in columns:
            what = (
                f"the columns `{written[name]}` and `{word}` of `{context.name}` are both `{name}`:"
                " column names are lower-cased."
            )
            context.report.add("columns-coincide", what, "Rename one of them.", place)
            continue
        if check_column_name(name, place, context.report):
            column = _make_column(
                word,
                ColumnSpec(path=spec) if isinstance(spec, str) else spec,
                isinstance(spec, str),
                place,
                context,
            )
            written[name] = word
            columns[name] = column
    return tuple(columns.values())


def _make_column(
    word: str, spec: ColumnSpec, short: bool, place: Place, context: DatasetContext
) -> FactColumn:
    report, messages = context.report, context.format.holds_messages
    type_ = (
        parse_type(spec.type, place, report)
        if spec.type
        else STRING
        if messages and spec.sql is None
        else None
    )
    if spec.sql is not None and spec.path is not None:
        report.add(
            "path-and-sql",
            f"the column `{word}` of `{context.name}` has both `path` and `sql`.",
            "Keep one of them.",
            place,
        )
    elif spec.sql is None and spec.path is None and messages:
        what = f"the column `{word}` of `{context.name}` has neither `path` nor `sql`."
        report.add("column-without-path", what, f"Add, for example, `path: {word}`.", place)
    path: tuple[str, ...] = ()
    if spec.sql is not None:
        if tree := parse_expression(spec.sql, f"the column `{word}`", lambda line: place, report):
            check_deterministic(tree, spec.sql, lambda line: place, report, f"the column `{word}`")
            check_row_wise(tree, f"the column `{word}`", place, report)
    elif messages:
        path = parse_path(spec.path, f"the column `{word}`", place, report) if spec.path is not None else ()
        _check_element(path, f"the column `{word}`", place, context)
    else:
        path = _native_path(spec.path if spec.path is not None else word, place, context)
    default = fit_default(spec.default, type_ or STRING, place, report) if type_ or messages else spec.default
    return FactColumn(name=word.lower(), type=type_, path=path, sql=spec.sql, default=default, place=place)


def _check_element(path: tuple[str, ...], what: str, place: Place, context: DatasetContext) -> None:
    if is_of_item(path) and not context.exploded:
        remedy = "Add `explode: <path of a list>` to the dataset, or read the field `item` with `sql:`."
        mistake = f"{what} reads `{'.'.join(path)}`, but `{context.name}` does not explode a list."
        context.report.add("item-without-explode", mistake, remedy, place)
    if path[:1] == ("parent",) and context.exploded and not context.nested:
        remedy = "Read the field from the payload, or explode a nested list such as `a[].b`."
        mistake = f"{what} reads `{'.'.join(path)}`, but the exploded list is not inside another list."
        context.report.add("parent-without-nesting", mistake, remedy, place)


def _native_path(text: str, place: Place, context: DatasetContext) -> tuple[str, ...]:
    """A column of the source, by its whole name. A field inside one is read with `sql:`."""
    if context.native is not None and native_name(text) not in context.native:
        what = f"the files of the source of `{context.name}` have no column `{text}`."
        context.report.add("unknown-column", what, suggest(text, context.native, "columns"), place)
    return (text,)


def source_time_path(text: str, place: Place, context: DatasetContext) -> tuple[str, ...]:
    """The path of `source_at: {path, type}`."""
    if not context.format.holds_messages:
        return _native_path(text, place, context)
    path = parse_path(text, "`source_at`", place, context.report)
    _check_element(path, "`source_at`", place, context)
    return path


def find_item_columns(columns: tuple[FactColumn, ...]) -> frozenset[str]:
    """The columns that depend on the exploded element, directly or through an earlier column."""
    of_item: set[str] = set()
    for column in columns:
        if is_of_item(column.path) or (column.sql is not None and _mentions(column.sql, {"item", *of_item})):
            of_item.add(column.name)
    return frozenset(of_item)


def _mentions(sql: str, names: set[str]) -> bool:
    tree = parse_expression(sql, "", lambda line: Place(file="", line=1), Report())
    return tree is not None and not names.isdisjoint(find_first_names(tree))
