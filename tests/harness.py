"""A project under test, driven through `app` as the command line drives it."""

import json
import shutil
import textwrap
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from strandline.app.planning import RunRequest, make_plan
from strandline.app.query import query
from strandline.app.run import RunOutcome, run
from strandline.app.verify import verify
from strandline.app.watching import Watcher
from strandline.app.workspace import open_workspace
from strandline.model.plan import Plan, TaskResult
from strandline.model.verified import VerifyOutcome

PATHS = {
    "shipped": "",
    "large": "least",
    "small": "unlimited",
    "looked_up": "unlimited,small_table_bytes=0",
}
"""Values of `STRANDLINE_THRESHOLDS` that force each path which depends on sizes.

Small tables are not looked up by key, so that needs a path of its own.
"""
SILENT = Watcher()


@dataclass(frozen=True)
class TestProject:
    """A folder with a `strandline.yaml`, its lake and its catalog."""

    __test__ = False  # pytest: not a test class

    folder: Path

    @classmethod
    def create(cls, folder: Path, yaml: str) -> "TestProject":
        folder.mkdir(parents=True, exist_ok=True)
        project = cls(folder)
        project.declare(yaml)
        return project

    def declare(self, yaml: str) -> None:
        """Write (or change) the project file."""
        (self.folder / "strandline.yaml").write_text(textwrap.dedent(yaml))

    def copy(self, folder: Path) -> Self:
        """The same project with its lake and its catalog in another folder.

        A copied first run costs no Spark, so tests that begin alike share one.
        """
        return type(self)(Path(shutil.copytree(self.folder, folder)))

    def write(self, path: str, text: str) -> None:
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def lines(self, path: str, *messages: object) -> None:
        """Write messages as jsonl. A str is written unchanged, so it may be broken."""
        self.write(path, "".join((m if isinstance(m, str) else json.dumps(m)) + "\n" for m in messages))

    def add_lines(self, path: str, *messages: object) -> None:
        with (self.folder / path).open("a") as out:
            out.writelines((m if isinstance(m, str) else json.dumps(m)) + "\n" for m in messages)

    def plan(self, request: RunRequest | None = None) -> Plan:
        with open_workspace(self.folder) as workspace:
            return make_plan(workspace, request or RunRequest())[0]

    def run(self, request: RunRequest | None = None, *, ok: bool = True) -> RunOutcome:
        """Run. Every task must succeed, unless the caller allows failures."""
        with open_workspace(self.folder) as workspace:
            outcome = run(workspace, request or RunRequest(), SILENT)
        if ok:
            assert outcome.exit_code == 0, "\n".join(
                f"{r.node}: {r.status} {r.error}" for r in outcome.results if r.error
            )
        return outcome

    def query(self, sql: str) -> list[tuple[Any, ...]]:
        with open_workspace(self.folder) as workspace:
            return [tuple(row) for row in query(workspace, sql).rows]

    def rows(self, dataset: str, *columns: str) -> set[tuple[Any, ...]]:
        """Rows that a reader sees, as a set. No row may occur twice."""
        rows = self.query(f"select {', '.join(columns) or '*'} from {dataset}")
        assert len(rows) == len(set(rows)), f"{dataset} has equal rows: {rows}"
        return set(rows)

    def verify(self, *names: str) -> VerifyOutcome:
        with open_workspace(self.folder) as workspace:
            return verify(workspace, names, None, lambda _: None)

    def assert_verified(self, *names: str) -> None:
        """The oracle: incremental equals full recompute."""
        outcome = self.verify(*names)
        bad = [d for d in outcome.datasets if d.result not in ("equal", "empty")]
        assert not bad, "\n".join(f"{d.dataset}: {d.result} {d.reason} {d.examples[:4]}" for d in bad)
        assert sum(d.compared_rows for d in outcome.datasets), "nothing was compared"


def result_of(outcome: RunOutcome, node: str) -> TaskResult:
    return next(r for r in outcome.results if r.node == node)


def at(text: str) -> RunRequest:
    """A run at a logical time."""
    return RunRequest(as_of=datetime.fromisoformat(text))
