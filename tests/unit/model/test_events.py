"""Ids of events: the same change has the same id, and different changes have different ones (L12)."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.model.events import Event, EventType, make_body, make_event_id
from strandline.model.key_text import key_text

values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.sampled_from(["%", ":", ",", "%00", "%2C", "a,b", ""])
)
keys = st.lists(values, min_size=1, max_size=3).map(tuple)


def event(data: str = '{"trade_id":123,"symbol":"AAPL","quantity":15000}', **fields: object) -> Event:
    given: dict[str, object] = {
        "trigger": "large_trade_alert",
        "event_type": EventType.MATCH,
        "key": "123",
        "source_timestamp": 1705316445123456789,
        "n": 1,
        "version": 3,
        "position": 0,
        "revision": 1,
        "quiet": False,
    }
    return Event(data=data, **{**given, **fields})  # type: ignore[arg-type]


def test_the_id_of_the_documentation_comes_out() -> None:
    assert make_event_id("large_trade_alert", key_text([123]), 1705316445123456789) == (
        "acf67a288f80147280c9d4b1e99378cd"
    )


def test_the_body_of_the_documentation_comes_out() -> None:
    body = make_body(event(), datetime(2024, 1, 15, 10, 30, 45, 123_999, tzinfo=UTC))

    assert body == (
        b'{"event_id":"acf67a288f80147280c9d4b1e99378cd","event_type":"MATCH",'
        b'"trigger_name":"large_trade_alert","timestamp":"2024-01-15T10:30:45.123Z",'
        b'"source_timestamp":"1705316445123456789",'
        b'"data":{"trade_id":123,"symbol":"AAPL","quantity":15000}}'
    )


def test_the_row_is_in_the_body_as_it_was_recorded() -> None:
    data = '{"a":1.10,"b":12345678901234567890123,"c":"größe 日本 😀","d":1E+2}'

    body = make_body(event(data), datetime(2024, 1, 15, tzinfo=UTC))

    assert body.endswith(b',"data":' + data.encode() + b"}")
    assert json.loads(body)["data"]["c"] == "größe 日本 😀"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ([123], "123"),
        (["a:b", "c"], "a%3Ab,c"),
        (["a", "b:c"], "a,b%3Ac"),
        (["50%,x"], "50%25%2Cx"),
        ([None, "%00", ""], "%00,%2500,"),
        ([True, -5, Decimal("1.50"), Decimal("1E+2")], "true,-5,1.50,100"),
        ([date(2024, 1, 13)], "2024-01-13"),
        ([datetime(2024, 1, 13, 8, 30, tzinfo=UTC)], "2024-01-13T08%3A30%3A00.000000Z"),
        ([b"\x00\xff"], "00ff"),
        (["日本"], "日本"),
    ],
)
def test_a_key_is_written_as_json_output_writes_it(key: list[object], text: str) -> None:
    assert key_text(key) == text


@pytest.mark.parametrize("value", [1.5, [1], {"a": 1}])
def test_a_key_with_a_double_or_a_list_has_no_text(value: object) -> None:
    with pytest.raises(TypeError, match="a row key cannot contain"):
        key_text([value])


def shown(key: tuple[object, ...]) -> tuple[tuple[bool, str], ...]:
    """What tells values of one type apart. A column has one type, so 1 and "1" never meet."""
    return tuple((value is None, "" if value is None else key_text([value])) for value in key)


@given(st.lists(keys, min_size=2, max_size=6))
def test_different_keys_have_different_texts(several: list[tuple[object, ...]]) -> None:
    for one, other in combinations(several, 2):
        assert (key_text(one) == key_text(other)) is (shown(one) == shown(other))


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["alert", "alert_2"]), keys.map(key_text), st.integers(0, 12), st.integers(1, 12)
        ),
        min_size=2,
        max_size=8,
        unique=True,
    )
)
def test_different_events_have_different_ids(events: list[tuple[str, str, int, int]]) -> None:
    assert len({make_event_id(*parts) for parts in events}) == len(events)
