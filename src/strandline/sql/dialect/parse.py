"""DataFusion's SQL as a tree, and back. Functions keep the names by which they were called."""

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

_CALLS = ("CAST", "TRY_CAST", "EXTRACT", "POSITION", "SUBSTRING", "TRIM")
"""Calls with their own syntax. All others are a name and arguments."""
_TYPES = {**sqlglot.generator.Generator.TYPE_MAPPING, exp.DataType.Type.TEXT: "STRING"}


class StrandlineQuery(Dialect):
    """The dialect in which a query is read.

    NULLs sort first, as in Spark: an order without NULLS FIRST or LAST means that.
    """

    class Tokenizer(sqlglot.tokens.Tokenizer):
        IDENTIFIERS = ['"', "`"]  # noqa: RUF012 sqlglot reads it from the class

    class Parser(sqlglot.parser.Parser):
        FUNCTIONS = {}  # noqa: RUF012
        FUNCTION_PARSERS = {name: sqlglot.parser.Parser.FUNCTION_PARSERS[name] for name in _CALLS}  # noqa: RUF012
        NO_PAREN_FUNCTIONS = {}  # noqa: RUF012
        NO_PAREN_FUNCTION_PARSERS = {  # noqa: RUF012
            "CASE": sqlglot.parser.Parser.NO_PAREN_FUNCTION_PARSERS["CASE"]
        }

    class Generator(sqlglot.generator.Generator):
        TYPE_MAPPING = _TYPES


class StrandlineDataFusion(Dialect):
    """The dialect that is handed to DataFusion, where NULLs sort last by default."""

    NULL_ORDERING = "nulls_are_large"

    class Generator(sqlglot.generator.Generator):
        TYPE_MAPPING = _TYPES


_UNDERSTOOD = """
    Add Sub Mul Div Mod EQ NEQ LT LTE GT GTE: this expression safe typed
    NullSafeEQ NullSafeNEQ And Or Is DPipe: this expression safe typed
    Like ILike: this expression negate
    Not Neg Paren IgnoreNulls RespectNulls Exists From Where Having Var DataTypeParam Boolean: this
    Null:
    Alias CTE: this alias
    Anonymous: this expressions
    Between: this low high
    Bracket: this expressions offset safe
    Case: this ifs default
    If: this true
    Cast TryCast: this to safe
    Column: this table db
    Cube Rollup GroupingSets Tuple: expressions
    DataType: this expressions nested
    Distinct: expressions on
    Union Except Intersect: this expression distinct with_ order limit offset
    Extract: this expression
    Filter WithinGroup: this expression
    Group: expressions rollup cube grouping_sets
    Identifier: this quoted
    In: this expressions query
    Interval: this unit
    Join: this kind side method on using
    Limit Offset: expression
    Literal: this is_string
    Order: this expressions
    Ordered: this desc nulls_first
    Select: with_ expressions from_ joins where group having windows order limit offset distinct
    Star: except_
    StrPosition: this substr
    Subquery: this alias with_ order limit offset
    Substring: this start length
    Table: this alias
    TableAlias: this columns
    Trim: this expression position
    Window: this partition_by order spec alias over
    WindowSpec: kind start start_side end end_side
    With: expressions recursive
"""
UNDERSTOOD = {
    kind: set(parts.split())
    for line in _UNDERSTOOD.strip().splitlines()
    for kinds, _, parts in [line.partition(":")]
    for kind in kinds.split()
}
"""Kinds of nodes, and their parts, that are rewritten or written back as they were read.

A query with anything else runs as it was typed.
"""


def parse(sql: str) -> exp.Expression | None:
    """The one statement of a text; None if sqlglot does not understand it."""
    try:
        trees = [tree for tree in sqlglot.parse(sql, read=StrandlineQuery) if tree is not None]
    except (SqlglotError, RecursionError):
        return None
    return trees[0] if len(trees) == 1 and isinstance(trees[0], exp.Expression) else None


def find_foreign(tree: exp.Expression) -> str | None:
    """The first construct of a tree that might be written back differently from how it was read."""
    for node in tree.walk():
        name = type(node).__name__
        present = {part for part, value in node.args.items() if value}
        if name not in UNDERSTOOD:
            return name
        if unknown := present - UNDERSTOOD[name]:
            return f"{name} {min(unknown)}"
    return None


def write(tree: exp.Expression) -> str:
    return tree.sql(dialect=StrandlineDataFusion, normalize_functions=False, comments=False)


def expression_text(tree: exp.Expression) -> str:
    """An expression as it was written, which is the name of a column without an alias."""
    return tree.sql(dialect=StrandlineQuery, normalize_functions=False, comments=False)
