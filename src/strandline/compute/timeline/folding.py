"""Fold the facts of one key, date by date, with a function of the user's. Plain Python, no Spark."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, localcontext
from typing import Any

from strandline.model.columns import ColumnType, TypeName
from strandline.model.typed_values import EXPECTED, fit_value

from .state import StateError, copy_state, decode_state, encode_state

Fact = Mapping[str, Any]
Fold = Callable[[Any, Sequence[Fact]], Any]

DIGITS = 38
"""Of the Decimal context in which a fold computes."""
_COMPUTING = Context(prec=DIGITS)
_ROUNDING = Context(prec=1000, rounding=ROUND_HALF_UP)
"""Precise enough that a field loses no digit before it is rounded to its scale."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The facts of one date, in folding order."""

    on: date
    facts: Sequence[Fact]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedDay:
    """The fields after the facts of one date."""

    on: date
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """What folding gave."""

    days: tuple[FoldedDay, ...]
    state: str | None
    """The state after the last date, encoded. None if there was no date."""


class FoldError(Exception):
    """A key cannot be folded."""

    def __init__(self, on: date, slug: str, reason: str) -> None:
        self.on, self.slug = on, slug
        self.reason = reason.encode(errors="backslashreplace").decode()  # it is stored, and may not be text
        super().__init__(f"{on}: {self.reason}  [{slug}]")


class _FieldError(ValueError):
    """A field is missing from the state, or its value does not fit the column."""


def fold_key(
    fold: Fold, fields: Mapping[str, ColumnType], days: Iterable[Day], state: str | None = None
) -> Folded:
    """Fold dates in ascending order, going on from an encoded state. Raises FoldError.

    Going on from the state of an earlier date gives what folding all dates at once gives. For this the fold
    always gets a copy of its last state that shares nothing with it, as if the state had been stored.
    """
    folded: list[FoldedDay] = []
    takes = {name: _make_take(name, kind) for name, kind in fields.items()}
    current = None if state is None else decode_state(state)
    for day in days:
        try:
            with localcontext(_COMPUTING):
                current = fold(current, day.facts)
            current = copy_state(_require_dict(current))
            values = {name: take(current) for name, take in takes.items()}
        except StateError as error:
            raise FoldError(day.on, "fold-state", str(error)) from error
        except _FieldError as error:
            raise FoldError(day.on, "fold-field", str(error)) from error
        except (Exception, SystemExit) as error:
            raise FoldError(day.on, "fold-failed", f"{type(error).__name__}: {error}") from error
        folded.append(FoldedDay(on=day.on, values=values))
    return Folded(days=tuple(folded), state=encode_state(current) if folded else state)


def _require_dict(state: object) -> dict[str, Any]:
    if type(state) is not dict:
        raise StateError(f"the fold returned a {type(state).__name__}, not a dict")
    return state


def _make_take(name: str, kind: ColumnType) -> Callable[[Mapping[str, Any]], object]:
    """A function that takes a field from a state, as its column stores it.

    Most fields are decimals in a state that has them as decimals.
    """
    unit = Decimal(1).scaleb(-kind.scale)
    limit = Decimal(1).scaleb(kind.precision - kind.scale)  # the first decimal that has too many digits
    is_decimal, round_ = kind.name is TypeName.DECIMAL, _ROUNDING.quantize

    def take(state: Mapping[str, Any]) -> object:
        value = state.get(name, _ABSENT)
        if is_decimal and type(value) is Decimal and value.is_finite():
            rounded = round_(value, unit)
            if -limit < rounded < limit:
                return rounded
        return _take_field(value, name, kind)

    return take


_ABSENT = object()


def _take_field(value: Any, name: str, kind: ColumnType) -> object:
    """The value of a field, as its column stores it."""
    if value is _ABSENT:
        raise _FieldError(f"the state has no `{name}`")
    if value is None:
        return None
    try:
        return _fit(value, kind)
    except (ValueError, ArithmeticError) as error:
        wanted = EXPECTED.get(kind.name, "a value")
        raise _FieldError(f"`{name}` is {value!r}, which is not {wanted} ({kind})") from error


def _fit(value: Any, kind: ColumnType) -> object:
    """A value as one of the type. Decimals are rounded half up to their scale. Texts are not parsed."""
    if isinstance(value, str | bytes) and kind.name is not TypeName.STRING:
        raise ValueError(value)
    if isinstance(value, bytes | list | dict):
        raise ValueError(value)
    if (
        kind.name is TypeName.DECIMAL
        and isinstance(value, int | float | Decimal)
        and not isinstance(value, bool)
    ):
        exact = Decimal(repr(value) if isinstance(value, float) else value)
        value = exact.quantize(Decimal(1).scaleb(-kind.scale), context=_ROUNDING)
    if kind.name is TypeName.TIMESTAMP:
        if not isinstance(value, datetime) or value.tzinfo is None:
            raise ValueError(value)
        return value.astimezone(UTC)
    return fit_value(value, kind)
