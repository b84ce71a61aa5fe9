"""The parts of one SELECT: what it groups by, what it returns, and the names in it that do not exist."""

from collections import Counter
from dataclasses import dataclass

from sqlglot import exp

from strandline.model.columns import METADATA_COLUMNS

from .visible import Ref, Rows, Scope, Seen, own_nodes

_CLAUSES = (
    "expressions",
    "where",
    "having",
    "qualify",
    "group",
    "order",
    "sort",
    "distribute",
    "cluster",
    "windows",
    "laterals",
)
UNITS = {
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "dayofyear",
    "hour",
    "minute",
    "second",
    "millisecond",
    "microsecond",
}
"""Words that may be an argument of a function of times."""


def clauses_of(node: exp.Select) -> list[exp.Expr]:
    """Every clause but FROM and JOIN."""
    clauses: list[exp.Expr] = []
    for name in _CLAUSES:
        value = node.args.get(name)
        clauses += value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []
    return clauses


Groups = list[exp.Expr] | str | None
"""The expressions grouped by; None without grouping; a reason if no restriction of a key passes through."""


def groups_of(node: exp.Select) -> Groups:
    group = node.args.get("group")
    if group is None:
        if node.args.get("having") or any(_is_aggregate(part) for part in own_nodes(_aggregating(node))):
            return "it is aggregated over all keys at once"
        return None
    if any(group.args.get(part) for part in ("grouping_sets", "cube", "rollup", "totals")):
        return "it is grouped by sets that leave out the key"
    expressions = list(group.expressions)
    if any(isinstance(part, (exp.Rollup, exp.Cube, exp.GroupingSets)) for part in expressions):
        return "it is grouped by sets that leave out the key"
    if group.args.get("all"):
        return [
            p.unalias() for p in node.expressions if not any(_is_aggregate(part) for part in own_nodes([p]))
        ]
    return [selected(part, node) or part for part in expressions]


def selected(part: exp.Expr, node: exp.Select) -> exp.Expr | None:
    """The expression of the SELECT list that a position refers to."""
    if not isinstance(part, exp.Literal) or part.is_string or not part.name.isdecimal():
        return None
    place = int(part.name) - 1
    before = node.expressions[: place + 1]
    if not 0 <= place < len(node.expressions) or any(projection.is_star for projection in before):
        return None
    return node.expressions[place].unalias()  # type: ignore[no-any-return]


def output_of(item: exp.Expr, node: exp.Select) -> exp.Expr | None:
    """The expression of the SELECT list that an element of ORDER BY refers to, by position or by name."""
    if isinstance(item, exp.Column) and not item.table:
        named = (p for p in node.expressions if not p.is_star and p.output_name.lower() == item.name.lower())
        return next((p.unalias() for p in named), None)
    return selected(item, node)


def _aggregating(node: exp.Select) -> list[exp.Expr]:
    order = node.args.get("order")
    return [*node.expressions, *([order] if order is not None else [])]


def _is_aggregate(part: exp.Expr) -> bool:
    """An aggregate that is not the function of a window."""
    if not isinstance(part, exp.AggFunc):
        return False
    above = part.parent
    while isinstance(above, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)):
        above = above.parent
    return not isinstance(above, exp.Window) or part.arg_key != "this"


