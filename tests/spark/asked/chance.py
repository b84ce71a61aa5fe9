"""Random expressions that are documented as equal on both engines."""

from random import Random

_COLUMNS = {
    "int": ["id", "g", "i", "j", "Mixed"],
    "bigint": ["m", "n"],
    "decimal": ["d", "e", "d2"],
    "double": ["x", "y"],
    "string": ["s", "u", "num"],
    "boolean": ["b"],
    "date": ["dt"],
    "timestamp": ["at"],
}
_LITERALS = {
    "int": ["0", "1", "-3", "7", "100"],
    "bigint": ["3000000000", "-5000000000"],
    "decimal": ["0.5", "-1.25", "100.0", "3.333"],
    "double": ["1e0", "-2.5e0", "1e10", "0e0"],
    "string": ["'b'", "''", "'aB'", "'\u00e4'", "'12'"],
    "boolean": ["true", "false"],
    "date": ["date '2024-02-29'", "date '1999-12-31'"],
    "timestamp": ["timestamp '2024-02-29 12:34:56.789'", "timestamp '1969-01-01 00:00:00'"],
}
_NUMBERS = ("int", "bigint", "decimal", "double")
_MAKERS: dict[str, list[str]] = {
    "int": [
        "({int} + {int})", "({int} - {int})", "({int} * {int})", "({int} % {int})", "(-{int})", "abs({int})",
        "length({string})", "octet_length({string})", "instr({string}, {string})",
        "position({string} in {string})", "ascii({string})", "extract(year from {date})",
        "extract(dow from {timestamp})", "extract(week from {date})", "extract(hour from {timestamp})",
        "date_part('doy', {timestamp})", "cast({decimal} as int)", "cast({boolean} as int)", "round({int})",
    ],
    "bigint": [
        "({bigint} + {int})", "({bigint} - {bigint})", "({int} * {bigint})", "({bigint} % {int})",
        "floor({double})", "ceil({double})", "floor({int})", "cast({int} as bigint)",
        "cast({decimal} as bigint)", "abs({bigint})",
    ],
    "decimal": [
        "({decimal} + {decimal})", "({decimal} - {int})", "({decimal} * {decimal})",
        "({decimal} / {decimal})", "({decimal} / {int})", "({int} / {decimal})", "({decimal} % {decimal})",
        "(-{decimal})", "abs({decimal})", "round({decimal}, 2)", "round({decimal})", "ceil({decimal})",
        "floor({decimal})", "cast({decimal} as decimal(20,3))", "cast({int} as decimal(15,2))",
        "extract(second from {timestamp})",
    ],
    "double": [
        "({int} / {int})", "({double} + {double})", "({double} * {int})", "({double} - {decimal})",
        "({double} / {double})", "({double} / {decimal})", "({double} % {double})", "(-{double})",
        "abs({double})", "sqrt(abs({double}))", "round({double})", "cast({int} as double)",
        "cast({decimal} as double)", "cast({bigint} as double)",
    ],
    "string": [
        "concat({string}, {string})", "({string} || {string})", "({string} || {int})",
        "({string} || {decimal})", "upper({string})", "lower({string})", "trim({string})",
        "substr({string}, {int})", "substr({string}, {int}, {int})", "left({string}, {int})",
        "right({string}, {int})", "replace({string}, {string}, {string})", "reverse({string})",
        "lpad({string}, 5, {string})", "rpad({string}, 3, {string})", "repeat({string}, 2)",
        "split_part({string}, {string}, 1)", "translate({string}, {string}, 'xy')", "md5({string})",
        "cast({int} as string)", "cast({decimal} as string)", "cast({timestamp} as string)",
        "cast({date} as string)", "cast({boolean} as string)", "concat_ws('-', {string}, {int}, {date})",
        "regexp_replace({string}, '[a-c]+', '#')", "date_format({timestamp}, 'yyyy-MM-dd')",
        "date_format({date}, 'dd/MM/yyyy')",
    ],
    "boolean": [
        "({boolean} and {boolean})", "({boolean} or {boolean})", "(not {boolean})", "({boolean} is true)",
        "({boolean} is not null)", "({string} like '%a%')", "({string} ilike 'A%')",
        "({string} not like '_')", "({string} = {int})", "({string} < {string})", "({date} < {timestamp})",
        "({date} = '2024-02-29')", "({timestamp} >= '2024-01-01')", "({double} is distinct from {double})",
        "({string} in ({string}, {string}, null))", "({int} not in ({int}, {int}, null))",
        "({decimal} in ({decimal}, {int}))", "({int} between {int} and {bigint})", "isnan({double})",
        "({string} is not distinct from {string})",
    ],
    "date": [
        "({date} + 1)", "({date} - {int} % 1000)", "({date} + interval 1 month)",
        "({date} - interval 1 year)", "cast({timestamp} as date)", "({date} + interval 2 weeks)",
    ],
    "timestamp": [
        "cast({date} as timestamp)", "date_trunc('month', {timestamp})", "date_trunc('week', {date})",
        "date_trunc('hour', {timestamp})", "({timestamp} + interval 1 month)",
        "({timestamp} - interval 90 minutes)", "({date} + interval 5 hours)",
        "date_trunc('quarter', {timestamp})", "date_trunc('day', {timestamp})",
    ],
}  # fmt: skip
_OF_ANY = [
    "coalesce({t}, {t})", "nullif({t}, {t})", "case when {boolean} then {t} when {boolean} then {t} end",
    "greatest({t}, {t})", "case when {boolean} then {t} else {t} end", "least({t}, {t}, {t})",
    "case {int} when {int} then {t} else {t} end", "nvl({t}, {t})",
]  # fmt: skip
_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=")


def make_expressions(seed: int, count: int) -> list[str]:
    chance = Random(seed)
    return [_make(chance, chance.choice(list(_COLUMNS)), chance.randint(1, 3)) for _ in range(count)]


def _make(chance: Random, kind: str, depth: int) -> str:
    if depth == 0:
        return chance.choice(
            _COLUMNS[kind] * 2
            + _LITERALS[kind]
            + (["null"] if chance.random() < 0.02 and kind == "string" else [])
        )
    pick = chance.random()
    if pick < 0.2:
        template = chance.choice(_OF_ANY).replace("{t}", "{" + kind + "}")
    elif kind == "boolean" and pick < 0.6:
        numbers = chance.random() < 0.6
        one = chance.choice(_NUMBERS if numbers else list(_COLUMNS))
        two = chance.choice(_NUMBERS) if numbers else one
        template = "({" + one + "} " + chance.choice(_COMPARISONS) + " {" + two + "})"
    else:
        template = chance.choice(_MAKERS[kind])
    return _filled(chance, template, depth - 1)


def _filled(chance: Random, template: str, depth: int) -> str:
    """Replace each place in braces with an expression of its type, more often a shallow one."""
    before, brace, rest = template.partition("{")
    if not brace:
        return before
    kind, _, after = rest.partition("}")
    return (
        before
        + _make(chance, kind, chance.choice((0, 0, depth)) if depth else 0)
        + _filled(chance, after, depth)
    )
