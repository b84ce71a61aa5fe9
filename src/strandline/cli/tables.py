"""Text tables: aligned columns, the last one wrapped to the terminal's width."""

import json
import shutil
import textwrap
import unicodedata
from collections.abc import Collection, Sequence
from datetime import datetime
from decimal import Decimal

from strandline.model.json_values import json_value
from strandline.pages.wording import instant

NARROWEST, WIDEST, USUAL = 80, 160, 120


def render_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    wrap_last: bool = False,
    right: Collection[str] = (),
    grouped: bool = False,
    indent: str = "",
) -> str:
    """Columns as wide as their content. Numbers, and the columns named in `right`, are aligned to the right.

    With `wrap_last` the last column gets the rest of the terminal's width. `grouped` writes 1234 as 1,234.
    """
    cells = [[as_text(value, grouped=grouped) for value in row] for row in rows]
    to_right = [name in right or _numeric([row[i] for row in rows]) for i, name in enumerate(columns)]
    widths = [max([wide(name), *(wide(row[i]) for row in cells)]) for i, name in enumerate(columns)]
    if wrap_last and columns:
        left = terminal_width() - len(indent) - sum(widths[:-1]) - 2 * (len(columns) - 1)
        widths[-1] = min(widths[-1], max(left, 30))
    lines = [_line(columns, widths, to_right), "  ".join("-" * width for width in widths)]
    for row in cells:
        folds = wrap_last and wide(row[-1]) > widths[-1]
        wrapped = textwrap.wrap(row[-1], widths[-1], break_on_hyphens=False) if folds else row[-1:]
        lines.append(_line([*row[:-1], *wrapped[:1]], widths, to_right))
        lines += [_line([*[""] * (len(row) - 1), more], widths, to_right) for more in wrapped[1:]]
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def terminal_width() -> int:
    return min(max(shutil.get_terminal_size((USUAL, 24)).columns, NARROWEST), WIDEST)


def as_text(value: object, *, grouped: bool = False) -> str:
    """A value for people: whole instants to the second, lists and objects as JSON."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int() if grouped:
            return f"{value:,}"
        case datetime():
            return instant(value)
        case str():
            return _on_one_line(value)
        case list() | dict() | tuple():
            return json.dumps(json_value(value), ensure_ascii=False)
        case _:
            return str(json_value(value))


def wide(text: str) -> int:
    """The number of terminal columns that a text takes."""
    return (
        len(text)
        if text.isascii()
        else sum(
            0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
            for c in text
        )
    )


def _line(cells: Sequence[str], widths: Sequence[int], to_right: Sequence[bool]) -> str:
    gaps = [" " * (width - wide(cell)) for cell, width in zip(cells, widths, strict=True)]
    return "  ".join(
        gap + cell if right else cell + gap for cell, gap, right in zip(cells, gaps, to_right, strict=True)
    )


def _numeric(values: Sequence[object]) -> bool:
    filled = [v for v in values if v is not None and v != ""]
    return bool(filled) and all(
        isinstance(v, int | float | Decimal) and not isinstance(v, bool) for v in filled
    )


def _on_one_line(text: str) -> str:
    return text if text.isprintable() else text.replace("\n", "\\n").replace("\t", "\\t").replace("\r", "\\r")
