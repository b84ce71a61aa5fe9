"""The process that works and is killed: it calls verbs of the command line in one Python with one JVM.

`python -m tests.faults.soak.driver FOLDER LIFE SEED`. Each line that it adds to `events.jsonl` describes one
finished action, with its times on the clock that all processes share. It continues until a file `stop` exists
or its JVM is gone.
"""

import io
import json
import random
import re
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strandline.app.workspace import open_workspace
from strandline.cli import main as strandline
from strandline.spark.session import get_session

from .feed import FACTOR, PRICES, write_at_once

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = "events.jsonl"
STOP = "stop"
LOST_ITS_JVM = 75
HEAP_EVERY = 20
"""Seconds between two measurements of the JVM's heap after a garbage collection."""
NOTHING_TO_DO = 0.2
RUNS_BETWEEN = 5
"""Approximate number of runs for each other action."""


class Driver:
    """The project, the file of finished actions, the session and the random numbers of one life."""

    def __init__(self, folder: Path, life: int, seed: str) -> None:
        self._folder, self._life = folder, life
        self._chance = random.Random(f"{seed}/{life}")
        began = time.monotonic()
        with open_workspace(folder) as workspace:
            self._session = get_session(workspace.project.settings)
        self._tell(event="ready", seconds=time.monotonic() - began)

    def work(self) -> int:
        """Do action after action. Returns the exit code of the process."""
        words, looked = ["run"], time.monotonic()
        try:
            while not (self._folder / STOP).exists():
                if not self._act(words):
                    return LOST_ITS_JVM
                if time.monotonic() - looked > HEAP_EVERY:
                    self._tell(event="heap", bytes=_live_heap(self._session))
                    looked = time.monotonic()
                words = _choose(self._folder, self._chance)
        except Exception:
            if _is_gone(self._session):
                return LOST_ITS_JVM
            raise
        return 0

    def _act(self, words: list[str]) -> bool:
        """Do one action and record it. False if it failed because the JVM is gone."""
        began = time.monotonic()
        ended = _call(self._folder, words)
        lost = bool(ended["code"]) and _is_gone(self._session)
        self._tell(
            event="lost" if lost else "action", action=words[0], seconds=time.monotonic() - began, **ended
        )
        if not ended["tasks"]:
            time.sleep(NOTHING_TO_DO)
        return not lost

    def _tell(self, **what: object) -> None:
        with (self._folder / EVENTS).open("a") as events:
            events.write(json.dumps({"life": self._life, "at": time.monotonic(), **what}) + "\n")


def _call(folder: Path, words: list[str]) -> dict[str, Any]:
    """Call the verb. The output of a run is counted, and shown if the run failed."""
    printed = io.StringIO()
    print(f"$ strandline {' '.join(words)}", flush=True)
    with redirect_stdout(printed):
        code = strandline([*words, "--project", str(folder), "--output", "json"])
    report = json.loads(printed.getvalue() or "{}")
    if words[0] == "deliveries" and code == 1 and not report.get("notes"):
        code = 0  # the receiver fails often, and that is what it ends with then
    tasks = report.get("tasks", [])
    if code:
        print(f"ended with {code}: {printed.getvalue()}", flush=True)
    notes = [note for task in tasks for note in task.get("notes", ())]
    slugs = sorted({task["slug"] for task in tasks if task.get("slug")})
    recovered = sum("did not know" in note for note in notes)
    return {
        "code": code,
        "tasks": len(tasks),
        "fenced": sum("fenced off" in note for note in notes),
        "found": recovered,
        "slugs": slugs,
    }


def _choose(folder: Path, chance: random.Random) -> list[str]:
    """Choose an action: mostly a run, sometimes what an operator does."""
    if chance.randrange(RUNS_BETWEEN + 1):
        return ["run"] if chance.randrange(3) else ["deliveries", "--send"]
    low = chance.randrange(PRICES)
    some = f"price between {low} and {low + 50}"
    shelf = low // 100 * 100
    what = chance.randrange(10)
    if what == 0:
        _change_factor(folder)
    return (
        ["backfill", "weigh", "--stale"],
        ["backfill", "weigh", "--all"],
        ["backfill", "item", "--all"],
        ["backfill", "tell", "--where", some],
        ["backfill", "shelve", "--where", f"price between {shelf} and {shelf + 99}"],
        ["invalidate", "item", "--where", some, "--reason", "soak"],
        [
            "invalidate",
            "hot",
            "--where",
            f"number between {low // 10} and {low // 10 + 5}",
            "--reason",
            "soak",
        ],
        ["maintain"],
        ["rebuild-catalog"],
        ["quarantine", "item", "--release"],
    )[what]


def _change_factor(folder: Path) -> None:
    file = folder / "strandline.yaml"
    text = file.read_text()
    now = re.search(FACTOR.replace("{", r"\{").replace("%d", r"(\d+)"), text)
    assert now is not None
    write_at_once(file, text.replace(now[0], FACTOR % (int(now[1]) % 9 + 1)))


def _live_heap(session: "SparkSession") -> int:
    """Heap in use after a garbage collection.

    Unlike the memory that the JVM has taken, it grows only if objects are kept.
    """
    jvm = session.sparkContext._jvm
    assert jvm is not None
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def _is_gone(session: "SparkSession") -> bool:
    process = getattr(session.sparkContext._gateway, "proc", None)
    give_up = time.monotonic() + 2
    while process is not None and process.poll() is None and time.monotonic() < give_up:
        time.sleep(0.1)
    return process is not None and process.poll() is not None


if __name__ == "__main__":
    sys.exit(Driver(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3]).work())
