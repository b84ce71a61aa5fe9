"""Checks at the end, without kills and new input: the work drains, and every visible law holds."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from strandline.app.clock import now
from strandline.app.doctor import examine
from strandline.app.finding import Result
from strandline.app.planning import RunRequest
from strandline.app.run import make_desk, no_session, run_name
from strandline.app.workspace import open_workspace
from strandline.catalog import open_catalog, read_invalidations, read_view
from strandline.dispatch.rebuild import rebuild
from strandline.lake.log import list_versions, read_entries
from strandline.model.errors import CallError
from strandline.model.plan import Plan
from strandline.model.project import Job
from tests.faults.evidence import require
from tests.faults.kinds.chain.oracle import canonical
from tests.faults.kinds.snapshot.oracle import latest
from tests.faults.laws import BARE, check_commits_of, check_rebuilt
from tests.faults.table_log import Row
from tests.harness import TestProject

from .feed import Feeder
from .model import BLOCK, ITEM, RATE, Place, Sent, read_sent, size_up, weigh
from .reader import ONCE, find_twice

MOST_RUNS = 4
"""More than enough: after a fault at most a second run is needed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """A project at rest, and what was sent to it."""

    project: TestProject
    item: Sent
    rate: Sent
    block: Sent
    factor: int

    @classmethod
    def of(cls, folder: Path, feeder: Feeder) -> "Rest":
        project = TestProject(folder)
        with open_workspace(folder) as workspace:
            worth = workspace.project.get("worth").definition
            assert isinstance(worth, Job)
            factor = int(str(worth.config["factor"]))
        return cls(
            project=project,
            item=read_sent(feeder.sent, feeder.part, "items", ITEM, ("id", "price", "at"), ("id", "at")),
            rate=read_sent(feeder.sent, feeder.part, "rates", RATE, ("kind",)),
            block=read_sent(feeder.sent, feeder.part, "blocks", BLOCK, ("number", "hash", "weight")),
            factor=factor,
        )

    def rows(self, dataset: str, *columns: str) -> list[tuple[Any, ...]]:
        """Rows that a reader sees.

        Empty if the table does not exist, as for a quarantine that was never needed.
        """
        try:
            return self.project.query(f"select {', '.join(columns)} from {dataset}")
        except CallError as error:
            require(error.slug == "never-built", "a query", error)
            return []

    def places(self, dataset: str, *columns: str) -> dict[Place, tuple[Any, ...]]:
        """Rows by their position. None occurs twice."""
        rows = self.rows(dataset, "_source_position", *columns)
        by_place = {(name, part, place): tuple(rest) for (name, part, place), *rest in rows}
        require(len(by_place) == len(rows), "L10 nothing twice", dataset, len(rows), len(by_place))
        return by_place


def drain(folder: Path) -> int:
    """Run until nothing waits, then backfill what an older configuration wrote."""
    project = TestProject(folder)
    for nth in range(MOST_RUNS):
        if not project.plan().tasks:
            project.run(RunRequest(backfill="weigh", only_stale=True, reason="the end of the soak"))
            return nth
        project.run()
    raise AssertionError(
        f"work does not drain: {[(t.node, t.cause, t.reason) for t in project.plan().tasks]}"
    )


def find_broken(rest: Rest, check_told: Callable[[Rest], None]) -> Iterator[str]:
    """The laws that do not hold, each with what was seen."""
    laws = {law.__name__.removeprefix("check_"): law for law in LAWS} | {"told": check_told}
    for name, law in laws.items():
        try:
            law(rest)
        except Exception as broken:  # noqa: BLE001 a law that cannot be checked must not hide the others
            yield f"{name}: {type(broken).__name__} {str(broken)[:2000]}"


def check_verified(rest: Rest) -> None:
    """L2: incremental equals full recompute, for every dataset."""
    rest.project.assert_verified()


def check_received(rest: Rest) -> None:
    """L1, L10: each line is once in its source's table; each fact is once among the facts or the refused."""
    for source, dataset, sent in (
        ("item_lines", "item", rest.item),
        ("rate_lines", "rate", rest.rate),
        ("block_lines", "block", rest.block),
    ):
        received = {place: row[0] for place, row in rest.places(source, "_payload").items()}
        _same(received, sent.lines, f"L1 {source}")
        refused = rest.places(f"{dataset}_quarantine")
        _same_keys(refused, sent.lines.keys() - sent.facts.keys(), f"L10 {dataset}_quarantine")
    for dataset, columns, sent in (("item_facts", ITEM, rest.item), ("rate_facts", RATE, rest.rate)):
        actual = rest.places(dataset, *columns)
        _same(
            actual,
            {place: tuple(row[c] for c in columns) for place, row in sent.facts.items()},
            f"L10 {dataset}",
        )
    blocks = sorted(rest.rows("block", *BLOCK))
    wanted = sorted({tuple(row[c] for c in BLOCK) for row in rest.block.facts.values()})
    require(blocks == wanted, "L10 each block once", len(blocks), len(wanted))


def latest_by(sent: Sent, column: str) -> dict[Any, Row]:
    """The latest of what was sent, by one column."""
    return {row[column]: row for row in latest(sent.facts.items(), column).values()}


