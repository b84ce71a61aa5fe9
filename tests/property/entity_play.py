"""Random histories of entities: what happens, and what must be published after each run."""

import random
from collections import Counter
from dataclasses import replace

from tests.property import entity_model
from tests.property.entity_model import Node
from tests.property.entity_world import (
    COMPUTED,
    DATASETS,
    RECORDS,
    STREAM,
    Row,
    Values,
    Variable,
    World,
    compute_all,
)

HAPPENINGS = (
    *("fact", "move", "delete", "resurrect", "redate", "late", "event", "computed", "uncomputed"),
    *("forward", "back", "add", "change", "remove", "backfill", "quiet"),
)


class WrongError(AssertionError):
    """What is published differs from brute force."""


class Play:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.world, self.node, self.as_of = World(), Node(), 20
        self.counts: Counter[str] = Counter()
        self.number = 0
        self.declared = {v.name: v for v in (self.variable() for _ in range(self.chance.randint(1, 4)))}
        self.kept: dict[str, dict[int, int | None]] = {}
        """By held variable: what was published when it was changed."""

    def variable(self) -> Variable:
        self.number += 1
        return Variable(
            name=f"v{self.number}",
            dataset=self.chance.choice(DATASETS),
            aggregate=self.chance.choice(("count", "sum", "avg", "max", "distinct")),
            least=self.chance.choice((0, 0, 2)),
            window=self.chance.choice((None, 3, 8)),
            default=self.chance.choice((None, None, 7)),
        )

    def play(self) -> None:
        for _ in range(self.chance.randint(2, 6)):
            for _ in range(self.chance.randint(0, 4)):
                self.happen(self.chance.choice(HAPPENINGS))
            self.run(backfill=False)

    def run(self, *, backfill: bool) -> None:
        ways = self.chance.choice(("accumulate", "recompute", "either"))
        entity_model.run(
            self.node,
            self.world,
            list(self.declared.values()),
            self.as_of,
            backfill=backfill,
            accumulates=lambda _: ways == "accumulate" or (ways == "either" and self.chance.random() < 0.5),
        )
        if backfill:
            self.kept.clear()
        self.counts["runs"] += 1
        expected = compute_all(self.world, list(self.declared.values()), self.as_of)
        for name, kept in self.kept.items():
            # Whoever vanished and came back is new: nothing is published of it.
            self.kept[name] = {owner: kept.get(owner) for owner in expected}
        for owner, values in expected.items():
            values |= {name: kept[owner] for name, kept in self.kept.items()}
        published: dict[int, Values] = {owner: row.values for owner, row in self.node.table.items()}
        if published != expected:
            raise WrongError(f"{published} is published, and brute force gives {expected}")
        leaves = {
            (owner, name)
            for owner, row in self.node.table.items()
            for name in row.values
            if name not in self.kept and name not in row.leaves
        }
        if leaves:
            raise WrongError(f"no state is kept of {leaves}")

    def happen(self, what: str) -> None:
        self.counts[what] += 1
        chance = self.chance
        records = [f for f in self.world.facts if f.dataset == RECORDS]
        match what:
            case "event":
                self.world.facts.append(self.row(STREAM, 0))
            case "fact":
                self.world.facts.append(self.row(RECORDS, chance.randint(1, 4)))
            case "move" | "delete" | "resurrect" | "redate" | "late" if records:
                self.override(chance.choice(records), what)
            case "computed":
                record = chance.randint(1, 4)
                self.world.computed[record] = self.row(COMPUTED, record)
            case "uncomputed":
                self.world.computed.pop(chance.randint(1, 4), None)
            case "forward":
                self.as_of += chance.choice((1, 1, 2, 5, 30))
            case "back":
                self.as_of -= chance.choice((1, 3, 10))
            case "add":
                made = self.variable()
                self.declared[made.name] = made
            case "change":
                self.change(chance.choice(list(self.declared)))
            case "remove" if len(self.declared) > 1:
                name = chance.choice(list(self.declared))
                del self.declared[name]
                self.kept.pop(name, None)
            case "backfill":
                self.run(backfill=True)

    def row(self, dataset: str, record: int) -> Row:
        chance = self.chance
        return Row(
            dataset=dataset,
            record=record,
            owner=chance.choice((1, 1, 2, 3, None)),
            value=chance.choice((0, 1, 2, 3, None)),
            at=chance.choice((None, *range(self.as_of - 10, self.as_of + 3))),
            order=len(self.world.facts) * 10,
        )

    def override(self, fact: Row, what: str) -> None:
        later = replace(fact, order=len(self.world.facts) * 10, deleted=what == "delete")
        if what == "move":
            later = replace(later, owner=self.chance.choice((1, 2, 3, 4)))
        if what == "redate":
            later = replace(later, at=self.as_of - self.chance.randint(-2, 10))
        if what == "late":
            later = replace(later, order=fact.order - 1, owner=5)
        self.world.facts.append(later)

    def change(self, name: str) -> None:
        if name not in self.node.defined:
            return  # it was never published: its first definition is the one that fills it
        changed = replace(self.declared[name], least=1 + self.declared[name].least)
        self.declared[name] = changed
        if name not in self.kept:
            self.kept[name] = {owner: row.values[name] for owner, row in self.node.table.items()}
