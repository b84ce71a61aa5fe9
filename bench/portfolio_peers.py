"""The engine's peers in the portfolio benchmark. Each reads the same files and writes the same rows."""

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import to_arrow_schema

from strandline.lake.python_rows import map_in_arrow

from .holdings import KEY
from .portfolio_engine import COLUMNS, FIELDS
from .register import THREADS

ROW = (*KEY, "date", *FIELDS, *COLUMNS)
_MONEY = "decimal(18,2)"
_HISTORY = (
    "portfolio_id string, security_id string, date date,"
    " quantity decimal(16,4), cost_basis decimal(38,8), realised decimal(38,8)"
)


def newest(session: SparkSession, data: Path, source: str, *key: str) -> DataFrame:
    rows = session.read.parquet(str(data / source))
    by_seq = Window.partitionBy(*key).orderBy(F.col("seq").desc())
    return rows.withColumn("_nth", F.row_number().over(by_seq)).where("_nth = 1").drop("_nth", "seq")


def recompute_with_pyspark(
    session: SparkSession, data: Path, fold: Path, last_on: date, target: Path
) -> None:
    """Fold every transaction and value every date; overwrite two Delta tables.

    The fold streams over sorted partitions, which takes a quarter of the time of a group per key.
    """
    transactions = newest(session, data, "transactions", "transaction_id")
    ordered = transactions.repartition(*KEY).sortWithinPartitions(*KEY, "transaction_on", "transaction_id")
    schema = session.createDataFrame([], _HISTORY).schema
    fold_partition = _Fold(str(fold), to_arrow_schema(schema).serialize().to_pybytes())
    history = map_in_arrow(ordered, fold_partition, schema)
    history = history.withColumns({name: F.col(name).cast(_MONEY) for name in ("cost_basis", "realised")})
    history.write.format("delta").mode("overwrite").save(str(target / "history"))
    history = session.read.format("delta").load(str(target / "history"))
    value_with_pyspark(session, data, history, last_on).write.format("delta").mode("overwrite").save(
        str(target / "valued")
    )


def value_with_pyspark(session: SparkSession, data: Path, history: DataFrame, last_on: date) -> DataFrame:
    calendar = session.read.parquet(str(data / "business_dates")).select(F.col("business_on").alias("date"))
    calendar = F.broadcast(calendar.where(F.col("date") <= F.lit(last_on)).distinct())
    securities = F.broadcast(newest(session, data, "securities", "security_id"))
    prices = newest(session, data, "market_prices", "security_id", "price_on")
    prices = lay_out(prices.withColumn("date", F.col("price_on")), ["security_id"], calendar, last_on)
    rates = newest(session, data, "fx_rates", "currency", "rate_on").withColumnRenamed("rate_on", "date")
    rates = lay_out(rates, ["currency"], calendar, last_on)
    cells = lay_out(history, [*KEY], calendar, last_on)
    cells = cells.join(securities, "security_id")
    cells = cells.join(F.broadcast(prices), ["security_id", "date"], "left")
    return value(cells.join(F.broadcast(rates), ["currency", "date"]))


def lay_out(rows: DataFrame, by: list[str], calendar: DataFrame, last_on: date) -> DataFrame:
    """Each row on every business date from its own to before the next of the same key."""
    following = F.lead("date").over(Window.partitionBy(*by).orderBy("date"))
    last = F.coalesce(F.date_sub(following, 1), F.lit(last_on))
    spread = rows.withColumn("_last", last).where("date <= _last")
    spread = spread.withColumn("date", F.explode(F.sequence("date", "_last"))).drop("_last")
    return spread.join(calendar, "date")


def value(cells: DataFrame) -> DataFrame:
    """Cells with `price`, `price_on` and `rate` as valued rows."""
    return cells.select(
        *KEY,
        "date",
        *FIELDS,
        F.expr("CAST(quantity * price * rate AS DECIMAL(18, 2))").alias("market_value"),
        F.expr("CAST((quantity * price - cost_basis) * rate AS DECIMAL(18, 2))").alias("unrealised"),
        F.expr("CASE WHEN price_on = date THEN 'VALUED_CURRENT' ELSE 'VALUED_STALE' END").alias(
            "valuation_status"
        ),
    )


