"""Reading JSON messages: exact digits, one parse, and NULL where a path leads nowhere."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from strandline.model.columns import RESERVED_PREFIX
from strandline.sql.payload_sql import name_paths

MESSAGE, ITEM, PARENT = (RESERVED_PREFIX + name for name in ("message", "item", "parent"))
"""Columns with a parsed message, one element of its exploded list, and the element around that one."""
_SHIELDED, _PARSED = (RESERVED_PREFIX + name for name in ("shielded", "parsed"))
_MARK = "\x01"
_SPELT_MARK = "\\u0001"
"""The mark as JSON spells it. JSON text cannot contain it raw."""
_INEXACT = (
    r"[:,\[]\s*+-?+(?:"  # where a number begins
    r"[0-9]++(?:\.[0-9]*0[\s,}\]]|(?:\.[0-9]++)?+[eE])"  # a fraction that ends in 0, an exponent
    r"|[0-9.]{39}"  # more digits than a decimal holds
    r"|(?<=-)0[\s,}\]])"
)
"""Numbers that a variant does not keep as they were written.

A match inside a string costs time and changes nothing.
"""
_NUMBER = (
    # From the last number on: what is not a number, with strings as a whole.
    r'\G([^"0-9-]*+(?:"[^"\\]*+(?:\\.[^"\\]*+)*+"[^"0-9-]*+)*+)'
    r"(-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?+(?:[eE][+-]?+[0-9]++)?+)(?=\s*+[,}\]])"
)
"""The next number of a JSON text.

