"""Files tell which windows they reach, also of an entity that came later, and stay narrow when maintained."""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from unittest.mock import patch

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from strandline.app.maintain import maintain_tables, preview_tables
from strandline.app.workspace import open_workspace
from strandline.lake import compaction
from strandline.lake.compaction import Step, find_compactions
from strandline.lake.files import read_files
from strandline.lake.location import Lake
from strandline.lake.log import list_versions, read_entries
from strandline.lake.ranges import read_ranges
from strandline.lake.statistics import KEPT_OF, spell_columns
from strandline.lake.writes import Ticket, compact
from strandline.model.commits import Operation
from strandline.model.maintained import Maintained
from strandline.model.own_clock import ColumnRange, OwnClock, WatchedBorder
from strandline.model.project import Settings
from strandline.spark.session import get_session
from tests.harness import TestProject, at, result_of

pytestmark = pytest.mark.spark

TABLES = """
    project: profiles
    sources:
      sent: {files: "t/*.jsonl"}
      listed: {files: "r/*.jsonl"}
    datasets:
      tracks:
        from: sent
        columns: {user: u, n: {path: n, type: bigint}, sent_at: {path: at, type: timestamp}}
      rooms:
        from: listed
        columns: {id: id, user: u, opened_on: {path: on, type: date}, changed_at: {path: at, type: timestamp}}
        record_set: {key: [id], order_by: [changed_at]}
"""
ENTITIES = """
    entities:
      user:
        id: user
        every: day
        variables:
          tracks: {from: tracks, select: "count(*)", window: {column: sent_at, last: [1 day, 3 days]}}
          ever: {from: tracks, select: "sum(n)"}
          opened: {from: rooms, select: "count(*)", window: {column: opened_on, last: 2 days}}
"""
DAY = timedelta(days=1)
START = datetime(2024, 3, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Profiles(TestProject):
    __test__ = False

    def send(self, nth: int) -> None:
        """A day's rows. The last time of the day lies within its last millisecond."""
        day = START + nth * DAY
        times = (day, day + 0.5 * DAY, day + DAY - timedelta(microseconds=1))
        rows = ({"u": f"u{(nth + i) % 5}", "n": i, "at": t.isoformat()} for i, t in enumerate(times))
        self.lines(f"t/{nth:03}.jsonl", *rows, {"u": "u0", "n": 1})
        room = {"id": f"r{nth}", "u": f"u{nth % 5}", "on": f"{day:%Y-%m-%d}", "at": day.isoformat()}
        moved = {"id": f"r{nth // 3}", "u": "u1", "on": f"{day:%Y-%m-%d}", "at": day.isoformat()}
        self.lines(f"r/{nth:03}.jsonl", room, moved)

    def uri(self, table: str) -> str:
        return self.lake.table(table)

    @property
    def lake(self) -> Lake:
        return Lake(root=str(self.folder / ".strandline/lake"))

    def ranges(self, table: str, column: str) -> tuple[ColumnRange, ...]:
        version = list_versions(self.uri(table))[-1]
        return read_ranges(self.lake, table, version, [column])[column]

    def count_reached(self, table: str, column: str, nth: int) -> int:
        """The number of files that a band of a day reaches."""
        border = WatchedBorder(dataset=table, column=column, steps=())
        clock = OwnClock(every=None, timezone="UTC", borders=(border,))
        before = START + nth * DAY
        return len(clock.find_reached(border, before, before + DAY, self.ranges(table, column)))

    def operations(self, table: str) -> list[Operation | None]:
        return [e.metadata.operation if e.metadata else None for e in read_entries(self.uri(table), -1)]

    def preview(self) -> dict[str, Maintained]:
        with open_workspace(self.folder) as workspace:
            return {t.dataset: t for t in preview_tables(workspace, None).tables}

    def maintain(self) -> None:
        for name in ("tracks_facts", "rooms"):
            with open_workspace(self.folder) as workspace:
                outcome = maintain_tables(workspace, name, lambda _: None)
            assert not any(t.error for t in outcome.tables)

    def expected(self, now: datetime) -> set[tuple[object, ...]]:
        """The entity's rows in plain Python."""
        sent: list[tuple[str, int, datetime | None]] = []
        rooms: dict[str, tuple[str, datetime]] = {}
        for nth in range(len(list(self.folder.glob("t/*")))):
            day = START + nth * DAY
            times = (day, day + 0.5 * DAY, day + DAY - timedelta(microseconds=1))
            sent += [(f"u{(nth + i) % 5}", i, t) for i, t in enumerate(times)] + [("u0", 1, None)]
            rooms[f"r{nth}"] = (f"u{nth % 5}", day)
            rooms[f"r{nth // 3}"] = ("u1", day)
        users = {user for user, _, _ in sent}

        def count(days: int, times: list[datetime]) -> int:
            return sum(now - days * DAY <= t < now for t in times)

        return {
            (
                user,
                count(1, [t for u, _, t in sent if u == user and t]),
                count(3, [t for u, _, t in sent if u == user and t]),
                sum(n for u, n, _ in sent if u == user),
                count(2, [t for u, t in rooms.values() if u == user]),
            )
            for user in users
        }


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Profiles:
    """Tables without an entity, in several files. Never changed; tests work on copies."""
    project = Profiles(Profiles.create(tmp_path_factory.mktemp("built") / "profiles", TABLES).folder)
    for nth in range(3):
        project.send(nth)
        project.run(at((START + 10 * DAY).isoformat()))
    return project


@pytest.fixture
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a file had room for ten rows."""
    for name, rows in {"ROWS_A_FILE": 10, "SMALL_ROWS": 5, "SORTED_ROWS": 8}.items():
        monkeypatch.setattr(compaction, name, rows)


def test_an_entity_that_comes_later_finds_statistics_after_the_next_write_and_after_maintenance(
    before: Profiles, tmp_path: Path, small_files: None
) -> None:
    project = before.copy(tmp_path / "profiles")
    project.declare(TABLES + ENTITIES)
    project.run(at((START + 10 * DAY).isoformat()))
    for table, column in (("tracks_facts", "sent_at"), ("rooms", "opened_on")):
        assert {(r.low, r.high) for r in project.ranges(table, column)} == {(None, None)}, table
        assert Operation.STATISTICS not in project.operations(table)

    # the next write of each table brings its property up to date, and only its new file is narrow
    project.send(3)
    outcome = project.run(at((START + 10 * DAY).isoformat()))

    assert "new files of `rooms` have statistics of `opened_on`" in result_of(outcome, "rooms").notes
    for table, column in (("tracks_facts", "sent_at"), ("rooms", "opened_on")):
        assert project.operations(table).count(Operation.STATISTICS) == 1
        *unknown, known = sorted(project.ranges(table, column), key=lambda r: r.low is not None)
        assert {r.low for r in unknown} == {None}
        assert known.low is not None
        assert f"{known.low:%m-%d}" == "03-04"
        assert project.count_reached(table, column, 20) == len(unknown) > 0
    assert project.rows("user") == project.expected(START + 10 * DAY)
    move = at((START + 22.7 * DAY).isoformat())
    assert [t.cause for t in project.plan(move).tasks] == ["clock"], "no row is near, but nobody can know"
    assert "4 files sorted by sent_at" in project.preview()["tracks_facts"].notes

    # maintenance gives every file statistics: then nothing reaches
    project.maintain()

    for table, column in (("tracks_facts", "sent_at"), ("rooms", "opened_on")):
        assert None not in {r.low for r in project.ranges(table, column)}
        assert project.count_reached(table, column, 20) == 0
    assert project.rows("user") == project.expected(START + 10 * DAY)
    with patch("strandline.app.run.open_lake", side_effect=AssertionError("Spark was asked")):
        assert project.plan(move).tasks == ()
        assert project.run(move).results == ()

    # back to a time before the last rows, over many days and not at a step of the clock, and forwards again
    for day in (3.99, 2.5, 30):
        (result,) = project.run(at((START + day * DAY).isoformat())).results
        assert (result.cause, result.rows_written > 0) == ("clock", True)
        assert project.rows("user") == project.expected(START + int(day) * DAY)
        later = START + (int(day) + 0.9999) * DAY
        assert project.plan(at(later.isoformat())).tasks == (), "its clock stands still within a day"
    project.assert_verified("user")


def test_maintenance_cuts_daily_files_that_came_in_any_order_by_day(
    tmp_path: Path, small_files: None
) -> None:
    """Sixty small files, each of a day. Merged by size alone, each file would span all days."""
    lake = Lake(root=str(tmp_path))
    uri = lake.table("t")
    days = list(range(60))
    random.Random(3).shuffle(days)
    for day in days:
        times = [START + day * DAY + n * timedelta(hours=11) for n in range(2)]
        write_deltalake(
            uri,
            pa.table({"n": [2 * day, 2 * day + 1], "at": pa.array(times, pa.timestamp("us", "UTC"))}),
            mode="append",
            configuration={KEPT_OF: spell_columns(["at"]), "delta.checkpointInterval": "10"},
        )
    session = get_session(Settings(lake="", catalog="", spark_master="local[2]", spark_conf={}))
    session.sql(f"ALTER TABLE delta.`{uri}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    session.sql(f"DELETE FROM delta.`{uri}` WHERE n IN (6, 41, 80, 81)")
    rows = [row.n for row in session.read.format("delta").load(uri).orderBy("n").collect()]
    reached = count_reached(lake, uri)
    assert len(reached) == 60
    assert max(reached.values()) <= 3, "a day, and what its margin touches"

    (sorting,) = find_compactions(read_files(uri, -1).live, ["at"])
    compact(session.newSession(), lake, Ticket(dataset="t", token=1, metadata=""), sorting)

    files = read_files(uri, -1).live
    assert (sorting.step, sorting.files) == (Step.SORT, 59)
    assert 12 <= len(files) <= 20
    assert {f.sorted_by for f in files} == {("at",)}
    assert sum(f.deleted for f in files) == 0
    assert max(count_reached(lake, uri).values()) <= 3, "of all these files a band of a day reaches as few"
    assert [row.n for row in session.read.format("delta").load(uri).orderBy("n").collect()] == rows
    assert find_compactions(files, ["at"]) == (), "it is done"

    session.sql(f"DELETE FROM delta.`{uri}` WHERE n % 3 = 0")
    (purge,) = (c for c in find_compactions(read_files(uri, -1).live, ["at"]) if c.step is Step.PURGE)
    compact(session.newSession(), lake, Ticket(dataset="t", token=2, metadata=""), purge)

    purged = read_files(uri, -1).live
    assert (purge.files, len(purged), sum(f.deleted for f in purged)) == (len(files), len(files), 0)
    assert max(count_reached(lake, uri).values()) <= 3, "two far ones did not become one"


def count_reached(lake: Lake, uri: str) -> dict[int, int]:
    """By day: the number of files that the band of that day reaches."""
    border = WatchedBorder(dataset="t", column="at", steps=())
    clock = OwnClock(every=None, timezone="UTC", borders=(border,))
    ranges = read_ranges(lake, "t", list_versions(uri)[-1], ["at"])["at"]
    bands = {day: (START + day * DAY, START + (day + 1) * DAY) for day in range(60)}
    return {day: len(clock.find_reached(border, *band, ranges)) for day, band in bands.items()}
