"""What is sent about prices, rents and business dates. One record set has them all: each table costs time."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tests.faults.kinds.kind import Stream, Switches
from tests.faults.kinds.timeline.data import day
from tests.faults.kinds.timeline.layout import number
from tests.faults.table_log import Row
from tests.property.timeline_world import Date, Inputs, OnValues, Values

if TYPE_CHECKING:
    from tests.faults.world import World

BATCH_ROWS = 2
"""So few that a herd has a batch for each portfolio."""

MARKS = Stream(
    folder="marks",
    source="quotes",
    dataset="mark",
    columns={
        "what": "string",
        "marked_on": "date",
        "value": "bigint",
        "business_on": "date",
        "at": "bigint",
        "op": "string",
    },
    required=("what", "marked_on"),
    declared="""record_set: {key: [what, marked_on], order_by: [at], deleted: "op = 'D'"}""",
    key=("what", "marked_on"),
)


def declare(switches: Switches) -> dict[str, str]:
    return {"settings": f"batch_rows: {BATCH_ROWS}"}


def mark(what: str, on: int, value: int | None, at: int, **more: Any) -> dict[str, Any]:
    """A price of a security or the rent of a book, from a date on."""
    return {"what": what, "marked_on": day(on), "value": value, "at": at, **more}


def business_date(on: int, at: int, **more: Any) -> dict[str, Any]:
    return {"what": "day", "marked_on": day(on), "business_on": day(on), "at": at, **more}


def begin(world: "World") -> None:
    world.send(
        MARKS,
        *(business_date(on, 1) for on in (0, 1, 2, 3, 6, 7, 8)),
        mark("a", 0, 10, 1),
        mark("a", 2, 11, 1),
        mark("b", 1, 20, 1),
        mark("x", 0, 1, 1),
        mark("y", 0, 2, 1),
    )


def ground(world: "World") -> None:
    """A restated price, and one more business date."""
    world.send(MARKS, mark("a", 1, 12, 2), business_date(4, 2))


def make_inputs(marks: Iterable[Row], trades: Iterable[Row]) -> Inputs:
    """What a valuation reads besides the history, as the model of timelines takes it."""
    dated: dict[tuple[OnValues, Date | None], Values] = {}
    business: set[Date] = set()
    for row in marks:
        on = number(row["marked_on"])
        dated[(row["what"],), on] = {"value": row["value"], "on": on}
        if row["business_on"] is not None:
            business.add(number(row["business_on"]))
    issues: dict[tuple[OnValues, Date | None], Values] = {
        ((row["trade"],), None): {"amount": row["amount"]} for row in trades
    }
    references = {"price": dated, "rent": dated, "issue": issues}
    return Inputs(facts={}, calendar=frozenset(business), references=references)
