"""Four days of a company that sells data pipelines: 3,000 workspaces, 400 accounts, and what their users do.

`python generate.py DAY` writes the rows that are there on the morning of day 1, 2 or 4 under data/. Nothing
comes on day 3. The rows are always the same. Each thing that goes wrong is a function below, named after it.
"""

import csv
import json
import random
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

Row = dict[str, Any]

SEED = 2024
FIRST_DAY = date(2024, 3, 29)
"""A Friday. Days 1 to 4 are Good Friday to Easter Monday, which is the first of April."""
DAYS = {number: FIRST_DAY + timedelta(days=number - 1) for number in range(1, 5)}
MORNING = timedelta(hours=5)
"""When a day's rows are exported, in UTC."""
OPENED_ON = date(2022, 1, 3)

WORKSPACES = tuple(f"ws-{number:04}" for number in range(1, 3001))
ORGANIZATIONS = tuple(range(1001, 1401))
NEVER_SOLD_TO = ORGANIZATIONS[-10:]
"""They signed up by themselves: Salesforce has no account of them."""

PLANS = ("free", "free", "starter", "starter", "growth", "enterprise")
REGIONS = ("eu", "us")
STORAGE = ("s3", "s3", "gcs", "azure", "minio", "", "", "")
"""Where a workspace keeps its data. Empty: with us."""
TYPES = ("web", "web", "ios", "android", "server", "warehouse", "cloud")
STAGES = ("Customer", "Customer", "Customer", "Prospect", "Prospect", "Churned")
EVENTS = ("sync_finished", "sync_finished", "source_opened", "report_viewed", "model_changed")
ROLES = ("admin", "member", "member", "viewer", None)

OF_THE_STORY = ("ws-0042", "ws-0043", "ws-0077", "ws-0150", "ws-0311")
"""Workspaces that only functions below change."""
SELLER, BUYER = 1042, 1043
"""The organizations between which ws-0077 moves."""

COLUMNS = {
    "app_workspaces": (
        "ID NAME ORGANIZATIONID PLAN REGION STORAGEPROVIDER CREATEDAT UPDATEDAT DELETED _SDC_BATCHED_AT"
    ),
    "app_sources": "ID NAME TYPE WORKSPACEID CREATEDBY ENABLED CREATEDAT UPDATEDAT DELETED _SDC_BATCHED_AT",
    "sf_account": (
        "ID NAME ORGANIZATION_ID STAGE ARR RENEWAL_DATE SLACK_CHANNEL_ID SYSTEMMODSTAMP IS_DELETED"
        " _SDC_BATCHED_AT"
    ),
    "tickets": ("CHANNEL_ID TICKET_NO STATUS PRIORITY CSAT OPENED_AT CLOSED_AT UPDATED_AT _SDC_BATCHED_AT"),
}
"""The columns of the exported tables. The streams are messages in JSON."""


@dataclass
class Delivery:
    """What arrives together."""

    app_workspaces: list[Row] = field(default_factory=list)
    app_sources: list[Row] = field(default_factory=list)
    sf_account: list[Row] = field(default_factory=list)
    tickets: list[Row] = field(default_factory=list)
    app_tracks: list[Row] = field(default_factory=list)
    app_identifies: list[Row] = field(default_factory=list)


