"""A project that publishes, for tests of its sections."""

import re
from pathlib import Path

from strandline.model.node import Project
from tests.unit.declare.builders import load, report

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
TRADES = """\
project: trades
sources:
  events: {files: "data/*.jsonl"}
datasets:
  trades:
    from: events
    columns:
      trade_id: {path: id, type: bigint}
      symbol: symbol
      quantity: {path: quantity, type: bigint}
      price: {path: price, type: "decimal(18,4)"}
      ratio: {path: ratio, type: double}
      at: {path: at, type: timestamp_ns}
    record_set: {key: [trade_id], order_by: [at]}
  ticks:
    from: events
    columns: {symbol: symbol, ratio: {path: ratio, type: double}}
    event_stream: {identity: [symbol, ratio]}
  raw:
    from: events
    columns: {symbol: symbol}
jobs:
  - name: totals
    input_datasets: [trades]
    output_dataset: totals
    incremental: {mode: keyed, key: [symbol]}
    sql: select symbol, sum(quantity) as quantity from trades group by symbol
publish: [trades]
views:
  large_trades:
    from: trades
    where: {quantity: {_gte: 10000}}
    calculated: {notional: "quantity * price"}
endpoints:
  ops:
    url: "https://ops.example/hook"
    secret: "${OPS_SECRET}"
  desk:
    url: "http://10.1.2.3:8080/hook"
    secret: ["${NEW_SECRET}", "${OLD_SECRET}"]
    ordering: parallel
    timeout: 5 s
    rate: 20
    in_flight: 4
    max_body: 1 MiB
    retry: [1 s, 5 min]
    headers: {x-team: risk, authorization: "Bearer ${DESK_TOKEN}"}
    allow: ["10.1.0.0/16"]
triggers:
  large_trade_alert:
    from: trades
    fire: {quantity: {_gte: 10000}}
    clear: {quantity: {_lt: 9500}}
    endpoint: ops
  costly:
    from: large_trades
    fire: {notional: {_gt: 1000000}}
    endpoint: [ops, desk]
    existing: deliver
    guard: {max_events: 5}
"""


def load_trades(folder: Path, *edits: tuple[str, str]) -> Project:
    return load(folder, edited(*edits))


def report_trades(folder: Path, *edits: tuple[str, str]) -> str:
    return report(folder, edited(*edits))


def edited(*edits: tuple[str, str]) -> str:
    text = TRADES
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times"
        text = text.replace(old, new)
    return text


def slugs_of(text: str) -> list[str]:
    return re.findall(r"\[([a-z-]+)\]$", text, re.MULTILINE)
