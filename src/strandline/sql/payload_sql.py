"""Expressions over a message: every name that is not a column is a path into the payload."""

from collections.abc import Callable

from sqlglot import exp

from .job_sql import parse_known


def name_paths(
    sql: str, columns: frozenset[str], name_of: Callable[[tuple[str, ...]], str]
) -> tuple[str, dict[str, tuple[str, ...]]]:
    """The expression with a column in place of each path, and the path that each of them stands for."""
    paths: dict[str, tuple[str, ...]] = {}

    def rewrite(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Dot | exp.Column) and not isinstance(node.parent, exp.Dot):
            path = tuple(part.name for part in node.parts)
            if path[0].lower() not in columns:
                name = name_of(path)
                paths[name] = path
                return exp.column(name, quoted=True)
        return node

    return parse_known(sql).transform(rewrite).sql(dialect="spark"), paths
