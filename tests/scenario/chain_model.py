"""Expected content of every dataset of examples/chain after each day's run, computed in plain Python.

The model reads the generated files and does not use the engine. Most datasets follow from the files received
so far. Two remember more: published alerts stay, and a built partition stays built. So `State` describes the
datasets after a run, and `after_run` makes the next state from it. Rows hold plain values; `as_json` formats
them like `--output json`.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.scenario.json_rows import read_messages

Row = dict[str, Any]
Rows = tuple[Row, ...]

DAYS = (1, 2, 3, 4, 5, 6)
IDENTITIES = {
    "blocks": ("block_hash",),
    "transactions": ("block_hash", "tx_hash"),
    "logs": ("block_hash", "log_index"),
    "alert_definitions": ("alert_definition_id", "version"),
}
"""Fact dataset -> columns that identify a fact. Each dataset is the folder of the same name under data/."""
DATASETS = (
    "blocks",
    "transactions",
    "logs",
    "alert_definitions",
    "hot_blocks",
    "hot_transactions",
    "hot_logs",
    "alert_events",
    "orphaned_alerts",
    "enriched_transfers",
    "cold_blocks",
    "daily_summaries",
)
MIN_AMOUNT = Decimal(10) ** 20
PARTITION_SIZE = 500
FINAL_AFTER = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Reorg:
    """Expected invalidation of a reorg: numbers `first` to `last`, and its source event."""

    first: int
    last: int
    old_tip: str
    new_tip: str
    fork_block: int


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The datasets after a run."""

    facts: Mapping[str, Rows]
    """Per fact dataset: every fact received so far, once, in the order of the sources."""
    rows: Mapping[str, Rows]
    offered: Mapping[str, int]
    """Per fact dataset: the number of messages received so far.

    Messages that are not facts are duplicates, because none is refused.
    """
    built: frozenset[int]
    """The first numbers of the partitions of cold_blocks."""
    reorg: Reorg | None
    """The reorg that this run found."""
    touched: frozenset[int]
    """Block numbers at which this run changed hot_blocks or hot_transactions. There alerts were evaluated."""
    waiting: Rows
    """Blocks that are not connected to the first one yet."""
    min_amount: Decimal = MIN_AMOUNT

    @property
    def tip(self) -> Row:
        return self.rows["hot_blocks"][-1]


BEFORE = State(
    facts=dict.fromkeys(IDENTITIES, ()),
    rows=dict.fromkeys(DATASETS, ()),
    offered=dict.fromkeys(IDENTITIES, 0),
    built=frozenset(),
    reorg=None,
    touched=frozenset(),
    waiting=(),
)


# Days


def play_days(data: Path, days: Sequence[int] = DAYS) -> dict[int, State]:
    """The state after each day, when there is one run a day."""
    state, states = BEFORE, {}
    for day in days:
        state = after_run(state, read_day(data, day))
        states[day] = state
    return states


def read_day(data: Path, day: int) -> dict[str, list[Row]]:
    """Rows in the files of a day, per fact dataset, in the order of the lines."""
    return {
        "blocks": [decode_block(message) for message in _lines(data / "blocks", day)],
        "transactions": [decode_transaction(message) for message in _lines(data / "transactions", day)],
        "logs": [decode_log(message) for message in _lines(data / "logs", day)],
        "alert_definitions": [
            decode_alert_definition(message) for message in _lines(data / "alert_definitions", day)
        ],
    }


def after_run(before: State, received: Mapping[str, Sequence[Row]]) -> State:
    """The state after a run that received these rows in new files.

    The new files come after the older ones in the order of the source.
    """
    facts = {
        dataset: each_once((*before.facts[dataset], *received[dataset]), key)
        for dataset, key in IDENTITIES.items()
    }
    hot_blocks = canonical_chain(facts["blocks"])
    hot_transactions = followed(facts["transactions"], hot_blocks)
    hot_logs = followed(facts["logs"], hot_blocks)
    definitions = newest_definitions(facts["alert_definitions"])
    touched = changed_numbers(before.rows["hot_blocks"], hot_blocks) | changed_numbers(
        before.rows["hot_transactions"], hot_transactions
    )
    fired = evaluate_alerts(
        definitions,
        [block for block in hot_blocks if block["block_number"] in touched],
        [transaction for transaction in hot_transactions if transaction["block_number"] in touched],
    )
    alert_events = published_alerts(before.rows["alert_events"], fired)
    built = before.built | final_partitions(hot_blocks)
    cold_blocks = compacted(hot_blocks, built)
    return State(
        facts=facts,
        offered={dataset: before.offered[dataset] + len(received[dataset]) for dataset in IDENTITIES},
        rows={
            **{dataset: facts[dataset] for dataset in ("blocks", "transactions", "logs")},
            "alert_definitions": definitions,
            "hot_blocks": hot_blocks,
            "hot_transactions": hot_transactions,
            "hot_logs": hot_logs,
            "alert_events": alert_events,
            "orphaned_alerts": orphaned(alert_events, hot_blocks),
            "enriched_transfers": enriched(hot_blocks, hot_logs, before.min_amount),
            "cold_blocks": cold_blocks,
            "daily_summaries": summed_by_day(cold_blocks),
        },
        built=built,
        reorg=find_reorg(before.rows["hot_blocks"], hot_blocks),
        touched=touched,
        waiting=waiting_blocks(facts["blocks"]),
        min_amount=before.min_amount,
    )


