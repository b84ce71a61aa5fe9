"""Where it becomes cheaper to compute all entities than those that a change touches.

Two entities of the same variables follow the same changes. One is always computed in full, the other never.
`full_percent` (`model/thresholds.py`) is the share of rows from which a plan chooses the first.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from strandline.app.planning import RunRequest
from strandline.app.run import run
from strandline.app.workspace import open_workspace
from strandline.model.plan import Strategy
from strandline.spark.session import get_session

from .engine import SILENT
from .measure import Sample, measure, median
from .profiles import Aggregate, Events, declare
from .progress import say

MOST_SHARED_ROWS = 3_000_000
DAYS, ROWS_A_USER = 100, 30
WARM_UP, ROUNDS = 3, 2
RECOMPUTED, ADDED = (10, 20, 33, 50, 80), (10, 20, 33, 50)
"""In percent: the entities that have a new event, and the new events as a part of those before."""
LASTING = (("max", "amount"), ("min", "amount"), ("distinct", "page"))
SUMMED = (("count", "*"), ("sum", "amount"), ("avg", "points"))
NEVER, ALWAYS = "full_percent=1000000", "full_percent=0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A change of a part of the data: followed, and with everything computed."""

    strategy: str
    percent: int
    followed: list[Sample]
    in_full: list[Sample]

    @property
    def ratio(self) -> float:
        return median(self.followed) / median(self.in_full)


def measure_shares(folder: Path, rows: int) -> list[Share]:
    users = max(1, rows // ROWS_A_USER)
    found = []
    for strategy, functions, percents in (
        (Strategy.RECOMPUTE, LASTING, RECOMPUTED),
        (Strategy.ACCUMULATE, SUMMED, ADDED),
    ):
        events = Events(folder=folder / strategy, days=DAYS, a_day=max(1, rows // DAYS), users=users)
        events.make()
        variables = tuple(
            Aggregate(name=f"v{nth}", function=function, column=column, least_page=nth)
            for nth, (function, column) in enumerate(functions * 3)
        )
        (events.folder / "strandline.yaml").write_text(declare({"some": variables, "everybody": variables}))
        shares = _Shares(events=events, strategy=strategy)
        for percent in (*(percents[0],) * WARM_UP, *percents):
            pairs = []
            for _ in range(ROUNDS):
                events.add((users if strategy is Strategy.RECOMPUTE else rows) * percent // 100)
                pairs.append(shares.follow())
            some, everybody = ([pair[side] for pair in pairs] for side in (0, 1))
            found.append(Share(strategy=strategy, percent=percent, followed=some, in_full=everybody))
            say(f"  {strategy}, {percent} %: {found[-1].ratio:.2f} of the time of everything")
        del found[-len(percents) - WARM_UP : -len(percents)]
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shares:
    events: Events
    strategy: Strategy

    def follow(self) -> tuple[Sample, Sample]:
        """One increment, first for the entity that follows it, then for the one that is computed in full."""
        self._run("+events", None)
        with _thresholds(NEVER):
            some = self._run("some", self.strategy)
        with _thresholds(ALWAYS):
            everybody = self._run("everybody", Strategy.FULL)
        return some, everybody

    def _run(self, select: str, strategy: Strategy | None) -> Sample:
        folder = self.events.folder
        used: list[Strategy] = []

        def work() -> None:
            with open_workspace(folder) as workspace:
                outcome = run(workspace, RunRequest(as_of=self.events.as_of, select=select), SILENT)
            if outcome.exit_code:
                raise RuntimeError("\n".join(f"{r.node}: {r.error}" for r in outcome.results if r.error))
            used.extend(result.strategy for result in outcome.results)

        with open_workspace(folder) as workspace:
            session = get_session(workspace.project.settings)
        sample = measure(session, work)
        if strategy is not None and used != [strategy] and used != [Strategy.FULL]:
            raise RuntimeError(f"`{select}` should have taken {strategy}, not {used}")
        return sample


@contextmanager
def _thresholds(text: str) -> Iterator[None]:
    os.environ["STRANDLINE_THRESHOLDS"] = text
    try:
        yield
    finally:
        del os.environ["STRANDLINE_THRESHOLDS"]
