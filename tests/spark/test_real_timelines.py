"""Published prices, rates, index members and transactions as timelines, delivered late, corrected, withdrawn.

After each run every row, every epoch and every superseded row is compared with a full recompute in plain
Python over what was delivered so far.
"""

import csv
import random
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from itertools import accumulate
from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.harness import TestProject, at

pytestmark = [pytest.mark.spark, pytest.mark.real_data]

Make = Callable[[str], TestProject]
Values = tuple[Any, ...]
Rows = Mapping[str, Mapping[date, Values]]
"""By key and date: the values of a row."""
FOLDER = "3_prices_positions"


@dataclass(kw_only=True)
class Expected:
    """What readers must see of the last output of a timeline: rows, epochs and superseded rows."""

    project: TestProject
    timeline: str
    dataset: str
    key: str
    columns: tuple[str, ...]
    rows: Rows = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    row_epochs: dict[tuple[str, date], int] = field(default_factory=dict)
    superseded: set[Values] = field(default_factory=set)
    watermarks: dict[str, date] = field(default_factory=dict)

    def publish(self, rows: Rows, upto: date | None = None) -> dict[str, set[date]]:
        """Take over the rows of a full recompute. Returns the restated dates of each key that has some.

        `upto` is the last date that is complete: that of the key's last row unless it is given.
        """
        restated: dict[str, set[date]] = {}
        for key, new in rows.items():
            old = self.rows.get(key, {})
            changed = {day for day in old.keys() | new.keys() if old.get(day) != new.get(day)}
            past = {day for day in changed if key in self.watermarks and day <= self.watermarks[key]}
            epoch = self.epochs[key] = self.epochs.get(key, 0) + bool(past)
            self.superseded |= {
                (key, day, *old[day], self.row_epochs[key, day], epoch) for day in changed if day in old
            }
            self.row_epochs |= {(key, day): epoch for day in changed if day in new}
            self.watermarks[key] = upto or max(new)
            if past:
                restated[key] = past
        self.rows = rows
        return restated

    def check(self) -> None:
        columns = (self.key, "date", *self.columns)
        assert self.project.rows(self.dataset, *columns, "epoch") == {
            (key, day, *values, self.row_epochs[key, day])
            for key, rows in self.rows.items()
            for day, values in rows.items()
        }
        states = self.project.rows(f"{self.timeline}_state", self.key, "epoch", "watermark_on", "status")
        assert states == {(key, epoch, self.watermarks[key], "CURRENT") for key, epoch in self.epochs.items()}
        superseded = self.project.rows(f"{self.timeline}_epochs", *columns, "epoch", "superseded_by")
        assert superseded == self.superseded


# Transactions that come late

TRANSACTIONS = """
    project: fills
    sources:
      late_rows: {files: "late/*.csv"}
      whole_rows: {files: "whole/*.csv"}
    datasets:
      late_fills: &fills
        from: late_rows
        columns:
          txn_seq: {type: bigint}
          txn_date: {type: date}
          amount: {type: bigint}
          price: {type: "decimal(18,11)"}
        event_stream: {identity: [txn_seq]}
      whole_fills:
        <<: *fills
        from: whole_rows
    timelines:
      late: &positions
        key: [symbol]
        facts: late_fills
        date: txn_date
        order_by: [txn_seq]
        fold: folds.py:hold
        fields: {shares: bigint, paid: "decimal(28,11)", most: bigint}
        output_dataset: late_positions
      whole:
        <<: *positions
        facts: whole_fills
        output_dataset: whole_positions
"""
HOLD = """
from decimal import Decimal


def hold(state, facts):
    held = state or {"shares": 0, "paid": Decimal(0), "most": 0}
    for fact in facts:
        held["shares"] += fact["amount"]
        held["paid"] += fact["amount"] * fact["price"]
        held["most"] = max(held["most"], held["shares"])
    return held
"""
Fill = dict[str, str]


def read_fills(folder: Path) -> list[Fill]:
    with (folder / FOLDER / "pyfolio_transactions.csv").open() as stream:
        return list(csv.DictReader(stream))


def write_fills(project: TestProject, path: str, fills: list[Fill]) -> None:
    lines = [",".join(fills[0]), *(",".join(fill.values()) for fill in fills)]
    project.write(path, "\n".join(lines) + "\n")


