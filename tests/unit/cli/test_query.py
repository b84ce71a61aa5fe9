"""`query` over tables that delta-rs wrote."""

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from strandline.sql.query_names import find_tables, keep_stars
from tests.unit.cli.builders import INSTANT, ORDERS, POSITION, Shop, make_shop, order, printed

DECLARED = ["order_id", "customer", "amount", "status", "changed_at"]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = make_shop(tmp_path)
    shop.write("orders", [order("A-1", "100.00", 11, 4), order("A-2", "35.50", 13, 6, status="CANCELLED")])
    shop.write("orders", [order("B-1", "80.00", 10, 3, customer="Bilal")])
    shop.write("orders_facts", [order("A-1", "120.00", 9, 1), order("A-1", "100.00", 11, 4)])
    return shop


def test_an_answer_has_the_fields_of_the_language(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    code = shop.call(
        "query", "SELECT order_id, amount, changed_at FROM orders ORDER BY order_id", "--output", "json"
    )

    assert code == 0
    assert printed(capsys) == {
        "schema": "strandline/query/v1",
        "engine": "datafusion",
        "columns": ["order_id", "amount", "changed_at"],
        "rows": [
            ["A-1", "100.00", "2024-01-12T11:00:00.000000Z"],
            ["B-1", "80.00", "2024-01-12T10:00:00.000000Z"],
        ],
        "version": {"orders": 1},
        "published_only": [],
        "notes": [],
    }


@pytest.mark.parametrize(
    ("sql", "columns"),
    [
        ("SELECT * FROM orders", DECLARED),
        ("SELECT *, _source_at FROM orders", [*DECLARED, "_source_at"]),
        ("SELECT o.* FROM orders o WHERE o._source_position IS NOT NULL ORDER BY _source_at", DECLARED),
        ("WITH orders AS (SELECT * FROM orders WHERE NOT _deleted) SELECT * FROM orders", DECLARED),
        ("SELECT _source_position, _key FROM orders", ["_source_position", "_key"]),
    ],
)
def test_metadata_appears_only_when_asked_for_by_name(
    shop: Shop, sql: str, columns: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code = shop.call("query", sql, "--output", "json")

    answer = printed(capsys)
    assert code == 0
    assert answer["columns"] == columns
    assert len(answer["rows"]) == 2


def test_a_deleted_record_is_in_the_facts_alone(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.write("orders_facts", [order("A-2", "35.50", 13, 6, status="CANCELLED")])

    shop.call(
        "query",
        "SELECT _deleted FROM orders UNION ALL SELECT _deleted FROM orders_facts WHERE _deleted",
        "--output",
        "json",
    )

    assert sorted(printed(capsys)["rows"]) == [[False], [False], [True]]


def test_a_source_of_messages_shows_what_it_has(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    schema = pa.schema([("_payload", pa.string()), ("_source_position", POSITION), ("_ingested_at", INSTANT)])
    shop.write(
        "order_events", [{"_payload": "{}", "_source_position": {"name": "a", "part": 0, "place": 1}}], schema
    )

    shop.call("query", "SELECT * FROM order_events", "--output", "json")

    assert printed(capsys)["rows"] == [["{}", ["a", 0, 1], None]]


def test_known_at_reads_an_older_version(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.call("query", "SELECT count(*) FROM orders", "--known-at", "orders=0", "--output", "json")
    by_version = printed(capsys)
    code = shop.call("query", "SELECT count(*) FROM orders", "--known-at", "2001-01-01")
    too_early = capsys.readouterr().err
    shop.call(
        "query", "SELECT count(*) FROM orders", "--known-at", "2999-01-01T00:00:00Z", "--output", "json"
    )

    assert (by_version["rows"], by_version["version"]) == ([[1]], {"orders": 0})
    assert code == 2
    assert "[not-known-then]" in too_early
    assert printed(capsys)["version"] == {"orders": 1}


@pytest.mark.parametrize(
    ("sql", "slug"),
    [
        ("SELECT * FROM ordrs", "[unknown-table]"),
        ("SELECT * FROM customer_totals", "[never-built]"),
        ("SELECT * FROM orders_quarantine", "has no table, because it has had no row so far."),
        ("SELECT nope FROM orders", "[bad-sql]"),
        ("SELECT 1/0", "[bad-sql]"),
        ("SELEC 1", "[not-a-query]"),
        ("SELECT 1; SELECT 2", "[bad-sql]"),
        ("COPY (SELECT 1) TO '/tmp/x.csv'", "[not-a-query]"),
        ("", "[not-a-query]"),
    ],
)
def test_a_wrong_query_is_one_error_of_the_caller(
    shop: Shop, sql: str, slug: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = shop.call("query", sql)

    output = capsys.readouterr()
    assert (code, output.out) == (2, "")
    assert slug in output.err
    assert len(output.err.splitlines()) == 2


def test_an_unknown_table_shows_the_nearest(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.call("query", "SELECT * FROM ordrs")

    assert "Did you mean `orders`?" in capsys.readouterr().err


def test_csv_leaves_null_empty(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.call("query", "SELECT 'a,b' AS x, NULL AS y, true AS z, 1.50::decimal(5,2) AS d", "--output", "csv")

    assert capsys.readouterr().out == 'x,y,z,d\n"a,b",,true,1.50\n'


def test_odd_values_have_their_json_form(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    sql = (
        "SELECT cast('nan' AS double), date '2024-01-13', timestamp '2024-01-13T08:30:00', "
        "named_struct('a', 1), interval '1 day'"
    )

    code = shop.call("query", sql, "--output", "json")

    assert code == 0
    assert printed(capsys)["rows"][0][:4] == ["NaN", "2024-01-13", "2024-01-13T08:30:00.000000Z", {"a": 1}]


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("select * from a join B using (x)", ("a", "b")),
        ("with a as (select * from b) select * from a", ("b",)),
        ("with a as (select * from a) select * from a", ("a",)),
        ("with recursive a as (select 1 union all select * from a) select * from a", ()),
        ("select * from (with a as (select 1) select * from a) x, b", ("b",)),
        ("explain select * from a", ("a",)),
        ('select * from "A"', ()),
        ("select a from b", ("b",)),
        ("select 'a'", ()),
        ("select from ) a from b", ("a", "b")),
    ],
)
def test_the_tables_of_a_statement_are_found(sql: str, names: tuple[str, ...]) -> None:
    assert find_tables(sql, ("a", "b")) == names


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("select * from a", "select * EXCEPT (_key) from a"),
        ("select count(*), 2 * 3 from a", "select count(*), 2 * 3 from a"),
        ("/* é * */ select x.* from a x", "/* é * */ select x.* EXCEPT (_key) from a x"),
        ("select * from a join c using (i)", "select * EXCEPT (_key) from a join c using (i)"),
        ("select * from a join b using (i)", "select * from a join b using (i)"),
        ("with a as (select 1) select * from a", "with a as (select 1) select * from a"),
    ],
)
def test_a_star_keeps_meaning_the_declared_columns(sql: str, kept: str) -> None:
    assert keep_stars(sql, {"a": ["_key"], "b": ["_key"]}) == kept


def test_a_decimal_keeps_its_scale(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.call("query", "SELECT sum(amount) FROM orders", "--output", "json")

    assert printed(capsys)["rows"] == [[str(Decimal("180.00"))]]


def test_a_star_has_the_declared_order_whatever_the_tables(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = pa.schema([*(f for f in ORDERS if f.name != "customer"), pa.field("customer", pa.string())])
    shop.write("orders_facts", [order("A-1", "1.00", 9, 1)], stored, mode="overwrite")

    shop.call("query", "SELECT * FROM orders_facts", "--output", "json")
    star = printed(capsys)["columns"]
    shop.call("history", "orders", "A-1", "--output", "json")

    assert star == DECLARED
    assert list(printed(capsys)["facts"][0]["row"]) == DECLARED


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT order_id FROM orders WHERE customer NOT IN ('Asha', NULL)", []),
        ("SELECT order_id FROM orders WHERE amount > 0 AND NULL", []),
        ("SELECT count(*) / 4 FROM orders", [[0.5]]),
        ("SELECT amount / 3 FROM orders WHERE order_id = 'A-1'", [["33.333333"]]),
        ("SELECT 1 FROM orders_facts LIMIT 1", [[1]]),
        ("SELECT concat(customer, NULL) FROM orders LIMIT 0", []),
        ("SELECT Order_ID FROM Orders ORDER BY AMOUNT LIMIT 1", [["B-1"]]),
    ],
)
def test_a_query_means_what_spark_means(
    shop: Shop, sql: str, rows: list[list[object]], capsys: pytest.CaptureFixture[str]
) -> None:
    shop.call("query", sql, "--output", "json")

    assert printed(capsys)["rows"] == rows


@pytest.mark.parametrize(
    "sql",
    ["SELECT sum(v) FROM (SELECT 9223372036854775807 AS v UNION ALL SELECT 1) q", "SELECT 2147483647 + 1"],
)
def test_an_overflow_is_an_error(shop: Shop, sql: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert shop.call("query", sql) == 2
    assert "[bad-sql]" in capsys.readouterr().err


def test_what_may_differ_from_spark_is_told_beside_the_answer(
    shop: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    sql = "SELECT initcap(customer) FROM orders"

    shop.call("query", sql, "--output", "json")
    notes = printed(capsys)["notes"]
    shop.call("query", sql, "--output", "csv")
    beside = capsys.readouterr().err

    assert len(notes) == 1
    assert notes[0].startswith("`initcap` may differ from Spark's: ")
    assert beside == f"Note: {notes[0]}\n"


def test_how_datafusion_would_answer_has_no_note(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.call("query", "EXPLAIN SELECT initcap(customer) FROM orders", "--output", "json")

    assert printed(capsys)["notes"] == []
