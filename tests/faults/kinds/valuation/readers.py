"""Jobs that read a valuation.

What one of them computes of a portfolio needs only that portfolio whole. It reads a herd batch by batch. The
other reads only versions in which no key waits.
"""

from collections import Counter
from typing import Any

from tests.faults.evidence import Evidence, require
from tests.faults.kinds import job
from tests.faults.kinds.kind import Kind, Switches
from tests.faults.kinds.timeline.data import DAILY
from tests.faults.kinds.timeline.layout import read_model
from tests.faults.plain_work import live
from tests.property.timeline_table import REPROCESSING

_JOBS = """
- name: sum_portfolios
  input_datasets: [stock_daily]
  output_dataset: portfolios
  incremental: {mode: keyed, key: [portfolio], inputs: {stock_daily: {by: [portfolio]}}}
  sql: select portfolio, count(*) as days, sum(worth) as worth from stock_daily group by portfolio
- name: sum_securities
  input_datasets: [stock_daily]
  output_dataset: securities
  incremental: {mode: keyed, key: [security], inputs: {stock_daily: {by: [security]}}}
  sql: select security, count(*) as days, sum(worth) as worth from stock_daily group by security
"""
READERS = {"portfolios": "portfolio", "securities": "security"}
"""By job: its key."""


def declare(switches: Switches) -> dict[str, str]:
    return {"jobs": _JOBS}


def check(evidence: Evidence) -> None:
    """L2: the jobs by the version that their last commit read."""
    for name, key in READERS.items():
        if inputs := evidence.inputs(name):
            rows = inputs[DAILY]
            if name == "securities":
                heads = read_model(rows, ()).heads.items()
                waiting = [key for key, head in heads if head.status == REPROCESSING]
                require(not waiting, "a herd is read when it is complete", waiting)
            _check_sums(evidence, name, key, rows)
        if evidence.at_rest:
            _check_sums(evidence, name, key, evidence.rows(DAILY))


def _check_sums(evidence: Evidence, name: str, key: str, rows: Any) -> None:
    days: Counter[str] = Counter(row[key] for row in live(rows))
    worths: dict[str, int] = {}
    for row in live(rows):
        if row["worth"] is not None:
            worths[row[key]] = worths.get(row[key], 0) + row["worth"]
    seen = {row[key]: (row["days"], row["worth"]) for row in evidence.live(name)}
    expected = {of_key: (count, worths.get(of_key)) for of_key, count in days.items()}
    require(seen == expected, f"L2 {name}", seen, expected)


KIND = Kind(
    name=job.KIND.name, prepare=job.KIND.prepare, check=check, project=declare, backfills=("securities",)
)
"""Jobs, in a world with valuations."""
