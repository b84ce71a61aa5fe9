"""The facts of one key are folded date by date, and a stored state continues as if it had not been stored."""

import sys
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, getcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.compute.timeline.folding import Day, Fact, FoldError, fold_key
from strandline.model.columns import ColumnType, find_type

FIRST = date(2024, 1, 1)


def types(**fields: str) -> dict[str, ColumnType]:
    found = {name: find_type(text) for name, text in fields.items()}
    return {name: kind for name, kind in found.items() if kind is not None}


MONEY = types(quantity="decimal(28,10)", cost_basis="decimal(28,10)", realised="decimal(28,10)")


def fifo(state: Any, facts: Sequence[Fact]) -> Any:
    """First in, first out."""
    state = state or {"lots": [], "realised": Decimal(0)}
    for fact in facts:
        if fact["quantity"] > 0:
            state["lots"].append([fact["quantity"], fact["price"]])
        left = -min(fact["quantity"], Decimal(0))
        while left:
            lot = state["lots"][0]
            sold = min(left, lot[0])
            state["realised"] += sold * (fact["price"] - lot[1])
            lot[0], left = lot[0] - sold, left - sold
            if not lot[0]:
                state["lots"].pop(0)
    state["quantity"] = sum((lot[0] for lot in state["lots"]), Decimal(0))
    state["cost_basis"] = sum((lot[0] * lot[1] for lot in state["lots"]), Decimal(0))
    return state


def trade(quantity: int, price: int) -> Fact:
    return {"quantity": Decimal(quantity), "price": Decimal(price)}


def days(*facts: Sequence[Fact]) -> list[Day]:
    return [Day(on=FIRST + timedelta(days=n), facts=of_day) for n, of_day in enumerate(facts)]


def test_a_sell_between_two_buys_takes_from_the_first() -> None:
    folded = fold_key(fifo, MONEY, days([trade(100, 200)], [trade(-40, 215)], [trade(50, 220)]))

    assert folded.days[-1].values == {
        "quantity": Decimal(110),
        "cost_basis": Decimal(23_000),
        "realised": Decimal(600),
    }


TRADES = st.lists(st.tuples(st.integers(-20, 60), st.integers(1, 9)), min_size=1, max_size=3)


@given(st.lists(TRADES, min_size=1, max_size=8), st.data())
def test_going_on_from_any_date_is_folding_at_once(histories: list[list[tuple[int, int]]], data: Any) -> None:
    held = 0
    facts: list[list[Fact]] = []
    for of_day in histories:
        facts.append([])
        for quantity, price in of_day:
            quantity = max(quantity, -held)
            held += quantity
            facts[-1].append(trade(quantity, price))
    all_days = days(*facts)
    cut = data.draw(st.integers(0, len(all_days)))

    at_once = fold_key(fifo, MONEY, all_days)
    before = fold_key(fifo, MONEY, all_days[:cut])
    after = fold_key(fifo, MONEY, all_days[cut:], before.state)

    assert (*before.days, *after.days) == at_once.days
    assert after.state == at_once.state


def test_a_state_that_refers_to_one_list_twice_is_the_same_when_gone_on_from() -> None:
    def shared(state: Any, facts: Sequence[Fact]) -> Any:
        if state is None:
            lots: list[int] = []
            return {"a": lots, "b": lots, "n": 0}
        state["a"].append(1)
        return {**state, "n": len(state["b"])}

    of_days = days([{}], [{}], [{}])
    at_once = fold_key(shared, types(n="int"), of_days)
    half = fold_key(shared, types(n="int"), of_days[:1])

    assert fold_key(shared, types(n="int"), of_days[1:], half.state).days == at_once.days[1:]
    assert [day.values["n"] for day in at_once.days] == [0, 0, 0]


def test_no_date_leaves_the_state_as_it_is() -> None:
    assert fold_key(fifo, MONEY, []).state is None
    state = fold_key(fifo, MONEY, days([trade(1, 1)])).state

    assert fold_key(fifo, MONEY, [], state).state == state


