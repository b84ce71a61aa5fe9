"""Joins: what happens to the key when another set of rows is joined to a scope."""

from sqlglot import exp

from .visible import Ref, Rows, Scope, Seen, equal_columns, same

Pairs = list[tuple[Seen, Seen]]

_KINDS = {("", ""), ("", "INNER"), ("", "CROSS"), ("LEFT", ""), ("LEFT", "OUTER")}
_HIDING = {("", "SEMI"), ("LEFT", "SEMI"), ("", "ANTI"), ("LEFT", "ANTI")}
"""(side, kind) of the joins that are followed. After a hiding join the right side is no longer visible."""


def add_joined(scope: Scope, join: exp.Join, alias: str, rows: Rows, key: tuple[str, ...]) -> dict[str, str]:
    """Join rows to a scope.

    Returns the inputs whose restriction does not pass through the join, with the reason.
    """
    blamed: dict[str, str] = {}
    if alias in scope.sources:
        blamed = dict.fromkeys(scope.live | rows.live, f"two tables are both called `{alias}`")
        scope.lose_key()
        rows = rows.without_key()
    side, kind, method = (str(join.args.get(part) or "").upper() for part in ("side", "kind", "method"))
    hides, keeps_left = (side, kind) in _HIDING, side == "LEFT"
    pairs = _using(scope, join, alias, rows)
    scope.sources[alias] = rows
    pairs += equal_columns(scope, join.args.get("on"))
    mine = {column: {(alias, name) for name in names} for column, names in rows.carriers.items()}
    same_type = [(one, other) for one, other in pairs if same(one, other)]
    scope.equal += [
        (one.ref, other.ref)
        for one, other in same_type
        if not one.finer and (other.ref[0] == alias or not keeps_left)
    ]
    unlinked = _unlinked(scope, mine, key, same_type)
    if method or ((side, kind) not in _KINDS and not hides):
        blamed |= dict.fromkeys(
            scope.live | rows.live, f"it takes part in a {(method or side or kind).lower()} join"
        )
        scope.lose_key()
        scope.equal.clear()
    elif rows.live and ((unlinked is not None and scope.live) or (not scope.live and (keeps_left or hides))):
        blamed |= dict.fromkeys(rows.live, _reason(scope, mine, unlinked or key[0], pairs))
        if not keeps_left and not hides:
            _make_equal(scope, {}, key, same_type)
    elif keeps_left or hides:
        scope.live |= rows.live
    else:
        if not scope.live:
            scope.carriers = {}
        scope.live |= rows.live
        _make_equal(scope, mine, key, same_type)
    if hides:
        scope.hidden.add(alias)
    return blamed


def _make_equal(scope: Scope, mine: dict[str, set[Ref]], key: tuple[str, ...], same_type: Pairs) -> None:
    """An inner join makes columns equal: if one of them holds the key, both do."""
    for column in key:
        held = scope.carriers.setdefault(column, set())
        held |= mine.get(column, set())
        held |= {other.ref for one, other in same_type if scope.holds(one, column)}


def _unlinked(scope: Scope, mine: dict[str, set[Ref]], key: tuple[str, ...], pairs: Pairs) -> str | None:
    """The first key column on which the two sides are not joined."""
    return next((column for column in key if not _linked(scope, mine, column, pairs)), None)


def _linked(scope: Scope, mine: dict[str, set[Ref]], column: str, pairs: Pairs) -> bool:
    return any(scope.holds(one, column) and other.ref in mine.get(column, ()) for one, other in pairs)


def _reason(scope: Scope, mine: dict[str, set[Ref]], column: str, pairs: Pairs) -> str:
    if _linked(scope, mine, column, pairs):
        return f"it is joined on `{column}`, which is not declared to be of one type on both sides"
    return f"it is joined without `=` on `{column}` to an input that holds it"


def _using(scope: Scope, join: exp.Join, alias: str, rows: Rows) -> Pairs:
    """The pairs of columns in USING. From here on the unqualified name means the left column."""
    pairs: Pairs = []
    for column in join.args.get("using") or ():
        name = column.name.lower()
        scope.using.setdefault(alias, []).append(name)
        # If two sources on the left had the column, Spark would refuse it as ambiguous.
        held = sorted(ref for refs in scope.carriers.values() for ref in refs if ref[1] == name)
        left = scope.resolve(exp.column(name)) or (held[0] if held else None)
        if left is not None:
            scope.merged[name] = left
            one, other = (
                Seen(ref=left, type=scope.type_of(left)),
                Seen(ref=(alias, name), type=rows.type_of(name)),
            )
            pairs += [(one, other), (other, one)]
    return pairs
