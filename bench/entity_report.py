"""What the entity benchmark prints: seconds, rows, and the figures to reach."""

from collections.abc import Iterator

from strandline.model.plan import Strategy

from .entities import FEW, MANY, REFERENCE_ROWS, Entities
from .measure import median, middle
from .startup import START_SECONDS
from .target import Target


def entity_targets(found: Entities) -> Iterator[Target]:
    """The ratios, all from this run."""
    engine = {name: median(done.samples) for name, done in found.engine.items()}
    full = {name: median(samples) for name, samples in found.peers.items()}

    def faster(text: str, name: str, peer: str, bound: float) -> Target:
        return Target(text=text, value=full[peer] / engine[name], bound=bound, at_least=True)

    def at_most(text: str, value: float, bound: float) -> Target:
        return Target(text=text, value=value, bound=bound, at_least=False)

    if "a" in found.parts:
        day = f"{found.a_day:,} events on {found.rows:,}, 20 variables"
        yield faster(f"{day}: against PySpark in full", "a day of events", "PySpark, events", 6)
        yield faster(f"{day}: against DuckDB in full", "a day of events", "DuckDB, events", 1.2)
        none = "a day without events"
        yield faster(f"{none}, against PySpark in full", none, "PySpark, events", 8)
        yield faster(f"{none}, against DuckDB in full", none, "DuckDB, events", 1.5)
        shorter = engine["a day of events"] / engine["a day of events, a third of the history"]
        yield at_most("that day: seconds over those with a third of the history", shorter, 1.25)
        read = found.engine["a day of events, what accumulates"].rows_read / found.in_bands
        yield at_most("what accumulates: rows read over the day's and those in bands", read, 1.05)
    if "b" in found.parts:
        records = f"0.1 % of the records of {found.facts:,} facts"
        yield faster(f"{records}: against PySpark in full", "0.1 % of the records", "PySpark, records", 6)
        yield faster(f"{records}: against DuckDB in full", "0.1 % of the records", "DuckDB, records", 1.2)
    if "c" in found.parts:
        wide = "a day of events, {} variables"
        more = engine[wide.format(MANY)] / engine[wide.format(FEW)]
        yield at_most(f"{MANY} variables: seconds over those of {FEW}", more, 12)
        passes = found.engine[wide.format(MANY)].rows_read / found.engine[wide.format(FEW)].rows_read
        yield at_most(f"{MANY} variables: rows read over those of {FEW} (one pass)", passes, 1)
    for name, start in found.starts.items():
        note = "a JVM was started" if start.jvm else ""
        yield Target(text=name, value=start.best, bound=START_SECONDS, at_least=False, unit=" s", note=note)


def entity_lines(found: Entities) -> Iterator[str]:
    yield (
        f"\n{found.rows:,} events of {found.users:,} users;"
        " seconds, CPU seconds, Spark jobs, rows that the entity read and wrote:"
    )
    for name, done in found.engine.items():
        sample = middle(done.samples)
        yield (
            f"  engine, {name:<44}{sample.seconds:>9.2f} {sample.cpu_seconds:>9.2f} {sample.jobs:>5}"
            f" {done.rows_read:>12,} {done.rows_written:>10,}  {done.strategy}"
        )
    for name, samples in found.peers.items():
        sample = middle(samples)
        yield f"  {name + ', in full':<52}{sample.seconds:>9.2f} {sample.cpu_seconds:>9.2f}"
    for share in found.shares:
        of = "entities affected" if share.strategy == Strategy.RECOMPUTE else "more rows"
        yield (
            f"  {share.strategy}, {share.percent} % {of}: {median(share.followed):.2f} s,"
            f" in full {median(share.in_full):.2f} s: {share.ratio:.2f}x"
        )
    if not found.peers:
        return
    yield (
        f"The results differ: {', '.join(found.differing)}."
        if found.differing
        else "All results hold the same rows."
    )
    if found.rows != REFERENCE_ROWS:
        yield f"The figures to reach are meant for --rows {REFERENCE_ROWS}; this is {found.rows}."