def hold(fills: Iterable[Fill]) -> dict[str, dict[date, Values]]:
    """Shares, money paid and the most shares ever, of each symbol after each date with transactions."""
    amounts: dict[str, dict[date, list[tuple[int, Decimal]]]] = defaultdict(lambda: defaultdict(list))
    for fill in fills:
        amount = int(fill["amount"])
        on = date.fromisoformat(fill["txn_date"])
        amounts[fill["symbol"]][on].append((amount, amount * Decimal(fill["price"])))
    held: dict[str, dict[date, Values]] = {}
    for symbol, by_date in amounts.items():
        assert all(len(of_date) == 1 for of_date in by_date.values()), "order within a date does not matter"
        days = sorted(by_date)
        shares = list(accumulate(by_date[day][0][0] for day in days))
        paid = accumulate(by_date[day][0][1] for day in days)
        most = accumulate(shares, max, initial=0)
        next(most)
        held[symbol] = dict(zip(days, zip(shares, paid, most, strict=True), strict=True))
    return held


def test_transactions_that_come_late_end_as_if_they_had_come_in_time(
    make_project: Make, shared_data: Path
) -> None:
    fills = read_fills(shared_data)
    held_back = [fill for fill in fills if int(fill["txn_seq"]) % 50 == 0]
    in_time = [fill for fill in fills if int(fill["txn_seq"]) % 50]
    random.Random(15).shuffle(held_back)
    first_late = [fill for fill in held_back if fill["txn_date"] < "2008"][:4]
    others = [fill for fill in held_back if fill not in first_late]
    deliveries = [
        [fill for fill in in_time if fill["txn_date"] < "2008"],
        [*first_late, *(fill for fill in in_time if "2008" <= fill["txn_date"] < "2009")],
        [fill for fill in in_time if "2009" <= fill["txn_date"] < "2009-10"],
        [*others[::2], *(fill for fill in in_time if fill["txn_date"] >= "2009-10")],
        others[1::2],
    ]
    project = make_project(TRANSACTIONS)
    project.write("folds.py", HOLD)
    columns = ("shares", "paid", "most")
    late = Expected(project=project, timeline="late", dataset="late_positions", key="symbol", columns=columns)
    whole = Expected(
        project=project, timeline="whole", dataset="whole_positions", key="symbol", columns=columns
    )
    write_fills(project, "whole/all.csv", fills)
    whole.publish(hold(fills))
    restated: list[set[str]] = []

    for number, delivery in enumerate(deliveries):
        write_fills(project, f"late/{number}.csv", delivery)
        project.run()
        so_far = hold(fill for part in deliveries[: number + 1] for fill in part)
        restated.append(set(late.publish(so_far)))
        late.check()

    whole.check()
    assert late.rows == whole.rows
    assert {symbol: rows[max(rows)][0] for symbol, rows in late.rows.items()} == {
        "AMD": 2_299,
        "CERN": 484,
        "COST": 955,
        "DELL": 3_817,
        "GPS": 1_466,
        "INTC": 1_120,
        "MMM": -27,
    }
    everyone = set(late.rows)
    reached = {fill["symbol"] for fill in first_late}
    assert restated == [set(), reached, set(), everyone, everyone]
    assert set() < reached < everyone
    assert sum(late.epochs.values()) == sum(map(len, restated))
    assert set(whole.epochs.values()) == {0}
    project.assert_verified("late", "whole")


# Prices that are corrected and withdrawn

