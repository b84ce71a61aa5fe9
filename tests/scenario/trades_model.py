"""What examples/trades publishes, computed in plain Python without the engine.

After each run the model reads all messages, works out every dataset anew, and compares it with what it was
before. The differences are the change logs, and each trigger goes over them by the rule of LANGUAGE. Values
are compared as `--output json` formats them.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Rows = Mapping[str, Row]
"""By the text of the row's key."""

PUBLISHED = ("trades", "prices", "profit_and_loss", "large_trades")
KEPT_TIMES = ("trades", "prices", "large_trades")
"""Datasets whose changes carry the time of the source. Those of a job carry the time of the commit."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    operation: str
    key: str
    source_timestamp: int | None
    """None if it is the time of the commit."""
    fields: tuple[str, ...]
    data: Row
    before: Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    event_type: str
    key: str
    source_timestamp: int | None
    data: Row
    quiet: bool
    event_id: str | None
    """None if it hashes the time of a commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What is published after some runs."""

    rows: Mapping[str, Rows] = field(default_factory=lambda: {name: {} for name in PUBLISHED})
    changes: Mapping[str, tuple[Change, ...]] = field(default_factory=lambda: dict.fromkeys(PUBLISHED, ()))
    """In the order of the log."""
    events: Mapping[str, tuple[Event, ...]] = field(default_factory=lambda: dict.fromkeys(TRIGGERS, ()))


def after_run(before: State, data: Path, quiet: Iterable[str] = ()) -> State:
    """The state after a run over all messages that are there now. Triggers in `quiet` tell nobody."""
    trades, trade_times = newest(read_messages(data / "trades"), "tradeId", "recordedAt", decode_trade)
    prices, price_times = newest(read_messages(data / "prices"), "symbol", "quotedAt", decode_price)
    live = {key: row for key, row in trades.items() if row["status"] != "CANCELLED"}
    rows = {
        "trades": live,
        "prices": prices,
        "profit_and_loss": profit_and_loss(live.values(), prices),
        "large_trades": large_trades(live),
    }
    times = {"trades": trade_times, "large_trades": trade_times, "prices": price_times}
    new = {name: tuple(differences(before.rows[name], rows[name], times.get(name))) for name in PUBLISHED}
    return State(
        rows=rows,
        changes={name: (*before.changes[name], *new[name]) for name in PUBLISHED},
        events={
            name: (*before.events[name], *fold(name, before, new, is_quiet=name in quiet))
            for name in TRIGGERS
        },
    )


# What was received


def read_messages(folder: Path) -> list[Row]:
    return [
        json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()
    ]


def newest(
    messages: Iterable[Row], key: str, time: str, decode: Callable[[Row], Row]
) -> tuple[dict[str, Row], dict[str, int]]:
    """The newest row of each key, and its time."""
    rows: dict[str, Row] = {}
    times: dict[str, int] = {}
    for message in messages:
        name, at = str(message[key]), message[time]
        assert at != times.get(name), "no two messages about one key have the same time"
        if at > times.get(name, 0):
            rows[name], times[name] = decode(message), at
    return rows, times


def decode_trade(message: Row) -> Row:
    return {
        "trade_id": message["tradeId"],
        "symbol": message.get("symbol"),
        "side": message.get("side"),
        "quantity": message.get("quantity"),
        "price": as_decimal(message["price"], 4) if "price" in message else None,
        "status": message.get("status", "BOOKED"),
        "recorded_at": as_instant(message["recordedAt"]),
    }


def decode_price(message: Row) -> Row:
    return {
        "symbol": message["symbol"],
        "price": as_decimal(message["price"], 4),
        "quoted_at": as_instant(message["quotedAt"]),
    }


# What is made of it


def large_trades(trades: Rows) -> dict[str, Row]:
    return {
        key: {**row, "notional": as_decimal(row["quantity"] * Decimal(row["price"]), 4)}
        for key, row in trades.items()
        if row["quantity"] >= 10_000
    }


def profit_and_loss(trades: Iterable[Row], prices: Rows) -> dict[str, Row]:
    by_symbol: dict[str, list[tuple[int, Decimal]]] = {}
    for trade in trades:
        held = trade["quantity"] if trade["side"] == "BUY" else -trade["quantity"]
        by_symbol.setdefault(trade["symbol"], []).append((held, Decimal(trade["price"])))
    return {
        symbol: {
            "symbol": symbol,
            "position": sum(held for held, _ in parts),
            "cost": as_decimal(sum(held * paid for held, paid in parts), 2),
            "price": prices[symbol]["price"],
            "profit": as_decimal(
                sum(held * (Decimal(prices[symbol]["price"]) - paid) for held, paid in parts), 2
            ),
        }
        for symbol, parts in by_symbol.items()
    }


# What is told


def differences(before: Rows, after: Rows, times: Mapping[str, int] | None) -> Iterable[Change]:
    """One change for each key that differs, in the order of the keys' texts."""
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        row = new or old
        assert row is not None
        fields = [name for name in row if not (old and new) or old[name] != new[name]]
        yield Change(
            operation="UPDATE" if old and new else "INSERT" if new else "DELETE",
            key=key,
            source_timestamp=times[key] if times is not None else None,
            fields=tuple(fields),
            data=row,
            before={name: old[name] for name in fields} if old else {},
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    dataset: str
    fires: Callable[[Row], bool]
    clears: Callable[[Row], bool]


TRIGGERS: Mapping[str, Rule] = {
    "large_trade_alert": Rule(
        dataset="trades",
        fires=lambda row: row["quantity"] >= 10_000,
        clears=lambda row: row["quantity"] < 9_500,
    ),
    "loss_alert": Rule(
        dataset="profit_and_loss",
        fires=lambda row: Decimal(row["profit"]) < -50_000,
        clears=lambda row: Decimal(row["profit"]) > -40_000,
    ),
}


def fold(
    name: str, before: State, new: Mapping[str, tuple[Change, ...]], *, is_quiet: bool
) -> Iterable[Event]:
    """Off and `fire`: MATCH. On and the row is gone, or `clear` and not `fire`: UNMATCH."""
    rule = TRIGGERS[name]
    last = {event.key: event.event_type for event in before.events[name]}
    counts = Counter((event.key, event.source_timestamp) for event in before.events[name])
    for change in new[rule.dataset]:
        is_gone = change.operation == "DELETE"
        fires = not is_gone and rule.fires(change.data)
        if last.get(change.key) == "MATCH":
            event_type = "UNMATCH" if is_gone or (not fires and rule.clears(change.data)) else None
        else:
            event_type = "MATCH" if fires else None
        if event_type:
            counts[change.key, change.source_timestamp] += 1
            yield Event(
                event_type=event_type,
                key=change.key,
                source_timestamp=change.source_timestamp,
                data=change.data,
                quiet=is_quiet,
                event_id=event_id(
                    name, change.key, change.source_timestamp, counts[change.key, change.source_timestamp]
                )
                if change.source_timestamp is not None
                else None,
            )


def event_id(trigger: str, key: str, source_timestamp: int, n: int = 1) -> str:
    text = f"{trigger}:{key}:{source_timestamp}" + (f":{n}" if n > 1 else "")
    return hashlib.sha256(text.encode()).hexdigest()[:32]


# As JSON shows it


def as_decimal(value: Decimal | int | str, scale: int) -> str:
    return format(Decimal(value).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP), "f")


def as_instant(nanoseconds: int) -> str:
    at = EPOCH + timedelta(microseconds=nanoseconds // 1000)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
