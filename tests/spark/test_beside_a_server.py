"""The verbs beside a server print what they print alone, and leave the same rows (LANGUAGE, "serve")."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline.app.init import init
from strandline.cli import main
from tests.harness import TestProject
from tests.served_process import serving

pytestmark = pytest.mark.spark

LATE = (
    '{"orderId": "A-1", "customer": "Asha", "amount": 90, "status": "PLACED", '
    '"changedAt": "2024-01-13T09:00:00Z"}\n'
)
BROKEN = '{"customer": "Asha", "amount": 1, "status": "PLACED", "changedAt": "2024-01-13T10:00:00Z"}\n'
STEPS = (
    ("run",),
    ("run", "--select", "nobody"),
    ("plan",),
    ("query", "select * from orders order by 1", "--fresh"),
    ("query", "select count(*) from orders_facts", "--engine", "spark"),
    ("query", "select nothing from orders", "--engine", "spark"),
    ("quarantine", "orders", "--release"),
    ("verify",),
    ("backfill", "customer_totals", "--all", "--reason", "once more"),
    ("maintain",),
    ("invalidate", "orders", "--row-filter", '{"order_id": "A-1"}', "--reason", "a look"),
)
"""The server does what is due by itself, so nothing is due before a step but the first."""
_MOVING = (
    (re.compile(r"\d{8}T\d{6}\.\d{6}-[0-9a-f]+"), "RUN"),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z?"), "TIME"),
    (re.compile(r"\b\d+(\.\d+)? (s|min|KB|MB|B)\b"), "SIZE"),
    (re.compile(r"\b\d+\.\d\b"), "SECONDS"),
    (re.compile(r" +"), " "),
)


def still(text: str) -> str:
    """Without what differs from run to run."""
    for pattern, name in _MOVING:
        text = pattern.sub(name, text)
    return text


def play(project: TestProject, capsys: pytest.CaptureFixture[str]) -> Iterator[tuple[str, int, str, str]]:
    project.write("data/orders/2024-01-13.jsonl", LATE + BROKEN)
    for words in STEPS:
        capsys.readouterr()
        code = main([*words, "--project", str(project.folder)])
        printed = capsys.readouterr()
        refusal = printed.err.splitlines()[-1] if code == 2 else ""
        yield " ".join(words), code, still(printed.out), still(refusal)


def test_each_verb_prints_the_same_alone_and_beside_a_server(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    init(tmp_path / "alone")
    alone = TestProject(tmp_path / "alone")
    alone.declare((alone.folder / "strandline.yaml").read_text() + "settings: {serve: {poll: 1 hour}}\n")
    alone.run()
    beside = alone.copy(tmp_path / "beside")

    expected = list(play(alone, capsys))
    with serving(beside.folder) as server:
        server.wait_until_ready()
        time.sleep(5)  # it has looked for files, and looks again in an hour
        actual = list(play(beside, capsys))
        runs = server.call("/v1/runs").document["runs"]

    for beside_it, by_itself in zip(actual, expected, strict=True):
        assert beside_it == by_itself
    assert [code for _, code, _, _ in expected].count(2) == 2
    assert len(runs) >= 4, "the server did the work"
    assert beside.query("select * from orders order by 1") == alone.query("select * from orders order by 1")
