"""The table of a timeline's output (ADR 14) and its value in the model of timelines, one from the other."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from strandline.lake.work import Prepared, Write
from strandline.lake.writes import Superseding
from strandline.model.columns import CONFIG, DELETED, HEAD, ROLE, Role
from strandline.model.columns import KEY as HASH
from strandline.model.commits import Operation
from strandline.model.plan import Cause
from strandline.model.scope import EVERYTHING, Keys
from strandline.model.timeline import DATE, EPOCH
from tests.faults.plain_work import KEYED_COLUMNS, Work, key_hash, write_rows
from tests.faults.table_log import Row
from tests.property.timeline_table import BEGINNING, FOREVER, Head, Ranges, Superseded, Table
from tests.property.timeline_table import Row as ModelRow
from tests.property.timeline_world import Date, Key

from .data import KEY

_RANGE = pa.struct([("start", pa.date32()), ("end", pa.date32())])
_INSTANT = pa.timestamp("us", tz="UTC")
_HEAD = pa.struct(
    [
        ("state", pa.string()),
        ("last_on", pa.date32()),
        ("watermark_on", pa.date32()),
        ("status", pa.string()),
        ("reason", pa.string()),
        ("updated_at", _INSTANT),
        ("waits", pa.list_(pa.date32())),
        ("pending", pa.list_(_RANGE)),
        ("superseded_by", pa.int64()),
        ("superseded_at", _INSTANT),
        ("replaces", pa.int64()),
    ]
)
_NOTHING: Row = dict.fromkeys(field.name for field in _HEAD)


def read_published(work: Work) -> list[Row] | None:
    """The output as it is, with which what is computed is compared. None before the first commit.

    A task that may write the whole table anew keeps epochs and superseded rows as well. Only the rows of a
    table that somebody else has put in the place of ours mean nothing.
    """
    if work.task.overwrite and work.task.cause is Cause.GAP:
        return None
    return work.read_own()


def read_model(rows: Iterable[Row], columns: Sequence[str]) -> Table:
    """The table as a value of the model. `columns` are those beside key, date and epoch."""
    found: dict[Key, dict[Date, ModelRow]] = {}
    heads: dict[Key, Head] = {}
    superseded: list[Superseded] = []
    for row in rows:
        key = key_of(row)
        values = {name: row[name] for name in columns}
        match row[ROLE]:
            case Role.HEAD:
                heads[key] = _read_head(row, values)
            case Role.ROW:
                found.setdefault(key, {})[number(row[DATE])] = ModelRow(values=values, epoch=row[EPOCH])
            case Role.EPOCH:
                old = ModelRow(values=values, epoch=row[EPOCH])
                by = row[HEAD]["superseded_by"]
                superseded.append(Superseded(key=key, on=number(row[DATE]), row=old, superseded_by=by))
    return Table(rows=found, heads=heads, superseded=tuple(superseded))


def key_of(row: Row) -> Key:
    return row[KEY[0]], row[KEY[1]]


def number(day: date) -> Date:
    """Dates of the model are numbers."""
    return day.toordinal()


def find_number(day: date | None) -> Date | None:
    return None if day is None else day.toordinal()


def _read_head(row: Row, values: Row) -> Head:
    head = row[HEAD]
    return Head(
        epoch=row[EPOCH],
        status=head["status"],
        reason=head["reason"] or "",
        watermark=find_number(head["watermark_on"]),
        state=json.loads(head["state"]) if head["state"] else None,
        last_on=find_number(head["last_on"]),
        fields=values if head["state"] else None,
        waits=frozenset(map(number, head["waits"] or ())),
        pending=_read_ranges(head["pending"] or ()),
    )


def _read_ranges(ranges: Iterable[Row]) -> Ranges:
    return tuple((BEGINNING if r["start"] is None else number(r["start"]), _end_of(r["end"])) for r in ranges)


def _end_of(day: date | None) -> Date:
    return FOREVER if day is None else number(day)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How one output is written."""

    columns: dict[str, pa.DataType]
    """Those beside key, date and epoch."""
    work: Work
    as_of: datetime

    @property
    def schema(self) -> pa.Schema:
        key = [(name, pa.string()) for name in KEY]
        beside = [(EPOCH, pa.int64()), *KEYED_COLUMNS, (ROLE, pa.string()), (HEAD, _HEAD)]
        return pa.schema([*key, (DATE, pa.date32()), *self.columns.items(), *beside])

    def prepare(self, own: Sequence[Row] | None, before: Table, after: Table, *, records: bool) -> Prepared:
        """The one write that makes the next version of the table.

        `records`: a commit is made although nothing differs.
        """
        new, heads, old = self._new_rows(before, after), self._new_heads(before, after), []
        if own is not None:
            old = self._set_aside(own, after.superseded[len(before.superseded) :])
        rows = [*new, *heads, *old]
        write = None
        if own is None:
            write = write_rows(Operation.OVERWRITE, self.schema, rows)
        elif rows:
            write = self._replace(rows, old, heads)
        elif records or (self.work.full and self.work.stale):
            write = write_rows(Operation.COUNTS, self.schema, [])
        return Prepared(
            write=write,
            scope=EVERYTHING if self.work.full else Keys(count=len(heads)),
            rows_written=len(new),
            live_rows=(self.work.live_rows if own is not None else 0) + len(new) - len(old),
            whole=self.work.full,
        )

    def _new_rows(self, before: Table, after: Table) -> list[Row]:
        return [
            self._row(key, on, row.values, row.epoch)
            for key, rows in after.rows.items()
            for on, row in rows.items()
            if before.rows.get(key, {}).get(on) != row
        ]

    def _new_heads(self, before: Table, after: Table) -> list[Row]:
        return [
            self._head(key, head, replaces=key in before.heads)
            for key, head in after.heads.items()
            if before.heads.get(key) != head
        ]

    def _set_aside(self, own: Sequence[Row], superseded: Iterable[Superseded]) -> list[Row]:
        """The rows that leave, as superseded rows: each takes the place of the published one."""
        published = {(key_of(row), row[DATE]): row for row in own if row[ROLE] == Role.ROW}
        aside = []
        for old in superseded:
            row = published[old.key, date.fromordinal(old.on)]
            head = {"superseded_by": old.superseded_by, "superseded_at": self.as_of, "replaces": row[HASH]}
            marks = {HASH: None, DELETED: True, ROLE: str(Role.EPOCH), HEAD: _NOTHING | head}
            aside.append({**row, **marks})
        return aside

    def _row(self, key: Key, on: Date, values: Any, epoch: int) -> Row:
        day = date.fromordinal(on)
        return {
            **dict(zip(KEY, key, strict=True)),
            DATE: day,
            **values,
            EPOCH: epoch,
            HASH: key_hash((*key, day)),
            DELETED: False,
            CONFIG: self.work.config.hash,
            ROLE: str(Role.ROW),
            HEAD: None,
        }

    def _head(self, key: Key, head: Head, *, replaces: bool) -> Row:
        own_hash = key_hash((*key, None))
        state = None if head.state is None else json.dumps(head.state, separators=(",", ":"))
        fields = {
            "state": state,
            "last_on": _day(head.last_on),
            "watermark_on": _day(head.watermark),
            "status": head.status,
            "reason": head.reason or None,
            "updated_at": self.as_of,
            "waits": sorted(date.fromordinal(on) for on in head.waits) or None,
            "pending": [{"start": _bound(low), "end": _bound(high)} for low, high in head.pending] or None,
            "replaces": own_hash if replaces else None,
        }
        return {
            **dict(zip(KEY, key, strict=True)),
            **dict.fromkeys(self.columns),
            **(head.fields or {}),
            EPOCH: head.epoch,
            HASH: own_hash,
            DELETED: True,
            CONFIG: self.work.config.hash,
            ROLE: str(Role.HEAD),
            HEAD: _NOTHING | fields,
        }

    def _replace(self, rows: Sequence[Row], old: Sequence[Row], heads: Sequence[Row]) -> Write:
        known = any(head[HEAD]["replaces"] is not None for head in heads)
        if not old and not known:
            return write_rows(Operation.APPEND, self.schema, rows)
        days = [row[DATE] for row in old]
        superseding = Superseding(key=KEY, dates=((min(days), max(days)),) if days else (), heads=known)
        write = write_rows(Operation.REPLACE_KEYS, self.schema, rows)
        return Write(operation=write.operation, rows=write.rows, superseding=superseding)


def _day(on: Date | None) -> date | None:
    return None if on is None else date.fromordinal(on)


def _bound(on: Date) -> date | None:
    return None if on in (BEGINNING, FOREVER) else date.fromordinal(on)
