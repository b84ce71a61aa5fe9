"""SQLite equals Postgres for any sequence of calls, and each keeps what the commit protocol relies on."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.catalog import (
    Catalog,
    acquire_lease,
    finish_run,
    next_token,
    open_catalog,
    read_invalidations,
    read_runs,
    read_tasks,
    read_view,
    record_task,
    release_lease,
    renew_leases,
    start_run,
)
from strandline.model.catalog_records import CatalogView
from strandline.model.commits import CommitRecord, Operation
from strandline.model.errors import ConflictError, FencedError
from strandline.model.kind import NodeKind
from strandline.model.leases import Lease
from strandline.model.plan import Status
from strandline.model.project import FactDataset, FileSource, Job
from tests.contract.builders import (
    a_commit,
    a_cursor,
    a_file,
    a_result,
    an_invalidation,
    emptied,
    record,
    record_nothing_new,
)


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call, with a readable repr for failing examples.

    `lease` picks one of the leases acquired so far, counted from the newest.
    """

    verb: str
    dataset: str = "orders"
    holder: str = "worker-1"
    seconds: float = 60
    table_token: int = 0
    break_others: bool = False
    lease: int = 0
    release: bool = False
    commits: tuple[CommitRecord, ...] = ()
    kind: NodeKind = FactDataset.kind
    run: str = "run-1"
    status: Status = Status.DONE
    version: int = 0
    waiting: tuple[str, ...] = ()


datasets = st.sampled_from(["orders", "payments"])
holders = st.sampled_from(["worker-1", "worker-2"])
runs = st.sampled_from(["run-1", "run-2"])
earlier = st.sampled_from([0, 0, 0, 1, 2])
cursors = st.one_of(
    st.builds(a_cursor, st.integers(0, 2**60)),
    st.builds(a_cursor, st.integers(0, 6), st.sampled_from(["table-1", "table-1", "table-2"])),
)
keys = st.sampled_from(["0-10", "10-20", "null", "é/0-10"])
commits = st.builds(
    a_commit,
    st.integers(0, 6),
    table_id=st.sampled_from(["table-1", "table-1", "table-1", "table-2"]),
    operation=st.sampled_from(Operation),
    config=st.sampled_from(["config-a", "config-b", "config-c"]),
    whole=st.booleans(),
    inputs=st.dictionaries(
        st.sampled_from(["sales", "größen", "a.b", "orders", "payments"]), cursors, max_size=2
    ),
    files=st.lists(
        st.builds(a_file, st.sampled_from(["x", "X", "y/é z"]), st.integers(0, 9)), max_size=2
    ).map(tuple),
    counts=st.dictionaries(st.sampled_from(["offered", "accepted"]), st.integers(0, 2**40)),
    partitions=st.dictionaries(keys, st.integers(0, 2**40), max_size=3),
    waiting=st.lists(keys, max_size=2).map(tuple),
    invalidations=st.lists(
        st.builds(an_invalidation, st.sampled_from(["i-1", "i-2", "i-3"])), max_size=2
    ).map(tuple),
    bytes_added=st.integers(0, 2**20),
)
calls = st.one_of(
    st.builds(
        Call,
        verb=st.just("acquire"),
        dataset=datasets,
        holder=holders,
        seconds=st.sampled_from([60, 60, -1]),
        table_token=st.integers(0, 4),
        break_others=st.booleans(),
    ),
    st.builds(
        Call,
        verb=st.just("record"),
        lease=earlier,
        commits=st.lists(commits, max_size=3).map(tuple),
        kind=st.sampled_from([FileSource.kind, FactDataset.kind, Job.kind, NodeKind("one of tomorrow")]),
        release=st.booleans(),
    ),
    st.builds(
        Call,
        verb=st.just("unchanged"),
        lease=earlier,
        version=st.integers(0, 9),
        release=st.booleans(),
        waiting=st.lists(keys, max_size=2).map(tuple),
    ),
    st.builds(Call, verb=st.sampled_from(["next", "release"]), lease=earlier),
    st.builds(Call, verb=st.just("renew"), holder=holders, seconds=st.sampled_from([60, -1])),
    st.builds(Call, verb=st.sampled_from(["start", "finish"]), run=runs),
    st.builds(Call, verb=st.just("task"), dataset=datasets, status=st.sampled_from(Status), run=runs),
)


