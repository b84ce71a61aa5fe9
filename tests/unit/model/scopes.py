"""Any scope, for property tests."""

import string

from hypothesis import strategies as st

from strandline.model.conditions import AllOf, Comparison, Operator
from strandline.model.scope import (
    ClockMove,
    Described,
    Everything,
    Increment,
    Keys,
    KeysFrom,
    Partitions,
    Range,
    Rows,
    Scope,
)

counts = st.none() | st.integers(0, 2**53)
names = st.text(string.ascii_lowercase, min_size=1)
# JSON lacks dates, decimals and NaN: a filter with them is equal again once `check_filter` knows the columns.
values = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text()
comparisons = st.builds(
    Comparison,
    column=names,
    operator=st.sampled_from([Operator.EQ, Operator.NEQ, Operator.GTE, Operator.LT]),
    value=values,
)


def _in_order(drawn: list[Comparison]) -> AllOf:
    """JSON sorts comparisons and has one of each column and operator."""
    unique = {(c.column, list(Operator).index(c.operator)): c for c in drawn}
    return AllOf(parts=tuple(unique[key] for key in sorted(unique)))


filters = st.none() | st.lists(comparisons, max_size=3).map(_in_order)
increments = st.builds(
    Increment,
    dataset=st.text(),
    first=counts,
    last=counts,
    rows=st.integers(0, 2**53),
    invalidations=st.integers(0, 9),
    reasons=st.lists(st.text(), max_size=2).map(tuple),
    coming=st.booleans(),
)
origins = st.lists(increments | st.builds(ClockMove, before=st.text(), now=st.text()), max_size=2).map(tuple)
valued_scopes: st.SearchStrategy[Scope] = st.one_of(
    st.builds(Everything, because=st.text(), origins=origins),
    st.builds(
        Rows,
        count=counts,
        of=st.text(),
        bytes=counts,
        origins=origins,
        where=filters,
        refused=st.booleans(),
    ),
    st.builds(Keys, count=counts, of=st.text(), origins=origins, where=filters),
    st.builds(KeysFrom, from_on=st.dates(), count=counts, of=st.text(), origins=origins),
    st.builds(
        Partitions,
        names=st.lists(st.text(), max_size=3).map(tuple),
        count=counts,
        waiting=st.integers(0, 9),
        origins=origins,
        where=filters,
    ),
    st.builds(Range, column=names, low=values, high=values, count=counts, of=st.text(), where=filters),
)
scopes = valued_scopes | st.builds(Described, text=st.text(min_size=1))
