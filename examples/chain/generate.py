"""Six days of announcements from a small blockchain: `python generate.py DAY` writes one under data/.

DAY is 1 to 6. The announcements are always the same, and they contain the cases that real ones contain: side
blocks, rival branches that win, two tips of equal weight, a late block, an even later transaction, a tip that
is announced twice. Each case is a function below, named after what happens.
"""

import hashlib
import json
import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

Message = dict[str, Any]

SEED = 995
DAYS = 6
GENESIS_AT = datetime(2024, 3, 1, tzinfo=UTC)
SECONDS_APART = 180
NO_PARENT = "0x" + "0" * 64
DIFFICULTY = 12_000_000_000_000
"""Chosen so that the total passes 2^53 before block 800.

On day 1 every difficulty is a multiple of four. The totals of the two branches of day 2 differ by one unit,
so they would be equal as floating-point numbers.
"""
HARD_DIFFICULTY = DIFFICULTY * 155 // 100
ETHER = 10**18
EXACT_AS_FLOAT = 2**53

TIP_OF_DAY = {1: 1005, 3: 2400, 4: 3120, 6: 3150}
FIRST_REORG = range(995, 1006)
DROPPED_FROM, MOVED_FROM, MOVED_TO, STAYS_AT = 998, 1000, 1002, 1004
HARD_BEFORE_THE_REORG = 997
CORRECTED_LATER = 105
"""A hard block among those that the README processes again by hand."""
LATE_BLOCK = 2391
LATE_TRANSACTION_OF = 1500
DEEP_REORG = range(2970, 3096)
"""Forks 151 blocks below the tip and ends 25 below it: fewer blocks, but more work."""


def hash_of(*parts: object) -> str:
    return "0x" + hashlib.sha256(json.dumps([SEED, *parts]).encode()).hexdigest()


def addresses(kind: str, count: int) -> tuple[str, ...]:
    return tuple(hash_of(kind, number)[:42] for number in range(count))


