"""Refuses SQL whose result depends on the clock, chance or row order, and says what to use instead (L11)."""

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

from sqlglot import exp

from strandline.model.columns import METADATA_COLUMNS
from strandline.model.errors import Place
from strandline.model.report import Report, suggest

from .parse import PlaceOfLine, line_of

_CLOCK = "Use `:as_of`, the run's logical time."
_CLOCK_OF_FACTS = "Take a time from the payload, or use `:as_of` in a job."
_CHANCE = "Derive it from the row, for example with `xxhash64(<key columns>)`."
_PLACE = (
    "Name the columns you need; where a row is stored is not one of them."
    " `_source_position` says where it came from."
)
_WHO = "Put the value into `config:` and use `:name`."
_EXACT = "Use `percentile`, or `count(*)` by group: they are exact."
_ANY = "Use `max`, `min`, or `max_by(value, <order>)`."

REFUSED: dict[str, str] = {
    **dict.fromkeys(
        (
            "now",
            "current_date",
            "curdate",
            "current_timestamp",
            "current_time",
            "localtimestamp",
            "localtime",
            "getdate",
            "sysdate",
        ),
        _CLOCK,
    ),
    **dict.fromkeys(("rand", "randn", "random", "uuid", "shuffle", "randstr", "uniform"), _CHANCE),
    **dict.fromkeys(("monotonically_increasing_id", "spark_partition_id"), _PLACE),
    **dict.fromkeys(("input_file_name", "input_file_block_start", "input_file_block_length"), _PLACE),
    **dict.fromkeys(("current_user", "session_user", "user", "current_database", "current_schema"), _WHO),
    **dict.fromkeys(("current_catalog", "current_timezone", "current_path", "version"), _WHO),
    **dict.fromkeys(("approx_quantile", "approx_percentile", "percentile_approx"), _EXACT),
    **dict.fromkeys(
        ("histogram_numeric", "approx_top_k", "approx_top_k_accumulate", "approx_top_k_combine"), _EXACT
    ),
    **dict.fromkeys(
        (f"kll_{word}_agg_{kind}" for word in ("sketch", "merge") for kind in ("bigint", "double", "float")),
        _EXACT,
    ),
    "aes_encrypt": "Store it as it is, or use `sha2`: the cipher begins with random bytes.",
    "any_value": _ANY,
    "mode": "Use `mode() WITHIN GROUP (ORDER BY <column>)`, which says which of two wins.",
    **dict.fromkeys(("reflect", "java_method", "try_reflect"), "Write a Python job."),
}

_ORDERED = {"first", "last", "first_value", "last_value", "nth_value", "row_number", "lead", "lag", "ntile"}
"""These need a window with ORDER BY."""

_COLLECTING = (exp.ArrayAgg, exp.ArrayUniqueAgg)
_SETTLING = {"sort_array", "array_sort", "size", "cardinality", "array_size", "array_length"}
"""Around a collected list these make the order of its elements irrelevant."""

GENERATORS = (
    "explode",
    "explode_outer",
    "posexplode",
    "posexplode_outer",
    "inline",
    "inline_outer",
    "stack",
    "json_tuple",
)
"""Functions that make several rows of one."""

_MAKING_ROWS = ("range", *GENERATORS)
"""Functions allowed in FROM: they make rows of their arguments alone."""

NO_OTHERS: Mapping[str, str] = MappingProxyType({})
_SPECIAL_TIMES = {"now", "today", "yesterday", "tomorrow"}
_BARE = {
    "current_time",
    "localtimestamp",
    "current_user",
    "session_user",
    "current_timestamp",
    "current_date",
}
"""Functions that Spark also accepts without parentheses, where the parser reads a column."""


def check_deterministic(
    tree: exp.Expr,
    text: str,
    place_of: PlaceOfLine,
    report: Report,
    of: str = "",
    clock: str = _CLOCK_OF_FACTS,
    instead: Mapping[str, str] = NO_OTHERS,
) -> None:
    """Report everything in the SQL that two runs over the same rows could answer differently.

    `of` says which part of an entry the SQL is. It is empty for a job, which can use `:as_of`. `clock` says
    what others use for the time. `instead` has remedies by function, where there are better ones.
    """
    for node in tree.walk():
        if refusal := _refusal(node):
            what, remedy = refusal
            word = re.findall(r"\w+", what)[0]
            if of:
                remedy = instead.get(function_name(node), clock if remedy == _CLOCK else remedy)
                what = f"{of}: {what}"
            report.add("nondeterministic", what, remedy, place_of(line_of(node, text, word)))


