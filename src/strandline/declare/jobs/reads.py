"""Which columns of its inputs a job's SQL may read.

May give too many, never too few: a change in a column that the SQL names must always count.
"""

import re
from collections.abc import Collection, Iterable, Mapping

from strandline.model.node import EVERY_COLUMN, Input
from strandline.sql.columns_read import find_identifiers, find_read_whole
from strandline.sql.job_sql import uses_positions
from strandline.sql.known_columns import Known

from .code import Code

_WORD = re.compile(r"\w+")


def find_reads(code: Code, inputs: Collection[str]) -> dict[str, frozenset[str]]:
    """By input: every word of the SQL, because any of them may name a column.

    `*` is added if columns are read without being named.
    """
    if code.tree is None:
        return dict.fromkeys(inputs, frozenset({EVERY_COLUMN}))
    words = {*_WORD.findall(code.text.lower()), *find_identifiers(code.tree)}
    whole = find_read_whole(code.tree)
    return {
        name: frozenset(words | {EVERY_COLUMN}) if whole is None or name in whole else frozenset(words)
        for name in inputs
    }


def find_positions(
    code: Code, inputs: Iterable[Input], known: Mapping[str, Known]
) -> dict[str, tuple[str, ...]]:
    """By input: the order of its columns, if the code may depend on it. Python always may (`union`)."""
    if code.tree is not None and not uses_positions(code.tree):
        return {}
    return {i.name: known[i.name].order for i in inputs if EVERY_COLUMN in i.reads}
