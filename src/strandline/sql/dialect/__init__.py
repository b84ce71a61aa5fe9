"""Spark's meaning for a query that DataFusion runs.

In: the text of a query and the types of the tables it may name. Out: the text to run, and notes on whatever
may still be answered differently from Spark. Whatever is neither rewritten nor known to be equal gets a note:
the lists here name what is equal, never what differs. Neither engine is imported here, only sqlglot.
"""

from .notes import Note
from .query import Rewritten, rewrite
from .types import Columns, SparkType, delta_type

__all__ = ["Columns", "Note", "Rewritten", "SparkType", "delta_type", "rewrite"]
