"""What the fault suite knows of triggers."""

import json
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

from strandline.lake.log import read_entries
from strandline.lake.work import Prepared
from strandline.model.commits import Operation
from strandline.model.events import EventType, make_event_id
from strandline.model.plan import Cause
from strandline.model.publishing import Trigger
from strandline.model.scope import Rows as RowsScope
from strandline.publish.changes import Change, ExistingRow, RowChange
from strandline.publish.trigger.event_file import EVENT_SCHEMA
from strandline.publish.trigger.reading import find_covered, find_unread
from strandline.publish.trigger.rule import COMPARED, REVISIONS, find_told
from strandline.publish.trigger.way import choose_way
from strandline.publish.trigger_fold import Recorded, TriggerRule, fold_changes, fold_existing
from tests.faults import table_log
from tests.faults.evidence import Evidence, require
from tests.faults.kinds.changes.kind import LOGS, TIME, read_state
from tests.faults.kinds.kind import Happening, Kind, Step, Switches
from tests.faults.plain_work import Work, write_rows
from tests.faults.table_log import Row

if TYPE_CHECKING:
    from tests.faults.world import World

ALERT, EDITED = "alert", "edited"
"""A trigger that nobody changes, and one that people edit, remove and put back."""
FIRE, CLEAR = 7, 4


def prepare(work: Work) -> Prepared:
    """The changes of the log that are not folded yet, and the state that recorded events give."""
    trigger = work.node.definition
    assert isinstance(trigger, Trigger)
    (planned,) = work.task.inputs
    log, now, lake = planned.dataset, work.inputs[planned.dataset], work.desk.lake
    log_entries = [e for e in read_entries(lake.table(log), -1) if e.version <= now.version]
    covered = find_covered(log_entries, trigger.dataset, now.version)
    entries = [e for e in read_entries(lake.table(trigger.dataset), -1) if e.version <= covered]
    unread = find_unread(trigger.name, planned.after, now, trigger.dataset, log_entries, entries)
    known = work.record.counts.get(REVISIONS, 0) if work.record else 0
    rewrites = work.task.overwrite and work.own_version is not None
    starts = not known or work.stale or unread.broken or work.task.overwrite
    own = [] if work.task.overwrite else read_events(work)
    rule = TriggerRule(name=trigger.name, fire=trigger.fire, clear=trigger.clear)
    counts: dict[str, int] = {}
    root = lake.table(log)
    added = [
        row
        for e in log_entries
        if e.version > unread.after and e.changes_rows
        for f in e.added
        for row in sorted(table_log._read_rows(f"{root}/{f.path}"), key=_place)
        if row["version"] >= unread.from_version
    ]
    told = find_told(entries, trigger.name)
    before = any(e.changes_rows and e.version not in told for e in entries)
    way = choose_way(
        trigger.existing,
        starts=starts,
        asked=work.task.cause is Cause.PERSON,
        were_there=planned.after is not None or before,
        has_existing=lambda: any(row["version"] not in told for row in added) or has_reset(added),
        has_reset=lambda: has_reset(added),
    )
    revision = known + 1 if way.starts else known
    if way.compares:
        events = _compare(work, trigger, rule, own, revision, covered)
        counts[COMPARED] = 1
    else:
        folded = fold_changes(
            rule,
            [_make(row, row["version"] in told) for row in added],
            recorded_of(own, revision),
            quiet=rewrites,
        )
        events, revision = folded.events, folded.revision
    rows = [
        {name: getattr(event, name) for name in EVENT_SCHEMA.names[:-1]}
        | {"event_type": str(event.event_type), "recorded_at": work.desk.now()}
        for event in events
    ]
    if revision > known:
        counts[REVISIONS] = revision - known
    first = work.own_version is None
    operation = (
        Operation.OVERWRITE
        if rewrites
        else Operation.APPEND
        if rows or first
        else Operation.COUNTS
        if counts
        else None
    )
    return Prepared(
        write=None if operation is None else write_rows(operation, EVENT_SCHEMA, rows),
        scope=RowsScope(count=len(rows)),
        rows_written=len(rows),
        live_rows=len(rows) + (0 if rewrites else work.live_rows),
        counts=counts,
        whole=True,
    )


