"""Entities that follow their events and records day by day, beside full recomputes of the same variables."""

import shutil
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from strandline.app.planning import RunRequest
from strandline.app.run import run
from strandline.app.workspace import open_workspace
from strandline.model.plan import TaskResult
from strandline.spark.session import get_session

from . import entity_peers as peers
from .comparators import open_plain
from .engine import PROJECT as REGISTER_PROJECT
from .engine import SILENT, find_table
from .entity_shares import MOST_SHARED_ROWS, Share, measure_shares
from .measure import Sample, measure
from .profiles import WINDOWS, Aggregate, Events, declare, make_variables, make_wide
from .progress import say
from .register import deliver, make_register
from .startup import TRIES, Start, time_command

PARTS = {
    "a": "events day by day",
    "b": "records",
    "c": "many variables, and verbs without Spark",
    "d": "how much may change before everything is computed",
}
REFERENCE_ROWS = 30_000_000
DAYS, ROWS_A_USER = 600, 30
REGISTER_FACTS_A_TENANT = 34_578
WARM_UP, ROUNDS = 3, 3
"""Increments of each kind. A JVM needs several until it is warm."""
PEER_WARM_UP, PEER_ROUNDS = 1, 2
"""Recomputes of each peer, which take long."""
MANY, FEW = 400, 20
LATER = "2040-01-0{}T00:00:00+00:00"
"""Times when every event has left every window."""
AS_OF = datetime(2030, 2, 1, tzinfo=UTC)
"""Of the register. Its increments are a month old."""
PLACES = """\
entities:
  place:
    id: [tenant, postal_code]
    variables:
      live: {from: register, select: "count(registration_number)"}
      recent:
        from: register
        select: "count(registration_number)"
        window: {column: snapshot_at, last: 90 days}
      kinds: {from: register, select: "count(distinct property_type)"}
      last_change: {from: register, select: "max(snapshot_seq)"}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """One thing that was measured: a sample of each round, and rows of the last task of an entity."""

    samples: list[Sample]
    strategy: str = ""
    rows_read: int = 0
    rows_written: int = 0


@dataclass(slots=True, kw_only=True)
class Entities:
    parts: tuple[str, ...]
    rows: int
    a_day: int
    users: int
    facts: int
    engine: dict[str, Done] = field(default_factory=dict)
    peers: dict[str, list[Sample]] = field(default_factory=dict)
    starts: dict[str, Start] = field(default_factory=dict)
    in_bands: int = 0
    """The rows of a day of events and those in the bands that a day moves."""
    shares: list[Share] = field(default_factory=list)
    differing: tuple[str, ...] = ()
    """Results whose rows differ from those of plain PySpark. There must be none."""


def measure_entities(folder: Path, rows: int, parts: Collection[str]) -> Entities:
    a_day = max(1, rows // DAYS)
    found = Entities(parts=tuple(parts), rows=rows, a_day=a_day, users=max(1, rows // ROWS_A_USER), facts=0)
    if "c" in parts:
        _measure_wide(folder / "wide", found)
        shutil.rmtree(folder / "wide")
    if "a" in parts:
        _measure_stream(folder, found)
        shutil.rmtree(folder / "stream")
    if "d" in parts:
        found.shares = measure_shares(folder / "shares", min(rows, MOST_SHARED_ROWS))
        shutil.rmtree(folder / "shares")
    if "b" in parts:
        _measure_register(folder / "register", found, max(1, rows * 10 // 30 // REGISTER_FACTS_A_TENANT))
        shutil.rmtree(folder / "register")
    return found


@dataclass(slots=True, kw_only=True)
class Bench:
    """A project over events, and its peers."""

    folder: Path
    events: Events
    found: Entities
    session: SparkSession

    def run(self, name: str, entity: str, *, upstream: bool = True, counted: bool = True) -> TaskResult:
        """Run up to an entity at the midnight after the last day."""
        request = RunRequest(as_of=self.events.as_of, select=f"+{entity}" if upstream else entity)
        return run_once(self.folder, self.session, request, entity, self.found, name if counted else "")

    def read(self, entity: str) -> DataFrame:
        table = find_table(self.folder / ".strandline" / "lake", entity)
        return self.session.read.format("delta").load(str(table)).where("NOT _deleted")


def run_once(
    folder: Path, session: SparkSession, request: RunRequest, entity: str, found: Entities, name: str
) -> TaskResult:
    results: list[TaskResult] = []

    def work() -> dict[str, float]:
        with open_workspace(folder) as workspace:
            outcome = run(workspace, request, SILENT)
        if outcome.exit_code:
            raise RuntimeError("\n".join(f"{r.node}: {r.error}" for r in outcome.results if r.error))
        results.extend(outcome.results)
        return {result.node: result.seconds for result in outcome.results}

    sample = measure(session, work)
    result = next(r for r in results if r.node == entity)
    nodes = ", ".join(f"{node} {seconds:.1f}" for node, seconds in sample.by_node.items() if seconds > 0.2)
    say(
        f"  {name or 'load'}: {sample.seconds:.1f} s, {sample.cpu_seconds:.1f} CPU s, {sample.jobs} jobs"
        f" ({nodes}); {entity}: {result.strategy}, {result.rows_read:,} read, {result.rows_written:,} written"
    )
    if name:
        before = found.engine[name].samples if name in found.engine else []
        found.engine[name] = Done(
            samples=[*before, sample],
            strategy=str(result.strategy),
            rows_read=result.rows_read,
            rows_written=result.rows_written,
        )
    return result


def _open(folder: Path, found: Entities, days: int, entities: dict[str, tuple[Aggregate, ...]]) -> Bench:
    events = Events(folder=folder, days=days, a_day=found.a_day, users=found.users)
    say(f"{events.rows:,} events of {events.users:,} users over {days} days")
    events.make()
    (folder / "strandline.yaml").write_text(declare(entities))
    with open_workspace(folder) as workspace:
        session = get_session(workspace.project.settings)
    return Bench(folder=folder, events=events, found=found, session=session)


def _measure_stream(folder: Path, found: Entities) -> None:
    """Days with and without events. A project with a third of the history takes turns with the other."""
    variables = make_variables()
    added = tuple(v for v in variables if v.adds)
    shorter = _open(folder / "shorter", found, DAYS // 3, {"users": variables})
    shorter.run("", "users", counted=False)
    bench = _open(folder / "stream", found, DAYS, {"users": variables, "totals": added})
    bench.run("first load", "users")
    bench.run("first load of what accumulates", "totals", upstream=False)
    for nth in range(WARM_UP + ROUNDS):
        counted = nth >= WARM_UP
        for one in (shorter, bench):
            one.events.pass_day(with_events=True)
        shorter.run("a day of events, a third of the history", "users", counted=counted)
        bench.run("a day of events", "users", counted=counted)
        bench.run("a day of events, what accumulates", "totals", upstream=False, counted=counted)
    shutil.rmtree(folder / "shorter")
    # The day itself, and a day at each edge: the newest, where the events of the day lie, and three others.
    found.in_bands = found.a_day * (2 + len(WINDOWS))
    _compare(bench, "events", "users", variables, rounds=PEER_ROUNDS)
    for nth in range(WARM_UP + ROUNDS):
        bench.events.pass_day(with_events=False)
        bench.run("a day without events", "users", counted=nth >= WARM_UP)
    _compare(bench, "events", "users", variables, rounds=0)


def _compare(bench: Bench, what: str, entity: str, variables: Sequence[Aggregate], *, rounds: int) -> None:
    """Both peers in full, and whether all three have the same rows."""
    plain, as_of, data = open_plain(bench.session), bench.events.as_of, bench.events.data
    folder = bench.folder
    spark_target, duck_target = folder / "pyspark", folder / "duckdb" / "users.parquet"
    columns = ["user_id", *(v.name for v in variables)]
    compare(
        bench.found,
        what,
        lambda: peers.recompute_with_pyspark(plain, data, variables, as_of, spark_target),
        lambda: peers.recompute_with_duckdb(data, variables, as_of, duck_target),
        lambda: (
            bench.read(entity),
            bench.session.read.format("delta").load(str(spark_target)),
            bench.session.read.parquet(str(duck_target)),
        ),
        columns,
        bench.session,
        rounds,
    )


def compare(
    found: Entities,
    what: str,
    pyspark: Callable[[], None],
    duckdb: Callable[[], None],
    read: Callable[[], tuple[DataFrame, DataFrame, DataFrame]],
    columns: Sequence[str],
    session: SparkSession,
    rounds: int,
) -> None:
    """Measure both peers after a first time that is not counted, and compare what all three have."""
    for name, work in ((f"PySpark, {what}", pyspark), (f"DuckDB, {what}", duckdb)):
        for nth in range(PEER_WARM_UP + rounds):
            sample = measure(session, work)
            say(f"  {name}, in full: {sample.seconds:.1f} s, {sample.cpu_seconds:.1f} CPU s")
            if nth >= PEER_WARM_UP:
                found.peers.setdefault(name, []).append(sample)
    engine, spark, duck = (peers.fingerprint(rows, columns) for rows in read())
    say(f"  compared: {spark[0]:,} rows each")
    wrong = [
        name for name, given in ((f"engine, {what}", engine), (f"DuckDB, {what}", duck)) if given != spark
    ]
    found.differing = (*found.differing, *wrong)


def _measure_wide(folder: Path, found: Entities) -> None:
    """Many variables and few on one input, and verbs that need no Spark."""
    days = DAYS // 6
    entities = {f"of_{number}": make_wide(number) for number in (FEW, MANY)}
    bench = _open(folder, found, days, entities)
    for name in entities:
        bench.run(f"first load, {name[3:]} variables", name)
    for nth in range(WARM_UP + ROUNDS):
        bench.events.pass_day(with_events=True)
        for name in entities:
            bench.run(f"a day of events, {name[3:]} variables", name, counted=nth >= WARM_UP)
    _compare(bench, f"{MANY} variables", f"of_{MANY}", entities[f"of_{MANY}"], rounds=0)
    few = f"of_{FEW}"
    for nth in (1, 2):  # the second time nothing is left to cross a border
        request = RunRequest(as_of=datetime.fromisoformat(LATER.format(nth)), select=few)
        with open_workspace(folder) as workspace:
            outcome = run(workspace, request, SILENT)
        say(f"  at {LATER.format(nth)}: {len(outcome.results)} tasks")
    for name, words in {
        "run when no row crosses a border": ("run", "--select", few, "--as-of", LATER.format(3)),
        "plan": ("plan", "--select", few, "--as-of", LATER.format(3)),
        "explain": ("explain", few),
    }.items():
        tries = [time_command(folder, words) for _ in range(TRIES)]
        found.starts[name] = Start(
            seconds=[seconds for seconds, _ in tries], jvm=any(jvm for _, jvm in tries)
        )
        say(f"  {name}: {found.starts[name].best:.2f} s{', and a JVM' if found.starts[name].jvm else ''}")


def _measure_register(folder: Path, found: Entities, tenants: int) -> None:
    register = make_register(folder / "made", tenants)
    found.facts = register.facts
    say(f"a register of {tenants} tenants: {register.facts:,} facts, {register.keys:,} records")
    project = folder / "project"
    project.mkdir()
    (project / "strandline.yaml").write_text(REGISTER_PROJECT + PLACES)
    for file in register.base:
        deliver(file, project / "data")
    with open_workspace(project) as workspace:
        session = get_session(workspace.project.settings)
    request = RunRequest(as_of=AS_OF)
    run_once(project, session, request, "place", found, "first load, records")
    changed = max(1, register.keys // 1000)
    for nth in range(WARM_UP + ROUNDS):
        deliver(register.make_increment(changed), project / "data")
        run_once(project, session, request, "place", found, "0.1 % of the records" if nth >= WARM_UP else "")
    plain, facts = open_plain(session), project / "data"
    spark_target, duck_target = folder / "pyspark", folder / "duckdb" / "places.parquet"
    delta = session.read.format("delta")
    compare(
        found,
        "records",
        lambda: peers.recompute_places_with_pyspark(plain, facts, AS_OF, spark_target),
        lambda: peers.recompute_places_with_duckdb(facts, AS_OF, duck_target),
        lambda: (
            delta.load(str(find_table(project / ".strandline" / "lake", "place"))).where("NOT _deleted"),
            session.read.format("delta").load(str(spark_target)),
            session.read.parquet(str(duck_target)),
        ),
        [*peers.PLACES, *peers.OF_PLACES],
        session,
        PEER_ROUNDS,
    )
