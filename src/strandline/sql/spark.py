"""Spark's SQL as a dialect of sqlglot."""

from typing import ClassVar

from sqlglot.dialects.spark import Spark


class _Spark4(Spark):
    """Since Spark 4, a quote that is doubled inside a text is one quote; sqlglot reads two texts there."""

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']


SPARK = _Spark4()
