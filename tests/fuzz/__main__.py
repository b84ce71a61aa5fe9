"""`make fuzz MINUTES=10`: laws by DuckDB, laws by Spark, and whole projects, until the time is up.

`--seed` repeats a part.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import duckdb
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from strandline.app.workspace import open_workspace
from strandline.spark.session import get_session
from tests.fuzz.laws import Case, Duck, SparkRun, holds, make_case
from tests.fuzz.published import accepted_cases, compare, make_yaml
from tests.fuzz.queries import PROFILES
from tests.harness import TestProject

SHARES = {"duckdb": 0.35, "spark": 0.35, "published": 0.3}
PLAIN = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1",
}
JOBS = 20


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Tally:
    """Numbers of accepted, compared and wrong cases so far."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def judge(self, case: Case, what: str, verdict: Callable[[], bool]) -> None:
        self.counts["accepted"] += 1
        try:
            right = verdict()
        except (duckdb.Error, PySparkException):
            self.counts[f"not spoken by {what}"] += 1
            return
        self.counts["compared"] += 1
        self.counts[f"by {what}"] += 1
        if not right:
            self.wrong(f"{what}: {case}")

    def wrong(self, text: str) -> None:
        self.counts["wrong"] += 1
        _say(f"WRONG, {text}")

    def tell(self) -> None:
        rest = ", ".join(
            f"{name} {n}"
            for name, n in sorted(self.counts.items())
            if name not in ("accepted", "compared", "wrong")
        )
        main = (f"{name} {self.counts[name]}" for name in ("accepted", "compared", "wrong"))
        _say(f"jobs {', '.join(main)} ({rest})")


def fuzz_laws(tally: Tally, seed: int, until: float, what: str, runs: Mapping[str, Duck | SparkRun]) -> int:
    """Random cases of each profile in turn. Returns the next seed."""
    while time.monotonic() < until:
        for profile in PROFILES:
            if (case := make_case(seed, profile)) is not None:
                tally.judge(case, what, partial(holds, case, runs[profile.timezone]))
        seed += 1
    return seed


def fuzz_published(tally: Tally, seed: int, until: float, session: SparkRun) -> int:
    """Projects of some jobs each, over rows that change."""
    duck = Duck()
    while time.monotonic() < until:
        cases = list(accepted_cases(seed, JOBS, session))
        with tempfile.TemporaryDirectory() as folder:
            project = TestProject.create(Path(folder) / "fuzzed", make_yaml(cases))
            compared = compare(
                project, cases, random.Random(seed), {"published, spark": session, "published, duckdb": duck}
            )
        tally.counts["accepted"] += compared.jobs
        tally.counts["compared"] += compared.jobs
        for engine, number in compared.compared.items():
            tally.counts[f"by {engine}"] += number
        for text in compared.wrong:
            tally.wrong(text)
        tally.tell()
        seed = cases[-1].seed + 1
    return seed


def main() -> int:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=int(time.time()) % 10_000_000 * 100)
    parser.add_argument("--only", choices=SHARES, help="one of the three")
    call = parser.parse_args()
    shares = {call.only: 1.0} if call.only else SHARES
    _say(f"seed {call.seed}")
    tally, now = Tally(), time.monotonic()
    session = None
    for what, share in shares.items():
        if what != "duckdb" and session is None:
            session = _plain_session()
        now = max(now, time.monotonic())
        until = now + 60 * call.minutes * share
        match what:
            case "duckdb":
                ducks = {profile.timezone: Duck(profile.timezone) for profile in PROFILES}
                fuzz_laws(tally, call.seed, until, what, ducks)
            case "spark":
                assert session is not None
                fuzz_laws(
                    tally,
                    call.seed,
                    until,
                    what,
                    {p.timezone: SparkRun(session, p.timezone) for p in PROFILES},
                )
            case _:
                assert session is not None
                fuzz_published(tally, call.seed, until, SparkRun(session))
        now = until
        tally.tell()
    return 1 if tally.counts["wrong"] else 0


def _plain_session() -> SparkSession:
    with tempfile.TemporaryDirectory() as folder:
        TestProject.create(Path(folder), 'project: plain\nsettings: {spark: {master: "local[2]"}}\n')
        with open_workspace(Path(folder)) as workspace:
            session = get_session(workspace.project.settings).newSession()
    for name, value in PLAIN.items():
        session.conf.set(name, value)
    return session


if __name__ == "__main__":
    sys.exit(main())
