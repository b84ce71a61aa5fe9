"""Published records and events as entities, compared with values that plain Python or DuckDB computes."""

import csv
import json
import os
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from tests.harness import TestProject, at, result_of

pytestmark = [pytest.mark.spark, pytest.mark.real_data]

Make = Callable[[str], TestProject]
Rows = set[tuple[object, ...]]
RECORDS = "5_cdc_record_sets"
EVERY_HOUR = bool(os.environ.get("STRANDLINE_SLOW"))
"""Whether the clock stops at each hour of the day, and not only at some."""


def ask(sql: str) -> Rows:
    """DuckDB's answer."""
    return set(duckdb.execute(sql).fetchall())


def deliver(project: TestProject, source: Path, target: str, where: str = "true") -> None:
    """Some rows of a file, in an order that has nothing to do with theirs."""
    file = project.folder / target
    file.parent.mkdir(exist_ok=True)
    shuffled = f"select * from read_parquet('{source}') where {where} order by hash(id, op)"
    duckdb.execute(f"copy ({shuffled}) to '{file}' (format parquet)")


# Advisories that change their package

ADVISORIES = """
    project: advisories
    sources:
      commits: {files: "c/*.parquet"}
    datasets:
      advisory:
        from: commits
        columns: {is_live: {sql: "CAST(op <> 'D' AS INT)"}}
        record_set: {key: [id], order_by: [commit_seq, is_live, path], deleted: "op = 'D'"}
    entities:
      package:
        id: package
        variables:
          active: {from: advisory, select: count(*), where: withdrawn IS NULL}
          published: {from: advisory, select: count(*), window: {column: published, last: 52 weeks}}
          aliases: {from: advisory, select: "sum(alias_count)"}
"""


def test_advisories_in_any_order_are_counted_at_the_package_that_they_are_of(
    make_project: Make, shared_data: Path
) -> None:
    """352 of them change their package. A package that has none left stays, with 0."""
    changes, now = shared_data / RECORDS / "pypa_advisory_changes.parquet", "2024-06-01T00:00:00+00:00"
    project = make_project(ADVISORIES)

    for batch in (0, 1):
        deliver(project, changes, f"c/{batch}.parquet", f"hash(path, commit_seq) % 2 = {batch}")
        project.run(at(now))

    packages = project.rows("package")
    live = f"""
        select * from (
            select *, row_number() over (partition by id order by commit_seq desc, op = 'D', path desc) as nth
            from read_parquet('{changes}'))
        where nth = 1 and op <> 'D'"""
    year = "published >= timestamp '2024-06-01' - interval 364 days and published < timestamp '2024-06-01'"
    assert packages == ask(
        f"""select p.package, count(l.id) filter (withdrawn is null), count(l.id) filter ({year}),
               sum(alias_count)::bigint
            from (select distinct package from read_parquet('{changes}')) p
            left join ({live}) l using (package)
            group by all"""
    )
    active = {str(package): count for package, count, _, _ in packages}
    assert (sum(map(int, map(str, active.values()))), len(active)) == (2_651, 667)
    assert sum(count == 0 for count in active.values()) == 7
    assert (active["tensorflow-cpu"], active["django"]) == (297, 116)
    project.assert_verified("package")


# Runways and frequencies under one airport

AIRPORTS = """
    project: airports
    sources:
      runway_rows: {files: "r/*.parquet"}
      frequency_rows: {files: "f/*.parquet"}
    datasets:
      runways:
        from: runway_rows
        columns: {airport_ref: {type: bigint}}
        record_set: {key: [id], order_by: [snapshot_seq], deleted: "op = 'D'"}
      frequencies:
        from: frequency_rows
        columns: {airport_ref: {type: string}}
        record_set: {key: [id], order_by: [snapshot_seq], deleted: "op = 'D'"}
    entities:
      airport:
        id: {airport_ref: bigint}
        variables:
          open_runways: {from: runways, select: count(*), where: "closed = '0'"}
          idents: {from: runways, select: count(distinct airport_ident)}
          frequencies: {from: frequencies, select: count(*)}
"""


