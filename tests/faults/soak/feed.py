"""The project under load, and everything that is sent to it.

Every line is remembered, so that the expected result can be computed.
"""

import json
import os
import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Message = dict[str, Any]

PROJECT = """\
project: soak
settings:
  keep: 1 hour
  spark: {master: "local[2]", conf: {spark.driver.memory: 1g}}
sources:
  item_lines: {files: "items/*.jsonl"}
  rate_lines: {files: "rates/*.jsonl"}
  block_lines: {files: "blocks/*.jsonl"}
datasets:
  item:
    from: item_lines
    columns: {id: id, kind: kind, price: {path: price, type: bigint}, at: {path: at, type: bigint}, op: op}
    require: [price, at]
    record_set: {key: [id], order_by: [at], deleted: "op = 'D'"}
    source_at: at
  rate:
    from: rate_lines
    columns: {kind: kind, percent: {path: percent, type: bigint}, at: {path: at, type: bigint}}
    record_set: {key: [kind], order_by: [at]}
  block:
    from: block_lines
    columns:
      {number: {path: number, type: bigint}, hash: hash, parent: parent, weight: {path: weight, type: bigint}}
    require: [number, weight]
    event_stream: {identity: [hash]}
chains:
  hot: {from: block, number: number, hash: hash, parent: parent, head: {most: weight}, anchor: 1}
jobs:
  - name: weigh
    input_datasets: [item, rate]
    output_dataset: worth
    incremental: {mode: keyed, key: [kind]}
    config: {factor: 1}
    sql: |
      select i.kind, count(*) as items, sum(i.price) * max(r.percent) * :factor as worth
      from item i join rate r on r.kind = i.kind group by i.kind
  - name: size_up
    input_datasets: [worth]
    output_dataset: sizes
    incremental: {mode: keyed, key: [items]}
    sql: select items, count(*) as kinds, sum(worth) as worth from worth group by items
  - name: shelve
    input_datasets: [item]
    output_dataset: shelves
    incremental: {mode: partition}
    partition: {column: price, size: 100}
    sql: select id, kind, price from item
  - name: tell
    input_datasets: [item]
    output_dataset: told
    incremental: {mode: cursor, cursor_column: price, unique_key: [kind, price]}
    update_strategy: append
    sql: select kind, price from item
  - name: alert
    input_datasets: [hot]
    output_dataset: alerts
    incremental: {mode: cursor, cursor_column: number, unique_key: [hash]}
    update_strategy: append
    sql: select hash, number from hot where number % 3 = 0
"""
FACTOR = "config: {factor: %d}"
"""The text that a change of configuration replaces."""
IDS = 400
KINDS = ("tea", "salt", "rope", "wool", "iron", "silk", None)
PRICES = 1000
MOST_WITHHELD = 3