class Times:
    """Instants. No two are equal, so that a later row of one thing is always newer."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.given = 0

    def between(self, first: datetime, last: datetime) -> datetime:
        self.given += 1
        seconds = self.chance.randrange(max(int((last - first).total_seconds()), 1))
        return (first + timedelta(seconds=seconds)).replace(microsecond=self.given)

    def at(self, day: date, hour: int, minute: int = 0) -> datetime:
        self.given += 1
        return midnight(day) + timedelta(hours=hour, minutes=minute, microseconds=self.given)


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


def spelt(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def read_time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC)


@dataclass
class World:
    """The newest row of everything that exists, and whoever changes it."""

    chance: random.Random
    times: Times
    workspaces: dict[str, Row] = field(default_factory=dict)
    sources: dict[str, Row] = field(default_factory=dict)
    accounts: dict[str, Row] = field(default_factory=dict)
    tickets: dict[tuple[str, int], Row] = field(default_factory=dict)
    users: dict[str, list[str]] = field(default_factory=dict)
    """By workspace."""
    sent: int = 0
    created: int = 0

    # Rows

    def workspace(self, name: str, organization: int | None, created_at: datetime) -> Row:
        self.users[name] = [f"u-{name[3:]}-{number}" for number in range(1, self.chance.randrange(2, 9))]
        row = {
            "ID": name,
            "NAME": f"Workspace {name[3:]}",
            "ORGANIZATIONID": organization,
            "PLAN": self.chance.choice(PLANS),
            "REGION": self.chance.choice(REGIONS),
            "STORAGEPROVIDER": self.chance.choice(STORAGE) or None,
            "CREATEDAT": spelt(created_at),
            "UPDATEDAT": spelt(created_at),
            "DELETED": "FALSE",
        }
        self.workspaces[name] = row
        return row

    def source(self, workspace: str, created_at: datetime, kind: str | None = None) -> Row:
        self.created += 1
        kind = kind or self.chance.choice(TYPES)
        row = {
            "ID": f"src-{self.created:05}",
            "NAME": f"{kind} {self.created}",
            "TYPE": kind,
            "WORKSPACEID": workspace,
            "CREATEDBY": self.chance.choice(self.users[workspace]),
            "ENABLED": "TRUE" if self.chance.random() < 0.85 else "FALSE",
            "CREATEDAT": spelt(created_at),
            "UPDATEDAT": spelt(created_at),
            "DELETED": "FALSE",
        }
        self.sources[row["ID"]] = row
        return row

    def change(self, rows: dict[Any, Row], key: Any, at: datetime, **values: Any) -> Row:
        """A newer row about something that exists. `at` is later than the row before."""
        stamp = next(c for c in ("UPDATEDAT", "SYSTEMMODSTAMP", "UPDATED_AT") if c in rows[key])
        assert spelt(at) > rows[key][stamp], f"{rows[key]} is newer than {at}"
        rows[key] = {**rows[key], stamp: spelt(at), **values}
        return rows[key]

    def track(self, workspace: str | None, organization: int | None, user: str, sent_at: datetime) -> Row:
        self.sent += 1
        event = self.chance.choice(EVENTS)
        rows = self.chance.randrange(100, 90_000) if event == "sync_finished" else None
        return {
            "messageId": f"m-{self.sent:06}",
            "userId": user,
            "event": event,
            "context": {"workspaceId": workspace, "organizationId": organization},
            "properties": {} if rows is None else {"rows": rows},
            "sentAt": spelt(sent_at),
        }

    def identify(
        self, workspace: str | None, organization: object, user: str, role: str | None, sent_at: datetime
    ) -> Row:
        return {
            "userId": user,
            "context": {"workspaceId": workspace, "organizationId": organization},
            "traits": {} if role is None else {"role": role},
            "sentAt": spelt(sent_at),
        }

    # What users do

    def tracks_of(self, workspace: str, count: int, first: datetime, last: datetime) -> Iterator[Row]:
        organization = self.workspaces[workspace]["ORGANIZATIONID"]
        for _ in range(count):
            user = self.chance.choice(self.users[workspace])
            yield self.track(workspace, organization, user, self.times.between(first, last))

    def logins_of(self, workspace: str, count: int, first: datetime, last: datetime) -> Iterator[Row]:
        organization = self.workspaces[workspace]["ORGANIZATIONID"]
        for _ in range(count):
            user, role = self.chance.choice(self.users[workspace]), self.chance.choice(ROLES)
            text = None if organization is None else str(organization)
            yield self.identify(workspace, text, user, role, self.times.between(first, last))

    def strangers(self) -> list[str]:
        """Workspaces that have nothing to do with the story."""
        return [name for name in self.workspaces if name not in OF_THE_STORY]


# Everything up to the first day


def first_day(world: World) -> Delivery:
    delivery = Delivery()
    upto = midnight(DAYS[1]) + MORNING
    sell_to_everybody(world, delivery, upto)
    for name in WORKSPACES:
        delivery.app_workspaces += sign_up(world, name, upto)
        delivery.app_sources += connect_sources(world, name, upto)
        use(world, delivery, name, upto)
    answer_tickets(world, delivery, upto)
    before_the_story(world, delivery)
    delivery.app_tracks += anonymous_tracks(world, 600, upto - timedelta(days=120), upto)
    delivery.app_sources.append(a_source_of_nobody(world, upto))
    world.chance.shuffle(delivery.app_sources)
    world.chance.shuffle(delivery.app_tracks)
    return delivery


def sell_to_everybody(world: World, delivery: Delivery, upto: datetime) -> None:
    """Accounts in Salesforce. Some have two rows, some share a Slack channel, some ids were mistyped."""
    for place, organization in enumerate(ORGANIZATIONS):
        if organization in NEVER_SOLD_TO:
            continue
        for double in range(2 if place % 40 == 7 else 1):
            created_at = world.times.between(midnight(OPENED_ON), upto - timedelta(days=30))
            key = f"001{organization}{'B' if double else 'A'}"
            channel = f"C{organization - 1 if place % 60 == 11 else organization}"
            renewal_on = DAYS[1] + timedelta(days=world.chance.randrange(-60, 300))
            row = {
                "ID": key,
                "NAME": f"Company {organization}",
                "ORGANIZATION_ID": typed_by_hand(place, organization),
                "STAGE": world.chance.choice(STAGES),
                "ARR": f"{world.chance.randrange(3_000, 120_000)}.{world.chance.randrange(100):02}",
                "RENEWAL_DATE": str(renewal_on) if world.chance.random() < 0.8 else None,
                "SLACK_CHANNEL_ID": channel if world.chance.random() < 0.75 else None,
                "SYSTEMMODSTAMP": spelt(created_at),
                "IS_DELETED": "false",
            }
            world.accounts[key] = row
            delivery.sf_account.append(row)
            if world.chance.random() < 0.3:
                at = world.times.between(created_at + timedelta(days=1), upto)
                stage = world.chance.choice(STAGES)
                delivery.sf_account.append(world.change(world.accounts, key, at, STAGE=stage))


def typed_by_hand(place: int, organization: int) -> str | None:
    """Salesforce has the id of the organization as text, and people type it."""
    return {13: "n/a", 113: "", 213: "tbd", 313: None}.get(place, str(organization))


def sign_up(world: World, name: str, upto: datetime) -> Iterator[Row]:
    created_at = world.times.between(midnight(OPENED_ON), upto - timedelta(days=1))
    organization = None if world.chance.random() < 0.02 else world.chance.choice(ORGANIZATIONS)
    yield world.workspace(name, organization, created_at)
    if name in OF_THE_STORY:
        return
    if world.chance.random() < 0.4:
        at = world.times.between(created_at + timedelta(hours=1), upto)
        yield world.change(world.workspaces, name, at, PLAN=world.chance.choice(PLANS))
    if world.chance.random() < 0.05:
        at = read_time(world.workspaces[name]["UPDATEDAT"])
        gone_at = world.times.between(at + timedelta(minutes=5), upto + timedelta(hours=1))
        yield world.change(world.workspaces, name, gone_at, DELETED="TRUE")


def connect_sources(world: World, name: str, upto: datetime) -> Iterator[Row]:
    """Sources of a workspace: each is created, and perhaps renamed, deleted and created again."""
    created_at = read_time(world.workspaces[name]["CREATEDAT"])
    for _ in range(0 if name in OF_THE_STORY else world.chance.choice((0, 1, 2, 2, 3, 4, 7))):
        first = max(created_at, upto - timedelta(days=130)) if world.chance.random() < 0.35 else created_at
        at = world.times.between(first, upto - timedelta(hours=2))
        row = world.source(name, at)
        yield row
        for chance, values in (
            (0.2, {"NAME": f"{row['NAME']} (new)"}),
            (0.18, {"DELETED": "TRUE"}),
            (0.03, {"DELETED": "FALSE"}),
        ):
            if world.chance.random() < chance:
                at = world.times.between(at + timedelta(minutes=5), upto + timedelta(minutes=10))
                yield world.change(world.sources, row["ID"], at, **values)


def use(world: World, delivery: Delivery, name: str, upto: datetime) -> None:
    """A third of the workspaces are hardly used; the others are used for some time."""
    if world.chance.random() < 0.35 or name in OF_THE_STORY:
        return
    created_at = read_time(world.workspaces[name]["CREATEDAT"])
    first = max(created_at, upto - timedelta(days=world.chance.randrange(20, 160)))
    last = upto if world.chance.random() < 0.7 else first + (upto - first) * 0.6
    delivery.app_tracks += world.tracks_of(name, world.chance.randrange(1, 24), first, last)
    delivery.app_identifies += world.logins_of(name, world.chance.randrange(1, 9), first, last)


def answer_tickets(world: World, delivery: Delivery, upto: datetime) -> None:
    channels = sorted({row["SLACK_CHANNEL_ID"] for row in world.accounts.values() if row["SLACK_CHANNEL_ID"]})
    for channel in (*channels, "C-lost"):  # no account has the last one
        for number in range(1, world.chance.randrange(2, 22)):
            delivery.tickets += a_ticket(world, channel, number, upto - timedelta(days=150), upto)


def a_ticket(world: World, channel: str, number: int, first: datetime, upto: datetime) -> Iterator[Row]:
    opened_at = world.times.between(first, upto)
    row = {
        "CHANNEL_ID": channel,
        "TICKET_NO": number,
        "STATUS": "open",
        "PRIORITY": world.chance.choice(("low", "normal", "normal", "urgent")),
        "CSAT": None,
        "OPENED_AT": spelt(opened_at),
        "CLOSED_AT": None,
        "UPDATED_AT": spelt(opened_at),
    }
    world.tickets[channel, number] = row
    yield row
    closed_at = world.times.between(
        opened_at + timedelta(minutes=20), opened_at + timedelta(days=world.chance.randrange(1, 40))
    )
    if closed_at < upto:
        yield close(world, (channel, number), closed_at)


def close(world: World, key: tuple[str, int], at: datetime) -> Row:
    score = world.chance.choice((None, 1, 3, 4, 5, 5))
    return world.change(world.tickets, key, at, STATUS="closed", CLOSED_AT=spelt(at), CSAT=score)


def before_the_story(world: World, delivery: Delivery) -> None:
    """The workspaces of the story, with sources and users that are easy to follow."""
    for name, organization in zip(OF_THE_STORY, (1044, 1045, SELLER, 1046, 1047), strict=True):
        row = world.change(
            world.workspaces,
            name,
            world.times.at(date(2024, 3, 26), 9),
            ORGANIZATIONID=organization,
            PLAN="growth",
        )
        delivery.app_workspaces.append(row)
    for day, kind in ((date(2023, 6, 5), "web"), (date(2023, 9, 4), "ios"), (date(2024, 3, 23), "server")):
        delivery.app_sources.append(world.source("ws-0042", world.times.at(day, 9), kind))
    for name in ("ws-0043", "ws-0077"):
        for day in (date(2024, 1, 8), date(2024, 3, 24)):
            delivery.app_sources.append(world.source(name, world.times.at(day, 10), "web"))
    for back in range(1, 11):
        day = DAYS[1] - timedelta(days=3 * back)
        delivery.app_tracks += world.tracks_of("ws-0077", 1, world.times.at(day, 8), world.times.at(day, 17))
        delivery.app_tracks += world.tracks_of("ws-0150", 2, world.times.at(day, 8), world.times.at(day, 17))
    delivery.app_identifies += world.logins_of(
        "ws-0077", 4, world.times.at(date(2024, 3, 18), 8), world.times.at(date(2024, 3, 28), 8)
    )


def sources_of(world: World, workspace: str) -> list[str]:
    """The ids of its sources, the oldest first."""
    return sorted(key for key, row in world.sources.items() if row["WORKSPACEID"] == workspace)


# What goes on, and what goes wrong


def ordinary_day(world: World, delivery: Delivery, day: date) -> None:
    """Updates, new things, soft deletes, resurrections and use, from one morning to the next."""
    first, upto = midnight(day) + MORNING - timedelta(days=1), midnight(day) + MORNING
    strangers = world.strangers()
    for name in world.chance.sample(strangers, 40):
        at = world.times.between(first, upto)
        delivery.app_workspaces.append(
            world.change(world.workspaces, name, at, PLAN=world.chance.choice(PLANS))
        )
    for name in world.chance.sample(strangers, 60):
        at = world.times.between(first + timedelta(hours=2), upto)
        delivery.app_sources.append(world.source(name, at))
    others = [key for key, row in world.sources.items() if row["WORKSPACEID"] not in OF_THE_STORY]
    older = [key for key in others if world.sources[key]["UPDATEDAT"] < spelt(first)]
    for key in world.chance.sample(older, 150):
        gone = world.sources[key]["DELETED"] == "TRUE"
        values = (
            {"DELETED": "FALSE" if gone else "TRUE"} if world.chance.random() < 0.5 else {"ENABLED": "TRUE"}
        )
        delivery.app_sources.append(
            world.change(world.sources, key, world.times.between(first, upto), **values)
        )
    for key in world.chance.sample(sorted(world.accounts), 25):
        at = world.times.between(first + timedelta(hours=6), upto)
        values = {"STAGE": world.chance.choice(STAGES), "ARR": f"{world.chance.randrange(3_000, 90_000)}.00"}
        delivery.sf_account.append(world.change(world.accounts, key, at, **values))
    unanswered = [key for key, row in world.tickets.items() if row["STATUS"] == "open"]
    for key in world.chance.sample(unanswered, 40):
        delivery.tickets.append(close(world, key, world.times.between(upto - timedelta(hours=3), upto)))
    for channel in world.chance.sample(sorted({channel for channel, _ in world.tickets}), 30):
        number = max(number for name, number in world.tickets if name == channel) + 1
        delivery.tickets += a_ticket(world, channel, number, first, upto)
    for name in world.chance.sample(strangers, 250):
        delivery.app_tracks += world.tracks_of(name, world.chance.randrange(1, 6), first, upto)
        delivery.app_identifies += world.logins_of(name, 1, first, upto)
    delivery.app_tracks += anonymous_tracks(world, 50, first, upto)


def anonymous_tracks(world: World, count: int, first: datetime, last: datetime) -> Iterator[Row]:
    """Nobody was logged in: neither a workspace nor an organization."""
    for _ in range(count):
        yield world.track(None, None, "anonymous", world.times.between(first, last))


def a_source_of_nobody(world: World, upto: datetime) -> Row:
    """Its workspace is NULL. It belongs to nobody and counts nowhere."""
    return {**world.source("ws-0150", upto - timedelta(days=3)), "WORKSPACEID": None}


def second_day(world: World, first: Delivery) -> Delivery:
    """Saturday: an ordinary day, and everything that a hand-written script gets wrong."""
    delivery = Delivery()
    ordinary_day(world, delivery, DAYS[2])
    a_source_is_deleted_and_another_moves(world, delivery)
    a_workspace_moves_to_another_account(world, delivery)
    an_account_is_deleted_in_salesforce(world, delivery)
    rows_come_again(delivery, first)
    rows_come_late(world, delivery)
    unknown_ids(world, delivery)
    rows_that_cannot_be_used(world, delivery)
    return delivery


def a_source_is_deleted_and_another_moves(world: World, delivery: Delivery) -> None:
    """Of the three sources of ws-0042, the first is deleted, and the last now belongs to ws-0043."""
    oldest, _, newest = sources_of(world, "ws-0042")
    delivery.app_sources += [
        world.change(world.sources, oldest, world.times.at(DAYS[1], 14), DELETED="TRUE"),
        world.change(world.sources, newest, world.times.at(DAYS[1], 15), WORKSPACEID="ws-0043"),
    ]


def a_workspace_moves_to_another_account(world: World, delivery: Delivery) -> None:
    """ws-0077 was sold. Both accounts change, and none of its own rows does."""
    moved = world.change(world.workspaces, "ws-0077", world.times.at(DAYS[1], 16), ORGANIZATIONID=BUYER)
    delivery.app_workspaces.append(moved)


def an_account_is_deleted_in_salesforce(world: World, delivery: Delivery) -> None:
    """The tickets in its Slack channel have no account any more."""
    at = world.times.at(DAYS[2], 4)
    delivery.sf_account.append(world.change(world.accounts, "0011050A", at, IS_DELETED="true"))


def rows_come_again(delivery: Delivery, first: Delivery) -> None:
    """The loader repeats rows: of record sets and of streams, in one file and in the next."""
    delivery.app_sources += [dict(row) for row in (*first.app_sources[:40], *delivery.app_sources[:5])]
    delivery.app_workspaces += [dict(row) for row in first.app_workspaces[:25]]
    delivery.app_tracks += [dict(row) for row in (*first.app_tracks[:120], *delivery.app_tracks[:30])]


def rows_come_late(world: World, delivery: Delivery) -> None:
    """An old row of a source, which loses, and tracks of weeks ago, which count in their windows."""
    source = world.sources["src-00010"]
    old = read_time(source["CREATEDAT"]) - timedelta(days=1)
    delivery.app_sources.append({**source, "NAME": "an old name", "UPDATEDAT": spelt(old)})
    named = {**source, "WORKSPACEID": "ws-9001", "UPDATEDAT": spelt(old - timedelta(hours=1))}
    delivery.app_sources.append(named)  # it loses too, but it has named a workspace
    for back in (3, 20, 28, 29, 30, 31, 60, 89, 90, 91):
        day = DAYS[2] - timedelta(days=back)
        delivery.app_tracks += world.tracks_of("ws-0311", 2, world.times.at(day, 8), world.times.at(day, 20))


def unknown_ids(world: World, delivery: Delivery) -> None:
    """Ids that no table has yet, that are NULL, and that are no numbers although they must be."""
    at = world.times.at(DAYS[1], 20)
    delivery.app_tracks += [
        world.track("ws-9002", 1999, "u-new", world.times.at(DAYS[1], 19)),
        world.track("ws-9002", None, "u-new", world.times.at(DAYS[1], 20)),
    ]
    delivery.app_sources.append({**world.source("ws-0150", at), "WORKSPACEID": None})
    delivery.app_identifies += [
        world.identify("ws-0311", text, "u-0311-1", "member", world.times.at(DAYS[1], 21))
        for text in ("none", "1047", "", None, "12 34")
    ]


def rows_that_cannot_be_used(world: World, delivery: Delivery) -> None:
    """A source without an id, and a track whose number is text. They go to the quarantine."""
    source = world.source("ws-0150", world.times.at(DAYS[1], 11))
    track = world.track("ws-0150", 1046, "u-0150-1", world.times.at(DAYS[1], 12))
    delivery.app_sources.append({**source, "ID": None})
    delivery.app_tracks.append({**track, "properties": {"rows": "many"}})


def fourth_day(world: World) -> Delivery:
    """Easter Monday: what happened on two days. A deleted source comes back, and so does an account."""
    delivery = Delivery()
    ordinary_day(world, delivery, DAYS[4])
    oldest = sources_of(world, "ws-0042")[0]
    delivery.app_sources += [
        world.change(world.sources, oldest, world.times.at(DAYS[3], 12), DELETED="FALSE"),
        world.source("ws-0043", world.times.at(DAYS[3], 13), "web"),
    ]
    workspace = world.workspace("ws-3001", BUYER, world.times.at(DAYS[3], 9))
    delivery.app_workspaces.append(workspace)
    delivery.app_sources.append(world.source("ws-3001", world.times.at(DAYS[3], 10), "web"))
    at = world.times.at(DAYS[3], 18)
    delivery.sf_account.append(world.change(world.accounts, "0011050A", at, IS_DELETED="false"))
    return delivery


# Files


def make_deliveries() -> dict[int, Delivery]:
    """Every delivery, by its day, in the order in which they come."""
    chance = random.Random(SEED)
    world = World(chance=chance, times=Times(chance))
    first = first_day(world)
    second = second_day(world, first)
    return {1: first, 2: second, 4: fourth_day(world)}


def write_table(path: Path, columns: list[str], rows: list[Row], batched_at: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, "_SDC_BATCHED_AT": batched_at} for row in rows)


def write_messages(path: Path, messages: list[Row]) -> None:
    path.write_text("".join(json.dumps(message) + "\n" for message in messages), encoding="utf-8")


def main(arguments: list[str]) -> int:
    if arguments not in (["1"], ["2"], ["4"]):
        print(
            "usage: python generate.py DAY, where DAY is 1, 2 or 4; nothing comes on day 3", file=sys.stderr
        )
        return 2
    day, folder = int(arguments[0]), Path(__file__).resolve().parent
    for name, rows in asdict(make_deliveries()[day]).items():
        short = Path("data", name, f"day-{day}.{'csv' if name in COLUMNS else 'jsonl'}")
        (folder / short).parent.mkdir(parents=True, exist_ok=True)
        if name in COLUMNS:
            write_table(folder / short, COLUMNS[name].split(), rows, spelt(midnight(DAYS[day]) + MORNING))
        else:
            write_messages(folder / short, rows)
        print(f"wrote {len(rows):,} rows to {short}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
