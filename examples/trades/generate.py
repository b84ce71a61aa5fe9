"""Four days of a trading desk: trades and prices of six instruments.

`python generate.py DAY` writes the messages of day 1 to 4 under data/. The messages are always the same. What
happens to a trade or a price is in the tables below.
"""

import json
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

Message = dict[str, Any]

SEED = 2024
DAYS = {1: "2024-01-15", 2: "2024-01-16", 3: "2024-01-17", 4: "2024-01-18"}
PRICES = {
    "AAPL": "185.5000",
    "MSFT": "388.4700",
    "NVDA": "54.7100",
    "KO": "59.8900",
    "PFE": "28.8200",
    "XOM": "97.6900",
}
"""The price of each instrument on the first day."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    trade_id: int
    symbol: str
    side: str
    quantity: int


LARGE = Trade(trade_id=123, symbol="AAPL", side="BUY", quantity=15_000)
LARGE_RECORDED_AT = 1705316445123456789
"""The trade of the story, and when it was recorded."""
OF_DAY_ONE = {
    107: Trade(trade_id=107, symbol="MSFT", side="BUY", quantity=12_000),
    112: Trade(trade_id=112, symbol="KO", side="SELL", quantity=9_999),
    118: Trade(trade_id=118, symbol="PFE", side="BUY", quantity=10_000),
    123: LARGE,
    131: Trade(trade_id=131, symbol="NVDA", side="BUY", quantity=25_000),
}
NEW_ON_DAY_TWO = Trade(trade_id=141, symbol="XOM", side="BUY", quantity=30_000)
NEW_ON_DAY_FOUR = Trade(trade_id=142, symbol="XOM", side="SELL", quantity=20_000)
TAKEN_OVER = (
    Trade(trade_id=201, symbol="KO", side="BUY", quantity=11_000),
    Trade(trade_id=202, symbol="KO", side="SELL", quantity=4_000),
    Trade(trade_id=203, symbol="PFE", side="BUY", quantity=16_500),
    Trade(trade_id=204, symbol="MSFT", side="SELL", quantity=10_250),
)
"""The book of another desk."""


def day_1() -> tuple[list[Message], list[Message]]:
    """Forty trades, most of them small, and a price of each instrument."""
    chance = random.Random(SEED)
    trades = []
    for number, trade_id in enumerate(range(101, 141)):
        trade = OF_DAY_ONE.get(trade_id) or Trade(
            trade_id=trade_id,
            symbol=chance.choice(list(PRICES)),
            side=chance.choice(("BUY", "BUY", "SELL")),
            quantity=chance.randrange(1, 80) * 50,
        )
        at = instant(1, "09:00:00") + number * 171_428_571_429
        paid = Decimal(PRICES[trade.symbol]) + Decimal(chance.randrange(-2000, 2000)).scaleb(-3)
        trades.append(trade_message(trade, paid, LARGE_RECORDED_AT if trade is LARGE else at))
    prices = [price_message(symbol, price, instant(1, "16:30:00")) for symbol, price in PRICES.items()]
    return trades, prices


def day_2() -> tuple[list[Message], list[Message]]:
    """Corrections, a cancellation, a message that comes too late to matter, and a fall of MSFT."""
    trades = [
        correction(LARGE, 9_800, instant(2, "09:01:00")),  # not yet below 9,500
        correction(OF_DAY_ONE[107], 9_000, instant(2, "09:02:00")),
        correction(OF_DAY_ONE[107], 12_500, instant(2, "09:03:00")),  # between two runs: one change
        correction(OF_DAY_ONE[112], 10_400, instant(2, "09:04:00")),
        correction(OF_DAY_ONE[118], 400, instant(1, "08:00:00")),  # older than what is known
        {"tradeId": 131, "status": "CANCELLED", "recordedAt": instant(2, "09:05:00")},
        trade_message(NEW_ON_DAY_TWO, Decimal("97.7500"), instant(2, "10:00:00")),
    ]
    return trades, [price_message("MSFT", "381.0200", instant(2, "16:30:00"))]


def day_3() -> tuple[list[Message], list[Message]]:
    """The book of another desk is taken over. Its trades are old news there."""
    trades = [
        trade_message(trade, Decimal(PRICES[trade.symbol]), instant(3, "07:00:00") + number)
        for number, trade in enumerate(TAKEN_OVER)
    ]
    return trades, []


def day_4() -> tuple[list[Message], list[Message]]:
    """The trade of the story and one of the book that was taken over become small, and MSFT recovers."""
    trades = [
        correction(LARGE, 9_400, instant(4, "09:00:00")),
        correction(TAKEN_OVER[2], 6_500, instant(4, "09:01:00")),
        trade_message(NEW_ON_DAY_FOUR, Decimal("98.1200"), instant(4, "09:02:00")),
    ]
    return trades, [price_message("MSFT", "392.5000", instant(4, "16:30:00"))]


def trade_message(trade: Trade, price: Decimal, at: int) -> Message:
    return {
        "tradeId": trade.trade_id,
        "symbol": trade.symbol,
        "side": trade.side,
        "quantity": trade.quantity,
        "price": str(price),
        "recordedAt": at,
    }


def correction(trade: Trade, quantity: int, at: int) -> Message:
    """The trade with another quantity, at the price of the first day."""
    corrected = Trade(trade_id=trade.trade_id, symbol=trade.symbol, side=trade.side, quantity=quantity)
    return trade_message(corrected, Decimal(PRICES[trade.symbol]), at)


def price_message(symbol: str, price: str, at: int) -> Message:
    return {"symbol": symbol, "price": price, "quotedAt": at}


def instant(day: int, time: str) -> int:
    """Nanoseconds since 1970."""
    at = datetime.fromisoformat(f"{DAYS[day]}T{time}").replace(tzinfo=UTC)
    return int(at.timestamp()) * 1_000_000_000


def write(topic: str, day: int, messages: Iterable[Message]) -> None:
    lines = [json.dumps(message) + "\n" for message in messages]
    if not lines:
        return
    path = Path("data") / topic / f"day-{day}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")
    print(f"wrote {len(lines)} message{'s' if len(lines) > 1 else ''} to {path.as_posix()}")


def main(arguments: list[str]) -> int:
    days = {"1": day_1, "2": day_2, "3": day_3, "4": day_4}
    if len(arguments) != 1 or arguments[0] not in days:
        print("usage: python generate.py 1|2|3|4", file=sys.stderr)
        return 2
    trades, prices = days[arguments[0]]()
    write("trades", int(arguments[0]), trades)
    write("prices", int(arguments[0]), prices)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