def find_airports(folder: Path, upto: int) -> Rows:
    def live(name: str, seq: int) -> str:
        return f"""(select * from (
            select *, row_number() over (partition by id order by snapshot_seq desc) as nth
            from read_parquet('{folder}/{name}_changes.parquet') where snapshot_seq <= {seq})
            where nth = 1 and op <> 'D')"""

    return ask(
        f"""
        with runways as (select airport_ref, count(*) filter (closed = '0') as n,
                         count(distinct airport_ident) as i from {live("runways", upto)} group by all),
        frequencies as (select airport_ref, count(*) as n from {live("frequencies", 1 << 40)} group by all),
        named as (select airport_ref from read_parquet('{folder}/runways_changes.parquet')
                  where snapshot_seq <= {upto}
                  union select airport_ref from read_parquet('{folder}/frequencies_changes.parquet'))
        select airport_ref, coalesce(r.n, 0), coalesce(r.i, 0), coalesce(f.n, 0)
        from named left join runways r using (airport_ref) left join frequencies f using (airport_ref)"""
    )


def test_runways_and_frequencies_are_counted_at_their_airport_also_after_an_empty_export(
    make_project: Make, shared_data: Path
) -> None:
    """Version 1009 of the runways had none: 46,604 were deleted, and came back with the next version."""
    folder = shared_data / RECORDS
    runways, frequencies = folder / "runways_changes.parquet", folder / "frequencies_changes.parquet"
    project = make_project(AIRPORTS)
    deliver(project, frequencies, "f/all.parquet")
    deliver(project, runways, "r/1.parquet", "snapshot_seq <= 1008")
    project.run()
    before = find_airports(folder, 1008)
    assert project.rows("airport") == before

    deliver(project, runways, "r/2.parquet", "snapshot_seq = 1009")
    stopped = project.run(ok=False)

    assert str(result_of(stopped, "runways").status) == "guarded"
    assert str(result_of(stopped, "airport").status) == "blocked"
    assert project.rows("airport") == before

    deliver(project, runways, "r/3.parquet", "snapshot_seq > 1009")
    project.run()

    airports = project.rows("airport")
    assert airports == find_airports(folder, 1 << 40)
    numbers = [tuple(map(int, map(str, row))) for row in airports]
    assert sum(row[1] for row in numbers) == 47_122
    assert sum(row[1] > 0 for row in numbers) == 40_896
    assert sum(row[3] for row in numbers) == 30_340
    project.assert_verified("airport")


# Purchases and returns in windows

SHOPPING = """
    project: shopping
    sources:
      bought: {files: "p/*.csv"}
      sent_back: {files: "r/*.csv"}
    datasets:
      purchases:
        from: bought
        columns: {ts: {type: timestamp_ms}, purchase_price: {type: bigint}}
        event_stream: {identity: [purchase_id]}
      returns:
        from: sent_back
        columns: {ts: {type: timestamp_ms}, refund_amt: {type: bigint}}
        event_stream: {identity: [return_id]}
    entities:
      user:
        id: {user_id: int}
        groups:
          - from: purchases
            window: &windows {column: ts, last: [3 days, 14 days, 30 days]}
            variables: {bought: "count(*)", paid: "sum(purchase_price)", dearest: "max(purchase_price)"}
          - from: returns
            window: *windows
            variables: {sent_back: "count(*)", refunded: "sum(refund_amt)"}
        variables:
          ever_paid: {from: purchases, select: "sum(purchase_price)"}
          ever_refunded: {from: returns, select: "sum(refund_amt)", default: 0}
"""
DAYS = (3, 14, 30)
Event = tuple[str, datetime, int]


def read_events(file: Path, amount: str) -> list[Event]:
    with file.open() as stream:
        rows = list(csv.DictReader(stream))
    return [(r["user_id"], datetime.fromtimestamp(int(r["ts"]) / 1000, UTC), int(r[amount])) for r in rows]


def total(events: Iterable[Event], user: str) -> list[int]:
    return [amount for of, _, amount in events if of == user]


def within(events: Iterable[Event], now: datetime, days: int) -> list[Event]:
    return [event for event in events if now - timedelta(days=days) <= event[1] < now]


