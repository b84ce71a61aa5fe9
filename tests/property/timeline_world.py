"""What a small timeline is declared as, what it reads, and random changes of it.

Dates are numbers. Keys are (portfolio, security), in two portfolios.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

Date = int
Key = tuple[str, str]
OnValues = tuple[object, ...]
Values = Mapping[str, Any]
ReferenceRows = Mapping[tuple[OnValues, Date | None], Values]
"""By the values of `on` and the date, which is None in an undated reference."""

KEYS: tuple[Key, ...] = (("P", "a"), ("P", "b"), ("Q", "a"))
DATES = range(9)
WEEKEND = (5, 6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    key: Key
    on: Date | None
    rank: int
    """Its place within the date."""
    amount: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    name: str
    on: tuple[str, ...]
    """`security` or `portfolio`, a field, or a column of a reference above: `listing.currency`."""
    dated: bool
    required: bool = False
    columns: tuple[str, ...] = ()
    """Its columns, for a declaration that is not chosen here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    fold: Callable[[Values | None, Sequence[Fact]], Values]
    fields: tuple[str, ...]
    references: tuple[Reference, ...]
    columns: Callable[[Values], Values]
    where: Callable[[Values], bool]
    together: bool
    """Whether the keys of a portfolio are always published in one commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """One version of everything that a timeline reads."""

    facts: Mapping[str, Fact]
    calendar: frozenset[Date]
    references: Mapping[str, ReferenceRows]


def fold(state: Values | None, facts: Sequence[Fact]) -> Values:
    """A quantity that must not be negative, and a book that follows from what no field shows."""
    quantity, carry = (0, 0) if state is None else (state["quantity"], state["carry"])
    book = "xy"[carry % 2]
    for fact in facts:
        quantity += fact.amount
        carry = (2 * carry + fact.amount) % 3
    if quantity < 0:
        raise ValueError(f"{-quantity} sold that are not there")
    return {"quantity": quantity, "book": book, "carry": carry}


def choose_columns(names: Values) -> Values:
    """Products, so that different inputs often give the same value. Whether the price is of the date."""
    value = names["quantity"]
    for factor in ("price.price", "fx.rate", "factor.times", "tariff.times", "tax.rate"):
        if factor in names:
            value = None if value is None or names[factor] is None else value * names[factor]
    return {
        "value": value,
        "fresh": names.get("price.on") == names["date"],
        "region": names.get("desk.region"),
    }


_LISTING = Reference(name="listing", on=("security",), dated=False)
_PRICE = Reference(name="price", on=("security",), dated=True)
_FX = Reference(name="fx", on=("listing.currency",), dated=True)
_DESK = Reference(name="desk", on=("book",), dated=True)
_FACTOR = Reference(name="factor", on=("price.unit",), dated=True)
_TARIFF = Reference(name="tariff", on=("desk.region",), dated=False)
_TAX = Reference(name="tax", on=("book", "listing.currency"), dated=True)

REFERENCES = {r.name: r for r in (_LISTING, _PRICE, _FX, _DESK, _FACTOR, _TARIFF, _TAX)}

_CHOICES: tuple[tuple[Reference, ...], ...] = (
    (),
    (_PRICE,),
    (replace(_PRICE, required=True),),
    (_LISTING, replace(_FX, required=True)),
    (_LISTING, _PRICE, replace(_FX, required=True)),
    (_PRICE, _FACTOR),
    (_PRICE, replace(_FACTOR, required=True)),
    (_DESK, _TARIFF),
    (_LISTING, _DESK, _TAX),
)
"""Looked up by the key, by a field, through an undated reference, through a dated one, through both."""

DOMAINS: dict[str, tuple[Sequence[OnValues], Mapping[str, Sequence[object]]]] = {
    "listing": ([("a",), ("b",)], {"currency": ["E", "U", None]}),
    "price": ([("a",), ("b",)], {"price": [1, 2, 2, None], "unit": ["k", "m"]}),
    "fx": ([("E",), ("U",)], {"rate": [1, 2]}),
    "desk": ([("x",), ("y",)], {"region": ["n", "s"]}),
    "factor": ([("k",), ("m",)], {"times": [1, 3]}),
    "tariff": ([("n",), ("s",)], {"times": [1, 3]}),
    "tax": ([("x", "E"), ("x", "U"), ("y", "E"), ("y", "U")], {"rate": [1, 2]}),
}
"""Per reference: the values of `on` that have rows, and the values of its columns."""

_COLUMNS = {name: tuple(columns) for name, (_, columns) in DOMAINS.items()}


def reference_columns(reference: Reference) -> tuple[str, ...]:
    """The columns of a reference. A dated one also shows the date of its row, as `on`."""
    return (reference.columns or _COLUMNS[reference.name]) + (("on",) if reference.dated else ())


def choose_declaration(chance: Random) -> Declaration:
    leave_out_nothing = chance.random() < 0.7
    return Declaration(
        fold=fold,
        fields=("quantity", "book"),
        references=chance.choice(_CHOICES),
        columns=choose_columns,
        where=(lambda names: True) if leave_out_nothing else (lambda names: names["quantity"] != 0),
        together=chance.random() < 0.5,
    )


def start_inputs(declaration: Declaration, chance: Random) -> Inputs:
    """A calendar without the weekend, half of the reference rows, and no facts."""
    inputs = Inputs(
        facts={},
        calendar=frozenset(date for date in DATES if date not in WEEKEND),
        references={reference.name: {} for reference in declaration.references},
    )
    for _ in range(6 * len(declaration.references)):
        inputs = change_reference(declaration, inputs, chance)
    return inputs


def change_inputs(declaration: Declaration, inputs: Inputs, chance: Random) -> Inputs:
    """One change: of facts, as often of a reference, now and then of the calendar."""
    kind = chance.random()
    if kind < 0.4 or (kind < 0.9 and not declaration.references):
        return change_facts(inputs, chance)
    if kind < 0.9:
        return change_reference(declaration, inputs, chance)
    return replace(inputs, calendar=inputs.calendar ^ {chance.choice(DATES)})


def change_facts(inputs: Inputs, chance: Random) -> Inputs:
    """A fact comes, is cancelled, or is corrected: its date, its amount, its key, its place."""
    facts = dict(inputs.facts)
    name = chance.choice(sorted(facts)) if facts and chance.random() < 0.45 else f"f{len(facts)}"
    on = None if chance.random() < 0.04 else chance.choice(DATES)
    fact = Fact(
        key=chance.choice(KEYS),
        on=on,
        rank=chance.randrange(3),
        amount=chance.choice((-2, -1, 0, 1, 1, 2, 2, 3)),
    )
    if name not in facts:
        facts[name] = fact
    elif chance.random() < 0.4:
        del facts[name]
    else:
        column = chance.choice(("key", "on", "rank", "amount"))
        facts[name] = replace(facts[name], **{column: getattr(fact, column)})
    return replace(inputs, facts=facts)


def change_reference(declaration: Declaration, inputs: Inputs, chance: Random) -> Inputs:
    """A row of a reference comes, leaves or gets other values."""
    reference = chance.choice(declaration.references)
    rows = dict(inputs.references[reference.name])
    on_values, columns = DOMAINS[reference.name]
    place = (chance.choice(on_values), chance.choice(DATES) if reference.dated else None)
    if place in rows and chance.random() < 0.5:
        del rows[place]
    else:
        row = {column: chance.choice(values) for column, values in columns.items()}
        rows[place] = row | ({"on": place[1]} if reference.dated else {})
    return replace(inputs, references={**inputs.references, reference.name: rows})
