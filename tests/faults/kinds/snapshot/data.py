"""What is sent about records: items, and the rates that one job reads whole."""

from typing import TYPE_CHECKING, Any

from tests.faults.kinds.kind import Stream

if TYPE_CHECKING:
    from tests.faults.world import World

ITEMS = Stream(
    folder="data",
    source="events",
    dataset="item",
    columns={
        "id": "string",
        "name": "string",
        "colour": "string",
        "price": "bigint",
        "at": "bigint",
        "op": "string",
    },
    required=("id", "at"),
    declared="""require: [at]
record_set: {key: [id], order_by: [at], deleted: "op = 'D'"}""",
    key=("id",),
)
RATES = Stream(
    folder="rates",
    source="rates",
    dataset="rate",
    columns={"name": "string", "percent": "bigint", "at": "bigint"},
    required=("name",),
    declared="record_set: {key: [name], order_by: [at]}",
    key=("name",),
)


def item(
    id_: str | None,
    at: int,
    name: str | None = "x",
    colour: str | None = "red",
    price: object = 1,
    **more: Any,
) -> dict[str, Any]:
    return {"id": id_, "at": at, "name": name, "colour": colour, "price": price, **more}


def rates(percent: int, *, at: int) -> tuple[dict[str, Any], ...]:
    """The rate that counts, and one that does not."""
    return (
        {"name": "*", "percent": percent, "at": at},
        {"name": "other", "percent": 100 * percent, "at": at},
    )


def begin(world: "World") -> None:
    world.send(RATES, *rates(2, at=1))


def send_first_items(world: "World") -> None:
    world.send(ITEMS, item("a", 4), item("b", 4, "y"), item("c", 4, None, None, None), "broken")
