"""Queries rewritten to mean what Spark means, and notes on what is not."""

import re
from pathlib import Path

import pytest

from strandline.sql.dialect import rewrite
from strandline.sql.dialect.aggregates import AGGREGATES, NEIGHBOURS, RANKING
from strandline.sql.dialect.functions import APPROXIMATE, FUNCTIONS
from strandline.sql.dialect.notes import DIFFERENCES
from strandline.sql.dialect.types import BIGINT, DOUBLE, INT, STRING, SparkType, delta_type

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "query.md"
TABLES: dict[str, list[tuple[str, SparkType | None]]] = {
    "t": [
        ("id", INT),
        ("n", BIGINT),
        ("x", DOUBLE),
        ("s", STRING),
        ("Mixed", INT),
        ("arr", SparkType("array")),
        ("odd", None),
    ],
    "u": [("id", INT), ("n", BIGINT)],
}


def constructs(sql: str) -> list[str]:
    return [note.construct for note in rewrite(sql, TABLES).notes]


@pytest.mark.parametrize(
    ("sql", "run"),
    [
        ("select id from t order by n", 'SELECT "id" FROM "t" AS "t" ORDER BY "n" NULLS FIRST'),
        ("select id from t order by n desc", 'SELECT "id" FROM "t" AS "t" ORDER BY "n" DESC NULLS LAST'),
        ("select id from t order by n nulls last", 'SELECT "id" FROM "t" AS "t" ORDER BY "n"'),
        ("select MIXED from T", 'SELECT "Mixed" FROM "t" AS "t"'),
        ("select a.id from t A where a.n = 5", 'SELECT "A"."id" FROM "t" AS A WHERE ("A"."n" = 5)'),
        (
            "select id from t where s not in ('b', null)",
            'SELECT "id" FROM "t" AS "t" '
            """WHERE (NOT (((("s") IN ('b')) OR CAST(NULL AS BOOLEAN)))) IS TRUE""",
        ),
        ("select s not like 'a%' as k from t", """SELECT NOT ("s" LIKE 'a%') AS k FROM "t" AS "t\""""),
        ("select id % 2 from t", 'SELECT (CAST("id" AS INT) % CAST(2 AS INT)) AS "id % 2" FROM "t" AS "t"'),
    ],
)
def test_a_query_is_rewritten(sql: str, run: str) -> None:
    assert (rewrite(sql, TABLES).sql, rewrite(sql, TABLES).notes) == (run, ())


@pytest.mark.parametrize(
    ("sql", "construct"),
    [
        ("select nobody_knows(id) from t", "nobody_knows"),
        ("select sum(x) from t", "sum"),
        ("select cast(x as string) from t", "CAST(... AS STRING)"),
        ("select cast(s as date) from t", "CAST(... AS DATE)"),
        ("select odd / 2 from t", "/"),
        ("select odd = 1 from t", "="),
        ("select id from t order by arr", "ORDER BY"),
        ("select distinct arr from t", "DISTINCT"),
        ("select arr[1] from t", "BRACKET"),
        ("select id from t union select s from t", "UNION"),
        ("select date_format(s, 'yyyy') from t", "date_format"),
        ("select regexp_replace(s, '\\d', 'x') from t", "regexp_replace"),
        ("select s like 'a\\_' from t", "LIKE"),
        ("select id from t natural join u", "NATURAL JOIN"),
        ("select * from t join u using (n)", "SELECT *"),
        ("select id from elsewhere", "elsewhere"),
        ('select "id" from t', '"..."'),
        ("with recursive q as (select 1 as a union all select a from q) select a from q", "WITH RECURSIVE"),
        ("select id from (select id from t limit 1) q", "LIMIT"),
        (
            "select sum(id) over (order by n range between 1 preceding and current row) from t",
            "RANGE BETWEEN",
        ),
    ],
)
def test_what_may_differ_has_a_note(sql: str, construct: str) -> None:
    assert construct in constructs(sql)


@pytest.mark.parametrize(
    "sql",
    ["select [1, 2]", "select id from t qualify id = 1", "select from where", "select 1 ~ 2", "values (1)"],
)
def test_what_is_not_understood_runs_as_it_is_written(sql: str) -> None:
    asked = rewrite(sql, TABLES)

    assert asked.sql == sql
    assert "runs as it is written" in str(asked.notes[0])


def test_a_limit_without_an_order_has_a_note_only_when_it_may_cut() -> None:
    asked = rewrite("select id from t limit 3", TABLES)

    assert asked.notes_for(2) == ()
    assert [note.construct for note in asked.notes_for(3)] == ["LIMIT"]
    assert rewrite("select id from t order by id limit 3", TABLES).notes_for(3) == ()


def test_a_query_that_reads_no_column_names_one_so_that_its_limit_holds() -> None:
    assert '"t"."id" IS NULL' in rewrite("select 1 from t limit 2", TABLES).sql


def test_the_documentation_lists_the_functions_that_are_equal() -> None:
    listed = PAGE.read_text().partition("and these functions:")[2].partition("Anything else")[0]

    assert set(re.findall(r"`(\w+)`", listed)) == {*FUNCTIONS, *AGGREGATES, *NEIGHBOURS, *RANKING}
    assert not set(FUNCTIONS) & set(APPROXIMATE)
    assert set(DIFFERENCES) & set(FUNCTIONS) == {"date_format", "regexp_replace"}, (
        "equal for some arguments only"
    )


def test_the_types_of_a_table_are_read_from_its_schema() -> None:
    assert delta_type("long") == BIGINT
    assert delta_type("decimal(12,2)") == SparkType("decimal", 12, 2)
    assert delta_type({"type": "struct", "fields": [{"name": "a", "type": "integer"}]}) == SparkType(
        "struct", fields=(("a", INT),)
    )