def _refusal(node: exp.Expr) -> tuple[str, str] | None:
    name = function_name(node)
    if name in REFUSED and not (name == "mode" and isinstance(node.parent, exp.WithinGroup)):
        if name == "current_timestamp" and isinstance(node.parent, exp.StrToUnix):
            return (
                "`unix_timestamp()` without an argument reads the wall clock.",
                "Use `unix_timestamp(:as_of)`.",
            )
        called = "approx_percentile" if name == "approx_quantile" else name
        return f"`{called}` {_why(name)}.", REFUSED[name]
    if name in _ORDERED and not _in_ordered_window(node):
        remedy = f"Use `{name}(...) OVER (PARTITION BY ... ORDER BY ...)` or `max_by`."
        return f"`{name}` without an order depends on how rows happen to be stored.", remedy
    in_order = isinstance(node, exp.ArrayAgg) and _in_ordered_window(node)
    if isinstance(node, _COLLECTING) and not _settled(node) and not in_order:
        called = "collect_set" if isinstance(node, exp.ArrayUniqueAgg) else "collect_list"
        return f"`{called}` keeps rows in the order they arrive in.", f"Use `sort_array({called}(...))`."
    if (
        isinstance(node, exp.GroupConcat)
        and not isinstance(node.this, exp.Order)
        and not isinstance(node.parent, exp.WithinGroup)
    ):
        return (
            "`listagg` joins rows in the order in which they arrive.",
            "Use `listagg(...) WITHIN GROUP (ORDER BY ...)`.",
        )
    if (
        isinstance(node, (exp.Limit, exp.Offset, exp.Fetch))
        and node.parent is not None
        and not node.parent.args.get("order")
    ):
        return (
            "`LIMIT` without `ORDER BY` takes whichever rows come first.",
            "Add `ORDER BY` over columns that rank every row.",
        )
    if isinstance(node, exp.QueryTransform):
        return "`TRANSFORM ... USING` runs code that cannot be checked.", "Write a Python job."
    if isinstance(node, exp.TableSample):
        return (
            "`TABLESAMPLE` takes rows by chance.",
            "Filter on a hash of the key, as `pmod(xxhash64(<key columns>), 100) < 10`.",
        )
    if (
        isinstance(node, exp.Cast)
        and node.this.is_string
        and node.this.name.strip().lower() in _SPECIAL_TIMES
    ):
        return f"`'{node.this.name}'` as a time reads the wall clock.", _CLOCK
    return None


def _why(name: str) -> str:
    remedy = REFUSED[name]
    if remedy == _CLOCK:
        return "reads the wall clock"
    if remedy == _CHANCE:
        return "depends on chance"
    if remedy == _PLACE:
        return "depends on how rows happen to be stored"
    if remedy == _WHO:
        return "depends on who runs it and where"
    if remedy == _EXACT:
        return "is an estimate that depends on how rows happen to be stored"
    if name == "aes_encrypt":
        return "depends on chance"
    return (
        "takes whichever row comes first"
        if name in ("any_value", "mode")
        else "runs code that cannot be checked"
    )


