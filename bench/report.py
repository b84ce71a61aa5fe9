"""Results as JSON, a plot and a table; the figures to reach, and whether they are."""

import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from pyspark.sql import SparkSession

from .chain import DEPTH, PENDING, ChainLength
from .entities import Entities
from .entity_report import entity_lines, entity_targets
from .history import HistoryLength
from .increments import Increments
from .ingest import Ingest
from .measure import Sample, median, middle
from .overhead import DAYS, Overhead
from .portfolio import Portfolio
from .portfolio_report import portfolio_lines, portfolio_targets
from .publish_report import Publish, publish_lines, publish_targets
from .recovery import Again
from .register import Register
from .serve_report import Served, serve_lines, serve_targets
from .small_runs import SmallRuns, small_lines, small_targets
from .startup import START_SECONDS, Start
from .target import Target

FULL_NAMES = {
    "pyspark": "PySpark, full recompute",
    "duckdb": "DuckDB, full recompute",
    "pyspark_live": "PySpark, full, live keys only",
    "duckdb_live": "DuckDB, full, live keys only",
    "engine": "engine, full rebuild",
}
PERCENT_NAMES = {
    "engine": "engine, run",
    "script": "hand-written script, same writes",
    "merge": "hand-written MERGE",
}
REFERENCE_SCALE = 300
OVERHEAD_PERCENT = 3.0
RECOVERY_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    machine: dict[str, object]
    scale: int
    register: Register | None
    increments: Increments | None = None
    history: HistoryLength | None = None
    startup: dict[str, Start] | None = None
    small_runs: list[SmallRuns] | None = None
    chains: list[ChainLength] | None = None
    overhead: list[Overhead] | None = None
    recovery: list[Again] | None = None
    ingest: Ingest | None = None
    portfolio: Portfolio | None = None
    entities: Entities | None = None
    publish: Publish | None = None
    served: Served | None = None


def find_targets(results: Results) -> Iterator[Target]:
    """The ratios, all from this run."""
    if found := results.increments:
        engine = {percent: median(samples) for percent, samples in found.engine.items()}
        pyspark, duckdb, script = (
            median(found.full["pyspark"]),
            median(found.full["duckdb"]),
            median(found.script[0.1]),
        )
        yield Target(
            text="0.1 % of the keys: run, against PySpark's full recompute",
            value=pyspark / engine[0.1],
            bound=5,
            at_least=True,
        )
        yield Target(
            text="0.1 % of the keys: run, against DuckDB's full recompute",
            value=duckdb / engine[0.1],
            bound=1,
            at_least=True,
        )
        yield Target(
            text="1 % of the keys: run, against PySpark's full recompute",
            value=pyspark / engine[1.0],
            bound=4,
            at_least=True,
        )
        yield Target(
            text="0.1 % of the keys: run's time over the script's",
            value=engine[0.1] / script,
            bound=1.5,
            at_least=False,
        )
    if history := results.history:
        text = (
            f"{history.changed_keys:,} keys: time with {history.long_facts:,} facts over that with "
            f"{history.short_facts:,}"
        )
        yield Target(text=text, value=median(history.long) / median(history.short), bound=2.5, at_least=False)
    if results.chains:
        yield from _chain_targets(*results.chains)
    if results.small_runs:
        yield from small_targets(results.small_runs)
    if results.portfolio:
        yield from portfolio_targets(results.portfolio)
    if results.entities:
        yield from entity_targets(results.entities)
    if results.publish:
        yield from publish_targets(results.publish)
    if results.served:
        yield from serve_targets(results.served)
    if results.overhead:
        text = f"{len(DAYS)} days of the example: failpoints and confirming, of the runs' time"
        worst = max(one.percent for one in results.overhead)
        yield Target(text=text, value=worst, bound=OVERHEAD_PERCENT, at_least=False, unit=" %")
    if results.recovery:
        worst = max(one.taking_seconds for one in results.recovery if one.killed_after)
        text = "the example after a kill: taking over, fencing and settling, in a new process"
        yield Target(text=text, value=worst, bound=RECOVERY_SECONDS, at_least=False, unit=" s")
    for name, start in (results.startup or {}).items():
        note = "a JVM was started" if start.jvm else ""
        yield Target(
            text=f"strandline {name}",
            value=start.best,
            bound=START_SECONDS,
            at_least=False,
            unit=" s",
            note=note,
        )