def test_purchases_and_returns_in_windows_at_any_end_time(make_project: Make, shared_data: Path) -> None:
    """The file's `ds` is not the day of the event, so the time of the event has to count."""
    folder = shared_data / RECORDS / "chronon"
    project = make_project(SHOPPING)
    for name in ("purchases", "returns"):
        # The last line of one has no end. It would be received once the file has not changed for two runs.
        lines = (folder / f"{name}.csv").read_text().splitlines()
        project.write(f"{name[0]}/1.csv", "".join(f"{line}\n" for line in lines))
    bought = read_events(folder / "purchases.csv", "purchase_price")
    returned = read_events(folder / "returns.csv", "refund_amt")
    users = {user for user, _, _ in bought + returned}
    columns = [
        *(f"{name}_{days}d" for name in ("bought", "paid", "dearest") for days in DAYS),
        *(f"{name}_{days}d" for name in ("sent_back", "refunded") for days in DAYS),
    ]

    for nth, end in enumerate(
        ("2023-12-01T00:00:00", "2023-11-16T11:30:00", bought[0][1].isoformat(), "2024-06-01T00:00:00")
    ):
        now = datetime.fromisoformat(end).replace(tzinfo=UTC)
        outcome = project.run(at(now.isoformat()))

        assert str(result_of(outcome, "user").cause) == ("clock" if nth else "new_node")
        expected = set()
        for user in users:
            paid = [total(within(bought, now, days), user) for days in DAYS]
            refunded = [total(within(returned, now, days), user) for days in DAYS]
            expected.add(
                (
                    int(user),
                    *map(len, paid),
                    *(sum(p) if p else None for p in paid),
                    *(max(p, default=None) for p in paid),
                    *map(len, refunded),
                    *(sum(r) if r else None for r in refunded),
                )
            )
        assert project.rows("user", "user_id", *columns) == expected, end
    assert project.query("select sum(ever_paid), sum(ever_refunded) from user") == [(124_819, 122_392)]
    project.assert_verified("user")


# A register per ward

WARDS = """
    project: toronto
    sources:
      changes: {files: "c/*.parquet"}
    datasets:
      register:
        from: changes
        columns: {registered_at: {sql: "CASE WHEN op = 'I' THEN snapshot_at END"}}
        record_set:
          key: [registration_number]
          order_by: [snapshot_seq]
          deleted: "op = 'D'"
          latest_non_null: [registered_at]
    entities:
      ward:
        id: ward_number
        variables:
          live: {from: register, select: count(*)}
          registered: {from: register, select: count(*), window: {column: registered_at, last: 90 days}}
"""


def find_wards(changes: Path, now: str) -> Rows:
    last = "max(snapshot_seq) filter (op = 'I')"
    return ask(
        f"""
        with times as (select registration_number,
                arg_max(snapshot_at, snapshot_seq) filter (op = 'I') as registered_at,
                arg_max(op, snapshot_seq) as op, arg_max(ward_number, snapshot_seq) as ward_number, {last}
            from read_parquet('{changes}') group by 1),
        live as (select * from times where op <> 'D'),
        wards as (select distinct ward_number from read_parquet('{changes}') where ward_number is not null)
        select ward_number, count(registration_number), count(*) filter (
            registered_at >= timestamp '{now}' - interval 90 days and registered_at < timestamp '{now}')
        from wards left join live using (ward_number) group by 1"""
    )


def test_a_register_per_ward_with_the_clock_a_year_on_and_back(make_project: Make, shared_data: Path) -> None:
    """An update has no registration's time. `latest_non_null` keeps the one of the first fact."""
    changes = shared_data / "2_municipal_records/toronto_str_changes.parquet"
    project = make_project(WARDS)
    (project.folder / "c").mkdir()
    shutil.copy(changes, project.folder / "c")

    then, later = "2026-08-22 16:39:12", "2027-08-22 16:39:12"
    for now, registered in ((then, 1_175), (later, 0), (then, 1_175)):
        project.run(at(now.replace(" ", "T") + "+00:00"))

        assert project.rows("ward", "ward_number", "live", "registered") == find_wards(changes, now)
        assert project.query("select sum(live), sum(registered) from ward") == [(8_701, registered)]
    project.assert_verified("ward")


# A stream of changes of which only the order tells

STREAMS = """
    project: singer
    sources:
      messages: {files: "m/*.jsonl"}
    datasets:
      rows_of_streams:
        from: messages
        where: "type = 'RECORD'"
        columns:
          stream: stream
          cid: {path: record.cid, type: bigint}
          cvarchar: record.cvarchar
          extracted_at: {path: time_extracted, type: timestamp}
          deleted_at: record._sdc_deleted_at
        record_set: {key: [stream, cid], order_by: [_source_position], deleted: deleted_at IS NOT NULL}
    entities:
      stream:
        id: stream
        variables:
          left_rows: {from: rows_of_streams, select: count(*)}
          texts: {from: rows_of_streams, select: "array_sort(collect_set(cvarchar))"}
          newest: {from: rows_of_streams, select: "latest(cid)"}
          received:
            from: rows_of_streams_facts
            select: count(*)
            window: {column: extracted_at, last: 1 day}
"""


