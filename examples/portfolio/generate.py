"""Six days of a fund administrator in Dublin: 60 portfolios, eight securities, three currencies.

`python generate.py DAY` writes the messages of day 1 to 6 under data/, and `python generate.py DAY later`
what comes later on day 4, 5 or 6. The messages are always the same. Each thing that goes wrong is a function
below, named after it.
"""

import json
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from typing import Any

Message = dict[str, Any]
Position = tuple[str, str]

SEED = 2024
PORTFOLIOS = tuple(f"P{number:02}" for number in range(1, 61))
DATES = {
    1: date(2024, 3, 21),
    2: date(2024, 3, 22),
    3: date(2024, 3, 25),
    4: date(2024, 3, 26),
    5: date(2024, 3, 27),
    6: date(2024, 3, 28),
}
DAYS_WITH_MORE_LATER = (4, 5, 6)
OPENED_ON = date(2024, 2, 5)
"""The first business date."""
CALENDAR_ENDS_ON = date(2024, 4, 30)
EASTER = (date(2024, 3, 29), date(2024, 4, 1))
FORGOTTEN_HOLIDAY = date(2024, 3, 18)
"""Saint Patrick's Day was a Sunday, so the Monday after it was free."""
POUNDS_SINCE = date(2024, 2, 19)
"""Nobody held anything in pounds before, so nobody asked for the rate."""

FUND = "WORLD"
SECURITIES = {
    FUND: ("World Index Fund", "EUR", "104.00"),
    "ACME": ("Acme Corporation", "USD", "205.00"),
    "BORG": ("Borg Robotics", "EUR", "48.00"),
    "CIRRUS": ("Cirrus Computing", "USD", "131.00"),
    "DUNES": ("Dunes Energy", "GBP", "12.50"),
    "ELMS": ("Elms Property Fund", "EUR", "1012.00"),
    "FJORD": ("Fjord Shipping", "GBP", "77.00"),
    "GROVE": ("Grove Foods", "EUR", "25.00"),
}
"""Name, currency, and the price at the beginning."""
LISTED_ON_DAY_TWO = "GROVE"
PRICED_ON_FRIDAYS = "ELMS"
SATURDAY = date(2024, 3, 2)
PRICED_ON_SATURDAY = "BORG"
"""It has a price of that Saturday and none of the Monday after it."""
RATES = {"USD": "0.92500", "GBP": "1.17000"}

RESTATED_ON = date(2024, 3, 20)
"""The date whose price of the fund is restated on the fourth day."""

OF_THE_STORY: dict[Position, str] = {
    ("P07", "ACME"): "a back-dated sale",
    ("P33", "BORG"): "a sale that comes while the fund is being restated",
    ("P41", "CIRRUS"): "two back-dated trades in one run",
    ("P42", "CIRRUS"): "two back-dated trades in two runs",
    ("P15", "BORG"): "a cancelled last trade",
    ("P22", "CIRRUS"): "a trade that was booked on the wrong security",
    ("P22", "ACME"): "the security it belongs to",
    ("P50", "DUNES"): "a sale of more than is held",
    ("P30", "DUNES"): "a purchase before the first rate",
    ("P05", "BORG"): "a trade on a Saturday",
    ("P09", "FJORD"): "sold out at cost",
    ("P26", "ELMS"): "sold out at a profit",
    ("P20", LISTED_ON_DAY_TWO): "bought before its first price",
}
"""Positions that only functions below trade."""


@dataclass
class Delivery:
    """What arrives together."""

    transactions: list[Message] = field(default_factory=list)
    market_prices: list[Message] = field(default_factory=list)
    fx_rates: list[Message] = field(default_factory=list)
    business_dates: list[Message] = field(default_factory=list)
    securities: list[Message] = field(default_factory=list)


def weekdays(first: date, last: date) -> list[date]:
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    return [day for day in days if day.weekday() < 5]


def at(day: date, time: str) -> str:
    """An instant. In winter, Dublin's clocks show UTC."""
    return f"{day}T{time}:00Z"


