"""Row filters: read from text and JSON, checked against columns, and shown to users."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import cache

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from strandline.model.columns import METADATA_COLUMNS
from strandline.model.condition_checks import check_filter
from strandline.model.condition_json import from_row_filter, to_row_filter
from strandline.model.condition_text import describe
from strandline.model.conditions import AllOf, Comparison, Operator, Value
from strandline.model.errors import CallError
from strandline.model.typed_values import Scalar
from strandline.sql.filters import parse_filter

COLUMNS = {
    "block_number": "long",
    "small": "integer",
    "name": "string",
    "seen_at": "timestamp",
    "day": "date",
    "flag": "boolean",
    "ratio": "double",
    "price": "decimal(18,4)",
    "wide": "decimal(38,38)",
    "tags": "array<string>",
    "_key": "long",
}
VALUES = {
    "block_number": st.integers(-(2**63), 2**63 - 1),
    "small": st.integers(-(2**31), 2**31 - 1),
    "name": st.text(st.characters(exclude_categories=["Cs"])),
    "seen_at": st.datetimes().map(lambda at: at.replace(tzinfo=UTC, fold=0)),
    "day": st.dates(),
    "flag": st.booleans(),
    "ratio": st.floats(),
    "price": st.decimals(-(10**13), 10**13, places=4),
    "wide": st.integers(-(10**38) + 1, 10**38 - 1).map(lambda digits: Decimal(f"{digits}e-38")),
}
WORDS = [
    "price",
    "1",
    "'x'",
    "=",
    "<",
    "in",
    "(",
    ")",
    "and",
    "not",
    "null",
    "is",
    "between",
    "date",
    ",",
    "-",
    ";",
]


def comparison(column: str, word: str, value: Value) -> Comparison:
    return Comparison(column=column, operator=Operator(word), value=value)


def filter_of(*comparisons: tuple[str, str, Value]) -> AllOf:
    return AllOf(parts=tuple(comparison(*words) for words in comparisons))


@cache
def comparisons_on(column: str) -> st.SearchStrategy[Comparison]:
    one, several = VALUES[column], st.lists(VALUES[column], min_size=1, max_size=4).map(tuple)
    compared = st.builds(
        comparison, st.just(column), st.sampled_from(["eq", "neq", "gt", "gte", "lt", "lte"]), one
    )
    listed = st.builds(comparison, st.just(column), st.sampled_from(["in", "nin"]), several)
    return compared | listed | st.builds(comparison, st.just(column), st.just("is_null"), st.booleans())


checked_filters = st.builds(
    AllOf,
    parts=st.lists(st.sampled_from(sorted(VALUES)).flatmap(comparisons_on), max_size=6).map(tuple),
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["and", "_in", "eq", "is_null", "price"]), inner, max_size=3)
    ),
    max_leaves=8,
)


def same(actual: AllOf, expected: AllOf) -> bool:
    """Equal up to order, and of the same types: Python considers 1, 1.0 and True equal."""
    return sorted(map(repr, actual.parts)) == sorted(map(repr, expected.parts))


@given(checked_filters)
def test_a_filter_reads_back_from_its_json_as_it_was_written(filter: AllOf) -> None:
    text = json.dumps(to_row_filter(filter), allow_nan=False)

    assert same(check_filter(from_row_filter(json.loads(text)), COLUMNS), filter)


@given(checked_filters)
@example(filter_of(("name", "in", ("\\", "\\n", "\n", "'", "\\'"))))
def test_a_filter_reads_back_from_what_people_are_told(filter: AllOf) -> None:
    described = describe(filter)

    assert (
        described == "every row"
        if not filter.parts
        else same(check_filter(parse_filter(described), COLUMNS), filter)
    )


@given(checked_filters)
def test_the_order_of_comparisons_does_not_show_in_the_json(filter: AllOf) -> None:
    turned = AllOf(parts=filter.parts[::-1])

    assert json.dumps(to_row_filter(turned)) == json.dumps(to_row_filter(filter))


@given(checked_filters)
def test_checking_twice_changes_nothing(filter: AllOf) -> None:
    assert repr(check_filter(filter, COLUMNS)) == repr(filter)


@given(anything)
def test_any_json_is_a_filter_or_refused_on_purpose(value: object) -> None:
    try:
        read = from_row_filter(value)
    except CallError:
        return

    assert same(from_row_filter(to_row_filter(read)), read)


@given(st.text() | st.lists(st.sampled_from(WORDS)).map(" ".join))
def test_any_text_is_a_filter_or_refused_on_purpose(text: str) -> None:
    try:
        parsed = parse_filter(text)
    except CallError:
        return

    assert parsed.parts


def test_the_json_is_an_object_of_columns_and_operators() -> None:
    filter = filter_of(("name", "eq", "x"), ("block_number", "lte", 1005), ("block_number", "gte", 995))

    assert (
        json.dumps(to_row_filter(filter))
        == '{"block_number": {"gte": 995, "lte": 1005}, "name": {"eq": "x"}}'
    )


def test_dates_instants_and_decimals_are_text_in_json() -> None:
    filter = filter_of(
        ("day", "eq", date(2024, 1, 13)),
        ("price", "in", (Decimal("1.50"),)),
        ("seen_at", "lt", datetime(2024, 1, 13, 8, 30, tzinfo=UTC)),
    )

    assert to_row_filter(filter) == {
        "day": {"eq": "2024-01-13"},
        "price": {"in": ["1.50"]},
        "seen_at": {"lt": "2024-01-13T08:30:00.000000Z"},
    }


def test_an_operator_said_twice_of_a_column_is_kept_twice() -> None:
    filter = filter_of(("name", "neq", "b"), ("name", "neq", "a"), ("small", "eq", 1))

    assert to_row_filter(filter) == {
        "and": [{"name": {"neq": "a"}, "small": {"eq": 1}}, {"name": {"neq": "b"}}]
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": 5}, filter_of(("a", "eq", 5))),
        ({"a": {"_gte": 1, "lte": 2}}, filter_of(("a", "gte", 1), ("a", "lte", 2))),
        (
            {"a": {"_in": [1, 2]}, "b": {"is_null": False}},
            filter_of(("a", "in", (1, 2)), ("b", "is_null", False)),
        ),
        ({"a": 1, "_and": [{"b": 2}]}, filter_of(("a", "eq", 1), ("b", "eq", 2))),
        ({"and": [{"and": [{"b": 2}]}]}, filter_of(("b", "eq", 2))),
        ({"and": {"gt": 1}}, filter_of(("and", "gt", 1))),
        ({}, filter_of()),
    ],
    ids=["bare value", "underscores", "lists and nulls", "and", "nested", "a column called and", "empty"],
)
def test_json_may_be_written_in_several_ways(value: object, expected: AllOf) -> None:
    assert same(from_row_filter(value), expected)


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ([1], "The filter is a list, not an object of columns."),
        ({1: 2}, "The filter is an object, not an object of columns."),
        ({"a": {}}, "The filter on `a` is empty."),
        ({"a": {"like": "x"}}, "`like` is not an operator (filter on `a`)."),
        ({"a": None}, "`eq` cannot compare `a` with null, which nothing equals: use is_null."),
        ({"a": {"in": 1}}, "`in` needs a list, and here it has a number (filter on `a`)."),
        ({"a": {"nin": [[1]]}}, "`nin` cannot compare `a` with a list."),
        ({"a": {"is_null": 1}}, "`is_null` needs true or false, and here it has a number (filter on `a`)."),
        ({"_or": [{"a": 1}]}, "`_or` cannot be used: a row filter joins comparisons by AND."),
        ({"or": [{"a": 1}]}, "`eq` cannot compare `or` with a list."),
        ({"_not": {"a": 1}}, "`a` is not an operator (filter on `_not`)."),
    ],
)
def test_other_json_is_refused_with_what_is_wrong(value: object, what: str) -> None:
    with pytest.raises(CallError) as refused:
        from_row_filter(value)

    assert (refused.value.slug, refused.value.what) == ("filter-unknown", what)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", filter_of(("a", "eq", 1))),
        ("A == 1", filter_of(("a", "eq", 1))),
        ("`A` <=> 1", filter_of(("a", "eq", 1))),
        ("a != 1 AND b <> 2", filter_of(("a", "neq", 1), ("b", "neq", 2))),
        (
            "a < 1 and b <= 2 and c > 3 and d >= 4",
            filter_of(("a", "lt", 1), ("b", "lte", 2), ("c", "gt", 3), ("d", "gte", 4)),
        ),
        (
            "1 < a and 2 <= b and 3 > c and 4 >= d",
            filter_of(("a", "gt", 1), ("b", "gte", 2), ("c", "lt", 3), ("d", "lte", 4)),
        ),
        ("5 = a AND 6 <> a", filter_of(("a", "eq", 5), ("a", "neq", 6))),
        ("a BETWEEN -5 AND (7)", filter_of(("a", "gte", -5), ("a", "lte", 7))),
        ("((a) = 1) AND (b = 2 AND (c = 3))", filter_of(("a", "eq", 1), ("b", "eq", 2), ("c", "eq", 3))),
        ("a IN (1, -2)", filter_of(("a", "in", (1, -2)))),
        ("a NOT IN ('x')", filter_of(("a", "nin", ("x",)))),
        ("a IS NULL AND b IS NOT NULL", filter_of(("a", "is_null", True), ("b", "is_null", False))),
        ("a = true AND b = FALSE", filter_of(("a", "eq", True), ("b", "eq", False))),
        ("a = 1.50 AND b = -.5", filter_of(("a", "eq", Decimal("1.50")), ("b", "eq", Decimal("-0.5")))),
        ("a = -0." + "7" * 38, filter_of(("a", "eq", Decimal("-0." + "7" * 38)))),
        ("a = 1e3", filter_of(("a", "eq", 1000.0))),
        (r"a = 'it\'s' AND b = 'or 1=1; --'", filter_of(("a", "eq", "it's"), ("b", "eq", "or 1=1; --"))),
        ('a = \'it\'\'s\' AND b = "say ""hi"""', filter_of(("a", "eq", "it's"), ("b", "eq", 'say "hi"'))),
        ("a >= DATE '2024-01-13'", filter_of(("a", "gte", date(2024, 1, 13)))),
        (
            "a < TIMESTAMP '2024-01-13 08:30:00+05:30'",
            filter_of(("a", "lt", datetime(2024, 1, 13, 3, tzinfo=UTC))),
        ),
        ("a < TIMESTAMP '2024-01-13'", filter_of(("a", "lt", datetime(2024, 1, 13, tzinfo=UTC)))),
        ("date = 1;", filter_of(("date", "eq", 1))),
        ("a = 9223372036854775808", filter_of(("a", "eq", 2**63))),
    ],
)
def test_a_text_becomes_comparisons_in_its_order(text: str, expected: AllOf) -> None:
    assert repr(parse_filter(text)) == repr(expected)


