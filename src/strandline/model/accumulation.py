"""Which variables of an entity can be added to and subtracted from, and why the others cannot."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from .number_types import NumberType, Types, find_digits, is_exact_type

MOST_SUMMED_DIGITS = 28
"""Of a decimal whose sum accumulates.

Spark sums it with ten digits more, so ten billion rows that come before the rows that they replace leave
cannot overflow.
"""
MOST_DIGITS_OF_AVERAGE = 18
"""Before the point, so that the whole part of an average is a bigint."""


class Adding(StrEnum):
    """How a change reaches an aggregate without reading its other rows."""

    COUNT = "count"
    SUM = "sum"
    AVERAGE = "average"
    LEAST = "least"
    GREATEST = "greatest"

    @property
    def takes_back(self) -> bool:
        """Whether a row that leaves can be subtracted."""
        return self not in (Adding.LEAST, Adding.GREATEST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Addend:
    """One aggregate of a `select`."""

    adding: Adding
    number: NumberType | None = None
    """Of a sum or an average: the type of its argument. None if only Spark can tell."""
    argument: str = ""
    column: str = ""
    """Of a least or a greatest value: its argument, if that is a column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accumulation:
    """What of a variable decides whether it accumulates."""

    addends: tuple[Addend, ...] = ()
    """Its aggregates, in the order in which they are written."""
    refused: str = ""
    """Why it does not, whatever the types of its columns are."""
    is_alone: bool = False
    """The variable is one aggregate and nothing else."""
    has_default: bool = False
    columns: tuple[tuple[str, str], ...] = ()
    """(column, type) where the type is declared."""
    found_in: tuple[str, ...] = ()
    """The datasets in which the owners of its rows are looked up."""

    @property
    def value_tells(self) -> bool:
        """Whether the value of the variable says all that its aggregate has."""
        return self.is_alone and (
            self.addends[0].adding is Adding.COUNT
            or (not self.addends[0].adding.takes_back and not self.has_default)
        )


def find_obstacle(accumulation: Accumulation, stored: Types) -> str:
    """Why a variable cannot accumulate. Empty if it can.

    `stored` are the types in the table that it reads, as far as they are known.
    """
    if accumulation.refused:
        return accumulation.refused
    types = {**dict(accumulation.columns), **stored}
    for addend in accumulation.addends:
        if obstacle := _find_obstacle(addend, accumulation, types):
            return obstacle
    return ""


def _find_obstacle(addend: Addend, of: Accumulation, types: Types) -> str:
    if addend.adding in (Adding.SUM, Adding.AVERAGE):
        digits = find_digits(addend.number, types) if addend.number else None
        if digits is None or digits.precision > MOST_SUMMED_DIGITS:
            return (
                f"`{addend.argument}` is not known to be a whole number or a decimal of at most"
                f" {MOST_SUMMED_DIGITS} digits, and other sums depend on what was added before"
            )
        before_point = 0 if digits.is_whole else digits.precision - digits.scale
        if addend.adding is Adding.AVERAGE and before_point > MOST_DIGITS_OF_AVERAGE:
            return (
                f"`{addend.argument}` may have more than {MOST_DIGITS_OF_AVERAGE} digits before the point,"
                " and its average could not be made of its sum"
            )
        return ""
    if addend.adding.takes_back or of.is_alone or is_exact_type(types.get(addend.column, "")):
        return ""
    return (
        f"`{addend.argument}` is part of an expression, and only whole numbers, decimals, dates, timestamps"
        " and booleans can be kept beside it"
    )


def find_delay(accumulation: Accumulation, changing: Collection[str]) -> str:
    """Why a variable that accumulates does not do so in a task. Empty if it does.

    `changing` are the datasets that have changed, or may change in the same run.
    """
    changed = [dataset for dataset in accumulation.found_in if dataset in changing]
    return f"owners are found in `{changed[0]}`, which changes too" if changed else ""
