"""Each variable has a definition of its own: those that come, go, change and wait hold no other one up."""

import subprocess
import sys
from pathlib import Path

import pytest

from strandline.app.planning import RunRequest
from strandline.model.errors import CallError
from strandline.model.plan import Cause, Strategy
from tests.harness import TestProject, at, result_of

pytestmark = pytest.mark.spark

YAML = """
    project: rooms
    timezone: Europe/Berlin
    sources:
      item_events: {files: "i/*.jsonl"}
      track_events: {files: "t/*.jsonl"}
      ticket_files: {files: "k/*.csv"}
    datasets:
      items:
        from: item_events
        columns:
          id: id
          room: w
          kind: kind
          size: {path: size, type: int}
          updated_at: {path: at, type: timestamp}
        record_set: {key: [id], order_by: [updated_at]}
      tracks:
        from: track_events
        columns: {room: w, sent_at: {path: at, type: timestamp}}
      tickets:
        from: ticket_files
        columns: {number: {type: int}}
    entities:
      room:
        id: room
        variables:
          live: {from: items, select: "count(id)"}
          first: {from: items, select: "min(kind)"}
          space: {from: items, select: "sum(size)", default: -1}
          sent: {from: tracks, select: "count(*)", window: {column: sent_at, last: 7 days}}
          pace: {expr: "sent + live"}
          tickets: {from: tickets, select: "count(number)"}
    jobs:
      - name: busy
        input_datasets: [room]
        output_dataset: busy
        incremental: {mode: keyed, key: [room]}
        sql: SELECT room, live FROM room
      - name: asked
        input_datasets: [room]
        output_dataset: asked
        incremental: {mode: keyed, key: [room]}
        sql: SELECT room, tickets FROM room
"""
EDITED = (
    YAML.replace('first: {from: items, select: "min(kind)"}', 'kinds: {from: items, select: "count(kind)"}')
    .replace("last: 7 days", "last: 30 days")
    .replace('pace: {expr: "sent + live"}', "pace: {expr: sent + live}\n          twice: {expr: live * 2}")
)
DAY = at("2024-03-10T00:00:00+00:00")


def item(name: str, room: str, moment: str, kind: str = "a") -> dict[str, object]:
    return {"id": name, "w": room, "at": f"2024-03-{moment}T00:00:00Z", "kind": kind, "size": 2}


