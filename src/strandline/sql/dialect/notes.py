"""What may be answered differently from Spark, in words."""

from dataclasses import dataclass

NOT_COMPARED = "not compared with Spark's; `--engine spark` gives Spark's answer"
RUNS_AS_WRITTEN = (
    "not understood here, so that the query runs as it is written: integers divide to integers,"
    " NULLs sort last, sums of integers and decimals may overflow without an error, `concat` skips NULL"
)
_LAST_DIGITS = (
    "the last digits may differ: floating-point numbers are computed in another order or by another library"
)

DIFFERENCES = {
    "array_agg": "the order of the elements is not determined",
    "chr": "Spark takes the number modulo 256",
    "corr": _LAST_DIGITS,
    "cos": _LAST_DIGITS,
    "current_timestamp": "it reads the clock",
    "date_format": "DataFusion uses patterns of strftime (%Y-%m-%d), Spark those of Java (yyyy-MM-dd)",
    "initcap": "a word begins after any character but a letter or digit, in Spark only after a blank",
    "log": _LAST_DIGITS,
    "now": "it reads the clock",
    "percentile_cont": _LAST_DIGITS,
    "pow": _LAST_DIGITS,
    "power": _LAST_DIGITS,
    "random": "its values are random",
    "regexp_like": "patterns are Rust's, in Spark they are Java's",
    "regexp_replace": "patterns and replacements are Rust's, in Spark they are Java's",
    "sin": _LAST_DIGITS,
    "stddev": _LAST_DIGITS,
    "stddev_pop": _LAST_DIGITS,
    "stddev_samp": _LAST_DIGITS,
    "string_agg": "the order of the elements is not determined",
    "tan": _LAST_DIGITS,
    "to_char": "DataFusion uses patterns of strftime (%Y-%m-%d), Spark those of Java (yyyy-MM-dd)",
    "uuid": "its values are random",
    "var_pop": _LAST_DIGITS,
    "var_samp": _LAST_DIGITS,
}
"""By function, the known difference.

A function that is neither here nor among the equal ones is `NOT_COMPARED`.
"""


@dataclass(frozen=True, slots=True)
class Note:
    construct: str
    difference: str

    def __str__(self) -> str:
        return f"`{self.construct}` may differ from Spark's: {self.difference}."


def floating_order(construct: str) -> Note:
    return Note(construct, _LAST_DIGITS)


def function_note(name: str) -> Note:
    return Note(name, DIFFERENCES.get(name, NOT_COMPARED))
