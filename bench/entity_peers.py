"""The engine's peers in the entity benchmark. Each reads the same files and writes the same rows."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import duckdb
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from .comparators import newest, read_facts
from .profiles import Aggregate
from .register import KEY, ORDER, THREADS

RECENT = timedelta(days=90)
SPARK_TIME, DUCKDB_TIME = "TIMESTAMP '{}'", "TIMESTAMPTZ '{}'"


def recompute_with_pyspark(
    session: SparkSession, data: Path, variables: Sequence[Aggregate], as_of: datetime, target: Path
) -> None:
    """Every variable of every user, from all events; overwrite a Delta table."""
    columns = [F.expr(_write(v, as_of, SPARK_TIME)).alias(v.name) for v in variables]
    rows = session.read.parquet(str(data)).groupBy("user_id").agg(*columns)
    rows.write.format("delta").mode("overwrite").save(str(target))


def _write(variable: Aggregate, as_of: datetime, literal: str) -> str:
    conditions = [f"page >= {variable.least_page}"] if variable.least_page else []
    if variable.days is not None:
        start, end = _literals(as_of, timedelta(days=variable.days), literal)
        conditions.append(f"sent_at >= {start} AND sent_at < {end}")
    only = f" FILTER (WHERE {' AND '.join(conditions)})" if conditions else ""
    text = f"{variable.select}{only}"
    # DuckDB's sums of whole numbers are longer than those of Parquet.
    return f"CAST({text} AS BIGINT)" if variable.select == "sum(points)" else text


def _literals(as_of: datetime, length: timedelta, literal: str) -> tuple[str, str]:
    return (
        literal.format((as_of - length).strftime("%Y-%m-%d %H:%M:%S+00:00")),
        literal.format(as_of.strftime("%Y-%m-%d %H:%M:%S+00:00")),
    )


def recompute_with_duckdb(data: Path, variables: Sequence[Aggregate], as_of: datetime, target: Path) -> None:
    """The same, written as Parquet. Distinct values in two steps: when each was seen last, then a count."""
    simple = [v for v in variables if v.function != "distinct"]
    seen = [v for v in variables if v.function == "distinct"]
    select = ", ".join(f"{_write(v, as_of, DUCKDB_TIME)} AS {v.name}" for v in simple)
    sql = f"SELECT user_id, {select} FROM '{data}/*.parquet' GROUP BY user_id"
    if seen:
        start, end = _literals(as_of, timedelta(days=max(v.days or 0 for v in seen)), DUCKDB_TIME)
        starts = {v.name: _literals(as_of, timedelta(days=v.days or 0), DUCKDB_TIME)[0] for v in seen}
        counts = ", ".join(
            f"count(*) FILTER (WHERE last >= {since}) AS {name}" for name, since in starts.items()
        )
        zeros = ", ".join(f"coalesce({v.name}, 0) AS {v.name}" for v in seen)
        sql = f"""
            SELECT a.*, {zeros} FROM ({sql}) a LEFT JOIN (
                SELECT user_id, {counts} FROM (
                    SELECT user_id, page, max(sent_at) AS last FROM '{data}/*.parquet'
                    WHERE sent_at >= {start} AND sent_at < {end} GROUP BY user_id, page
                ) GROUP BY user_id
            ) d USING (user_id)"""
    _copy(sql, target)


def _copy(sql: str, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with duckdb.connect(config={"threads": THREADS, "memory_limit": "4GB"}) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(f"SET temp_directory = '{target.parent / 'duckdb_temporary'}'")
        connection.execute(f"COPY ({sql}) TO '{target}' (FORMAT parquet)")


PLACES = ("tenant", "postal_code")
OF_PLACES = {
    "live": "count(registration_number)",
    "recent": "count(registration_number) FILTER (WHERE snapshot_at >= {start} AND snapshot_at < {end})",
    "kinds": "count(DISTINCT property_type)",
    "last_change": "max(snapshot_seq)",
}


def recompute_places_with_pyspark(session: SparkSession, facts: Path, as_of: datetime, target: Path) -> None:
    """The newest fact of each registration, then the variables of each place that a fact has named."""
    rows = read_facts(session, facts)
    start, end = _literals(as_of, RECENT, SPARK_TIME)
    columns = [F.expr(text.format(start=start, end=end)).alias(name) for name, text in OF_PLACES.items()]
    live = newest(rows).where("op <> 'D'").groupBy(*PLACES).agg(*columns)
    named = rows.select(*PLACES).where("postal_code IS NOT NULL").distinct()
    made = named.join(live, list(PLACES), "left").fillna(0, ["live", "recent", "kinds"])
    made.write.format("delta").mode("overwrite").save(str(target))


def recompute_places_with_duckdb(facts: Path, as_of: datetime, target: Path) -> None:
    start, end = _literals(as_of, RECENT, DUCKDB_TIME)
    columns = ", ".join(f"{text.format(start=start, end=end)} AS {name}" for name, text in OF_PLACES.items())
    order = f"QUALIFY row_number() OVER (PARTITION BY {', '.join(KEY)} ORDER BY {ORDER} DESC) = 1"
    _copy(
        f"""
        SELECT n.tenant, n.postal_code, coalesce(live, 0) AS live, coalesce(recent, 0) AS recent,
            coalesce(kinds, 0) AS kinds, last_change
        FROM (SELECT DISTINCT tenant, postal_code FROM '{facts}/*.parquet' WHERE postal_code IS NOT NULL) n
        LEFT JOIN (
            SELECT tenant, postal_code, {columns}
            FROM (SELECT * FROM (SELECT * FROM '{facts}/*.parquet' {order}) WHERE op <> 'D')
            GROUP BY tenant, postal_code
        ) USING (tenant, postal_code)""",
        target,
    )


def fingerprint(rows: DataFrame, columns: Sequence[str]) -> tuple[int, int]:
    """How many rows, and a hash of all of them that does not depend on their order."""
    typed = [
        F.col(c).cast("decimal(30,2)") if c.startswith("spent") or c == "v" else F.col(c) for c in columns
    ]
    texts = [F.coalesce(column.cast("string"), F.lit("none")) for column in typed]
    row = rows.agg(F.count(F.lit(1)).alias("rows"), F.bit_xor(F.xxhash64(*texts)).alias("hash")).first()
    assert row is not None
    return row["rows"], row["hash"]
