"""Which expression of a valuation an error of Spark is about. The first two texts are Spark's own."""

import pytest

from strandline.compute.valuation.raised import naming_expressions
from strandline.model.errors import Place, WorkError
from strandline.model.timeline import BusinessDates, FoldCode, Timeline, Valuation, ValuedColumn

DIVIDED = """\
[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. If \
necessary set "spark.sql.ansi.enabled" to "false" to bypass this error. SQLSTATE: 22012
== SQL (line 1, position 1) ==
amount / rate.rate
^^^^^^^^^^^^^^^^^^
"""
CAST = """\
An error occurred while calling o8835.parquet.
: java.util.concurrent.ExecutionException: org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] \
The value 'g' of the type "STRING" cannot be cast to "INT" because it is malformed. Correct the value as per \
the syntax, or change its target type. Use `try_cast` to tolerate malformed input and return NULL instead. \
SQLSTATE: 22018
== SQL (line 1, position 1) ==
cast(item as int) > 0
^^^^^^^^^^^^^^^^^

\tat java.base/java.util.concurrent.CompletableFuture.reportGet(CompletableFuture.java:396)
"""
RAISED = """\
[NUMERIC_VALUE_OUT_OF_RANGE.WITHOUT_SUGGESTION] The 1000.00 rounded half up from 1000.00 cannot be \
represented as Decimal(4, 2). SQLSTATE: 22003
== SQL (line 2, position 3) ==
  + cast(amount * 1000 as decimal(4, 2))
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
"""


def make_valuation(where: str = "", **columns: str) -> Valuation:
    place = Place(file="strandline.yaml", line=7)
    timeline = Timeline(
        name="stock",
        place=place,
        output="history",
        key=("item",),
        facts="trade",
        date="traded_on",
        order_by=("id",),
        fold=FoldCode(file="folds.py", function="add", code=""),
        fields=(),
    )
    valued = tuple(ValuedColumn(name=name, sql=sql) for name, sql in columns.items())
    return Valuation(
        timeline=timeline, place=place, output="daily", calendar=BusinessDates(), columns=valued, where=where
    )


@pytest.mark.parametrize(
    ("valuation", "text", "what", "remedy"),
    [
        (
            make_valuation(fine="1 + amount / rate.rate", each="amount / rate.rate"),
            DIVIDED,
            "the column `each` of the timeline `stock` cannot be computed for some row:"
            " `amount / rate.rate` raised DIVIDE_BY_ZERO.",
            "use `try_divide`, which gives NULL, and run `strandline backfill stock --all`.",
        ),
        (
            make_valuation(one="amount / rate.rate", two="amount / rate.rate"),
            DIVIDED,
            "the column `one` of the timeline `stock` or the column `two` of the timeline `stock` cannot be",
            "use `try_divide`",
        ),
        (
            make_valuation(where="cast(item as int) > 0", worth="amount"),
            CAST,
            "`where` of the timeline `stock` cannot be computed for some row: `cast(item as int) > 0` raised"
            " CAST_INVALID_INPUT.",
            "use `try_cast`, which gives NULL, and run",
        ),
        (
            make_valuation(sum="amount\n  + cast(amount * 1000 as decimal(4, 2))\n"),
            RAISED,
            "the column `sum` of the timeline `stock` cannot be computed for some row:"
            " `+ cast(amount * 1000 as decimal(4, 2))` raised NUMERIC_VALUE_OUT_OF_RANGE.",
            "or use `CASE WHEN`, and run `strandline backfill stock --all`.",
        ),
    ],
)
def test_an_expression_that_raises_is_named(valuation: Valuation, text: str, what: str, remedy: str) -> None:
    with pytest.raises(WorkError) as told, naming_expressions(valuation):
        raise RuntimeError(text)

    assert told.value.slug == "expression-raised"
    assert told.value.what.startswith(f"strandline.yaml:7: {what}")
    assert remedy in told.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "No space left on device",
        DIVIDED.replace("amount / rate.rate", "amount / price.close"),
        DIVIDED.replace("22012", "58030"),
        "[DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012\n== DataFrame ==\n",
    ],
)
def test_an_error_that_is_not_about_an_expression_stays_what_it_is(text: str) -> None:
    error = RuntimeError(text)

    with pytest.raises(RuntimeError) as told, naming_expressions(make_valuation(each="amount / rate.rate")):
        raise error

    assert told.value is error
