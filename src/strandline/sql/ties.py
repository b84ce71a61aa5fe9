"""Orders that do not rank every row: which of two equal rows comes first depends on their storage (L11).

An order is total when its columns, with those of the partition or group, determine the row: they contain a
key of every source, or all of its columns. Rows that are equal throughout may change places. `struct(*)`, the
whole row, makes any window's order total. Maps cannot be ordered, so it contains their sorted entries
instead.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from strandline.model.report import listed

from .checks import GENERATORS, function_name, window_part
from .selects import Groups, output_of
from .understood import is_known
from .visible import Ref, Rows, Scope, own_nodes

_RANKING = {"row_number", "ntile", "lag", "lead"}
"""These distinguish equal rows."""
_TAKING = {"first", "last", "first_value", "last_value", "nth_value", "array_agg", "group_concat"}
"""These return a value, or list values. If rows have the same value, it does not matter which comes first."""
_OF_PEERS = {"rank", "dense_rank", "percent_rank", "cume_dist"}
_BEST = (exp.ArgMax, exp.ArgMin)
_CUTS = (exp.Limit, exp.Offset, exp.Fetch)
_MAPS = "; a map `m` in it cannot be ordered: then with `struct(* EXCEPT (m), array_sort(map_entries(m)))`"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tie:
    """Something that depends on the order of rows which its own ORDER BY leaves equal."""

    node: exp.Expr
    what: str
    remedy: str


@dataclass(slots=True, kw_only=True)
class Settled:
    """What is known of a row once the values of some expressions over it are known."""

    refs: set[Ref] = field(default_factory=set)
    aliases: set[str] = field(default_factory=set)
    """Sources whose whole row is known."""
    texts: set[str] = field(default_factory=set)

    def determines(self, scope: Scope, value: exp.Expr) -> bool:
        """Whether a value is known too: as one of the expressions, or because its columns are known."""
        if _text(value) in self.texts or isinstance(value, exp.Literal):
            return True
        parts = list(value.walk())
        if any(isinstance(part, (exp.Query, exp.AggFunc, exp.Anonymous, exp.Window)) for part in parts):
            return False
        return all(self._knows(scope.resolve(part)) for part in parts if isinstance(part, exp.Column))

    def _knows(self, ref: Ref | None) -> bool:
        return ref is not None and (ref in self.refs or ref[0] in self.aliases)


def settle(scope: Scope, expressions: Iterable[exp.Expr]) -> Settled:
    settled = Settled()
    visible = [alias for alias in scope.sources if alias not in scope.hidden]
    stars: list[tuple[set[str], set[str]]] = []
    for expression in _flatten(expressions):
        settled.texts.add(_text(expression))
        star = expression.this if isinstance(expression, exp.Column) else expression
        if isinstance(star, exp.Star):
            owners = {expression.table.lower()} if isinstance(expression, exp.Column) else set(visible)
            if not star.args.get("replace"):
                stars.append(
                    (
                        owners & set(visible),
                        {column.name.lower() for column in star.args.get("except_") or ()},
                    )
                )
        elif (ref := scope.resolve(expression)) is not None:
            settled.refs.add(ref)
    before = -1
    while before != (before := len(settled.refs) + len(settled.aliases)):
        for owners, left_out in stars:
            settled.aliases |= {
                alias
                for alias in owners
                if all(_is_without(alias, name, scope, settled) for name in left_out)
            }
        settled.aliases |= {
            alias for alias in visible if _determines_row(alias, scope.sources[alias], settled.refs)
        }
        settled.refs |= {
            other for one, other in scope.equal if one in settled.refs or one[0] in settled.aliases
        }
    return settled


def _is_without(alias: str, name: str, scope: Scope, settled: Settled) -> bool:
    """Whether a star that leaves out this column still determines the source's whole row."""
    rows = scope.sources[alias]
    return (alias, name) in settled.refs or (rows.complete and name not in rows.types)


def _determines_row(alias: str, rows: Rows, refs: set[Ref]) -> bool:
    own = {column for name, column in refs if name == alias}
    return any(key <= own for key in rows.unique) or (
        rows.complete and bool(rows.types) and own >= set(rows.types)
    )


