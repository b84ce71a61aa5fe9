"""Expected content of every dataset of examples/portfolio, computed in plain Python.

The model does not use the engine. After each run it reads all messages, works out every position and every
value anew, and compares them with what was published before. So it knows which rows are restated, and with
them the epochs. Values are compared as `--output json` formats them (`as_json`).
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Decimal
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from tests.scenario.json_rows import read_messages

Row = dict[str, Any]
Rows = tuple[Row, ...]
Position = tuple[str, str]

FACTS = ("transactions", "market_prices", "fx_rates", "business_dates", "securities")
TIMELINES = ("position_history", "daily_position_snapshots")
JOBS = ("position_timeseries", "portfolio_timeseries")
BESIDE = ("positions_state", "positions_epochs")
DATASETS = (*FACTS, *TIMELINES, *JOBS, *BESIDE)
UNKNOWN = ("reason", "updated_at", "superseded_at")
"""Columns that the model does not predict."""

DUBLIN = ZoneInfo("Europe/Dublin")
DUE_AT = time(18)
CENT = Decimal("0.01")
NOTHING = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """What is published of one position in one of the two outputs."""

    rows: Mapping[date, Row] = field(default_factory=dict)
    """By date, without the epoch."""
    epochs: Mapping[date, int] = field(default_factory=dict)
    """By date: the epoch that gave the row its values."""
    superseded: tuple[tuple[date, Row, int, int], ...] = ()
    """Date, row, its epoch, and the epoch that replaced or removed it."""
    epoch: int = 0
    watermark_on: date | None = None
    failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The datasets after a run."""

    rows: Mapping[str, Rows] = field(default_factory=lambda: dict.fromkeys(DATASETS, ()))
    offered: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(FACTS, 0))
    """Per fact dataset: the number of messages received so far. None is refused."""
    histories: Mapping[Position, Track] = field(default_factory=dict)
    snapshots: Mapping[Position, Track] = field(default_factory=dict)


def after_run(before: State, data: Path, as_of: datetime) -> State:
    """The state after a run over all messages that are there now."""
    messages = {
        dataset: [
            message for path in sorted((data / dataset).glob("*.jsonl")) for message in read_messages(path)
        ]
        for dataset in FACTS
    }
    decoded = {dataset: [DECODERS[dataset](message) for message in messages[dataset]] for dataset in FACTS}
    live = {dataset: newest(decoded[dataset], *KEYS[dataset]) for dataset in FACTS}
    live["transactions"] = [row for row in live["transactions"] if row["status"] != "CANCELLED"]
    live["business_dates"] = [row for row in live["business_dates"] if row["is_open"]]
    histories = after_folding(before.histories, live["transactions"])
    snapshots = after_valuing(before.snapshots, histories, live, as_of)
    snapshot_rows = published_rows(snapshots)
    position_rows = position_timeseries(snapshots)
    return State(
        rows={
            **{dataset: tuple(rows) for dataset, rows in live.items()},
            "position_history": published_rows(histories),
            "daily_position_snapshots": snapshot_rows,
            "position_timeseries": position_rows,
            "portfolio_timeseries": portfolio_timeseries(position_rows),
            "positions_state": states_of(snapshots),
            "positions_epochs": superseded_rows(snapshots),
        },
        offered={dataset: len(messages[dataset]) for dataset in FACTS},
        histories=histories,
        snapshots=snapshots,
    )


# What was received

KEYS: Mapping[str, tuple[str, ...]] = {
    "transactions": ("transaction_id",),
    "market_prices": ("security_id", "price_on"),
    "fx_rates": ("currency", "rate_on"),
    "business_dates": ("business_on",),
    "securities": ("security_id",),
}


def decode_transaction(message: Row) -> Row:
    return {
        "transaction_id": message["transactionId"],
        "portfolio_id": message["portfolioId"],
        "security_id": message["securityId"],
        "side": message["side"],
        "quantity": _decimal(message["quantity"], 4),
        "price": _decimal(message["price"], 4),
        "status": message.get("status", "BOOKED"),
        "transaction_on": date.fromisoformat(message["tradeDate"]),
        "transaction_at": datetime.fromisoformat(message["executedAt"]),
        "recorded_at": datetime.fromisoformat(message["recordedAt"]),
    }


def decode_price(message: Row) -> Row:
    return {
        "security_id": message["securityId"],
        "price_on": date.fromisoformat(message["priceDate"]),
        "price": _decimal(message["price"], 4),
        "recorded_at": datetime.fromisoformat(message["recordedAt"]),
    }


def decode_rate(message: Row) -> Row:
    return {
        "currency": message["currency"],
        "rate_on": date.fromisoformat(message["rateDate"]),
        "rate": _decimal(message["rate"], 5),
        "recorded_at": datetime.fromisoformat(message["recordedAt"]),
    }


def decode_business_date(message: Row) -> Row:
    return {
        "business_on": date.fromisoformat(message["date"]),
        "is_open": message["open"],
        "recorded_at": datetime.fromisoformat(message["recordedAt"]),
    }


