"""What holds from one version of a timeline's output to the next, whatever was read for it (ADR 14).

Both outputs have these laws: epochs count restatements, superseded rows are kept once, and the keys that are
published together are never seen in part.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

from strandline.dispatch.settle import foreign_versions
from strandline.lake.log import LogEntry
from strandline.model.columns import DELETED, ROLE, Role
from strandline.model.commits import Operation
from strandline.model.plan import Cause
from strandline.model.timeline import DATE
from tests.faults.evidence import Evidence, require
from tests.faults.table_log import Row
from tests.property.timeline_table import FAILED, REPROCESSING, Head, Table
from tests.property.timeline_world import Date, Key, Values

from .layout import key_of, read_model

Told = tuple[Date | None, Date | None]
"""Up to where readers were told that a key is complete: at least, and at most."""
TellWatermark = Callable[[Head, LogEntry, LogEntry], Told]
"""By a head, the commit that it is of and the next one."""

_checked: set[tuple[str, int, datetime | None]] = set()
"""Tables, versions and commit times of what was checked before: a version never changes."""


def check_versions(evidence: Evidence, name: str, columns: Sequence[str], tell: TellWatermark) -> Table:
    """Every version that can be read follows from the one before. Returns the newest."""
    entries = evidence.entries(name)
    if not entries:
        return Table()
    foreign, oldest = set(foreign_versions(entries)), evidence.readable_from(name)
    table_id = evidence.table_id(name)
    before: LogEntry | None = None
    for entry in entries:
        seen = (table_id, entry.version, entry.committed_at)
        begins = entry.version in foreign or _starts_anew(entry)
        if seen not in _checked and entry.version >= oldest and not begins:
            after = _read(evidence, name, entry.version, columns)
            if before is None and entry.version == 0:
                _check_step(name, Table(), after, lambda head: (None, None))
            elif before is not None and before.version >= oldest and before.version not in foreign:
                earlier = _last_computed([e for e in entries if e.version < entry.version]) or before
                _check_step(
                    name,
                    _read(evidence, name, before.version, columns),
                    after,
                    lambda head, one=earlier, two=entry: tell(head, one, two),  # type: ignore[misc]
                )
        _checked.add(seen)
        before = entry
    return _read(evidence, name, None, columns)


def _starts_anew(entry: LogEntry) -> bool:
    """What somebody put in the place of our table is written over, and nothing of it is kept."""
    metadata = entry.metadata
    overwrites = metadata is not None and metadata.operation is Operation.OVERWRITE
    return overwrites and metadata is not None and metadata.cause == Cause.GAP.value


def _last_computed(entries: Sequence[LogEntry]) -> LogEntry | None:
    return next((e for e in reversed(entries) if e.metadata and e.metadata.inputs), None)


def _read(evidence: Evidence, name: str, version: int | None, columns: Sequence[str]) -> Table:
    rows = evidence.rows(name, version)
    places = Counter(_place(row) for row in rows if row[ROLE] != Role.EPOCH)
    doubled = [place for place, count in places.items() if count > 1]
    require(not doubled, f"ADR 14 {name}: each row and each head once", doubled)
    hidden = all(row[DELETED] == (row[ROLE] != Role.ROW) for row in rows)
    require(hidden, f"ADR 14 {name}: readers see rows alone", rows)
    return read_model(rows, columns)


def _place(row: Row) -> tuple[Any, ...]:
    return (row[ROLE], key_of(row), row[DATE])


def _check_step(name: str, before: Table, after: Table, told: Callable[[Head], Told]) -> None:
    superseded = Counter(_superseded(before))
    for key in before.heads.keys() | after.heads.keys():
        require(key in after.heads, f"{name}: a key stays", key)
        superseded += _check_key(name, key, before, after, told)
    kept = Counter(_superseded(after))
    require(
        kept == superseded, f"{name}: each superseded row is kept once", kept - superseded, superseded - kept
    )
    strays = after.rows.keys() - after.heads.keys()
    require(not strays, f"{name}: every row has a head", strays)
    waiting = {key[0] for key, head in after.heads.items() if head.status == REPROCESSING}
    for key in before.rows.keys() | after.rows.keys():
        same = before.rows.get(key) == after.rows.get(key)
        require(key[0] not in waiting or same, f"{name}: what is published together is whole", key)


def _check_key(
    name: str, key: Key, before: Table, after: Table, told: Callable[[Head], Told]
) -> Counter[tuple[Any, ...]]:
    """Epoch and rows of a key. Returns the rows that left, as they must be kept."""
    old, new = before.rows.get(key, {}), after.rows.get(key, {})
    head, known = after.heads[key], before.heads.get(key)
    gone = [on for on in old if on not in new or new[on].values != old[on].values]
    came = [on for on in new if on not in old or new[on].values != old[on].values]
    raised = head.epoch - (known.epoch if known else 0)
    least, most = told(known) if known else (None, None)
    must = bool(gone) or _any_until(came, least)
    may = bool(gone) or _any_until(came, most)
    require(
        must <= raised <= may, f"{name}: an epoch is a restatement", key, raised, gone, came, (least, most)
    )
    epochs = {on: row.epoch for on, row in new.items()}
    expected = {on: head.epoch if on in came else old[on].epoch for on in new}
    require(epochs == expected, f"{name}: a row has the epoch that gave it its values", key, epochs, expected)
    if head.status == FAILED and not head.waits:
        require(old == new, f"{name}: a key that fails keeps its rows", key, old, new)
    return Counter((key, on, _text(old[on].values), old[on].epoch, head.epoch) for on in gone)


def _any_until(dates: Sequence[Date], last: Date | None) -> bool:
    return last is not None and any(on <= last for on in dates)


def _superseded(table: Table) -> list[tuple[Any, ...]]:
    return [
        (old.key, old.on, _text(old.row.values), old.row.epoch, old.superseded_by) for old in table.superseded
    ]


def _text(values: Values) -> str:
    return repr(sorted(values.items()))
