"""Positions that are folded and valued: corrections, late facts and new dates, beside full recomputes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from .comparators import open_plain
from .engine import copy_table
from .holdings import Holdings, make_holdings
from .measure import Sample, count_table_rows, find_last_execution, measure
from .portfolio_engine import FOLD, HISTORY, TOTALS, VALUED, EngineRun, PortfolioEngine, open_portfolio
from .portfolio_peers import fingerprint, recompute_with_duckdb, recompute_with_pyspark
from .portfolio_script import Script
from .progress import say

SECURITIES, DATES, BACK = 100, 250, 100
REFERENCE_ROWS = 25_000_000
SHORT_WARM_UP, WARM_UP, ROUNDS = 4, 1, 3
"""Rounds of each kind that are not counted, in the short portfolio, which comes first, and in the long one;
and those that are, of which the median is taken. A JVM compiles what it runs often, for minutes."""
YEARS = 10
FINISHED_ROWS = 2_500_000
"""Up to this size a herd is published to its end and compared again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One thing that was done: a sample of each round, and rows of the last."""

    samples: list[Sample]
    rows_written: int = 0
    rows_read: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Portfolio:
    rows: int
    keys: int
    transactions: int
    engine: dict[str, Measured]
    peers: dict[str, list[Sample]]
    short_rows: int
    short: dict[str, Measured]
    """The same append and the same correction where each key has a tenth of the dates."""
    apart: Measured
    """A price corrected on two dates ten years apart."""
    apart_table_rows: int
    """The rows of tables that were read then. The others are what the run itself computed and staged."""
    apart_keys: int
    window_rows: int
    """The rows of both windows."""
    totals: Measured
    totals_transactions: int
    differing: tuple[str, ...]
    """Results whose rows differ from those of plain PySpark. There must be none."""


def measure_portfolio(folder: Path, rows: int) -> Portfolio:
    portfolios = max(1, rows // (SECURITIES * DATES))
    short = _measure_short(folder / "short", portfolios)  # first, so that the JVM is warm for the rest
    apart_keys = max(10, portfolios * 10)
    apart, apart_table_rows, window_rows = _measure_apart(folder / "apart", apart_keys)
    totals, transactions, totals_right = _measure_totals(folder / "totals", portfolios)
    bench = _Bench(folder / "long", portfolios, DATES)
    bench.load()
    bench.open_script()
    for nth in range(WARM_UP + ROUNDS):
        bench.correct_price(counted=nth >= WARM_UP)
    differing = bench.compare({"script": bench.folder / "script" / "valued"}, bench.engine.table(VALUED))
    for change in (bench.pass_date, bench.back_date_one, bench.back_date_many):
        for nth in range(WARM_UP + ROUNDS):
            change(counted=nth >= WARM_UP)
    for _ in range(ROUNDS):
        bench.recompute(counted=True)
    differing += bench.find_differing()
    differing += bench.raise_herd()
    return Portfolio(
        rows=bench.holdings.rows,
        keys=bench.holdings.keys,
        transactions=bench.holdings.transactions,
        engine=bench.done,
        peers=bench.peers,
        short_rows=short.holdings.rows,
        short=short.done,
        apart=apart,
        apart_table_rows=apart_table_rows,
        apart_keys=apart_keys,
        window_rows=window_rows,
        totals=totals,
        totals_transactions=transactions,
        differing=(*differing, *(() if totals_right else ("portfolio totals",))),
    )


@dataclass(slots=True)
class _Bench:
    """The engine and its peers over the same files."""

    folder: Path
    portfolios: int
    dates: int
    done: dict[str, Measured] = field(default_factory=dict)
    peers: dict[str, list[Sample]] = field(default_factory=dict)
    holdings: Holdings = field(init=False)
    engine: PortfolioEngine = field(init=False)
    script: Script | None = None
    prices: int = 0
    """Prices that were corrected, each of another security."""

    @property
    def back(self) -> int:
        """By how many dates a fact is late."""
        return min(BACK, self.dates // 2)

    def load(self) -> None:
        holdings = Holdings(
            data=self.folder / "data", portfolios=self.portfolios, securities=SECURITIES, dates=self.dates
        )
        say(f"{holdings.keys:,} keys on {holdings.dates} dates: {holdings.rows:,} valued rows")
        self.holdings = make_holdings(holdings)
        self.engine = open_portfolio(self.folder, holdings, batch_rows=max(1000, holdings.rows // 5))
        self._run("first load", holdings.rows)

    def open_script(self) -> None:
        """Prepare the tables of the script, which are copies of the engine's."""
        copies = {
            "market_price_rows": "market_price_rows",
            "market_prices_facts": "market_prices_facts",
            "market_prices": "market_prices",
            "valued": VALUED,
        }
        tables = {name: self.folder / "script" / name for name in copies}
        for name, dataset in copies.items():
            copy_table(self.engine.table(dataset), tables[name])
        for name in ("business_dates", "securities", "fx_rates"):
            tables[name] = self.engine.table(name)
        tables["history"] = self.engine.table(HISTORY)
        self.script = Script(self.engine.session, tables, self.folder / "script" / "staging")

    def correct_price(self, *, counted: bool) -> None:
        """One price of one security, which every portfolio holds, in the middle of the history."""
        file = self.holdings.correct_price(self.prices, [self.dates // 2])
        self.prices += 1
        self._run("price", self.portfolios, counted=counted)
        if self.script is not None:
            work = partial(self.script.run, file, self.holdings.last_on)
            self._measure_peer("script", work, counted=counted)

    def pass_date(self, *, counted: bool) -> None:
        """The next business date with its prices. The script does not see it."""
        self.holdings.pass_date()
        self._run("next date", self.holdings.keys, counted=counted)

    def back_date_one(self, *, counted: bool) -> None:
        self._back_date("one fact", 1, counted=counted)

    def back_date_many(self, *, counted: bool) -> None:
        """One fact each of as many keys as there are portfolios."""
        self._back_date("many facts", self.portfolios, counted=counted)

    def _back_date(self, name: str, keys: int, *, counted: bool) -> None:
        self.holdings.back_date(keys, self.back)
        self._run(name, keys * (self.back + 1), counted=counted)

    def recompute(self, *, counted: bool) -> None:
        """Everything in full, by plain PySpark and by DuckDB."""
        session, plain = self.engine.session, open_plain(self.engine.session)
        data, last_on = self.holdings.data, self.holdings.last_on
        pyspark = partial(recompute_with_pyspark, plain, data, FOLD, last_on, self.folder / "pyspark")
        self._measure_peer("pyspark", pyspark, counted=counted)
        history = session.read.format("delta").load(str(self.engine.table(HISTORY))).where("NOT _deleted")
        columns = ("portfolio_id", "security_id", "date", "quantity", "cost_basis", "realised")
        history.select(*columns).write.mode("overwrite").parquet(str(self.folder / "history"))
        target = self.folder / "duckdb.parquet"
        duckdb = partial(recompute_with_duckdb, data, self.folder / "history", last_on, target)
        self._measure_peer("duckdb", duckdb, counted=counted)

    def find_differing(self) -> tuple[str, ...]:
        """Compare what the engine and DuckDB published with what plain PySpark computed last."""
        others = {"engine": self.engine.table(VALUED), "duckdb": self.folder / "duckdb.parquet"}
        return self.compare(others, self.folder / "pyspark" / "valued")

    def compare(self, tables: dict[str, Path], wanted: Path) -> tuple[str, ...]:
        expected = fingerprint(self._read(wanted))
        found = {name: fingerprint(self._read(path)) for name, path in tables.items()}
        say(f"  compared: {expected[0]:,} rows each")
        return tuple(name for name, given in found.items() if given != expected)

    def raise_herd(self) -> tuple[str, ...]:
        """Restate every rate, then deliver a fact of a portfolio that waits for its batch."""
        self.holdings.restate_rates()
        self._run("first batch of a herd", None, batches=1)
        self.holdings.back_date(1, self.back, last=True)
        dates = self.dates + self.holdings.dates_passed
        self._run("one fact in a herd", SECURITIES * dates, batches=1)
        if self.holdings.rows > FINISHED_ROWS:
            return ()
        self._run("the rest of the herd", None)
        self.recompute(counted=False)
        return self.find_differing()

    def _read(self, path: Path) -> DataFrame:
        read = self.engine.session.read
        if path.suffix == ".parquet":
            return read.parquet(str(path))
        rows = read.format("delta").load(str(path))
        return rows.where("NOT _deleted") if "_deleted" in rows.columns else rows

    def _run(
        self, name: str, valued: int | None, *, batches: int | None = None, counted: bool = True
    ) -> None:
        done = self.engine.run(valued, batches)
        say(f"  engine, {name}: {describe(done)}")
        if counted:
            add(self.done, name, done)

    def _measure_peer(self, name: str, work: Callable[[], None], *, counted: bool = True) -> None:
        sample = measure(self.engine.session, work)
        say(f"  {name}: {sample.seconds:.1f} s, {sample.cpu_seconds:.1f} CPU s, {sample.jobs} Spark jobs")
        if counted:
            self.peers.setdefault(name, []).append(sample)


def describe(done: EngineRun) -> str:
    nodes = ", ".join(
        f"{node} {seconds:.1f}" for node, seconds in done.sample.by_node.items() if seconds > 0.3
    )
    took = f"{done.sample.seconds:.1f} s, {done.sample.cpu_seconds:.1f} CPU s"
    return f"{took}, {done.sample.jobs} jobs, {done.rows_read:,} rows read ({nodes})"


def add(done: dict[str, Measured], name: str, run: EngineRun) -> None:
    samples = done[name].samples if name in done else []
    done[name] = Measured(samples=[*samples, run.sample], rows_written=run.valued, rows_read=run.rows_read)


def _measure_short(folder: Path, portfolios: int) -> _Bench:
    """The same with a tenth of the dates. Here everything is done often enough to be warm, also by peers."""
    bench = _Bench(folder, portfolios, DATES // 10)
    bench.load()
    bench.open_script()
    for _ in range(SHORT_WARM_UP):
        for change in (bench.correct_price, bench.pass_date, bench.back_date_one, bench.back_date_many):
            change(counted=False)
    for _ in range(SHORT_WARM_UP // 2):
        bench.recompute(counted=False)
    for change in (bench.correct_price, bench.pass_date):
        for _ in range(ROUNDS):
            change(counted=True)
    return bench


def _measure_apart(folder: Path, keys: int) -> tuple[Measured, int, int]:
    """A price that holds for four weeks, corrected on two dates ten years apart.

    Also the rows of tables that were read, and those of both windows.
    """
    first, last, window = 4, 4 + 52 * YEARS, 4
    holdings = Holdings(
        data=folder / "data",
        portfolios=keys,
        securities=1,
        dates=last + 2 * window,
        days_between_dates=7,
        dates_between_prices=window,
        transactions_per_key=5,
    )
    say(f"{keys:,} keys over {YEARS} years: {holdings.rows:,} valued rows")
    engine = open_portfolio(folder, make_holdings(holdings), batch_rows=5_000_000)
    engine.run(holdings.rows)
    done: dict[str, Measured] = {}
    for _ in range(2):
        holdings.correct_price(0, [first, last])
        last = find_last_execution(engine.session)
        run = engine.run(2 * window * keys)
        of_tables = count_table_rows(engine.session, last)
        say(f"  two windows of {window * keys:,} rows: {describe(run)}, {of_tables:,} of tables")
        add(done, "apart", run)
    return done["apart"], of_tables, 2 * window * keys


def _measure_totals(folder: Path, portfolios: int) -> tuple[Measured, int, bool]:
    """The first load of 100 transactions a portfolio, to valued positions and portfolio totals."""
    holdings = Holdings(data=folder / "data", portfolios=portfolios, securities=5, dates=DATES)
    say(f"{portfolios:,} portfolios with {holdings.transactions:,} transactions, and their totals")
    engine = open_portfolio(folder, make_holdings(holdings), batch_rows=5_000_000, totals=True)
    run = engine.run(holdings.rows)
    say(f"  {describe(run)}")
    done: dict[str, Measured] = {}
    add(done, "totals", run)
    delta = engine.session.read.format("delta")
    valued = delta.load(str(engine.table(VALUED))).where("NOT _deleted")
    totals = delta.load(str(engine.table(TOTALS))).where("NOT _deleted")
    wanted = valued.groupBy("portfolio_id", "date").agg(F.sum("market_value").alias("market_value"))
    columns = ["portfolio_id", "date", "market_value"]
    same = totals.select(*columns).exceptAll(wanted.select(*columns)).isEmpty()
    return done["totals"], holdings.transactions, same and totals.count() == portfolios * DATES
