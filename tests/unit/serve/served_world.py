"""A served project whose workers are plain Python: a dispatcher, its thread, and what people do meanwhile."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from strandline.app import invalidate as invalidating
from strandline.app import run as running
from strandline.app import serving
from strandline.app.workspace import Workspace, open_workspace
from strandline.serve.dispatcher import Dispatcher
from strandline.serve.served import Served
from tests.faults import plain_workers, table_log
from tests.faults.fate import _no_spark

PROJECT = """
project: small
settings: {workers: 1}
sources:
  events: {files: "data/*.jsonl"}
  others: {files: "more/*.jsonl"}
datasets:
  item:
    from: events
    columns: {id: id, name: name, at: {path: at, type: bigint}}
    record_set: {key: [id], order_by: [at]}
  other:
    from: others
    columns: {id: id, at: {path: at, type: bigint}}
    record_set: {key: [id], order_by: [at]}
"""


@dataclass(frozen=True, kw_only=True)
class World:
    folder: Path

    def send(self, source: str, *ids: str) -> None:
        folder = self.folder / {"events": "data", "others": "more"}[source]
        number = len(list(folder.iterdir()))
        lines = [json.dumps({"id": name, "name": name, "at": number, "file": number}) for name in ids]
        (folder / f"{number:04}.jsonl").write_text("".join(f"{line}\n" for line in lines))

    def rows(self, dataset: str) -> list[str]:
        uri = str(self.folder / ".strandline" / "lake" / dataset)
        return sorted(row["id"] for row in table_log.read_snapshot(uri, None).rows() if not row["_deleted"])

    @contextmanager
    def workspace(self) -> Iterator[Workspace]:
        with open_workspace(self.folder, {}) as workspace:
            yield workspace

    @contextmanager
    def serving(self, poll: float = 0.05, *, dispatching: bool = True) -> Iterator[tuple[Dispatcher, Served]]:
        with self.workspace() as workspace:
            served = Served(workspace=quick(workspace, poll), work=None)  # type: ignore[arg-type]
            dispatcher = Dispatcher(warm=False, environ={}, dispatching=dispatching)
            served.work = dispatcher
            if poll >= 60:
                dispatcher._has_news = lambda: False  # type: ignore[method-assign]
            dispatcher.start(served)
            try:
                yield dispatcher, served
            finally:
                dispatcher.stop(20)


def quick(workspace: Workspace, poll: float) -> Workspace:
    settings = workspace.project.settings
    serve = replace(settings.serve, poll=timedelta(seconds=poll))
    return replace(workspace, project=replace(workspace.project, settings=replace(settings, serve=serve)))


def make_world(folder: Path, patch: pytest.MonkeyPatch) -> World:
    """Spark's workers are replaced by plain ones, which write the same tables."""
    patch.setattr(running, "load_workers", lambda: plain_workers)
    for module in (running, invalidating, serving):
        patch.setattr(module, "open_lake", lambda *_: _no_spark)
    return make_folder(folder)


def make_folder(folder: Path) -> World:
    for name in ("data", "more"):
        (folder / name).mkdir(parents=True)
    (folder / "strandline.yaml").write_text(PROJECT)
    return World(folder=folder)


class Gate:
    """Lets one source's task fail or stand still."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.failing: set[str] = set()
        self.standing: set[str] = set()
        self.prepared: list[str] = []
        self.here, self.go = threading.Event(), threading.Event()
        really = plain_workers.prepare

        def prepare(desk: Any, node: Any, *rest: Any) -> Any:
            self.prepared.append(node.name)
            if node.name in self.standing:
                self.here.set()
                assert self.go.wait(30)
            if node.name in self.failing:
                raise RuntimeError(f"{node.name} is broken")
            return really(desk, node, *rest)

        patch.setattr(plain_workers, "prepare", prepare)


def wait_until(true: Callable[[], object], why: str, seconds: float = 30) -> None:
    give_up = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < give_up, f"waited in vain: {why}"
        time.sleep(0.02)