def decode_security(message: Row) -> Row:
    return {
        "security_id": message["securityId"],
        "name": message["name"],
        "currency": message["currency"],
        "recorded_at": datetime.fromisoformat(message["recordedAt"]),
    }


DECODERS: Mapping[str, Callable[[Row], Row]] = {
    "transactions": decode_transaction,
    "market_prices": decode_price,
    "fx_rates": decode_rate,
    "business_dates": decode_business_date,
    "securities": decode_security,
}


def newest(facts: Iterable[Row], *key: str) -> list[Row]:
    """The fact about each key that was recorded last."""
    best: dict[tuple[Any, ...], Row] = {}
    for fact in facts:
        name = tuple(fact[column] for column in key)
        known = best.setdefault(name, fact)
        assert known is fact or known["recorded_at"] != fact["recorded_at"], (
            f"the generator made a tie: {fact}"
        )
        if fact["recorded_at"] > known["recorded_at"]:
            best[name] = fact
    return list(best.values())


# Positions


class OversoldError(Exception):
    """More was sold than was held."""


def in_folding_order(transactions: Iterable[Row]) -> list[Row]:
    return sorted(
        transactions, key=lambda row: (row["transaction_on"], row["transaction_at"], row["transaction_id"])
    )


def positions_of(transactions: Iterable[Row]) -> dict[Position, list[Row]]:
    """The transactions of each position, in the order in which they are folded."""
    by_position: defaultdict[Position, list[Row]] = defaultdict(list)
    for row in in_folding_order(transactions):
        by_position[row["portfolio_id"], row["security_id"]].append(row)
    return dict(by_position)


def first_in_first_out(transactions: Sequence[Row]) -> dict[date, Row]:
    """The position after each date with transactions. Raises OversoldError.

    All units ever bought are laid end to end, and so are all units ever sold. What lies at the same place was
    sold from that purchase. There are no lots that change, unlike in the fold of the example.
    """
    bought: list[tuple[Decimal, Decimal, Decimal]] = []
    sold: list[tuple[Decimal, Decimal, Decimal]] = []
    positions = {}
    for on, of_date in groupby(transactions, lambda row: row["transaction_on"]):
        for row in of_date:
            laid = bought if row["side"] == "BUY" else sold
            begin = _end(laid)
            laid.append((begin, begin + row["quantity"], row["price"]))
            if _end(sold) > _end(bought):
                raise OversoldError(row["transaction_id"])
        held = (_end(sold), _end(bought))
        cost = sum((_overlap(lot, held) * lot[2] for lot in bought), NOTHING)
        realised = sum((_overlap(lot, sale) * (sale[2] - lot[2]) for lot in bought for sale in sold), NOTHING)
        positions[on] = {
            "quantity": held[1] - held[0],
            "cost_basis": _money(cost),
            "realised": _money(realised),
        }
    return positions


def _end(laid: Sequence[tuple[Decimal, Decimal, Decimal]]) -> Decimal:
    return laid[-1][1] if laid else NOTHING


def _overlap(one: tuple[Decimal, ...], other: tuple[Decimal, ...]) -> Decimal:
    return max(NOTHING, min(one[1], other[1]) - max(one[0], other[0]))


def after_folding(before: Mapping[Position, Track], transactions: Iterable[Row]) -> dict[Position, Track]:
    """The history of every position that ever had a transaction."""
    trades = positions_of(transactions)
    histories = {}
    for position in sorted(before.keys() | trades.keys()):
        track = before.get(position, Track())
        try:
            rows = first_in_first_out(trades.get(position, []))
        except OversoldError:
            histories[position] = replace(track, failed=True)
            continue
        known_upto = max((on for on in (*rows, track.watermark_on) if on), default=None)
        histories[position] = published(track, rows, watermark_on=known_upto, failed=False)
    return histories


def published(track: Track, rows: Mapping[date, Row], watermark_on: date | None, failed: bool) -> Track:
    """The track after a commit of these rows. Rows that come out the same keep their epoch."""
    gone = [on for on, row in track.rows.items() if rows.get(on) != row]
    late = [on for on in rows if on not in track.rows and track.watermark_on and on <= track.watermark_on]
    epoch = track.epoch + bool(gone or late)
    return Track(
        rows=dict(rows),
        epochs={on: track.epochs[on] if track.rows.get(on) == row else epoch for on, row in rows.items()},
        superseded=(*track.superseded, *((on, track.rows[on], track.epochs[on], epoch) for on in gone)),
        epoch=epoch,
        watermark_on=watermark_on,
        failed=failed,
    )


# Values


class Steps:
    """Rows that each hold until the next one of the same name."""

    def __init__(self, rows: Iterable[Row], name: str, on: str) -> None:
        self._rows: defaultdict[str, list[Row]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: row[on]):
            self._rows[row[name]].append(row)
        self._dates = {name: [row[on] for row in rows] for name, rows in self._rows.items()}

    def find(self, name: str, day: date) -> Row | None:
        place = bisect_right(self._dates.get(name, []), day)
        return self._rows[name][place - 1] if place else None


