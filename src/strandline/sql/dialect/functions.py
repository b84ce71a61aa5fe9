"""The functions that give equal results on both engines, some of them rewritten for that."""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sqlglot import exp

from .building import Typed, as_type, call, canonical, choose, number, operation, text
from .casts import cast
from .operators import comparable, comparison
from .types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT,
    MAX_PRECISION,
    STRING,
    TIMESTAMP,
    VOID,
    SparkType,
    decimal,
    widest,
)

Arguments = Sequence[Typed]
Function = Callable[[Arguments], Typed | None]
"""Compiled arguments -> the call; None if it is not known to be equal for these types and values."""

_SAFE_PATTERN = re.compile(r"(?:[A-Za-z0-9 ,;:@#%=_/<>!\"'~-]|[*+?|()^]|\[\^?[A-Za-z0-9 _-]+\])+")
_STRFTIME = {
    "yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "hh": "%I", "mm": "%M", "ss": "%S",
    "SSS": "%3f", "SSSSSS": "%6f",
    "MMM": "%b", "MMMM": "%B", "E": "%a", "EEEE": "%A", "a": "%p", "DDD": "%j",
}  # fmt: skip
_FEW = 3
"""At most this many doubles are compared one by one: each comparison repeats the ones before it."""
_JAVA_PATTERN = re.compile(r"([A-Za-z])\1*|[^A-Za-z'%\[\]{}#]+")
_UNITS = ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
_DATE_FIELDS = {
    "year": "year",
    "quarter": "quarter",
    "month": "month",
    "week": "week",
    "day": "day",
    "doy": "doy",
    "dow": "dow",
}


def _simple(name: str, takes: Sequence[SparkType], gives: SparkType) -> Function:
    """A function that takes exactly these types and has the same meaning under this name."""

    def build(arguments: Arguments) -> Typed | None:
        if [a.type for a in arguments] != list(takes):
            return None
        return Typed(call(name, *(a.node for a in arguments)), gives)

    return build


def unify(values: Arguments) -> tuple[list[exp.Expression], SparkType] | None:
    """Values cast to the one type that holds them all."""
    common: SparkType = VOID
    for value in values:
        wider = widest(common, value.type) if value.type is not None else None
        if wider is None:
            return None
        common = wider
    if not common.is_scalar or common == VOID:
        return None
    nodes = [cast(value, common) for value in values]
    known = [node for node in nodes if node is not None]
    return (known, common) if len(known) == len(values) else None


def _unified(name: str, arguments: Arguments) -> Typed | None:
    unified = unify(arguments)
    return Typed(call(name, *unified[0]), unified[1]) if unified and len(arguments) > 1 else None


def _extreme(name: str, arguments: Arguments) -> Typed | None:
    """`greatest` and `least`. Among doubles it is the first that no other exceeds.

    0.0 and -0.0 are equal in Spark, while DataFusion distinguishes them.
    """
    unified = unify(arguments)
    if unified is None or len(arguments) < 2:
        return None
    nodes, common = unified
    if not common.is_floating:
        return Typed(call(name, *nodes), common)
    if len(nodes) > _FEW:
        return None
    best = nodes[0]
    for node in nodes[1:]:
        beyond = operation(
            exp.GT if name == "greatest" else exp.LT, *(canonical(Typed(n, common)) for n in (node, best))
        )
        missing = exp.Is(this=exp.Paren(this=best.copy()), expression=exp.Null())
        best = choose((exp.Or(this=beyond, expression=missing), node), otherwise=best)
    return Typed(best, common)


def _null_if(arguments: Arguments) -> Typed | None:
    if len(arguments) != 2 or arguments[0].type is None or not (same := comparison(exp.EQ, *arguments)):
        return None
    return Typed(choose((same.node, exp.Null()), otherwise=arguments[0].node), arguments[0].type)


def as_texts(arguments: Arguments) -> list[exp.Expression] | None:
    nodes = [
        cast(a, STRING) if a.type is not None and a.type.is_scalar and a.type.name != "binary" else None
        for a in arguments
    ]
    known = [node for node in nodes if node is not None]
    return known if len(known) == len(nodes) else None


def concatenated(arguments: Arguments) -> Typed | None:
    """NULL if one argument is NULL. DataFusion's `concat` takes NULL for an empty text, its `||` does not."""
    nodes = as_texts(arguments)
    if not nodes:
        return None
    joined = nodes[0]
    for node in nodes[1:]:
        joined = operation(exp.DPipe, joined, node)
    return Typed(joined, STRING)