def check_results(rest: Rest) -> None:
    """L2, L4 from the lines themselves: snapshots, jobs over them, and the canonical branch."""
    items, rates = latest_by(rest.item, "id"), latest_by(rest.rate, "kind")
    _same(
        _by_key(rest.rows("item", *ITEM)),
        {key: tuple(row[c] for c in ITEM[1:]) for key, row in items.items()},
        "L2 item",
    )
    _same(
        _by_key(rest.rows("rate", *RATE)),
        {key: tuple(row[c] for c in RATE[1:]) for key, row in rates.items()},
        "L2 rate",
    )
    worth = weigh(items.values(), rates, rest.factor)
    _same(_by_key(rest.rows("worth", "kind", "items", "worth")), worth, "L2 worth")
    _same(_by_key(rest.rows("sizes", "items", "kinds", "worth")), size_up(worth), "L2 sizes")
    _same(
        _by_key(rest.rows("shelves", "id", "kind", "price")),
        {key: (row["kind"], row["price"]) for key, row in items.items()},
        "L2 shelves",
    )
    hot = {number: (row["hash"],) for number, row in canonical(rest.block.facts.items())[0].items()}
    _same(_by_key(rest.rows("hot", "number", "hash")), hot, "L2 hot")


def check_appended(rest: Rest) -> None:
    """L2 of an append output: no row is missing, invented or repeated."""
    fired, alerts = rest.rows("told", "kind", "price"), rest.rows("alerts", "hash", "number")
    live = latest(rest.item.facts.items(), "id").values()
    _within(_pairs(live), set(fired), _pairs(rest.item.facts.values()), "told")
    ever = {(row["hash"], row["number"]) for row in rest.block.facts.values() if row["number"] % 3 == 0}
    now_there = {
        (row["hash"], number)
        for number, row in canonical(rest.block.facts.items())[0].items()
        if number % 3 == 0
    }
    _within(now_there, set(alerts), ever, "alerts")
    for dataset in ONCE:
        twice = find_twice(rest.project.folder, dataset)
        require(not twice, "L5 nothing twice", twice[:5])


def check_commits(rest: Rest) -> None:
    """L7, L12: tokens grow, a task id belongs to one commit, and every commit has its metadata."""
    with open_workspace(rest.project.folder) as workspace:
        for node in workspace.project.nodes:
            check_commits_of(node.name, list(read_entries(workspace.lake.table(node.name), -1)))


def check_catalog(rest: Rest) -> None:
    """L6: the catalog equals one that is filled from the tables alone."""
    with open_workspace(rest.project.folder) as workspace:
        again = replace(workspace, catalog=open_catalog("sqlite://"))
        at = now()
        rebuild(
            make_desk(
                again, again.observe(), Plan(as_of=at, tasks=()), run_name(at), no_session, RunRequest()
            )
        )
        view, rebuilt = read_view(workspace.catalog), read_view(again.catalog)
        for node in workspace.project.nodes:
            if not list_versions(workspace.lake.table(node.name)):
                continue
            record = view.nodes[node.name]
            entries = read_entries(workspace.lake.table(node.name), record.table_version)
            missed = [e.metadata.operation for e in entries if e.metadata]
            require(set(missed) <= BARE, "L6 only what moves nothing may be unrecorded", node.name, missed)
            check_rebuilt(node.name, record, rebuilt.nodes[node.name])
        jobs = [n.name for n in workspace.project.nodes if n.kind == Job.kind]
        owed = [row for row in read_invalidations(workspace.catalog, jobs)[1] if not row["processed_at"]]
        require(not owed, "every invalidation is processed", owed[:5])
        again.catalog.close()


def check_doctor(rest: Rest) -> None:
    """The deep check finds nothing wrong in any byte of any file in use."""
    wrong = [
        f"{f.check}: {f.what}" for f in examine(rest.project.folder, deep=True) if f.result is Result.WRONG
    ]
    require(not wrong, "doctor --deep finds nothing", *wrong)


LAWS: tuple[Callable[[Rest], None], ...] = (
    check_received,
    check_results,
    check_appended,
    check_commits,
    check_catalog,
    check_doctor,
    check_verified,
)


def _by_key(rows: Iterable[tuple[Any, ...]]) -> dict[Any, tuple[Any, ...]]:
    return {key: tuple(values) for key, *values in rows}


def _pairs(rows: Iterable[Row]) -> set[tuple[Any, Any]]:
    return {(row["kind"], row["price"]) for row in rows}


def _same(actual: "dict[Any, Any]", wanted: Any, law: str) -> None:
    _same_keys(actual, wanted.keys(), law)
    differing = {key: (actual[key], wanted[key]) for key in actual if actual[key] != wanted[key]}
    require(not differing, law, f"{len(differing)} differ, for example", list(differing.items())[:3])


def _same_keys(actual: "dict[Any, Any]", wanted: Any, law: str) -> None:
    missing, more = set(wanted) - actual.keys(), actual.keys() - set(wanted)
    require(
        not missing and not more,
        law,
        f"{len(missing)} missing",
        list(missing)[:3],
        f"{len(more)} too many",
        list(more)[:3],
    )


def _within(least: set[Any], actual: set[Any], most: set[Any], dataset: str) -> None:
    require(least <= actual, f"L2 {dataset} misses nothing", list(least - actual)[:3])
    require(actual <= most, f"L2 {dataset} invents nothing", list(actual - most)[:3])
