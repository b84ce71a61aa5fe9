"""What publishing adds to a run: one changed row with and without a change log and a trigger, and a trigger
that is added to a small table and to a large one.
"""

import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from strandline.app.planning import RunRequest
from strandline.app.run import RunOutcome, run
from strandline.app.workspace import open_workspace

from .engine import SILENT
from .progress import say

_WARM_UP = 3
_ROUNDS = 5
_ADDED = 3
_PROJECT = """\
project: {name}
settings:
  spark: {{master: "local[2]", conf: {{spark.driver.memory: 4g}}}}
sources:
  events: {{files: "data/*.parquet"}}
datasets:
  trades:
    from: events
    record_set: {{key: [trade_id], order_by: [at]}}
    source_at: at
"""
_TRIGGER = """\
endpoints:
  ops: {url: "https://ops.example/hook", secret: "${OPS_SECRET}"}
triggers:
  large:
    from: trades
    fire: {quantity: {_gte: 10000}}
    clear: {quantity: {_lt: 9500}}
    endpoint: ops
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRuns:
    rows: int
    plain_seconds: tuple[float, ...]
    """Runs that change one row of these."""
    published_seconds: tuple[float, ...]
    """The same with a change log and a trigger. Each is measured after one without."""
    by_node: Mapping[str, float]
    """Of the middle one: seconds per node."""
    few_rows: int
    many_rows: int
    few_seconds: tuple[float, ...]
    """Runs that add a trigger to a table of these rows."""
    many_seconds: tuple[float, ...]

    @property
    def added_seconds(self) -> float:
        return statistics.median(self.published_seconds) - statistics.median(self.plain_seconds)

    @property
    def adding_ratio(self) -> float:
        return statistics.median(self.many_seconds) / statistics.median(self.few_seconds)


def measure_published_runs(folder: Path, many_rows: int) -> PublishedRuns:
    rows, few_rows = many_rows // 50, many_rows // 1_000
    say(f"one changed row of {rows:,}, with and without a change log and a trigger")
    plain = _make(folder / "plain", rows, "")
    published = _make(folder / "published", rows, _TRIGGER)
    plain_seconds: list[float] = []
    published_seconds: list[float] = []
    outcomes: list[RunOutcome] = []
    for nth in range(_WARM_UP + _ROUNDS):
        for project, seconds in ((plain, plain_seconds), (published, published_seconds)):
            _deliver(project, [nth], at=nth + 2)
            taken, outcome = _run(project)
            seconds.append(taken)
            if project is published:
                outcomes.append(outcome)
    middle = statistics.median_low(published_seconds[_WARM_UP:])
    by_node = {r.node: r.seconds for r in outcomes[published_seconds.index(middle)].results}
    told = next(result for result in outcomes[-1].results if result.node == "large")
    if told.counts.get("told") != 1:
        raise RuntimeError(f"each changed row should fire: {told}")
    few, many = (_add_triggers(folder / f"added_{count}", count) for count in (few_rows, many_rows))
    return PublishedRuns(
        rows=rows,
        plain_seconds=tuple(plain_seconds[_WARM_UP:]),
        published_seconds=tuple(published_seconds[_WARM_UP:]),
        by_node=by_node,
        few_rows=few_rows,
        many_rows=many_rows,
        few_seconds=few,
        many_seconds=many,
    )


def _add_triggers(folder: Path, rows: int) -> tuple[float, ...]:
    """A trigger is added to a table that has none, several times, each time to another copy of the table."""
    say(f"a trigger is added to {rows:,} rows")
    found = []
    for nth in range(_ADDED):
        project = _make(folder / str(nth), rows, "")
        (project / "strandline.yaml").write_text(_PROJECT.format(name="published") + _TRIGGER)
        seconds, _ = _run(project)
        found.append(seconds)
    return tuple(found)


def _make(folder: Path, rows: int, more: str) -> Path:
    """A project with rows on which no trigger fires."""
    folder.mkdir(parents=True)
    (folder / "strandline.yaml").write_text(_PROJECT.format(name="published") + more)
    _deliver(folder, range(rows), at=1, quantity=100)
    _run(folder)
    return folder


def _deliver(folder: Path, trade_ids: list[int] | range, at: int, quantity: int = 15_000) -> None:
    count = len(trade_ids)
    table = pa.table(
        {
            "trade_id": pa.array(trade_ids, pa.int64()),
            "symbol": [f"S{n % 500}" for n in trade_ids],
            "quantity": pa.array([quantity] * count, pa.int64()),
            "price": [100 + n % 1_000 / 10 for n in trade_ids],
            "at": pa.array([at] * count, pa.int64()),
        }
    )
    (folder / "data").mkdir(exist_ok=True)
    pq.write_table(table, folder / "data" / f"{at:04}.parquet")


def _run(folder: Path) -> tuple[float, RunOutcome]:
    began = time.monotonic()
    with open_workspace(folder) as workspace:
        outcome = run(workspace, RunRequest(), SILENT)
    if outcome.exit_code or not outcome.results:
        raise RuntimeError("\n".join(f"{r.node}: {r.status} {r.error}" for r in outcome.results if r.error))
    return time.monotonic() - began, outcome