@dataclass
class Branches:
    """Blocks of a chain that switches between two branches again and again."""

    chance: random.Random
    blocks: dict[str, Message] = field(default_factory=dict)
    tips: list[str] = field(default_factory=list)

    def grow(self) -> list[Message]:
        """Add some blocks to the best branch, or enough to the other that it becomes the best.

        Sometimes the other branch begins anew.
        """
        if not self.tips:
            self.tips = [self._add(None, 1)["hash"]] * 2
            return [self.blocks[self.tips[0]]]
        best, other = sorted(self.tips, key=lambda tip: self.blocks[tip]["weight"], reverse=True)
        if self.chance.random() < 0.2:
            other = self._below(best, self.chance.randrange(1, 9))
        new: list[Message] = []
        if self.chance.random() < 0.4:
            while self.blocks[other]["weight"] <= self.blocks[best]["weight"]:
                new.append(self._add(other, self.chance.randrange(1, 100)))
                other = new[-1]["hash"]
        else:
            for _ in range(self.chance.randrange(1, 4)):
                new.append(self._add(best, self.chance.randrange(1, 100)))
                best = new[-1]["hash"]
        self.tips = [best, other]
        return new

    def _add(self, parent: str | None, difficulty: int) -> Message:
        """Weights are unique, because they contain the number of the block."""
        before: Message = self.blocks[parent] if parent else {"number": 0, "weight": 0, "hash": ""}
        name = f"b{len(self.blocks)}"
        weight = (before["weight"] // 1_000_000 + difficulty) * 1_000_000 + len(self.blocks)
        self.blocks[name] = {
            "number": before["number"] + 1,
            "hash": name,
            "parent": before["hash"],
            "weight": weight,
        }
        return self.blocks[name]

    def _below(self, tip: str, depth: int) -> str:
        for _ in range(depth):
            tip = self.blocks[tip]["parent"] or tip
        return tip


class Feeder:
    """Writes files of new, late, corrected, deleted, moved, doubled and broken facts.

    A reader sees a whole file or nothing.
    """

    part = 0
    """The second number of the positions of what it sends."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._folder, self._chance = folder, chance
        self.sent: dict[str, list[str]] = {}
        """Lines to be received, by path as the project sees it.

        A file that only repeats another one is not included.
        """
        self.files = 0
        self._clock = 0
        self._repeated: set[str] = set()
        self._branches = Branches(chance)
        self._withheld: list[Message] = []
        for name in ("items", "rates", "blocks"):
            (folder / name).mkdir(parents=True)
        self._send("rates", [self._rate(kind) for kind in KINDS if kind])
        self._send("items", self._some_items())
        self._send("blocks", self._some_blocks())

    @property
    def lines(self) -> int:
        return sum(map(len, list(self.sent.values())))

    def feed(self) -> None:
        """Write one more file, or append to a file."""
        what = self._chance.random()
        items = [path for path in self.sent if path.startswith("items/")]
        if what < 0.25:
            self._send("blocks", self._some_blocks())
        elif what < 0.32:
            self._send("rates", [self._rate(self._chance.choice(KINDS[:-1]))])
        elif what < 0.37 and items:
            self._repeat(self._chance.choice(items))
        elif what < 0.47 and items and items[-1] not in self._repeated:
            self._grow(items[-1], self._some_items())
        else:
            self._send("items", self._some_items())

    def finish(self) -> None:
        """Send what was held back."""
        if self._withheld:
            self._send("blocks", [json.dumps(block) for block in self._withheld])
            self._withheld.clear()

    def _some_items(self) -> list[str]:
        lines = [json.dumps(self._item())]
        for _ in range(self._chance.randrange(10, 40)):
            what = self._chance.random()
            if what < 0.04:
                lines.append(self._broken())
            elif what < 0.09:
                lines.append(self._chance.choice(lines))
            else:
                lines.append(json.dumps(self._item()))
        return lines

    def _item(self) -> Message:
        """A message about an item: newer than all before, late, or of the same time as another.

        Its kind and price may change, or the item may be deleted.
        """
        self._clock += 1
        at = self._clock
        if (what := self._chance.random()) < 0.15:
            at -= self._chance.randrange(1, 500)
        elif what < 0.25:
            at = self._clock // 50 * 50
        item = {
            "id": f"i{self._chance.randrange(IDS)}",
            "kind": self._chance.choice(KINDS),
            "price": self._chance.randrange(PRICES),
            "at": at,
        }
        return {**item, "op": "D"} if self._chance.random() < 0.12 else item

    def _broken(self) -> str:
        item = self._item()
        match self._chance.randrange(4):
            case 0:
                return json.dumps(item)[:-5]
            case 1:
                return json.dumps({**item, "id": None})
            case 2:
                return json.dumps({**item, "price": "dear"})
            case _:
                return json.dumps({k: v for k, v in item.items() if k != "at"})

    def _rate(self, kind: str | None) -> str:
        self._clock += 1
        return json.dumps({"kind": kind, "percent": self._chance.randrange(1, 100), "at": self._clock})

    def _some_blocks(self) -> list[str]:
        """Shuffled. Some messages are sent twice, and some only with the next file, after their children."""
        blocks = [*self._withheld, *self._branches.grow()]
        self._chance.shuffle(blocks)
        keep = min(MOST_WITHHELD, len(blocks) - 1) if self._chance.random() < 0.3 else 0
        self._withheld, blocks = blocks[:keep], blocks[keep:]
        lines = [json.dumps(block) for block in blocks]
        return [*lines, self._chance.choice(lines)] if self._chance.random() < 0.2 else lines

    def _send(self, folder: str, lines: list[str]) -> None:
        path = f"{folder}/{self.files:06}.jsonl"
        self.files += 1
        self.sent[path] = lines
        self._write(path, lines)

    def _grow(self, path: str, lines: list[str]) -> None:
        self.sent[path] = [*self.sent[path], *lines]
        self._write(path, self.sent[path])

    def _repeat(self, path: str) -> None:
        """Repeat a file under a new name. The first must not grow any more, or the two would differ."""
        self._repeated.add(path)
        self._write(f"{path.partition('/')[0]}/{self.files:06}.jsonl", self.sent[path])
        self.files += 1

    def _write(self, path: str, lines: Iterable[str]) -> None:
        write_at_once(self._folder / path, "".join(f"{line}\n" for line in lines))


def write_at_once(path: Path, text: str) -> None:
    """Write atomically: a reader sees the old file or the new one."""
    aside = path.with_name(f".{path.name}")
    aside.write_text(text)
    os.replace(aside, path)