def _joined(arguments: Arguments) -> Typed | None:
    nodes = as_texts(arguments)
    return Typed(call("concat_ws", *nodes), STRING) if nodes and len(nodes) > 1 else None


def substring(arguments: Arguments) -> Typed | None:
    """Spark counts a negative start from the end, reads 0 as 1, and a negative length as 0."""
    kinds = [a.type for a in arguments]
    if (
        len(arguments) not in (2, 3)
        or kinds[0] != STRING
        or any(k is None or not k.is_integer for k in kinds[1:])
    ):
        return None
    value, start, *lengths = (a.node for a in arguments)
    begin = arguments[1].literal
    if not (isinstance(begin, int) and begin > 0):
        from_end = operation(
            exp.Add, operation(exp.Add, call("length", value), number(1)), as_type(start, BIGINT)
        )
        zero = (operation(exp.EQ, start, number(0)), number(1))
        start = choose((operation(exp.LT, start, number(0)), from_end), zero, otherwise=start)
    node = call("substr", value, as_type(start, BIGINT), *(_at_least_zero(n) for n in lengths))
    missing = [exp.Is(this=length.copy(), expression=exp.Null()) for length in lengths]
    return Typed(choose(*((m, exp.Null()) for m in missing), otherwise=node) if missing else node, STRING)


def _at_least_zero(length: exp.Expression) -> exp.Expression:
    return call("greatest", as_type(length, BIGINT), number(0))


def _end_of(name: str, arguments: Arguments) -> Typed | None:
    """`left` and `right`: no characters for a negative number."""
    if (
        len(arguments) != 2
        or arguments[0].type != STRING
        or arguments[1].type is None
        or not arguments[1].type.is_integer
    ):
        return None
    value, length = (a.node for a in arguments)
    missing = exp.Is(this=length.copy(), expression=exp.Null())
    return Typed(choose((missing, exp.Null()), otherwise=call(name, value, _at_least_zero(length))), STRING)


def _padded(name: str, arguments: Arguments) -> Typed | None:
    kinds = [a.type for a in arguments]
    if kinds not in ([STRING, INT], [STRING, INT, STRING]):
        return None
    return Typed(call(name, *(a.node for a in arguments)), STRING)


def _absolute(arguments: Arguments) -> Typed | None:
    (value,) = arguments if len(arguments) == 1 else (None,)
    if value is None or value.type is None or not value.type.is_number:
        return None
    return Typed(call("abs", as_type(value.node, value.type)), value.type)


def _whole(name: str, arguments: Arguments) -> Typed | None:
    """`ceil` and `floor`: a bigint, or for a decimal a decimal without scale."""
    if len(arguments) != 1 or (kind := arguments[0].type) is None or not kind.is_number:
        return None
    node = arguments[0].node
    if kind.is_integer:
        return Typed(as_type(node, BIGINT), BIGINT)
    if kind.is_floating:
        return Typed(as_type(call(name, as_type(node, DOUBLE)), BIGINT), BIGINT)
    result = decimal(min(kind.precision - kind.scale + 1, MAX_PRECISION), 0)
    roomy = decimal(min(kind.precision + 1, MAX_PRECISION), kind.scale)
    return Typed(as_type(call(name, as_type(node, roomy)), result), result)


def _rounded(arguments: Arguments) -> Typed | None:
    """Half away from zero.

    Not for doubles with digits: Spark rounds the printed number, DataFusion the binary one.
    """
    digits = arguments[1].literal if len(arguments) == 2 else 0
    kind = arguments[0].type if arguments else None
    if (
        kind is None
        or not isinstance(digits, int)
        or isinstance(digits, bool)
        or digits < 0
        or len(arguments) > 2
    ):
        return None
    if kind.is_integer:
        return Typed(arguments[0].node, kind)
    if kind == DOUBLE:
        zero = as_type(number(0), DOUBLE)  # -0.4 rounds to 0.0 in Spark, to -0.0 here
        return (
            Typed(operation(exp.Add, call("round", arguments[0].node), zero), DOUBLE) if digits == 0 else None
        )
    if kind.is_decimal:
        scale = min(digits, kind.scale)
        result = decimal(min(kind.precision - kind.scale + 1 + scale, MAX_PRECISION), scale)
        return Typed(as_type(arguments[0].node, result), result)
    return None


