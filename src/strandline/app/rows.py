"""Rows of a dataset by a typed condition: a page of them, or all at one version. Starts no Spark."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from strandline.lake.query import Published, query_slices, query_tables, read_fields, visible_columns
from strandline.model.columns import SOURCE_TS
from strandline.model.condition_checks import check_condition
from strandline.model.condition_json import parse_condition
from strandline.model.conditions import EVERY_ROW, Condition
from strandline.model.errors import CallError
from strandline.model.json_values import json_value
from strandline.sql.datafusion_conditions import datafusion_condition
from strandline.sql.literals import datafusion_name

from .clock import parse_instant
from .query import KnownAt, pin_table
from .reading import Readable
from .reprocessing import ReprocessingStatus, read_reprocessing

MOST_ROWS = 1_000
DEFAULT_ROWS = 100
_SLICE = 1_000
_NEXT = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
_UNORDERED = ("array", "map", "struct", "variant")


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderBy:
    column: str
    descending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsRequest:
    dataset: str
    where: object = None
    """A condition as JSON writes it. None: every row."""
    order_by: tuple[OrderBy, ...] = ()
    """Then by all other columns, so that pages do not overlap."""
    limit: int = DEFAULT_ROWS
    offset: int = 0
    known_at: str | None = None
    """A version of the table, or an instant."""
    after: str | None = None
    """The `next` of the page before, which has the version and the offset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsPage:
    dataset: str
    version: int
    reprocessing_status: ReprocessingStatus | None
    """None if it neither is nor depends on the output of a timeline."""
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, object], ...]
    """By column, the values as JSON writes them."""
    next: str | None
    """None if there are no more rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRow:
    """A row as a subscriber begins with it."""

    row: Mapping[str, object]
    """The values as JSON writes them."""
    timestamp: str | None
    """Its `_source_ts`. None if the dataset has none."""


def read_rows(workspace: Readable, request: RowsRequest) -> RowsPage:
    """A page of the rows that a reader sees."""
    name = request.dataset
    _check_name(workspace, name)
    known_at, offset = _find_place(workspace, request)
    published = pin_table(workspace, name, known_at)
    kinds = _find_kinds(published)
    where = parse_condition({} if request.where is None else request.where, kinds)
    order_by = [*(_find_column(one, kinds) for one in request.order_by)]
    sql = _select(published, kinds, where, order_by)
    answer = query_tables(f"{sql} LIMIT {request.limit + 1} OFFSET {offset}", (published,))
    rows = answer.rows[: request.limit]
    more = len(answer.rows) > request.limit
    status = read_reprocessing(workspace, [published.dataset], known_at)
    return RowsPage(
        dataset=name,
        version=published.version,
        reprocessing_status=status.get(published.dataset),
        columns=answer.columns,
        rows=tuple(_to_json(answer.columns, row) for row in rows),
        next=f"{published.version}-{offset + request.limit}" if more else None,
    )


def read_state(
    workspace: Readable, name: str, version: int, where: Condition, key: Sequence[str], most: int
) -> Iterator[tuple[StoredRow, ...]]:
    """All rows of a version for which a condition is true, in the order of their keys.

    Raises CallError if there are more than `most`.
    """
    published = pin_table(workspace, name, KnownAt(versions={workspace.project.readable[name]: version}))
    kinds = _find_kinds(published)
    shown = (SOURCE_TS,) if SOURCE_TS in dict(read_fields(published)) else ()
    order_by = [OrderBy(column=column) for column in key]
    sql = _select(
        published, {**kinds, **dict.fromkeys(shown, "long")}, check_condition(where, kinds), order_by
    )
    columns, rows = (*kinds, *shown), 0
    for part in query_slices(f"{sql} LIMIT {most + 1}", (published,), shown, _SLICE):
        rows += len(part)
        if rows > most:
            raise CallError(
                f"`{name}` has more than {most:,} rows for which the condition is true.",
                remedy="Narrow `where`, or read the rows in pages and subscribe with `after`.",
                slug="snapshot-too-large",
            )
        yield tuple(_store(columns, row) for row in part)


def find_columns(workspace: Readable, name: str) -> dict[str, str]:
    """The columns that readers see, in the dataset's order, with their types as Delta spells them."""
    return _find_kinds(pin_table(workspace, name, None))


