"""Python jobs are read, never imported."""

import ast
import textwrap

import pytest

from strandline.declare.python_code.checks import check_python, find_function, mentions_as_of
from strandline.model.errors import Place
from strandline.model.report import Report

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
        ("", "inputs['a'].orderBy('x').limit(3)"),
        ("", "inputs['a'].dropDuplicates(['k'])"),
        ("", "inputs['a'].drop_duplicates(subset=['k'])"),
        ("", "inputs['a'].first()"),
        ("", "inputs['a'].take(3)"),
        ("", "inputs['a'].rdd.collect()"),
        ("", "inputs['a'].agg({'x': 'first'})"),
        ("", "inputs['a'].selectExpr('id', 'now() as t')"),
        ("", "inputs['a'].filter('rand() < 0.5')"),
        ("", "inputs['a'].where('x > current_date')"),
        ("", "inputs['a'].sparkSession.sql('select any_value(x) from a')"),
        ("TEXT = 'rand() < 0.5'", "inputs['a'].filter(TEXT)"),
        ("", "inputs['a'].filter(f'{inputs} < rand()')"),
        ("", "sorted(inputs, key=hash) and hash('x')"),
        ("import datetime\nnow = datetime.datetime.now", "1"),
        ("from pyspark.sql import functions as F", "rows.withColumn('x', F.expr('rand()'))"),
        ("from pyspark.sql import functions as F", "F.call_function('rand')"),
        ("from pyspark.sql import functions as F", "[f() for f in (F.rand, F.randn)]"),
        ("from pyspark.sql import functions as F", "rows.agg(F.max_by('x', 'y'))"),
        ("from pyspark.sql import functions as F", "rows.agg(F.expr('max_by(x, y)'))"),
        ("from pyspark.sql import functions as F", "F.expr('row_number() over (partition by k order by g)')"),
        (
            "from pyspark.sql import functions as F",
            "F.row_number().over(Window.partitionBy('k').orderBy('g'))",
        ),
        ("from pyspark.sql import functions as F", "F.lag('x').over(window)"),
    ],
)
def test_the_clock_chance_and_row_order_are_refused(imports: str, body: str) -> None:
    assert set(refused(body, imports)) == {"nondeterministic"}


@pytest.mark.parametrize(
    "body",
    [
        "inputs['a'].where(F.col('x') < context.as_of)",
        "rows.agg(F.sort_array(F.collect_list('x')).alias('x'))",
        "rows.agg(F.max_by('x', F.struct('y', 'x')))",
        (
            "rows.withColumn('n', F.first('x').over(Window.partitionBy('k').orderBy('x', "
            "F.xxhash64(*sorted(rows.columns)))))"
        ),
        "rows.orderBy('x', F.xxhash64(*sorted(rows.columns))).limit(3)",
        "rows.dropDuplicates().distinct()",
        "rows.agg(F.rank().over(Window.orderBy('x')))",
        "rows.filter('x > 3 and upper(name) = upper(other)').agg({'x': 'sum'})",
        (
            "rows.withColumn('n', F.expr('sum(x) over (partition by k)')).selectExpr('k', "
            "'sort_array(collect_list(x)) as xs')"
        ),
        "rows.withColumn('id', F.col('id')).alias('current_date')",
        "F.to_timestamp('x').now",
        "context.config['first']",
    ],
)
def test_what_has_one_answer_is_taken(body: str) -> None:
    assert refused(body, "from pyspark.sql import functions as F") == []


@pytest.mark.parametrize(
    ("imports", "body", "slug"),
    [
        ("import os", "os.environ['RATE']", "outside-input"),
        ("from os import environ", "environ['RATE']", "outside-input"),
        ("import os", "os.getenv('RATE')", "outside-input"),
        ("import requests", "1", "outside-input"),
        ("import subprocess as s", "1", "outside-input"),
        ("", "open('rates.txt').read()", "outside-input"),
        ("from pathlib import Path", "Path('rates.txt').read_text()", "outside-input"),
        ("import pandas as pd", "pd.read_csv('rates.csv')", "outside-input"),
        ("", "inputs['a'].sparkSession.read.parquet('x')", "outside-input"),
        ("", "inputs['a'].sparkSession.table('x')", "outside-input"),
        ("from pyspark.sql import functions as F", "F.current_user()", "outside-input"),
        ("from pyspark.sql import functions as F", "F.expr(context.config['text'])", "text-not-literal"),
        ("from pyspark.sql import functions as F", "[F.expr(f'sum({c})') for c in 'ab']", "text-not-literal"),
        ("", "inputs['a'].selectExpr(*context.config['columns'])", "text-not-literal"),
        ("", "inputs['a'].agg({'x': context.config['how']})", "text-not-literal"),
    ],
)
def test_what_is_not_an_input_and_text_that_cannot_be_looked_into_are_refused(
    imports: str, body: str, slug: str
) -> None:
    assert set(refused(body, imports)) == {slug}


def test_the_logical_time_is_noticed() -> None:
    assert mentions_as_of(ast.parse("def job(inputs, context):\n    return context.as_of"))
    assert not mentions_as_of(ast.parse("def job(inputs, context):\n    return context.config"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def totals(inputs, context): ...", ""),
        (
            "def total(inputs, context): ...",
            "`jobs/a.py` has no function `totals` at its top level.\n  Did you mean `total`?",
        ),
        (
            "class A:\n    def totals(inputs, context): ...",
            "has no function `totals` at its top level.\n  There are no functions",
        ),
        (
            "def totals(context, inputs): ...",
            "jobs/a.py:1: `totals` must take exactly `(inputs, context)`, and takes `(context, inputs)`.",
        ),
        ("def totals(inputs, context, extra=1): ...", "wrong-parameters"),
        ("def totals(inputs, context, **options): ...", "wrong-parameters"),
        ("\ndef totals(:\n", "jobs/a.py:2: the file is not Python"),
        ("\0", "the file is not Python"),
    ],
)
def test_the_function_is_there_and_takes_inputs_and_context(text: str, expected: str) -> None:
    report = Report()

    find_function(textwrap.dedent(text), "totals", "jobs/a.py", PLACE, report)

    shown = "\n".join(str(mistake) for mistake in report.mistakes)
    assert expected in shown
    assert bool(expected) == bool(shown)