def test_a_stream_whose_records_share_one_time_is_ranked_by_its_order(
    make_project: Make, shared_data: Path
) -> None:
    folder = shared_data / RECORDS / "singer"
    project = make_project(STREAMS)
    (project.folder / "m").mkdir()
    shutil.copy(folder / "messages-pg-logical-streams.jsonl", project.folder / "m/1.jsonl")
    messages = [json.loads(line) for line in (project.folder / "m/1.jsonl").read_text().splitlines()]
    rows: dict[str, dict[int, str]] = defaultdict(dict)
    received: Counter[str] = Counter()
    for message in (m for m in messages if m["type"] == "RECORD"):
        record, of_stream = message["record"], rows[message["stream"]]
        received[message["stream"]] += 1
        of_stream.pop(record["cid"], None)
        if record["_sdc_deleted_at"] is None:
            of_stream[record["cid"]] = record["cvarchar"]

    project.run(at("2019-10-14T00:00:00+00:00"))

    found = {row[0]: row[1:] for row in project.query("select * from stream")}
    assert found == {
        stream: (len(left), sorted({t for t in left.values() if t}), list(left)[-1], received[stream])
        for stream, left in rows.items()
    }
    assert sorted(int(row[0]) for row in found.values()) == [3, 4, 8, 19]
    published = json.loads((folder / "expected_final_tables.json").read_text())
    for name, expected in published.items():
        (of_stream,) = (left for stream, left in rows.items() if stream.endswith(name))
        assert {r["cid"]: r["cvarchar"] for r in expected} == of_stream
    project.assert_verified("stream")


# Edits per page and per channel

EDITS = """
    project: edits
    sources:
      edited: {files: "e/*.parquet"}
    datasets:
      edits:
        from: edited
        event_stream: {identity: [event_seq]}
        source_at: event_time
    entities:
      page:
        id: [channel, page]
        variables:
          edits: {from: edits, select: count(*), window: {column: event_time, last: [1 hour, 6 hours]}}
          added: {from: edits, select: "sum(added)", window: {column: event_time, last: 6 hours}}
      channel:
        id: channel
        every: hour
        variables:
          edits: {from: edits, select: count(*), window: {column: event_time, last: [1 hour, 6 hours]}}
          pages: {from: edits, select: count(distinct page), window: {column: event_time, last: 6 hours}}
          newest: {from: edits, select: "latest(page)"}
"""


def within_hours(end: datetime, hours: int) -> str:
    start = end - timedelta(hours=hours)
    return f"event_time >= timestamptz '{start.isoformat()}' and event_time < timestamptz '{end.isoformat()}'"


def test_edits_per_page_and_channel_hour_by_hour_without_data_in_between(
    make_project: Make, shared_data: Path
) -> None:
    edits = shared_data / "4_live_changes/wikipedia_edits_2015-09-12.parquet"
    project = make_project(EDITS)
    (project.folder / "e").mkdir()
    shutil.copy(edits, project.folder / "e")
    hours = range(1, 25) if EVERY_HOUR else (12, 13)

    for hour in hours:
        now = datetime(2015, 9, 12, tzinfo=UTC) + timedelta(hours=hour)
        late = now + timedelta(seconds=hour % 2)
        project.run(at(late.isoformat()))

        for entity, id_, end in (("channel", "channel", now), ("page", "channel, page", late)):
            of_6_hours = "count(distinct page)" if entity == "channel" else "sum(added)"
            column = "pages" if entity == "channel" else "added"
            assert project.rows(entity, id_, "edits_1h", "edits_6h", column) == ask(
                f"""select {id_}, count(*) filter ({within_hours(end, 1)}),
                        count(*) filter ({within_hours(end, 6)}),
                        ({of_6_hours} filter ({within_hours(end, 6)}))::bigint
                    from read_parquet('{edits}') group by all"""
            )
    # three months on: everything leaves its window, and then nothing is near a border any more
    project.run(at("2015-12-01T00:00:00+00:00"))
    assert project.query("select sum(edits_6h), count(*) from page") == [(0, 35_278)]
    assert project.plan(at("2016-02-01T00:00:00+00:00")).tasks == ()
    project.assert_verified("page", "channel")
