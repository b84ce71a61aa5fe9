"""What the portfolio benchmark prints: seconds, rows, and the figures to reach."""

from collections.abc import Iterator

from .measure import Sample, median, middle
from .portfolio import BACK, REFERENCE_ROWS, Measured, Portfolio
from .target import Target


def portfolio_targets(found: Portfolio) -> Iterator[Target]:
    """The ratios, all from this run."""
    engine = {name: median(measured.samples) for name, measured in found.engine.items()}
    full = {name: median(samples) for name, samples in found.peers.items()}
    short = {name: median(measured.samples) for name, measured in found.short.items()}

    def faster(text: str, name: str, peer: str, bound: float) -> Target:
        return Target(text=text, value=full[peer] / engine[name], bound=bound, at_least=True)

    def at_most(text: str, value: float, bound: float, unit: str = "x") -> Target:
        return Target(text=text, value=value, bound=bound, at_least=False, unit=unit)

    transactions = f"{found.totals_transactions:,} transactions"
    yield at_most(f"{transactions}: first load to portfolio totals", median(found.totals.samples), 40, " s")
    yield faster(f"one fact back-dated by {BACK} dates, against PySpark in full", "one fact", "pyspark", 10)
    keys = f"{found.engine['price'].rows_written:,} keys"
    yield faster(f"one price, {keys}: against PySpark in full", "price", "pyspark", 12)
    yield faster(f"one price, {keys}: against DuckDB in full", "price", "duckdb", 1.5)
    rows = f"{found.keys:,} rows"
    yield faster(f"the next business date, {rows}: against PySpark in full", "next date", "pyspark", 12)
    yield faster(f"the next business date, {rows}: against DuckDB in full", "next date", "duckdb", 2)
    many = f"{found.engine['many facts'].rows_written // (BACK + 1):,}"
    yield faster(f"{many} facts back-dated, against PySpark in full", "many facts", "pyspark", 6)
    sizes = f"{found.rows:,} rows over {found.short_rows:,}"
    yield at_most(f"that date: seconds with {sizes}", engine["next date"] / short["next date"], 1.5)
    yield at_most(f"that price: seconds with {sizes}", engine["price"] / short["price"], 1.5)
    text = f"a price ten years apart, {found.apart_keys:,} keys: rows of tables over those of the windows"
    yield at_most(text, found.apart_table_rows / found.window_rows, 3)
    text = f"one fact while {found.rows:,} rows wait, over that without"
    yield at_most(text, engine["one fact in a herd"] / engine["one fact"], 3)
    yield at_most("one price: run's time over the script's", engine["price"] / full["script"], 1.5)
    yield at_most("first build over PySpark in full", engine["first load"] / full["pyspark"], 2)


def portfolio_lines(found: Portfolio) -> Iterator[str]:
    yield (
        f"\n{found.keys:,} keys, {found.transactions:,} transactions, {found.rows:,} valued rows;"
        " seconds, CPU seconds, Spark jobs, rows written, rows that Spark's scans read:"
    )
    for name, measured in found.engine.items():
        yield f"  engine, {name:<26}{_figures(measured)}"
    for name, samples in found.peers.items():
        yield f"  {name:<34}{_seconds(samples)}"
    yield f"with {found.short_rows:,} valued rows:"
    for name, measured in found.short.items():
        yield f"  engine, {name:<26}{_figures(measured)}"
    yield f"  {'two windows of ' + format(found.window_rows, ',') + ' rows':<34}{_figures(found.apart)}"
    yield f"  {'first load to portfolio totals':<34}{_figures(found.totals)}"
    yield (
        f"The results differ: {', '.join(found.differing)}."
        if found.differing
        else "All results hold the same rows."
    )
    if found.rows != REFERENCE_ROWS:
        yield f"The figures to reach are meant for --rows {REFERENCE_ROWS}; this is {found.rows}."


def _figures(measured: Measured) -> str:
    jobs = middle(measured.samples).jobs
    return f"{_seconds(measured.samples)} {jobs:>5} {measured.rows_written:>12,} {measured.rows_read:>14,}"


def _seconds(samples: list[Sample]) -> str:
    sample = middle(samples)
    return f"{sample.seconds:>9.2f} {sample.cpu_seconds:>9.2f}"
