"""The engine under measurement in the portfolio benchmark: positions folded by FIFO and valued every date."""

import shutil
from dataclasses import dataclass
from datetime import UTC, datetime, time
from pathlib import Path

from pyspark.sql import SparkSession

from strandline.app.planning import RunRequest
from strandline.app.run import run
from strandline.app.workspace import open_workspace
from strandline.model.plan import TaskResult
from strandline.spark.session import get_session

from .engine import SILENT, find_table
from .holdings import Holdings
from .measure import Sample, count_rows_read, find_last_stage, measure, show_paths

HISTORY, VALUED, TOTALS = "position_history", "daily_position_snapshots", "portfolio_totals"
FIELDS = ("quantity", "cost_basis", "realised")
COLUMNS = ("market_value", "unrealised", "valuation_status")
FOLD = Path(__file__).resolve().parents[1] / "examples/portfolio/folds.py"
PROJECT = """\
project: portfolio_bench
timezone: UTC
settings:
  spark: {master: "local[2]", conf: {spark.driver.memory: 4g}}
  batch_rows: BATCH_ROWS
sources:
  transaction_rows: {files: "data/transactions/*.parquet"}
  market_price_rows: {files: "data/market_prices/*.parquet"}
  fx_rate_rows: {files: "data/fx_rates/*.parquet"}
  security_rows: {files: "data/securities/*.parquet"}
  business_date_rows: {files: "data/business_dates/*.parquet"}
datasets:
  transactions: {from: transaction_rows, record_set: {key: [transaction_id], order_by: [seq]}}
  market_prices: {from: market_price_rows, record_set: {key: [security_id, price_on], order_by: [seq]}}
  fx_rates: {from: fx_rate_rows, record_set: {key: [currency, rate_on], order_by: [seq]}}
  securities: {from: security_rows, record_set: {key: [security_id], order_by: [seq]}}
  business_dates: {from: business_date_rows, record_set: {key: [business_on], order_by: [seq]}}
timelines:
  positions:
    key: [portfolio_id, security_id]
    facts: transactions
    date: transaction_on
    order_by: [transaction_id]
    fold: folds.py:fifo
    fields: {quantity: "decimal(16,4)", cost_basis: "decimal(18,2)", realised: "decimal(18,2)"}
    output_dataset: position_history
    together: [portfolio_id]
    valuation:
      output_dataset: daily_position_snapshots
      calendar: {dataset: business_dates, date: business_on}
      references:
        security: {dataset: securities, on: [security_id]}
        price: {dataset: market_prices, on: [security_id], date: price_on}
        fx: {dataset: fx_rates, on: {currency: security.currency}, date: rate_on, required: true}
      columns:
        market_value: CAST(quantity * price.price * fx.rate AS DECIMAL(18, 2))
        unrealised: CAST((quantity * price.price - cost_basis) * fx.rate AS DECIMAL(18, 2))
        valuation_status: "CASE WHEN price.price_on = date THEN 'VALUED_CURRENT' ELSE 'VALUED_STALE' END"
"""
TOTALS_JOB = """\
jobs:
  - name: portfolio_totals
    input_datasets: [daily_position_snapshots]
    output_dataset: portfolio_totals
    incremental: {mode: keyed, key: [portfolio_id, date]}
    update_strategy: replace
    sql: >-
      select portfolio_id, date, sum(market_value) as market_value, sum(unrealised) as unrealised
      from daily_position_snapshots group by portfolio_id, date
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineRun:
    """A run, and what its tasks report."""

    sample: Sample
    results: dict[str, TaskResult]
    rows_read: int
    """The rows that all of Spark's scans read meanwhile: tables, heads, and what the run itself staged."""

    @property
    def valued(self) -> int:
        """Valued rows that were written."""
        return self.results[VALUED].rows_written if VALUED in self.results else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PortfolioEngine:
    """A project in its own folder, with its files loaded."""

    folder: Path
    holdings: Holdings
    session: SparkSession

    def table(self, dataset: str) -> Path:
        return find_table(self.folder / ".strandline" / "lake", dataset)

    def run(self, valued: int | None, batches: int | None = None) -> EngineRun:
        """Run from the received files to the valued rows, of which so many must be written, if it is known.

        Without that check a run that lost its rows would count as fast.
        """
        found: list[dict[str, TaskResult]] = []

        def work() -> dict[str, float]:
            found.append(self._run(batches))
            return {name: result.seconds for name, result in found[0].items()}

        stage = find_last_stage(self.session)
        sample = measure(self.session, work)
        read = count_rows_read(self.session, stage)
        done = EngineRun(sample=sample, results=found[0], rows_read=read)
        if valued is not None and done.valued != valued:
            lines = [f"{r.node}: {r.status}, {r.rows_written} written" for r in done.results.values()]
            raise RuntimeError(f"{valued} valued rows should have been written:\n" + "\n".join(lines))
        return done

    def _run(self, batches: int | None) -> dict[str, TaskResult]:
        as_of = datetime.combine(self.holdings.last_on, time(23), UTC)
        with open_workspace(self.folder) as workspace:
            outcome = run(workspace, RunRequest(as_of=as_of, batches=batches), SILENT)
        if outcome.exit_code:
            raise RuntimeError(
                "\n".join(f"{r.node}: {r.status} {r.error}" for r in outcome.results if r.error)
            )
        return {r.node: r for r in outcome.results}


def open_portfolio(
    folder: Path, holdings: Holdings, *, batch_rows: int, totals: bool = False
) -> PortfolioEngine:
    """A new project whose first load waits in `folder / "data"`."""
    (folder / "strandline.yaml").write_text(
        PROJECT.replace("BATCH_ROWS", str(batch_rows)) + (TOTALS_JOB if totals else "")
    )
    shutil.copy(FOLD, folder / FOLD.name)
    with open_workspace(folder) as workspace:
        session = get_session(workspace.project.settings)
    show_paths(session)
    return PortfolioEngine(folder=folder, holdings=holdings, session=session)
