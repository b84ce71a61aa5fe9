"""The SQL of a job as it is run: its names, its parameters, and the meaning of `*`.

The SQL was checked when it was declared.
"""

from collections.abc import Callable, Collection, Mapping

import sqlglot
from sqlglot import TokenType, exp

from .spark import SPARK


def parse_known(sql: str) -> exp.Expr:
    """SQL that has already been parsed without a mistake, as a tree."""
    return sqlglot.parse_one(sql, read=SPARK)


def find_column_names(sql: str) -> set[str]:
    """The names of the columns that a query or an expression mentions."""
    return {column.name.lower() for column in parse_known(sql).find_all(exp.Column)}


def find_first_names(expression: str | exp.Expr) -> list[str]:
    """The first part of each column that an expression mentions: `a` of `a.b.c`."""
    tree = parse_known(expression) if isinstance(expression, str) else expression
    return [column.parts[0].name.lower() for column in tree.find_all(exp.Column)]


def uses_positions(tree: exp.Expr) -> bool:
    """Whether a query renames or unites columns by their position."""
    named = any(alias.columns for alias in tree.find_all(exp.TableAlias))
    return named or any(not operation.args.get("by_name") for operation in tree.find_all(exp.SetOperation))


def fill_parameters(sql: str, values: Mapping[str, object], spell: Callable[[str, object], str]) -> str:
    """The text with each `:name` replaced by a literal, which `spell` writes.

    Spark does not bind its own parameters where an extension, here Delta, brings its own parser.
    """
    tokens = sqlglot.tokenize(sql, read=SPARK)
    pieces: list[str] = []
    done = 0
    for before, colon, name in zip([None, *tokens], tokens, tokens[1:], strict=False):
        # `column:field` is a path into a value and not a parameter.
        is_path = before is not None and before.end + 1 == colon.start and before.token_type in _BEFORE_A_PATH
        if (
            colon.token_type is TokenType.COLON
            and name.text in values
            and colon.end + 1 == name.start
            and not is_path
        ):
            pieces += [sql[done : colon.start], spell(name.text, values[name.text])]
            done = name.end + 1
    return "".join([*pieces, sql[done:]])


_BEFORE_A_PATH = (TokenType.VAR, TokenType.IDENTIFIER, TokenType.R_PAREN, TokenType.R_BRACKET)


def hide_from_stars(sql: str, exposed: Mapping[str, Collection[str]]) -> str:
    """The query with a `*` over an input that leaves out metadata columns which the query names elsewhere.

    `exposed` lists these columns by input. A column that a subquery selected by name is its own and stays in
    a `*` over it.
    """
    tree = parse_known(sql)
    common = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for select in tree.find_all(exp.Select):
        read = [
            clause.this
            for clause in (select.args.get("from_"), *(select.args.get("joins") or ()))
            if clause is not None
        ]
        tables = {
            t.alias_or_name.lower(): t.name.lower()
            for t in read
            if isinstance(t, exp.Table) and t.name.lower() not in common
        }
        for item in select.expressions:
            star = item.this if isinstance(item, exp.Column) else item
            if not isinstance(star, exp.Star):
                continue
            owner = item.table.lower() if isinstance(item, exp.Column) else ""
            hidden = [
                (alias, c)
                for alias, name in tables.items()
                if owner in ("", alias)
                for c in sorted(exposed.get(name, ()))
            ]
            if hidden:
                columns = [exp.column(c, table=None if owner else alias) for alias, c in hidden]
                star.set("except_", [*(star.args.get("except_") or ()), *columns])
    return tree.sql(dialect="spark")
