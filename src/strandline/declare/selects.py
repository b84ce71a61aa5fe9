"""The parts of one SELECT: what it groups by, what it gives, and the names in it that are none."""

from collections import Counter

from sqlglot import exp

from strandline.model.columns import METADATA_COLUMNS

from .scopes import Ref, Rows, Scope, own_nodes

_CLAUSES = ("expressions", "where", "having", "qualify", "group", "order", "sort", "distribute", "cluster", "windows", "laterals")
_UNITS = {"year", "quarter", "month", "week", "day", "dayofyear", "hour", "minute", "second", "millisecond", "microsecond"}


def clauses_of(node: exp.Select) -> list[exp.Expr]:
    """Every clause but FROM and JOIN."""
    found: list[exp.Expr] = []
    for name in _CLAUSES:
        value = node.args.get(name)
        found += value if isinstance(value, list) else [value] if isinstance(value, exp.Expr) else []
    return found


def grouped_refs(node: exp.Select, scope: Scope) -> set[Ref] | str | None:
    """The columns grouped by; None without grouping; a reason when no restriction of a key goes through it."""
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
        expressions = [projection.unalias() for projection in node.expressions]
    return {ref for part in expressions if (ref := _group_ref(part, node, scope))}


def _group_ref(part: exp.Expr, node: exp.Select, scope: Scope) -> Ref | None:
    if isinstance(part, exp.Literal) and not part.is_string:
        place = int(part.name) - 1 if part.name.isdecimal() else -1
        before = node.expressions[: place + 1]
        if not 0 <= place < len(node.expressions) or any(projection.is_star for projection in before):
            return None
        return scope.resolve(node.expressions[place].unalias())
    return scope.resolve(part)


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
    """What the SELECT list gives, and where the key is in it."""
    columns: list[tuple[str, str, Ref | None]] = []
    complete = True
    for projection in node.expressions:
        expression = projection.unalias()
        if projection.is_star:
            starred, whole = _star(expression, scope)
            columns += starred
            complete &= whole
        elif isinstance(projection, exp.Aliases):
            columns += [(name, f"{origin}.{name}", None) for name in _alias_names(projection)]
        else:
            name, ref = projection.output_name.lower(), scope.resolve(expression)
            complete &= bool(name)
            columns.append((name, scope.type_of(ref) if ref else f"{origin}.{name}", ref))
    counts = Counter(name for name, _, _ in columns)
    # A name that stands twice is ambiguous to whoever reads it.
    sure = [(name, ref) for name, _, ref in columns if name and counts[name] == 1]
    carriers = {key: frozenset(name for name, ref in sure if ref in held) for key, held in scope.carriers.items()}
    return Rows(
        types={name: type_ for name, type_, _ in columns if name},
        complete=complete,
        order=tuple(name for name, _, _ in columns) if complete else None,
        names=_all_names(node, scope, columns),
        origin=origin,
        carriers=carriers if scope.live else {},
        live=scope.live,
    )


def _all_names(node: exp.Select, scope: Scope, columns: list[tuple[str, str, Ref | None]]) -> frozenset[str] | None:
    """Every column the SELECT gives, when each is named or comes with the star of a source whose columns can be told."""
    names = {name for name, _, _ in columns}
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


def _star(expression: exp.Expr, scope: Scope) -> tuple[list[tuple[str, str, Ref | None]], bool]:
    """`*` or `a.*`: the columns that are known, and whether they are all."""
    star = expression.this if isinstance(expression, exp.Column) else expression
    table = expression.table.lower() if isinstance(expression, exp.Column) else ""
    if not isinstance(star, exp.Star):
        return [], False
    changed = [part for word in ("except_", "except", "replace", "rename") for part in star.args.get(word) or ()]
    dropped = {name.lower() for part in changed for name in (part.alias_or_name, part.name)}
    if table and table not in scope.sources:
        return [], False
    aliases = [table] if table else [alias for alias in scope.sources if alias not in scope.hidden]
    columns: list[tuple[str, str, Ref | None]] = []
    complete = not star.args.get("replace") and not star.args.get("rename")
    for alias in aliases:
        rows = scope.sources[alias]
        complete &= rows.complete
        held = sorted({column for refs in scope.carriers.values() for a, column in refs if a == alias} - set(rows.types))
        for name in (*rows.types, *held):
            merged = scope.merged.get(name)
            if name not in dropped and not (not table and merged is not None and merged[0] != alias):
                columns.append((name, rows.type_of(name), (alias, name)))
    return columns, complete


def check_names(node: exp.Select, scope: Scope, outer: tuple[Scope, ...]) -> list[tuple[exp.Column, tuple[str, ...]]]:
    """Columns that no source in sight has. Silent wherever a source's columns are not all known."""
    aliases = {projection.alias.lower() for projection in node.expressions if projection.alias}
    aliases |= {name for projection in node.expressions if isinstance(projection, exp.Aliases) for name in _alias_names(projection)}
    conditions = [on for join in node.args.get("joins") or () if (on := join.args.get("on")) is not None]
    found = []
    for part in own_nodes([*clauses_of(node), *conditions]):
        if isinstance(part, exp.Column) and not isinstance(part.this, exp.Star) and not _is_other_word(part):
            candidates = _missing(part, (scope, *outer), aliases)
            if candidates is not None:
                found.append((part, candidates))
    return found


def _is_other_word(column: exp.Column) -> bool:
    """Not the name of a column here: a unit of time, a lambda's or a named argument; or metadata, which every table has."""
    name = column.name.lower()
    return name in _UNITS or name in METADATA_COLUMNS or column.find_ancestor(exp.Lambda, exp.Kwarg, exp.PropertyEQ) is not None


def _missing(column: exp.Column, scopes: tuple[Scope, ...], aliases: set[str]) -> tuple[str, ...] | None:
    """The columns there are, when this one is certainly not among them."""
    first = column.parts[0].name.lower()
    if len(column.parts) > 1:
        for scope in scopes:
            if first in scope.sources:
                rows, name = scope.sources[first], column.parts[1].name.lower()
                return tuple(rows.names) if rows.names is not None and name not in {*rows.names, *METADATA_COLUMNS} else None
    known: list[str] = []
    for scope in scopes:
        for rows in scope.sources.values():
            if rows.names is None or first in rows.names:
                return None
            known += rows.names
    return None if first in aliases or first in METADATA_COLUMNS else tuple(dict.fromkeys(known))
