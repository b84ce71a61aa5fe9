"""Python jobs are read, never imported."""

import ast
import textwrap

import pytest

from strandline.declare.python_checks import check_python, find_function, mentions_as_of
from strandline.declare.report import Report
from strandline.model.errors import Place

PLACE = Place(file="strandline.yaml", line=9)


def refused(body: str, imports: str = "") -> list[str]:
    report = Report()
    check_python(ast.parse(f"{imports}\ndef job(inputs, context):\n    return {body}\n"), "jobs/a.py", report)
    return [mistake.slug for mistake in report.mistakes]


@pytest.mark.parametrize(
    ("imports", "body"),
    [
        ("from datetime import datetime", "datetime.now()"),
        ("import datetime", "datetime.datetime.now(datetime.UTC)"),
        ("import datetime as dt", "dt.datetime.utcnow()"),
        ("from datetime import date as d", "d.today()"),
        ("import time", "time.time()"),
        ("from time import time", "time()"),
        ("import random", "1"),
        ("from random import choice", "1"),
        ("import uuid", "1"),
        ("from uuid import uuid4", "1"),
        ("import numpy as np", "np.random.rand()"),
        ("import numpy", "numpy.random.default_rng()"),
        ("from pyspark.sql import functions as F", "F.current_timestamp()"),
        ("import pyspark.sql.functions as fn", "fn.rand()"),
        ("from pyspark.sql.functions import uuid", "uuid()"),
        ("from pyspark.sql.functions import current_date as today", "today()"),
        ("from pyspark.sql import functions as F", "F.monotonically_increasing_id()"),
        ("from pyspark.sql import functions as F", "rows.agg(F.first('x'))"),
        ("from pyspark.sql import functions as F", "rows.agg(F.any_value('x').alias('x'))"),
        ("from pyspark.sql import functions as F", "rows.agg(F.collect_list('x').alias('x'))"),
        ("", "inputs['a'].sample(0.1)"),
        ("", "inputs['a'].limit(3)"),
    ],
)
def test_the_clock_chance_and_row_order_are_refused(imports: str, body: str) -> None:
    assert set(refused(body, imports)) == {"nondeterministic"}


@pytest.mark.parametrize(
    "body",
    [
        "inputs['a'].where(F.col('x') < context.as_of)",
        "rows.agg(F.sort_array(F.collect_list('x')).alias('x'))",
        "rows.agg(F.max_by('x', 'y'))",
        "rows.withColumn('n', F.first('x').over(window))",
        "rows.orderBy('x').limit(3)",
        "F.to_timestamp('x').now",
        "context.config['first']",
    ],
)
def test_what_has_one_answer_is_taken(body: str) -> None:
    assert refused(body, "from pyspark.sql import functions as F") == []


def test_the_logical_time_is_noticed() -> None:
    assert mentions_as_of(ast.parse("def job(inputs, context):\n    return context.as_of"))
    assert not mentions_as_of(ast.parse("def job(inputs, context):\n    return context.config"))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("def totals(inputs, context): ...", ""),
        ("def total(inputs, context): ...", "`jobs/a.py` has no function `totals` at its top level.\n  Did you mean `total`?"),
        ("class A:\n    def totals(inputs, context): ...", "has no function `totals` at its top level.\n  There are no functions"),
        ("def totals(context, inputs): ...", "jobs/a.py:1: `totals` must take exactly `(inputs, context)`, and takes `(context, inputs)`."),
        ("def totals(inputs, context, extra=1): ...", "wrong-parameters"),
        ("def totals(inputs, context, **options): ...", "wrong-parameters"),
        ("\ndef totals(:\n", "jobs/a.py:2: the file is not Python"),
        ("\0", "the file is not Python"),
    ],
)
def test_the_function_is_there_and_takes_inputs_and_context(text: str, told: str) -> None:
    report = Report()

    find_function(textwrap.dedent(text), "totals", "jobs/a.py", PLACE, report)

    shown = "\n".join(str(mistake) for mistake in report.mistakes)
    assert told in shown
    assert bool(told) == bool(shown)
