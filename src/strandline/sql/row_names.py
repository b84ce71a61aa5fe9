"""The names in an expression over one row and the rows that are looked up for it."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from .parse import line_of
from .selects import UNITS


@dataclass(frozen=True, slots=True, kw_only=True)
class RowName:
    """A column, or `prefix.column`, in lower case. Fields inside a column are left out."""

    first: str
    second: str = ""
    line: int = 1

    def __str__(self) -> str:
        return f"{self.first}.{self.second}" if self.second else self.first


def find_row_names(tree: exp.Expr) -> Iterator[RowName]:
    """Every name in an expression. Arguments of lambdas and units of time are not names of columns."""
    for column in tree.find_all(exp.Column):
        parts = [part.name.lower() for part in column.parts]
        is_argument = isinstance(column.parent, exp.Kwarg | exp.PropertyEQ) and column.arg_key == "this"
        if is_argument or isinstance(column.this, exp.Star) or (len(parts) == 1 and parts[0] in UNITS):
            continue
        yield RowName(first=parts[0], second=parts[1] if len(parts) > 1 else "", line=line_of(column))


def find_stars(tree: exp.Expr) -> Iterator[int]:
    """The line of each `*` that stands for columns."""
    return (line_of(star) for star in tree.find_all(exp.Star) if not isinstance(star.parent, exp.Count))