def _chain_targets(short: ChainLength, long: ChainLength) -> Iterator[Target]:
    reorg = [r.seconds for r in long.reorgs]
    blocks = f"{long.blocks:,} blocks, {long.transactions:,} transactions"
    worst = max(r.rows_read[job] / r.affected_rows[job] for r in long.reorgs for job in r.rows_read)
    yield Target(
        text=f"{blocks}: rows read by a reorg over rows of its blocks", value=worst, bound=3, at_least=False
    )
    yield Target(
        text="the same jobs in full, against the reorg",
        value=long.full.seconds / median(reorg),
        bound=10,
        at_least=True,
    )
    text = f"the reorg's seconds, over those on {short.blocks:,} blocks"
    yield Target(
        text=text, value=median(reorg) / median([r.seconds for r in short.reorgs]), bound=2, at_least=False
    )
    text = f"planning with {PENDING:,} invalidations of one dataset ({len(long.planned)} tasks)"
    yield Target(text=text, value=long.planning.seconds, bound=1, at_least=False, unit=" s")


def machine(session: SparkSession | None) -> dict[str, object]:
    found: dict[str, object] = {
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (1 << 30), 1),
        "python": platform.python_version(),
        **{name: version(name) for name in ("strandline", "pyspark", "delta-spark", "deltalake", "duckdb")},
    }
    if session is not None and session.sparkContext._jvm is not None:
        found["spark_master"] = session.sparkContext.master
        found["heap_gib"] = round(
            session.sparkContext._jvm.java.lang.Runtime.getRuntime().maxMemory() / (1 << 30), 2
        )
    return found


def write_report(results: Results, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "bench.json").write_text(json.dumps(_document(results), indent=2) + "\n")
    if results.increments:
        from .plot import draw

        draw(results.increments, results.scale, folder / "bench.png")


def _document(results: Results) -> dict[str, object]:
    register = results.register
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": results.machine,
        "scale": results.scale,
        "register": register and {"origin": register.origin, "facts": register.facts, "keys": register.keys},
        "increments": results.increments and asdict(results.increments),
        "history": results.history and asdict(results.history),
        "chains": results.chains and [asdict(chain) for chain in results.chains],
        "overhead": results.overhead
        and [{**asdict(one), "percent": one.percent} for one in results.overhead],
        "recovery": results.recovery and [asdict(one) for one in results.recovery],
        "ingest": results.ingest
        and {
            **asdict(results.ingest),
            "decode_ratio": results.ingest.decode_ratio,
            "page_ratio": results.ingest.page_ratio,
        },
        "portfolio": results.portfolio and asdict(results.portfolio),
        "entities": results.entities and asdict(results.entities),
        "publish": results.publish and asdict(results.publish),
        "served": results.served and asdict(results.served),
        "startup": results.startup and {name: asdict(start) for name, start in results.startup.items()},
        "small_runs": results.small_runs and [asdict(one) for one in results.small_runs],
        "targets": [{**asdict(target), "met": target.met} for target in find_targets(results)],
    }


def print_report(results: Results, folder: Path) -> None:
    print("\n".join(_lines(results)))
    print(f"\nIn {folder}: bench.json{' and bench.png' if results.increments else ''}")


def _lines(results: Results) -> Iterator[str]:
    if results.register:
        machine_text = ", ".join(f"{name} {value}" for name, value in results.machine.items())
        yield f"{results.register.facts:,} facts, {results.register.keys:,} keys; {machine_text}"
    if found := results.increments:
        yield ""
        yield from _increment_lines(found)
    if results.scale != REFERENCE_SCALE and (results.increments or results.history):
        yield f"\nThe figures to reach are meant for --scale {REFERENCE_SCALE}; this is {results.scale}."
    for chain in results.chains or ():
        yield from _chain_lines(chain)
    for one in results.overhead or ():
        yield (
            f"the example's days in {one.seconds:.2f} s: "
            f"{one.reached} failpoints {1000 * one.reach_seconds:.1f} ms, "
            f"{one.confirmed} commits confirmed {1000 * one.confirm_seconds:.1f} ms"
        )
    for again in results.recovery or ():
        name = f"killed behind write {again.killed_after}" if again.killed_after else "undisturbed"
        yield (
            f"{name:<24} {again.seconds:6.1f} s in a new process, "
            f"Spark's start ({again.spark_seconds:.1f} s) not counted; "
            f"of it taking leases, fencing and settling {again.taking_seconds:.1f} s "
            f"({again.fenced} fenced, {again.writes} writes)"
        )
    if results.small_runs:
        yield from small_lines(results.small_runs)
    if results.ingest:
        yield from _ingest_lines(results.ingest)
    if results.portfolio:
        yield from portfolio_lines(results.portfolio)
    if results.entities:
        yield from entity_lines(results.entities)
    if results.publish:
        yield from publish_lines(results.publish)
    if results.served:
        yield from serve_lines(results.served)
    yield ""
    yield from (target.line() for target in find_targets(results))


