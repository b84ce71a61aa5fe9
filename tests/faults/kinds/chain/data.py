"""The blocks that are announced, and the chain over them."""

from typing import TYPE_CHECKING, Any

from tests.faults.kinds.kind import Stream, Switches

if TYPE_CHECKING:
    from tests.faults.world import World

BLOCKS = Stream(
    folder="blocks",
    source="headers",
    dataset="block",
    columns={"number": "bigint", "hash": "string", "parent": "string", "weight": "bigint"},
    required=("number", "hash", "weight"),
    declared="require: [number, hash, weight]",
)


def declare(switches: Switches) -> dict[str, str]:
    return {
        "chains": "main: {from: block, number: number, hash: hash, parent: parent, head: {most: weight}}",
    }


def block(hash_: str, parent: str, weight: int) -> dict[str, Any]:
    """A block whose hash is the name of its branch and its number."""
    return {"number": int(hash_[1:]), "hash": hash_, "parent": parent, "weight": weight}


def begin(world: "World") -> None:
    world.send(BLOCKS, block("a1", "a0", 1))


def ground(world: "World") -> None:
    world.send(BLOCKS, block("a2", "a1", 2), block("a3", "a2", 3))
