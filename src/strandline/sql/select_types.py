"""The type of a `select` of one aggregate, where it follows from the types of columns without Spark."""

from collections.abc import Callable

from strandline.model.columns import ColumnType, TypeName, find_type
from strandline.model.number_types import MOST_DIGITS
from strandline.model.typed_values import find_stored_type

from .leaves import PICKED, Cut

_BIGINT, _DOUBLE = "bigint", "double"
_FIXED = {
    **dict.fromkeys(("approx_count_distinct", "count", "count_if", "regr_count"), _BIGINT),
    **dict.fromkeys(("bool_and", "bool_or", "every", "some"), "boolean"),
    **dict.fromkeys(("corr", "covar_pop", "covar_samp", "kurtosis", "skewness", "std", "stddev"), _DOUBLE),
    **dict.fromkeys(("stddev_pop", "stddev_samp", "var_pop", "var_samp", "variance"), _DOUBLE),
}
"""The functions whose type does not depend on their arguments."""
_OF_COLUMN = PICKED | {"max", "min"}
"""They give a value of their first argument."""
_WHOLE = (TypeName.INT, TypeName.BIGINT)


def find_select_type(cut: Cut, type_of: Callable[[str], str | None]) -> ColumnType | None:
    """None if only Spark can tell. `type_of` gives the stored type of a column, where it is known."""
    leaf = cut.only
    if leaf is None:
        return None
    if fixed := _FIXED.get(leaf.function):
        return find_type(fixed)
    takes_several = leaf.function in ("latest", "earliest") and len(leaf.arguments) > 1
    stored = type_of(leaf.arguments[0].lower())
    kind = find_stored_type(stored) if stored and not takes_several else None
    if kind is None or leaf.function in _OF_COLUMN:
        return kind
    match leaf.function, kind.name:
        case "sum", TypeName.DOUBLE:
            return kind
        case "sum", name if name in _WHOLE:
            return find_type(_BIGINT)
        case "sum", TypeName.DECIMAL:
            return find_type(f"decimal({min(kind.precision + 10, MOST_DIGITS)},{kind.scale})")
        case "avg" | "mean", name if name in (*_WHOLE, TypeName.DOUBLE):
            return find_type(_DOUBLE)
        case _:
            return None
