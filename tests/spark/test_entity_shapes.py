"""Random days of entities of every shape, compared with plain Python after each run.

Owners are found through two lookups, one dataset is used by two columns, ids have two columns, entities read
entities three levels deep, expressions build on each other. Windows over dates lie across the day on which
summer time begins. Each run takes another path of those that depend on sizes.
"""

import os
import random
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from tests.harness import PATHS, TestProject, at

pytestmark = pytest.mark.spark

YAML = """
    project: shapes
    timezone: Europe/Berlin
    sources:
      person_events: {files: "people/*.jsonl"}
      channel_events: {files: "channels/*.jsonl"}
      ticket_events: {files: "tickets/*.jsonl"}
      transfer_events: {files: "transfers/*.jsonl"}
    datasets:
      people:
        from: person_events
        columns: {id: id, org: org, op: op, rank: {path: rank, type: int}}
        record_set: {key: [id], order_by: [rank], deleted: "op = 'D'"}
      channels:
        from: channel_events
        columns: {id: id, person: person, op: op, rank: {path: rank, type: int}}
        record_set: {key: [id], order_by: [rank], deleted: "op = 'D'"}
      tickets:
        from: ticket_events
        columns:
          channel: channel
          number: {path: number, type: int}
          weight: {path: weight, type: int}
          opened_on: {path: opened_on, type: date}
          op: op
          rank: {path: rank, type: int}
        record_set: {key: [channel, number], order_by: [rank], deleted: "op = 'D'"}
      transfers:
        from: transfer_events
        columns:
          payer: payer
          payee: payee
          amount: {path: amount, type: "decimal(18,2)"}
          sent_at: {path: sent_at, type: timestamp}
    entities:
      org:
        id: org
        every: day
        by:
          tickets: {via: channels, on: {channel: id}}
          channels: {via: people, on: {person: id}}
        variables:
          members: {from: people, select: count(*)}
          channels: {from: channels, select: count(distinct id)}
          last_opened: {from: tickets, select: max(opened_on)}
          newest: {from: tickets, select: "latest(weight)"}
        groups:
          - from: tickets
            where: "weight >= 0"
            window: {column: opened_on, last: [2 days, 1 week]}
            variables:
              opened: count(*)
              weight: {select: sum(weight), where: "number % 2 = 0", default: -1}
      purse:
        id: who
        every: week
        variables:
          paid: {from: transfers, by: payer, select: sum(amount)}
          received: {from: transfers, by: payee, select: sum(amount), default: 0}
          sent:
            from: transfers
            by: payer
            select: count(*)
            window: {column: sent_at, last: [36 hours, 9 days]}
          net: {expr: received - paid}
          rich: {expr: "net > 1"}
          label: {expr: "concat(if(rich, 'rich', 'poor'), sent_9d)", default: unknown}
      pair:
        id: [payer, payee]
        variables:
          transfers: {from: transfers, select: count(*)}
          due:
            from: transfers
            select: sum(amount)
            where: "sent_at >= :as_of AND sent_at < :as_of + INTERVAL 2 DAYS"
          mean: {from: transfers, select: avg(amount), window: {column: sent_at, last: 1 day}}
      wealth:
        id: {rich: boolean}
        variables:
          purses: {from: purse, select: count(*)}
          net: {from: purse, select: sum(net)}
      crowd:
        id: {purses: bigint}
        variables: {net: {from: wealth, select: max(net)}}
"""
BERLIN = ZoneInfo("Europe/Berlin")
TIMES = (
    "2024-03-30T22:30:00+00:00",
    "2024-03-31T00:30:00+00:00",
    "2024-03-31T22:00:00+00:00",
    "2024-04-01T12:00:00+00:00",
    "2024-03-29T23:00:00+00:00",
    "2024-04-02T21:59:59+00:00",
)
ROUNDS = int(os.environ.get("STRANDLINE_ENTITY_ROUNDS", "5"))
Fact = Mapping[str, Any]
Rows = dict[Any, tuple[Any, ...]]


