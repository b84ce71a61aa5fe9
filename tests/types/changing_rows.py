"""Rows that change their values, vanish and appear, for tests of types, and the project that reads them."""

import random
from collections.abc import Iterable

Rows = dict[str, tuple[str, int, int]]
"""By id: group, pick and sequence number. A pick chooses one value of each type."""
FIRST, LATER = 60, 14
"""How many messages come in the first turn, and in each later one."""


def declare_typed(columns: Iterable[str]) -> str:
    """A project whose job `typed` makes columns of `pick`, one row for each id. Its jobs can be added to."""
    return f"""
project: types
timezone: America/St_Johns
sources:
  events: {{files: "data/*.jsonl"}}
datasets:
  item:
    from: events
    columns: {{id: id, g: g, op: op, pick: {{path: pick, type: int}}, seq: {{path: seq, type: int}}}}
    record_set: {{key: [id], order_by: [seq], deleted: "op = 'D'"}}
jobs:
  - name: typed
    input_datasets: [item]
    output_dataset: typed
    incremental: {{mode: keyed, key: [id]}}
    sql: |
      select id, g, seq,
        {", ".join(columns)}
      from item
"""


def change_rows(rows: Rows, chance: random.Random, turn: int) -> list[dict[str, object]]:
    """Change the rows, and give the messages that tell of it."""
    messages: list[dict[str, object]] = []
    for number in range(FIRST if turn == 0 else LATER):
        seq = 1 + number + (0 if turn == 0 else FIRST + (turn - 1) * LATER)
        id_ = f"r{chance.randrange(70)}"
        if id_ in rows and chance.random() < 0.25:
            del rows[id_]
            messages.append({"id": id_, "g": None, "pick": 0, "seq": seq, "op": "D"})
            continue
        rows[id_] = (chance.choice("pqr"), chance.randrange(1000), seq)
        messages.append({"id": id_, "g": rows[id_][0], "pick": rows[id_][1], "seq": seq, "op": "U"})
    return messages