def _flatten(expressions: Iterable[exp.Expr]) -> Iterable[exp.Expr]:
    """The columns and values that an order consists of, one by one."""
    for expression in expressions:
        if isinstance(expression, (exp.Ordered, exp.Paren, exp.Alias, exp.PropertyEQ)):
            yield from _flatten(
                [expression.expression if isinstance(expression, exp.PropertyEQ) else expression.this]
            )
        elif isinstance(expression, (exp.Struct, exp.Tuple)) or function_name(expression) == "map_entries":
            yield from _flatten(expression.expressions)
        elif (
            isinstance(expression, exp.ArraySort)
            and not expression.expression
            and function_name(expression.this) == "map_entries"
        ):
            # Sorted entries determine the map; sorting any other array loses its order.
            yield from _flatten([expression.this])
        else:
            yield expression


def _text(expression: exp.Expr) -> str:
    return expression.sql(dialect="spark")


def find_sensitive(tree: exp.Expr) -> Iterable[exp.Expr]:
    """Everything whose result depends on an order and that has one.

    The rest is refused without a look at columns.
    """
    for node in tree.walk():
        if isinstance(node, exp.Window) and node.arg_key != "windows":
            if _needs(node) is not None:
                yield node
        elif (
            isinstance(node, _BEST)
            or (isinstance(node, exp.GroupConcat) and _list_order(node))
            or (isinstance(node, _CUTS) and node.parent is not None and node.parent.args.get("order"))
        ):
            yield node


def _needs(window: exp.Window) -> str | None:
    """What a window's order has to determine: the `row`, the `value` it returns, or nothing."""
    if window_part(window, "order") is None:
        return None
    name, spec = function_name(_function(window)), window_part(window, "spec")
    counted = isinstance(spec, exp.WindowSpec) and str(spec.args.get("kind") or "").upper() == "ROWS"
    sides = (
        [str(spec.args.get(side) or "").upper() for side in ("start", "end")]
        if isinstance(spec, exp.WindowSpec)
        else []
    )
    if name in _OF_PEERS or (sides == ["UNBOUNDED", "UNBOUNDED"] and name not in _RANKING | _TAKING):
        return None
    if name in _RANKING or counted:
        return "row"
    return "value" if name in _TAKING else None


