"""From facts to signed webhooks: a run owes what fires, and no id ever has another body (L12, L6)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.app.planning import RunRequest
from strandline.cli import main
from strandline.model.webhook_signatures import parse_secret, sign
from tests.harness import TestProject, result_of
from tests.receiver import SECRET, Receiver, receiving_in_thread

pytestmark = pytest.mark.spark

YAML = """\
project: trades
sources:
  events: {{files: "data/*.jsonl"}}
datasets:
  trades:
    from: events
    columns:
      trade_id: {{path: id, type: bigint}}
      symbol: symbol
      quantity: {{path: quantity, type: bigint}}
      at: {{path: at, type: timestamp_ns}}
    record_set: {{key: [trade_id], order_by: [at]}}
endpoints:
  ops: {{url: "{url}", secret: "${{OPS_SECRET}}", allow: ["127.0.0.0/8"]}}
triggers:
  large_trade_alert:
    from: trades
    fire: {{quantity: {{_gte: 10000}}}}
    clear: {{quantity: {{_lt: 9500}}}}
    endpoint: ops
    guard: {{max_events: 1}}
"""
AT = 1705316445123456789
ALERT = "large_trade_alert"
ID = "acf67a288f80147280c9d4b1e99378cd"


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("OPS_SECRET", SECRET)
    with receiving_in_thread() as receiver:
        yield receiver


def trade(trade_id: int, quantity: int, at: int) -> dict[str, object]:
    return {"id": trade_id, "symbol": "AAPL", "quantity": quantity, "at": at}


def test_what_fires_is_owed_once_and_comes_again_only_with_the_same_id_and_bytes(
    tmp_path: Path, receiver: Receiver
) -> None:
    project = TestProject.create(tmp_path, YAML.format(url=receiver.url))

    def send() -> list[str]:
        before = len(receiver.received)
        assert main(["deliveries", "--send", "--project", str(tmp_path)]) == 0
        return [json.loads(body)["event_type"] for _, body in receiver.received[before:]]

    project.lines("data/1.jsonl", trade(123, 15_000, AT), trade(124, 100, AT))
    assert project.run().outbox.owed == 1
    assert send() == ["MATCH"]
    headers, body = receiver.received[0]
    recorded_at = json.loads(body)["timestamp"]
    assert headers["webhook-id"] == ID
    assert body.decode().startswith(
        f'{{"event_id":"{ID}","event_type":"MATCH","trigger_name":"large_trade_alert",'
        f'"timestamp":"{recorded_at}","source_timestamp":"{AT}","data":{{"trade_id":123,"symbol":"AAPL",'
    )
    assert headers["webhook-signature"] == sign(
        parse_secret(SECRET), ID, int(headers["webhook-timestamp"]), body
    )

    project.lines("data/2.jsonl", trade(123, 9_000, AT + 1_000), trade(124, 20_000, AT + 1_000))
    guarded = project.run(ok=False)
    assert (guarded.exit_code, str(result_of(guarded, ALERT).status), guarded.outbox.owed) == (
        1,
        "guarded",
        0,
    )
    assert project.query(f"SELECT count(*) FROM {ALERT}") == [(1,)]
    assert project.run(RunRequest(quiet=(ALERT,))).outbox.owed == 0
    project.lines(
        "data/3.jsonl",
        trade(123, 11_000, AT + 2_000),
        trade(124, 30_000, AT + 2_000),
        trade(125, 10_000, AT + 2_000),
    )
    accepted = project.run(RunRequest(accept_guard=(ALERT,)))
    assert accepted.outbox.owed == 2  # 124 is on already, although nobody was told
    assert send() == ["MATCH", "MATCH"]

    (tmp_path / ".strandline" / "catalog.db").unlink()
    assert main(["rebuild-catalog", "--project", str(tmp_path)]) == 0
    assert send() == ["MATCH", "MATCH", "MATCH"]
    ids = [headers["webhook-id"] for headers, _ in receiver.received]
    assert sorted(ids[:3]) == sorted(ids[3:])  # those of different keys come in any order
    assert len({body for _, body in receiver.received}) == 3
    assert project.run().outbox.owed == 0
    project.assert_verified()
