"""Which columns a query names, and which tables it reads without naming their columns."""

from collections.abc import Iterator

from sqlglot import exp

from .parse import find_tables, table_name


def find_identifiers(tree: exp.Expr) -> Iterator[str]:
    """Every name in a query: columns, tables and aliases."""
    return (identifier.name.lower() for identifier in tree.find_all(exp.Identifier))


def find_read_whole(tree: exp.Expr) -> set[str] | None:
    """The inputs that are read without naming each column. None if that may be all of them."""
    if tree.find(exp.Pivot) or any(
        str(join.args.get("method") or "").upper() == "NATURAL" for join in tree.find_all(exp.Join)
    ):
        return None
    tables = list(find_tables(tree))
    # `TABLE x`, and columns that are renamed by position: `x AS t(a, b)`.
    whole = {table_name(t) for t in tables if t.find_ancestor(exp.Select) is None or t.alias_column_names}
    for star in tree.find_all(exp.Star):
        above = star.parent
        if isinstance(above, exp.Count) and above.this is star:
            continue
        select = star.find_ancestor(exp.Select)
        if select is None:
            return None
        owner = above.table.lower() if isinstance(above, exp.Column) else ""
        for table in tables:
            if table.alias_or_name.lower() == owner or (
                not owner and table.find_ancestor(exp.Select) is select
            ):
                whole.add(table_name(table))
    return whole