class History:
    """All facts that were sent, and what each entity is by definition."""

    def __init__(self, seed: int, project: TestProject) -> None:
        self.chance, self.project = random.Random(seed), project
        self.facts: dict[str, list[Fact]] = {n: [] for n in ("people", "channels", "tickets", "transfers")}
        self.sent, self.ranks = 0, 0

    def send(self, dataset: str, facts: Iterable[Fact]) -> None:
        listed = list(facts)
        self.facts[dataset] += listed
        self.sent += 1
        self.project.lines(f"{dataset}/{self.sent:03}.jsonl", *({**f, "file": self.sent} for f in listed))

    def happen(self) -> None:
        """Some facts of each dataset, late ones too; a dataset may get none."""
        makers: dict[str, Callable[[], Fact]] = {
            "people": self.person,
            "channels": self.channel,
            "tickets": self.ticket,
            "transfers": self.transfer,
        }
        for dataset, make in makers.items():
            if facts := [make() for _ in range(self.chance.choice((0, 1, 3, 6)))]:
                self.send(dataset, facts)

    def begin(self) -> None:
        self.send("people", [{"id": "p1", "org": "acme", "rank": 0}, {"id": "p2", "org": "beta", "rank": 0}])
        self.send("channels", [{"id": "c1", "person": "p1", "rank": 0}])
        self.send("tickets", [self.ticket() for _ in range(6)])
        self.send("transfers", [self.transfer() for _ in range(6)])

    def rank(self) -> int:
        self.ranks += 1
        return self.ranks if self.chance.random() < 0.8 else -self.ranks

    def record(self, **values: object) -> Fact:
        op = self.chance.choice((None, None, None, "D"))
        return {**values, "op": op, "rank": self.rank()}

    def person(self) -> Fact:
        chance = self.chance
        return self.record(
            id=chance.choice(("p1", "p2", "p3")), org=chance.choice(("acme", "beta", "new", None))
        )

    def channel(self) -> Fact:
        chance = self.chance
        return self.record(
            id=chance.choice(("c1", "c2", "c3")), person=chance.choice(("p1", "p2", "p3", "nobody", None))
        )

    def ticket(self) -> Fact:
        chance = self.chance
        opened_on = date(2024, 3, 25) + timedelta(days=chance.randrange(9))
        return self.record(
            channel=chance.choice(("c1", "c1", "c2", "c3")),
            number=chance.randrange(4),
            weight=chance.choice((-1, 0, 1, 2, None)),
            opened_on=chance.choice((opened_on.isoformat(), opened_on.isoformat(), None)),
        )

    def transfer(self) -> Fact:
        chance = self.chance
        whom = ("ann", "bob", "cem", None)
        sent_at = datetime(2024, 3, 25, tzinfo=UTC) + timedelta(hours=6 * chance.randrange(40))
        return {
            "payer": chance.choice(whom),
            "payee": chance.choice(whom),
            "amount": chance.choice(("1.10", "0.00", "-2.00", "3.33", None)),
            "sent_at": chance.choice((sent_at.isoformat(), None)),
        }

    def live(self, dataset: str, *key: str) -> list[Fact]:
        newest: dict[tuple[Any, ...], Fact] = {}
        for fact in self.facts[dataset]:
            of = tuple(fact[k] for k in key)
            if of not in newest or fact["rank"] > newest[of]["rank"]:
                newest[of] = fact
        return [fact for fact in newest.values() if fact.get("op") != "D"]

    def orgs(self, as_of: datetime) -> Rows:
        people, channels = self.live("people", "id"), self.live("channels", "id")
        tickets = self.live("tickets", "channel", "number")
        orgs_by_person = {p["id"]: p["org"] for p in people}
        orgs_by_channel = {c["id"]: orgs_by_person.get(c["person"]) for c in channels}
        today = start_of_day(as_of)
        rows: Rows = {}
        for org in {fact["org"] for fact in self.facts["people"]} - {None}:
            own = [t for t in tickets if orgs_by_channel.get(t["channel"]) == org]
            dates = [date.fromisoformat(t["opened_on"]) for t in own if t["opened_on"]]
            counts, weights = [], []
            for days in (2, 7):
                start = today - timedelta(days=days)
                inside = [
                    t
                    for t in own
                    if t["opened_on"] and start <= midnight(t["opened_on"]) < today and is_heavy(t)
                ]
                counts.append(len(inside))
                even = [t["weight"] for t in inside if t["number"] % 2 == 0]
                weights.append(sum(even) if even else -1)
            newest = max(own, key=lambda t: t["rank"], default=None)
            rows[org] = (
                sum(p["org"] == org for p in people),
                sum(of == org for of in orgs_by_channel.values()),
                max(dates, default=None),
                newest and newest["weight"],
                *counts,
                *weights,
            )
        return rows

    def purses(self, as_of: datetime) -> Rows:
        transfers, monday = self.facts["transfers"], start_of_week(as_of)
        rows: Rows = {}
        for who in {t[side] for t in transfers for side in ("payer", "payee")} - {None}:
            mine = [t for t in transfers if t["payer"] == who]
            paid = total(mine)
            received = total(t for t in transfers if t["payee"] == who)
            received = Decimal(0) if received is None else received
            short, long = (count_sent(mine, monday, timedelta(hours=hours)) for hours in (36, 9 * 24))
            net = None if paid is None else received - paid
            rich = None if net is None else net > 1
            label = "unknown" if rich is None else f"{'rich' if rich else 'poor'}{long}"
            rows[who] = (paid, received, short, long, net, rich, label)
        return rows

    def pairs(self, as_of: datetime) -> Rows:
        rows: Rows = {}
        transfers = self.facts["transfers"]
        for pair in {(t["payer"], t["payee"]) for t in transfers if t["payer"] and t["payee"]}:
            own = [t for t in transfers if (t["payer"], t["payee"]) == pair]
            ahead = [t for t in own if lies_in(t, as_of, as_of + timedelta(days=2))]
            recent = [t for t in own if lies_in(t, as_of - timedelta(days=1), as_of) and t["amount"]]
            mean = (total(recent) or 0) / len(recent) if recent else None
            rows[pair] = (len(own), total(ahead), mean)
        return rows


