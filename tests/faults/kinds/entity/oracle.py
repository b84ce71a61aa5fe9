"""What entities must contain, by brute force over all rows."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from strandline.model.columns import STATE
from tests.faults.evidence import Evidence, require
from tests.faults.kinds.facts import facts_sent
from tests.faults.kinds.snapshot.oracle import latest
from tests.faults.plain_work import live
from tests.faults.table_log import Row

from .data import DEVICES, HOUSE, READINGS, ROOM
from .definitions import check_held, check_rest, read_definitions

Values = dict[str, int | None]
Numbers = list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """A variable over the rows of a dataset."""

    dataset: str
    column: str
    of: Callable[[Numbers], int | None]
    """Of the values that are not NULL."""
    dated: str = ""
    days: int = 0
    """The window: so many days of that column before `as_of`."""
    default: int | None = None

    def compute(self, rows: Iterable[Row], today: date) -> int | None:
        found = [row[self.column] for row in rows if self._counts(row, today)]
        value = self.of([number for number in found if number is not None])
        return self.default if value is None else value

    def _counts(self, row: Row, today: date) -> bool:
        if not self.dated:
            return True
        on = row[self.dated]
        return on is not None and today - timedelta(days=self.days) <= on < today


def add(numbers: Numbers) -> int | None:
    return sum(numbers) if numbers else None


def greatest(numbers: Numbers) -> int | None:
    return max(numbers, default=None)


def of_room(least: int) -> Mapping[str, Aggregate]:
    device, reading = DEVICES.dataset, READINGS.dataset
    placed = Aggregate(dataset=device, column="power", of=add, dated="placed_on")
    return {
        "devices": Aggregate(dataset=device, column="power", of=len),
        "power": Aggregate(dataset=device, column="power", of=add),
        "strong": Aggregate(dataset=device, column="power", of=lambda n: sum(m >= least for m in n)),
        "kinds": Aggregate(dataset=device, column="power", of=lambda n: len(set(n))),
        "best": Aggregate(dataset=device, column="power", of=greatest, default=7),
        "placed_2d": replace(placed, days=2),
        "placed_5d": replace(placed, days=5),
        "recent": Aggregate(dataset=reading, column="amount", of=len, dated="read_on", days=3),
        "used": Aggregate(dataset=reading, column="amount", of=add, default=7),
        "loud": Aggregate(dataset=reading, column="amount", of=lambda n: sum(m >= 2 for m in n)),
        "most": Aggregate(dataset=reading, column="amount", of=greatest, dated="read_on", days=3),
    }


OF_HOUSE: Mapping[str, Aggregate] = {
    "rooms": Aggregate(dataset=ROOM, column="devices", of=len),
    "things": Aggregate(dataset=ROOM, column="devices", of=add),
    "fullest": Aggregate(dataset=ROOM, column="devices", of=greatest),
}


def check(evidence: Evidence) -> None:
    """L2, L4: every variable, by what the last commit read; at rest, by all that was sent.

    At rest the variables are also those of today, whether or not a task was planned when the day began.
    """
    if inputs := evidence.inputs(ROOM):
        facts, readings = inputs[f"{DEVICES.dataset}_facts"], inputs[f"{READINGS.dataset}_facts"]
        today = datetime.fromisoformat(evidence.as_of(ROOM)).date()
        _check_rooms(evidence, live(inputs[DEVICES.dataset]), facts, readings, today)
        check_held(evidence)
    if inputs := evidence.inputs(HOUSE):
        _check_houses(evidence, live(inputs[ROOM]))
    if evidence.at_rest and evidence.last_computed(ROOM):
        today = max(datetime.fromisoformat(evidence.as_of(ROOM)), evidence.world.fate.clock).date()
        sent = [row for _, row in facts_sent(evidence, DEVICES)]
        devices = latest(facts_sent(evidence, DEVICES), *DEVICES.key).values()
        readings = [row for _, row in facts_sent(evidence, READINGS)]
        _check_rooms(evidence, devices, sent, readings, today)
        _check_houses(evidence, evidence.live(ROOM))
        check_rest(evidence, read_definitions(evidence))


def _check_rooms(
    evidence: Evidence, devices: Iterable[Row], facts: Iterable[Row], readings: Iterable[Row], today: date
) -> None:
    """A room exists once any fact has named it, also one that lost or deleted its device."""
    namers: dict[int, set[str]] = {}
    for dataset, named in ((DEVICES.dataset, facts), (READINGS.dataset, readings)):
        for row in named:
            if row["room"] is not None:
                namers.setdefault(row["room"], set()).add(f"{dataset}_facts(room)")
    rows = {DEVICES.dataset: list(devices), READINGS.dataset: list(readings)}
    definitions = read_definitions(evidence)
    of_active = of_room(definitions.least_of("active"))["strong"]
    variables = {**of_room(definitions.least_of("strong")), "of_active": of_active}
    expected = _compute(variables, namers, rows, "room", today)
    for values in expected.values():
        values["active"] = _add_up(values.pop("of_active"), values["recent"])
        values["noise"] = _add_up(values["loud"], values["devices"])
    _compare(evidence, ROOM, expected, namers, definitions.by_column.keys(), definitions.held)


def _check_houses(evidence: Evidence, rooms: list[Row]) -> None:
    """A house exists while a room names it."""
    namers = {row["best"]: {f"{ROOM}(best)"} for row in rows_with(rooms, "best")}
    _compare(evidence, HOUSE, _compute(OF_HOUSE, namers, {ROOM: rooms}, "best", date.min), namers, OF_HOUSE)


def rows_with(rows: Iterable[Row], column: str) -> list[Row]:
    return [row for row in rows if row[column] is not None]


def _compute(
    variables: Mapping[str, Aggregate],
    ids: Iterable[int],
    rows: Mapping[str, list[Row]],
    owner: str,
    today: date,
) -> dict[int, Values]:
    return {
        id_: {
            name: variable.compute((r for r in rows[variable.dataset] if r[owner] == id_), today)
            for name, variable in variables.items()
        }
        for id_ in ids
    }


def _add_up(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


def _compare(
    evidence: Evidence,
    entity: str,
    expected: dict[int, Values],
    namers: Mapping[int, set[str]],
    columns: Collection[str],
    held: Collection[str] = (),
) -> None:
    rows = evidence.live(entity)
    seen: dict[Any, Values] = {
        row[entity]: {name: value for name, value in row.items() if name != entity and name[0] != "_"}
        for row in rows
    }
    require(len(rows) == len(seen), f"L2 each {entity} once", rows)
    strangers = {name for values in seen.values() for name in values} ^ set(columns)
    require(not (seen and strangers), f"L2 the columns of a {entity}", strangers)
    checked = set(columns) - set(held)
    found, right = (
        {id_: {name: values[name] for name in checked} for id_, values in of.items()}
        for of in (seen, expected)
    )
    require(found == right, f"L2 {entity}", found, right)
    named = {row[entity]: json.loads(row[STATE])["named"] for row in rows}
    require(named == {id_: sorted(of) for id_, of in namers.items()}, f"L2 who names a {entity}", named)
