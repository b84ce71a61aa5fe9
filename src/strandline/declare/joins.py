"""Joins: what becomes of the key when another set of rows is joined to a scope."""

from sqlglot import exp

from .scopes import Ref, Rows, Scope, equal_columns

Pairs = list[tuple[Ref, Ref]]


def add_joined(scope: Scope, join: exp.Join, alias: str, rows: Rows, key: tuple[str, ...]) -> dict[str, str]:
    """Join rows to a scope. Gives the inputs whose restriction does not go through the join, with the reason."""
    blamed: dict[str, str] = {}
    if alias in scope.sources:
        blamed = dict.fromkeys(scope.live | rows.live, f"two tables are both called `{alias}`")
        scope.lose_key()
        rows = rows.without_key()
    pairs = _using(scope, join, alias)
    scope.sources[alias] = rows
    pairs += equal_columns(scope, join.args.get("on"))
    side, kind, method = (str(join.args.get(part) or "").upper() for part in ("side", "kind", "method"))
    mine = {column: {(alias, name) for name in names} for column, names in rows.carriers.items()}
    same = [(one, other) for one, other in pairs if scope.same(one, other)]
    unlinked = _unlinked(scope, mine, key, same)
    if method or side in ("RIGHT", "FULL") or (kind not in ("", "INNER", "CROSS", "SEMI", "ANTI") and (side, kind) != ("LEFT", "OUTER")):
        blamed |= dict.fromkeys(scope.live | rows.live, f"it takes part in a {(method or side or kind).lower()} join")
        scope.lose_key()
    elif rows.live and ((unlinked is not None and scope.live) or (not scope.live and (side == "LEFT" or kind in ("SEMI", "ANTI")))):
        blamed |= dict.fromkeys(rows.live, _reason(scope, mine, unlinked or key[0], pairs))
        if side != "LEFT" and kind not in ("SEMI", "ANTI"):
            _make_equal(scope, {}, key, same)
    elif side == "LEFT" or kind in ("SEMI", "ANTI"):
        scope.live |= rows.live
    else:
        if not scope.live:
            scope.carriers = {}
        scope.live |= rows.live
        _make_equal(scope, mine, key, same)
    if kind in ("SEMI", "ANTI"):
        scope.hidden.add(alias)
    return blamed


def _make_equal(scope: Scope, mine: dict[str, set[Ref]], key: tuple[str, ...], same: Pairs) -> None:
    """Columns that an inner join makes equal hold the key alike."""
    for column in key:
        held = scope.carriers.setdefault(column, set())
        held |= mine.get(column, set())
        held |= {other for one, other in same if one in held}


def _unlinked(scope: Scope, mine: dict[str, set[Ref]], key: tuple[str, ...], pairs: Pairs) -> str | None:
    """The first key column on which the two sides are not joined."""
    return next((column for column in key if not _linked(scope, mine, column, pairs)), None)


def _linked(scope: Scope, mine: dict[str, set[Ref]], column: str, pairs: Pairs) -> bool:
    return any(one in scope.carriers.get(column, ()) and other in mine.get(column, ()) for one, other in pairs)


def _reason(scope: Scope, mine: dict[str, set[Ref]], column: str, pairs: Pairs) -> str:
    if _linked(scope, mine, column, pairs):
        return f"it is joined on `{column}`, which is not declared to be of one type on both sides"
    return f"it is joined without `=` on `{column}` to an input that holds it"


def _using(scope: Scope, join: exp.Join, alias: str) -> Pairs:
    """The pairs of USING; from then on such a name alone means the left column."""
    pairs: Pairs = []
    for column in join.args.get("using") or ():
        name = column.name.lower()
        # Were two sources on the left to have the column, Spark would refuse it as ambiguous.
        held = sorted(ref for refs in scope.carriers.values() for ref in refs if ref[1] == name)
        left = scope.resolve(exp.column(name)) or (held[0] if held else None)
        if left is not None:
            scope.merged[name] = left
            pairs += [(left, (alias, name)), ((alias, name), left)]
    return pairs
