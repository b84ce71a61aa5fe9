"""What a variable may be: an expression of aggregates whose value depends on the set of rows alone."""

import pytest

from strandline.model.errors import Place
from strandline.model.report import Report
from strandline.sql.leaves import cut_select
from strandline.sql.variables import find_merge, read_select


def read(select: str) -> tuple[list[str], list[str]]:
    """The columns that a select reads, and the slugs of what is wrong with it."""
    report = Report()
    found = read_select(select, "it", lambda line: Place(file="f", line=line), report)
    return [name.first for name in found.names] if found else [], [m.slug for m in report.mistakes]


@pytest.mark.parametrize(
    ("select", "columns"),
    [
        ("count(*)", []),
        ("sum(a) / nullif(count(distinct b), 0)", ["a", "b"]),
        ("sort_array(collect_set(a))", ["a"]),
        ("transform(sort_array(collect_set(a)), e -> e + 1)", ["a"]),
        ("mode() WITHIN GROUP (ORDER BY a)", ["a"]),
        ("latest(a, 3)", ["a"]),
        ("earliest(a) FILTER (WHERE b > 1)", ["a", "b"]),
        ("max_by(a, b) + max_by(a, b)", ["a", "b", "a", "b"]),
        ("every(a) OR some(b)", ["a", "b"]),
    ],
)
def test_an_expression_of_aggregates_is_accepted(select: str, columns: list[str]) -> None:
    assert read(select) == (columns, [])


@pytest.mark.parametrize(
    ("select", "slug"),
    [
        ("1", "variable-select"),
        ("a", "variable-select"),
        ("sum(a) + b", "variable-select"),
        ("unknown(a)", "variable-select"),
        ("hll_sketch_agg(a)", "variable-select"),
        ("sum(max(a))", "variable-select"),
        ("sum(a) OVER (ORDER BY b)", "variable-select"),
        ("sum(a) + (SELECT 1)", "variable-select"),
        ("count(struct(*))", "variable-select"),
        ("latest()", "variable-select"),
        ("latest(a, 0)", "variable-select"),
        ("latest(a, -1)", "variable-select"),
        ("earliest(a, b)", "variable-select"),
        ("latest(a, 1, 2)", "variable-select"),
        ("latest(DISTINCT a)", "variable-select"),
        ("max_by(a, b, 3)", "variable-select"),
        ("min_by(a)", "variable-select"),
        ("count(*) + bitmap_construct_agg(a)", "variable-select"),
        ("count(*) + rank(a)", "variable-select"),
        ("count()", "variable-select"),
        ("avg(DISTINCT)", "variable-select"),
        ("percentile(a)", "variable-select"),
        ("percentile_cont(0.5)", "variable-select"),
        ("first(a)", "nondeterministic"),
        ("last(a)", "nondeterministic"),
        ("any_value(a)", "nondeterministic"),
        ("collect_list(a)", "nondeterministic"),
        ("approx_percentile(a, 0.5)", "nondeterministic"),
        ("count(*) + rand()", "nondeterministic"),
        ("max(a) > current_timestamp()", "nondeterministic"),
        ("sum(", "sql-syntax"),
    ],
)
def test_anything_else_is_refused(select: str, slug: str) -> None:
    assert read(select) == ([], [slug])


@pytest.mark.parametrize(
    ("select", "merge"),
    [
        ("count(*)", "sum"),
        ("sum(a)", "sum"),
        ("min(a)", "min"),
        ("max(a)", "max"),
        ("avg(a)", None),
        ("count(distinct a)", None),
        ("sum(a) + 1", None),
        ("latest(a)", None),
    ],
)
def test_what_merge_must_say(select: str, merge: str | None) -> None:
    assert find_merge(cut_select(select)) == merge