PRICES = """
    project: commodities
    sources:
      trade_lines: {files: "trades/*.jsonl"}
      contract_lines: {files: "contracts/*.jsonl"}
      price_rows: {files: "prices/*.parquet"}
      rate_rows: {files: "rates/*.parquet"}
    datasets:
      trades:
        from: trade_lines
        columns: {id: id, commodity: what, traded_on: {path: on, type: date}, amount: {path: n, type: bigint}}
        event_stream: {identity: [id]}
      contracts:
        from: contract_lines
        columns: {instrument: what, currency: currency, seq: {path: seq, type: bigint}}
        record_set: {key: [instrument], order_by: [seq]}
      prices:
        from: price_rows
        record_set: {key: [instrument, price_date], order_by: [vintage_seq], deleted: "op = 'D'"}
      rates:
        from: rate_rows
        where: currency = 'USD'
        record_set: {key: [currency, rate_date], order_by: [vintage_seq]}
    timelines:
      stock:
        key: [commodity]
        facts: trades
        date: traded_on
        order_by: [id]
        fold: folds.py:add
        fields: {amount: bigint}
        output_dataset: stock_history
        valuation:
          output_dataset: stock_daily
          calendar: weekdays
          references:
            contract: {dataset: contracts, on: {instrument: commodity}}
            price: {dataset: prices, on: {instrument: commodity}, date: price_date}
            fx: {dataset: rates, on: {currency: contract.currency}, date: rate_date, required: true}
          columns:
            price_on: price.price_date
            dollars: price.close
            rate: fx.rate
            euros: amount * price.close / fx.rate
"""
ADD = """
def add(state, facts):
    return {"amount": (state or {"amount": 0})["amount"] + sum(fact["amount"] for fact in facts)}
"""
TRADES = (
    # Commodity, date, amount. 2018-01-06 is a Saturday.
    ("BRENT", date(2017, 12, 28), 1_000),
    ("BRENT", date(2022, 6, 1), -250),
    ("WTI", date(2017, 12, 28), 700),
    ("WTI", date(2020, 4, 20), 300),
    ("HENRYHUB", date(2018, 1, 2), 5_000),
    ("HENRYHUB", date(2018, 1, 6), 500),
    ("HENRYHUB", date(2024, 9, 2), -1_500),
)
LAST_RATE_ON = date(2026, 4, 13)


@dataclass(kw_only=True)
class Market:
    """Prices and rates in euros as far as they were delivered. It writes their files."""

    project: TestProject
    price_file: Path
    rate_file: Path
    vintages: dict[str, int] = field(default_factory=dict)
    """By instrument: the last vintage of its prices."""
    rate_vintage: int = 0
    deliveries: int = 0
    prices: dict[str, dict[date, float | None]] = field(default_factory=lambda: defaultdict(dict))
    rates: dict[date, float] = field(default_factory=dict)
    """In dollars."""

    def deliver_prices(self, vintages: Mapping[str, int]) -> None:
        new = " or ".join(
            f"instrument = '{name}' and vintage_seq > {self.vintages.get(name, 0)} and vintage_seq <= {upto}"
            for name, upto in vintages.items()
        )
        changes = f"from read_parquet('{self.price_file}') where {new}"
        self._write("prices", f"select * {changes} order by hash(price_date)")
        fetched = duckdb.execute(
            f"select instrument, price_date, close, op {changes} order by vintage_seq"
        ).fetchall()
        for instrument, day, close, operation in fetched:
            if operation == "D":
                del self.prices[instrument][day]
            else:
                self.prices[instrument][day] = close
        self.vintages |= vintages

    def deliver_rates(self, on: date) -> None:
        """The vintages up to the first one that has a rate of this date or a later one."""
        everything = f"from read_parquet('{self.rate_file}')"
        upto = duckdb.execute(f"select min(vintage_seq) {everything} where rate_date >= '{on}'").fetchall()
        new = f"{everything} where vintage_seq > {self.rate_vintage} and vintage_seq <= {upto[0][0]}"
        self._write("rates", f"select * {new}")
        self.rates |= dict(duckdb.execute(f"select rate_date, rate {new} and currency = 'USD'").fetchall())
        self.rate_vintage = upto[0][0]

    def last_price_on(self) -> date:
        """The last date with a price of both kinds of oil. Rates end earlier than prices."""
        return min(LAST_RATE_ON, *(max(self.prices[name]) for name in ("BRENT", "WTI")))

    def value(self, upto: date) -> dict[str, dict[date, Values]]:
        """Amount, date of the price, price, rate and euros, on each weekday from the first trade on."""
        valued: dict[str, dict[date, Values]] = {}
        rate_days = sorted(self.rates)
        for name in sorted({name for name, _, _ in TRADES}):
            price_days = sorted(self.prices[name])
            day = min(on for traded, on, _ in TRADES if traded == name)
            rows: dict[date, Values] = {}
            while day <= upto:
                if day.weekday() < 5:
                    amount = sum(n for traded, on, n in TRADES if traded == name and on <= day)
                    price_on = price_days[bisect_right(price_days, day) - 1]
                    price = self.prices[name][price_on]
                    rate = self.rates[rate_days[bisect_right(rate_days, day) - 1]]
                    euros = None if price is None else amount * price / rate
                    rows[day] = (amount, price_on, price, rate, euros)
                day += timedelta(days=1)
            valued[name] = rows
        return valued

    def _write(self, folder: str, query: str) -> None:
        self.deliveries += 1
        (self.project.folder / folder).mkdir(exist_ok=True)
        target = self.project.folder / folder / f"{self.deliveries}.parquet"
        duckdb.execute(f"copy ({query}) to '{target}' (format parquet)")


