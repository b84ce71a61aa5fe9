"""`python -m bench`: measure, write JSON and a plot, print a table of ratios and targets."""

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from .progress import say
from .report import Results, machine, print_report, write_report

SECTIONS = (
    "increments",
    "history",
    "startup",
    "small",
    "chain",
    "overhead",
    "recovery",
    "ingest",
    "portfolio",
    "entities",
    "publish",
    "serve",
)


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", choices=SECTIONS, help="one part of it")
    parser.add_argument(
        "--scale",
        type=int,
        default=300,
        metavar="TENANTS",
        help="how many tenants share the register; 300 are 10.4 million facts",
    )
    parser.add_argument(
        "--blocks", type=int, default=1_000_000, metavar="N", help="how long the longer chain is"
    )
    parser.add_argument(
        "--rows",
        type=int,
        metavar="N",
        help="how many rows the portfolios have (25,000,000), or events the entities (30,000,000)",
    )
    parser.add_argument(
        "--events",
        type=int,
        default=10_000,
        metavar="N",
        help="how many webhooks are sent; a trigger is added to a table of a hundred times as many rows",
    )
    parser.add_argument(
        "--parts",
        default="abcd",
        metavar="PARTS",
        help="which parts of the entities: a events, b records, c many variables, d when all are computed",
    )
    parser.add_argument("--output", type=Path, default=Path("bench/results"), metavar="DIR")
    call = parser.parse_args(words)
    if call.scale < 1:
        parser.error("--scale must be at least 1")
    if not set(call.parts) <= set("abcd"):
        parser.error("--parts are some of the letters a, b, c and d")
    # The folder holds gigabytes, so a terminated process removes it too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="strandline-bench-"))
    try:
        results = _measure(folder, call, (call.only,) if call.only else SECTIONS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    write_report(results, call.output)
    print_report(results, call.output)
    compared = (results.increments, results.portfolio, results.entities)
    return 1 if any(found and found.differing for found in compared) else 0


def _measure(folder: Path, call: argparse.Namespace, sections: tuple[str, ...]) -> Results:
    from .chain import measure_chain
    from .engine import open_engine
    from .entities import measure_entities
    from .history import measure_history
    from .increments import measure_increments
    from .ingest import measure_ingest
    from .overhead import measure_overhead
    from .portfolio import measure_portfolio
    from .publish_report import Publish
    from .published_runs import measure_published_runs
    from .recovery import measure_recovery
    from .register import make_register
    from .serve_report import Served
    from .served_runs import measure_served_runs
    from .small_runs import measure_small_runs
    from .startup import measure_startup
    from .subscribers import measure_subscribers
    from .webhooks import measure_webhooks

    scale, blocks = call.scale, call.blocks
    # These come first, while this process does not have a JVM.
    startup = measure_startup(folder) if "startup" in sections else None
    small_runs = measure_small_runs(folder) if "small" in sections else None
    recovery = measure_recovery(folder) if "recovery" in sections else None
    chains = (
        [measure_chain(folder / f"chain_{n}", n) for n in (blocks // 10, blocks)]
        if "chain" in sections
        else None
    )
    overhead = measure_overhead(folder) if "overhead" in sections else None
    ingest = measure_ingest(folder / "ingest") if "ingest" in sections else None
    portfolio = (
        measure_portfolio(folder / "portfolio", call.rows or 25_000_000) if "portfolio" in sections else None
    )
    entities = (
        measure_entities(folder / "entities", call.rows or 30_000_000, call.parts)
        if "entities" in sections
        else None
    )
    publish = None
    if "publish" in sections:
        publish = Publish(
            webhooks=measure_webhooks(folder / "webhooks", call.events),
            runs=measure_published_runs(folder / "published", 100 * call.events),
        )
    served = None
    if "serve" in sections:
        served = Served(
            subscribers=measure_subscribers(folder / "subscribers"),
            runs=measure_served_runs(folder / "served"),
        )
    others: dict[str, Any] = {
        "startup": startup,
        "small_runs": small_runs,
        "recovery": recovery,
        "chains": chains,
        "overhead": overhead,
        "ingest": ingest,
        "portfolio": portfolio,
        "entities": entities,
        "publish": publish,
        "served": served,
    }
    if not {"increments", "history"} & set(sections):
        return Results(machine=machine(None), scale=scale, register=None, **others)
    say(f"a register of {scale} tenants")
    register = make_register(folder / "register", scale)
    say(f"  {register.facts:,} facts, {register.keys:,} keys, from {register.origin}")
    engine = open_engine(folder / "engine", register)
    increments = None
    if "increments" in sections:
        increments = measure_increments(register, engine, folder)
    elif "history" in sections:
        engine.run(register.facts)
    history = measure_history(register, engine, folder) if "history" in sections else None
    return Results(
        machine=machine(engine.session),
        scale=scale,
        register=register,
        increments=increments,
        history=history,
        **others,
    )


if __name__ == "__main__":
    sys.exit(main())
