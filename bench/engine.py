"""The engine under measurement: a project over the register, driven through `app` in this process."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from strandline.app.planning import RunRequest
from strandline.app.run import run
from strandline.app.watching import Watcher
from strandline.app.workspace import open_workspace
from strandline.model.plan import Status, TaskResult
from strandline.spark.session import get_session

from .measure import Sample, measure
from .register import Register, deliver

PROJECT = """\
project: register_bench
settings:
  spark: {master: "local[2]", conf: {spark.driver.memory: 4g}}
sources:
  changes: {files: "data/*.parquet"}
datasets:
  register:
    from: changes
    record_set: {key: [tenant, registration_number], order_by: [snapshot_seq], deleted: "op = 'D'"}
    source_at: snapshot_at
"""
SILENT = Watcher()


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """A project in its own folder, with its files loaded."""

    folder: Path
    session: SparkSession

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def lake(self) -> Path:
        return self.folder / ".strandline" / "lake"

    def table(self, dataset: str) -> Path:
        return find_table(self.lake, dataset)

    def run(self, facts: int) -> Sample:
        """Run from the received files to the published snapshot.

        `facts` is the number of facts that must arrive. Without that check a run that lost its rows would
        count as fast.
        """
        return measure(self.session, lambda: self._run(RunRequest(), facts))

    def rebuild(self) -> Sample:
        """`backfill register --all`: decode all facts, fold the snapshot again, compare and publish."""
        return measure(
            self.session, lambda: self._run(RunRequest(backfill="register", reason="benchmark"), None)
        )

    def _run(self, request: RunRequest, facts: int | None) -> dict[str, float]:
        with open_workspace(self.folder) as workspace:
            outcome = run(workspace, request, SILENT)
        if outcome.exit_code:
            raise RuntimeError(
                "\n".join(f"{r.node}: {r.status} {r.error}" for r in outcome.results if r.error)
            )
        if facts is not None:
            _require_work(outcome.results, facts)
        return {r.node: r.seconds for r in outcome.results}


def _require_work(results: tuple[TaskResult, ...], facts: int) -> None:
    """Check what was written, not only the status of the tasks.

    A run that lost its rows is fast and succeeds, because `unchanged` is not an error.
    """
    results_by_node = {r.node: r for r in results}
    if not facts and not results:
        return
    if (
        not facts
        or results_by_node["register_facts"].rows_written != facts
        or results_by_node["register"].status is not Status.DONE
    ):
        lines = [
            f"{r.node}: {r.status}, {r.rows_read} read, {r.rows_written} written, {dict(r.counts)}"
            for r in results
        ]
        raise RuntimeError(f"{facts} facts should have reached the snapshot:\n" + "\n".join(lines))


def open_engine(folder: Path, register: Register) -> Engine:
    """A new project with the register's initial load waiting in its source's folder."""
    folder.mkdir(parents=True)
    (folder / "strandline.yaml").write_text(PROJECT)
    for file in register.base:
        deliver(file, folder / "data")
    with open_workspace(folder) as workspace:
        session = get_session(workspace.project.settings)
    return Engine(folder=folder, session=session)


def find_table(lake: Path, dataset: str) -> Path:
    """The folder of a dataset's table."""
    return next(p.parent for p in lake.rglob("_delta_log") if p.parent.name == dataset)


def copy_table(source: Path, target: Path) -> None:
    """Copy a table. Data files never change, so they are linked; the log is copied."""
    shutil.copytree(source, target, copy_function=_link_data)


def _link_data(source: str, target: str) -> None:
    if "_delta_log" in Path(source).parts:
        shutil.copy2(source, target)
    else:
        Path(target).hardlink_to(source)
