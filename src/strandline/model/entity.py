"""What an entity is: a thing with an id, and variables that are computed for each id (ADR 15)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from .accumulation import Accumulation
from .border_steps import BorderStep, Shift
from .columns import ColumnType
from .errors import Place
from .kind import NodeKind
from .own_clock import Every
from .typed_values import Scalar

AS_OF = ":as_of"
"""The logical time of the run, as it is written in SQL."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One lookup of `via`: the rows of a dataset that agree with a row in these columns."""

    dataset: str
    on: tuple[tuple[str, str], ...]
    """(column here, column there)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """One dataset under one list of id columns. All its variables are computed in one aggregation."""

    name: str
    """Unique in its entity."""
    input: str
    """The dataset's name in the project file."""
    dataset: str
    """The node that maintains it."""
    columns: tuple[str, ...]
    """The id's columns, in the order of the id: in the dataset itself, or in that of the last step."""
    via: tuple[Step, ...] = ()
    """The lookups that lead from a row to the rows that name its entities."""
    order_by: tuple[str, ...] = ()
    """The columns by which `latest` ranks its rows. Empty if it has no order."""
    ranked_by: str = ""
    """The node whose facts move the rank of its rows without changing them. Empty if nothing does.

    Set for a record set that is ranked by positions, if a variable takes one of several rows.
    """

    @property
    def own_columns(self) -> tuple[str, ...]:
        """The columns of the dataset itself by which its rows find their entities."""
        return tuple(here for here, _ in self.via[0].on) if self.via else self.columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Namer:
    """A dataset whose rows name entities in these columns."""

    dataset: str
    columns: tuple[str, ...]
    for_ever: bool
    """The dataset consists of facts: an entity exists once one of them has named it.

    In any other dataset it exists while a row names it.
    """

    @property
    def name(self) -> str:
        """How `_state` and the configuration call it."""
        return f"{self.dataset}({','.join(self.columns)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """`[as_of - length, as_of)` of a column."""

    column: str
    seconds: int
    text: str
    """The length as it is declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Border:
    """A value that depends on `as_of` alone and that a column is compared with.

    When `as_of` moves, only rows whose column lies between the old and the new value can be affected.
    """

    column: str
    sql: str
    """The value, as an expression of `:as_of`."""
    steps: tuple[BorderStep, ...] | None = None
    """How the value is made from `as_of`, where that can be known without Spark."""
    of_window: bool = False
    """A date is then its midnight in the project's time zone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One column of an entity."""

    name: str
    place: Place
    use: str = ""
    """The name of its use. Empty for an `expr`."""
    select: str = ""
    """An expression of aggregates over the rows of the use."""
    where: str = ""
    window: Window | None = None
    default: Scalar | None = None
    """What replaces NULL."""
    expr: str = ""
    """An expression over other variables, in place of `select`."""
    needs: tuple[str, ...] = ()
    """Of an `expr`: the variables that it names."""
    borders: tuple[Border, ...] = ()
    moves_everybody: bool = False
    """`:as_of` occurs where it is not a border: when it moves, the variable may change for every entity."""
    reads: tuple[str, ...] = ()
    """The columns of the dataset that it reads."""
    reads_row: bool = False
    """It takes one of several rows, and ties are decided by all columns of a row."""
    accumulation: Accumulation | None = None
    """Whether it can be added to. None for an `expr`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """A thing with an id. The output has one row for each, with a column per variable."""

    kind: ClassVar[NodeKind] = NodeKind("entity")
    name: str
    place: Place
    id: tuple[str, ...]
    types: tuple[ColumnType | None, ...]
    """The types of the id. None for a type that all inputs agree on and that nothing declares."""
    every: Every | None = None
    uses: tuple[Use, ...]
    namers: tuple[Namer, ...]
    variables: tuple[Variable, ...]
    """In declared order. A family is one variable for each length of its window."""

    def get_use(self, name: str) -> Use:
        return next(use for use in self.uses if use.name == name)

    def variables_of(self, use: Use) -> tuple[Variable, ...]:
        return tuple(v for v in self.variables if v.use == use.name)

    def borders_of(self, use: Use) -> tuple[Border, ...]:
        """The borders of all variables of a use, each once."""
        return tuple(dict.fromkeys(border for v in self.variables_of(use) for border in v.borders))

    @property
    def moves(self) -> bool:
        """Whether a move of `as_of` may change a value."""
        return any(v.borders or v.moves_everybody for v in self.variables)

    @property
    def moves_everybody(self) -> bool:
        return any(v.moves_everybody for v in self.variables)

    def in_order(self) -> Iterator[Variable]:
        """The variables that are expressions, each one after those that it names."""
        done: set[str] = {v.name for v in self.variables if not v.expr}
        left = [v for v in self.variables if v.expr]
        while left:
            ready = [v for v in left if done.issuperset(v.needs)]
            assert ready, "a cycle of expressions is refused when it is declared"
            yield from ready
            done.update(v.name for v in ready)
            left = [v for v in left if v not in ready]


def window_borders(window: Window) -> tuple[Border, ...]:
    """The two edges of a window."""
    return (
        Border(
            column=window.column,
            sql=f"{AS_OF} - INTERVAL {window.seconds} SECONDS",
            steps=(Shift(seconds=-window.seconds),),
            of_window=True,
        ),
        Border(column=window.column, sql=AS_OF, steps=(), of_window=True),
    )
