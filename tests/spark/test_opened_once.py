"""A run lists the log of each table once, opens each table once, and parses each log entry once."""

from collections import Counter
from pathlib import Path

import pytest

from strandline.app.init import init
from strandline.lake import log, table
from tests.counting import count_calls
from tests.harness import TestProject

pytestmark = pytest.mark.spark

LINE = (
    '{"orderId": "D-1", "customer": "Asha", "amount": 5.00, "status": "PLACED", '
    '"changedAt": "2024-02-01T09:00:00Z"}\n'
)


def test_a_run_over_one_more_line_opens_each_table_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    init(tmp_path / "shop")
    project = TestProject(tmp_path / "shop")
    project.run()
    data = next((tmp_path / "shop" / "data").rglob("*.jsonl"))
    data.write_text(data.read_text() + LINE)
    for cache in (log.find_log, log._parse_once, table._find_versions):
        cache.cache_clear()  # as in a new process
    listed = count_calls(monkeypatch, log, "list_log")
    opened = count_calls(monkeypatch, table, "open_delta")
    parsed = count_calls(monkeypatch, log, "_read_text")

    outcome = project.run()

    tables = {str(uri) for uri, _ in parsed}
    assert len(tables) == sum(r.table_version is not None for r in outcome.results) > 2
    assert max(listed.values()) == 1, listed
    assert max(Counter(uri for uri, _ in opened.elements()).values()) == 1, opened
    assert max(Counter(uri for uri, _ in parsed.elements()).values()) == 1, parsed
