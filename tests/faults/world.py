"""A small project with its lake and catalog, on which users and fate do what they do."""

import functools
import itertools
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from textwrap import indent
from typing import Any

from sqlalchemy import make_url

from strandline.app.invalidate import invalidate
from strandline.app.maintain import MaintainOutcome, maintain_tables
from strandline.app.planning import RunRequest, make_plan
from strandline.app.receiving import Posted, Receipt, receive
from strandline.app.run import RunOutcome, make_desk, run, run_name
from strandline.app.workspace import Workspace
from strandline.catalog import Catalog, open_catalog
from strandline.catalog.engines import sqlite_engine
from strandline.declare import load_project
from strandline.dispatch.desk import Desk
from strandline.dispatch.rebuild import rebuild
from strandline.lake.location import Lake
from strandline.model.files import Content
from strandline.model.node import Project
from strandline.model.plan import Plan
from tests.harness import SILENT

from . import table_log
from .fate import Fate, Killed, _no_spark
from .kinds import DESK, LEDGER, REGISTER, ROOMS
from .kinds.kind import Kind, Stream, Switches
from .table_log import Row

_HEAD = "project: register\n"
_SETTINGS = {"settings": "workers: 1"}


def make_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder for worlds, in memory if there is room: they are copied and removed thousands of times."""
    memory = Path("/dev/shm")
    roomy = os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > 2**30
    return tempfile.TemporaryDirectory(prefix="worlds-", dir=memory if roomy else None)


class World:
    """A folder, a catalog in memory, and one fate."""

    kinds: tuple[Kind, ...] = REGISTER
    """The kinds of node in its project."""
    copy_file: Callable[[Any, Any], object] = staticmethod(os.link)
    """What was written is never changed, only added to or removed: links are copies."""
    needs_new_folder = False
    """Whether a world may not be where another has been."""

    def __init__(self, folder: Path, fate: Fate, *, start: bool = True) -> None:
        self.folder, self.fate = folder, fate
        self.streams = tuple(stream for kind in self.kinds for stream in kind.streams)
        self.switches = {name: value for kind in self.kinds for name, value in kind.switches.items()}
        """What users have changed in the project."""
        self.configured: dict[str, Switches] = {}
        """By hash of a node's configuration, or of a part of it: the switches that gave it."""
        self.catalog = new_catalog()
        self._loaded: tuple[Switches, Project] | None = None
        """The project as it was last asked for, with the switches that gave it."""
        self._numbers = itertools.count(10)
        if start:
            shutil.rmtree(folder, ignore_errors=True)
            for stream in self.streams:
                (folder / stream.folder).mkdir(parents=True)
            for kind in self.kinds:
                for name, text in kind.files.items():
                    (folder / name).write_text(text)
                kind.begin(self)

    @property
    def lake(self) -> Lake:
        return Lake(root=self.project.settings.lake)

    @property
    def project(self) -> Project:
        if self._loaded is None or self._loaded[0] != self.switches:
            switches = dict(self.switches)
            project = _load(self.folder, _write_project(self.kinds, switches))
            self.configured |= {
                hash_: switches
                for node in project.nodes
                for hash_ in (node.config.hash, *node.config.parts.values())
            }
            self._loaded = switches, project
        return self._loaded[1]

    @property
    def workspace(self) -> Workspace:
        return Workspace(project=self.project, catalog=self.catalog, lake=self.lake)

    def send(self, stream: Stream, *messages: str | Row) -> None:
        """A new file of messages; a str is written as it is, so that it may be broken."""
        folder = self.folder / stream.folder
        number = len(list(folder.iterdir()))
        # A file with the content of another would be passed over.
        lines = [m if isinstance(m, str) else json.dumps({**m, "file": number}) for m in messages]
        text = "".join(f"{line}\n" for line in lines)
        (folder / f"{number:04}.jsonl").write_text(text)
        if stream.posted:
            for _ in range(1 + number % 2):  # every other one is posted again
                self.post(stream, number)

    def post(self, stream: Stream, number: int) -> Receipt:
        """What was sent as this file, once or once more."""
        key = f"{number:04}"
        body = (self.folder / stream.folder / f"{key}.jsonl").read_bytes()
        posted = Posted(source=stream.source, key=key, content=Content.LINES, body=body)
        return receive(self.workspace, posted, self.fate.now())

    def later(self) -> int:
        """A number that is larger than all that were sent."""
        return next(self._numbers)

    def plan(self) -> Plan:
        return make_plan(self.workspace, RunRequest())[0]

    def run(self, request: RunRequest | None = None, fail: str = "") -> RunOutcome | None:
        """Run once; None if the process was killed."""
        outcome: RunOutcome | None = self.do(
            lambda: run(self.workspace, request or RunRequest(), SILENT), fail
        )
        return outcome

    def invalidate(self, name: str, fail: str = "", *, where: str = "", partition: str = "") -> None:
        self.do(
            lambda: invalidate(self.workspace, name, reason="a test", where=where, partition=partition), fail
        )

    def backfill(self, name: str, fail: str = "", partitions: tuple[str, ...] = ()) -> RunOutcome | None:
        return self.run(RunRequest(backfill=name, partitions=partitions, reason="a test"), fail)

    def maintain(self, fail: str = "") -> MaintainOutcome | None:
        """Compact and clean every table, at a time when nothing is young enough to be kept for its age.

        None if the process was killed.
        """
        outcome: MaintainOutcome | None = self.do(
            lambda: maintain_tables(self.workspace, None, lambda _: None), fail
        )
        return outcome

    def do(self, what: Callable[[], Any], fail: str = "") -> Any:
        """What a process does until it ends or is killed. When this returns nothing of it goes on."""
        try:
            with self.fate.asked(fail):
                return what()
        except Killed:
            self.fate.dead = False
            return None

    def another(self, what: Callable[[], Any]) -> Any:
        """What another process does while this one stands still."""
        with self.fate.asked(""):
            return what()

    def settle_down(self) -> list[RunOutcome]:
        """Run until nothing waits: twice is enough after a fault, and thrice is never needed."""
        outcomes: list[RunOutcome] = []
        for _ in range(4):
            if not self.plan().tasks:
                return outcomes
            outcome = self.run()
            assert outcome is not None
            outcomes.append(outcome)
        waiting = [(task.node, task.cause, task.reason) for task in self.plan().tasks]
        raise AssertionError(f"work does not drain: {waiting}; {_errors(outcomes)}")

    def compact(self, dataset: str) -> None:
        if table_log.read_snapshot(self.lake.table(dataset)).files:
            table_log.compact(self.lake, dataset)

    def jump(self, seconds: int) -> None:
        """The wall clock is set; it may go back."""
        self.fate.clock += timedelta(seconds=seconds)

    def rows(self, dataset: str, version: int | None = None) -> list[Row]:
        """All rows of a table, deleted ones included; none where there is no table."""
        return table_log.read_snapshot(self.lake.table(dataset), version).rows()

    def rebuilt(self) -> Catalog:
        """A catalog filled from the tables alone."""
        catalog = new_catalog()
        rebuild(self.desk(catalog))
        return catalog

    def desk(self, catalog: Catalog) -> Desk:
        workspace = replace(self.workspace, catalog=catalog)
        observed = workspace.observe()
        at = self.fate.now()
        return make_desk(workspace, observed, Plan(as_of=at, tasks=()), run_name(at), _no_spark, RunRequest())

    def copy_catalog(self) -> Catalog:
        copy = new_catalog()
        _copy_database(self.catalog, copy)
        return copy

    def fingerprint(self) -> object:
        """Another one once anything was written: to the folder or to the catalog."""
        files = {
            (f.path, s.st_ino, s.st_size, s.st_mtime_ns)
            for f in _walk(self.folder)
            for s in (f.stat(follow_symlinks=False),)
        }
        with self.catalog.engine.connect() as connection:
            return files, connection.connection.driver_connection.serialize()  # type: ignore[union-attr]

    def use_catalog(self, catalog: Catalog) -> None:
        give_up(self.catalog)
        self.catalog = catalog

    def close(self) -> None:
        give_up(self.catalog)


