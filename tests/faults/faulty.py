"""A small project whose tables and catalog a test looks into, and damages."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from strandline.app.workspace import open_workspace
from strandline.catalog import read_view
from strandline.dispatch.failpoints import hits
from strandline.lake.location import Lake
from strandline.lake.log import LogEntry, list_versions, read_entries
from strandline.lake.table import get_table
from strandline.model.catalog_records import CatalogView
from tests.harness import TestProject

from .laws import check_tokens_of
from .processes import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Done = TypeVar("Done")
Fail = Callable[[str], None]
"""Asks for failpoints; with "" for none."""

YAML = """
    project: register
    sources:
      events: {files: "data/*.jsonl"}
    datasets:
      item:
        from: events
        columns:
          id: id
          name: body.name
          at: {path: at, type: timestamp_ms}
        record_set: {key: [id], order_by: [at]}
    jobs:
      - name: names
        input_datasets: [item]
        output_dataset: names
        incremental: {mode: keyed, key: [name]}
        sql: select name, count(*) as items from item group by name
"""
NODES = ("events", "item_facts", "item", "names")


def message(id: str, at: int, name: str) -> dict[str, object]:
    return {"id": id, "at": at, "body": {"name": name}}


@dataclass(frozen=True)
class Faulty(TestProject):
    """A project whose tables and catalog a test looks into, and damages."""

    __test__ = False

    @property
    def lake(self) -> Lake:
        return Lake(root=str(self.folder / ".strandline" / "lake"))

    def table(self, node: str) -> Path:
        return Path(self.lake.table(node))

    def entries(self, node: str) -> list[LogEntry]:
        return list(read_entries(self.lake.table(node), -1))

    def view(self) -> CatalogView:
        with open_workspace(self.folder) as workspace:
            return read_view(workspace.catalog)

    def send(self, *messages: object) -> None:
        """A new file of messages."""
        self.lines(f"data/{len(list((self.folder / 'data').glob('*'))):03}.jsonl", *messages)

    def sent(self) -> int:
        return sum(len(file.read_text().splitlines()) for file in (self.folder / "data").glob("*.jsonl"))

    def assert_right(self, *, verified: bool = True) -> None:
        """Nothing waits, and the laws hold.

        A message is one fact (L10) and a token one commit (L7). Catalog and tables agree (L6), and so do full
        and incremental results (L2).
        """
        assert self.plan().tasks == ()
        facts = self.query("select _source_position from item_facts")
        assert len(facts) == len({str(f) for f in facts}) == self.sent()
        view = self.view()
        counts = view.nodes["item_facts"].counts
        assert counts["offered"] == counts["accepted"] == self.sent(), counts
        for node in NODES:
            record, ours = view.nodes[node], [e for e in self.entries(node) if e.metadata]
            check_tokens_of(node, ours)
            assert record.table_version == ours[-1].version, node
            table = get_table(self.lake.table(node))
            assert record.table_id == table.id
            assert record.row_count == table.live_rows, node
            for name, cursor in record.cursors.items():
                assert cursor.version <= list_versions(self.lake.table(name))[-1]
        if verified:
            self.assert_verified()


def append_by_hand(session: "SparkSession", project: Faulty, node: str) -> int:
    """Someone writes a row of `node` again with plain Spark; the version it got."""
    rows = session.read.format("delta").load(project.lake.table(node)).limit(1)
    rows.write.format("delta").mode("append").save(project.lake.table(node))
    return list_versions(project.lake.table(node))[-1]


@contextmanager
def standing_at(point: str, fail: Fail, folder: Path, work: Callable[[], Done]) -> Iterator[Future[Done]]:
    """Work in another thread that stands at `point:node` as long as the block lasts, and then goes on."""
    before = hits[point]
    fail(f"{point}=block:{folder / 'go'}")
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(work)
        try:
            wait_until(lambda: hits[point] > before or running.done(), f"a run at {point}")
            threading.Event().wait(0.2)  # a hit is counted a moment before the thread reads what to do there
            fail("")
            yield running
        finally:
            (folder / "go").touch()
