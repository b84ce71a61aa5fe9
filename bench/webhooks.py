"""Webhooks without Spark: from recorded events to the last answer, and what an id and a signature cost."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, write_deltalake

from strandline.app.deliveries import DeliveriesRequest, show_deliveries
from strandline.app.workspace import open_workspace
from strandline.model.commits import CommitMetadata, Operation
from strandline.model.deliveries import DeliveryStatus
from strandline.model.events import make_event_id
from strandline.model.metadata import to_json
from strandline.model.webhook_signatures import make_headers, parse_secret

from .progress import say

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
_TIMES = 20_000
_BODY = b'{"event_id":"acf67a288f80147280c9d4b1e99378cd","event_type":"MATCH","data":{"quantity":15000}}' * 4
_PROJECT = """\
project: webhooks
sources:
  events: {{files: "data/*.jsonl"}}
datasets:
  trades:
    from: events
    columns:
      trade_id: {{path: id, type: bigint}}
      quantity: {{path: quantity, type: bigint}}
      at: {{path: at, type: timestamp_ns}}
    record_set: {{key: [trade_id], order_by: [at]}}
endpoints:
  ops: {{url: "http://127.0.0.1:{port}/hook", secret: "${{OPS_SECRET}}", allow: ["127.0.0.0/8"]}}
triggers:
  large: {{from: trades, fire: {{quantity: {{_gte: 10000}}}}, endpoint: ops}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhooks:
    events: int
    fill_seconds: float
    """From the events table to the catalog."""
    send_seconds: float
    id_micros: float
    signature_micros: float

    @property
    def seconds(self) -> float:
        return self.fill_seconds + self.send_seconds


def measure_webhooks(folder: Path, events: int) -> Webhooks:
    say(f"{events:,} webhooks to a receiver in another process")
    with _receiving() as port:
        folder.mkdir(parents=True)
        (folder / "strandline.yaml").write_text(_PROJECT.format(port=port))
        environ = {**os.environ, "OPS_SECRET": SECRET}
        with open_workspace(folder) as workspace:
            show_deliveries(workspace, DeliveriesRequest(limit=1))
            _write_events(Path(workspace.lake.table("large")), events)
            began = time.monotonic()
            show_deliveries(workspace, DeliveriesRequest(limit=1))
            filled = time.monotonic()
            done = show_deliveries(workspace, DeliveriesRequest(send=True, limit=1), environ)
            ended = time.monotonic()
    if done.counts != {DeliveryStatus.DELIVERED: events}:
        raise RuntimeError(f"{events} events should have been delivered: {dict(done.counts)}")
    found = Webhooks(
        events=events,
        fill_seconds=filled - began,
        send_seconds=ended - filled,
        id_micros=_measure_ids(),
        signature_micros=_measure_signatures(),
    )
    say(f"  filled in {found.fill_seconds:.1f} s, sent in {found.send_seconds:.1f} s")
    return found


def _write_events(uri: Path, count: int) -> None:
    """As a trigger's task would: each event is of another key, as rows of a table are."""
    now = datetime.now(UTC)
    numbers = range(count)
    schema = pa.schema([("recorded_at", pa.timestamp("us", "UTC"))])
    columns = {
        "event_id": [make_event_id("large", str(n), n) for n in numbers],
        "event_type": ["MATCH"] * count,
        "key": [str(n) for n in numbers],
        "source_timestamp": list(numbers),
        "n": [1] * count,
        "data": [f'{{"trade_id":{n},"symbol":"AAPL","quantity":15000,"price":185.2500}}' for n in numbers],
        "version": [1] * count,
        "position": list(numbers),
        "revision": [1] * count,
        "quiet": [False] * count,
        "recorded_at": pa.array([now] * count, schema.field("recorded_at").type),
    }
    metadata = CommitMetadata.bare(run="bench", node="large", token=1, operation=Operation.APPEND, as_of="")
    ours = CommitProperties(custom_metadata={"userMetadata": to_json(metadata)})
    write_deltalake(str(uri), pa.table(columns), commit_properties=ours)


def _measure_ids() -> float:
    began = time.perf_counter()
    for n in range(_TIMES):
        make_event_id("large_trade_alert", "AAPL,123", n, 2)
    return 1e6 * (time.perf_counter() - began) / _TIMES


def _measure_signatures() -> float:
    secrets = (parse_secret(SECRET),)
    began = time.perf_counter()
    for n in range(_TIMES):
        make_headers(secrets, "acf67a288f80147280c9d4b1e99378cd", n, _BODY)
    return 1e6 * (time.perf_counter() - began) / _TIMES


@contextmanager
def _receiving() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-m", "bench.receiver"], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
