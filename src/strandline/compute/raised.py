"""An expression of users that raised for some row, found by the SQL that Spark shows in its error."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

_RAISED = re.compile(
    r"\[(?P<condition>[A-Z_.]+)\] (?P<what>(?:(?!SQLSTATE: ).)+?)\.? SQLSTATE: 22\w+\s+== SQL .*? ==\n"
    r"(?P<sql>.*?)\n *\^",
    re.DOTALL,
)
"""Spark's text for a value that an expression cannot be computed from (SQLSTATE class 22).

Spark shows the line of the SQL, with marks below it. While a table is written, the text of another condition
(`TASK_WRITE_FAILED`, with an SQLSTATE of its own) stands before.
"""
_TOLERANT = re.compile(r"`(try_\w+)`")
"""The function that Spark recommends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Raised:
    """What is known of an expression that raised."""

    names: tuple[str, ...]
    """The expressions that contain the SQL that Spark shows."""
    sql: str
    condition: str
    """Spark's word for what happened."""
    instead: str
    """What to write in its place, so that it does not raise."""


def find_raised(error: Exception, expressions: Mapping[str, str]) -> Raised | None:
    """None if the error is not about a value, or no expression contains the SQL that it shows."""
    raised = _RAISED.search(str(error))
    if raised is None:
        return None
    shown = raised["sql"].strip()
    names = tuple(name for name, sql in expressions.items() if shown in map(str.strip, sql.splitlines()))
    if not names:
        return None
    tolerant = _TOLERANT.search(raised["what"])
    instead = f"`{tolerant[1]}`, which gives NULL" if tolerant else "`CASE WHEN`"
    return Raised(names=names, sql=shown, condition=raised["condition"], instead=instead)
