"""What is sent about rooms: devices that are placed, moved and taken away, and readings that stream in.

A room is an entity, and so is a house: a room belongs to the house that the most powerful device in it says.
So the rooms of a house move with the devices of others.
"""

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from tests.faults.kinds.kind import Stream, Switches

if TYPE_CHECKING:
    from tests.faults.world import World

ROOM, HOUSE = "room", "house"
DAY = 86_400
_TODAY = date(2024, 1, 1)
"""The date of the first run."""

DEVICES = Stream(
    folder="devices",
    source="registry",
    dataset="device",
    columns={
        "id": "string",
        "room": "bigint",
        "power": "bigint",
        "placed_on": "date",
        "colour": "string",
        "at": "bigint",
        "op": "string",
    },
    required=("id", "at"),
    declared="""require: [at]
record_set: {key: [id], order_by: [at], deleted: "op = 'D'"}""",
    key=("id",),
)
READINGS = Stream(
    folder="readings",
    source="meter",
    dataset="reading",
    columns={"room": "bigint", "amount": "bigint", "read_on": "date"},
    required=(),
    declared="",
)

_ENTITIES = """
room:
  id: {room: bigint}
  every: day
  variables:
    devices: {from: device, select: count(power), where: "power >= 0"}
    power: {from: device, select: sum(power)}
    kinds: {from: device, select: count(distinct power)}
    best: {from: device, select: max(power), default: 7}
    placed: {from: device, select: sum(power), window: {column: placed_on, last: [2 days, 5 days]}}
    strong: {from: device, select: count(power), where: "power >= LEAST"}
    recent: {from: reading, select: count(amount), window: {column: read_on, last: 3 days}}
    used: {from: reading, select: sum(amount), default: 7}
    most: {from: reading, select: max(amount), window: {column: read_on, last: 3 days}}
    active: {expr: "strong + recent"}
LOUD
house:
  id: {house: bigint}
  by: {room: best}
  variables:
    rooms: {from: room, select: count(devices)}
    things: {from: room, select: sum(devices)}
    fullest: {from: room, select: max(devices)}
"""


_LOUD = """\
    loud: {from: reading, select: count(amount), where: "amount >= 2"}
    noise: {expr: "loud + devices"}
"""


def declare(switches: Switches) -> dict[str, str]:
    """`strong` may change, and `active` with it. `loud` and `noise` may come and go."""
    text = _ENTITIES.replace("LEAST", str(switches["least"]))
    return {"entities": text.replace("LOUD\n", _LOUD if switches["loud"] else "")}


def day(number: int | None) -> str | None:
    """Dates around the first run, which is on day 0."""
    return None if number is None else (_TODAY + timedelta(days=number)).isoformat()


def device(
    id_: str | None, room: int | None, power: int | None, placed: int | None, at: int, **more: Any
) -> dict[str, Any]:
    return {"id": id_, "room": room, "power": power, "placed_on": day(placed), "at": at, **more}


def reading(room: int | None, amount: int | None, on: int | None) -> dict[str, Any]:
    return {"room": room, "amount": amount, "read_on": day(on)}


def begin(world: "World") -> None:
    """A device without a room, one that is placed later, and readings of a room that has no device."""
    world.send(
        DEVICES,
        device("a", 1, 3, -1, 1),
        device("b", 1, 0, -4, 1),
        device("c", 2, 2, 1, 1),
        device("d", None, 5, 0, 1),
        "broken",
    )
    world.send(READINGS, reading(1, 2, -1), reading(3, 0, -2), reading(None, 9, -1), reading(2, 4, 1))


def ground(world: "World") -> None:
    """A device moves, one goes, and one has no date. A reading comes late."""
    world.send(
        DEVICES,
        device("a", 2, 3, -1, 2),
        device("b", 1, 0, -4, 2, op="D"),
        device("e", 3, 1, None, 2),
    )
    world.send(READINGS, reading(1, 1, -3), reading(4, None, 0))