def has_reset(changes: list[Row]) -> bool:
    return any(row["operation"] == Change.RESET for row in changes)


def read_events(work: Work) -> list[Row]:
    """What was recorded, in the order of the log's changes."""
    return sorted(work.read_own() or (), key=lambda row: (row["revision"], *_place(row)))


def recorded_of(events: list[Row], revision: int) -> Recorded:
    counts: dict[tuple[str, int], int] = {}
    for row in events:
        place = row["key"], row["source_timestamp"]
        counts[place] = counts.get(place, 0) + 1
    last = {row["key"]: EventType(row["event_type"]) for row in events if row["revision"] == revision}
    return Recorded(revision=revision, last=last, counts=counts)


def _compare(
    work: Work, trigger: Trigger, rule: TriggerRule, own: list[Row], revision: int, version: int
) -> tuple[Any, ...]:
    """A backfill: the rows as they are now, and what was told last."""
    rows = read_state(
        table_log.read_snapshot(work.desk.lake.table(trigger.dataset), version).rows(), trigger.key
    )
    last = {row["key"]: EventType(row["event_type"]) for row in own}
    data = {row["key"]: row for row in own}
    on = [key for key, kind in last.items() if kind is EventType.MATCH]
    gone = [
        ExistingRow(key=key, source_timestamp=data[key]["source_timestamp"], data=data[key]["data"], row={})
        for key in on
        if key not in rows
    ]
    there = [
        ExistingRow(key=key, source_timestamp=TIME, data=json.dumps(row), row=row)
        for key, row in rows.items()
    ]
    first = max((row["position"] + 1 for row in own if row["version"] == version), default=0)
    return fold_existing(
        rule, there, gone, recorded_of(own, revision), last, version=version, first_position=first
    )


def _place(row: Row) -> tuple[int, int]:
    return row["version"], row["position"]


def _make(row: Row, told: bool) -> RowChange:
    operation = Change(row["operation"])
    data = json.loads(row["data"]) if row["data"] else None
    return RowChange(
        version=row["version"],
        position=row["position"],
        operation=operation,
        key=row["key"] or "",
        source_timestamp=row["source_timestamp"] or 0,
        data=row["data"] or "",
        row=None if operation is Change.DELETE else data,
        old=json.loads(row["before"]) if row["before"] else None,
        told=told,
    )


def check(evidence: Evidence) -> None:
    """L12: ids are those of what happened. At rest the events of a trigger follow from its log."""
    for name in (ALERT, EDITED):
        events = sorted(evidence.rows(name), key=lambda row: (row["revision"], *_place(row)))
        ids = [row["event_id"] for row in events]
        require(len(ids) == len(set(ids)), f"L12 {name}: different events have different ids", ids)
        for row in events:
            expected = make_event_id(name, row["key"], row["source_timestamp"], row["n"])
            require(row["event_id"] == expected, f"L12 {name}: the id is derived", row)
        seen: dict[tuple[str, int], int] = {}
        for row in sorted(events, key=lambda row: row["n"]):
            place = row["key"], row["source_timestamp"]
            seen[place] = seen.get(place, 0) + 1
            require(row["n"] == seen[place], f"L12 {name}: n counts all events", row)
        told = _told_versions(evidence, name)
        for row in events if name == ALERT or not evidence.world.switches["edited_delivers"] else ():
            wrong = not row["quiet"] and row["version"] not in told
            require(not wrong, f"{name}: what came before it is told to nobody", row)
    if evidence.at_rest:
        _check_events(evidence)
        _check_compared(evidence)


def _told_versions(evidence: Evidence, name: str) -> set[int]:
    return {e.version for e in evidence.entries("trade") if e.metadata and name in e.metadata.published_to}


