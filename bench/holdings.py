"""The data of the portfolio benchmark: every portfolio holds every security. Made by DuckDB.

The files are written to the folders of a project's sources, so that everybody reads the same files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import duckdb

from .register import THREADS

KEY = ("portfolio_id", "security_id")
SOURCES = ("transactions", "market_prices", "fx_rates", "securities", "business_dates")
CURRENCIES = ("EUR", "GBP", "USD")
FIRST_ON = date(2014, 1, 1)
_FUTURE_DATES = 30
"""Dates that the calendar has already, and that become due one by one."""
_FILES = 4


@dataclass(slots=True)
class Holdings:
    """Portfolios under `data`, a folder per source, and the files delivered so far."""

    data: Path
    portfolios: int
    securities: int
    dates: int
    """Business dates of the first load."""
    days_between_dates: int = 1
    """1: every weekday is a business date; 7: one day a week is."""
    dates_between_prices: int = 1
    transactions_per_key: int = 20
    delivered: int = 0
    dates_passed: int = 0

    @property
    def keys(self) -> int:
        return self.portfolios * self.securities

    @property
    def rows(self) -> int:
        """Valued rows of the first load."""
        return self.keys * self.dates

    @property
    def transactions(self) -> int:
        return self.keys * self.transactions_per_key

    @property
    def last_on(self) -> date:
        """The last business date with prices."""
        return self.date_at(self.dates + self.dates_passed - 1)

    def date_at(self, place: int) -> date:
        if self.days_between_dates > 1:
            return FIRST_ON + timedelta(days=place * self.days_between_dates)
        first_monday = FIRST_ON - timedelta(days=FIRST_ON.weekday())
        weeks, day = divmod(FIRST_ON.weekday() + place, 5)
        return first_monday + timedelta(weeks=weeks, days=day)

    def correct_price(self, security: int, places: Sequence[int]) -> Path:
        """Correct the price of one security on some dates."""
        number = self._next()
        listed = ", ".join(map(str, places))
        return self._deliver(
            "market_prices",
            f"SELECT {_prices(number)} FROM (SELECT {security} AS s), calendar WHERE place IN ({listed})",
        )

    def pass_date(self) -> None:
        """The prices and the rates of the next business date."""
        self.dates_passed += 1
        self._deliver_references(f"place = {self.dates + self.dates_passed - 1}", self._next())

    def restate_rates(self) -> None:
        """Another rate of every currency on every date."""
        number = self._next()
        self._deliver("fx_rates", self._rates("place < " + str(self.dates + self.dates_passed), number))

    def back_date(self, keys: int, dates: int, *, last: bool = False) -> None:
        """A purchase for each of some keys, dated that many business dates ago.

        The keys are a pseudo-random choice, or the last ones.
        """
        number = self._next()
        order = "k DESC" if last else f"hash(k, {number})"
        on = self.date_at(self.dates + self.dates_passed - 1 - dates)
        self._deliver(
            "transactions",
            f"""
            SELECT {number}::BIGINT * 1000000000 + k AS transaction_id, {_PORTFOLIO} AS portfolio_id,
                {_SECURITY} AS security_id, 'BUY' AS side, (1 + k % 9)::DECIMAL(16, 4) AS quantity,
                (90 + k % 20)::DECIMAL(12, 4) AS price, DATE '{on}' AS transaction_on, {number}::BIGINT AS seq
            FROM (
                SELECT k, k // {self.securities} AS p, k % {self.securities} AS s FROM range({self.keys}) t(k)
                ORDER BY {order} LIMIT {keys}
            )
            """,
        )

    def _next(self) -> int:
        self.delivered += 1
        return self.delivered

    def _deliver(self, source: str, sql: str, part: int = 0) -> Path:
        path = self.data / source / f"{self.delivered:03}_{part}.parquet"
        with duckdb.connect(config={"threads": THREADS}) as connection:
            self._make_calendar(connection)
            connection.execute(f"COPY ({sql}) TO '{path}' (FORMAT parquet)")
        return path

    def _make_calendar(self, connection: duckdb.DuckDBPyConnection) -> None:
        days = ", ".join(
            f"({place}, DATE '{self.date_at(place)}')" for place in range(self.dates + _FUTURE_DATES)
        )
        connection.execute(f"CREATE TABLE calendar AS SELECT * FROM (VALUES {days}) t(place, on_)")

    def _deliver_references(self, condition: str, number: int) -> None:
        every = f"{condition} AND place % {self.dates_between_prices} = 0"
        self._deliver(
            "market_prices",
            f"SELECT {_prices(number)} FROM range({self.securities}) t(s), calendar WHERE {every}",
        )
        self._deliver("fx_rates", self._rates(condition, number))

    def _rates(self, condition: str, number: int) -> str:
        rate = f"0.7 + (hash(c, place, {number}) % 40000) / 100000"
        return (
            f"SELECT {list(CURRENCIES)}[c + 1] AS currency, on_ AS rate_on, ({rate})::DECIMAL(7, 5) AS rate,"
            f" {number}::BIGINT AS seq FROM range({len(CURRENCIES)}) t(c), calendar WHERE {condition}"
        )


_PORTFOLIO = "format('P{:05d}', p)"
_SECURITY = "format('S{:03d}', s)"


def _prices(number: int) -> str:
    price = f"(80 + (hash(s, place, {number}) % 400000) / 10000)::DECIMAL(12, 4)"
    return f"{_SECURITY} AS security_id, on_ AS price_on, {price} AS price, {number}::BIGINT AS seq"


def make_holdings(holdings: Holdings) -> Holdings:
    """Write the first load. Each key buys on the first date, so it is valued on every date."""
    for source in SOURCES:
        (holdings.data / source).mkdir(parents=True)
    per_key, securities = holdings.transactions_per_key, holdings.securities
    for part in range(_FILES):
        holdings._deliver(
            "transactions",
            f"""
            WITH drawn AS (
                SELECT p, s, n, p * {securities} + s AS k, hash(p, s, n) AS h
                FROM range({holdings.portfolios}) t(p), range({securities}) u(s), range({per_key}) v(n)
                WHERE p % {_FILES} = {part}
            )
            SELECT k * {per_key} + n AS transaction_id, {_PORTFOLIO} AS portfolio_id,
                {_SECURITY} AS security_id, CASE WHEN n % 5 = 4 THEN 'SELL' ELSE 'BUY' END AS side,
                (CASE WHEN n = 0 THEN 1000 WHEN n % 5 = 4 THEN 1 + h % 20 ELSE 1 + h % 400 / 4 END)
                    ::DECIMAL(16, 4) AS quantity,
                (80 + h % 400000 / 10000)::DECIMAL(12, 4) AS price, on_ AS transaction_on, 0::BIGINT AS seq
            FROM drawn
            JOIN calendar ON place = CASE WHEN n = 0 THEN 0 ELSE 1 + h % {holdings.dates - 1} END
            """,
            part,
        )
    holdings._deliver(
        "securities",
        f"SELECT {_SECURITY} AS security_id, {list(CURRENCIES)}[s % 3 + 1] AS currency, 0::BIGINT AS seq"
        f" FROM range({securities}) t(s)",
    )
    holdings._deliver("business_dates", "SELECT on_ AS business_on, 0::BIGINT AS seq FROM calendar")
    holdings._deliver_references(f"place < {holdings.dates}", 0)
    return holdings