def test_a_long_row_of_ands_is_read() -> None:
    parsed = parse_filter(" and ".join(["a = 1"] * 5000))

    assert parsed == filter_of(*[("a", "eq", 1)] * 5000)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "The filter is empty."),
        ("-- nothing", "The filter is empty."),
        ("a = 1; b = 2", "The filter has several statements."),
        ("a = 1 OR b = 2", "`a = 1 OR b = 2` is not understood as a comparison."),
        ("a = 1 AND NOT b = 2", "`NOT b = 2` is not understood as a comparison."),
        ("a NOT BETWEEN 1 AND 2", "`NOT a BETWEEN 1 AND 2` is not understood as a comparison."),
        (
            "a BETWEEN SYMMETRIC 2 AND 1",
            "`(a BETWEEN 2 AND 1 OR a BETWEEN 1 AND 2)` is not understood as a comparison.",
        ),
        ("a LIKE 'x%'", "`a LIKE 'x%'` is not understood as a comparison."),
        ("a IS DISTINCT FROM 1", "`a IS DISTINCT FROM 1` is not understood as a comparison."),
        ("a IS TRUE", "`a IS TRUE` is not understood as a comparison."),
        ("flag", "`flag` is not understood as a comparison."),
        ("a IN (SELECT 1)", "`a IN (SELECT 1)` is not understood as a comparison."),
        ("a IN ()", "`a IN ()` is not understood as a comparison."),
        ("a IN (1, b)", "`b` is not understood as a value."),
        ("a = b", "`b` is not understood as a value."),
        ("a = NULL", "`NULL` is not understood as a value."),
        ("a = (SELECT 1)", "`SELECT 1` is not understood as a value."),
        ("a = now()", "`NOW()` is not understood as a value."),
        ("a = :x", "`:x` is not understood as a value."),
        ("a = 1 + 1", "`1 + 1` is not understood as a value."),
        ("a = - -1", "`- -1` is not understood as a value."),
        ("a = DATE '2024-02-30'", "`CAST('2024-02-30' AS DATE)` is not understood as a value."),
        ("a = CAST('2024-02-03' AS DATE)", "`CAST('2024-02-03' AS DATE)` is not understood as a value."),
        ("a = " + "9" * 5000, "`" + "9" * 60 + "...` is not understood as a value."),
        ("abs(a) = 1", "`ABS(a)` is not understood as a column."),
        ("t.a = 1", "`t.a` is not understood as a column."),
        ("1 = 1", "`1` is not understood as a column."),
        ("(a, b) IN ((1, 2))", "`(1, 2)` is not understood as a value."),
        ("DROP TABLE a", "The filter is wrong at `DROP`."),
        ("a = 1 SELECT", "The filter is wrong at `SELECT`."),
        ("a = 'x", "The filter cannot be split into words: a quote or a comment is not closed."),
        ("(" * 20_000 + "a = 1" + ")" * 20_000, "The filter is nested too deeply."),
        ("a" + ".b" * 30_000 + " = 1", "The filter is nested too deeply."),
    ],
)
def test_any_other_text_is_refused_with_what_is_not_understood(text: str, what: str) -> None:
    with pytest.raises(CallError) as refused:
        parse_filter(text)

    assert (refused.value.slug, refused.value.what) == ("filter-unknown", what)
    assert "BETWEEN" in refused.value.remedy


