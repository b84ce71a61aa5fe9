"""What a query's text names: the datasets it reads and the metadata columns it uses.

The text itself is left to the engine.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from strandline.model.columns import METADATA_COLUMNS
from strandline.model.errors import CallError

_READING = ("select", "with", "values", "explain", "describe", "desc", "from", "table", "(")
_COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_EXPLAIN = re.compile(r"(?:explain|analyze|verbose|describe|desc)\s+", re.IGNORECASE)
_DIALECT = "postgres"
"""The sqlglot dialect nearest to DataFusion's SQL. It is used to find names, never to write SQL."""


def require_reading(sql: str) -> None:
    """Refuse statements that do not read: DataFusion could also write files."""
    begins = _after_comments(sql).lower()
    if not begins.startswith(_READING):
        word = begins.split(maxsplit=1)[0] if begins.strip() else ""
        what = f"A query must read, and `{word.upper()}` does not." if word else "The query is empty."
        raise CallError(what, remedy="Begin with SELECT or WITH.", slug="not-a-query")


def is_about_plans(sql: str) -> bool:
    """Whether it asks how DataFusion would answer, or which columns DataFusion sees."""
    return _after_comments(sql).lower().startswith(("explain", "describe", "desc"))


def find_tables(sql: str, known: Collection[str]) -> tuple[str, ...]:
    """The known datasets a statement reads. Any other name is left to the engine to complain about."""
    trees = _parse(sql)
    if trees is None:
        names = set(re.findall(r"\w+", sql.lower()))  # DataFusion may understand what sqlglot does not
    else:
        names = {
            _folded(t.this)
            for tree in trees
            for t in tree.find_all(exp.Table)
            if _is_plain(t) and not _is_common(t)
        }
    return tuple(name for name in known if name in names)


def find_metadata_columns(sql: str) -> frozenset[str]:
    """The metadata columns that a statement names."""
    return frozenset(set(re.findall(r"\w+", sql.lower())) & set(METADATA_COLUMNS))


def keep_stars(sql: str, exposed: Mapping[str, Collection[str]]) -> str:
    """Let `*` mean the declared columns, although metadata columns that the statement names are exposed.

    Only ` EXCEPT (...)` is put after such a star. A star over several tables that expose some is left alone:
    DataFusion cannot except a column that two of them have.
    """
    inserts: dict[int, str] = {}
    for select in (s for tree in _parse(sql) or [] for s in tree.find_all(exp.Select)):
        sources = list(_sources(select))
        for star, owner in _stars(select):
            hidden = [c for alias, name in sources if owner in ("", alias) and (c := exposed.get(name))]
            end = star.meta.get("end")
            if len(hidden) == 1 and isinstance(end, int) and not star.args.get("except_"):
                inserts[end + 1] = f" EXCEPT ({', '.join(hidden[0])})"
    for place in sorted(inserts, reverse=True):
        sql = sql[:place] + inserts[place] + sql[place:]
    return sql


def _parse(sql: str) -> list[exp.Expression] | None:
    """The statement as a tree with the positions of the text. None if sqlglot does not understand it."""
    start = len(sql) - len(_after_comments(sql))
    while explain := _EXPLAIN.match(sql, start):
        start = explain.end()
    try:
        return [
            tree
            for tree in sqlglot.parse(" " * start + sql[start:], read=_DIALECT)
            if isinstance(tree, exp.Expression)
        ]
    except SqlglotError:
        return None


def _after_comments(sql: str) -> str:
    comments = _COMMENTS.match(sql)
    return sql[comments.end() :] if comments else sql


def _sources(select: exp.Select) -> Iterator[tuple[str, str]]:
    """(alias, dataset) of what a SELECT reads directly."""
    for clause in (select.args.get("from_"), *(select.args.get("joins") or [])):
        if (
            clause is not None
            and isinstance(clause.this, exp.Table)
            and _is_plain(clause.this)
            and not _is_common(clause.this)
        ):
            yield clause.this.alias_or_name, _folded(clause.this.this)


def _stars(select: exp.Select) -> Iterator[tuple[exp.Star, str]]:
    for item in select.expressions:
        if isinstance(item, exp.Star):
            yield item, ""
        elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
            yield item.this, item.table


def _is_plain(table: exp.Table) -> bool:
    return isinstance(table.this, exp.Identifier)


def _is_common(table: exp.Table) -> bool:
    """Whether the name means a CTE there. Inside a CTE only those before it are visible."""
    name = _folded(table.this)
    inside: Any = table
    around: Any = table.parent
    while around is not None:
        clause = around.args.get("with_")
        if clause is not None:
            known = clause.expressions
            if inside is clause:
                number = next(i for i, cte in enumerate(known) if _holds(cte, table))
                known = known[: number + 1] if clause.args.get("recursive") else known[:number]
            if any(cte.alias.lower() == name for cte in known):
                return True
        inside, around = around, around.parent
    return False


def _holds(expression: exp.Expression, node: exp.Expression) -> bool:
    parent: Any = node
    while parent is not None and parent is not expression:
        parent = parent.parent
    return parent is expression


def _folded(name: exp.Expression) -> str:
    """A name as the engine reads it: in lower case unless it is quoted."""
    return str(name.name) if name.args.get("quoted") else str(name.name).lower()