Something that is not a valid number, or is where a name must be, ends the search and stays as it is.
"""
_MARKS_IN_JSON = r"(?<!\\)((?:\\\\)*+)\\u0001"
_MARKED_IN_JSON = r'(?<!\\)"\\u0001(-?[0-9][^"]*+)"'


def parse_messages(rows: DataFrame, text: str) -> DataFrame:
    """The rows with their message as a variant beside them; NULL unless the text is exactly one JSON object.

    Spark's parser ignores what follows the first value, which would lose the second of two messages on one
    line. So message and a hash of the text are put into one list: text that ends the list early does not
    reach the hash.

    Each step is a column of its own. Otherwise Spark would parse a message twice, for the check and for the
    value.
    """
    written = F.col(text)
    check = F.xxhash64(written)
    rows = rows.withColumn(_SHIELDED, written.contains(_SPELT_MARK) | written.rlike(_INEXACT))
    exact = F.when(F.col(_SHIELDED), _shield(written)).otherwise(written)
    parsed = F.try_parse_json(F.concat(F.lit("["), exact, F.lit(","), check.cast("string"), F.lit("]")))
    rows = rows.withColumn(_PARSED, parsed)
    one_object = F.ltrim(written).startswith("{") & (
        F.try_variant_get(F.col(_PARSED), "$[1]", "bigint") == check
    )
    return rows.withColumn(MESSAGE, F.when(one_object, F.col(_PARSED))).drop(_PARSED)


def _shield(text: Column) -> Column:
    """Every number as a string that begins with the mark.

    A variant keeps strings exactly, and turns long numbers into doubles. A mark in the message itself is
    doubled, so that the two cannot be confused.
    """
    doubled = F.regexp_replace(text, _MARKS_IN_JSON, r"$1\\u0001\\u0001")
    return F.regexp_replace(doubled, _NUMBER, r'$1"\\u0001$2"')


def get_text(rows: DataFrame, path: tuple[str, ...]) -> Column:
    """The value at a path of a row's message or exploded element, as text.

    An object or a list is its JSON.
    """
    match path:
        case ("item", *rest) if ITEM in rows.columns:
            return _as_text(F.col(ITEM), _path((), tuple(rest)))
        case ("parent", *rest) if PARENT in rows.columns:
            return _as_text(F.col(PARENT), _path((), tuple(rest)))
        case _:
            return _as_text(F.col(MESSAGE), _path(("[0]",), path))


def _as_text(value: Column, path: str) -> Column:
    """The value at a path as text: a number as it was written, an object or a list as its JSON."""
    text = F.try_variant_get(value, path, "string")
    number = text.startswith(_MARK) & ~text.startswith(_MARK * 2)
    scalar = F.when(number, F.substring(text, 2, 1 << 30)).otherwise(
        F.replace(text, F.lit(_MARK * 2), F.lit(_MARK))
    )
    nested = F.schema_of_variant(F.try_variant_get(value, path, "variant")).rlike("^(OBJECT|ARRAY)")
    bared = F.regexp_replace(text, _MARKED_IN_JSON, "$1")
    bared = F.regexp_replace(bared, _MARKS_IN_JSON + _SPELT_MARK.replace("\\", "\\\\"), r"$1\\u0001")
    exact = (
        F.when(text.contains(_MARK), scalar).when(text.contains(_SPELT_MARK) & nested, bared).otherwise(text)
    )
    return F.when(F.col(_SHIELDED), exact).otherwise(text)


def get_list(path: tuple[str, ...]) -> Column:
    """The elements to explode, each with the element around it.

    NULL if the (outermost) list is absent, empty if it is empty. A step `a[]` goes through every element of
    the list `a`.
    """
    return _through(_steps(path))


def get_emptied(path: tuple[str, ...]) -> Column:
    """The elements around inner lists that exist and are empty. NULL if the (outermost) list is absent."""
    *outer, inner = _steps(path)

    def is_empty(pair: Column) -> Column:
        return F.coalesce(
            F.size(F.try_variant_get(pair["item"], _path((), inner), "array<variant>")) == 0, F.lit(False)
        )

    around = F.filter(_through(outer), is_empty)
    return F.transform(
        around, lambda pair: F.struct(pair["item"].alias("parent"), F.lit(None).cast("variant").alias("item"))
    )


def _steps(path: tuple[str, ...]) -> list[tuple[str, ...]]:
    """The path of the outermost list, then from each of its elements to the next list."""
    steps: list[tuple[str, ...]] = [()]
    for step in path:
        steps[-1] = (*steps[-1], step.removesuffix("[]"))
        if step.endswith("[]"):
            steps.append(())
    return steps


def _through(steps: list[tuple[str, ...]]) -> Column:
    first = F.try_variant_get(F.col(MESSAGE), _path(("[0]",), steps[0]), "array<variant>")
    pairs = F.transform(
        first, lambda item: F.struct(F.lit(None).cast("variant").alias("parent"), item.alias("item"))
    )
    for inner in steps[1:]:
        pairs = _go_through(pairs, inner)
    return pairs


def _go_through(pairs: Column, path: tuple[str, ...]) -> Column:
    def children(pair: Column) -> Column:
        inner = F.coalesce(
            F.try_variant_get(pair["item"], _path((), path), "array<variant>"),
            F.array().cast("array<variant>"),
        )
        return F.transform(inner, lambda item: F.struct(pair["item"].alias("parent"), item.alias("item")))

    return F.flatten(F.transform(pairs, children))


def _path(start: tuple[str, ...], path: tuple[str, ...]) -> str:
    quoted = "".join('["' + step.replace("\\", "\\\\").replace('"', '\\"') + '"]' for step in path)
    return "$" + "".join(start) + quoted


def _name_path(path: tuple[str, ...], *, exploded: bool) -> str:
    """A column name for the text at a path, different for each path.

    Spark takes `Id` and `id` for one name, and `a.b` may be one step or two. `item` is a name in the message
    before its list is exploded, and an element after.
    """
    prefix = f"{RESERVED_PREFIX}{'element' if exploded and path[0] in ('item', 'parent') else 'payload'}_"
    return prefix + "_".join(step.encode().hex() for step in path)


def evaluate(rows: DataFrame, sql: str, columns: frozenset[str]) -> tuple[DataFrame, Column]:
    """Prepare an expression over the payload and some columns.

    Returns the rows with the payload's values beside them, and the expression over those.
    """
    exploded = ITEM in rows.columns
    text, paths = name_paths(sql, columns, lambda path: _name_path(path, exploded=exploded))
    for name, path in paths.items():
        if name not in rows.columns:
            rows = rows.withColumn(name, get_text(rows, path))
    return rows, F.expr(text)