def test_a_fold_computes_with_38_digits_and_leaves_the_context_of_others_alone() -> None:
    before = getcontext().prec

    folded = fold_key(lambda *_: {"x": Decimal(1) / Decimal(3)}, types(x="decimal(38,37)"), days([{}]))

    assert folded.days[0].values["x"] == Decimal("0." + "3" * 37)
    assert getcontext().prec == before


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("decimal(5,2)", Decimal("1.005"), Decimal("1.01")),
        ("decimal(5,2)", Decimal("-1.005"), Decimal("-1.01")),
        ("decimal(5,2)", 1.005, Decimal("1.01")),
        ("decimal(5,2)", 7, Decimal("7.00")),
        ("decimal(38,0)", Decimal("9" * 38), Decimal("9" * 38)),
        ("bigint", 2**63 - 1, 2**63 - 1),
        ("double", 1, 1.0),
        ("double", Decimal("0.5"), 0.5),
        ("string", "", ""),
        ("boolean", True, True),
        ("date", FIRST, FIRST),
        ("timestamp", datetime(2024, 1, 1, 8, tzinfo=UTC), datetime(2024, 1, 1, 8, tzinfo=UTC)),
        ("int", None, None),
    ],
)
def test_a_field_is_stored_as_its_type(kind: str, value: object, expected: object) -> None:
    folded = fold_key(lambda *_: {"x": value}, types(x=kind), days([{}]))

    stored = folded.days[0].values["x"]
    assert (stored, type(stored)) == (expected, type(expected))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("decimal(5,2)", Decimal("999.995")),
        ("decimal(5,2)", Decimal("NaN")),
        ("decimal(5,2)", float("inf")),
        ("decimal(5,2)", "1.00"),
        ("decimal(5,2)", True),
        ("bigint", 2**63),
        ("bigint", 1.0),
        ("int", False),
        ("double", float("nan")),
        ("string", 1),
        ("string", b"a"),
        ("boolean", 1),
        ("date", "2024-01-01"),
        ("date", datetime(2024, 1, 1, tzinfo=UTC)),
        ("timestamp", datetime(2024, 1, 1)),  # noqa: DTZ001 - without a zone it is no instant
        ("string", [1]),
    ],
)
def test_a_field_that_does_not_fit_fails_the_key(kind: str, value: object) -> None:
    with pytest.raises(FoldError) as failure:
        fold_key(lambda *_: {"x": value}, types(x=kind), days([{}]))

    assert (failure.value.slug, failure.value.on) == ("fold-field", FIRST)
    assert "`x`" in failure.value.reason


def raising(state: Any, facts: Sequence[Fact]) -> Any:
    raise KeyError("quantity")


@pytest.mark.parametrize(
    ("fold", "slug", "words"),
    [
        (raising, "fold-failed", "KeyError: 'quantity'"),
        (lambda *_: sys.exit("that is all"), "fold-failed", "SystemExit: that is all"),
        (lambda *_: None, "fold-state", "a NoneType, not a dict"),
        (lambda *_: {"x": 1, "seen": {1}}, "fold-state", "`state.seen` is a set"),
        (lambda *_: {}, "fold-field", "no `x`"),
        (lambda *_: {"x": Decimal(1) / 0}, "fold-failed", "DivisionByZero"),
    ],
)
def test_a_fold_that_fails_says_when_and_why(fold: Any, slug: str, words: str) -> None:
    with pytest.raises(FoldError) as failure:
        fold_key(fold, types(x="int"), days([{}]))

    assert failure.value.slug == slug
    assert words in failure.value.reason


def test_a_reason_that_is_no_text_can_be_stored() -> None:
    def raises(state: Any, facts: Sequence[Fact]) -> Any:
        raise ValueError("half of a pair: \ud800")

    with pytest.raises(FoldError) as raised:
        fold_key(raises, {}, days([]))

    assert str(raised.value).encode() == rb"2024-01-01: ValueError: half of a pair: \ud800  [fold-failed]"