def is_heavy(ticket: Fact) -> bool:
    return ticket["weight"] is not None and ticket["weight"] >= 0


def midnight(day: str) -> datetime:
    return datetime.combine(date.fromisoformat(day), time(), BERLIN)


def start_of_day(as_of: datetime) -> datetime:
    return datetime.combine(as_of.astimezone(BERLIN).date(), time(), BERLIN).astimezone(UTC)


def start_of_week(as_of: datetime) -> datetime:
    day = as_of.astimezone(BERLIN).date()
    return datetime.combine(day - timedelta(days=day.weekday()), time(), BERLIN).astimezone(UTC)


def lies_in(transfer: Fact, start: datetime, end: datetime) -> bool:
    sent_at = transfer["sent_at"]
    return sent_at is not None and start <= datetime.fromisoformat(sent_at) < end


def count_sent(transfers: Iterable[Fact], end: datetime, length: timedelta) -> int:
    return sum(lies_in(t, end - length, end) for t in transfers)


def total(transfers: Iterable[Fact]) -> Decimal | None:
    amounts = [Decimal(t["amount"]) for t in transfers if t["amount"] is not None]
    return sum(amounts, Decimal(0)) if amounts else None


def wealth_of(purses: Rows) -> Rows:
    nets: dict[bool, list[Decimal]] = {}
    for *_, net, rich, _label in purses.values():
        if rich is not None:
            nets.setdefault(rich, []).append(net)
    return {rich: (len(of), sum(of)) for rich, of in nets.items()}


def crowds_of(wealth: Rows) -> Rows:
    nets: dict[int, list[Decimal]] = {}
    for purses, net in wealth.values():
        nets.setdefault(purses, []).append(net)
    return {purses: (max(of),) for purses, of in nets.items()}


def read(project: TestProject, entity: str, id_columns: int = 1) -> Rows:
    rows = project.query(f"SELECT * FROM {entity}")
    found = {row[0] if id_columns == 1 else row[:id_columns]: row[id_columns:] for row in rows}
    assert len(found) == len(rows), f"each {entity} once"
    return found


def check(history: History, as_of: datetime) -> None:
    project, purses = history.project, history.purses(as_of)
    assert read(project, "org") == history.orgs(as_of)
    assert read(project, "purse") == purses
    pairs = {
        of: (count, due, None if mean is None else round(mean, 6))
        for of, (count, due, mean) in read(project, "pair", 2).items()
    }
    assert pairs == {
        of: (count, due, None if mean is None else round(mean, 6))
        for of, (count, due, mean) in history.pairs(as_of).items()
    }
    assert read(project, "wealth") == wealth_of(purses)
    assert read(project, "crowd") == crowds_of(wealth_of(purses))


@pytest.mark.parametrize("seed", [11])
def test_entities_of_every_shape_are_as_by_definition(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(seed, TestProject.create(tmp_path / "shapes", YAML))
    history.begin()

    for number in range(ROUNDS):
        monkeypatch.setenv("STRANDLINE_THRESHOLDS", list(PATHS.values())[number % len(PATHS)])
        time_of_run = TIMES[number] if number < len(TIMES) else history.chance.choice(TIMES)
        if number:
            history.happen()
        history.project.run(at(time_of_run))
        check(history, datetime.fromisoformat(time_of_run))
    history.project.assert_verified("org", "purse", "pair", "wealth", "crowd")
