"""`history` of a timeline: the facts of one key as they are folded, and its epochs. Starts no Spark."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any

from strandline.lake.key_rows import find_first_writer, find_superseding
from strandline.lake.log import LogEntry, read_entries
from strandline.lake.query import find_rows, parse_values
from strandline.lake.table import Table, open_table
from strandline.model.columns import DELETED, HEAD, METADATA_COLUMNS, ROLE, Role
from strandline.model.node import Project
from strandline.model.timeline import DATE, EPOCH, KeyStatus
from strandline.model.traits import Folding
from strandline.plan.selection import get_nodes

from .history import comparable, require_built, require_key
from .reading import Readable
from .watermarks import WATERMARK, read_defaults

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldedFact:
    """A fact in folding order, with the fields after its date."""

    date: date
    row: Row | None
    """Declared columns only. None for a date that is published and has no fact now."""
    fields: Row | None
    """None if the date is not folded: the key failed, or a run has still to fold the fact."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """One restatement of the key in the last output."""

    epoch: int
    at: datetime | None = None
    """The `as_of` of its commit."""
    committed_at: datetime | None = None
    table_version: int | None = None
    cause: str = ""
    """Empty if the log of the table does not tell which commit it was."""
    inputs: Mapping[str, tuple[int | None, int]] = field(default_factory=dict)
    """By dataset that had moved: the version read before, None for the first time, and the version read."""
    first_on: date | None = None
    last_on: date | None = None
    rows: int = 0
    """Rows that it replaced or removed, or that it put where there was none."""
    rows_now: int = 0
    """Published rows that carry it now, later dates included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyState:
    epoch: int
    status: str
    watermark_on: date | None
    reason: str | None
    updated_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineHistory:
    timeline: str
    facts_of: str
    """The name of the facts."""
    date_column: str
    """Their column that contains the date."""
    fields: tuple[str, ...]
    dataset: str
    """The last output, whose epochs these are."""
    key: Mapping[str, object]
    state: KeyState | None
    """None if the key is unknown to the last output."""
    facts: tuple[FoldedFact, ...]
    """In folding order. Facts that tie in the declared order are ordered by all columns."""
    unplaced: int
    """Facts without a date, which are not folded."""
    epochs: tuple[Epoch, ...]
    """The oldest first. The first publication is no restatement and not among them."""


def find_folding(project: Project, name: str) -> Folding | None:
    """The timeline that a name on the command line means, or one of its outputs."""
    foldings = (project.get(node).traits.folding for node in get_nodes(project, name))
    return next((folding for folding in foldings if folding), None)


def read_timeline_history(
    workspace: Readable, name: str, folding: Folding, values: Sequence[str]
) -> TimelineHistory:
    """What is known about the key with these values. `name` is what was typed."""
    require_key(folding.name, folding.key, values, typed=name)
    lake, texts = workspace.lake, dict(zip(folding.key, values, strict=True))
    facts_uri, history_uri = lake.table(folding.facts), lake.table(folding.history)
    require_built(facts_uri, folding.facts)
    require_built(history_uri, folding.history)
    key = parse_values(history_uri, texts)
    facts = _find_live(workspace, folding.facts, parse_values(facts_uri, texts))
    published = [row for row in find_rows(history_uri, key) if row[ROLE] == Role.ROW]
    fields_by_date = {row[DATE]: {name: row[name] for name in folding.fields} for row in published}
    state, epochs = _read_last(workspace, folding, key)
    return TimelineHistory(
        timeline=folding.name,
        facts_of=folding.facts,
        date_column=folding.date,
        fields=folding.fields,
        dataset=folding.last,
        key=key,
        state=state,
        facts=tuple(_fold_order(folding, facts, fields_by_date)),
        unplaced=sum(fact[folding.date] is None for fact in facts),
        epochs=epochs,
    )


def _find_live(workspace: Readable, dataset: str, key: Mapping[str, object]) -> list[Row]:
    """The facts of the key: what a reader sees, without metadata, in declared order."""
    node = workspace.project.get(dataset)
    rows = find_rows(workspace.lake.table(dataset), key)
    live = [row for row in rows if node.traits.only_grows or not row.get(DELETED)]
    return [{c: row[c] for c in node.in_order(row) if c not in METADATA_COLUMNS} for row in live]


