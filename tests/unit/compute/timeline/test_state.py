"""A fold's state is stored as text and comes back equal, to the last type and digit."""

import math
from collections import OrderedDict, namedtuple
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.compute.timeline.state import StateError, copy_state, decode_state, encode_state

ZONES = st.sampled_from(
    [
        None,
        UTC,
        ZoneInfo("Europe/Berlin"),
        ZoneInfo("America/St_Johns"),
        timezone(timedelta(hours=-3, minutes=30)),
    ]
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.decimals(allow_nan=False),
    st.dates(),
    st.datetimes(timezones=ZONES),
)
STATES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


def same(one: Any, other: Any) -> bool:
    """Equal in value, type, order of keys and sign of zero."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float):
        return repr(one) == repr(other)
    if isinstance(one, datetime):
        return (one.replace(tzinfo=None), one.fold, str(one.tzinfo), one.utcoffset()) == (
            other.replace(tzinfo=None),
            other.fold,
            str(other.tzinfo),
            other.utcoffset(),
        )
    return str(one) == str(other) if isinstance(one, Decimal) else bool(one == other)


@given(STATES)
def test_a_state_comes_back_as_it_was(state: Any) -> None:
    assert same(decode_state(encode_state(state)), state)
    assert same(copy_state(state), state)


@pytest.mark.parametrize("text", ["NaN", "sNaN", "Infinity", "-0", "1E+3", "1.10", "-0.000"])
def test_a_decimal_keeps_its_exponent_and_its_sign(text: str) -> None:
    assert str(decode_state(encode_state(Decimal(text)))) == text


def test_a_state_that_looks_like_the_code_of_another_comes_back() -> None:
    tricky = {"decimal": "1", "dict": {"float": "nan"}, "datetime": ["2024-01-01", 0, None]}

    assert decode_state(encode_state(tricky)) == tricky


def test_a_copy_shares_nothing() -> None:
    lots = [1]
    copied = copy_state({"a": lots, "b": lots})

    copied["a"].append(2)

    assert copied["b"] == [1]
    assert lots == [1]


class Side(IntEnum):
    BUY = 1


Pair = namedtuple("Pair", "one other")


@pytest.mark.parametrize(
    ("state", "place"),
    [
        ((1, 2), "state"),
        ({"lots": [{"at": {1}}]}, "state.lots[0].at"),
        ({"side": Side.BUY}, "state.side"),
        ({"pair": Pair(1, 2)}, "state.pair"),
        ({"open": OrderedDict()}, "state.open"),
        ({"of": object()}, "state.of"),
        ({"at": time(8)}, "state.at"),
        ({"x": complex(1)}, "state.x"),
        ({1: "a"}, "state"),
        ({"d": {None: 1}}, "state.d"),
    ],
)
def test_what_is_not_plain_is_refused_where_it_is(state: Any, place: str) -> None:
    for store in (copy_state, encode_state):
        with pytest.raises(StateError, match=f"`{place}`".replace("[", r"\[").replace("]", r"\]")):
            store(state)


def test_nan_is_a_value() -> None:
    assert math.isnan(decode_state(encode_state({"x": float("nan")}))["x"])
    assert date(2024, 1, 1) == decode_state(encode_state(date(2024, 1, 1)))


def nested(depth: int) -> dict[str, Any]:
    state: dict[str, Any] = {}
    for _ in range(depth):
        state = {"next": state}
    return state


@pytest.mark.parametrize(
    "state",
    [{"name": "\ud800"}, {"\udfff": 1}, {"n": 10**4400}, {"n": [-(10**4400)]}, nested(450), nested(2000)],
    ids=["half a pair", "half a pair as key", "too many digits", "below zero", "deep", "too deep for Python"],
)
def test_what_no_text_can_contain_is_refused(state: Any) -> None:
    """Else it would fail where the results of all keys are stored."""
    with pytest.raises(StateError):
        copy_state(state)


def test_the_largest_and_the_deepest_state_comes_back() -> None:
    state = {"n": 10**3999, "name": "\U0001f600", "deep": nested(99)}

    assert decode_state(encode_state(copy_state(state))) == state
