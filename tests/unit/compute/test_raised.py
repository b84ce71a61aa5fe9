"""Which expression raised, found in the text of Spark's error."""

from strandline.compute.raised import find_raised

ALONE = """[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0. SQLSTATE: 22012
== SQL (line 1, position 1) ==
n / rate.rate
^^^^^^^^^^^^^
"""
WHILE_WRITTEN = f"""An error occurred while calling o1.save.
SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to t. SQLSTATE: 58030
	at org.apache.spark.scheduler.DAGScheduler
Caused by: org.apache.spark.SparkArithmeticException: {ALONE}"""
EXPRESSIONS = {"share": "n / rate.rate", "other": "n"}


def test_an_expression_that_raised_while_a_table_was_written_is_found_with_what_happened() -> None:
    for text in (ALONE, WHILE_WRITTEN):
        raised = find_raised(RuntimeError(text), EXPRESSIONS)

        assert raised is not None
        assert (raised.names, raised.condition) == (("share",), "DIVIDE_BY_ZERO")
        assert raised.instead == "`try_divide`, which gives NULL"


def test_an_error_that_is_not_about_a_value_is_of_no_expression() -> None:
    assert find_raised(RuntimeError(WHILE_WRITTEN.partition("Caused by")[0]), EXPRESSIONS) is None