def _function(window: exp.Window) -> exp.Expr:
    inner = window.this
    while isinstance(inner, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        inner = inner.this
    return inner  # type: ignore[no-any-return]


def _list_order(node: exp.GroupConcat) -> list[exp.Expr]:
    for order in (node.this, node.parent.expression if isinstance(node.parent, exp.WithinGroup) else None):
        if isinstance(order, exp.Order):
            return list(order.expressions)
    return []


def judge(node: exp.Expr, select: exp.Select, scope: Scope, groups: Groups) -> Tie | None:
    """Judge whether a part of a SELECT that depends on an order has a total one."""
    match node:
        case exp.Window():
            return _judge_window(node, select, scope, groups)
        case exp.ArgMax() | exp.ArgMin():
            return _judge_best(node, select, scope, groups)
        case exp.GroupConcat():
            return _judge_list(node, scope, groups)
        case _:
            return _judge_cut(node, select, scope, groups)


def _settles_row(settled: Settled, select: exp.Select, scope: Scope, groups: Groups) -> bool:
    """Whether a row of the SELECT is known, after grouping."""
    if groups is None:
        return {alias for alias in scope.sources if alias not in scope.hidden} <= settled.aliases
    if isinstance(groups, str):
        return select.args.get("group") is None
    return all(settled.determines(scope, group) for group in groups)


def _judge_window(window: exp.Window, select: exp.Select, scope: Scope, groups: Groups) -> Tie | None:
    order, partition = window_part(window, "order"), window_part(window, "partition_by")
    assert isinstance(order, exp.Order)
    settled = settle(scope, [*(partition if isinstance(partition, list) else []), *order.expressions])
    function = _function(window)
    if _settles_row(settled, select, scope, groups):
        return None
    value = function.args.get("this")
    if _needs(window) == "value" and isinstance(value, exp.Expr) and settled.determines(scope, value):
        return None
    name = {"array_agg": "collect_list", "group_concat": "listagg"}.get(
        function_name(function), function_name(function)
    ) or "a window"
    what = (
        f"`{name}` depends on how rows happen to be stored: rows that its ORDER BY ({_ordered_by(order)})"
        " leaves equal come in any order."
    )
    return Tie(node=window, what=what, remedy=_row_remedy(settled, scope, groups))


def _judge_best(node: exp.Expr, select: exp.Select, scope: Scope, groups: Groups) -> Tie | None:
    window = _window_of(node)
    partition = window_part(window, "partition_by") if window is not None else groups
    by = node.expression
    settled = settle(scope, [*(partition if isinstance(partition, list) else []), by])
    settles = _settles_row(settled, select, scope, groups if window is not None else None)
    if settles or settled.determines(scope, node.this):
        return None
    word = "max_by" if isinstance(node, exp.ArgMax) else "min_by"
    value, order = _text(node.this), _text(by)
    what = (
        f"`{word}` depends on how rows happen to be stored: of rows with an equal `{order}`"
        f" it takes any `{value}`."
    )
    inside = ", ".join(_text(part) for part in by.expressions) if isinstance(by, exp.Struct) else order
    return Tie(node=node, what=what, remedy=f"Write `{word}({value}, struct({inside}, {value}))`.")


def _judge_list(node: exp.GroupConcat, scope: Scope, groups: Groups) -> Tie | None:
    order = _list_order(node)
    settled = settle(scope, [*(groups if isinstance(groups, list) else []), *order])
    value = node.this.this if isinstance(node.this, exp.Order) else node.this
    if isinstance(value, exp.Distinct):
        value = value.expressions[0]
    if _settles_row(settled, exp.Select(), scope, None) or settled.determines(scope, value):
        return None
    what = (
        "`listagg` depends on how rows happen to be stored: values that its ORDER BY leaves equal come in any"
        " order."
    )
    return Tie(node=node, what=what, remedy=f"Add `{_text(value)}` to its ORDER BY.")


def _judge_cut(node: exp.Expr, select: exp.Select, scope: Scope, groups: Groups) -> Tie | None:
    order = select.args["order"]
    items = [item.this for item in order.expressions]
    if any(isinstance(item, exp.Var) and item.name.upper() == "ALL" for item in items):
        return None
    settled = settle(scope, [output_of(item, select) or item for item in items])
    made_many = any(
        function_name(part) in GENERATORS or not is_known(part)
        for part in own_nodes(list(select.expressions))
    )
    if not made_many and _settles_row(settled, select, scope, groups):
        return None
    open_columns = [p for p in select.expressions if p.is_star or not settled.determines(scope, p.unalias())]
    if not open_columns:
        return None
    return _cut_tie(node, [p.output_name for p in open_columns if not p.is_star and p.output_name])


def judge_cut_of_rows(node: exp.Expr, query: exp.Query, rows: Rows) -> Tie | None:
    """The same for a LIMIT over a set operation or a bracket, whose ORDER BY sees only its output columns."""
    covered: set[str] = set()
    for item in (item.this for item in query.args["order"].expressions):
        if isinstance(item, exp.Var) and item.name.upper() == "ALL":
            return None
        if isinstance(item, exp.Column) and not item.table:
            covered.add(item.name.lower())
        elif (
            isinstance(item, exp.Literal)
            and item.name.isdecimal()
            and rows.order
            and 0 < int(item.name) <= len(rows.order)
        ):
            covered.add(rows.order[int(item.name) - 1])
    if any(key <= covered for key in rows.unique) or (rows.order is not None and set(rows.order) <= covered):
        return None
    return _cut_tie(node, [name for name in rows.order or () if name and name not in covered])


def _cut_tie(node: exp.Expr, columns: list[str]) -> Tie:
    what = (
        "`LIMIT` depends on how rows happen to be stored: its ORDER BY leaves rows equal,"
        " and of those it takes any."
    )
    add = f"Add {listed(columns)} to the ORDER BY, or write" if columns else "Write"
    return Tie(
        node=node,
        what=what,
        remedy=f"{add} `ORDER BY ALL`, or rank with `row_number() OVER (ORDER BY ..., struct(*))`.",
    )


def unfollowed(node: exp.Expr) -> Tie:
    """The verdict where rows cannot be followed."""
    word = (
        "LIMIT"
        if isinstance(node, _CUTS)
        else function_name(_function(node) if isinstance(node, exp.Window) else node) or "a window"
    )
    what = f"`{word}` depends on an order, and it is used where its rows cannot be followed."
    return Tie(node=node, what=what, remedy="Put it into a CTE of its own.")


def _row_remedy(settled: Settled, scope: Scope, groups: Groups) -> str:
    if isinstance(groups, list):
        missing = [_text(group) for group in groups if not settled.determines(scope, group)]
        return f"Add {listed(missing)} to its ORDER BY."
    if isinstance(groups, str):
        return "Put the window into a SELECT around this one, and end its ORDER BY with `struct(*)`."
    visible = [alias for alias in scope.sources if alias not in scope.hidden]
    rest = [alias for alias in visible if alias not in settled.aliases]
    key = [min(scope.sources[alias].unique, key=len, default=None) for alias in rest]
    whole = (
        "struct(*)" if len(rest) == len(visible) else f"struct({', '.join(f'{alias}.*' for alias in rest)})"
    )
    maps = _MAPS if any(_may_hold_map(scope.sources[alias]) for alias in rest) else ""
    if None in key:
        return f"End its ORDER BY with `{whole}`, the whole row{maps}."
    prefixes = ["" if len(visible) == 1 else f"{alias}." for alias in rest]
    named = [
        f"{prefix}{column}"
        for prefix, columns in zip(prefixes, key, strict=True)
        for column in sorted(columns or ())
    ]
    return f"Add {listed(named)} to its ORDER BY, or end it with `{whole}`, the whole row{maps}."


def _may_hold_map(rows: Rows) -> bool:
    """Whether a column is a map, or its type is unknown.

    The name of an unknown type contains its origin and a dot.
    """
    kinds = [*rows.types.values(), *(() if rows.complete else (rows.other_type or "",))]
    return any(not kind or "map" in kind or "." in kind for kind in kinds)


def _ordered_by(order: exp.Order) -> str:
    return ", ".join(_text(item.this) for item in order.expressions)


def _window_of(node: exp.Expr) -> exp.Window | None:
    above = node.parent
    while isinstance(above, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter)):
        above = above.parent
    return above if isinstance(above, exp.Window) else None