def _fold_order(
    folding: Folding, facts: Sequence[Row], fields_by_date: Mapping[Any, Row]
) -> Iterator[FoldedFact]:
    def rank(fact: Row) -> tuple[object, ...]:
        ordered = tuple(comparable(fact.get(column)) for column in folding.order_by)
        return (*ordered, tuple(str(fact[column]) for column in sorted(fact)))

    by_date: dict[date, list[Row]] = {day: [] for day in fields_by_date}
    for fact in facts:
        if fact[folding.date] is not None:
            by_date.setdefault(fact[folding.date], []).append(fact)
    for day, placed in sorted(by_date.items()):
        fields = fields_by_date.get(day)
        if not placed:
            yield FoldedFact(date=day, row=None, fields=fields)
        for fact in sorted(placed, key=rank):
            yield FoldedFact(date=day, row=fact, fields=fields)


def _read_last(
    workspace: Readable, folding: Folding, key: Mapping[str, object]
) -> tuple[KeyState | None, tuple[Epoch, ...]]:
    """The state of the key in the last output, and its epochs."""
    uri = workspace.lake.table(folding.last)
    table = open_table(uri)
    if table is None:
        return None, ()
    rows = find_rows(uri, key)
    head = next((row for row in rows if row[ROLE] == Role.HEAD), None)
    if head is None:
        return None, ()
    entries = list(read_entries(uri, -1))
    numbers: Any = head[EPOCH]
    epochs = (_read_epoch(table, entries, key, rows, number) for number in range(1, numbers + 1))
    defaults = read_defaults(workspace.lake, workspace.project.get(folding.last), table.version)
    return _state(head, defaults), tuple(epochs)


def _state(head: Row, defaults: Mapping[str, Any]) -> KeyState:
    told = head[HEAD]
    default = defaults.get(WATERMARK) if told["status"] == KeyStatus.CURRENT else None
    return KeyState(
        epoch=head[EPOCH],
        status=told["status"],
        watermark_on=told[WATERMARK] or default,
        reason=told["reason"],
        updated_at=told["updated_at"],
    )


def _read_epoch(
    table: Table, entries: Sequence[LogEntry], key: Mapping[str, object], rows: Sequence[Row], number: int
) -> Epoch:
    left = [r for r in rows if r[ROLE] == Role.EPOCH and r[HEAD]["superseded_by"] == number]
    now = [row for row in rows if row[ROLE] == Role.ROW and row[EPOCH] == number]
    if left:
        at, dates = left[0][HEAD]["superseded_at"], sorted(row[DATE] for row in left)
        entry = find_superseding(table, entries, key, at)
    else:  # it replaced nothing, and put rows where there were none
        entry, written = find_first_writer(table, entries, key, number)
        at = datetime.fromisoformat(entry.metadata.as_of) if entry and entry.metadata else None
        dates = sorted({row[DATE] for row in now} & set(written))
    metadata = entry.metadata if entry else None
    return Epoch(
        epoch=number,
        at=at,
        committed_at=entry.committed_at if entry else None,
        table_version=entry.version if entry else None,
        cause=metadata.cause if metadata else "",
        inputs=_find_moved(entries, entry) if entry and metadata else {},
        first_on=dates[0] if dates else None,
        last_on=dates[-1] if dates else None,
        rows=len(dates),
        rows_now=len(now),
    )


def _find_moved(entries: Sequence[LogEntry], entry: LogEntry) -> dict[str, tuple[int | None, int]]:
    """The inputs that moved since the last commit before this one that left nothing to a later batch."""
    assert entry.metadata is not None
    earlier = (e.metadata for e in reversed(entries) if e.version < entry.version)
    complete = (m for m in earlier if m and not m.operation.is_bare and not m.waiting)
    before = next(complete, None)
    versions = {name: cursor.version for name, cursor in before.inputs.items()} if before else {}
    return {
        name: (versions.get(name), cursor.version)
        for name, cursor in entry.metadata.inputs.items()
        if versions.get(name) != cursor.version
    }
