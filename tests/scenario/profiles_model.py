"""Expected content of every entity of examples/profiles, computed in plain Python.

The model does not use the engine. After each run it reads all rows again, finds the newest of each record,
and computes every variable of every entity anew. What was published before matters only to a variable whose
definition was changed and that waits for a backfill. Values are compared as `--output json` formats them.
"""

import csv
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from tests.scenario.json_rows import read_messages

Row = dict[str, Any]
Rows = tuple[Row, ...]

RECORD_SETS = ("app_workspaces", "app_sources", "sf_account", "tickets")
STREAMS = ("app_tracks", "app_identifies")
FACTS = (*RECORD_SETS, *STREAMS)
ENTITIES = ("workspace", "account")
RESULTS = (*ENTITIES, "current_customers")

BERLIN = ZoneInfo("Europe/Berlin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """What the project file says about the variables that the story adds, changes and removes."""

    web_sources: bool = False
    region: bool = True
    owners_of_enabled_sources: bool = False
    """Whether `source_owners` counts only who created sources that are enabled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """What was received of one dataset."""

    offered: int
    accepted: Rows
    """Each fact once. Of a stream with an identity, each message once."""
    quarantined: int = 0
    duplicates: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The results after a run."""

    rows: Mapping[str, Rows] = field(default_factory=lambda: dict.fromkeys(RESULTS, ()))
    received: Mapping[str, Received] = field(default_factory=dict)


def after_run(
    before: State,
    data: Path,
    as_of: datetime,
    declared: Declared | None = None,
    held: Collection[str] = (),
) -> State:
    """The state after a run over all rows that are there now.

    `held` are the variables of `workspace` whose definition changed and that no backfill has filled yet.
    """
    received = {name: receive(name, tuple(sorted((data / name).glob("day-*")))) for name in FACTS}
    rows = Inputs(
        **{name: newest(received[name].accepted, name) for name in RECORD_SETS},
        **{name: received[name].accepted for name in STREAMS},
    )
    now = start_of_day(as_of)
    computed = workspaces(rows, received["app_sources"].accepted, now, declared or Declared())
    before_by_id = {row["workspace_id"]: row for row in before.rows["workspace"]}
    of_workspaces = tuple(
        {**row, **{name: before_by_id.get(row["workspace_id"], {}).get(name) for name in held}}
        for row in computed
    )
    of_accounts = accounts(rows, received["sf_account"].accepted, of_workspaces, now)
    return State(
        rows={
            "workspace": of_workspaces,
            "account": of_accounts,
            "current_customers": current_customers(of_accounts),
        },
        received=received,
    )


MOMENTS = ("Friday", "Saturday", "Sunday", "Friday again", "Monday", "Monday filled")
"""What the README publishes, in its order."""


@dataclass(slots=True)
class Follower:
    """Follows the commands of the README, with the model instead of the engine."""

    project: Path
    declared: Declared = field(default_factory=Declared)
    held: tuple[str, ...] = ()
    states: dict[str, State] = field(default_factory=dict)
    """By moment."""
    runs: int = 0

    def follow(self, words: list[str]) -> str:
        """The moment that a command leads to. Empty if it publishes nothing."""
        match words:
            case ["sed", *_]:
                self.declared = Declared(web_sources=True, region=False, owners_of_enabled_sources=True)
                self.held = ("source_owners",)
            case ["strandline", "run", "--as-of", as_of] if self.runs < len(MOMENTS):
                return self._reach(as_of)
            case ["strandline", "backfill", "workspace", "--stale", "--as-of", as_of]:
                self.held = ()
                return self._reach(as_of)
        return ""

    def _reach(self, as_of: str) -> str:
        moment, before = MOMENTS[self.runs], next(reversed(self.states.values()), State())
        now = datetime.fromisoformat(as_of)
        self.states[moment] = after_run(before, self.project / "data", now, self.declared, self.held)
        self.runs += 1
        return moment


def start_of_day(as_of: datetime) -> datetime:
    """`every: day`: the clock of the entities moves at midnight in Berlin."""
    return datetime.combine(as_of.astimezone(BERLIN).date(), time(), BERLIN).astimezone(UTC)


# What was received


class UnusableError(Exception):
    """A row goes to the quarantine."""


@cache
def receive(name: str, files: tuple[Path, ...]) -> Received:
    """The rows of some files, which never change."""
    read = _read_table if name in RECORD_SETS else read_messages
    accepted: list[Row] = []
    offered = quarantined = 0
    for row in (row for path in files for row in read(path)):
        offered += 1
        try:
            accepted.append(DECODERS[name](row))
        except UnusableError:
            quarantined += 1
    once = {row["message_id"]: row for row in accepted} if name == "app_tracks" else dict(enumerate(accepted))
    return Received(
        offered=offered,
        accepted=tuple(once.values()),
        quarantined=quarantined,
        duplicates=len(accepted) - len(once),
    )


def decode_workspace(row: Row) -> Row:
    return {
        "id": row["ID"],
        "name": row["NAME"],
        "organizationid": _whole(row["ORGANIZATIONID"]),
        "plan": row["PLAN"],
        "region": row["REGION"],
        "storageprovider": row["STORAGEPROVIDER"],
        "createdat": _instant(row["CREATEDAT"]),
        "updatedat": _instant(row["UPDATEDAT"]),
        "deleted": row["DELETED"],
    }


def decode_source(row: Row) -> Row:
    if row["ID"] is None:
        raise UnusableError
    return {
        "id": row["ID"],
        "name": row["NAME"],
        "type": row["TYPE"],
        "workspaceid": row["WORKSPACEID"],
        "createdby": row["CREATEDBY"],
        "enabled": row["ENABLED"],
        "createdat": _instant(row["CREATEDAT"]),
        "updatedat": _instant(row["UPDATEDAT"]),
        "deleted": row["DELETED"],
    }


def decode_account(row: Row) -> Row:
    return {
        "id": row["ID"],
        "name": row["NAME"],
        "organization_id": row["ORGANIZATION_ID"],
        "stage": row["STAGE"],
        "arr": Decimal(row["ARR"]),
        "renewal_date": date.fromisoformat(row["RENEWAL_DATE"]) if row["RENEWAL_DATE"] else None,
        "channel_in_use": row["SLACK_CHANNEL_ID"] if row["IS_DELETED"] == "false" else None,
        "systemmodstamp": _instant(row["SYSTEMMODSTAMP"]),
        "is_deleted": row["IS_DELETED"],
    }


def decode_ticket(row: Row) -> Row:
    return {
        "channel_id": row["CHANNEL_ID"],
        "ticket_no": int(row["TICKET_NO"]),
        "status": row["STATUS"],
        "priority": row["PRIORITY"],
        "csat": _whole(row["CSAT"]),
        "opened_at": _instant(row["OPENED_AT"]),
        "closed_at": _instant(row["CLOSED_AT"]) if row["CLOSED_AT"] else None,
        "updated_at": _instant(row["UPDATED_AT"]),
    }


def decode_track(message: Row) -> Row:
    rows = message["properties"].get("rows")
    if isinstance(rows, str):
        raise UnusableError
    sent_at = _instant(message["sentAt"])
    return {
        "message_id": message["messageId"],
        "workspace_id": message["context"]["workspaceId"],
        "organization_id": message["context"]["organizationId"],
        "user_id": message["userId"],
        "event": message["event"],
        "rows_synced": rows,
        "sent_at": sent_at,
        "sent_on": sent_at.astimezone(BERLIN).date(),
    }


def decode_identify(message: Row) -> Row:
    return {
        "user_id": message["userId"],
        "workspace_id": message["context"]["workspaceId"],
        "organization_id": message["context"]["organizationId"],
        "role": message["traits"].get("role"),
        "sent_at": _instant(message["sentAt"]),
    }


DECODERS: Mapping[str, Callable[[Row], Row]] = {
    "app_workspaces": decode_workspace,
    "app_sources": decode_source,
    "sf_account": decode_account,
    "tickets": decode_ticket,
    "app_tracks": decode_track,
    "app_identifies": decode_identify,
}
RECORDS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "app_workspaces": (("id",), "updatedat"),
    "app_sources": (("id",), "updatedat"),
    "sf_account": (("id",), "systemmodstamp"),
    "tickets": (("channel_id", "ticket_no"), "updated_at"),
}
"""The `override_channel` and the `override_ordering` of each record set."""


def newest(facts: Iterable[Row], name: str) -> Rows:
    """The newest fact of each record. The same fact may have come several times."""
    key, order = RECORDS[name]
    best: dict[tuple[Any, ...], Row] = {}
    for fact in facts:
        record = tuple(fact[column] for column in key)
        known = best.setdefault(record, fact)
        assert known == fact or known[order] != fact[order], f"the generator made a tie: {fact}"
        if fact[order] > known[order]:
            best[record] = fact
    return tuple(best.values())


# Aggregates


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """The rows that variables read: the live records of record sets, the facts of streams."""

    app_workspaces: Rows
    app_sources: Rows
    sf_account: Rows
    tickets: Rows
    app_tracks: Rows
    app_identifies: Rows


def by_owner(rows: Iterable[Row], owners: Callable[[Row], Iterable[Hashable]]) -> Mapping[Any, list[Row]]:
    groups: defaultdict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        for owner in owners(row):
            if owner is not None:
                groups[owner].append(row)
    return groups


def inside(rows: Iterable[Row], column: str, days: int, now: datetime) -> list[Row]:
    """The rows of `[now - days, now)`, in days of 24 hours."""
    first = now - timedelta(days=days)
    return [row for row in rows if row[column] is not None and first <= row[column] < now]


def distinct(rows: Iterable[Row], column: str) -> int:
    return len({row[column] for row in rows} - {None})


def total(rows: Iterable[Row], column: str, nothing: Any = None) -> Any:
    values = [row[column] for row in rows if row[column] is not None]
    return sum(values) if values else nothing


def most(rows: Iterable[Row], column: str) -> Any:
    return max((row[column] for row in rows if row[column] is not None), default=None)


def last(rows: Collection[Row], column: str, order: str) -> Any:
    """The value in the newest row, also if it is NULL."""
    return max(rows, key=lambda row: row[order])[column] if rows else None


def joined(rows: Iterable[Row], column: str) -> str:
    return ", ".join(sorted({row[column] for row in rows} - {None}))


def ratio(one: int, other: int) -> float | None:
    return one / other if other else None


# Workspaces


def workspaces(rows: Inputs, source_facts: Rows, now: datetime, declared: Declared) -> Rows:
    records = by_owner(rows.app_workspaces, lambda row: [row["id"]])
    sources = by_owner(rows.app_sources, lambda row: [row["workspaceid"]])
    tracks = by_owner(rows.app_tracks, lambda row: [row["workspace_id"]])
    identifies = by_owner(rows.app_identifies, lambda row: [row["workspace_id"]])
    named = {row["workspaceid"] for row in source_facts} - {None}
    return tuple(
        {
            "workspace_id": name,
            **of_record(records.get(name, []), declared),
            **of_sources(sources.get(name, []), now, declared),
            **of_tracks(tracks.get(name, []), now),
            **of_logins(identifies.get(name, []), now),
            **derived(tracks.get(name, []), sources.get(name, []), now),
        }
        for name in sorted({*records, *named, *tracks, *identifies})
    )


def of_record(records: list[Row], declared: Declared) -> Row:
    """A workspace has one record, or none if only its id is known."""
    record = records[0] if records else {}
    provider = record.get("storageprovider")
    kind = "own" if provider in ("s3", "gcs", "azure") else "managed" if provider is None else "other"
    return {
        "organization_id": record.get("organizationid"),
        "name": record.get("name"),
        "plan": record.get("plan", "unknown"),
        **({"region": record.get("region")} if declared.region else {}),
        "created_at": record.get("createdat"),
        "is_live": record.get("deleted") == "FALSE",
        "storage_provider": provider,
        "storage_kind": kind,
    }


def of_sources(sources: list[Row], now: datetime, declared: Declared) -> Row:
    live = [row for row in sources if row["deleted"] == "FALSE"]
    removed = [row for row in sources if row["deleted"] == "TRUE"]
    owned = [row for row in live if row["enabled"] == "TRUE" or not declared.owners_of_enabled_sources]
    web = {"web_sources": sum(row["type"] == "web" for row in live)}
    created = {days: inside(live, "createdat", days, now) for days in (7, 30, 90)}
    return {
        "live_sources": len(live),
        **(web if declared.web_sources else {}),
        "source_types": distinct(live, "type"),
        "source_kinds": joined(live, "type"),
        "source_owners": distinct(owned, "createdby"),
        "newest_source": last(sources, "name", "updatedat"),
        "first_source": min(sources, key=lambda row: row["createdat"])["name"] if sources else None,
        "last_source_change": most(sources, "updatedat"),
        **{f"created_sources_{days}d": len(created[days]) for days in created},
        **{f"created_types_{days}d": distinct(created[days], "type") for days in created},
        **{f"removed_sources_{days}d": len(inside(removed, "updatedat", days, now)) for days in (7, 30)},
    }


def of_tracks(tracks: list[Row], now: datetime) -> Row:
    recent = {days: inside(tracks, "sent_at", days, now) for days in (7, 30, 90)}
    this_month = now.astimezone(BERLIN).date().replace(day=1)
    last_month = (this_month - timedelta(days=1)).replace(day=1)
    synced = [row for row in tracks if row["event"] == "sync_finished" and row["sent_at"] < now]
    return {
        "tracks": len(tracks),
        "last_track": most(tracks, "sent_at"),
        "last_event": last(tracks, "event", "sent_at"),
        "largest_sync": most(recent[30], "rows_synced"),
        **{f"tracks_{days}d": len(recent[days]) for days in recent},
        **{f"active_users_{days}d": distinct(recent[days], "user_id") for days in recent},
        "rows_this_month": total((row for row in synced if row["sent_on"] >= this_month), "rows_synced", 0),
        "rows_last_month": total(
            (row for row in synced if last_month <= row["sent_on"] < this_month), "rows_synced", 0
        ),
    }


def of_logins(identifies: list[Row], now: datetime) -> Row:
    newest_first = sorted(identifies, key=lambda row: row["sent_at"], reverse=True)
    return {
        "users": distinct(identifies, "user_id"),
        "admins": distinct((row for row in identifies if row["role"] == "admin"), "user_id"),
        "newest_users": [row["user_id"] for row in newest_first[:3]],
        **{f"logins_{days}d": len(inside(identifies, "sent_at", days, now)) for days in (7, 30)},
    }


def derived(tracks: list[Row], sources: list[Row], now: datetime) -> Row:
    in_week, in_month = (len(inside(tracks, "sent_at", days, now)) for days in (7, 30))
    active = in_month > 0 and any(row["deleted"] == "FALSE" for row in sources)
    pace = ratio(in_week, in_month)
    if not active or pace is None:
        health = "asleep"
    else:
        health = "growing" if pace > 0.4 else "fading" if pace < 0.1 else "steady"
    return {"pace": pace, "is_active": active, "health": health}


# Accounts


def accounts(rows: Inputs, account_facts: Rows, of_workspaces: Rows, now: datetime) -> Rows:
    records = by_owner(rows.sf_account, lambda row: [_organization(row["organization_id"])])
    members = by_owner(of_workspaces, lambda row: [row["organization_id"]])
    channels = by_owner(rows.sf_account, lambda row: [row["channel_in_use"]])
    tickets = by_owner(rows.tickets, partial(_owners_of_channel, channels))
    identifies = by_owner(rows.app_identifies, lambda row: [_organization(row["organization_id"])])
    tracks = by_owner(rows.app_tracks, lambda row: [row["organization_id"]])
    named = {_organization(row["organization_id"]) for row in account_facts} - {None}
    return tuple(
        {
            "organization_id": name,
            **of_members(members.get(name, [])),
            **of_tickets(tickets.get(name, []), now),
            **of_users(identifies.get(name, []), now),
            "events_7d": len(inside(tracks.get(name, []), "sent_at", 7, now)),
            **of_salesforce(records.get(name, []), now),
            **about_care(records.get(name, []), members.get(name, []), tickets.get(name, []), now),
        }
        for name in sorted({*named, *members, *identifies, *tracks})
    )


def _owners_of_channel(channels: Mapping[str, list[Row]], ticket: Row) -> set[int | None]:
    """The accounts whose Slack channel a ticket is in, each once."""
    return {_organization(row["organization_id"]) for row in channels.get(ticket["channel_id"], [])}


def _organization(text: str | None) -> int | None:
    """The id of an organization in a column of text. None if it is not a number."""
    return int(text) if text is not None and re.fullmatch(r"[0-9]+", text) else None


def of_members(members: list[Row]) -> Row:
    live = [row for row in members if row["is_live"]]
    created = [row for row in members if row["created_at"] is not None]
    newest_workspace = max(created, key=lambda row: row["created_at"])["workspace_id"] if created else None
    return {
        "workspaces": len(live),
        "active_workspaces": sum(row["is_active"] for row in members),
        "newest_workspace": newest_workspace,
        "storage_kinds": joined(live, "storage_kind"),
        **{
            name: total(members, name, 0)
            for name in ("live_sources", "created_sources_30d", "tracks_30d", "rows_this_month")
        },
    }


def of_tickets(tickets: list[Row], now: datetime) -> Row:
    open_ones = [row for row in tickets if row["status"] != "closed"]
    scores = [row["csat"] for row in inside(tickets, "closed_at", 90, now) if row["csat"] is not None]
    return {
        "tickets": len(tickets),
        "open_tickets": len(open_ones),
        "urgent_tickets": sum(row["priority"] == "urgent" for row in open_ones),
        **{f"opened_{days}d": len(inside(tickets, "opened_at", days, now)) for days in (7, 30, 90)},
        "satisfaction": sum(scores) / len(scores) if scores else None,
    }


def of_users(identifies: list[Row], now: datetime) -> Row:
    return {
        "users": distinct(identifies, "user_id"),
        **{
            f"logins_{days}d": distinct(inside(identifies, "sent_at", days, now), "user_id")
            for days in (7, 30, 90)
        },
    }


def of_salesforce(records: list[Row], now: datetime) -> Row:
    live = [row for row in records if row["is_deleted"] == "false"]
    today = now.astimezone(BERLIN).date()
    renewals = [row["renewal_date"] for row in live if row["renewal_date"] and row["renewal_date"] >= today]
    return {
        "name": last(live, "name", "systemmodstamp"),
        "stage": last(live, "stage", "systemmodstamp"),
        "arr": total(live, "arr", Decimal("0.00")),
        "renewal_on": min(renewals, default=None),
        "renewals_due": sum(on < _days_later(now, 30) for on in renewals),
    }


def _days_later(now: datetime, days: int) -> date:
    """The local date after some days of 24 hours."""
    return (now + timedelta(days=days)).astimezone(BERLIN).date()


def about_care(records: list[Row], members: list[Row], tickets: list[Row], now: datetime) -> Row:
    sales, use, asked = of_salesforce(records, now), of_members(members), of_tickets(tickets, now)
    is_customer = sales["stage"] == "Customer"
    if not is_customer:
        care = "none"
    elif asked["urgent_tickets"] or sales["renewals_due"]:
        care = "now"
    else:
        care = "usual" if use["active_workspaces"] else "soon"
    return {
        "is_customer": is_customer,
        "sources_per_workspace": ratio(use["live_sources"], use["workspaces"]),
        "care": care,
    }


def current_customers(of_accounts: Rows) -> Rows:
    columns = (
        *("organization_id", "name", "arr", "renewal_on", "workspaces", "live_sources", "tracks_30d"),
        *("rows_this_month", "open_tickets", "care"),
    )
    return tuple({column: row[column] for column in columns} for row in of_accounts if row["is_customer"])


# Values


def _read_table(path: Path) -> list[Row]:
    with path.open(encoding="utf-8", newline="") as file:
        return [{name: value or None for name, value in row.items()} for row in csv.DictReader(file)]


def _whole(text: str | None) -> int | None:
    return None if text is None else int(text)


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
