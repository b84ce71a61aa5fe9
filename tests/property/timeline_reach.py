"""Which dates of which keys a change reaches, and how references are resolved (ADR 14, "The valuation")."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from tests.property.timeline_table import EVERYTHING, FOREVER, Ranges, Table
from tests.property.timeline_world import (
    Date,
    Declaration,
    Fact,
    Key,
    OnValues,
    Reference,
    ReferenceRows,
    Values,
    reference_columns,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldVersion:
    table: Table
    facts: Mapping[str, Fact]
    """What the node had read when it committed this version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The versions that a valuation has read, or is about to read."""

    history: FoldVersion
    calendar: frozenset[Date]
    references: Mapping[str, ReferenceRows]


def unite(*parts: Iterable[tuple[Date, Date]]) -> Ranges:
    united: list[tuple[Date, Date]] = []
    for start, end in sorted(piece for part in parts for piece in part):
        if united and start <= united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        elif start < end:
            united.append((start, end))
    return tuple(united)


def within(on: Date, ranges: Ranges) -> bool:
    return any(start <= on < end for start, end in ranges)


def changed_steps(old: Mapping[Date, Values], new: Mapping[Date, Values]) -> Ranges:
    """Where a step function differs: from each changed date to the next date whose row stays the same."""
    stays = sorted(on for on in new if old.get(on) == new[on])
    return unite(
        (on, next((end for end in stays if end > on), FOREVER))
        for on in old.keys() | new.keys()
        if old.get(on) != new.get(on)
    )


class Lookups:
    """References resolved top down, at one version of everything. A dated one is a step function."""

    def __init__(self, declaration: Declaration, seen: Seen) -> None:
        self.declaration = declaration
        self.history = seen.history.table
        self.live = {
            name: {on: row for (on, _), row in rows.items()} for name, rows in seen.references.items()
        }
        self.steps = {name: steps_of(rows) for name, rows in seen.references.items()}
        self.dates_by_key = {key: sorted(rows) for key, rows in self.history.rows.items()}

    def first_date(self, key: Key) -> Date:
        return self.dates_by_key.get(key, [FOREVER])[0]

    def fields_on(self, key: Key, on: Date) -> Values | None:
        """The fields that hold on a date. From the head, if no later row exists: that reads no history."""
        head = self.history.heads[key]
        if head.last_on is not None and head.last_on <= on:
            return head.fields
        dates = self.dates_by_key.get(key, [])
        place = bisect_right(dates, on)
        return self.history.rows[key][dates[place - 1]].values if place else None

    def resolve(self, key: Key, on: Date, before: str = "") -> tuple[dict[str, object], bool] | None:
        """The names in expressions on a cell, and whether a required reference has no row.

        With `before`, only the references above that one. None before the first date of the key.
        """
        fields = self.fields_on(key, on)
        if fields is None:
            return None
        names: dict[str, object] = {"portfolio": key[0], "security": key[1], "date": on, **fields}
        misses = False
        for reference in self.declaration.references:
            if reference.name == before:
                break
            row = self._find(reference, tuple(names[name] for name in reference.on), on)
            misses |= reference.required and row is None
            for column in reference_columns(reference):
                names[f"{reference.name}.{column}"] = None if row is None else row[column]
        return names, misses

    def _find(self, reference: Reference, on_values: OnValues, on: Date) -> Values | None:
        if None in on_values:
            return None
        if not reference.dated:
            return self.live[reference.name].get(on_values)
        dates, rows = self.steps[reference.name].get(on_values, ([], {}))
        place = bisect_right(dates, on)
        return rows[dates[place - 1]] if place else None

    def looked_up(self, reference: Reference, key: Key, on: Date) -> OnValues | None:
        """By which values a cell looks a reference up."""
        resolved = self.resolve(key, on, before=reference.name)
        return None if resolved is None else tuple(resolved[0][name] for name in reference.on)


def steps_of(rows: ReferenceRows) -> dict[OnValues, tuple[list[Date], dict[Date, Values]]]:
    """The rows of a dated reference, by `on` and then by date, with the dates sorted."""
    found: dict[OnValues, dict[Date, Values]] = defaultdict(dict)
    for (on_values, on), row in rows.items():
        if on is not None:
            found[on_values][on] = row
    return {on_values: (sorted(steps), steps) for on_values, steps in found.items()}


def reach_of_history(old: Table, new: Table) -> dict[Key, Ranges]:
    reached = {
        key: changed_steps(old.values_by_date(key), new.values_by_date(key))
        for key in old.rows.keys() | new.rows.keys()
    }
    return {key: ranges for key, ranges in reached.items() if ranges}


def reach_of_reference(
    reference: Reference, old: ReferenceRows, new: ReferenceRows, lookups: Lookups, dates: Collection[Date]
) -> dict[Key, Ranges]:
    """The cells that look up what changed. The lookups are those of the new versions.

    A cell that looked it up before and no longer does has other values above, which reach it already.
    """
    if reference.dated:
        before, after = steps_of(old), steps_of(new)
        none: tuple[list[Date], dict[Date, Values]] = ([], {})
        changed = {
            on_values: changed_steps(before.get(on_values, none)[1], after.get(on_values, none)[1])
            for on_values in before.keys() | after.keys()
        }
    else:
        places = old.keys() | new.keys()
        changed = {place[0]: EVERYTHING for place in places if old.get(place) != new.get(place)}
    changed = {on_values: ranges for on_values, ranges in changed.items() if ranges}
    if not changed:
        return {}
    if is_fixed_by_key(lookups.declaration, reference):
        by_key = {
            key: lookups.looked_up(reference, key, lookups.first_date(key)) for key in lookups.history.rows
        }
        return {key: changed[on_values] for key, on_values in by_key.items() if on_values in changed}
    return {
        key: unite(
            (on, on + 1)
            for on in dates
            if (on_values := lookups.looked_up(reference, key, on)) in changed
            and within(on, changed[on_values])
        )
        for key in lookups.history.rows
    }


def is_fixed_by_key(declaration: Declaration, reference: Reference) -> bool:
    """Whether a key looks a reference up by the same values on all dates."""
    above = {other.name: other for other in declaration.references}
    for name in reference.on:
        prefix, dot, _ = name.partition(".")
        if not dot:
            if name not in ("portfolio", "security"):
                return False
        elif above[prefix].dated or not is_fixed_by_key(declaration, above[prefix]):
            return False
    return True