def after_alert_backfill(before: State) -> State:
    """The state after changed definitions and `backfill alert_evaluate --stale`.

    Every canonical block is evaluated. Published alerts stay.
    """
    rows = before.rows
    fired = evaluate_alerts(rows["alert_definitions"], rows["hot_blocks"], rows["hot_transactions"])
    alert_events = published_alerts(rows["alert_events"], fired)
    return replace(
        before,
        rows={
            **rows,
            "alert_events": alert_events,
            "orphaned_alerts": orphaned(alert_events, rows["hot_blocks"]),
        },
    )


def after_transfer_backfill(before: State, min_amount: Decimal) -> State:
    """The state after a changed `min_amount` and `backfill enrich_transfers --stale`."""
    transfers = enriched(before.rows["hot_blocks"], before.rows["hot_logs"], min_amount)
    return replace(before, rows={**before.rows, "enriched_transfers": transfers}, min_amount=min_amount)


# What was received


def decode_block(message: Row) -> Row:
    return {
        "block_number": message["number"],
        "block_hash": message["hash"],
        "parent_hash": message["parentHash"],
        "miner": message["miner"],
        "difficulty": message["difficulty"],
        "total_difficulty": message["totalDifficulty"],
        "block_at": datetime.fromisoformat(message["timestamp"]),
    }


def decode_transaction(message: Row) -> Row:
    return {
        "block_number": message["blockNumber"],
        "block_hash": message["blockHash"],
        "tx_hash": message["hash"],
        "from_address": message["from"],
        "to_address": message["to"],
        "value": Decimal(message["value"]),
    }


def decode_log(message: Row) -> Row:
    return {
        "block_number": message["blockNumber"],
        "block_hash": message["blockHash"],
        "tx_hash": message["transactionHash"],
        "log_index": message["logIndex"],
        "address": message["address"],
        "topic": message["topic"],
        "from_address": message["transfer"]["from"],
        "to_address": message["transfer"]["to"],
        "amount": Decimal(message["transfer"]["amount"]),
    }


def decode_alert_definition(message: Row) -> Row:
    return {
        "alert_definition_id": message["id"],
        "version": message["version"],
        "kind": message["kind"],
        "threshold": Decimal(message["threshold"]),
    }


def each_once(rows: Iterable[Row], identity: tuple[str, ...]) -> Rows:
    """Facts with the same identity count once.

    Two that differ would be quarantined; the generator does not make such facts.
    """
    kept: dict[tuple[Any, ...], Row] = {}
    for row in rows:
        first = kept.setdefault(tuple(row[column] for column in identity), row)
        assert first == row, f"the generator made two facts of one identity: {first} and {row}"
    return tuple(kept.values())


def newest_definitions(facts: Iterable[Row]) -> Rows:
    newest: dict[str, Row] = {}
    for fact in sorted(facts, key=lambda fact: int(fact["version"])):
        newest[fact["alert_definition_id"]] = fact
    return tuple(newest.values())


# The chain


def connected_blocks(blocks: Sequence[Row]) -> dict[str, Row]:
    """By hash: the blocks that descend from one with the lowest number."""
    children: defaultdict[str, list[Row]] = defaultdict(list)
    for block in blocks:
        children[block["parent_hash"]].append(block)
    lowest = min((block["block_number"] for block in blocks), default=None)
    connected = {block["block_hash"]: block for block in blocks if block["block_number"] == lowest}
    unfollowed = list(connected)
    while unfollowed:
        for child in children[unfollowed.pop()]:
            connected[child["block_hash"]] = child
            unfollowed.append(child["block_hash"])
    return connected


def canonical_chain(blocks: Sequence[Row]) -> Rows:
    """The branch of the block with the most total difficulty, lowest number first.

    Among equals the one announced first wins.
    """
    connected = connected_blocks(blocks)
    head: Row | None = None
    for block in blocks:
        if block["block_hash"] in connected and (
            head is None or block["total_difficulty"] > head["total_difficulty"]
        ):
            head = block
    branch: list[Row] = []
    while head is not None:
        branch.append(head)
        head = connected.get(head["parent_hash"])
    return tuple(reversed(branch))


def waiting_blocks(blocks: Sequence[Row]) -> Rows:
    connected = connected_blocks(blocks)
    return tuple(block for block in blocks if block["block_hash"] not in connected)


def followed(rows: Iterable[Row], chain: Iterable[Row]) -> Rows:
    """The rows of canonical blocks."""
    canonical = {block["block_hash"] for block in chain}
    return tuple(row for row in rows if row["block_hash"] in canonical)