def project(node: exp.Select, scope: Scope, origin: str) -> Rows:
    """What the SELECT list returns, and which of its columns hold the key."""
    columns: list[Projected] = []
    complete = True
    for projection in node.expressions:
        expression = projection.unalias()
        if projection.is_star:
            starred, whole = _star(expression, scope)
            columns += starred
            complete &= whole
        elif isinstance(projection, exp.Aliases):
            columns += [Projected(name=name, type=f"{origin}.{name}") for name in _alias_names(projection)]
        else:
            name, seen = projection.output_name.lower(), scope.see(expression)
            complete &= bool(name)
            columns.append(Projected(name=name, type=seen.type if seen else f"{origin}.{name}", seen=seen))
    counts = Counter(column.name for column in columns)
    # A name that occurs twice is ambiguous to whoever reads it.
    unambiguous = [
        (column.name, column.seen)
        for column in columns
        if column.name and counts[column.name] == 1 and column.seen
    ]
    carriers = {
        key: frozenset(name for name, seen in unambiguous if scope.holds(seen, key)) for key in scope.carriers
    }
    return Rows(
        types={column.name: column.type for column in columns if column.name},
        complete=complete,
        order=tuple(column.name for column in columns) if complete else None,
        names=_all_names(node, scope, columns),
        origin=origin,
        carriers=carriers if scope.live else {},
        live=scope.live,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    """A column that a SELECT returns. The name may be empty.

    `seen` is None if it is not a source's column.
    """

    name: str
    type: str
    seen: Seen | None = None


def _all_names(node: exp.Select, scope: Scope, columns: list[Projected]) -> frozenset[str] | None:
    """Every column the SELECT returns. None if it has the star of a source whose columns are unknown."""
    names = {column.name for column in columns}
    for projection in node.expressions:
        if projection.is_star:
            table = projection.table.lower() if isinstance(projection, exp.Column) else ""
            for alias in [table] if table else scope.sources:
                starred = scope.sources[alias].names if alias in scope.sources else None
                if starred is None:
                    return None
                names |= starred
    return None if "" in names else frozenset(names)


def _alias_names(projection: exp.Aliases) -> list[str]:
    return [identifier.name.lower() for identifier in projection.expressions]


def _star(expression: exp.Expr, scope: Scope) -> tuple[list[Projected], bool]:
    """`*` or `a.*`: the known columns, in order, and whether these are all."""
    star = expression.this if isinstance(expression, exp.Column) else expression
    table = expression.table.lower() if isinstance(expression, exp.Column) else ""
    if not isinstance(star, exp.Star) or (table and table not in scope.sources):
        return [], False
    changed = [
        part for word in ("except_", "except", "replace", "rename") for part in star.args.get(word) or ()
    ]
    dropped = {name.lower() for part in changed for name in (part.alias_or_name, part.name)}
    complete = not star.args.get("replace") and not star.args.get("rename")
    refs: list[Ref] = []
    for alias in [table] if table else [alias for alias in scope.sources if alias not in scope.hidden]:
        rows = scope.sources[alias]
        complete &= rows.complete
        held = sorted(
            {column for names in scope.carriers.values() for a, column in names if a == alias}
            - set(rows.types)
        )
        own = [(alias, name) for name in (*rows.types, *held)]
        using = [] if table else scope.using.get(alias, [])
        # As Spark orders them: the columns of USING first (the left ones), then the remaining ones of both
        # sides.
        refs = [
            *(ref for name in using for ref in refs if ref[1] == name),
            *(ref for ref in (*refs, *own) if ref[1] not in using),
        ]
    remaining = [ref for ref in refs if ref[1] not in dropped]
    types = {ref: scope.type_of(ref) for ref in remaining}
    return [
        Projected(name=ref[1], type=types[ref], seen=Seen(ref=ref, type=types[ref])) for ref in remaining
    ], complete


def check_names(
    node: exp.Select, scope: Scope, outer: tuple[Scope, ...]
) -> list[tuple[exp.Column, tuple[str, ...]]]:
    """Columns that no visible source has. Nothing is reported where a source's columns are not all known."""
    aliases = {projection.alias.lower() for projection in node.expressions if projection.alias}
    aliases |= {
        name
        for projection in node.expressions
        if isinstance(projection, exp.Aliases)
        for name in _alias_names(projection)
    }
    conditions = [on for join in node.args.get("joins") or () if (on := join.args.get("on")) is not None]
    missing = []
    for part in own_nodes([*clauses_of(node), *conditions]):
        if isinstance(part, exp.Column) and not isinstance(part.this, exp.Star) and not _is_other_word(part):
            candidates = _missing(part, (scope, *outer), aliases)
            if candidates is not None:
                missing.append((part, candidates))
    return missing


def _is_other_word(column: exp.Column) -> bool:
    """Whether a name is not a source's column: a unit of time, or an argument of a lambda or a named one.

    Metadata columns count too, because every table has them.
    """
    name = column.name.lower()
    return (
        name in UNITS
        or name in METADATA_COLUMNS
        or column.find_ancestor(exp.Lambda, exp.Kwarg, exp.PropertyEQ) is not None
    )


def _missing(column: exp.Column, scopes: tuple[Scope, ...], aliases: set[str]) -> tuple[str, ...] | None:
    """The existing columns, if this one is certainly not among them."""
    first = column.parts[0].name.lower()
    if len(column.parts) > 1:
        for scope in scopes:
            if first in scope.sources:
                rows, name = scope.sources[first], column.parts[1].name.lower()
                return (
                    tuple(rows.names)
                    if rows.names is not None and name not in {*rows.names, *METADATA_COLUMNS}
                    else None
                )
    known: list[str] = []
    for scope in scopes:
        for rows in scope.sources.values():
            if rows.names is None or first in rows.names:
                return None
            known += rows.names
    return None if first in aliases or first in METADATA_COLUMNS else tuple(dict.fromkeys(known))
