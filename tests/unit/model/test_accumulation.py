"""What can be added to and subtracted from is known from declarations and types, without Spark."""

import pytest

from strandline.model.accumulation import Accumulation, Addend, Adding, find_delay, find_obstacle
from strandline.model.number_types import (
    Added,
    Digits,
    Exactly,
    Multiplied,
    NumberType,
    OfColumn,
    OneOf,
    find_digits,
    read_digits,
)

INT, PRICE, DOUBLE = OfColumn(column="n"), OfColumn(column="price"), OfColumn(column="ratio")
TYPES = {
    "n": "integer",
    "big": "bigint",
    "price": "decimal(18,2)",
    "wide": "decimal(38,0)",
    "ratio": "double",
}
ONE = Exactly(digits=Digits(precision=10, is_whole=True))


@pytest.mark.parametrize(
    ("number", "digits"),
    [
        (INT, Digits(precision=10, is_whole=True)),
        (PRICE, Digits(precision=18, scale=2)),
        (DOUBLE, None),
        (OfColumn(column="unknown"), None),
        (Added(left=INT, right=OfColumn(column="big")), Digits(precision=20, is_whole=True)),
        (Added(left=PRICE, right=ONE), Digits(precision=19, scale=2)),
        (Multiplied(left=PRICE, right=INT), Digits(precision=29, scale=2)),
        (Multiplied(left=INT, right=INT), Digits(precision=10, is_whole=True)),
        (Multiplied(left=OfColumn(column="wide"), right=PRICE), None),
        (Added(left=PRICE, right=DOUBLE), None),
        (OneOf(parts=(PRICE, ONE)), Digits(precision=18, scale=2)),
        (OneOf(parts=(INT, ONE)), Digits(precision=10, is_whole=True)),
        (OneOf(parts=(PRICE, DOUBLE)), None),
    ],
)
def test_the_digits_of_an_expression_follow_from_its_columns(
    number: NumberType, digits: Digits | None
) -> None:
    assert find_digits(number, TYPES) == digits


def test_spark_and_delta_spell_types_differently() -> None:
    assert read_digits("long") == read_digits("bigint") == Digits(precision=20, is_whole=True)
    assert read_digits("decimal(10, 3)") == Digits(precision=10, scale=3)
    assert read_digits("float") is None


def accumulate(adding: Adding, column: str = "", *, alone: bool = True) -> Accumulation:
    number = OfColumn(column=column) if adding in (Adding.SUM, Adding.AVERAGE) else None
    addend = Addend(adding=adding, number=number, argument=column, column=column)
    return Accumulation(addends=(addend,), is_alone=alone)


@pytest.mark.parametrize(
    ("accumulation", "type_", "accumulates"),
    [
        (accumulate(Adding.COUNT), "string", True),
        (accumulate(Adding.SUM, "x"), "decimal(28,10)", True),
        (accumulate(Adding.SUM, "x"), "decimal(29,10)", False),
        (accumulate(Adding.SUM, "x"), "double", False),
        (accumulate(Adding.AVERAGE, "x"), "bigint", True),
        (accumulate(Adding.AVERAGE, "x"), "decimal(28,10)", True),
        (accumulate(Adding.AVERAGE, "x"), "decimal(28,9)", False),
        (accumulate(Adding.GREATEST, "x"), "string", True),
        (accumulate(Adding.GREATEST, "x", alone=False), "string", False),
        (accumulate(Adding.GREATEST, "x", alone=False), "timestamp", True),
    ],
)
def test_types_decide_what_accumulates(accumulation: Accumulation, type_: str, accumulates: bool) -> None:
    assert (find_obstacle(accumulation, {"x": type_}) == "") is accumulates


def test_a_declared_type_counts_until_the_table_tells_another() -> None:
    declared = Accumulation(addends=accumulate(Adding.SUM, "x").addends, columns=(("x", "bigint"),))

    assert find_obstacle(declared, {}) == ""
    assert "not known to be a whole number" in find_obstacle(declared, {"x": "double"})
    assert "not known to be a whole number" in find_obstacle(accumulate(Adding.SUM, "x"), {})


def test_owners_that_are_found_in_a_changing_dataset_delay_it() -> None:
    found = Accumulation(found_in=("accounts", "orgs"))

    assert find_delay(found, {"tracks"}) == ""
    assert find_delay(found, {"tracks", "orgs"}) == "owners are found in `orgs`, which changes too"


def test_the_value_tells_a_count_and_an_extreme_without_a_default() -> None:
    assert accumulate(Adding.COUNT).value_tells
    assert accumulate(Adding.LEAST, "x").value_tells
    assert not accumulate(Adding.COUNT, alone=False).value_tells
    assert not accumulate(Adding.SUM, "x").value_tells
    extreme = accumulate(Adding.LEAST, "x").addends
    assert not Accumulation(addends=extreme, is_alone=True, has_default=True).value_tells