def find_reorg(old: Sequence[Row], new: Sequence[Row]) -> Reorg | None:
    """The reorg between two canonical branches, or None if no block left."""
    now = {block["block_hash"] for block in new}
    kept = [block["block_number"] for block in old if block["block_hash"] in now]
    if len(kept) == len(old):
        return None
    return Reorg(
        first=kept[-1] + 1,
        last=max(old[-1]["block_number"], new[-1]["block_number"]),
        old_tip=old[-1]["block_hash"],
        new_tip=new[-1]["block_hash"],
        fork_block=kept[-1],
    )


def changed_numbers(old: Iterable[Row], new: Iterable[Row]) -> frozenset[int]:
    """The block numbers of removed and added rows."""
    before, after = ({tuple(row.items()) for row in rows} for rows in (old, new))
    return frozenset(dict(row)["block_number"] for row in before ^ after)


# The jobs


def evaluate_alerts(definitions: Iterable[Row], blocks: Iterable[Row], transactions: Iterable[Row]) -> Rows:
    definitions = tuple(definitions)
    about_transactions = (
        _alert(definition, transaction, transaction["tx_hash"], transaction["value"])
        for transaction in transactions
        for definition in definitions
        if definition["kind"] == "large_transaction" and transaction["value"] >= definition["threshold"]
    )
    about_blocks = (
        _alert(definition, block, None, Decimal(block["difficulty"]))
        for block in blocks
        for definition in definitions
        if definition["kind"] == "block_difficulty" and block["difficulty"] >= definition["threshold"]
    )
    return (*about_transactions, *about_blocks)


def _alert(definition: Row, row: Row, tx_hash: str | None, amount: Decimal) -> Row:
    return {
        "alert_definition_id": definition["alert_definition_id"],
        "block_hash": row["block_hash"],
        "tx_hash": tx_hash,
        "block_number": row["block_number"],
        "amount": amount,
    }


def published_alerts(before: Iterable[Row], fired: Iterable[Row]) -> Rows:
    """Published alerts stay. New ones among those that fire are added."""
    published = {alert_key(alert): alert for alert in before}
    for alert in fired:
        published.setdefault(alert_key(alert), alert)
    return tuple(published.values())


def alert_key(alert: Row) -> tuple[str, str, str | None]:
    return alert["alert_definition_id"], alert["block_hash"], alert["tx_hash"]


def orphaned(alerts: Iterable[Row], chain: Iterable[Row]) -> Rows:
    canonical = {block["block_number"]: block["block_hash"] for block in chain}
    return tuple(
        {**alert, "canonical_hash": canonical.get(alert["block_number"])}
        for alert in alerts
        if canonical.get(alert["block_number"]) != alert["block_hash"]
    )


def enriched(chain: Iterable[Row], logs: Iterable[Row], min_amount: Decimal) -> Rows:
    blocks = {block["block_hash"]: block for block in chain}
    return tuple(
        {
            "block_number": log["block_number"],
            "block_hash": log["block_hash"],
            "tx_hash": log["tx_hash"],
            "log_index": log["log_index"],
            "block_at": blocks[log["block_hash"]]["block_at"],
            "miner": blocks[log["block_hash"]]["miner"],
            "token": log["address"],
            "from_address": log["from_address"],
            "to_address": log["to_address"],
            "amount": log["amount"],
        }
        for log in logs
        if log["topic"] == "Transfer" and log["amount"] >= min_amount
    )


def partition_of(number: int) -> int:
    """The first number of a block's partition."""
    return number - number % PARTITION_SIZE


def final_partitions(chain: Sequence[Row]) -> frozenset[int]:
    """Partitions whose last number is at least `FINAL_AFTER` below the tip."""
    starts = {partition_of(block["block_number"]) for block in chain}
    return frozenset(
        start for start in starts if start + PARTITION_SIZE - 1 + FINAL_AFTER <= chain[-1]["block_number"]
    )


def compacted(chain: Iterable[Row], built: frozenset[int]) -> Rows:
    """Rows of the built partitions.

    They are always the canonical blocks, because a partition whose rows change is built again.
    """
    return tuple(block for block in chain if partition_of(block["block_number"]) in built)


def summed_by_day(blocks: Iterable[Row]) -> Rows:
    by_day: defaultdict[date, list[Row]] = defaultdict(list)
    for block in blocks:
        by_day[block["block_at"].astimezone(UTC).date()].append(block)
    return tuple(
        {
            "day": day,
            "blocks": len(group),
            "summed_difficulty": sum(block["difficulty"] for block in group),
            "first_block_number": min(block["block_number"] for block in group),
            "last_block_number": max(block["block_number"] for block in group),
        }
        for day, group in by_day.items()
    )


# Messages


def _lines(folder: Path, day: int) -> list[Row]:
    path = folder / f"day-{day}.jsonl"
    return read_messages(path) if path.exists() else []
