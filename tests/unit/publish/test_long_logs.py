"""What change logs and triggers read of the logs of tables: only what came after their cursors."""

import json
import random
from pathlib import Path

import pytest

from strandline.lake import log as logs
from strandline.lake.log import LogEntry, read_entries
from strandline.model.commits import Operation
from strandline.model.metadata import to_json
from strandline.model.plan import Cursor
from strandline.publish.change_log import pieces
from strandline.publish.change_log.worker import read_dataset_log
from strandline.publish.trigger import reading
from strandline.publish.trigger.rule import find_told
from tests.counting import count_calls
from tests.unit.publish.entries import make_entry

NAMED = ("alert", "trades_changes")
BARE = (Operation.FENCE, Operation.COMPACT)


def write_log(table: Path, entries: list[LogEntry]) -> str:
    (table / "_delta_log").mkdir(parents=True)
    for entry in entries:
        assert entry.metadata is not None
        assert entry.committed_at is not None
        millis = int(entry.committed_at.timestamp() * 1000)
        info = {"operation": "WRITE", "timestamp": millis, "userMetadata": to_json(entry.metadata)}
        added = {"path": f"{entry.version}.parquet", "size": 1, "dataChange": True}
        actions = [{"commitInfo": info}, *([{"add": added}] if entry.data_change else [])]
        text = "\n".join(json.dumps(action) for action in actions)
        (table / "_delta_log" / f"{entry.version:020}.json").write_text(text)
    return str(table)


def make_dataset(chance: random.Random, count: int) -> list[LogEntry]:
    kinds = (*(Operation.REPLACE_KEYS,) * 6, Operation.OVERWRITE, *BARE)
    return [
        make_entry(
            version,
            Operation.REPLACE_KEYS if version == 0 else chance.choice(kinds),
            published_to=NAMED if chance.random() < 0.8 else (),
            rows=chance.choice((1, 5, 2_000_000)),
            readable_from=chance.choice((0, 0, 0, version)),
        )
        for version in range(count)
    ]


def make_log(chance: random.Random, count: int, dataset: int) -> list[LogEntry]:
    """Commits of a change log, each of which tells up to a later version of the dataset, or nothing."""
    entries, read = [], 0
    for version in range(count):
        is_bare = version > 0 and chance.random() < 0.3
        read = min(dataset - 1, read + chance.randrange(3))
        operation = Operation.OVERWRITE if chance.random() < 0.1 else Operation.APPEND
        kind = chance.choice(BARE) if is_bare else operation
        entries.append(make_entry(version, kind, read=None if is_bare else read))
    return entries


@pytest.mark.parametrize("seed", range(10))
def test_what_comes_after_the_cursor_tells_the_same_as_all_of_it(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    dataset, log = make_dataset(chance, 12), make_log(chance, 12, 12)
    trades, changes = write_log(tmp_path / "trades", dataset), write_log(tmp_path / "log", log)
    all_of_trades, all_of_log = list(read_entries(trades, -1)), list(read_entries(changes, -1))

    for after in range(12):
        for upto in range(after, 12):
            cursor, now = (Cursor(table_id="t", version=version) for version in (after, upto))
            entries = read_dataset_log(trades, cursor, upto)
            known = [e for e in all_of_trades if e.version <= upto]
            assert pieces.find_unread(entries, "trades_changes", cursor, now, redeclared=False) == (
                pieces.find_unread(known, "trades_changes", cursor, now, redeclared=False)
            )

            of_log = reading.read_log_entries(changes, "trades", cursor, upto)
            told = [e for e in all_of_log if e.version <= upto]
            covered = reading.find_covered(of_log, "trades", upto)
            assert covered == reading.find_covered(told, "trades", upto)
            of_trades = reading.read_dataset_entries(trades, "trades", of_log, cursor, covered)
            unread = reading.find_unread("alert", cursor, now, "trades", of_log, of_trades)
            assert unread == reading.find_unread("alert", cursor, now, "trades", told, all_of_trades)
            folded = reading.find_covered(told, "trades", after)
            new = [e for e in all_of_trades if folded < e.version <= covered]
            assert find_told(of_trades, "alert") == find_told(new, "alert")


def test_a_long_log_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(1)
    trades = write_log(tmp_path / "trades", make_dataset(chance, 300))
    changes = write_log(tmp_path / "log", make_log(chance, 300, 300))
    parsed = count_calls(monkeypatch, logs, "parse_entry")
    cursor = Cursor(table_id="t", version=297)

    read_dataset_log(trades, cursor, 299)
    of_log = reading.read_log_entries(changes, "trades", cursor, 299)
    covered = reading.find_covered(of_log, "trades", 299)
    reading.read_dataset_entries(trades, "trades", of_log, cursor, covered)

    assert 4 <= parsed.total() < 20


def test_a_dataset_that_began_anew_is_read_from_its_start() -> None:
    before = make_entry(3, Operation.APPEND, read=100)
    after = make_entry(4, Operation.APPEND, read=2)
    assert after.metadata is not None
    after.metadata.inputs["trades"] = Cursor(table_id="another", version=2)  # type: ignore[index]
    cursor = Cursor(table_id="log", version=3)

    assert reading.find_folded([before], "trades", cursor) == 100
    assert reading.find_folded([before, after], "trades", cursor) == -1
    assert reading.find_folded([after], "trades", cursor) == -1