@dataclass
class Player:
    """Makes calls on one catalog, and knows independently which lease is valid."""

    catalog: Catalog
    leases: list[Lease] = field(default_factory=list)
    good: dict[str, Lease | None] = field(default_factory=dict)
    highest: dict[str, int] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)

    def play(self, call: Call) -> object:
        """The answer or the refusal of the call, without times."""
        try:
            match call.verb:
                case "acquire":
                    return self.acquire(call)
                case "renew":
                    return renew_leases(self.catalog, call.holder, call.seconds)
                case "start" if call.run not in self.started:
                    self.started.add(call.run)
                    start_run(self.catalog, call.run, "2024-01-01", "person")
                    return "started"
                case "finish":
                    finish_run(self.catalog, call.run, "done")
                    return "finished"
                case "task" if call.run in self.started:
                    record_task(self.catalog, call.run, a_result(call.dataset, call.status))
                    return "recorded"
                case "record" | "unchanged" | "next" | "release" if self.leases:
                    return self.use(call, self.leases[-1 - call.lease % len(self.leases)])
        except ConflictError as error:
            return str(error).split("until")[0]
        return "not now"

    def acquire(self, call: Call) -> tuple[int, bool]:
        lease = acquire_lease(
            self.catalog, call.dataset, call.holder, call.seconds, call.table_token, call.break_others
        )
        assert lease.token > max(self.highest.get(call.dataset, 0), call.table_token)
        self.keep(lease)
        return lease.token, lease.must_fence

    def use(self, call: Call, lease: Lease) -> object:
        before = read_view(self.catalog)
        try:
            if call.verb == "next":
                self.keep(next_token(self.catalog, lease))
            elif call.verb == "release":
                release_lease(self.catalog, lease)
            elif call.verb == "record":
                commits = [of(lease.dataset, commit) for commit in call.commits]
                record(
                    self.catalog,
                    lease,
                    *commits,
                    kind=call.kind,
                    release=call.release,
                    readers=readers_of(lease.dataset),
                )
            else:
                version = call.version
                record_nothing_new(
                    self.catalog,
                    lease,
                    version=version,
                    table_version=version,
                    release=call.release,
                    waiting=call.waiting,
                )
        except FencedError:
            assert self.good[lease.dataset] != lease
            assert read_view(self.catalog) == before
            raise
        assert call.verb == "next" or self.good[lease.dataset] == lease
        if call.verb == "release" or call.release:
            self.good[lease.dataset] = None
        return "recorded"

    def keep(self, lease: Lease) -> None:
        self.leases.append(lease)
        self.good[lease.dataset] = lease
        self.highest[lease.dataset] = lease.token

    def picture(self) -> object:
        """Everything that can be read from the catalog, without times."""
        without_times = [
            replace(run, started_at=SOME_TIME, ended_at=run.ended_at and SOME_TIME)
            for run in read_runs(self.catalog, 10)
        ]
        tasks = [read_tasks(self.catalog, run) for run in sorted(self.started)]
        invalidations = [timeless_rows(rows) for rows in read_invalidations(self.catalog, JOBS)]
        return timeless(read_view(self.catalog)), without_times, tasks, invalidations


JOBS = ("orders", "payments")
SOME_TIME = datetime(2024, 1, 1, tzinfo=UTC)
"""Replaces every time that is present."""


def readers_of(dataset: str) -> tuple[str, ...]:
    """Each reads the other."""
    return tuple(job for job in JOBS if job != dataset)


def of(dataset: str, commit: CommitRecord) -> CommitRecord:
    """The commit for this dataset, with its own ids of invalidations."""
    invalidations = tuple(replace(i, id=f"{dataset} {i.id}") for i in commit.metadata.invalidations)
    return replace(commit, metadata=replace(commit.metadata, node=dataset, invalidations=invalidations))


def timeless_rows(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{**row, "processed_at": row["processed_at"] is not None} for row in rows]


def timeless(view: CatalogView) -> CatalogView:
    return CatalogView(
        nodes={
            name: replace(
                node, updated_at=node.updated_at and SOME_TIME, status_since=node.status_since and SOME_TIME
            )
            for name, node in view.nodes.items()
        }
    )


@pytest.fixture(scope="module")
def in_memory() -> Iterator[Catalog]:
    catalog = open_catalog("sqlite://")
    yield catalog
    catalog.close()


@settings(max_examples=60)
@given(made=st.lists(calls, min_size=4, max_size=25))
def test_sqlite_and_postgres_give_the_same_answers(
    in_memory: Catalog, postgres_catalog: Catalog, made: list[Call]
) -> None:
    players = [Player(emptied(in_memory)), Player(emptied(postgres_catalog))]

    answers = [[player.play(call) for call in made] for player in players]

    assert answers[0] == answers[1]
    assert players[0].picture() == players[1].picture()


@settings(max_examples=60)
@given(
    log=st.lists(commits, max_size=8),
    cuts=st.lists(st.tuples(st.integers(0, 8), st.integers(0, 8)), max_size=4),
)
def test_recording_a_log_in_overlapping_pieces_equals_recording_it_at_once(
    in_memory: Catalog, log: list[CommitRecord], cuts: list[tuple[int, int]]
) -> None:
    log = [replace(commit, table_id="table-1", version=version) for version, commit in enumerate(log)]
    emptied(in_memory)
    at_once, in_pieces = (
        acquire_lease(in_memory, name, "worker", 60, 0, False) for name in ("orders", "payments")
    )

    record(in_memory, at_once, *(of("orders", commit) for commit in log), readers=JOBS)
    log = [of("payments", commit) for commit in log]
    for cut, again in sorted(cuts):
        record(in_memory, in_pieces, *log[:cut], readers=JOBS)
        record(in_memory, in_pieces, *log[min(again, cut) : cut], readers=JOBS)
    record(in_memory, in_pieces, *log, readers=JOBS)

    nodes = timeless(read_view(in_memory)).nodes
    assert ("orders" in nodes) == ("payments" in nodes) == bool(log)
    if log:
        partitions = {key: replace(p, dataset="orders") for key, p in nodes["payments"].partitions.items()}
        assert replace(nodes["payments"], dataset="orders", partitions=partitions) == nodes["orders"]
    recorded = [
        (row["dataset"], str(row["id"]).removeprefix(f"{row['dataset']} "))
        for row in read_invalidations(in_memory, JOBS)[0]
    ]
    assert sorted(id_ for name, id_ in recorded if name == "orders") == sorted(
        id_ for name, id_ in recorded if name == "payments"
    )
    assert len(recorded) == len(set(recorded))