class Markets:
    """Prices and rates of every weekday, from random steps."""

    def __init__(self, chance: random.Random) -> None:
        days = weekdays(OPENED_ON, max(DATES.values()))
        self.prices = {
            (security, day): price
            for security, (_, _, start) in SECURITIES.items()
            for day, price in walk(chance, days, Decimal(start), Decimal("0.012"), Decimal("0.01"))
        }
        self.rates = {
            (currency, day): rate
            for currency, start in RATES.items()
            for day, rate in walk(chance, days, Decimal(start), Decimal("0.003"), Decimal("0.00001"))
        }

    def price_messages(self, days: Iterable[date]) -> list[Message]:
        """The closing prices of some days, as far as there are any."""
        messages = []
        for day in days:
            for security in SECURITIES:
                if security == LISTED_ON_DAY_TWO and day < DATES[3]:
                    continue
                if security == PRICED_ON_FRIDAYS and day.weekday() != 4:
                    continue
                if security == PRICED_ON_SATURDAY and day == SATURDAY + timedelta(days=2):
                    messages.append(price_message(security, SATURDAY, self.prices[security, day], "17:00"))
                    continue
                messages.append(price_message(security, day, self.prices[security, day], "17:00"))
        return messages

    def rate_messages(self, days: Iterable[date]) -> list[Message]:
        return [
            rate_message(currency, day, self.rates[currency, day], at(day, "16:30"))
            for day in days
            for currency in RATES
            if currency != "GBP" or day >= POUNDS_SINCE
        ]


def walk(
    chance: random.Random, days: Iterable[date], start: Decimal, most: Decimal, unit: Decimal
) -> list[tuple[date, Decimal]]:
    """A value for each day. Each differs from the one before by at most a share `most` of it."""
    steps, value = [], start
    for day in days:
        step = Decimal(chance.randrange(-100, 101)) / 100
        value = (value * (1 + step * most)).quantize(unit, rounding=ROUND_HALF_UP)
        steps.append((day, value))
    return steps


def price_message(security: str, day: date, price: Decimal, time: str) -> Message:
    return {
        "securityId": security,
        "priceDate": str(day),
        "price": str(price),
        "recordedAt": at(day, time),
    }


def rate_message(currency: str, day: date, rate: Decimal, recorded_at: str) -> Message:
    return {"currency": currency, "rateDate": str(day), "rate": str(rate), "recordedAt": recorded_at}


def date_message(day: date, is_open: bool, recorded_at: str) -> Message:
    return {"date": str(day), "open": is_open, "recordedAt": recorded_at}


def security_message(security: str, recorded_at: str) -> Message:
    name, currency, _ = SECURITIES[security]
    return {"securityId": security, "name": name, "currency": currency, "recordedAt": recorded_at}