def test_a_text_of_more_than_64_kib_is_refused() -> None:
    longest = "a = '" + "é" * (32 * 1024 - 3) + "'"

    assert len(parse_filter(longest).parts) == 1
    with pytest.raises(CallError) as refused:
        parse_filter(longest + " ")
    assert refused.value.slug == "filter-too-large"


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("block_number", 995, 995),
        ("price", 995, Decimal("995.0000")),
        ("price", 0.1, Decimal("0.1000")),
        ("price", "-1.5", Decimal("-1.5000")),
        ("price", "12345678901234.5678", Decimal("12345678901234.5678")),
        ("ratio", 1, 1.0),
        ("ratio", Decimal("0.1"), 0.1),
        ("ratio", "NaN", float("nan")),
        ("ratio", "-Infinity", float("-inf")),
        ("ratio", float("inf"), float("inf")),
        ("day", "2024-01-13", date(2024, 1, 13)),
        ("seen_at", "2024-01-13 08:30", datetime(2024, 1, 13, 8, 30, tzinfo=UTC)),
        ("seen_at", "2024-01-13T08:30:00.5+05:30", datetime(2024, 1, 13, 3, 0, 0, 500_000, tzinfo=UTC)),
        ("seen_at", date(2024, 1, 13), datetime(2024, 1, 13, tzinfo=UTC)),
        ("seen_at", datetime(2024, 1, 13), datetime(2024, 1, 13, tzinfo=UTC)),  # noqa: DTZ001 - YAML has instants without a zone
    ],
)
def test_a_value_becomes_one_of_its_columns_type(column: str, value: Scalar, expected: Scalar) -> None:
    checked = check_filter(filter_of((column, "eq", value), (column, "in", (value,))), COLUMNS)

    assert repr(checked) == repr(filter_of((column, "eq", expected), (column, "in", (expected,))))


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("block_number", "995"),
        ("block_number", 995.0),
        ("block_number", Decimal("995")),
        ("block_number", True),
        ("block_number", 2**63),
        ("block_number", -(2**63) - 1),
        ("small", 2**31),
        ("name", 5),
        ("name", date(2024, 1, 13)),
        ("name", "\ud800"),
        ("flag", 1),
        ("flag", "true"),
        ("ratio", "1.5"),
        ("ratio", "nan "),
        ("ratio", 10**400),
        ("ratio", Decimal("1e400")),
        ("ratio", True),
        ("price", "1_0"),
        ("price", "NaN"),
        ("price", float("nan")),
        ("price", Decimal("NaN")),
        ("price", Decimal("Infinity")),
        ("price", Decimal("1.00001")),
        ("price", 10**14),
        ("day", "2024-02-30"),
        ("day", "20240113"),
        ("day", "2024-01-13T00:00:00Z"),
        ("day", datetime(2024, 1, 13, tzinfo=UTC)),
        ("day", 5),
        ("seen_at", "yesterday"),
        ("seen_at", "2024-01-13T08:30:00.1234567Z"),
        ("seen_at", "0001-01-01T00:00:00+05:30"),
        ("seen_at", 1705134600),
        ("tags", "x"),
    ],
)
def test_a_value_of_another_type_is_refused(column: str, value: Scalar) -> None:
    for filter in (filter_of((column, "gte", value)), filter_of((column, "in", (value,)))):
        with pytest.raises(CallError) as refused:
            check_filter(filter, COLUMNS)

        assert refused.value.slug == "filter-type"
        assert f"`{column}` has the type " in refused.value.what


