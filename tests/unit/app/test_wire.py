"""Every value that crosses between the command line and a server comes back equal."""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.app.work import WORK, from_wire, to_wire, wire
from strandline.model.errors import (
    CallError,
    FencedError,
    Mistake,
    OutsideError,
    Place,
    ProjectError,
    StrandlineError,
)
from strandline.model.plan import Status, Strategy
from strandline.model.wire import Wire, WireError

INSTANTS = st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(fold=0))
SIMPLE: dict[object, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(),
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
    datetime: INSTANTS,
    date: st.dates(),
    time: st.times().map(lambda at: at.replace(fold=0)),
    timedelta: st.timedeltas(),
    Decimal: st.decimals(allow_nan=False),
    bytes: st.binary(),
    type(None): st.none(),
}
ANYTHING = st.recursive(
    st.one_of(*SIMPLE.values()),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.lists(inner, max_size=2).map(tuple)
        | st.dictionaries(st.text(), inner, max_size=2)
    ),
    max_leaves=5,
)


def values_of(hint: Any, depth: int = 0) -> st.SearchStrategy[Any]:
    """Any value of a type hint. Deep down, lists are empty, so that conditions end."""
    most = 2 if depth < 6 else 0
    if hint in SIMPLE:
        return SIMPLE[hint]
    if hint is object:
        return ANYTHING
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        if depth > 6:
            parts = tuple(p for p in parts if not is_dataclass(p)) or parts[:1]
        return st.one_of(*(values_of(part, depth + 1) for part in parts))
    if origin is tuple:
        return st.lists(values_of(parts[0], depth + 1), max_size=most).map(tuple) if most else st.just(())
    if origin is frozenset:
        return st.frozensets(values_of(parts[0], depth + 1), max_size=2)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(values_of(parts[0], depth + 1), values_of(parts[1], depth + 1), max_size=2)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        return st.deferred(
            lambda: st.builds(
                hint,  # type: ignore[arg-type]
                **{f.name: values_of(hints[f.name], depth + 1) for f in fields(hint)},
            )
        )
    supertype = getattr(hint, "__supertype__", None)  # of a NewType
    assert supertype is not None, hint
    return values_of(supertype, depth)


def cross(value: object) -> Any:
    """As through a request, or through the catalog, which sorts the keys of objects."""
    return from_wire(json.loads(json.dumps(to_wire(value), sort_keys=True)))


@pytest.mark.parametrize("name", sorted(wire().classes))
@settings(max_examples=10, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_value_of_every_class_comes_back_equal(name: str, data: st.DataObject) -> None:
    value = data.draw(values_of(wire().classes[name]))

    back = cross(value)

    assert back == value
    assert repr(back) == repr(value)


def test_every_request_and_every_outcome_can_cross() -> None:
    for verb, work in WORK.items():
        for kind in (work.request, *work.outcome):
            assert wire().classes.get(kind.__name__) is kind, verb


@given(value=ANYTHING)
def test_rows_of_any_values_come_back_equal(value: object) -> None:
    assert repr(cross(value)) == repr(value)


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-0.0"])
def test_odd_numbers_come_back(text: str) -> None:
    assert repr(cross(float(text))) == repr(float(text))


def test_the_order_of_a_mapping_is_kept() -> None:
    assert list(cross({"b": 1, "a": 2})) == ["b", "a"]


class GoneError(OutsideError):
    """One that only this module knows."""


MISTAKE = Mistake(slug="no-key", what="no key", remedy="add one", place=Place(file="a.yaml", line=3))


@pytest.mark.parametrize(
    "error",
    [
        CallError("wrong", remedy="right it", slug="call"),
        FencedError("late"),
        GoneError("gone", slug="gone"),
        ProjectError([MISTAKE, MISTAKE]),
    ],
    ids=repr,
)
def test_an_error_comes_back_as_what_it_means(error: StrandlineError) -> None:
    back = cross(error)

    assert isinstance(back, StrandlineError)
    assert (str(back), back.slug, back.remedy, back.exit_code) == (
        str(error),
        error.slug,
        error.remedy,
        error.exit_code,
    )


@pytest.mark.parametrize(
    "document",
    [
        {"$": "Popen", "args": "ls"},
        {"$": "os.system", "value": "ls"},
        {"value": 1},
        {"$": "RunRequest", "shell": "ls"},
        {"$": "Status", "value": "excellent"},
        {"$": "datetime", "value": "soon"},
        {"$": "Decimal", "value": "many"},
        {"$": "mapping", "value": [1]},
        {"$": 7},
    ],
    ids=repr,
)
def test_nothing_else_is_made_of_what_arrives(document: object) -> None:
    with pytest.raises(WireError):
        from_wire(document)


def test_a_class_that_is_not_registered_does_not_cross() -> None:
    known = Wire.of(Status)

    assert known.from_wire(known.to_wire(Status.DONE)) is Status.DONE
    with pytest.raises(WireError):
        known.to_wire(Strategy.FULL)
    with pytest.raises(WireError):
        known.to_wire({1, 2})
