"""Conditions: how they are written, what is refused, and what they mean for NULL, NaN and empty lists."""

from itertools import product

import pytest

from strandline.model.condition_checks import check_condition
from strandline.model.condition_json import condition_to_json, parse_condition, read_condition
from strandline.model.condition_text import describe
from strandline.model.condition_truth import evaluate, is_true
from strandline.model.conditions import AllOf, AnyOf, Comparison, Condition, Negation, Operator
from strandline.model.errors import CallError

COLUMNS = {"quantity": "bigint", "price": "decimal(18,2)", "symbol": "string", "ratio": "double"}
TRUE, FALSE = AllOf(parts=()), AnyOf(parts=())
UNKNOWN = Comparison(column="missing", operator=Operator.EQ, value=1)
TRUTHS: dict[bool | None, Condition] = {True: TRUE, False: FALSE, None: UNKNOWN}


def compare(column: str, word: str, value: object) -> Comparison:
    return Comparison(column=column, operator=Operator(word), value=value)  # type: ignore[arg-type]


def nested(depth: int) -> dict[str, object]:
    condition: dict[str, object] = {"quantity": {"_eq": 1}}
    for _ in range(depth - 1):
        condition = {"_not": condition}
    return condition


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({}, AllOf(parts=())),
        ({"_and": []}, AllOf(parts=(AllOf(parts=()),))),
        ({"_or": []}, AllOf(parts=(AnyOf(parts=()),))),
        ({"quantity": {"_gte": 10_000}}, AllOf(parts=(compare("quantity", "gte", 10_000),))),
        (
            {"quantity": {"_gt": 1, "_lt": 5}, "_not": {"symbol": {"_in": ["A"]}}},
            AllOf(
                parts=(
                    compare("quantity", "gt", 1),
                    compare("quantity", "lt", 5),
                    Negation(part=compare("symbol", "in", ("A",))),
                )
            ),
        ),
        (
            {"_or": [{"symbol": {"_eq": "A"}, "quantity": {"_eq": 1}}, {"symbol": {"_is_null": True}}]},
            AllOf(
                parts=(
                    AnyOf(
                        parts=(
                            AllOf(parts=(compare("symbol", "eq", "A"), compare("quantity", "eq", 1))),
                            compare("symbol", "is_null", True),
                        )
                    ),
                )
            ),
        ),
    ],
)
def test_everything_at_one_level_is_joined_by_and(value: object, expected: Condition) -> None:
    assert parse_condition(value, COLUMNS) == expected


@pytest.mark.parametrize(
    ("value", "slug", "what"),
    [
        ([1], "filter-unknown", "The condition is a list, not an object of columns."),
        ({"quantity": 5}, "filter-unknown", "`quantity` has a number, not an object of operators."),
        ({"quantity": {}}, "filter-unknown", "The condition on `quantity` is empty."),
        (
            {"quantity": {"gte": 5}},
            "filter-unknown",
            "`gte` is not an operator (condition on `quantity`). Did you mean `_gte`?",
        ),
        (
            {"quantity": {"_eq": None}},
            "filter-unknown",
            "`_eq` cannot compare `quantity` with null, which nothing equals: use _is_null.",
        ),
        (
            {"quantity": {"_in": [1, None]}},
            "filter-unknown",
            "`_in` cannot compare `quantity` with null, which nothing equals: use _is_null.",
        ),
        ({"_and": {"a": 1}}, "filter-unknown", "`_and` needs a list, and here it has an object."),
        ({"_or": [3]}, "filter-unknown", "A part of `_or` is a number, not an object of columns."),
        ({"_not": [{}]}, "filter-unknown", "A part of `_not` is a list, not an object of columns."),
        ({"quantaty": {"_eq": 5}}, "unknown-column", "There is no column `quantaty`."),
        (
            {"quantity": {"_eq": 2**63}},
            "filter-type",
            "`quantity` has the type bigint",
        ),
        ({"symbol": {"_gt": 1}}, "filter-type", "`symbol` has the type string, and 1 is not a value"),
        (nested(9), "filter-too-large", "The condition is more than 8 deep."),
        (
            {"_or": [{"quantity": {"_eq": 1}}] * 101},
            "filter-too-large",
            "The condition has 101 comparisons, and at most 100 are allowed.",
        ),
        (
            {"_and": [{"quantity": {"_in": [1] * 5_001}}, {"quantity": {"_nin": [1] * 5_000}}]},
            "filter-too-large",
            "The condition lists 10001 values, and at most 10000 are allowed.",
        ),
    ],
)
def test_a_wrong_condition_is_refused_with_what_is_wrong(value: object, slug: str, what: str) -> None:
    with pytest.raises(CallError) as refused:
        parse_condition(value, COLUMNS)

    assert refused.value.slug == slug
    assert refused.value.what.startswith(what)
    assert refused.value.remedy