def test_the_refusal_names_column_type_value_and_remedy() -> None:
    with pytest.raises(CallError) as refused:
        check_filter(filter_of(("block_number", "eq", "995")), COLUMNS)

    assert str(refused.value) == (
        "`block_number` has the type bigint, and '995' is not a value of that type.\n"
        "  Compare it with a whole number of 64 bits.  [filter-type]"
    )


@pytest.mark.parametrize(
    ("spelt", "most"),
    [
        ("long", 2**63 - 1),
        ("bigint", 2**63 - 1),
        ("integer", 2**31 - 1),
        ("int", 2**31 - 1),
        ("BIGINT", 2**63 - 1),
    ],
)
def test_types_may_be_spelt_as_spark_or_delta_does(spelt: str, most: int) -> None:
    assert check_filter(filter_of(("a", "eq", most)), {"a": spelt}) == filter_of(("a", "eq", most))
    with pytest.raises(CallError):
        check_filter(filter_of(("a", "eq", most + 1)), {"a": spelt})


def test_a_column_of_any_type_may_be_null() -> None:
    filter = filter_of(("tags", "is_null", True))

    assert check_filter(filter, COLUMNS) == filter


def test_a_column_is_found_whatever_its_case_and_keeps_its_own_name() -> None:
    assert check_filter(parse_filter("blockNumber = 1"), {"BlockNumber": "long"}) == filter_of(
        ("BlockNumber", "eq", 1)
    )