def _check_events(evidence: Evidence) -> None:
    """The events of the trigger that nobody changes, by the plainest loop over the whole log."""
    rows = sorted(evidence.rows(LOGS["trade"]), key=lambda r: (r["published_at"], *_place(r)))
    if any(row["operation"] == "RESET" for row in rows):
        return
    on: dict[str, bool] = {}
    expected = []
    for row in rows:
        data = json.loads(row["data"])
        quantity = None if row["operation"] == "DELETE" else data["quantity"]
        was = on.get(row["key"], False)
        fires = quantity is not None and quantity >= FIRE
        clears = quantity is not None and quantity < CLEAR
        on[row["key"]] = row["operation"] != "DELETE" and (fires or (was and not clears))
        if on[row["key"]] is not was:
            kind = "MATCH" if on[row["key"]] else "UNMATCH"
            expected.append((kind, row["key"], *_place(row), False))
    events = [(r["event_type"], r["key"], *_place(r), r["quiet"]) for r in evidence.rows(ALERT)]
    require(sorted(events) == sorted(expected), f"L2 {ALERT}", sorted(events), sorted(expected))


def _check_compared(evidence: Evidence) -> None:
    """Once rows were compared in its last revision, whoever heard of all events knows the rows that fire."""
    fire = evidence.world.switches["edited_fire"]
    ours = [e.metadata for e in evidence.entries(EDITED) if e.metadata and not e.metadata.operation.is_bare]
    starts = [place for place, commit in enumerate(ours) if commit.counts.get(REVISIONS)]
    compared = [place for place, commit in enumerate(ours) if commit.counts.get(COMPARED)]
    if not fire or not compared or not starts or compared[-1] < starts[-1]:
        return
    events = sorted(evidence.rows(EDITED), key=lambda row: (row["revision"], *_place(row)))
    last = {row["key"]: row["event_type"] for row in events}
    on = {key for key, kind in last.items() if kind == "MATCH"}
    rows = read_state(evidence.rows("trade"), ("id",))
    firing = {key for key, row in rows.items() if row["quantity"] is not None and row["quantity"] >= fire}
    require(on == firing, f"L2 {EDITED}: a comparison brings receivers to the rows", on, firing)


def _declare(switches: Switches) -> dict[str, str]:
    clear = f"clear: {{quantity: {{_lt: {CLEAR}}}}}"
    alert = f"{ALERT}: {{from: trade, fire: {{quantity: {{_gte: {FIRE}}}}}, {clear}, endpoint: ops}}"
    fire = switches["edited_fire"]
    existing = ", existing: deliver" if switches["edited_delivers"] else ""
    edited = f"\n{EDITED}: {{from: trade, fire: {{quantity: {{_gte: {fire}}}}}{existing}}}" if fire else ""
    endpoint = 'ops: {url: "https://ops.example/hook", secret: "${SECRET}"}'
    return {"triggers": alert + edited, "endpoints": endpoint}


def edit_trigger(world: "World", fire: int) -> None:
    world.switches["edited_fire"] = fire


def deliver_existing(world: "World", fire: int) -> None:
    """From now on the trigger tells of rows that were there."""
    world.switches |= {"edited_fire": fire, "edited_delivers": True}


KIND = Kind(
    name="trigger",
    prepare=prepare,
    check=check,
    switches={"edited_fire": 6, "edited_delivers": False},
    project=_declare,
    story=(
        Step(name="an edited trigger", before=lambda w: edit_trigger(w, 8), told_with="a trade leaves"),
        Step(name="a removed trigger", before=lambda w: edit_trigger(w, 0), only_long=True),
        Step(name="a trigger that is put back", before=lambda w: edit_trigger(w, 7), only_long=True),
    ),
    happenings=(
        Happening(do=edit_trigger, drawn={"fire": st.sampled_from([5, 7, 8])}),
        Happening(do=deliver_existing, drawn={"fire": st.sampled_from([5, 7, 8])}),
    ),
    backfills=(EDITED,),
)
