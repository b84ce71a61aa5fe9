"""The names in an expression over one row."""

import pytest

from strandline.model.errors import Place
from strandline.model.report import Report
from strandline.sql.parse import parse_expression
from strandline.sql.row_names import find_row_names, find_stars


def names_in(text: str) -> set[str]:
    tree = parse_expression(text, "it", lambda line: Place(file="f", line=line), Report())
    assert tree is not None
    return {str(name) for name in find_row_names(tree)}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Quantity * Price.PRICE", {"quantity", "price.price"}),
        ("price.detail.amount", {"price.detail"}),
        ("`price`.`the day` = date", {"price.the day", "date"}),
        ("transform(price.list, x -> x.a + quantity)", {"price.list", "quantity"}),
        ("aggregate(price.list, 0, (sum, x) -> sum + x)", {"price.list"}),
        ("dateadd(MONTH, 1, date) > date '2024-01-01'", {"date"}),
        ("months_between(date, price.day)", {"date", "price.day"}),
        ("struct(quantity as month)", {"quantity"}),
        ("CASE WHEN a THEN b ELSE c.d END", {"a", "b", "c.d"}),
        ("price.*", set()),
    ],
)
def test_columns_are_found_and_arguments_and_units_are_not(text: str, names: set[str]) -> None:
    assert names_in(text) == names


def test_a_star_stands_for_columns_unless_it_is_counted() -> None:
    def stars(text: str) -> int:
        tree = parse_expression(text, "it", lambda line: Place(file="f", line=line), Report())
        assert tree is not None
        return len(list(find_stars(tree)))

    assert [stars(text) for text in ("struct(*)", "struct(price.*)", "count(*)", "a * b")] == [1, 1, 0, 0]
