"""What readers of a timeline must see, by the plainest loops. Nothing here is taken from the model.

The first half computes from complete inputs. The second half keeps account of epochs and superseded rows by
comparing one published state with the next.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.property.timeline_world import (
    Date,
    Declaration,
    Fact,
    Inputs,
    Key,
    OnValues,
    Reference,
    ReferenceRows,
    Values,
    reference_columns,
)

Published = Mapping[Key, Mapping[Date, Values]]
"""Rows without their epochs."""


@dataclass(slots=True)
class BruteHistory:
    rows: dict[Key, dict[Date, Values]] = field(default_factory=dict)
    """A key without a fact that has a date is not there. Nor is one whose fold raises."""
    states: dict[Key, Values] = field(default_factory=dict)
    failed: set[Key] = field(default_factory=set)


def fold_all(declaration: Declaration, facts: Mapping[str, Fact]) -> BruteHistory:
    history = BruteHistory()
    for key in {fact.key for fact in facts.values() if fact.on is not None}:
        rows: dict[Date, Values] = {}
        state = None
        try:
            for on in sorted({fact.on for fact in facts.values() if fact.key == key and fact.on is not None}):
                names = [name for name, fact in facts.items() if fact.key == key and fact.on == on]
                names.sort(key=lambda name: (facts[name].rank, name))
                state = declaration.fold(state, [facts[name] for name in names])
                rows[on] = {name: state[name] for name in declaration.fields}
        except ValueError:
            history.failed.add(key)
        else:
            assert state is not None
            history.rows[key], history.states[key] = rows, state
    return history


@dataclass(slots=True)
class BruteValuation:
    rows: dict[Key, dict[Date, Values]] = field(default_factory=dict)
    missing: dict[Key, set[Date]] = field(default_factory=dict)
    """The business dates on which a required reference has no row."""
    looked_up: dict[tuple[Key, Date, str], OnValues] = field(default_factory=dict)
    """By cell and reference: the values it is looked up by."""


def value_all(declaration: Declaration, history: Published, inputs: Inputs, clock: Date) -> BruteValuation:
    valuation = BruteValuation()
    for key, steps in history.items():
        for on in sorted(inputs.calendar):
            if on > clock or on < min(steps):
                continue
            names: dict[str, object] = {"portfolio": key[0], "security": key[1], "date": on}
            names.update(steps[max(step for step in steps if step <= on)])
            misses = False
            for reference in declaration.references:
                values = tuple(names[name] for name in reference.on)
                valuation.looked_up[key, on, reference.name] = values
                row = _latest(reference, inputs.references[reference.name], values, on)
                for column in reference_columns(reference):
                    names[f"{reference.name}.{column}"] = row[column] if row is not None else None
                if row is None and reference.required:
                    misses = True
            if misses:
                valuation.missing.setdefault(key, set()).add(on)
            elif declaration.where(names):
                row = {name: names[name] for name in declaration.fields} | dict(declaration.columns(names))
                valuation.rows.setdefault(key, {})[on] = row
    return valuation


def _latest(reference: Reference, rows: ReferenceRows, values: OnValues, on: Date) -> Values | None:
    found, found_on = None, None
    for (row_values, row_on), row in rows.items():
        if any(value is None for value in values) or row_values != values:
            continue
        if row_on is None:
            return row
        if row_on <= on and (found_on is None or row_on > found_on):
            found, found_on = row, row_on
    return found


def last_business_date(inputs: Inputs, clock: Date) -> Date | None:
    due = [on for on in inputs.calendar if on <= clock]
    return max(due) if due else None


def reached_cells(
    declaration: Declaration,
    before: tuple[Published, Inputs, BruteValuation],
    after: tuple[Published, Inputs, BruteValuation],
    clock: Date,
) -> set[tuple[Key, Date]]:
    """The table of LANGUAGE, cell by cell: business dates of a key, due, that the changes touch."""
    (old_history, old, old_valuation), (history, new, valuation) = before, after
    cells = set()
    for key, steps in history.items():
        for on in new.calendar:
            if on > clock or on < min(steps):
                continue
            reached = on not in old.calendar or _in_window(old_history.get(key, {}), steps, on)
            for reference in declaration.references:
                name = reference.name
                lookups = {known.looked_up.get((key, on, name)) for known in (old_valuation, valuation)}
                for values in lookups - {None}:
                    rows_before = _rows_of(old.references.get(name, {}), values)
                    rows_after = _rows_of(new.references[name], values)
                    if reference.dated:
                        reached |= _in_window(rows_before, rows_after, on)
                    else:
                        reached |= rows_before != rows_after
            if reached:
                cells.add((key, on))
    return cells


def _rows_of(rows: ReferenceRows, values: OnValues | None) -> dict[Date, Values]:
    return {-1 if on is None else on: row for (row_values, on), row in rows.items() if row_values == values}


def _in_window(before: Mapping[Date, Values], after: Mapping[Date, Values], on: Date) -> bool:
    """Whether a date lies on or after a changed row, and before the next row that stays the same."""
    dates = [date for date in (*before, *after) if date <= on]
    return bool(dates) and before.get(max(dates)) != after.get(max(dates))


@dataclass(slots=True)
class Account:
    """Epochs and superseded rows of one output, from comparing what is published before and after commits."""

    rows: dict[Key, dict[Date, Values]] = field(default_factory=dict)
    row_epochs: dict[tuple[Key, Date], int] = field(default_factory=dict)
    epochs: dict[Key, int] = field(default_factory=dict)
    watermarks: dict[Key, Date | None] = field(default_factory=dict)
    superseded: list[tuple[Key, Date, Values, int, int]] = field(default_factory=list)
    """Key, date, values, epoch, superseded by."""

    def enter(self, published: Published, watermarks: Mapping[Key, Date | None]) -> None:
        """The next commit: what readers see after it, and how far the keys are complete after it."""
        for key in self.rows.keys() | published.keys() | watermarks.keys():
            old, new = self.rows.get(key, {}), published.get(key, {})
            told = self.watermarks.get(key)
            gone = [on for on in old if on not in new or new[on] != old[on]]
            came = [on for on in new if on not in old or new[on] != old[on]]
            epoch = self.epochs.get(key, 0)
            if gone or any(told is not None and on <= told for on in came):
                epoch += 1
            for on in gone:
                self.superseded.append((key, on, old[on], self.row_epochs.pop((key, on)), epoch))
            for on in came:
                self.row_epochs[key, on] = epoch
            self.epochs[key] = epoch
        self.rows = {key: dict(rows) for key, rows in published.items() if rows}
        self.watermarks = dict(watermarks)
