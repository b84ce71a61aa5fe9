"""What the fault suite knows of change logs."""

import json
from collections.abc import Iterable
from datetime import datetime
from itertools import groupby
from typing import Any

import pyarrow as pa

from strandline.lake.log import read_entries
from strandline.lake.work import Prepared, Write
from strandline.model.columns import DELETED
from strandline.model.commits import Operation
from strandline.model.publishing import ChangeLog
from strandline.model.scope import Rows as RowsScope
from strandline.publish.change_log.pieces import Piece, Reset, Rewrite, find_publishing_time, find_unread
from tests.faults import table_log
from tests.faults.evidence import Evidence, require
from tests.faults.kinds.kind import Kind, Switches
from tests.faults.plain_work import Work, declared, write_rows
from tests.faults.table_log import Row

LOGS = {"trade": "trade_changes", "large": "large_changes"}
TIME = 7
"""All changes have this time, so that only the number tells events of one key apart."""
_SCHEMA = pa.schema(
    [
        ("version", pa.int64()),
        ("position", pa.int64()),
        ("operation", pa.string()),
        ("key", pa.string()),
        ("source_timestamp", pa.int64()),
        ("fields", pa.string()),
        ("data", pa.string()),
        ("before", pa.string()),
        ("published_at", pa.timestamp("us", tz="UTC")),
    ]
)


def prepare(work: Work) -> Prepared:
    """The states of the dataset before and after each commit, compared by key."""
    log = work.node.definition
    assert isinstance(log, ChangeLog)
    now = work.inputs[log.dataset]
    uri = work.desk.lake.table(log.dataset)
    entries = [e for e in read_entries(uri, -1) if e.version <= now.version]
    cursor = next(i.after for i in work.task.inputs)
    pieces = find_unread(entries, work.node.name, cursor, now, redeclared=work.stale)
    own = list(read_entries(work.desk.lake.table(work.node.name), -1))
    at = find_publishing_time(own, work.desk.now())
    rows = [row for piece in pieces for row in _tell(work, log, piece, at)]
    first = work.own_version is None
    rewrites = work.task.overwrite and not first
    operation = Operation.OVERWRITE if rewrites else Operation.APPEND if rows or first else None
    write: Write | None = None if operation is None else write_rows(operation, _SCHEMA, rows)
    return Prepared(
        write=write,
        scope=RowsScope(count=len(rows)),
        rows_written=len(rows),
        live_rows=len(rows) + (0 if rewrites else work.live_rows),
        whole=True,
    )


def _tell(work: Work, log: ChangeLog, piece: Piece, at: datetime) -> Iterable[Row]:
    if isinstance(piece, Reset):
        nothing: Row = dict.fromkeys(_SCHEMA.names)
        reset = {"version": piece.version, "position": 0, "operation": "RESET"}
        yield nothing | reset | {"published_at": at}
        return
    uri = work.desk.lake.table(log.dataset)
    for version in (piece.version,) if isinstance(piece, Rewrite) else piece.versions:
        before = read_state(table_log.read_snapshot(uri, version - 1).rows() if version else [], log.key)
        after = read_state(table_log.read_snapshot(uri, version).rows(), log.key)
        for position, (key, old, new) in enumerate(differ(before, after)):
            yield {
                "version": version,
                "position": position,
                "operation": "INSERT" if old is None else "DELETE" if new is None else "UPDATE",
                "key": key,
                "source_timestamp": TIME,
                "fields": None,
                "data": json.dumps(new if new is not None else old),
                "before": None if old is None else json.dumps(old),
                "published_at": at,
            }


def read_state(rows: Iterable[Row], key: Iterable[str]) -> dict[str, Row]:
    """The live rows by the text of their key, which is one word here."""
    (column,) = key
    return {row[column]: declared(row) for row in rows if not row.get(DELETED)}


def differ(before: dict[str, Row], after: dict[str, Row]) -> Iterable[tuple[str, Row | None, Row | None]]:
    for key in sorted({*before, *after}):
        if before.get(key) != after.get(key):
            yield key, before.get(key), after.get(key)


def check(evidence: Evidence) -> None:
    """The log folded from its start gives the dataset; nothing is told twice, and positions have no gap."""
    for dataset, log in LOGS.items():
        rows = sorted(evidence.rows(log), key=lambda r: (r["published_at"], r["version"], r["position"]))
        if not evidence.entries(log):
            continue
        _check_places(log, rows)
        if inputs := evidence.inputs(log):
            _check_fold(evidence, log, rows, read_state(inputs[dataset], ("id",)))
        if evidence.at_rest:
            _check_fold(evidence, log, rows, read_state(evidence.rows(dataset), ("id",)))


def _check_places(log: str, rows: list[Row]) -> None:
    since = max((i for i, row in enumerate(rows) if row["operation"] == "RESET"), default=-1) + 1
    places = [(row["version"], row["position"]) for row in rows[since:]]
    require(len(places) == len(set(places)), f"L10 {log}: nothing is told twice", places)
    for version, changes in groupby(sorted(rows[since:], key=_place), key=lambda row: row["version"]):
        told = list(changes)
        keys = [row["key"] for row in told]
        require(keys == sorted(set(keys)), f"{log}: in the order of keys", version, keys)
        positions = [row["position"] for row in told]
        require(positions == list(range(len(told))), f"{log}: positions", version, positions)


def _place(row: Row) -> tuple[int, int]:
    return row["version"], row["position"]


def _check_fold(evidence: Evidence, log: str, rows: list[Row], expected: dict[str, Row]) -> None:
    state: dict[str, Any] | None = {}
    for row in rows:
        if row["operation"] == "RESET":
            state = None  # what the log does not tell, its fold does not know
        elif state is not None and row["operation"] == "DELETE":
            require(state.pop(row["key"], None) is not None, f"L2 {log}: what leaves was there", row)
        elif state is not None:
            require(
                (row["key"] in state) == (row["operation"] == "UPDATE"), f"L2 {log}: what comes is new", row
            )
            state[row["key"]] = json.loads(row["data"])
    if state is not None:
        require(state == expected, f"L2 {log}", state, expected)


def _declare(switches: Switches) -> dict[str, str]:
    return {"publish": "- trade"}


KIND = Kind(name="changes", prepare=prepare, check=check, project=_declare)
