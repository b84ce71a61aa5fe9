"""SQL text as a tree: parsing, the tables and parameters in it, and its text as it is hashed."""

import logging
import re
from collections.abc import Callable, Iterator
from typing import TypeAlias

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from strandline.model.errors import Place
from strandline.model.report import Report

from .spark import SPARK

PlaceOfLine = Callable[[int], Place]
# Trees, for callers that hand them on and never look inside.
Query: TypeAlias = exp.Query
Table: TypeAlias = exp.Table

_WRITTEN_AS_IS = {TokenType.STRING, TokenType.IDENTIFIER, TokenType.RAW_STRING, TokenType.HEX_STRING}
_KEYWORDS = frozenset(
    """
    select from where group by having order limit join on using inner left right full outer cross semi anti
    as and or not in is null case when then else end with union all distinct intersect except over partition
    between like exists asc desc nulls first last rows range unbounded preceding following current row
    true false lateral view
    """.split()  # noqa: SIM905  a list of fifty quoted words is hard to read
)
CALENDAR_FUNCTIONS = ("local_date", "local_month", "financial_year")

# sqlglot warns of statements it does not know. They are refused here, so nothing is lost.
logging.getLogger("sqlglot").setLevel(logging.ERROR)


def parse_query(text: str, place_of: PlaceOfLine, report: Report) -> exp.Query | None:
    """The one SELECT of a job. None if it is wrong, which is then reported."""
    tokens = _tokenize(text, place_of, report)
    if tokens is None:
        return None
    for token in tokens:
        if any(comment.rstrip("\r\n").endswith("\\") for comment in token.comments):
            what = "a comment ends with a backslash, so Spark reads the next line as part of it."
            report.add("sql-syntax", what, "Remove the backslash.", place_of(token.line))
            return None
    trees = _parse(lambda: SPARK.parser().parse(tokens, text), place_of, report)
    if trees is None:
        return None
    statements = [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]
    remedy = "Write one SELECT (with CTEs if you need steps); Strandline writes the table."
    if not statements:
        report.add("sql-not-a-select", "the SQL is empty.", remedy, place_of(1))
    elif len(statements) > 1:
        report.add("sql-not-a-select", f"the SQL has {len(statements)} statements.", remedy, place_of(1))
    elif not isinstance(tree := statements[0], exp.Query) or tree.args.get("into"):
        report.add(
            "sql-not-a-select",
            f"the SQL starts with `{text.split(maxsplit=1)[0][:20]}` and is not a SELECT.",
            remedy,
            place_of(1),
        )
    else:
        return tree
    return None


def parse_expression(text: str, of: str, place_of: PlaceOfLine, report: Report) -> exp.Expr | None:
    """An expression or a condition over one row. None if it is wrong, which is then reported.

    `of` says in messages what the expression belongs to.
    """
    sql = f"the SQL of {of}"
    tokens = _tokenize(text, place_of, report, sql)
    if tokens is None:
        return None
    trees = _parse(lambda: SPARK.parser().parse_into(exp.Condition, tokens, text), place_of, report, sql)
    if trees is None:
        return None
    if len(trees) != 1 or not isinstance(tree := trees[0], exp.Expr):
        report.add("sql-syntax", f"{sql} is empty.", "Write an expression, or remove the key.", place_of(1))
        return None
    return tree


def hashed_sql(text: str | None) -> str | None:
    """SQL as it is hashed: its words, without comments, line breaks and the case of keywords and functions.

    The case of every other word counts. It may be the name of a field in a struct, and so part of JSON made
    from it.
    """
    if text is None:
        return None
    try:
        tokens = SPARK.tokenize(text)
    except SqlglotError:
        return text
    # Only a keyword that is not in small letters may be a name whose case counts: else nothing is parsed.
    may_be_names = {t.text for t in tokens if t.text.lower() in _KEYWORDS and t.text != t.text.lower()}
    fields = _find_fields(text) if may_be_names else set()
    words = []
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        if token.token_type in _WRITTEN_AS_IS:
            words.append(f"{token.token_type.name}:{token.text}")
            continue
        named = before is not None and before.token_type in (TokenType.ALIAS, TokenType.DOT)
        called = after is not None and after.token_type is TokenType.L_PAREN
        is_keyword = not named and token.text.lower() in _KEYWORDS and token.text not in fields
        words.append(token.text.lower() if called or is_keyword else token.text)
    while words and words[-1] == ";":
        words.pop()
    return " ".join(words)


def _find_fields(text: str) -> set[str]:
    """The names of columns and fields as they are written.

    `Order` may be one, and then it is not the keyword.
    """
    try:
        tree = sqlglot.parse_one(text, read=SPARK)
    except (SqlglotError, RecursionError, ValueError):
        return set()
    return {identifier.name for identifier in tree.find_all(exp.Identifier)}


