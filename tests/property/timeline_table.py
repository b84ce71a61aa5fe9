"""One version of a timeline's output, and how a commit makes the next one. Both nodes share it (ADR 14)."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tests.property.timeline_world import Date, Key, Values

CURRENT, REPROCESSING, FAILED = "CURRENT", "REPROCESSING", "FAILED"
BEGINNING, FOREVER = -(10**6), 10**6

Ranges = tuple[tuple[Date, Date], ...]
"""Dates, as ranges without their end. They are sorted and do not touch each other."""
EVERYTHING: Ranges = ((BEGINNING, FOREVER),)
Group = tuple[str, ...]
"""The keys that are published together: a value of `together`, or a single key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    values: Values
    epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """What a table remembers of a key. The first fields are in both outputs."""

    epoch: int = 0
    status: str = CURRENT
    reason: str = ""
    watermark: Date | None = None
    """Complete up to here; None for nowhere. Not looked at in a valuation's CURRENT heads: they are complete
    up to the last date that is due."""
    state: Values | None = None
    """Fold: the state after the last date with facts."""
    last_on: Date | None = None
    """Fold: that date."""
    fields: Values | None = None
    """Fold: the fields of the row of that date."""
    waits: frozenset[Date] = frozenset()
    """Valuation: the business dates on which a required reference has no row."""
    pending: Ranges = ()
    """Valuation: the dates that were reached and are not computed yet. Not empty means REPROCESSING."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Superseded:
    """A row as it was, and the epoch that replaced or removed it."""

    key: Key
    on: Date
    row: Row
    superseded_by: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One version of an output: rows, heads and superseded rows, which change in one commit."""

    rows: Mapping[Key, Mapping[Date, Row]] = field(default_factory=dict)
    heads: Mapping[Key, Head] = field(default_factory=dict)
    superseded: tuple[Superseded, ...] = ()

    def values_by_date(self, key: Key) -> dict[Date, Values]:
        return {on: row.values for on, row in self.rows.get(key, {}).items()}

    @property
    def is_complete(self) -> bool:
        """Whether no key is marked. Nodes downstream read such versions, or hold `together` in their key."""
        return all(head.status != REPROCESSING for head in self.heads.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyChange:
    """What a commit does to one key."""

    head: Head
    """As it will be. Its epoch is given by the commit."""
    watermark: Date | None
    """As it stood before. None for nowhere."""
    put: Mapping[Date, Values] = field(default_factory=dict)
    """New rows."""
    replaced: frozenset[Date] = frozenset()
    """The published rows that leave: those whose place a new row takes, and those that are removed."""


class DoubledRowError(Exception):
    """A row is put beside the published row of its date, instead of in its place."""


def is_restatement(change: KeyChange) -> bool:
    """Whether a commit raises the epoch of a key by one."""
    if change.replaced:
        return True
    return change.watermark is not None and any(on <= change.watermark for on in change.put)


def set_aside(key: Key, change: KeyChange, published: Mapping[Date, Row], epoch: int) -> list[Superseded]:
    """The rows that leave, as they were."""
    return [
        Superseded(key=key, on=on, row=published[on], superseded_by=epoch) for on in sorted(change.replaced)
    ]


def commit(before: Table, changes: Mapping[Key, KeyChange]) -> Table | None:
    """The next version of a table. None if nothing differs."""
    rows, heads, superseded = dict(before.rows), dict(before.heads), list(before.superseded)
    for key, change in sorted(changes.items()):
        epoch = before.heads.get(key, Head()).epoch + is_restatement(change)
        published = dict(before.rows.get(key, {}))
        superseded += set_aside(key, change, published, epoch)
        for on in change.replaced:
            del published[on]
        for on, values in change.put.items():
            if on in published:
                raise DoubledRowError(f"{key} has two rows on {on}")
            published[on] = Row(values=values, epoch=epoch)
        rows[key], heads[key] = published, replace(change.head, epoch=epoch)
    after = Table(
        rows={key: rows[key] for key in rows if rows[key]}, heads=heads, superseded=tuple(superseded)
    )
    return None if after == before else after


def compare(
    published: Mapping[Date, Values], computed: Mapping[Date, Values]
) -> tuple[dict[Date, Values], frozenset[Date]]:
    """The rows to put, and the published rows that leave. Rows that come out the same are in neither."""
    put = {on: values for on, values in computed.items() if published.get(on) != values}
    return put, frozenset(on for on in published if on in put or on not in computed)