def _of_double(name: str, arguments: Arguments) -> Typed | None:
    node = cast(arguments[0], DOUBLE) if len(arguments) == 1 else None
    return Typed(call(name, node), DOUBLE) if node is not None else None


def _logarithm(name: str, arguments: Arguments) -> Typed | None:
    """NULL for a value that is not positive."""
    node = cast(arguments[0], DOUBLE) if len(arguments) == 1 else None
    if node is None:
        return None
    return Typed(choose((operation(exp.GT, node, number(0)), call(name, node))), DOUBLE)


def _is_nan(arguments: Arguments) -> Typed | None:
    node = cast(arguments[0], DOUBLE) if len(arguments) == 1 else None
    return (
        Typed(call("coalesce", call("isnan", node), exp.Boolean(this=False)), BOOLEAN)
        if node is not None
        else None
    )


def _replaced(arguments: Arguments) -> Typed | None:
    return _simple("replace", (STRING, STRING, STRING), STRING)(arguments)


def _pattern_replaced(arguments: Arguments) -> Typed | None:
    """Replaces every match, as Spark does. Only for patterns that mean the same to Rust and to Java."""
    if len(arguments) != 3 or [a.type for a in arguments] != [STRING] * 3:
        return None
    pattern, new = arguments[1].literal, arguments[2].literal
    if (
        not isinstance(pattern, str)
        or not isinstance(new, str)
        or not _SAFE_PATTERN.fullmatch(pattern)
        or set(new) & set("\\$")
    ):
        return None
    return Typed(call("regexp_replace", *(a.node for a in arguments), text("g")), STRING)


def _truncated(arguments: Arguments) -> Typed | None:
    if len(arguments) != 2 or not isinstance(unit := arguments[0].literal, str) or unit.lower() not in _UNITS:
        return None
    if arguments[1].type not in (DATE, TIMESTAMP):
        return None
    first = _first_day(unit.lower(), arguments[1].node)
    node = first if first is not None else cast(arguments[1], TIMESTAMP)
    assert node is not None
    return Typed(
        as_type(node, TIMESTAMP) if first is not None else call("date_trunc", text(unit.lower()), node),
        TIMESTAMP,
    )


def _first_day(unit: str, node: exp.Expression) -> exp.Expression | None:
    """The first day of a unit, computed with dates, which have every year.

    DataFusion's own `date_trunc` refuses years outside 1677 to 2262.
    """
    day = as_type(node, DATE)
    year = as_type(call("date_part", text("year"), day), INT)
    quarter = as_type(call("date_part", text("quarter"), day), INT)
    match unit:
        case "year":
            return call("make_date", year, number(1), number(1))
        case "quarter":
            return call(
                "make_date",
                year,
                operation(exp.Sub, operation(exp.Mul, quarter, number(3)), number(2)),
                number(1),
            )
        case "month":
            return call("make_date", year, as_type(call("date_part", text("month"), day), INT), number(1))
        case "week":
            since_sunday = as_type(call("date_part", text("dow"), day), INT)
            return operation(
                exp.Sub,
                day,
                as_type(operation(exp.Mod, operation(exp.Add, since_sunday, number(6)), number(7)), INT),
            )
        case "day":
            return day
        case _:
            return None


def field(unit: str, value: Typed) -> Typed | None:
    """A field of a date or an instant. Sunday is day 1 of the week in Spark; a second has its fraction."""
    unit, node = unit.lower(), value.node
    if value.type not in (DATE, TIMESTAMP):
        return None
    if unit in _DATE_FIELDS:
        part = as_type(call("date_part", text(unit), node), INT)
        return Typed(as_type(operation(exp.Add, part, number(1)), INT) if unit == "dow" else part, INT)
    if value.type == TIMESTAMP and unit in ("hour", "minute"):
        return Typed(as_type(call("date_part", text(unit), node), INT), INT)
    if value.type == TIMESTAMP and unit == "second":
        micros = as_type(call("date_part", text("microsecond"), node), decimal(20, 6))
        return Typed(
            as_type(operation(exp.Div, micros, as_type(number(1_000_000), decimal(7, 0))), decimal(8, 6)),
            decimal(8, 6),
        )
    return None


def _part(arguments: Arguments) -> Typed | None:
    return (
        field(unit, arguments[1])
        if len(arguments) == 2 and isinstance(unit := arguments[0].literal, str)
        else None
    )


