"""`python -m tests.faults.soak --minutes 30`, or `make soak MINUTES=30`.

The exit code is 1 if a law is broken. The folder is then kept.
"""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from types import FrameType

from strandline.app.workspace import open_workspace
from strandline.cli.quiet import quiet_spark

from .feed import PROJECT, Feeder, write_at_once
from .figures import Figures
from .lives import LOG, Lives
from .reader import Reader
from .rest import Rest, drain, find_broken
from .told import Told, check_told, listening, publishing, send_rest

KILL_EVERY = (20.0, 60.0)
FILE_EVERY = (1.0, 2.0)
CALM = 0.25
"""The last share of the time, in which nothing is killed. Growth there is a leak, not warm-up."""


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.soak", description=__doc__)
    parser.add_argument(
        "--minutes",
        type=float,
        default=30.0,
        metavar="N",
        help="how long it is disturbed and watched; checking comes after",
    )
    parser.add_argument(
        "--seed", default=str(random.SystemRandom().randrange(10**6)), help="of what is sent, done and killed"
    )
    call = parser.parse_args(words)
    signal.signal(signal.SIGTERM, _end)  # the working process ends with this one
    folder = Path(tempfile.mkdtemp(prefix="strandline-soak-"))
    figures = soak(folder, call.minutes, call.seed)
    _say("\n".join(["", *figures.lines_to_print()]))
    if figures.broken:
        _say(f"\nKept for a look: {folder}, with all that was printed in {LOG}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


def soak(folder: Path, minutes: float, seed: str) -> Figures:
    with listening(seed) as (told, port):
        write_at_once(folder / "strandline.yaml", PROJECT + publishing(port))
        return _soak(folder, minutes, seed, told)


def _soak(folder: Path, minutes: float, seed: str, told: Told) -> Figures:
    feeder, reader, lives = Feeder(folder, random.Random(f"{seed}/feed")), Reader(folder), Lives(folder, seed)
    stop = threading.Event()
    feeding = threading.Thread(
        target=_feed, args=(feeder, stop, random.Random(f"{seed}/pace")), name="feeder", daemon=True
    )
    feeding.start()
    reader.start()
    try:
        _disturb(lives, minutes * 60, random.Random(f"{seed}/time"))
    finally:
        stop.set()
        feeding.join()
        reader.stop()
        lives.kill_all()
    feeder.finish()
    events = list(lives.events())
    failed = [
        f"life {t['life']}: {t['action']} ended with {t['code']} {t['slugs']}"
        for t in events
        if t["event"] == "action" and t["code"]
    ]
    broken = [*lives.faults, *failed, *dict.fromkeys(reader.broken)]
    _say("nobody is killed any more; the work drains and the laws are checked")
    last_runs, rows = 0, {}
    try:
        with quiet_spark():
            last_runs = drain(folder)
            send_rest(folder, told)
            broken += find_broken(Rest.of(folder, feeder), partial(check_told, told=told))
        rows = _count_rows(folder)
    except Exception as error:  # noqa: BLE001 any error is reported with the figures
        broken.append(f"at rest: {type(error).__name__} {error}")
    return Figures(
        minutes=minutes,
        seed=seed,
        lives=lives.all,
        events=events,
        files=feeder.files,
        lines=feeder.lines,
        queries=reader.queries,
        webhooks=len(told.came),
        refused=told.refused,
        rows=rows,
        last_runs=last_runs,
        broken=broken,
    )


def _disturb(lives: Lives, seconds: float, chance: random.Random) -> None:
    """Start life after life. The last one is left alone for the rest of the time."""
    end = time.monotonic() + seconds
    calm_from = end - CALM * seconds
    while True:
        life = lives.begin()
        until = time.monotonic() + chance.uniform(*KILL_EVERY)
        alone = until > calm_from
        if lives.watch(life, end if alone else until):
            lives.end(life, "asked" if alone else None)
        _say(f"life {life.number}: {life.ended - life.began:.0f} s, ended by {life.ended_by}")
        if alone:
            return


def _feed(feeder: Feeder, stop: threading.Event, chance: random.Random) -> None:
    while not stop.wait(chance.uniform(*FILE_EVERY)):
        feeder.feed()


def _count_rows(folder: Path) -> dict[str, int]:
    with open_workspace(folder) as workspace:
        return {
            name: record.row_count
            for name, record in workspace.observe().view.nodes.items()
            if not name.endswith("_quarantine")
        }


def _say(text: str) -> None:
    print(text, flush=True)


def _end(_number: int, _frame: FrameType | None) -> None:
    sys.exit(143)


if __name__ == "__main__":
    sys.exit(main())
