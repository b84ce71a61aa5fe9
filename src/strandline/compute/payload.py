"""Reading JSON messages: exact digits, one parse, and any shape gives NULL where a path leads nowhere."""

from dataclasses import dataclass

import sqlglot
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from sqlglot import exp


def parse_message(text: Column) -> Column:
    """The message as a variant; NULL unless the text is exactly one JSON object.

    Spark's parser ignores what follows the first value, which would lose the second of two messages torn onto one line: inside brackets
    it cannot.
    """
    wrapped = F.try_parse_json(F.concat(F.lit("["), text, F.lit("]")))
    one_object = F.ltrim(text).startswith("{") & F.try_variant_get(wrapped, "$[1]", "variant").isNull()
    return F.when(one_object, wrapped)


def get_text(message: Column, path: tuple[str, ...]) -> Column:
    """The value at a path of a parsed message, as text; an object or a list as its JSON."""
    return F.try_variant_get(message, _path(("[0]",), path), "string")


def get_element(element: Column, path: tuple[str, ...]) -> Column:
    """The value at a path of one element of a list, as text."""
    return F.try_variant_get(element, _path((), path), "string")


def get_list(message: Column, path: tuple[str, ...]) -> Column:
    """The elements to explode, each with the element around it; NULL when the (outermost) list is absent, empty when it is empty.

    A step `a[]` goes through every element of the list `a`.
    """
    steps: list[tuple[str, ...]] = [()]
    for step in path:
        steps[-1] = (*steps[-1], step.removesuffix("[]"))
        if step.endswith("[]"):
            steps.append(())
    first = F.try_variant_get(message, _path(("[0]",), steps[0]), "array<variant>")
    pairs = F.transform(first, lambda item: F.struct(F.lit(None).cast("variant").alias("parent"), item.alias("item")))
    for inner in steps[1:]:
        pairs = _go_through(pairs, inner)
    return pairs


def _go_through(pairs: Column, path: tuple[str, ...]) -> Column:
    def children(pair: Column) -> Column:
        inner = F.coalesce(F.try_variant_get(pair["item"], _path((), path), "array<variant>"), F.array().cast("array<variant>"))
        return F.transform(inner, lambda item: F.struct(pair["item"].alias("parent"), item.alias("item")))

    return F.flatten(F.transform(pairs, children))


def _path(start: tuple[str, ...], path: tuple[str, ...]) -> str:
    quoted = "".join('["' + step.replace("\\", "\\\\").replace('"', '\\"') + '"]' for step in path)
    return "$" + "".join(start) + quoted


@dataclass(frozen=True, slots=True)
class PayloadSql:
    """A SQL expression over the payload and some columns: every name that is not a column is a path in the payload, as text."""

    sql: str
    columns: frozenset[str]

    def apply(self, rows: DataFrame, message: Column, item: Column | None, parent: Column | None) -> tuple[DataFrame, Column]:
        """The rows with the payload's values beside them, and the expression over those."""
        tree = sqlglot.parse_one(self.sql, read="spark")
        names: dict[tuple[str, ...], str] = {}

        def name_of(path: tuple[str, ...]) -> str:
            return names.setdefault(path, "__payload_" + ".".join(path))

        def rewrite(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Dot | exp.Column) and not isinstance(node.parent, exp.Dot):
                path = tuple(part.name for part in node.parts)
                if path[0].lower() not in self.columns:
                    return exp.column(name_of(path), quoted=True)
            return node

        text = tree.transform(rewrite).sql(dialect="spark")
        for path, name in names.items():
            if name not in rows.columns:
                match path:
                    case ("item", *rest) if item is not None:
                        value = get_element(item, tuple(rest))
                    case ("parent", *rest) if parent is not None:
                        value = get_element(parent, tuple(rest))
                    case _:
                        value = get_text(message, path)
                rows = rows.withColumn(name, value)
        return rows, F.expr(text)
