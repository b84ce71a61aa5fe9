"""A hand-written PySpark script that makes the engine's writes when a price is corrected."""

from datetime import UTC, date, datetime
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from .holdings import KEY
from .portfolio_peers import value

RECEIVED, FACTS, PRICES, VALUED = "market_price_rows", "market_prices_facts", "market_prices", "valued"


class Script:
    """Corrects prices in copies of the engine's tables: received rows, facts, prices and valued rows.

    It reads the engine's history, rates, securities and calendar. It knows only this project, trusts its
    input and keeps no record: no plan, lease, fence, checks, counts, quarantine or catalog.
    """

    def __init__(self, session: SparkSession, tables: dict[str, Path], staging: Path) -> None:
        self._session, self._tables, self._staging = session, tables, str(staging)
        self._columns = {name: self._read(name).columns for name in (RECEIVED, FACTS, PRICES, VALUED)}

    def run(self, file: Path, last_on: date) -> None:
        received = self._receive(file)
        self._append(received, RECEIVED)
        facts = received.withColumns(
            {
                "_source_at": F.lit(None).cast("timestamp"),
                "_source_ts": F.lit(None).cast("bigint"),
                "_deleted": F.lit(False),
                "_key": _hash(F.col("security_id"), F.col("price_on")),
                "_config": F.lit("script"),
            }
        )
        self._append(facts, FACTS)
        self._replace(self._stage(facts, PRICES), PRICES, "t._key = s._key")
        self._revalue(file, last_on)

    def _read(self, name: str) -> DataFrame:
        return self._session.read.format("delta").load(str(self._tables[name]))

    def _receive(self, file: Path) -> DataFrame:
        place = F.struct(
            F.lit(f"data/market_prices/{file.name}").alias("name"),
            F.lit(0).cast("bigint").alias("part"),
            (F.col("_metadata.row_index") + 1).alias("place"),
        )
        rows = self._session.read.parquet(str(file)).select("*", place.alias("_source_position"))
        return rows.withColumns(
            {"_payload": F.lit(None).cast("string"), "_ingested_at": F.lit(datetime.now(UTC))}
        )

    def _append(self, rows: DataFrame, name: str) -> None:
        rows.select(*self._columns[name]).write.format("delta").mode("append").save(str(self._tables[name]))

    def _stage(self, rows: DataFrame, name: str) -> DataFrame:
        """Stage the rows, so that Spark knows their size. Otherwise it would sort the whole table."""
        staged = rows.select(*self._columns[name])
        path = f"{self._staging}/{name}"
        staged.write.mode("overwrite").parquet(path)
        return self._session.read.schema(staged.schema).parquet(path)

    def _replace(self, rows: DataFrame, name: str, condition: str) -> None:
        writer = rows.alias("s").write.format("delta").mode("overwrite")
        writer = writer.option("replaceOn", condition).option("targetAlias", "t")
        writer.save(str(self._tables[name]))

    def _revalue(self, file: Path, last_on: date) -> None:
        """Value the dates from each corrected price to the next price of that security."""
        corrected = self._session.read.parquet(str(file)).select("security_id", "price_on").collect()
        security = corrected[0]["security_id"]
        prices = self._read(PRICES).where(F.col("security_id") == security)
        known = sorted(row[0] for row in prices.select("price_on").collect())
        calendar = self._read("business_dates").where(F.col("business_on") <= F.lit(last_on))
        business = [row[0] for row in calendar.select("business_on").collect()]
        dates = []
        for row in corrected:
            following = next((on for on in known if on > row["price_on"]), None)
            dates += [d for d in business if d >= row["price_on"] and (not following or d < following)]
        valued = self._read(VALUED).where(F.col("security_id") == security)
        new = self._value(security, prices, sorted(dates))
        old = valued.where((F.col("_role") == "row") & F.col("date").isin(dates))
        heads = valued.where(F.col("_role") == "head")
        rows = self._stage(self._supersede(new, old, heads), VALUED)
        same = [f"t.{c} <=> s.{c}" for c in (*KEY, "date")]
        near = f"(t.date IS NULL OR t.date BETWEEN DATE'{min(dates)}' AND DATE'{max(dates)}')"
        parts = ["t._key = s._head.replaces", *same, "t._role IN ('row', 'head')", near]
        self._replace(rows, VALUED, " AND ".join(parts))

    def _value(self, security: str, prices: DataFrame, dates: list[date]) -> DataFrame:
        calendar = F.broadcast(self._session.createDataFrame([(d,) for d in dates], "on date"))
        history = self._read("history").where(
            (F.col("_role") == "row")
            & (F.col("security_id") == security)
            & (F.col("date") <= F.lit(dates[-1]))
        )
        held = history.join(calendar, F.col("date") <= F.col("on")).groupBy(*KEY, "on")
        cells = held.agg(F.max_by(F.struct("quantity", "cost_basis", "realised"), "date").alias("h"))
        known = prices.join(calendar, F.col("price_on") <= F.col("on")).groupBy("on")
        priced = known.agg(F.max_by("price", "price_on").alias("price"), F.max("price_on").alias("price_on"))
        currency = self._read("securities").where(F.col("security_id") == security).collect()[0]["currency"]
        rated = self._read("fx_rates").where(F.col("currency") == currency)
        by_date = rated.join(calendar, F.col("rate_on") <= F.col("on")).groupBy("on")
        rates = by_date.agg(F.max_by("rate", "rate_on").alias("rate"))
        cells = cells.join(F.broadcast(priced), "on").join(F.broadcast(rates), "on")
        return value(cells.select(*KEY, F.col("on").alias("date"), "h.*", "price", "price_on", "rate"))

    def _supersede(self, new: DataFrame, old: DataFrame, heads: DataFrame) -> DataFrame:
        """New rows, the next heads, and the rows that leave, as the engine stores them."""
        kind = heads.schema["_head"].dataType
        now = F.lit(datetime.now(UTC))
        nothing = F.lit(None).cast(kind)
        epochs = heads.select(*KEY, (F.col("epoch") + 1).alias("epoch"))
        rows = new.join(epochs, [*KEY]).withColumns(
            {
                "_key": _hash(*map(F.col, KEY), F.col("date")),
                "_deleted": F.lit(False),
                "_role": F.lit("row"),
                "_config": F.lit("script"),
                "_head": nothing,
            }
        )
        next_heads = heads.withColumns(
            {
                "epoch": F.col("epoch") + 1,
                "_head": F.col("_head").withField("updated_at", now).withField("replaces", F.col("_key")),
            }
        )
        left = old.join(epochs.withColumnRenamed("epoch", "_next"), [*KEY])
        head = _empty(kind.fieldNames(), now)  # type: ignore[attr-defined]
        left = left.withColumns(
            {"_head": head.cast(kind), "_role": F.lit("epoch"), "_deleted": F.lit(True)}
        ).withColumn("_key", F.lit(None).cast("bigint"))
        return rows.unionByName(next_heads).unionByName(left.drop("_next"))


def _hash(*columns: Column) -> Column:
    return F.xxhash64(*(part for column in columns for part in (column, column.isNull())))


def _empty(names: list[str], now: Column) -> Column:
    set_ = {"superseded_by": F.col("_next"), "superseded_at": now, "replaces": F.col("_key")}
    return F.struct(*(set_.get(name, F.lit(None)).alias(name) for name in names))