def track(room: str, day: str) -> dict[str, object]:
    return {"w": room, "at": f"2024-{day}T00:00:00Z"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> TestProject:
    """One run without a ticket. Never changed; tests work on copies."""
    made = TestProject.create(tmp_path_factory.mktemp("built") / "rooms", YAML)
    made.lines("i/1.jsonl", item("1", "x", "01"), item("2", "x", "01", "b"), item("3", "y", "01"))
    made.lines("t/1.jsonl", track("x", "03-08"), track("x", "02-20"), track("y", "03-09"))
    made.run(DAY)
    return made


@pytest.fixture
def project(built: TestProject, tmp_path: Path) -> TestProject:
    return built.copy(tmp_path / "rooms")


CALLS = """
import resource, sys
from strandline.cli import main

def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime

folder, as_of = sys.argv[1:]
for words in (["run", "--as-of", as_of], ["plan", "--as-of", as_of], ["explain", "room"]):
    assert main([*words, "--project", folder]) == 0
assert not {"pyspark", "py4j"} & set(sys.modules)
print(cpu_seconds())
"""


def test_a_run_with_nothing_to_do_a_plan_and_an_explanation_start_no_spark(project: TestProject) -> None:
    assert DAY.as_of is not None
    ended = subprocess.run(
        [sys.executable, "-c", CALLS, str(project.folder), DAY.as_of.isoformat()],
        capture_output=True,
        text=True,
    )

    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("Everything is up to date.") == 2
    assert float(ended.stdout.split()[-1]) < 3 * 2, "of the processor, for three calls"


def test_a_variable_waits_for_its_input_and_fills_itself_when_that_comes(project: TestProject) -> None:
    before = project.rows("room", "room", "live", "first", "sent", "pace")
    waiting = project.plan(DAY).waiting

    assert before == {("x", 2, "a", 1, 3), ("y", 1, "a", 1, 2)}
    assert set(waiting) == {"room", "asked"}
    assert waiting["room"] == "`variable tickets` of room waits for `tickets`, which was never received."
    assert not project.plan(DAY).tasks
    project.write("k/1.csv", "room,number\nx,1\nx,2\nz,3\n,4\n")

    outcome = project.run(DAY)

    task = result_of(outcome, "room")
    assert (task.cause, task.strategy, task.rows_read) == (Cause.CONFIGURATION, Strategy.RECOMPUTE, 4)
    assert task.counts["without_entity"] == 1
    assert project.rows("room", "room", "live", "first", "space", "sent", "pace", "tickets") == {
        ("x", 2, "a", 4, 1, 3, 2),
        ("y", 1, "a", 2, 1, 2, 0),
        ("z", 0, None, -1, 0, 0, 1),
    }
    assert project.rows("asked") == {("x", 2), ("y", 0), ("z", 1)}

    project.write("k/2.csv", "room,number\nx,5\nq,6\n")
    project.run(DAY)

    rows = {row for row in project.rows("room", "room", "space", "tickets") if row[0] in ("x", "q")}
    assert rows == {("x", 4, 3), ("q", -1, 1)}
    project.assert_verified("room", "busy", "asked")


def test_variables_come_go_and_change_while_others_go_on(project: TestProject) -> None:
    project.declare(EDITED)
    project.lines("i/2.jsonl", item("3", "n", "02"), item("4", "x", "02", "c"))
    project.lines("t/2.jsonl", track("x", "02-25"), track("x", "03-07"))

    outcome = project.run(DAY)

    task = result_of(outcome, "room")
    assert (task.cause, task.strategy) == (Cause.CONFIGURATION, Strategy.RECOMPUTE)
    columns = ("room", "live", "kinds", "sent", "pace", "twice")
    held = {("x", 3, 3, 1, 3, 6), ("y", 0, 0, 1, 2, 0), ("n", 1, 1, None, None, 2)}
    assert project.rows("room", *columns) == held
    with pytest.raises(CallError):
        project.rows("room", "first")
    assert project.rows("busy") == {("x", 3), ("y", 0), ("n", 1)}
    (stale,) = project.plan(DAY).stale
    assert stale.changed == ("variable sent", "variable pace")
    verified = project.verify("room").datasets[0]
    assert (verified.result, verified.differing_rows) == ("stale", 0)

    outcome = project.run(RunRequest(backfill="room", only_stale=True, as_of=DAY.as_of))

    task = result_of(outcome, "room")
    assert (task.cause, task.strategy, task.rows_read) == (Cause.PERSON, Strategy.RECOMPUTE, 5)
    filled = {("x", 3, 3, 4, 7, 6), ("y", 0, 0, 1, 1, 0), ("n", 1, 1, 0, 1, 2)}
    assert project.rows("room", *columns) == filled
    assert not project.plan(DAY).stale
    project.assert_verified("room", "busy")


def test_who_exists_follows_the_inputs_of_variables_that_are_held(project: TestProject) -> None:
    sizes = YAML.replace(
        "    jobs:\n",
        """      size:
        id: {live: bigint}
        variables:
          rooms: {from: busy, select: "count(*)"}
    jobs:
""",
    )
    project.declare(sizes)
    project.run(DAY)
    assert project.rows("size") == {(2, 1), (1, 1)}
    project.declare(sizes.replace('count(*)"}\n    jobs', 'max(room)"}\n    jobs'))
    project.lines("i/2.jsonl", item("4", "x", "02"))

    project.run(DAY)

    assert project.rows("size") == {(1, 1), (3, None)}
    verified = project.verify("size").datasets[0]
    assert (verified.result, verified.differing_rows) == ("stale", 0)


def test_what_is_changed_back_catches_up_with_what_it_has_missed(project: TestProject) -> None:
    project.declare(YAML.replace("last: 7 days", "last: 30 days").replace("min(kind)", "latest(kind)"))
    project.lines("t/2.jsonl", track("x", "03-07"), track("y", "02-20"))
    held = project.run(DAY)
    assert (result_of(held, "room").status, result_of(held, "room").rows_written) == ("done", 0)
    project.declare(YAML.replace('"min(kind)"', '"count(kind)"'))

    outcome = project.run(DAY)

    task = result_of(outcome, "room")
    assert (task.cause, task.rows_read) == (Cause.CONFIGURATION, 5)
    columns = ("room", "live", "first", "sent", "pace")
    assert project.rows("room", *columns) == {("x", 2, "a", 2, 4), ("y", 1, "a", 1, 2)}
    assert [h.changed for h in project.plan(DAY).stale] == [("variable first",)]

    project.run(RunRequest(backfill="room", only_stale=True, as_of=DAY.as_of))

    assert project.rows("room", *columns) == {("x", 2, 2, 2, 4), ("y", 1, 1, 1, 2)}
    project.assert_verified("room", "busy")