def find_unique(select: exp.Select, scope: Scope, groups: Groups, rows: Rows) -> tuple[frozenset[str], ...]:
    """Sets of columns whose values differ between any two rows that a SELECT returns."""
    names = [name for name in rows.order or () if name]
    unique = (
        [frozenset(names)]
        if select.args.get("distinct") and rows.order and len(set(names)) == len(rows.order)
        else []
    )
    outputs: dict[Ref, str] = {}
    texts: dict[str, str] = {}
    for projection in select.expressions:
        name = projection.output_name.lower()
        if projection.is_star or not name:
            continue
        texts[_text(projection.unalias())] = name
        if (ref := scope.resolve(projection.unalias())) is not None:
            outputs[ref] = name
    if any(projection.is_star for projection in select.expressions):
        visible = [alias for alias in scope.sources if alias not in scope.hidden]
        outputs |= {
            (alias, name): name
            for alias in visible
            for name in scope.sources[alias].types
            if name in rows.types
        }
        outputs = {ref: name for ref, name in outputs.items() if list(outputs.values()).count(name) == 1}
    if any(
        function_name(part) in GENERATORS or not is_known(part)
        for part in own_nodes(list(select.expressions))
    ):
        return tuple(unique)
    if isinstance(groups, str):
        return (*unique, frozenset()) if select.args.get("group") is None else tuple(unique)
    if groups is not None:
        held = [texts.get(_text(group)) or outputs.get(scope.resolve(group) or ("", "")) for group in groups]
        return (*unique, frozenset(name for name in held if name)) if all(held) else tuple(unique)
    chosen: set[Ref] = set()
    for alias in (alias for alias in scope.sources if alias not in scope.hidden):
        if alias in settle(scope, [exp.column(name, table=owner) for owner, name in chosen]).aliases:
            continue
        keys = ({(alias, column) for column in key} for key in scope.sources[alias].unique)
        key = next((key for key in keys if key <= outputs.keys()), None)
        if key is None:
            return tuple(unique)
        chosen |= key
    return (*unique, frozenset(outputs[ref] for ref in chosen))
