"""The project that is served while it is measured: facts come over HTTP, webhooks tell of large ones."""

import json
from pathlib import Path

from tests.receiver import SECRET

SECRET_NAME = "BENCH_SECRET"
ENVIRON = {SECRET_NAME: SECRET}
LARGE = 10_000
_PROJECT = """\
project: served
settings:
  keep: 1 hour
  spark: {{conf: {{spark.driver.memory: {memory}}}}}
sources:
  pushed: {{http: {{}}}}
datasets:
  trades:
    from: pushed
    columns:
      trade_id: {{path: id, type: bigint}}
      symbol: symbol
      quantity: {{path: quantity, type: bigint}}
      at: {{path: at, type: bigint}}
    record_set: {{key: [trade_id], order_by: [at]}}
    source_at: at
{more}\
endpoints:
  desk: {{url: "http://127.0.0.1:{port}/hook", secret: "${{{secret}}}", allow: ["127.0.0.0/8"]}}
triggers:
  large: {{from: trades, fire: {{quantity: {{_gte: {large}}}}}, endpoint: desk}}
"""
_MORE = """\
  by_symbol: {key: [symbol]}
jobs:
  - name: add_up
    input_datasets: [trades]
    output_dataset: by_symbol
    incremental: {mode: keyed, key: [symbol]}
    update_strategy: replace
    sql: select symbol, count(*) as trades, sum(quantity) as quantity from trades group by symbol
publish: [by_symbol]
views:
  small_trades: {from: trades, where: {quantity: {_lt: 100}}}
"""


def write_project(folder: Path, port: int, *, more: bool = False, memory: str = "2g") -> None:
    """`port` is that of the receiver. `more` adds a job and a view."""
    folder.mkdir(parents=True, exist_ok=True)
    text = _PROJECT.format(
        port=port, secret=SECRET_NAME, large=LARGE, memory=memory, more=_MORE if more else ""
    )
    (folder / "strandline.yaml").write_text(text)


def trade(trade_id: int, quantity: int, at: int) -> dict[str, object]:
    return {"id": trade_id, "symbol": f"S{trade_id % 50}", "quantity": quantity, "at": at}


def trade_lines(first: int, last: int, at: int = 0) -> bytes:
    """Small trades as lines of JSON."""
    return b"".join(
        json.dumps(trade(number, number % 100, at)).encode() + b"\n" for number in range(first, last)
    )