class _Fold:
    """Folds the sorted transactions of a partition. Spark's workers load the module from its file."""

    def __init__(self, file: str, schema: bytes) -> None:
        self._file, self._schema = file, schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        fold, schema = self._load(), pa.ipc.read_schema(pa.py_buffer(self._schema))
        rows: list[dict[str, Any]] = []
        facts = (fact for batch in batches for fact in batch.to_pylist())
        for (portfolio, security), of_key in groupby(facts, lambda f: (f["portfolio_id"], f["security_id"])):
            state = None
            for on, of_date in groupby(of_key, lambda f: f["transaction_on"]):
                state = fold(state, list(of_date))
                key = {"portfolio_id": portfolio, "security_id": security, "date": on}
                rows.append({**key, **{name: state[name] for name in FIELDS}})
            if len(rows) > 10_000:
                yield pa.RecordBatch.from_pylist(rows, schema=schema)
                rows = []
        if rows:
            yield pa.RecordBatch.from_pylist(rows, schema=schema)

    def _load(self) -> Callable[[Any, list[dict[str, Any]]], dict[str, Any]]:
        names: dict[str, Any] = {}
        exec(compile(Path(self._file).read_text(), self._file, "exec"), names)
        fold: Callable[[Any, list[dict[str, Any]]], dict[str, Any]] = names["fifo"]
        return fold


def recompute_with_duckdb(data: Path, history: Path, last_on: date, target: Path) -> None:
    """Value every date of the finished history by ASOF joins, and write Parquet."""
    newest_of = (
        "SELECT * FROM '{}/{}/*.parquet' QUALIFY row_number() OVER (PARTITION BY {} ORDER BY seq DESC) = 1"
    )
    with duckdb.connect(config={"threads": THREADS, "memory_limit": "4GB"}) as connection:
        connection.execute(f"SET temp_directory = '{target.parent / 'duckdb_temporary'}'")
        connection.execute("SET preserve_insertion_order = false")
        connection.execute(
            f"""
            COPY (
                WITH history AS (SELECT * FROM '{history}/*.parquet'),
                securities AS ({newest_of.format(data, "securities", "security_id")}),
                prices AS ({newest_of.format(data, "market_prices", "security_id, price_on")}),
                rates AS ({newest_of.format(data, "fx_rates", "currency, rate_on")}),
                calendar AS (
                    SELECT DISTINCT business_on AS date FROM '{data}/business_dates/*.parquet'
                    WHERE business_on <= DATE '{last_on}'
                ),
                cells AS (
                    SELECT k.portfolio_id, k.security_id, c.date
                    FROM (SELECT DISTINCT portfolio_id, security_id FROM history) k, calendar c
                )
                SELECT c.portfolio_id, c.security_id, c.date, h.quantity, h.cost_basis, h.realised,
                    CAST(h.quantity::DECIMAL(20, 4) * p.price * r.rate AS DECIMAL(18, 2)) AS market_value,
                    CAST((h.quantity::DECIMAL(20, 4) * p.price - h.cost_basis) * r.rate AS DECIMAL(18, 2))
                        AS unrealised,
                    CASE WHEN p.price_on = c.date THEN 'VALUED_CURRENT' ELSE 'VALUED_STALE' END
                        AS valuation_status
                FROM cells c
                ASOF JOIN history h ON c.portfolio_id = h.portfolio_id AND c.security_id = h.security_id
                    AND c.date >= h.date
                JOIN securities s ON c.security_id = s.security_id
                ASOF LEFT JOIN prices p ON c.security_id = p.security_id AND c.date >= p.price_on
                ASOF JOIN rates r ON s.currency = r.currency AND c.date >= r.rate_on
            ) TO '{target}' (FORMAT parquet)
            """
        )


def fingerprint(rows: DataFrame) -> tuple[int, int]:
    """How many rows, and a hash of all of them that does not depend on their order."""
    row = rows.agg(F.count(F.lit(1)).alias("rows"), F.bit_xor(F.xxhash64(*ROW)).alias("hash")).first()
    assert row is not None
    return row["rows"], row["hash"]
