"""What counts as proved, case by case."""

import pytest
import sqlglot
from sqlglot import exp

from strandline.model.project import Calendar, Partitioning, Unit
from strandline.sql.known_columns import Known
from strandline.sql.partition_expressions import find_steps
from strandline.sql.proof import Analysis, Table, analyse, prove
from tests.unit.sql.proof_cases import CASES, KEY, TABLES


def analysed(sql: str) -> Analysis:
    tree = sqlglot.parse_one(sql, dialect="spark")
    assert isinstance(tree, exp.Query)
    return analyse(tree, KEY, TABLES)


@pytest.mark.parametrize(("sql", "proved"), CASES.values(), ids=CASES.keys())
def test_an_input_is_proved_exactly_where_the_sql_shows_it(sql: str, proved: str) -> None:
    analysis = analysed(sql)

    assert set(analysis.proved) == set(proved.split())


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("SELECT tenant_id, rate AS property_id FROM rates", "it has no column `property_id`"),
        (
            "SELECT tenant_id, max(property_id) AS property_id FROM unit GROUP BY tenant_id",
            "a GROUP BY lacks `property_id`",
        ),
        ("SELECT *, sum(size) OVER () AS s FROM unit", "a window is not partitioned by `tenant_id`"),
        (
            "SELECT upper(tenant_id) AS tenant_id, property_id FROM unit",
            "a SELECT does not pass `tenant_id` on unchanged",
        ),
        ("SELECT * FROM unit ORDER BY size LIMIT 1", "`LIMIT` takes the first rows over all keys"),
    ],
)
def test_an_input_that_is_not_proved_has_a_reason(sql: str, reason: str) -> None:
    analysis = analysed(sql)

    assert reason in analysis.reasons.values()


def test_types_not_declared_alike_are_the_reason_said() -> None:
    analysis = analysed(
        "SELECT p.tenant_id, p.property_id FROM property p JOIN odd o USING (tenant_id, property_id)"
    )

    assert (
        analysis.reasons["odd"]
        == "it is joined on `property_id`, which is not declared to be of one type on both sides"
    )


def test_the_columns_of_the_output_are_told_with_their_types() -> None:
    analysis = analysed(
        "SELECT p.*, u.size AS unit_size, p.area + 1 AS more FROM property p "
        "JOIN unit u USING (tenant_id, property_id)"
    )

    assert analysis.output.names == frozenset(
        {"tenant_id", "property_id", "status", "area", "unit_size", "more"}
    )
    assert dict(analysis.output.types)["unit_size"] == "bigint"
    assert dict(analysis.output.types)["more"] is None


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT p.statu FROM property p",
        "SELECT statu FROM property",
        "SELECT tenant_id FROM property WHERE statu = 'x'",
        "SELECT p.tenant_id FROM property p JOIN unit u ON p.tenant_id = u.statu",
        "WITH a AS (SELECT tenant_id FROM property) SELECT a.statu FROM a",
        "SELECT tenant_id FROM property p WHERE EXISTS (SELECT 1 FROM unit u WHERE u.statu = p.tenant_id)",
    ],
)
def test_a_column_that_is_none_is_found(sql: str) -> None:
    analysis = analysed(sql)

    assert [column.name for column, _ in analysis.unknown_columns] == ["statu"]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT area + 1 AS more, more + 1 AS most FROM property GROUP BY more ORDER BY most",
        "SELECT _source_at, p._ingested_at FROM property p",
        "SELECT transform(split(status, ','), x -> x || tenant_id) AS parts FROM property",
        "SELECT part FROM property LATERAL VIEW explode(split(status, ',')) e AS part",
        "SELECT anything, w.something FROM wide w",
        "SELECT * FROM property p WHERE EXISTS (SELECT 1 FROM unit WHERE size = area AND p.status = 'x')",
        (
            "SELECT p.tenant_id, l.m FROM property p "
            "JOIN LATERAL (SELECT max(size) AS m FROM unit u WHERE u.tenant_id = p.tenant_id) l"
        ),
        (
            "SELECT date_add(DAY, 1, status), extract(year FROM status), status.field, interval 3 days "
            "FROM property"
        ),
        "SELECT x FROM VALUES (1), (2) AS v(x)",
    ],
)
def test_a_column_that_may_be_one_is_left_alone(sql: str) -> None:
    analysis = analysed(sql)

    assert analysis.unknown_columns == ()


def test_what_is_not_understood_is_named() -> None:
    analysis = analysed("SELECT p.*, look_up(area) AS x FROM property p")

    assert analysis.reasons["property"] == "the SQL contains `LOOK_UP(area)`, which cannot be followed"


def test_the_columns_of_the_output_are_in_order() -> None:
    analysis = analysed("SELECT u.size AS n, p.* FROM property p JOIN unit u USING (tenant_id, property_id)")

    assert analysis.output.order == ("n", "tenant_id", "property_id", "status", "area")
    assert analysed("SELECT * FROM wide").output.order == ()


@pytest.mark.parametrize(
    ("sql", "proved"),
    [
        ("SELECT seen_at, local_date(at) AS day, count(*) AS n FROM a GROUP BY 1, 2", "a"),
        (
            "SELECT local_date(seen_at) AS seen_at, local_date(at) AS day, count(*) AS n FROM a "
            "GROUP BY 1, 2",
            "",
        ),
        (
            "SELECT a.* FROM a LEFT JOIN b ON a.seen_at = b.seen_at AND local_date(a.at) = local_date(b.at)",
            "a b",
        ),
        (
            "SELECT a.* FROM a LEFT JOIN b ON local_date(a.seen_at) = local_date(b.seen_at) AND a.at = b.at",
            "a",
        ),
        ("SELECT a.* FROM a LEFT JOIN b ON a.seen_at = b.seen_at AND local_date(a.at) = b.on_day", "a"),
        (
            "SELECT a.* FROM a LEFT JOIN b ON a.seen_at = b.seen_at AND local_date(a.at) = local_month(b.at)",
            "a",
        ),
    ],
)
def test_what_tells_partitions_apart_speaks_of_the_column_of_the_partition_alone(
    sql: str, proved: str
) -> None:
    types = {"at": "timestamp", "seen_at": "timestamp", "on_day": "date"}
    tables = {
        name: Table(known=Known(types=types, complete=True, names=frozenset(types)), by=("seen_at", "at"))
        for name in "ab"
    }
    tree = sqlglot.parse_one(sql, dialect="spark")
    assert isinstance(tree, exp.Query)

    steps = find_steps(
        Partitioning(column="at", unit=Unit.DAY, by=("seen_at",)), Calendar(timezone="America/New_York")
    )
    analysis = analyse(tree, ("seen_at", "at"), tables, by_name=False, steps=steps)

    assert set(analysis.proved) == set(proved.split())


def test_what_is_proved_beside_an_input_that_is_not_is_asked_for_too() -> None:
    on = "p.tenant_id = u.tenant_id AND p.property_id = u.property_id"
    sql = (
        f"SELECT p.*, u.size FROM property p LEFT JOIN unit u ON {on} "
        "CROSS JOIN (SELECT max(area) AS m FROM property) x"
    )
    tree = sqlglot.parse_one(sql, dialect="spark")
    assert isinstance(tree, exp.Query)

    analysis = prove(tree, KEY, TABLES, ("property", "unit"))

    assert set(analyse(tree, KEY, TABLES).proved) == {"unit"}
    assert analysis.proved == frozenset()
    assert analysis.reasons["property"] == "it is aggregated over all keys at once"
    assert analysis.reasons["unit"] == "it is joined without `=` on `tenant_id` to an input that holds it"
