"""`maintain` keeps rows and changes in fewer files, and never removes a file that is still needed."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path

import pytest

from strandline.app.doctor import examine
from strandline.app.finding import Result
from strandline.app.maintain import MaintainOutcome, maintain_tables
from strandline.app.planning import RunRequest
from strandline.app.query import KnownAt, query
from strandline.app.workspace import Workspace, open_workspace
from strandline.catalog import list_leases
from strandline.dispatch.failpoints import hits
from strandline.lake.files import list_stored, read_files
from strandline.lake.log import LogEntry, list_versions, read_entries
from strandline.model.commits import Operation
from strandline.model.errors import CallError
from strandline.model.maintained import Maintained
from strandline.model.plan import Strategy
from tests.harness import TestProject, result_of

pytestmark = pytest.mark.spark

YAML = """
    project: register
    sources:
      events: {files: "data/*.jsonl"}
    datasets:
      item:
        from: events
        columns: {id: id, name: name, at: {path: at, type: timestamp_ms}}
        record_set: {key: [id], order_by: [at]}
    jobs:
      - name: names
        input_datasets: [item]
        output_dataset: names
        incremental: {mode: keyed, key: [name]}
        sql: select name, count(*) as items from item group by name
"""
NODES = ("events", "item_facts", "item", "names")
POINTS = ("before-compact", "after-compact", "before-vacuum", "after-vacuum")


@dataclass(frozen=True)
class Register(TestProject):
    __test__ = False

    def table(self, node: str) -> str:
        return str(self.folder / ".strandline" / "lake" / node)

    def send(self, nth: int, **names: str) -> None:
        """A file of messages with the current names of items."""
        self.lines(
            f"data/{nth:03}.jsonl", *({"id": item, "name": name, "at": nth} for item, name in names.items())
        )

    @contextmanager
    def opened(self, keep: timedelta | None = None) -> Iterator[Workspace]:
        """The workspace, or the workspace with a shorter time to keep."""
        with open_workspace(self.folder) as workspace:
            project = workspace.project
            settings = project.settings if keep is None else replace(project.settings, keep=keep)
            yield replace(workspace, project=replace(project, settings=settings))

    def maintain(self, keep: timedelta | None = None, name: str | None = None) -> MaintainOutcome:
        with self.opened(keep) as workspace:
            return maintain_tables(workspace, name, lambda _: None)

    def operations(self, node: str) -> list[Operation | None]:
        return [e.metadata.operation if e.metadata else None for e in read_entries(self.table(node), -1)]

    def last(self, node: str) -> LogEntry:
        return list(read_entries(self.table(node), -1))[-1]

    def everything(self) -> dict[str, set[tuple[object, ...]]]:
        return {
            "item": self.rows("item", "id", "name"),
            "names": self.rows("names"),
            "item_facts": self.rows("item_facts", "id", "name", "at"),
        }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Register:
    """Two runs: every table has more than one file. Never changed; tests work on copies."""
    project = Register(TestProject.create(tmp_path_factory.mktemp("built") / "project", YAML).folder)
    project.send(0, i0="a", i1="a", i2="b", i3="c")
    project.run()
    project.send(1, i1="b")
    project.run()
    return project


@pytest.fixture
def project(built: Register, tmp_path: Path) -> Register:
    return built.copy(tmp_path / "project")


def of(outcome: MaintainOutcome, node: str) -> Maintained:
    return next(t for t in outcome.tables if t.dataset == node)


def test_a_life_with_maintenance(project: Register, monkeypatch: pytest.MonkeyPatch) -> None:
    """One story, because most of the time goes into Spark's commits."""
    before, versions = project.everything(), {node: list_versions(project.table(node))[-1] for node in NODES}

    # compaction changes only files; everything older is kept for 30 days
    outcome = project.maintain()

    assert [t.error for t in outcome.tables] == [""] * len(outcome.tables)
    for node in NODES:
        maintained = of(outcome, node)
        assert (
            maintained.files_after == len(read_files(project.table(node), -1).live) < maintained.files_before
        ), maintained
        assert (maintained.removed_files, maintained.freed_bytes) == (0, 0)
        assert "last 30 days" in maintained.kept_because
        assert maintained.kept_files > 0
        assert set(project.operations(node)[versions[node] + 1 :]) == {Operation.COMPACT}
        assert not project.last(node).data_change
    assert project.everything() == before
    assert project.plan().tasks == ()
    with project.opened() as workspace:
        assert all(lease.returned for lease in list_leases(workspace.catalog))
        old = query(workspace, "select name, items from names", KnownAt(versions={"names": 0}))
        assert set(old.rows) == {("a", 2), ("b", 1), ("c", 1)}

    # the second call has nothing to do and does not start Spark
    with monkeypatch.context() as patched:
        patched.setattr("strandline.app.maintain.open_lake", lambda *_: pytest.fail("Spark was asked"))
        assert [t.files_after for t in project.maintain().tables] == [t.files_after for t in outcome.tables]

    # a job that lags behind keeps what it has not read yet, however short the time to keep
    project.send(2, i2="d")
    project.run(RunRequest(select="+item"))
    held = of(project.maintain(timedelta(0), "item"), "item")
    assert "`names` has read it up to version" in held.kept_because, held
    assert held.kept_files > 0

    project.send(3, i3="e")
    went_on = project.run()

    assert result_of(went_on, "names").strategy is Strategy.RECOMPUTE, (
        "it went on from its cursor, without a gap"
    )
    assert project.rows("names") == {("a", 1), ("b", 1), ("d", 1), ("e", 1)}

    # once it has caught up, the past may go. The table announces it first, then it is removed. A process that
    # dies in between leaves nothing wrong.
    stored, rows = len(list_stored(project.table("item"))), project.rows("item", "id", "name")
    for point in POINTS:
        monkeypatch.setenv("STRANDLINE_FAILPOINTS", f"{point}:item=raise")
        maintained = of(project.maintain(timedelta(0), "item"), "item")
        assert f"failpoint {point} of item" in maintained.error
        assert project.rows("item", "id", "name") == rows
    monkeypatch.delenv("STRANDLINE_FAILPOINTS")
    assert all(hits[point] for point in POINTS)

    maintained = of(project.maintain(timedelta(0), "events"), "events")

    assert (maintained.error, maintained.files_after) == ("", 1)
    assert maintained.removed_files > 0
    assert maintained.freed_bytes > 0
    assert of(project.maintain(timedelta(0), "item"), "item").error == ""
    assert len(list_stored(project.table("item"))) < stored
    announced = [
        e.metadata for e in read_entries(project.table("item"), -1) if e.metadata and e.metadata.readable_from
    ]
    assert announced
    assert announced[-1].operation is Operation.CLEAN
    with project.opened() as workspace:
        query(workspace, "select * from item", KnownAt(versions={"item": announced[-1].readable_from}))
        with pytest.raises(CallError) as refused:
            query(workspace, "select * from item", KnownAt(versions={"item": 0}))
    assert refused.value.slug == "not-kept"
    wrong = [f for f in examine(project.folder, deep=True) if f.result is Result.WRONG]
    assert not wrong, wrong
    project.send(4, i0="e")
    went_on = project.run()
    assert {r.strategy for r in went_on.results} <= {Strategy.APPEND, Strategy.RECOMPUTE}
    assert project.rows("names") == {("b", 1), ("d", 1), ("e", 2)}
    project.assert_verified()


def test_whoever_reads_meanwhile_sees_the_same_rows_all_the_time(project: Register) -> None:
    """Files are merged and removed while others query.

    Every version that a reader may have opened stays readable until maintenance has ended.
    """
    project.maintain()
    project.send(2, i2="d")
    project.run()
    expected, seen, stop = project.everything(), [], threading.Event()

    def read_on() -> None:
        while not stop.is_set():
            seen.append(project.everything())

    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read_on)
        try:
            outcome = project.maintain(timedelta(0))
        finally:
            stop.set()
        reading.result()

    assert [t.error for t in outcome.tables] == [""] * len(outcome.tables)
    assert all(t.removed_files for t in outcome.tables if t.dataset in NODES), outcome.tables
    assert len(seen) > 3
    assert all(rows == expected for rows in seen)
    assert project.everything() == expected
