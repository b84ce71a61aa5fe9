"""A select is cut at its aggregates, and what is between them stays as it is written."""

import pytest

from strandline.sql.leaves import Leaf, cut_select


@pytest.mark.parametrize(
    ("select", "leaves"),
    [
        ("count(*)", [Leaf(function="count", arguments=("*",))]),
        ("COUNT ( DISTINCT a , b )", [Leaf(function="count", arguments=("a", "b"), distinct=True)]),
        ("max_by(a, struct(b, c))", [Leaf(function="max_by", arguments=("a", "struct(b, c)"))]),
        (
            "sum(a) FILTER (WHERE b > (1 + 2)) / count(c)",
            [
                Leaf(function="sum", arguments=("a",), where="b > (1 + 2)"),
                Leaf(function="count", arguments=("c",)),
            ],
        ),
        (
            "percentile_cont(0.5) WITHIN GROUP (ORDER BY a DESC) FILTER (WHERE b)",
            [
                Leaf(
                    function="percentile_cont",
                    arguments=("0.5",),
                    within="WITHIN GROUP (ORDER BY a DESC)",
                    where="b",
                )
            ],
        ),
        ("sum(element_at(a, 1)[2])", [Leaf(function="sum", arguments=("element_at(a, 1)[2]",))]),
        ("concat('max(', max(a))", [Leaf(function="max", arguments=("a",))]),
        ("coalesce(a, 1)", []),
        ("sum", []),
    ],
)
def test_the_aggregates_of_a_select(select: str, leaves: list[Leaf]) -> None:
    assert list(cut_select(select).leaves) == leaves


@pytest.mark.parametrize(
    ("select", "filled"),
    [
        ("sum(a) / nullif(count(*), 0)", "<sum> / nullif(<count>, 0)"),
        ("count(*) FILTER (WHERE a) + 1", "<count> + 1"),
        ("concat('it''s ', max(a))  -- a comment", "concat('it''s ', <max>)  -- a comment"),
        ("max(a).b", "<max>.b"),
    ],
)
def test_the_rest_of_a_select_stays_as_it_is_written(select: str, filled: str) -> None:
    assert cut_select(select).fill(lambda leaf: f"<{leaf.function}>") == filled


def test_a_select_of_one_aggregate_alone_is_known() -> None:
    assert cut_select(" sum(a) ").only == Leaf(function="sum", arguments=("a",))
    assert cut_select("sum(a) + 1").only is None
    assert cut_select("sum(a) + sum(b)").only is None