def due_dates(business_dates: Iterable[Row], as_of: datetime) -> list[date]:
    dates = sorted(row["business_on"] for row in business_dates)
    return [on for on in dates if datetime.combine(on, DUE_AT, DUBLIN) <= as_of]


def after_valuing(
    before: Mapping[Position, Track],
    histories: Mapping[Position, Track],
    live: Mapping[str, Sequence[Row]],
    as_of: datetime,
) -> dict[Position, Track]:
    """The snapshots of every position. A position whose fold failed is left as it is."""
    due = due_dates(live["business_dates"], as_of)
    currencies = {row["security_id"]: row["currency"] for row in live["securities"]}
    prices = Steps(live["market_prices"], "security_id", "price_on")
    rates = Steps(live["fx_rates"], "currency", "rate_on")
    snapshots = {}
    for position, history in histories.items():
        track = before.get(position, Track())
        if history.failed:
            snapshots[position] = replace(track, failed=True)
            continue
        changes = sorted(history.rows)
        rows, waits = {}, []
        for on in due:
            place = bisect_right(changes, on)
            if not place:
                continue
            currency = currencies[position[1]]
            rate = rates.find(currency, on)
            if rate is None:
                waits.append(on)
                continue
            held = history.rows[changes[place - 1]]
            if held["quantity"] or held["realised"]:
                rows[on] = value(held, on, currency, prices.find(position[1], on), rate["rate"])
        before_first_wait = [on for on in due if on < waits[0]] if waits else due
        snapshots[position] = published(
            track, rows, watermark_on=before_first_wait[-1] if before_first_wait else None, failed=bool(waits)
        )
    return snapshots


def value(held: Row, on: date, currency: str, price: Row | None, rate: Decimal) -> Row:
    """A position on a business date, with its value in euros."""
    worth = held["quantity"] * price["price"] if price else None
    return {
        **held,
        "currency": currency,
        "unit_price": price["price"] if price else None,
        "fx_rate": rate,
        "market_value": None if worth is None else _money(worth * rate),
        "unrealised": None if worth is None else _money((worth - held["cost_basis"]) * rate),
        "valuation_status": valuation_status(price, on),
    }


def valuation_status(price: Row | None, on: date) -> str:
    if price is None:
        return "UNVALUED"
    return "VALUED_CURRENT" if price["price_on"] == on else "VALUED_STALE"


# What others read


def _named(position: Position) -> Row:
    return {"portfolio_id": position[0], "security_id": position[1]}


def published_rows(tracks: Mapping[Position, Track]) -> Rows:
    return tuple(
        {**_named(position), "date": on, **row, "epoch": track.epochs[on]}
        for position, track in tracks.items()
        for on, row in track.rows.items()
    )


def superseded_rows(tracks: Mapping[Position, Track]) -> Rows:
    return tuple(
        {**_named(position), "date": on, **row, "epoch": epoch, "superseded_by": by}
        for position, track in tracks.items()
        for on, row, epoch, by in track.superseded
    )


def states_of(tracks: Mapping[Position, Track]) -> Rows:
    return tuple(
        {
            **_named(position),
            "epoch": track.epoch,
            "watermark_on": track.watermark_on,
            "status": "FAILED" if track.failed else "CURRENT",
        }
        for position, track in tracks.items()
    )


def position_timeseries(snapshots: Mapping[Position, Track]) -> Rows:
    rows = []
    for position, track in snapshots.items():
        nothing: Row = {"market_value": NOTHING, "realised": NOTHING}
        in_order = [(None, nothing), *sorted(track.rows.items())]
        for (_, previous), (on, row) in pairwise(in_order):
            realised = (row["realised"] - previous["realised"]) * row["fx_rate"]
            rows.append(
                {
                    **_named(position),
                    "date": on,
                    "quantity": row["quantity"],
                    "valuation_status": row["valuation_status"],
                    "market_value": row["market_value"],
                    "day_change": _money(row["market_value"]) - _money(previous["market_value"]),
                    "unrealised": row["unrealised"],
                    "realised_on_day": _money(realised),
                }
            )
    return tuple(rows)


def portfolio_timeseries(positions: Iterable[Row]) -> Rows:
    groups: defaultdict[tuple[str, date], list[Row]] = defaultdict(list)
    for row in positions:
        groups[row["portfolio_id"], row["date"]].append(row)
    return tuple(
        {
            "portfolio_id": portfolio,
            "date": on,
            "positions": sum(row["quantity"] != 0 for row in rows),
            "unvalued": sum(row["valuation_status"] == "UNVALUED" for row in rows),
            **{
                column: _money(sum(row[column] or NOTHING for row in rows))
                for column in ("market_value", "day_change", "unrealised", "realised_on_day")
            },
        }
        for (portfolio, on), rows in groups.items()
    )


# Amounts


def _money(amount: Decimal | int | None) -> Decimal:
    return Decimal(amount or 0).quantize(CENT, ROUND_HALF_UP)


def _decimal(text: str, scale: int) -> Decimal:
    return Decimal(text).quantize(Decimal(1).scaleb(-scale))