@dataclass
class Book:
    """Whoever books transactions, and what every position holds."""

    chance: random.Random
    markets: Markets
    booked: int = 0
    held: dict[Position, int] = field(default_factory=dict)

    def trade(
        self,
        position: Position,
        quantity: int,
        day: date,
        price: str | None = None,
        recorded_at: str | None = None,
    ) -> Message:
        """A purchase, or a sale if the quantity is negative. Without a price it is near that day's close."""
        self.booked += 1
        self.held[position] = self.held.get(position, 0) + quantity
        portfolio, security = position
        minute = self.chance.randrange(9 * 60, 16 * 60)
        time = f"{minute // 60:02}:{minute % 60:02}"
        return {
            "transactionId": f"T{self.booked:04}",
            "portfolioId": portfolio,
            "securityId": security,
            "side": "BUY" if quantity > 0 else "SELL",
            "quantity": str(abs(quantity)),
            "price": price or str(self.near(security, day)),
            "tradeDate": str(day),
            "executedAt": at(day, time),
            "recordedAt": recorded_at or at(day, "16:15"),
        }

    def near(self, security: str, day: date) -> Decimal:
        close = self.markets.prices[security, day]
        cents = self.chance.randrange(-40, 41)
        return (close * (1 + Decimal(cents) / 10000)).quantize(Decimal("0.0001"))

    def first_trades(self, position: Position) -> list[Message]:
        """One purchase, perhaps another, perhaps a sale of a part."""
        first = POUNDS_SINCE if SECURITIES[position[1]][1] == "GBP" else OPENED_ON
        days = sorted(self.chance.sample(weekdays(first, DATES[1]), 3))
        bought = 10 * self.chance.randrange(4, 40)
        trades = [self.trade(position, bought, days[0])]
        if self.chance.random() < 0.5:
            trades.append(self.trade(position, 10 * self.chance.randrange(1, 20), days[1]))
        if self.chance.random() < 0.4:
            trades.append(self.trade(position, -self.chance.randrange(1, bought // 2), days[2]))
        return trades

    def ordinary_trades(self, day: date, count: int) -> list[Message]:
        """Some positions that have nothing to do with the story are added to, or reduced."""
        positions = [position for position in self.held if position not in OF_THE_STORY]
        trades = []
        for position in self.chance.sample(positions, count):
            sells = self.chance.random() < 0.4
            most = self.held[position] // 4 if sells else 50
            quantity = self.chance.randrange(1, most)
            trades.append(self.trade(position, -quantity if sells else quantity, day))
        return trades


# What happens


def first_day(book: Book) -> Delivery:
    """Everything up to now: the calendar, the securities, their prices, the rates and the transactions."""
    days = weekdays(OPENED_ON, DATES[1])
    start = at(date(2024, 1, 2), "08:00")
    delivery = Delivery(
        market_prices=book.markets.price_messages(days),
        fx_rates=[
            rate_message("EUR", date(2024, 1, 1), Decimal(1), start),
            *book.markets.rate_messages(days),
        ],
        business_dates=[
            date_message(day, True, start)
            for day in weekdays(OPENED_ON, CALENDAR_ENDS_ON)
            if day not in EASTER
        ],
        securities=[security_message(name, start) for name in SECURITIES if name != LISTED_ON_DAY_TWO],
    )
    delivery.transactions += everybody_buys_the_fund(book)
    for portfolio in PORTFOLIOS:
        others = [
            security
            for security in SECURITIES
            if security not in (FUND, LISTED_ON_DAY_TWO) and (portfolio, security) not in OF_THE_STORY
        ]
        for security in book.chance.sample(others, 2):
            delivery.transactions += book.first_trades((portfolio, security))
    delivery.transactions += trades_of_the_story(book)
    book.chance.shuffle(delivery.transactions)
    return delivery


def everybody_buys_the_fund(book: Book) -> list[Message]:
    days = weekdays(OPENED_ON, date(2024, 2, 16))
    return [
        book.trade((portfolio, FUND), 10 * book.chance.randrange(20, 90), book.chance.choice(days))
        for portfolio in PORTFOLIOS
    ]


def trades_of_the_story(book: Book) -> list[Message]:
    """What happened before the story begins, in the positions that it is about."""
    return [
        book.trade(("P07", "ACME"), 100, date(2024, 3, 4), price="200"),
        book.trade(("P07", "ACME"), 50, date(2024, 3, 14), price="220"),
        book.trade(("P33", "BORG"), 200, date(2024, 2, 20)),
        book.trade(("P41", "CIRRUS"), 100, date(2024, 2, 14), price="130"),
        book.trade(("P41", "CIRRUS"), 20, date(2024, 3, 19), price="133"),
        book.trade(("P42", "CIRRUS"), 100, date(2024, 2, 14), price="130"),
        book.trade(("P42", "CIRRUS"), 20, date(2024, 3, 19), price="133"),
        book.trade(("P15", "BORG"), 100, date(2024, 2, 22)),
        book.trade(("P15", "BORG"), 60, date(2024, 3, 20)),
        book.trade(("P22", "ACME"), 40, date(2024, 2, 27)),
        book.trade(("P22", "CIRRUS"), 25, date(2024, 3, 13), price="206.5"),
        book.trade(("P50", "DUNES"), 120, date(2024, 2, 21)),
        a_trade_on_a_saturday(book),
        book.trade(("P09", "FJORD"), 30, date(2024, 2, 28), price="76.5"),
        book.trade(("P09", "FJORD"), -30, date(2024, 3, 12), price="76.5"),
        book.trade(("P26", "ELMS"), 12, date(2024, 2, 12), price="1008"),
        book.trade(("P26", "ELMS"), -12, date(2024, 3, 15), price="1020"),
    ]


def a_trade_on_a_saturday(book: Book) -> Message:
    """It counts from Monday on."""
    return book.trade(("P05", "BORG"), 70, SATURDAY, price="48.2")


def second_day(book: Book) -> Delivery:
    """An ordinary Friday. A security is listed and bought that has no price yet."""
    delivery = evening(book, DATES[2])
    delivery.securities.append(security_message(LISTED_ON_DAY_TWO, at(DATES[2], "07:00")))
    delivery.transactions.append(book.trade(("P20", LISTED_ON_DAY_TWO), 90, DATES[2]))
    return delivery


def evening(book: Book, *days: date) -> Delivery:
    """Trades, closing prices and rates of one or more days."""
    return Delivery(
        transactions=[trade for day in days for trade in book.ordinary_trades(day, 5)],
        market_prices=book.markets.price_messages(days),
        fx_rates=book.markets.rate_messages(days),
    )


def third_day(book: Book) -> Delivery:
    """A sale of two weeks ago is booked: 40 of P07's ACME, between two purchases."""
    delivery = evening(book, DATES[3])
    delivery.transactions.append(
        book.trade(("P07", "ACME"), -40, date(2024, 3, 11), price="215", recorded_at=at(DATES[3], "11:20"))
    )
    return delivery


def fourth_day(book: Book) -> Delivery:
    """The fund restates one price of last week, at noon. Every portfolio holds it."""
    price = book.markets.prices[FUND, RESTATED_ON] - Decimal("0.50")
    restated = price_message(FUND, RESTATED_ON, price, "17:00")
    return Delivery(market_prices=[{**restated, "recordedAt": at(DATES[4], "11:45")}])


def later_on_the_fourth_day(book: Book) -> Delivery:
    """A trade of yesterday comes while the portfolios are being restated."""
    trade = book.trade(("P33", "BORG"), -80, DATES[3], recorded_at=at(DATES[4], "12:05"))
    return Delivery(transactions=[trade])


def fifth_day(book: Book) -> Delivery:
    """Two dates become due. Back-dated trades come: two of P41, and the first of two of P42."""
    delivery = evening(book, DATES[4], DATES[5])
    recorded_at = at(DATES[5], "17:30")
    delivery.transactions += [
        book.trade(("P41", "CIRRUS"), 10, date(2024, 3, 6), price="128", recorded_at=recorded_at),
        book.trade(("P41", "CIRRUS"), -105, date(2024, 3, 12), price="135", recorded_at=recorded_at),
        book.trade(("P42", "CIRRUS"), 10, date(2024, 3, 6), price="128", recorded_at=recorded_at),
    ]
    return delivery


def later_on_the_fifth_day(book: Book) -> Delivery:
    """The second of P42."""
    recorded_at = at(DATES[5], "18:35")
    return Delivery(
        transactions=[
            book.trade(("P42", "CIRRUS"), -105, date(2024, 3, 12), price="135", recorded_at=recorded_at)
        ]
    )


def sixth_day(book: Book, first: Delivery) -> Delivery:
    """A cancellation, a correction, a holiday, a sale of more than is held, and a missing rate."""
    delivery = evening(book, DATES[6])
    delivery.transactions += [
        cancelled_last_trade(first),
        booked_on_the_wrong_security(first),
        a_sale_of_more_than_is_held(book),
        a_purchase_before_the_first_rate(book),
    ]
    delivery.business_dates.append(date_message(FORGOTTEN_HOLIDAY, False, at(DATES[6], "09:00")))
    return delivery


def cancelled_last_trade(first: Delivery) -> Message:
    trade = find_trade(first, ("P15", "BORG"), date(2024, 3, 20))
    return {**trade, "status": "CANCELLED", "recordedAt": at(DATES[6], "10:00")}


def booked_on_the_wrong_security(first: Delivery) -> Message:
    """P22 never bought CIRRUS: it was ACME. Now it has no transaction in CIRRUS."""
    trade = find_trade(first, ("P22", "CIRRUS"), date(2024, 3, 13))
    return {**trade, "securityId": "ACME", "recordedAt": at(DATES[6], "10:30")}


def a_sale_of_more_than_is_held(book: Book) -> Message:
    """P50 has 120 of DUNES. Somebody typed a zero too many."""
    trade = book.trade(("P50", "DUNES"), -50, DATES[6], price="12.9")
    return {**trade, "quantity": "500"}


def a_purchase_before_the_first_rate(book: Book) -> Message:
    """P30 bought DUNES, in pounds, two business dates before the first rate of the pound."""
    return book.trade(
        ("P30", "DUNES"), 300, date(2024, 2, 15), price="12.6", recorded_at=at(DATES[6], "14:00")
    )


def later_on_the_sixth_day(book: Book, sixth: Delivery) -> Delivery:
    """The sale is corrected, and the missing rates come."""
    sale = find_trade(sixth, ("P50", "DUNES"), DATES[6])
    recorded_at = at(DATES[6], "18:45")
    return Delivery(
        transactions=[{**sale, "quantity": "50", "recordedAt": recorded_at}],
        fx_rates=[
            rate_message("GBP", day, book.markets.rates["GBP", day], recorded_at)
            for day in weekdays(date(2024, 2, 14), POUNDS_SINCE - timedelta(days=1))
        ],
    )


def find_trade(delivery: Delivery, position: Position, day: date) -> Message:
    """The one transaction of a position on a day."""
    (trade,) = (
        message
        for message in delivery.transactions
        if (message["portfolioId"], message["securityId"], message["tradeDate"]) == (*position, str(day))
    )
    return trade


def make_deliveries() -> dict[tuple[int, str], Delivery]:
    """Every delivery, by its day and either nothing or `later`, in the order in which they come."""
    chance = random.Random(SEED)
    book = Book(chance=chance, markets=Markets(chance))
    first, second, third = first_day(book), second_day(book), third_day(book)
    fourth, fourth_later = fourth_day(book), later_on_the_fourth_day(book)
    fifth, fifth_later = fifth_day(book), later_on_the_fifth_day(book)
    sixth = sixth_day(book, first)
    return {
        (1, ""): first,
        (2, ""): second,
        (3, ""): third,
        (4, ""): fourth,
        (4, "later"): fourth_later,
        (5, ""): fifth,
        (5, "later"): fifth_later,
        (6, ""): sixth,
        (6, "later"): later_on_the_sixth_day(book, sixth),
    }


def write(path: Path, messages: list[Message]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")
    count = "1 message" if len(messages) == 1 else f"{len(messages):,} messages"
    print(f"wrote {count} to {path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}")


def main(arguments: list[str]) -> int:
    calls = [[str(day)] for day in DATES] + [[str(day), "later"] for day in DAYS_WITH_MORE_LATER]
    if arguments not in calls:
        print("usage: python generate.py DAY, where DAY is 1 to 6; or DAY later, from 4 on", file=sys.stderr)
        return 2
    day, when = int(arguments[0]), "".join(arguments[1:])
    delivery = make_deliveries()[day, when]
    name = "-".join(["day", *arguments]) + ".jsonl"
    for folder in ("transactions", "market_prices", "fx_rates", "business_dates", "securities"):
        if messages := getattr(delivery, folder):
            write(Path(__file__).resolve().parent / "data" / folder / name, messages)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