def test_a_misspelt_column_shows_the_nearest_one() -> None:
    with pytest.raises(CallError) as refused:
        check_filter(filter_of(("block_nmber", "eq", 1)), COLUMNS)

    assert (
        str(refused.value)
        == "There is no column `block_nmber`.\n  Did you mean `block_number`?  [unknown-column]"
    )


def test_a_column_like_no_other_shows_them_all_but_metadata() -> None:
    with pytest.raises(CallError) as refused:
        check_filter(filter_of(("zzz", "is_null", True)), COLUMNS)

    assert refused.value.remedy == f"The columns are {', '.join(name for name in COLUMNS if name != '_key')}."


@pytest.mark.parametrize("column", METADATA_COLUMNS)
def test_a_metadata_column_cannot_be_filtered_on(column: str) -> None:
    with pytest.raises(CallError) as refused:
        check_filter(filter_of((column, "is_null", True)), {"a": "long", column: "string"})

    assert refused.value.slug == "unknown-column"
    assert "maintained by Strandline" in refused.value.what


@pytest.mark.parametrize("word", ["in", "nin"])
def test_a_list_of_more_than_ten_thousand_values_is_refused(word: str) -> None:
    most = tuple(range(10_000))

    assert check_filter(filter_of(("small", word, most)), COLUMNS) == filter_of(("small", word, most))
    with pytest.raises(CallError) as refused:
        check_filter(filter_of(("small", word, (*most, 10_000))), COLUMNS)
    assert refused.value.slug == "filter-too-large"


def test_more_than_a_hundred_comparisons_are_refused() -> None:
    most = [("small", "neq", number) for number in range(100)]

    assert check_filter(filter_of(*most), COLUMNS) == filter_of(*most)
    with pytest.raises(CallError) as refused:
        check_filter(filter_of(*most, ("small", "neq", 100)), COLUMNS)
    assert refused.value.slug == "filter-too-large"


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (filter_of(("a", "lte", 1005), ("a", "gte", 995)), "a between 995 and 1005"),
        (filter_of(("a", "gte", 1), ("b", "in", (1, 2))), "a >= 1 AND b IN (1, 2)"),
        (filter_of(("a", "gte", 1), ("a", "lte", 2), ("a", "neq", 3)), "a >= 1 AND a <= 2 AND a <> 3"),
        (filter_of(("a", "gte", 1), ("a", "gte", 2)), "a >= 1 AND a >= 2"),
        (filter_of(("a", "gte", 1), ("a", "gte", 2), ("a", "lte", 3)), "a >= 1 AND a >= 2 AND a <= 3"),
        (filter_of(("a", "nin", tuple(range(7)))), "a NOT IN (0, 1, 2, 3, 4, ... 2 more)"),
        (filter_of(("a", "in", tuple(range(5)))), "a IN (0, 1, 2, 3, 4)"),
        (filter_of(("a b", "is_null", True), ("c", "is_null", False)), "`a b` IS NULL AND c IS NOT NULL"),
        (filter_of(("a", "eq", "it's"), ("b", "eq", True)), r"a = 'it\'s' AND b = true"),
        (filter_of(("a", "lt", date(2024, 1, 13))), "a < DATE '2024-01-13'"),
        (
            filter_of(("a", "gt", datetime(2024, 1, 13, tzinfo=UTC))),
            "a > TIMESTAMP '2024-01-13T00:00:00.000000Z'",
        ),
        (filter_of(), "every row"),
    ],
)
def test_a_filter_is_told_as_people_read_it(filter: AllOf, expected: str) -> None:
    assert describe(filter) == expected