ACCOUNTS, TOKENS, MINERS = addresses("account", 60), addresses("token", 4), addresses("miner", 7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Payment:
    """A transaction as its sender signed it. The same one may be in blocks of several branches."""

    tx_hash: str
    sender: str
    receiver: str
    value: int | str
    token_log: Message | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    header: Message
    payments: tuple[Payment, ...]

    @property
    def number(self) -> int:
        return int(self.header["number"])

    @property
    def total_difficulty(self) -> int:
        return int(self.header["totalDifficulty"])

    def transactions(self) -> Iterator[Message]:
        for payment in self.payments:
            yield {
                "blockNumber": self.number,
                "blockHash": self.header["hash"],
                "hash": payment.tx_hash,
                "from": payment.sender,
                "to": payment.receiver,
                "value": payment.value,
            }

    def logs(self) -> Iterator[Message]:
        logging = [payment for payment in self.payments if payment.token_log is not None]
        for log_index, payment in enumerate(logging):
            yield {
                "blockNumber": self.number,
                "blockHash": self.header["hash"],
                "transactionHash": payment.tx_hash,
                "logIndex": log_index,
                **(payment.token_log or {}),
            }


@dataclass
class Network:
    """The accounts that pay and mine, and the random numbers that drive them."""

    chance: random.Random
    signed: int = 0

    def pay(self, value: int | None = None) -> Payment:
        """A payment.

        A third of them move tokens as well, and so do those of the story, whose value is given.
        """
        self.signed += 1
        sender, receiver = self.chance.sample(ACCOUNTS, 2)
        moves_tokens = value is not None or self.chance.random() < 1 / 3
        return Payment(
            tx_hash=hash_of("transaction", self.signed),
            sender=sender,
            receiver=receiver,
            value=self.spelt(self.some_value() if value is None else value),
            token_log=self.token_log(sender, value) if moves_tokens else None,
        )

    def some_value(self) -> int:
        """Dust, a few ether, or hundreds."""
        kind = self.chance.random()
        if kind < 0.3:
            return self.chance.randrange(1, EXACT_AS_FLOAT)
        return (
            self.chance.randrange(ETHER // 100, 60 * ETHER)
            if kind < 0.94
            else self.chance.randrange(100 * ETHER, 900 * ETHER)
        )

    def token_log(self, sender: str, amount: int | None) -> Message:
        """A transfer of up to a million tokens with 18 decimals, or sometimes only the approval of one."""
        topic = "Approval" if amount is None and self.chance.random() < 0.1 else "Transfer"
        if amount is None:
            amount = self.chance.randrange(1, 10 ** self.chance.randrange(12, 25))
        return {
            "address": self.chance.choice(TOKENS),
            "topic": topic,
            "transfer": {"from": sender, "to": self.chance.choice(ACCOUNTS), "amount": self.spelt(amount)},
        }

    def spelt(self, amount: int) -> int | str:
        """Amounts that not every JSON number can hold are text.

        Some nodes write the others as text as well.
        """
        return str(amount) if amount >= EXACT_AS_FLOAT or self.chance.random() < 0.3 else amount

    def mine(
        self, parent: Block | None, payments: Iterable[Payment] | None = None, difficulty: int | None = None
    ) -> Block:
        """The next block after a parent. One in a hundred is hard to find."""
        chance = self.chance
        number = parent.number + 1 if parent else 1
        included = tuple(
            payments if payments is not None else (self.pay() for _ in range(chance.choice((1, 1, 1, 2, 2))))
        )
        if difficulty is None:
            difficulty = DIFFICULTY + 4 * chance.randrange(10**9)
            if chance.random() < 0.01:
                difficulty += DIFFICULTY * chance.randrange(45, 65) // 100
        at = GENESIS_AT + timedelta(seconds=number * SECONDS_APART + chance.randrange(-60, 60))
        header = {
            "number": number,
            "parentHash": parent.header["hash"] if parent else NO_PARENT,
            "miner": chance.choice(MINERS),
            "difficulty": difficulty,
            "totalDifficulty": (parent.total_difficulty if parent else 0) + difficulty,
            "timestamp": at.isoformat().replace("+00:00", "Z"),
        }
        return Block(
            header={
                "hash": hash_of(json.dumps(header), *(payment.tx_hash for payment in included)),
                **header,
            },
            payments=included,
        )


@dataclass
class Day:
    """The announcements of one day, in the order in which they arrive."""

    blocks: list[Message] = field(default_factory=list)
    transactions: list[Message] = field(default_factory=list)
    logs: list[Message] = field(default_factory=list)
    alert_definitions: list[Message] = field(default_factory=list)

    def announce(self, blocks: Iterable[Block]) -> None:
        for block in blocks:
            self.blocks.append(block.header)
            self.transactions.extend(block.transactions())
            self.logs.extend(block.logs())

    def mix(self, chance: random.Random) -> None:
        """Mix announcements that are close together, so that a child may come before its parent.

        A node hears from many others.
        """
        for messages in (self.blocks, self.transactions, self.logs):
            places = sorted(range(len(messages)), key=lambda place: place + chance.random() * 5)
            messages[:] = [messages[place] for place in places]


@dataclass
class Story:
    """The network, and the branch that it takes for canonical, by number."""

    network: Network
    chain: dict[int, Block] = field(default_factory=dict)

    @property
    def tip(self) -> Block:
        return self.chain[max(self.chain)]

    def grow(
        self,
        last: int,
        payments_by_block: Mapping[int, list[Payment]] | None = None,
        hard: Iterable[int] = (),
    ) -> list[Block]:
        """Grow the canonical branch up to a number.

        `payments_by_block` holds the payments of the story. The other payments are random.
        """
        numbers = range(self.tip.number + 1 if self.chain else 1, last + 1)
        return [
            self.extend((payments_by_block or {}).get(number), HARD_DIFFICULTY if number in hard else None)
            for number in numbers
        ]

    def extend(self, payments: Iterable[Payment] | None = None, difficulty: int | None = None) -> Block:
        block = self.network.mine(self.tip if self.chain else None, payments, difficulty)
        self.chain[block.number] = block
        return block

    def payments_of(self, number: int) -> list[Payment]:
        return list(self.chain[number].payments)

    def back_to(self, number: int) -> None:
        self.chain = {known: block for known, block in self.chain.items() if known <= number}


# What happens


def first_day(story: Story) -> Day:
    """Growth to block 1005, with side blocks, and the alerts people have asked for."""
    day = Day()
    payments_by_block = {
        DROPPED_FROM: [story.network.pay(400 * ETHER), story.network.pay()],
        MOVED_FROM: [story.network.pay(), story.network.pay(250 * ETHER)],
        STAYS_AT: [story.network.pay(150 * ETHER)],
    }
    day.announce(story.grow(TIP_OF_DAY[1], payments_by_block, hard=(CORRECTED_LATER, HARD_BEFORE_THE_REORG)))
    day.announce(side_blocks(story, (120, 431, 702, 960)))
    day.announce(a_side_branch_of_two(story, 610))
    day.alert_definitions += [
        definition("large-transaction", "large_transaction", 100 * ETHER),
        definition("huge-transaction", "large_transaction", 500 * ETHER),
        definition("hard-block", "block_difficulty", 17_000_000_000_000),
    ]
    day.mix(story.network.chance)
    return day


def definition(name: str, kind: str, threshold: int, version: int = 1) -> Message:
    return {"id": name, "version": version, "kind": kind, "threshold": str(threshold)}


def side_blocks(story: Story, numbers: Iterable[int]) -> list[Block]:
    """Blocks found a moment too late.

    They have the same parent and mostly the same transactions, but nobody builds on them.
    """
    return [
        story.network.mine(
            story.chain[number - 1], [*story.payments_of(number)[:1], story.network.pay()], DIFFICULTY - 10**9
        )
        for number in numbers
    ]


def a_side_branch_of_two(story: Story, number: int) -> list[Block]:
    first = story.network.mine(story.chain[number - 1], story.payments_of(number), DIFFICULTY)
    return [first, story.network.mine(first, story.payments_of(number + 1), DIFFICULTY)]


def second_day(story: Story) -> Day:
    """A rival branch for blocks 995 to 1005 wins by one unit of difficulty.

    One transaction is dropped and one moves to another block.
    """
    day = Day()
    payments = {number: story.payments_of(number) for number in FIRST_REORG}
    payments[DROPPED_FROM].pop(0)
    payments[MOVED_TO].append(payments[MOVED_FROM].pop())
    to_beat = story.tip.total_difficulty
    story.back_to(FIRST_REORG[0] - 1)
    for number in FIRST_REORG[:-1]:
        day.announce([story.extend(payments[number], to_beat_at(story, to_beat))])
    day.announce([story.extend(payments[FIRST_REORG[-1]], to_beat + 1 - story.tip.total_difficulty)])
    return day


def to_beat_at(story: Story, total: int) -> int:
    """The difficulty per block with which the rival branch reaches a total at its end."""
    return (total - story.tip.total_difficulty) // (FIRST_REORG[-1] - story.tip.number)


def third_day(story: Story) -> Day:
    """The chain grows to 2400, but block 2391 is missing, so the blocks after it wait.

    There are two blocks 2390 of equal weight.
    """
    day = Day()
    payments_by_block = {LATE_TRANSACTION_OF: [story.network.pay(), story.network.pay(300 * ETHER)]}
    day.announce(story.grow(LATE_BLOCK - 2, payments_by_block, hard=(LATE_TRANSACTION_OF,)))
    first_seen = story.network.mine(story.tip, [story.network.pay(150 * ETHER)], DIFFICULTY)
    second_seen = story.extend(first_seen.payments, DIFFICULTY)
    day.announce(story.grow(TIP_OF_DAY[3]))
    day.announce(side_blocks(story, (1100, 1733, 2048, 2305)))
    day.blocks.remove(story.chain[LATE_BLOCK].header)  # its transactions arrive, and wait with the blocks
    keep_a_transaction_back(story, day)
    day.mix(story.network.chance)
    day.announce([first_seen, second_seen])
    return day


def keep_a_transaction_back(story: Story, day: Day) -> None:
    """A node omits the last transaction of block 1500 and its transfer. They come a day later."""
    day.transactions.remove(late_transaction(story))
    day.logs.remove(late_log(story))


def late_transaction(story: Story) -> Message:
    return list(story.chain[LATE_TRANSACTION_OF].transactions())[-1]


def late_log(story: Story) -> Message:
    return list(story.chain[LATE_TRANSACTION_OF].logs())[-1]


def fourth_day(story: Story) -> Day:
    """The late block shows that the network continued from the second of the two tips.

    The chain grows to 3120, which is announced twice.
    """
    day = Day()
    day.blocks.append(story.chain[LATE_BLOCK].header)
    day.transactions.append(late_transaction(story))
    day.logs.append(late_log(story))
    day.announce(story.grow(TIP_OF_DAY[4], {TIP_OF_DAY[4]: [story.network.pay(120 * ETHER)]}))
    day.announce(side_blocks(story, (2611, 2980)))
    day.mix(story.network.chance)
    day.announce([story.tip])  # word for word
    return day


def fifth_day(story: Story) -> Day:
    """Miners who were cut off return with a branch from block 2970 on: shorter, but heavier.

    Blocks that were considered final turn out not to be.
    """
    day = Day()
    payments = {number: story.payments_of(number) for number in DEEP_REORG}
    story.back_to(DEEP_REORG[0] - 1)
    for number in DEEP_REORG:
        day.announce(
            [story.extend(payments[number], DIFFICULTY * 5 // 4 + story.network.chance.randrange(10**9))]
        )
    return day


def sixth_day(story: Story, unconfirmed: list[Payment]) -> Day:
    """Transactions that lost their block enter a new one.

    Someone asks for one more alert, and another alert is wanted less often.
    """
    day = Day()
    while unconfirmed:
        day.announce([story.extend([unconfirmed.pop(0) for _ in range(min(2, len(unconfirmed)))])])
    day.announce(story.grow(TIP_OF_DAY[6]))
    day.mix(story.network.chance)
    day.alert_definitions += [
        definition("notable-transaction", "large_transaction", 50 * ETHER),
        definition("hard-block", "block_difficulty", 18_000_000_000_000, version=2),
    ]
    return day


def make_days() -> tuple[Day, ...]:
    story = Story(network=Network(chance=random.Random(SEED)))
    first_four = (first_day(story), second_day(story), third_day(story), fourth_day(story))
    unconfirmed = [
        payment
        for number in range(DEEP_REORG[-1] + 1, TIP_OF_DAY[4] + 1)
        for payment in story.payments_of(number)
    ]
    return (*first_four, fifth_day(story), sixth_day(story, unconfirmed))


def write(path: Path, messages: list[Message]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")
    print(
        f"wrote {len(messages):,} messages to "
        f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}"
    )


def main(arguments: list[str]) -> int:
    if arguments not in [[str(day)] for day in range(1, DAYS + 1)]:
        print(f"usage: python generate.py DAY, where DAY is 1 to {DAYS}", file=sys.stderr)
        return 2
    number = int(arguments[0])
    data, day = Path(__file__).resolve().parent / "data", make_days()[number - 1]
    for folder in ("blocks", "transactions", "logs", "alert_definitions"):
        if messages := getattr(day, folder):
            write(data / folder / f"day-{number}.jsonl", messages)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