def parse_order(text: str) -> tuple[OrderBy, ...]:
    """`price desc, symbol`."""
    order = []
    for part in text.split(","):
        column, _, word = part.strip().partition(" ")
        if not column or word.strip().lower() not in ("", "asc", "desc"):
            raise CallError(
                f"`{part.strip()}` is not a column to order by.",
                remedy="Write for example `order_by=price desc, symbol`.",
                slug="bad-order",
            )
        order.append(OrderBy(column=column, descending=word.strip().lower() == "desc"))
    return tuple(order)


def _check_name(workspace: Readable, name: str) -> None:
    known = sorted(workspace.project.readable)
    if name not in known:
        close = get_close_matches(name, known, 1)
        remedy = f"Did you mean `{close[0]}`?" if close else f"Known: {', '.join(known)}."
        raise CallError(f"There is no dataset `{name}`.", remedy=remedy, slug="unknown-table")


def _find_place(workspace: Readable, request: RowsRequest) -> tuple[KnownAt | None, int]:
    node = workspace.project.readable[request.dataset]
    if request.after is not None:
        place = _NEXT.fullmatch(request.after)
        if place is None:
            raise CallError(
                "`after` is not the `next` of a page of rows.",
                remedy="Pass `next` unchanged.",
                slug="bad-page",
            )
        return KnownAt(versions={node: int(place[1])}), int(place[2])
    if request.known_at is None:
        return None, request.offset
    text = request.known_at.strip()
    if text.isdecimal():
        return KnownAt(versions={node: int(text[:18])}), request.offset
    return KnownAt(at=parse_instant(text), versions={}), request.offset


def _find_kinds(published: Published) -> dict[str, str]:
    """The visible columns, in order, with their types as Delta spells them; nested ones by their kind."""
    kinds = dict(read_fields(published))
    return {name: _spell(kinds[name]) for name in visible_columns(kinds, ())}


def _spell(kind: object) -> str:
    return str(kind["type"]) if isinstance(kind, dict) else str(kind)


def _find_column(order: OrderBy, kinds: Mapping[str, str]) -> OrderBy:
    names = {name.lower(): name for name in kinds}
    column = names.get(order.column.lower())
    if column is None or kinds[column] in _UNORDERED:
        close = get_close_matches(order.column.lower(), names, 1)
        raise CallError(
            f"Rows cannot be ordered by `{order.column[:60]}`.",
            remedy=f"Did you mean `{names[close[0]]}`?" if close else f"The columns are {', '.join(kinds)}.",
            slug="bad-order",
        )
    return OrderBy(column=column, descending=order.descending)


def _select(
    published: Published, kinds: Mapping[str, str], where: Condition, order_by: Sequence[OrderBy]
) -> str:
    """NULL comes before all values, as in Spark. All other columns make the order a total one."""
    columns = ", ".join(datafusion_name(name) for name in kinds)
    filtered = "" if where == EVERY_ROW else f" WHERE {datafusion_condition(where)}"
    named = [one.column for one in order_by]
    rest = [OrderBy(column=c) for c, kind in kinds.items() if c not in named and kind not in _UNORDERED]
    order = ", ".join(
        f"{datafusion_name(one.column)} {'DESC NULLS LAST' if one.descending else 'ASC NULLS FIRST'}"
        for one in (*order_by, *rest)
    )
    ordered = f" ORDER BY {order}" if order else ""
    return f"SELECT {columns} FROM {datafusion_name(published.name)}{filtered}{ordered}"


def _to_json(columns: Sequence[str], row: Sequence[object]) -> Mapping[str, object]:
    return dict(zip(columns, map(json_value, row), strict=True))


def _store(columns: Sequence[str], row: Sequence[object]) -> StoredRow:
    values = dict(zip(columns, row, strict=True))
    timestamp = values.pop(SOURCE_TS, None)
    shown = {name: json_value(value) for name, value in values.items()}
    return StoredRow(row=shown, timestamp=None if timestamp is None else str(timestamp))