def test_the_limits_themselves_are_allowed() -> None:
    parse_condition(nested(8), COLUMNS)
    parse_condition({"_or": [{"quantity": {"_eq": 1}}] * 100}, COLUMNS)
    parse_condition({"quantity": {"_in": [1] * 10_000}}, COLUMNS)


def test_nesting_without_end_is_refused_before_it_is_followed() -> None:
    deep: dict[str, object] = {}
    for _ in range(100_000):
        deep = {"_and": [deep]}

    with pytest.raises(CallError) as refused:
        parse_condition(deep)

    assert refused.value.slug == "filter-too-large"


def test_every_mistake_is_told_with_its_place_and_the_rest_is_read() -> None:
    value = {"_or": [{"quantity": {"_gte": 1, "_like": 2}}, {"symbl": {"_eq": "A"}}], "price": 5}

    condition, mistakes = read_condition(value, COLUMNS)

    assert [(mistake.error.slug, mistake.path) for mistake in mistakes] == [
        ("filter-unknown", ("_or", 0, "quantity", "_like")),
        ("unknown-column", ("_or", 1, "symbl", "_eq")),
        ("filter-unknown", ("price",)),
    ]
    assert describe(condition) == "((quantity >= 1) OR (every row))"


def test_columns_and_types_may_be_unknown_until_the_first_run() -> None:
    parsed = parse_condition({"anything": {"_gt": "2024-01-13"}})

    assert condition_to_json(parsed) == {"anything": {"_gt": "2024-01-13"}}
    with pytest.raises(CallError):
        check_condition(parsed, COLUMNS)


@pytest.mark.parametrize(("one", "other"), list(product(TRUTHS, TRUTHS)))
def test_and_or_and_not_follow_the_truth_tables_of_sql(one: bool | None, other: bool | None) -> None:
    parts = (TRUTHS[one], TRUTHS[other])
    both = False if False in (one, other) else None if None in (one, other) else True
    either = True if True in (one, other) else None if None in (one, other) else False

    assert evaluate(AllOf(parts=parts), {}) is both
    assert evaluate(AnyOf(parts=parts), {}) is either
    assert evaluate(Negation(part=parts[0]), {}) is (None if one is None else not one)
    assert is_true(parts[0], {}) is (one is True)


@pytest.mark.parametrize(
    ("condition", "value", "truth"),
    [
        (compare("c", "eq", 1), None, None),
        (compare("c", "neq", 1), None, None),
        (compare("c", "in", (1,)), None, None),
        (compare("c", "nin", (1,)), None, None),
        (compare("c", "in", ()), None, False),
        (compare("c", "nin", ()), None, True),
        (compare("c", "is_null", True), None, True),
        (compare("c", "is_null", False), None, False),
        (compare("c", "eq", float("nan")), float("nan"), True),
        (compare("c", "gt", float("inf")), float("nan"), True),
        (compare("c", "lte", float("nan")), float("inf"), True),
        (compare("c", "in", (float("nan"),)), float("nan"), True),
        (compare("c", "eq", 0.0), -0.0, True),
        (compare("c", "lt", 0.0), -0.0, False),
        (compare("c", "lt", "\U0001f600"), "\uffff", True),
        (compare("c", "lt", "a"), "A", True),
    ],
)
def test_nothing_equals_null_and_nan_is_above_all_numbers(
    condition: Condition, value: object, truth: bool | None
) -> None:
    assert evaluate(condition, {"c": value}) is truth


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "every row"),
        ({"_or": []}, "(no row)"),
        ({"_not": {"quantity": {"_lt": 5}}}, "(NOT (quantity < 5))"),
        (
            {"symbol": {"_eq": "A"}, "_or": [{"quantity": {"_gt": 1}}, {"ratio": {"_eq": "NaN"}}]},
            "symbol = 'A' AND ((quantity > 1) OR (ratio = 'NaN'))",
        ),
    ],
)
def test_a_condition_is_told_as_people_read_it(value: object, text: str) -> None:
    assert describe(parse_condition(value, COLUMNS)) == text