def test_prices_restate_the_dates_that_they_reach_and_appended_rates_none(
    make_project: Make, shared_data: Path
) -> None:
    project = make_project(PRICES)
    project.write("folds.py", ADD)
    project.lines(
        "trades/1.jsonl",
        *({"id": str(i), "what": name, "on": f"{on}", "n": n} for i, (name, on, n) in enumerate(TRADES)),
    )
    names = ("BRENT", "WTI", "HENRYHUB")
    project.lines("contracts/1.jsonl", *({"what": n, "currency": "USD", "seq": 1} for n in names))
    folder = shared_data / FOLDER
    market = Market(
        project=project,
        price_file=folder / "eia_price_vintages.parquet",
        rate_file=folder / "ecb_fx_daily.parquet",
    )
    stock = Expected(
        project=project,
        timeline="stock",
        dataset="stock_daily",
        key="commodity",
        columns=("amount", "price_on", "dollars", "rate", "euros"),
    )

    def run(upto: date) -> dict[str, set[date]]:
        project.run(at(f"{upto}T12:00:00Z"))
        restated = stock.publish(market.value(upto), upto)
        stock.check()
        return restated

    def deliver(oil: int, gas: int) -> dict[str, set[date]]:
        market.deliver_prices({"BRENT": oil, "WTI": oil, "HENRYHUB": gas})
        market.deliver_rates(market.last_price_on())
        return run(market.last_price_on())

    assert deliver(oil=33, gas=1) == {}
    assert stock.rows["HENRYHUB"][date(2018, 1, 5)][1:3] == (date(2018, 1, 5), None)
    assert stock.rows["BRENT"][date(2022, 10, 31)][2] == 94.64

    # Each of these begins with a correction of Brent's last price. Prices of holidays in between came and
    # were withdrawn within one delivery.
    assert deliver(oil=47, gas=1) == {"BRENT": {date(2022, 10, 31)}}
    assert stock.rows["BRENT"][date(2022, 10, 31)][2] == 93.30

    # Gas has no vintage for six years, in which the last price of the first one counts.
    restated = deliver(oil=79, gas=2)
    stale = {day for day in stock.rows["HENRYHUB"] if date(2018, 10, 15) < day <= date(2023, 2, 27)}
    assert restated == {"BRENT": {date(2023, 2, 27)}, "HENRYHUB": stale}

    # Prices of six Sundays are withdrawn, three are corrected, the last of them with all that follow, and two
    # days come that had no price, each before a holiday.
    flipping = {date(2020, 7, 2), date(2020, 7, 3), date(2020, 12, 31), date(2021, 1, 1)}
    corrected = {date(2024, 8, 26), date(2024, 9, 3)}
    follow = {day for day in stock.rows["HENRYHUB"] if day >= date(2024, 10, 8)}
    assert deliver(oil=79, gas=3) == {"HENRYHUB": flipping | corrected | follow}

    # Rates alone, and the dates that they make complete.
    epochs = dict(stock.epochs)
    market.deliver_rates(date(2024, 10, 25))
    assert run(date(2024, 10, 25)) == {}
    assert stock.epochs == epochs

    # The prices of those dates. A price of WTI on a holiday is withdrawn, and the two days of gas flip.
    waited = {day for day in stock.rows["WTI"] if day > date(2024, 10, 15)}
    assert deliver(oil=81, gas=6) == {
        "BRENT": waited,
        "WTI": waited | {date(2024, 10, 14)},
        "HENRYHUB": waited | flipping,
    }

    # All that is left. The two days flip out, and out and in again, within one delivery.
    assert deliver(oil=176, gas=106) == {"HENRYHUB": flipping}
    assert stock.epochs == {"BRENT": 3, "WTI": 1, "HENRYHUB": 4}
    assert stock.rows["HENRYHUB"][date(2020, 7, 3)][1:3] == (date(2020, 7, 2), 1.58)
    assert stock.rows["HENRYHUB"][date(2025, 11, 24)][2] == 4.15
    assert stock.rows["HENRYHUB"][date(2025, 12, 26)][1] < date(2025, 12, 26)
    # Not verified too: every row was compared, and `verify` compares each with all earlier prices and rates.


