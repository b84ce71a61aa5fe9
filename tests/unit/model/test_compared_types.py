"""Types whose values Spark compares as they are. Others are refused where a reference is looked up."""

import pytest

from strandline.model.typed_values import are_compared_exactly


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("string", "string"),
        ("struct<a:int>", "struct<a:int>"),
        ("int", "bigint"),
        ("bigint", "decimal(38,18)"),
        ("decimal(5,2)", "decimal(38,10)"),
        ("int", "double"),
        ("float", "double"),
    ],
)
def test_one_value_is_equal_to_one_value(one: str, other: str) -> None:
    assert are_compared_exactly(one, other)
    assert are_compared_exactly(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("string", "int"),  # '1' and '01' are both 1
        ("string", "date"),
        ("date", "timestamp"),
        ("timestamp", "timestamp_ntz"),
        ("bigint", "double"),  # 2**53 and 2**53 + 1 are one double
        ("decimal(10,2)", "double"),
        ("decimal(38,0)", "decimal(28,10)"),  # 48 digits: Spark rounds 1.4 to 1
        ("bigint", "decimal(38,19)"),
        ("boolean", "int"),
        ("binary", "string"),
    ],
)
def test_values_would_be_rounded_or_parsed(one: str, other: str) -> None:
    assert not are_compared_exactly(one, other)
    assert not are_compared_exactly(other, one)
