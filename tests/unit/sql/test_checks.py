"""SQL that two runs could answer differently is refused, with what to use instead (L11)."""

import json
from pathlib import Path

import pytest

from strandline.model.errors import Place
from strandline.model.report import Report
from strandline.sql import parse
from strandline.sql.checks import check_deterministic, check_parameters, check_tables_are_named
from strandline.sql.parse import find_tables, hashed_sql, parse_query, table_name
from tests.unit.declare.builders import PROPERTY, report


def place_of(line: int) -> Place:
    return Place(file="job.sql", line=line)


def refused(sql: str) -> list[str]:
    report = Report()
    tree = parse_query(sql, place_of, report)
    assert tree is not None, report.mistakes
    check_deterministic(tree, sql, place_of, report)
    return [mistake.what.split("`")[1] for mistake in report.mistakes]


@pytest.mark.parametrize(
    ("expression", "word"),
    [
        ("now()", "now"),
        ("current_date", "current_date"),
        ("current_date()", "current_date"),
        ("curdate()", "current_date"),
        ("current_timestamp", "current_timestamp"),
        ("current_time", "current_time"),
        ("localtimestamp()", "localtimestamp"),
        ("unix_timestamp()", "unix_timestamp()"),
        ("date 'today'", "'today'"),
        ("timestamp 'now'", "'now'"),
        ("rand()", "rand"),
        ("rand(7)", "rand"),
        ("randn()", "randn"),
        ("random()", "rand"),
        ("uuid()", "uuid"),
        ("shuffle(xs)", "shuffle"),
        ("uniform(1, 2)", "uniform"),
        ("monotonically_increasing_id()", "monotonically_increasing_id"),
        ("spark_partition_id()", "spark_partition_id"),
        ("input_file_name()", "input_file_name"),
        ("current_user()", "current_user"),
        ("session_user()", "session_user"),
        ("current_database()", "current_database"),
        ("any_value(x)", "any_value"),
        ("first(x)", "first"),
        ("first(x, true)", "first"),
        ("last_value(x)", "last_value"),
        ("first_value(x) over (partition by y)", "first_value"),
        ("row_number() over (partition by y)", "row_number"),
        ("lag(x) over (partition by y)", "lag"),
        ("collect_list(x)", "collect_list"),
        ("collect_set(x)", "collect_set"),
        ("array_agg(x)", "collect_list"),
        ("array_join(collect_list(x), ',')", "collect_list"),
        ("listagg(x)", "listagg"),
        ("mode(x)", "mode"),
        ("collect_set(x) over (partition by y order by z)", "collect_set"),
        ("array_sort(collect_list(x), (a, b) -> a.n - b.n)", "collect_list"),
        ("approx_percentile(x, 0.5)", "approx_percentile"),
        ("percentile_approx(x, 0.5)", "approx_percentile"),
        ("histogram_numeric(x, 5)", "histogram_numeric"),
        ("aes_encrypt(x, y)", "aes_encrypt"),
        ("current_path()", "current_path"),
        ("java_method('java.util.UUID', 'randomUUID')", "java_method"),
    ],
)
def test_the_clock_chance_and_row_order_are_refused(expression: str, word: str) -> None:
    assert refused(f"select {expression} as a from t") == [word]


@pytest.mark.parametrize(
    "sql",
    [
        "select sort_array(collect_list(x)) from t",
        "select array_sort(collect_set(x)) from t",
        "select sort_array(collect_list(x) filter (where y > 1)) from t",
        "select size(collect_set(x)) from t",
        "select sort_array(collect_list(x) over (partition by y)) from t",
        "select first_value(x) over (partition by y order by z) from t",
        "select last(x) ignore nulls over (partition by y order by z) from t",
        "select row_number() over w from t window w as (partition by y order by z)",
        "select max_by(x, y), min(x), count(distinct x), approx_count_distinct(x) from t",
        "select mode() within group (order by x) from t",
        "select listagg(x) within group (order by x) from t",
        "select x from t order by x limit 3",
        "select unix_timestamp(x), unix_timestamp(:as_of), date '2024-01-01' from t",
        "select user, `current_time`, t.localtimestamp from t",
        "select _source_at, _ingested_at from t",
    ],
)
def test_what_has_one_answer_is_taken(sql: str) -> None:
    assert refused(sql) == []


def test_limit_and_tablesample_are_refused_wherever_they_stand() -> None:
    assert refused("select * from (select * from t limit 3) s") == ["LIMIT"]
    assert refused("with a as (select * from t tablesample (10 percent)) select * from a") == ["TABLESAMPLE"]
    assert refused("select x from t where y in (select now() from u)") == ["now"]


@pytest.mark.parametrize(
    "sql",
    [
        "",
        "-- nothing",
        "select 1; select 2",
        "insert into t select 1",
        "drop table t",
        "create table t as select 1",
        "delete from t",
        "set a = 1",
    ],
)
def test_only_one_select_is_a_job(sql: str) -> None:
    report = Report()

    assert parse_query(sql, place_of, report) is None
    assert [mistake.slug for mistake in report.mistakes] == ["sql-not-a-select"]