# Members of an index, which has no dates

MEMBERS = """
    project: members
    sources:
      fill_rows: {files: "fills/*.csv"}
      member_rows: {files: "members/*.parquet"}
    datasets:
      fills:
        from: fill_rows
        columns: {txn_seq: {type: bigint}, txn_date: {type: date}, amount: {type: bigint}}
        event_stream: {identity: [txn_seq]}
      members:
        from: member_rows
        record_set: {key: [symbol], order_by: [snapshot_seq], deleted: "op = 'D'"}
    timelines:
      positions:
        key: [symbol]
        facts: fills
        date: txn_date
        order_by: [txn_seq]
        fold: folds.py:add
        fields: {amount: bigint}
        output_dataset: position_history
        valuation:
          output_dataset: position_daily
          calendar: weekdays
          references:
            member: {dataset: members, on: [symbol]}
          columns: {sector: member.sector}
"""
LAST_ON = date(2009, 12, 31)


def hold_daily(fills: list[Fill]) -> dict[str, dict[date, int]]:
    """Shares of each symbol on each weekday, from its first date on."""
    daily = {}
    for symbol, history in hold(fills).items():
        days = sorted(history)
        weekdays = (days[0] + timedelta(days=n) for n in range((LAST_ON - days[0]).days + 1))
        daily[symbol] = {
            day: history[days[bisect_right(days, day) - 1]][0] for day in weekdays if day.weekday() < 5
        }
    return daily


def test_a_sector_that_changes_restates_every_date_of_its_symbols_and_of_no_other(
    make_project: Make, shared_data: Path
) -> None:
    fills = read_fills(shared_data)
    changes = shared_data / FOLDER / "sp500_constituent_changes.parquet"
    project = make_project(MEMBERS)
    project.write("folds.py", ADD)
    write_fills(project, "fills/all.csv", fills)
    (project.folder / "members").mkdir()
    held = hold_daily(fills)
    positions = Expected(
        project=project,
        timeline="positions",
        dataset="position_daily",
        key="symbol",
        columns=("amount", "sector"),
    )
    sectors: dict[str, str] = {}

    def deliver(first: int, last: int) -> set[str]:
        """The symbols that versions of the index restate: all dates of each."""
        versions = f"from read_parquet('{changes}') where snapshot_seq between {first} and {last}"
        target = project.folder / f"members/{first}.parquet"
        duckdb.execute(f"copy (select * {versions}) to '{target}' (format parquet)")
        for operation, symbol, sector in duckdb.execute(
            f"select op, symbol, sector {versions} order by snapshot_seq"
        ).fetchall():
            if operation == "D":
                del sectors[symbol]
            else:
                sectors[symbol] = sector
        project.run(at(f"{LAST_ON}T12:00:00Z"))
        valued = {
            symbol: {day: (amount, sectors.get(symbol)) for day, amount in days.items()}
            for symbol, days in held.items()
        }
        restated = positions.publish(valued, LAST_ON)
        positions.check()
        assert all(dates == set(held[symbol]) for symbol, dates in restated.items())
        return set(restated)

    assert deliver(1, 7) == set()
    assert deliver(8, 23) == {"AMD", "DELL"}
    assert (sectors.get("AMD"), sectors.get("DELL")) == (None, None)
    assert deliver(24, 63) == {"AMD", "CERN", "GPS"}
    assert (sectors["AMD"], sectors.get("CERN"), sectors.get("GPS")) == ("Information Technology", None, None)
    before = positions.rows
    assert deliver(64, 64) == {"AMD", "COST", "INTC", "MMM"}
    assert {symbol: sectors[symbol] for symbol in ("AMD", "COST", "INTC", "MMM")} == {
        "AMD": "Semiconductors",
        "COST": "Hypermarkets & Super Centers",
        "INTC": "Semiconductors",
        "MMM": "Industrial Conglomerates",
    }
    assert deliver(65, 65) == {"AMD", "COST", "INTC", "MMM"}
    assert positions.rows == before
    assert deliver(66, 190) == {"DELL"}
    assert positions.epochs == {"AMD": 4, "CERN": 1, "COST": 2, "DELL": 2, "GPS": 1, "INTC": 2, "MMM": 2}
    project.assert_verified("positions")
