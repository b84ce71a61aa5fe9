"""Which columns of its inputs a job's SQL may read: never too few, so that a change in a column it names always counts."""

import re
from collections.abc import Collection, Iterable, Mapping

from sqlglot import exp

from strandline.model.node import EVERY_COLUMN, Input

from .code import Code
from .known import Known
from .sql_parse import find_tables, table_name

_WORD = re.compile(r"\w+")


def find_reads(code: Code, inputs: Collection[str]) -> dict[str, frozenset[str]]:
    """By input: every word of the SQL, any of which may name a column; and `*` where columns are read without being named."""
    if code.tree is None:
        return dict.fromkeys(inputs, frozenset({EVERY_COLUMN}))
    words = {*_WORD.findall(code.text.lower()), *(i.name.lower() for i in code.tree.find_all(exp.Identifier))}
    whole = _find_read_whole(code.tree)
    return {name: frozenset(words | {EVERY_COLUMN}) if whole is None or name in whole else frozenset(words) for name in inputs}


def find_positions(code: Code, inputs: Iterable[Input], known: Mapping[str, Known]) -> dict[str, tuple[str, ...]]:
    """By input whose columns the code may tell by where they stand: their order. Python may always (`union`)."""
    if code.tree is not None and not _goes_by_position(code.tree):
        return {}
    return {i.name: known[i.name].order for i in inputs if EVERY_COLUMN in i.reads}


def _goes_by_position(tree: exp.Expr) -> bool:
    named = any(alias.columns for alias in tree.find_all(exp.TableAlias))
    return named or any(not operation.args.get("by_name") for operation in tree.find_all(exp.SetOperation))


def _find_read_whole(tree: exp.Expr) -> set[str] | None:
    """The inputs that are read without naming each column; None if that may be all of them."""
    if tree.find(exp.Pivot) or any(str(join.args.get("method") or "").upper() == "NATURAL" for join in tree.find_all(exp.Join)):
        return None
    tables = list(find_tables(tree))
    # `TABLE x`, and columns that get other names by their place: `x AS t(a, b)`.
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
            if table.alias_or_name.lower() == owner or (not owner and table.find_ancestor(exp.Select) is select):
                whole.add(table_name(table))
    return whole
