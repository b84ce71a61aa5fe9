"""What may happen to a chain."""

import json
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from tests.faults.evidence import sent
from tests.faults.kinds.kind import Happening, Step
from tests.faults.table_log import Row

from .data import BLOCKS, block

if TYPE_CHECKING:
    from tests.faults.world import World

STORY = (
    Step(
        name="blocks",
        before=lambda w: w.send(
            BLOCKS,
            block("a2", "a1", 2),
            block("a3", "a2", 3),
            block("a4", "a3", 4),
            block("a6", "a5", 7),
            "broken",
        ),
    ),
    Step(
        name="a reorg to branch b",
        before=lambda w: w.send(BLOCKS, block("b2", "a1", 2), block("b3", "b2", 3), block("b4", "b3", 5)),
    ),
    Step(
        name="a reorg back to branch a",
        before=lambda w: w.send(BLOCKS, block("a5", "a4", 6), block("b3", "a2", 9)),
    ),
)


def a_branch_overtakes(world: "World", branch: str, length: int, backwards: bool) -> None:
    """The heaviest head is of this branch now: the next blocks of the chain, or a reorg, or one back."""
    made, below = [], _find_tip(world, branch)
    for _ in range(length):
        number, weight = below["number"] + 1, world.later()
        hash_ = f"{branch}{number}.{weight}"
        below = {"number": number, "hash": hash_, "parent": below["hash"], "weight": weight}
        made.append(below)
    world.send(BLOCKS, *(reversed(made) if backwards else made))


def _find_tip(world: "World", branch: str) -> Row:
    """The last block by which a branch overtook (its hash has a dot), or the block that it starts from."""
    hashed = [text for text in sent(world.folder / BLOCKS.folder).values() if f'"hash": "{branch}' in text]
    made = [row for row in map(json.loads, hashed) if "." in row["hash"]]
    start = block("a3", "a2", 3) if branch == "a" else block("a1", "a0", 1)
    return max(made, key=lambda row: int(row["weight"]), default=start)


def a_block_arrives(world: "World", hash_: str, below: str, weight: int) -> None:
    """Below all others, again, on a side branch, or waiting for one that never comes."""
    world.send(BLOCKS, block(hash_, f"{below}{int(hash_[1:]) - 1}", weight), "broken")


HAPPENINGS = (
    Happening(
        do=a_branch_overtakes,
        drawn={"branch": st.sampled_from("ab"), "length": st.integers(1, 3), "backwards": st.booleans()},
    ),
    Happening(
        do=a_block_arrives,
        drawn={
            "hash_": st.sampled_from(["a0", "a1", "a2", "b2", "b3", "a4"]),
            "below": st.sampled_from("abx"),
            "weight": st.integers(1, 12),
        },
    ),
)


def a_block_is_news(world: "World") -> None:
    a_branch_overtakes(world, "b", 1, False)


NEWS = (a_block_is_news,)