def _ingest_lines(ingest: Ingest) -> Iterator[str]:
    decode, naive = (
        ", ".join(f"{seconds:.1f}" for seconds in measured)
        for measured in (ingest.decode_cpu_seconds, ingest.naive_cpu_seconds)
    )
    yield f"CPU seconds for {ingest.messages:,} JSON messages: decode {decode}; from_json {naive}"
    yield f"  decode over from_json {ingest.decode_ratio:.2f}x"
    whole, pages = (
        ", ".join(f"{seconds:.2f}" for seconds in measured)
        for measured in (ingest.source_seconds, ingest.page_seconds)
    )
    yield f"seconds to receive {ingest.parquet_rows:,} Parquet rows: {whole}; reading pages first {pages}"
    yield f"  with the first reading over without {ingest.page_ratio:.2f}x"


def _chain_lines(chain: ChainLength) -> Iterator[str]:
    middle_one = middle([r.seconds for r in chain.reorgs])
    reorg = next(r for r in chain.reorgs if r.seconds is middle_one)
    yield (
        f"\n{chain.blocks:,} blocks, {chain.transactions:,} transactions: "
        f"first load {chain.first_load.seconds:.1f} s"
    )
    yield f"  reorg of {DEPTH} blocks      {middle_one.seconds:8.2f} s, {middle_one.jobs} Spark jobs"
    yield f"  the same jobs in full  {chain.full.seconds:8.2f} s"
    yield "  where its time goes:   " + ", ".join(
        f"{name} {seconds:.2f}" for name, seconds in middle_one.by_node.items()
    )
    for job, rows in reorg.rows_read.items():
        yield f"  {job}: {rows:,} rows read, {reorg.affected_rows[job]:,} in the blocks that left and came"
    for name, (some, every) in reorg.files.items():
        yield f"  {name}: {some} of {every} files may hold these blocks"


def _increment_lines(found: Increments) -> Iterator[str]:
    percents = list(found.engine)
    yield f"{'seconds, by share of the keys changed':<36}" + "".join(f"{f'{p:g} %':>10}" for p in percents)
    for name, text in PERCENT_NAMES.items():
        samples = getattr(found, name)
        yield f"{text:<36}" + "".join(f"{median(samples[p]):>10.2f}" for p in percents)
    yield f"{'Spark jobs: engine / script':<36}" + "".join(
        f"{f'{middle(found.engine[p]).jobs} / {middle(found.script[p]).jobs}':>10}" for p in percents
    )
    for name, text in FULL_NAMES.items():
        if name in found.full:
            yield f"{text:<36}{median(found.full[name]):>10.2f}   ({len(found.full[name])} measured)"
    yield f"{'engine, first load':<36}{found.first_load.seconds:>10.2f}"
    yield f"{'engine, nothing to do (warm)':<36}{found.nothing_to_do.seconds:>10.2f}"
    yield ""
    yield "where a run's time goes:"
    for percent in percents:
        yield f"  {percent:>5g} %  " + ", ".join(
            f"{name} {seconds:.2f}" for name, seconds in where(middle(found.engine[percent])).items()
        )
    yield ""
    yield (
        f"The results differ: {', '.join(found.differing)}."
        if found.differing
        else "All results hold the same rows."
    )


def where(sample: Sample) -> dict[str, float]:
    """Seconds per node, and the rest: loading the project, reading the lake, planning.

    The quarantine runs in parallel with the snapshot.
    """
    return {
        **sample.by_node,
        "the rest": max(
            0.0, sample.seconds - sum(s for n, s in sample.by_node.items() if not n.endswith("_quarantine"))
        ),
    }