class Ledger(World):
    """The world of timelines."""

    kinds = LEDGER


class Rooms(World):
    """The world of entities."""

    kinds = ROOMS


class PublishingDesk(World):
    """The world of what is published."""

    kinds = DESK


class Saved:
    """A world as it was: its folder and its catalog."""

    def __init__(self, world: World, aside: Path) -> None:
        self.aside, self.catalog = aside, world.copy_catalog()
        self.switches, self.configured, self.clock = (
            dict(world.switches),
            dict(world.configured),
            world.fate.clock,
        )
        self.world_type = type(world)
        shutil.copytree(world.folder, aside, copy_function=self.world_type.copy_file)

    def restore(self, folder: Path, fate: Fate) -> World:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self.aside, folder, copy_function=self.world_type.copy_file)
        world = self.world_type(folder, fate, start=False)
        _copy_database(self.catalog, world.catalog)
        world.switches, world.configured = dict(self.switches), dict(self.configured)
        fate.clock = self.clock
        return world


def _write_project(kinds: tuple[Kind, ...], switches: Switches) -> str:
    """The project file, section by section."""
    streams = [stream.project for kind in kinds for stream in kind.streams]
    pieces = [_SETTINGS, *streams, *(kind.project(switches) for kind in kinds)]
    sections: dict[str, str] = {}
    for piece in pieces:
        for section, text in piece.items():
            sections[section] = sections.get(section, "") + indent(text.strip("\n"), "  ") + "\n"
    return _HEAD + "".join(f"{section}:\n{text}" for section, text in sections.items())


@functools.lru_cache(maxsize=100)
def _load(folder: Path, text: str) -> Project:
    file = folder / "strandline.yaml"
    file.write_text(text)
    return load_project(folder, {})


def _walk(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(entry.path)


def new_catalog() -> Catalog:
    """An empty catalog in memory, copied from one that was migrated once.

    An engine is used again where there is one, because it has compiled its statements.
    """
    catalog = _spare.pop() if _spare else Catalog(engine=sqlite_engine(make_url("sqlite://")))
    _copy_database(_empty(), catalog)
    return catalog


_spare: list[Catalog] = []


def give_up(catalog: Catalog) -> None:
    _spare.append(catalog)


@functools.cache
def _empty() -> Catalog:
    return open_catalog("sqlite://")


def _copy_database(source: Catalog, target: Catalog) -> None:
    with source.engine.connect() as one, target.engine.connect() as other:
        one.connection.driver_connection.backup(other.connection.driver_connection)  # type: ignore[union-attr]


def _errors(outcomes: list[RunOutcome]) -> list[str]:
    return [f"{r.node}: {r.status} {r.error}" for o in outcomes for r in o.results if r.error]
