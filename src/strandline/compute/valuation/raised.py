"""An expression of a valuation that Spark refuses, or that raises for some row, is named with what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from strandline.compute.raised import find_raised
from strandline.model.errors import WorkError
from strandline.model.timeline import Valuation


@contextmanager
def naming_expressions(valuation: Valuation) -> Iterator[None]:
    """An error of Spark that is about the value of an expression becomes one that names the expression."""
    try:
        yield
    except Exception as error:
        named = name_expression(valuation, error)
        if named is None:
            raise
        raise named from error


def refuse_expression(valuation: Valuation, name: str, sql: str, error: Exception) -> WorkError:
    """Spark does not accept an expression at all."""
    return WorkError(
        f"{valuation.place}: Spark refuses {_describe(valuation, name)}, `{sql}`:"
        f" {str(error).splitlines()[0]}",
        remedy=f"Correct the expression, then run `strandline backfill {valuation.timeline.name} --all`.",
        slug="sql-refused",
    )


def name_expression(valuation: Valuation, error: Exception) -> WorkError | None:
    """None if the error is not about a value, or no expression contains the SQL that it shows."""
    expressions = {column.name: column.sql for column in valuation.columns} | {WHERE: valuation.where}
    raised = find_raised(error, expressions)
    if raised is None:
        return None
    return WorkError(
        f"{valuation.place}: {' or '.join(_describe(valuation, name) for name in raised.names)} cannot be"
        f" computed for some row: `{raised.sql}` raised {raised.condition}."
        " What is published stays as it is.",
        remedy=f"Correct the row that it reads, and run again; or use {raised.instead}, and run"
        f" `strandline backfill {valuation.timeline.name} --all`.",
        slug="expression-raised",
    )


def _describe(valuation: Valuation, name: str) -> str:
    of = f"of the timeline `{valuation.timeline.name}`"
    return f"`where` {of}" if name == WHERE else f"the column `{name}` {of}"


WHERE = "__where"
"""The column that contains whether the condition holds."""