@pytest.mark.parametrize(
    "sql", ["select 'abc", "select a from t where (", "selec a from t", "select a from t where /* x"]
)
def test_wrong_sql_is_a_mistake_and_no_traceback(sql: str) -> None:
    report = Report()

    assert parse_query(sql, place_of, report) is None
    assert [mistake.slug for mistake in report.mistakes] == ["sql-syntax"]


@pytest.mark.parametrize(
    "sql",
    [
        "select * from identifier('item')",
        "select identifier('k') from item",
        "select * from identifier(:name)",
        "with x as (table item) select * from x",
        "select * from (table item)",
        "select (table item) as n from other",
        "select * from other join table item",
        "select * from table_changes('item', 0)",
        "select * from stream(item)",
    ],
)
def test_a_table_that_does_not_stand_there_by_name_is_refused(sql: str) -> None:
    report = Report()
    tree = parse_query(sql, place_of, report)
    assert tree is not None

    check_tables_are_named(tree, sql, place_of, report)

    assert {mistake.slug for mistake in report.mistakes} == {"hidden-table"}


def test_rows_made_of_values_and_quoted_names_hide_nothing() -> None:
    report = Report()
    for sql in (
        "select * from range(3)",
        "select `table`, t.table from t",
        "select * from t lateral view explode(xs) e as x",
    ):
        tree = parse_query(sql, place_of, report)
        assert tree is not None
        check_tables_are_named(tree, sql, place_of, report)

    assert not report.mistakes


def test_a_comment_that_goes_on_in_the_next_line_for_spark_alone_is_refused() -> None:
    report = Report()

    assert parse_query("select k, v -- of the key \\\n, v + 1 as w\nfrom t", place_of, report) is None
    assert [mistake.slug for mistake in report.mistakes] == ["sql-syntax"]


def test_a_table_named_in_a_hint_is_not_read() -> None:
    tree = parse_query("select /*+ broadcast(b) */ b.x from a join u b on a.k = b.k", place_of, Report())
    assert tree is not None

    assert sorted(table_name(table) for table in find_tables(tree)) == ["a", "u"]


def test_names_of_ctes_are_no_tables_where_they_can_be_seen() -> None:
    sql = """
        with a as (select * from a join b),
             c as (select * from a, d)
        select * from c, range(10), (with e as (select 1) select * from e) x, e
        where exists (select 1 from f)
    """
    tree = parse_query(sql, place_of, Report())
    assert tree is not None

    assert sorted(table_name(table) for table in find_tables(tree)) == ["a", "b", "d", "e", "f"]


def test_parameters_come_from_config_or_are_as_of() -> None:
    report = Report()
    sql = "select :as_of, :codec, :codek, :parts from t"
    tree = parse_query(sql, place_of, report)
    assert tree is not None

    assert check_parameters(tree, {"codec": "zstd", "parts": [1]}, sql, place_of, report)
    assert [mistake.slug for mistake in report.mistakes] == ["unknown-parameter", "parameter-not-a-value"]
    assert "Did you mean `codec`?" in str(report.mistakes[0])


def test_sql_with_keywords_in_small_letters_is_hashed_without_parsing_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(parse, "_find_fields", lambda text: pytest.fail("parsed"))

    assert hashed_sql("select Shop, sum(n) as N from T") == "select Shop , sum ( n ) as N from T"


def test_sql_is_hashed_without_comments_layout_and_the_case_of_keywords_and_functions() -> None:
    one = hashed_sql("select sum(A), 'x Y' -- why\nfrom T /* which */ where A > 1;")
    other = hashed_sql("SELECT SUM (A),\n  'x Y'\nFROM T\nWHERE A > 1")

    assert one == other


@pytest.mark.parametrize(
    "sql",
    [
        "select a, 'x y' from t where a > 1",
        "select a, 'x Y' from t where a > 2",
        "select a, `x Y` from t where a > 1",
        "select A, 'x Y' from t where a > 1",
    ],
)
def test_sql_that_means_something_else_is_hashed_otherwise(sql: str) -> None:
    assert hashed_sql(sql) != hashed_sql("select a, 'x Y' from t where a > 1")


@pytest.mark.parametrize("word", ["amount", "date", "last", "row", "end"])
def test_the_case_of_a_field_counts_for_it_reaches_the_json_that_is_made_of_it(word: str) -> None:
    one, other = (
        hashed_sql(f"select id, to_json(struct(a as {name})) as j from t") for name in (word, word.title())
    )

    assert one != other


@pytest.mark.parametrize(
    "sql",
    ["select '${env:RATE}' as x from property", "select ${rate} as x from property", "select 1 --${x}\n"],
)
def test_what_would_be_filled_in_from_outside_is_refused(sql: str, tmp_path: Path) -> None:
    yaml = (
        PROPERTY
        + f"jobs:\n  - {{name: j, input_datasets: [property], output_dataset: j, sql: {json.dumps(sql)}}}\n"
    )

    reported = report(tmp_path, yaml)

    assert "[substitution]" in reported
    assert "`config:`" in reported


@pytest.mark.parametrize("word", ["Order", "End", "All", "Row", "Left", "Current"])
def test_a_field_that_is_called_like_a_keyword_keeps_its_case(word: str) -> None:
    assert hashed_sql(f"{word} > 1") != hashed_sql(f"{word.lower()} > 1")
    assert hashed_sql(f"{word} > 1 AND b IS NULL") == hashed_sql(f"{word} > 1 and b is null")