def function_name(node: exp.Expr) -> str:
    """A function's name as Spark spells it, in lower case. Empty for anything else."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if isinstance(node, exp.Column):
        bare = not node.args.get("table") and isinstance(node.this, exp.Identifier) and not node.this.quoted
        return node.name.lower() if bare and node.name.lower() in _BARE else ""
    if isinstance(node, exp.Func):
        return node.sql_name().lower()
    return ""


def _in_ordered_window(node: exp.Expr) -> bool:
    above = node.parent
    while isinstance(above, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        above = above.parent
    if not isinstance(above, exp.Window):
        return False
    return window_part(above, "order") is not None


def window_part(window: exp.Window, part: str) -> object:
    """A part of a window, also if the window is named in the WINDOW clause."""
    if window.args.get(part):
        return window.args[part]
    named = window.args.get("alias")
    select = window.find_ancestor(exp.Select)
    if named is not None and select is not None:
        for definition in select.args.get("windows") or ():
            if definition.this.name.lower() == named.name.lower():
                return definition.args.get(part)
    return None


def _settled(node: exp.Expr) -> bool:
    above = node.parent
    while isinstance(above, (exp.Filter, exp.Paren, exp.IgnoreNulls, exp.RespectNulls, exp.Window)):
        above = above.parent
    if isinstance(above, exp.ArraySort):
        return not isinstance(
            above.args.get("expression"), exp.Lambda
        )  # one's own comparison may call different elements equal
    return isinstance(above, exp.ArraySize) or (above is not None and function_name(above) in _SETTLING)


def check_tables_are_named(tree: exp.Expr, text: str, place_of: PlaceOfLine, report: Report) -> None:
    """Require that the SQL names every table it reads.

    A hidden one is neither an input nor proved to be related.
    """
    for node in tree.walk():
        hidden, remedy = "", "Read a dataset by its name."
        if isinstance(node, exp.Anonymous) and function_name(node) == "identifier":
            hidden, remedy = f"`{node.sql(dialect='spark')}`", "Write the name itself."
        elif (
            isinstance(node, exp.Table)
            and isinstance(node.this, exp.Expr)
            and not isinstance(node.this, exp.Identifier)
        ):
            name = function_name(node.this)
            hidden = (
                f"`{name or node.sql(dialect='spark')}` in FROM"
                if name not in (*_MAKING_ROWS, "identifier")
                else ""
            )
        elif _is_bare_table(node):
            hidden, remedy = (
                "`TABLE <name>`",
                "Write `SELECT * FROM <name>`; a column called `table` is written in backticks.",
            )
        if hidden:
            what = f"{hidden} hides which table is read."
            report.add(
                "hidden-table",
                what,
                remedy,
                place_of(line_of(node, text, hidden.strip("`").split("(")[0].split()[0])),
            )


def _is_bare_table(node: exp.Expr) -> bool:
    """`TABLE item`, which Spark reads as a table and the parser as a name with an alias."""
    if isinstance(node, (exp.Table, exp.Column)):
        word = node.this if len(node.parts) == 1 else None
        return isinstance(word, exp.Identifier) and not word.quoted and word.name.lower() == "table"
    return isinstance(node, exp.CTE) and not isinstance(node.this, exp.Query)


def check_row_wise(
    tree: exp.Expr,
    what: str,
    place: Place,
    report: Report,
    *,
    sees: str = "message",
    allowed: Collection[str] = (),
) -> None:
    """An expression sees one message or one row: no aggregates, windows, subqueries or parameters.

    `allowed` are parameters that it may use.
    """
    for node in tree.walk():
        refused = (
            "an aggregate"
            if isinstance(node, exp.AggFunc)
            else "a window"
            if isinstance(node, exp.Window)
            else "a subquery"
            if isinstance(node, exp.Query)
            else f"the parameter `:{node.name}`"
            if isinstance(node, exp.Placeholder) and node.name not in allowed
            else "a function that makes several rows"
            if function_name(node) in GENERATORS
            else ""
        )
        if refused:
            report.add(
                "sql-not-row-wise",
                f"{what} uses {refused}; it is computed from one {sees} alone.",
                "Do this in a job.",
                place,
            )
            return


def check_parameters(
    tree: exp.Expr, config: Mapping[str, object], text: str, place_of: PlaceOfLine, report: Report
) -> bool:
    """Every `:name` must be in `config` or be `:as_of`. Returns whether `:as_of` is used."""
    names: dict[str, exp.Expr] = {}
    for parameter in tree.find_all(exp.Placeholder, exp.Parameter):
        names.setdefault(parameter.name, parameter)
    for name, node in names.items():
        if name != "as_of" and name not in config:
            what = (
                f"the parameter `:{name}` is not in the job's `config`."
                if name
                else "`?` is not a parameter: parameters have names here."
            )
            place = place_of(line_of(node, text, f":{name}"))
            report.add("unknown-parameter", what, suggest(name, (*config, "as_of"), "parameters"), place)
        elif isinstance(config.get(name), (list, dict)):
            what = (
                f"the parameter `:{name}` is a list or a mapping in the job's `config`;"
                " SQL takes plain values."
            )
            report.add(
                "parameter-not-a-value",
                what,
                "Give each value a name of its own.",
                place_of(line_of(node, text, f":{name}")),
            )
    return "as_of" in names


def check_references(tree: exp.Expr, known: frozenset[str], what: str, place: Place, report: Report) -> None:
    """Every column that an expression over declared columns names must exist."""
    for column in tree.find_all(exp.Column):
        name = column.parts[0].name.lower()
        if (
            isinstance(column.this, exp.Star)
            or column.find_ancestor(exp.Lambda)
            or name in known
            or name in METADATA_COLUMNS
        ):
            continue
        report.add(
            "unknown-column",
            f"{what} names `{name}`, which is not a column.",
            suggest(name, known, "columns"),
            place,
        )