def uses_calendar(text: str) -> bool:
    return any(name in text.lower() for name in CALENDAR_FUNCTIONS)


def find_tables(tree: exp.Expr) -> Iterator[exp.Table]:
    """Every table the SQL reads. CTEs, table functions and hints (`BROADCAST(t)`) are not tables."""
    tables = (
        t
        for t in tree.find_all(exp.Table)
        if isinstance(t.this, exp.Identifier) and not t.find_ancestor(exp.Hint)
    )
    return (t for t in tables if not is_cte(t))


def table_name(table: exp.Table) -> str:
    return ".".join(part.name.lower() for part in table.parts)


def is_cte(table: exp.Table) -> bool:
    """Whether the name means a CTE that is visible there."""
    return not table.args.get("db") and find_cte(table, table.name.lower()) is not None


def find_cte(inside: exp.Expr, name: str) -> exp.CTE | None:
    """The CTE that a name means at a place.

    It is in the nearest WITH around the place. Inside a WITH it must be written above.
    """
    node: exp.Expr | None = inside
    within: exp.CTE | None = None
    while node is not None:
        if isinstance(node, exp.CTE):
            within = node
        elif isinstance(node, exp.With):
            for cte in node.expressions:
                if cte is within and not node.args.get("recursive"):
                    break
                if cte.alias.lower() == name:
                    return cte  # type: ignore[no-any-return]
                if cte is within:
                    break
        elif (with_ := with_of(node)) is not None and not (within is not None and within.parent is with_):
            for cte in with_.expressions:
                if cte.alias.lower() == name:
                    return cte  # type: ignore[no-any-return]
        node = node.parent
    return None


def with_of(node: exp.Expr) -> exp.With | None:
    clause = node.args.get("with_") or node.args.get("with")
    return clause if isinstance(clause, exp.With) else None


def line_of(node: exp.Expr, text: str = "", word: str = "") -> int:
    """The line of a node in its text.

    This is the line the parser kept, else the first line with `word`, else the line of the node around it.
    """
    for part in node.walk():
        if line := part.meta.get("line"):
            return int(line)
    if word and (match := re.search(rf"(?<!\w){re.escape(word)}\b", text, re.IGNORECASE)):
        return text[: match.start()].count("\n") + 1
    return next((int(above.meta["line"]) for above in _ancestors(node) if above.meta.get("line")), 1)


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    while (parent := node.parent) is not None:
        yield parent
        node = parent


def _tokenize(text: str, place_of: PlaceOfLine, report: Report, sql: str = "the SQL") -> list[Token] | None:
    if match := re.search(r"\$\{[^}]*\}?", text):
        what = (
            f"{sql} contains `{match[0]}`. Its value would come from outside the project, so that no hash"
            " would notice a change."
        )
        remedy = "In a job, put the value into `config:` and write `:name`; elsewhere write the value itself."
        report.add("substitution", what, remedy, place_of(text[: match.start()].count("\n") + 1))
        return None
    try:
        return list(SPARK.tokenize(text))
    except SqlglotError:
        what = f"{sql} cannot be split into words: a quote or a comment is not closed."
        report.add("sql-syntax", what, "Close it.", place_of(1))
        return None


def _parse(
    parse: Callable[[], list[exp.Expr | None]], place_of: PlaceOfLine, report: Report, sql: str = "the SQL"
) -> list[exp.Expr | None] | None:
    try:
        return parse()
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        near = first.get("highlight") or ""
        before = " ".join(str(first.get("start_context") or "").split())[-30:]
        missing = "Required keyword" in str(first.get("description"))
        follows = f", which follows `{before}`" if before else ""
        what = f"{sql} is wrong {'after' if missing else 'at'} `{near}`{follows}."
        report.add(
            "sql-syntax", what, "Write it as Spark SQL takes it.", place_of(int(first.get("line") or 1))
        )
    except (SqlglotError, RecursionError, ValueError):
        report.add("sql-syntax", f"{sql} cannot be parsed.", "Write it as Spark SQL takes it.", place_of(1))
    return None


def read_as(table: exp.Table, name: str) -> None:
    """Let a misspelt table mean another one. Its columns may still be qualified by the name as written."""
    if not table.alias:
        table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
    table.set("this", exp.to_identifier(name))
    for part in ("db", "catalog"):
        table.set(part, None)


def find_line(tree: exp.Expr, name: str) -> int:
    """The line on which a name occurs first; 1 if it does not occur."""
    return next((line_of(part) for part in tree.find_all(exp.Identifier) if part.name.lower() == name), 1)