def _formatted(arguments: Arguments) -> Typed | None:
    if (
        len(arguments) != 2
        or arguments[0].type not in (DATE, TIMESTAMP)
        or not isinstance(pattern := arguments[1].literal, str)
    ):
        return None
    pieces = [m.group() for m in _JAVA_PATTERN.finditer(pattern)]
    if "".join(pieces) != pattern or any(p[0].isalpha() and p not in _STRFTIME for p in pieces):
        return None
    of_days = not any(
        p[0] in "HhmsSa" for p in pieces
    )  # dates have every year; instants only those that fit in nanoseconds
    node = cast(arguments[0], DATE if of_days else TIMESTAMP)
    assert node is not None
    return Typed(call("date_format", node, text("".join(_STRFTIME.get(p, p) for p in pieces))), STRING)


def _converted(target: SparkType, arguments: Arguments) -> Typed | None:
    node = (
        cast(arguments[0], target)
        if len(arguments) == 1 and arguments[0].type in (STRING, DATE, TIMESTAMP)
        else None
    )
    return Typed(node, target) if node is not None else None


def _found(arguments: Arguments) -> Typed | None:
    """`instr(text, part)`."""
    if [a.type for a in arguments] != [STRING, STRING]:
        return None
    return Typed(call("strpos", *(a.node for a in arguments)), INT)


def _split(arguments: Arguments) -> Typed | None:
    return _simple("split_part", (STRING, STRING, INT), STRING)(arguments)


FUNCTIONS: Mapping[str, Function] = {
    "abs": _absolute,
    "ascii": _simple("ascii", (STRING,), INT),
    "btrim": _simple("btrim", (STRING,), STRING),
    "ceil": partial(_whole, "ceil"),
    "char_length": _simple("length", (STRING,), INT),
    "character_length": _simple("length", (STRING,), INT),
    "coalesce": partial(_unified, "coalesce"),
    "concat": concatenated,
    "concat_ws": _joined,
    "current_date": _simple("current_date", (), DATE),
    "date_format": _formatted,
    "date_part": _part,
    "date_trunc": _truncated,
    "floor": partial(_whole, "floor"),
    "greatest": partial(_extreme, "greatest"),
    "ifnull": partial(_unified, "coalesce"),
    "instr": _found,
    "isnan": _is_nan,
    "least": partial(_extreme, "least"),
    "left": partial(_end_of, "left"),
    "length": _simple("length", (STRING,), INT),
    "lower": _simple("lower", (STRING,), STRING),
    "lpad": partial(_padded, "lpad"),
    "ltrim": _simple("ltrim", (STRING,), STRING),
    "md5": _simple("md5", (STRING,), STRING),
    "nullif": _null_if,
    "nvl": partial(_unified, "coalesce"),
    "octet_length": _simple("octet_length", (STRING,), INT),
    "pi": _simple("pi", (), DOUBLE),
    "position": _found,
    "regexp_replace": _pattern_replaced,
    "repeat": _simple("repeat", (STRING, INT), STRING),
    "replace": _replaced,
    "reverse": _simple("reverse", (STRING,), STRING),
    "right": partial(_end_of, "right"),
    "round": _rounded,
    "rpad": partial(_padded, "rpad"),
    "rtrim": _simple("rtrim", (STRING,), STRING),
    "split_part": _split,
    "sqrt": partial(_of_double, "sqrt"),
    "substr": substring,
    "substring": substring,
    "to_date": partial(_converted, DATE),
    "to_timestamp": partial(_converted, TIMESTAMP),
    "translate": _simple("translate", (STRING, STRING, STRING), STRING),
    "trim": _simple("btrim", (STRING,), STRING),
    "upper": _simple("upper", (STRING,), STRING),
}
APPROXIMATE: Mapping[str, Function] = {
    "exp": partial(_of_double, "exp"),
    "ln": partial(_logarithm, "ln"),
    "log": partial(_logarithm, "ln"),
    "log10": partial(_logarithm, "log10"),
    "log2": partial(_logarithm, "log2"),
}
"""Functions that have Spark's meaning once they are rewritten, but whose last digits may still differ."""

__all__ = [
    "APPROXIMATE",
    "FUNCTIONS",
    "Arguments",
    "as_texts",
    "comparable",
    "concatenated",
    "field",
    "substring",
    "unify",
]
