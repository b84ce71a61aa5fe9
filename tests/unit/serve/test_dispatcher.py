"""The dispatcher, with plain workers: requests once, files without being asked, pauses, reloads."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from strandline.app import requests, serving
from strandline.app.invalidate import Invalidated, InvalidateRequest, invalidate
from strandline.app.planning import RunRequest
from strandline.app.receiving import Posted, find_published, receive
from strandline.app.run import RunOutcome
from strandline.app.work import from_wire
from strandline.app.workspace import Workspace
from strandline.catalog import add_request, finish_request, read_runs
from strandline.model import dispatching
from strandline.model.dispatching import LONGEST_PAUSE, Pause
from strandline.model.errors import CallError, OutsideError
from strandline.model.files import Content
from strandline.model.plan import Plan, Task, TaskResult
from strandline.model.requests import COMMAND_LINE, RequestStatus
from strandline.serve import dispatcher as dispatcher_module
from tests.unit.serve.served_world import Gate, World, make_world, wait_until

RUN = RunRequest()
NEVER = 3600.0
"""Seconds between two looks for files, where a test is about requests alone."""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    return make_world(tmp_path / "project", monkeypatch)


@pytest.fixture
def gate(world: World, monkeypatch: pytest.MonkeyPatch) -> Gate:
    return Gate(monkeypatch)


def test_a_request_is_executed_once_and_its_outcome_is_kept(world: World) -> None:
    world.send("events", "a", "b")

    with world.serving(NEVER) as (dispatcher, served):
        record = dispatcher.submit("run", RUN, "ci")
        assert record.status is RequestStatus.PENDING
        ended = asyncio.run(dispatcher.wait(record.request, 30))
        runs = read_runs(served.workspace.catalog, 10)

    outcome = from_wire(ended.result)
    assert ended.status is RequestStatus.DONE
    assert isinstance(outcome, RunOutcome)
    assert [r.node for r in outcome.results][:2] == ["events", "others"]
    assert [r.run for r in runs] == [outcome.run]
    assert world.rows("item") == ["a", "b"]


def test_what_happens_is_told_in_order_and_again_to_whoever_comes_late(world: World) -> None:
    world.send("events", "a")

    async def follow(dispatcher: object, name: str) -> list[object]:
        return [type(h) async for h in dispatcher.watch(name)]  # type: ignore[attr-defined]

    with world.serving(NEVER) as (dispatcher, _):
        record = dispatcher.submit("run", RUN, "ci")
        first = asyncio.run(follow(dispatcher, record.request))
        again = asyncio.run(follow(dispatcher, record.request))
        outcome, error = dispatcher.find_end(record.request)

    assert first[0] is Plan
    assert sorted(map(str, first[1:])) == sorted(map(str, [Task, TaskResult] * 8))
    assert again == first
    assert isinstance(outcome, RunOutcome)
    assert error is None


def test_a_request_that_is_wrong_fails_with_its_slug_and_the_next_one_is_done(world: World) -> None:
    world.send("events", "a")

    with world.serving(NEVER) as (dispatcher, _):
        wrong = dispatcher.submit("run", replace(RUN, select="nobody"), "ci")
        right = dispatcher.submit("run", RUN, "ci")
        first = asyncio.run(dispatcher.wait(wrong.request, 30))
        second = asyncio.run(dispatcher.wait(right.request, 30))

    assert first.status is RequestStatus.FAILED
    assert first.error is not None
    assert first.error["exit_code"] == 2
    assert second.status is RequestStatus.DONE
    assert first.request < second.request


def test_only_what_the_table_of_work_has_can_be_asked_for(world: World) -> None:
    with world.serving(NEVER) as (dispatcher, _):
        for verb, request in (("init", RUN), ("run", InvalidateRequest(dataset="item", reason="r"))):
            with pytest.raises(CallError) as refused:
                dispatcher.submit(verb, request, "ci")
            assert refused.value.slug == "unknown-work"
        assert "`run`" in refused.value.remedy
        assert dispatcher.submit("run", RUN, "ci").status is RequestStatus.PENDING


@pytest.mark.parametrize("dispatching", [True, False])
def test_a_server_gives_free_memory_back_now_and_then(
    world: World, monkeypatch: pytest.MonkeyPatch, dispatching: bool
) -> None:
    tidied: list[float] = []
    monkeypatch.setattr(dispatcher_module, "_TIDY", timedelta(seconds=0.2))
    monkeypatch.setattr(serving, "tidy", lambda: tidied.append(time.monotonic()))

    with world.serving(0.05, dispatching=dispatching):
        wait_until(lambda: len(tidied) >= 3, "the third time")

    assert all(later - earlier > 0.1 for earlier, later in pairwise(tidied))


def test_files_are_taken_in_without_being_asked(world: World) -> None:
    world.send("events", "a")

    with world.serving() as (dispatcher, _):
        wait_until(lambda: world.rows("item") == ["a"], "the first file")
        world.send("events", "b")
        wait_until(lambda: world.rows("item") == ["a", "b"], "the second file")
        wait_until(lambda: not dispatcher.state().doing, "the end of the run")


def test_nothing_is_planned_while_nothing_is_new(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.send("events", "a")
    planned = []
    really = serving.plan_served

    def plan(workspace: Workspace, as_of: datetime) -> Plan:
        planned.append(as_of)
        return really(workspace, as_of)

    monkeypatch.setattr(serving, "plan_served", plan)

    with world.serving() as (dispatcher, served):
        wait_until(lambda: world.rows("item") == ["a"] and not dispatcher.state().doing, "the file")
        wait_until(lambda: not dispatcher._look, "a look after the run")
        before = len(planned)
        dispatcher._wake.set()
        wait_until(lambda: not dispatcher._wake.is_set(), "another step")
        ended = asyncio.run(dispatcher.wait(dispatcher.submit("plan", RUN, "ci").request, 30))
        runs = read_runs(served.workspace.catalog, 10)

    assert ended.status is RequestStatus.DONE
    assert len(planned) <= before + 1
    assert len(runs) == 1


def test_what_keeps_failing_is_put_off_and_starves_nobody(world: World, gate: Gate) -> None:
    gate.failing.add("item_facts")
    world.send("events", "a")
    world.send("others", "x")

    with world.serving() as (dispatcher, _):
        wait_until(lambda: world.rows("other") == ["x"], "the other source")
        wait_until(lambda: "item_facts" in dispatcher.state().paused, "a pause")
        world.send("others", "y")
        wait_until(lambda: world.rows("other") == ["x", "y"], "the other source again")
        paused = dispatcher.state().paused
        tries = gate.prepared.count("item_facts")
        gate.failing.clear()
        asyncio.run(dispatcher.wait(dispatcher.submit("run", RUN, "ci").request, 30))
        left = dispatcher.state().paused

    assert set(paused) == {"item_facts"}
    assert "is broken" in paused["item_facts"].error
    assert tries == 1
    assert not left
    assert world.rows("item") == ["a"]


def test_pauses_grow_to_ten_minutes() -> None:
    at, pause, seconds = datetime(2024, 1, 1, tzinfo=UTC), None, []
    for _ in range(9):
        pause = Pause.after(pause, at, "broken")
        seconds.append((pause.until - at).total_seconds())

    assert seconds == [5, 10, 20, 40, 80, 160, 320, 600, 600]
    assert timedelta(minutes=10) == LONGEST_PAUSE


def test_a_lake_that_cannot_be_planned_is_told_and_looked_at_again_with_pauses(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.send("events", "a")
    away, looks = [True], []
    really = serving.plan_served

    def plan(workspace: Workspace, as_of: datetime) -> Plan:
        looks.append(as_of)
        if away:
            raise OutsideError("The lake is away.", remedy="Wait.", slug="table-unreadable")
        return really(workspace, as_of)

    monkeypatch.setattr(serving, "plan_served", plan)
    monkeypatch.setattr(dispatching, "FIRST_PAUSE", timedelta(seconds=0.5))

    with world.serving() as (dispatcher, _):
        wait_until(lambda: dispatcher.state().trouble, "the trouble")
        first = dispatcher.state().trouble
        for _ in range(20):
            dispatcher._note_trouble(OutsideError("Still away.", slug="table-unreadable"))
        assert dispatcher.state().trouble == first
        wait_until(lambda: len(looks) == 3, "another look, and one more")
        assert dispatcher.state().trouble != first
        away.clear()
        wait_until(lambda: world.rows("item") == ["a"], "the file")
        wait_until(lambda: dispatcher.state().trouble is None, "the end of the trouble")

    assert first is not None
    assert (first.slug, first.failures) == ("table-unreadable", 1)


def test_a_changed_project_is_read_again_and_a_wrong_one_is_shown(world: World) -> None:
    file = world.folder / "strandline.yaml"
    right = file.read_text()
    world.send("events", "a")

    with world.serving() as (_, served):
        file.write_text(right.replace("from: events", "from: evnts"))
        wait_until(lambda: served.project_error, "the error of the project")
        wrong, in_force = served.project_error, served.workspace.project
        world.send("events", "b")
        wait_until(lambda: world.rows("item") == ["a", "b"], "work by the old project")
        file.write_text(right.replace("  other:", "  another:") + "# a comment\n")
        wait_until(lambda: not served.project_error, "the mended project")
        mended = served.workspace.project

    assert "evnts" in wrong
    assert "other" in in_force.names
    assert "another" in mended.names


def test_a_server_without_work_to_do_reads_a_changed_project_too(world: World) -> None:
    file = world.folder / "strandline.yaml"
    right = file.read_text()

    with world.serving(dispatching=False) as (_, served):
        file.write_text(right.replace("from: events", "from: evnts"))
        wait_until(lambda: "evnts" in served.project_error, "the error of the project")
        file.write_text(right.replace("  other:", "  another:"))
        wait_until(lambda: "another" in served.workspace.project.names, "the mended project")

    assert not served.project_error


def test_a_moved_lake_asks_for_a_restart(world: World) -> None:
    file = world.folder / "strandline.yaml"

    with world.serving() as (_, served):
        file.write_text(file.read_text().replace("workers: 1", "workers: 1, lake: elsewhere"))
        wait_until(lambda: served.project_error, "the error")
        error, lake = served.project_error, served.workspace.project.settings.lake

    assert "restart-to-apply" in error
    assert not lake.endswith("elsewhere")
    with world.serving() as (_, served):
        assert served.workspace.project.settings.lake.endswith("elsewhere")


def test_a_server_that_stops_leaves_its_request_to_the_next(world: World, gate: Gate) -> None:
    gate.standing.add("item_facts")
    world.send("events", "a")
    with world.serving(NEVER) as (dispatcher, _):
        record = dispatcher.submit("run", RUN, "ci")
        assert gate.here.wait(30)
        dispatcher._stop.set()
        gate.go.set()
    with world.workspace() as workspace:
        between = requests.find(workspace, record.request)

    gate.standing.clear()
    with world.serving(NEVER) as (dispatcher, _):
        ended = asyncio.run(dispatcher.wait(record.request, 30))

    assert between is not None
    assert between.status is RequestStatus.PENDING
    assert ended.status is RequestStatus.DONE
    assert world.rows("item") == ["a"]


def test_who_waits_for_a_request_is_answered_when_the_server_ends(world: World, gate: Gate) -> None:
    gate.standing.add("item_facts")
    world.send("events", "a")

    async def wait() -> tuple[RequestStatus, float]:
        began = time.monotonic()
        waiting = asyncio.create_task(dispatcher.wait(record.request, 300))
        await asyncio.sleep(0.1)
        dispatcher.dismiss()
        return (await waiting).status, time.monotonic() - began

    with world.serving(NEVER) as (dispatcher, _):
        record = dispatcher.submit("run", RUN, "ci")
        assert gate.here.wait(30)
        status, seconds = asyncio.run(wait())
        gate.go.set()

    assert status is RequestStatus.RUNNING
    assert seconds < 5  # the seconds that answers have to end


def test_a_server_that_was_killed_leaves_its_request_to_the_next(world: World) -> None:
    world.send("events", "a")
    with world.workspace() as workspace:
        record = requests.record_request(workspace, "dead:1", "run", RUN, "ci")
        assert requests.take_request(workspace, "dead:1") is not None

    with world.serving(NEVER) as (dispatcher, _):
        ended = asyncio.run(dispatcher.wait(record.request, 30))

    assert ended.status is RequestStatus.DONE


def test_a_request_that_ends_its_server_each_time_is_given_up(world: World) -> None:
    with world.workspace() as workspace:
        record = requests.record_request(workspace, "dead:1", "run", RUN, "ci")
        for _ in range(3):
            assert requests.take_request(workspace, "dead:1") is not None
            requests.give_back_of_the_dead(workspace)

    with world.serving(NEVER) as (dispatcher, _):
        ended = asyncio.run(dispatcher.wait(record.request, 30))
        again = asyncio.run(dispatcher.wait(dispatcher.submit("run", RUN, "ci").request, 30))

    assert ended.status is RequestStatus.FAILED
    assert ended.error is not None
    assert ended.error["slug"] == "request-ends-server"
    assert again.status is RequestStatus.DONE


@pytest.mark.parametrize("select", [None, "nobody"])
def test_a_request_whose_end_could_not_be_recorded_is_ended_later_and_executed_once(
    world: World, monkeypatch: pytest.MonkeyPatch, select: str | None
) -> None:
    world.send("events", "a")
    failures = [OutsideError("The catalog is away.", remedy="Wait.", slug="catalog-unreachable")] * 2

    def finish(*parts: Any, **results: Any) -> object:
        if failures:
            raise failures.pop()
        return finish_request(*parts, **results)

    monkeypatch.setattr(requests, "finish_request", finish)

    with world.serving(0.1) as (dispatcher, served):
        dispatcher._has_news = lambda: False  # type: ignore[method-assign]
        record = dispatcher.submit("run", replace(RUN, select=select), "ci")
        next_one = dispatcher.submit("run", RUN, "ci")
        ended = asyncio.run(dispatcher.wait(record.request, 30))
        after = asyncio.run(dispatcher.wait(next_one.request, 30))
        runs = read_runs(served.workspace.catalog, 10)

    assert not failures
    assert ended.status is (RequestStatus.FAILED if select else RequestStatus.DONE)
    assert after.status is RequestStatus.DONE
    assert len(runs) == 1


@pytest.mark.parametrize("arguments", [{"$": "Faster"}, {"$": "MaintainRequest", "name": None}, None])
def test_a_request_of_another_strandline_that_cannot_be_read_fails(world: World, arguments: object) -> None:
    with world.workspace() as workspace:
        add_request(workspace.catalog, "old", "run", arguments, "ci")

    with world.serving(NEVER) as (dispatcher, _):
        ended = asyncio.run(dispatcher.wait("old", 30))
        again = asyncio.run(dispatcher.wait(dispatcher.submit("run", RUN, "ci").request, 30))

    assert ended.error is not None
    assert ended.error["slug"] == "request-unreadable"
    assert again.status is RequestStatus.DONE


def test_an_invalidation_that_is_repeated_after_a_crash_is_recorded_once(world: World) -> None:
    file = world.folder / "strandline.yaml"
    file.write_text(
        file.read_text() + "jobs:\n  - {name: count_names, input_datasets: [item], output_dataset: names,"
        " sql: 'select id, name from item', incremental: {mode: keyed, key: [id]}}\n"
    )
    world.send("events", "a")
    request = InvalidateRequest(dataset="item", where="id = 'a'", reason="correction")
    with world.serving(NEVER) as (dispatcher, served):
        asyncio.run(dispatcher.wait(dispatcher.submit("run", RunRequest(select="+item"), "ci").request, 30))
        record = dispatcher.submit("invalidate", request, "ci")
        ended = asyncio.run(dispatcher.wait(record.request, 30))
        assert ended.error is None
        first = from_wire(ended.result)
        again = invalidate(
            served.workspace, "item", where="id = 'a'", reason="correction", request=record.request
        )
        other = invalidate(served.workspace, "item", where="id = 'a'", reason="correction")

    assert isinstance(first, Invalidated)
    assert (again.invalidation.id, again.table_version) == (first.invalidation.id, first.table_version)
    assert other.table_version == first.table_version + 1


def test_a_plan_is_made_beside_a_run(world: World, gate: Gate) -> None:
    gate.standing.add("item_facts")
    world.send("events", "a")

    with world.serving(NEVER) as (dispatcher, _):
        dispatcher.submit("run", RUN, "ci")
        assert gate.here.wait(30)
        planned = asyncio.run(dispatcher.wait(dispatcher.submit("plan", RUN, "ci").request, 30))
        doing = dispatcher.state().doing
        gate.go.set()

    assert planned.status is RequestStatus.DONE
    assert doing == "run"


def test_served_runs_have_the_as_of_of_the_clock_and_the_command_line_its_own(world: World) -> None:
    world.send("events", "a")

    with world.serving(NEVER) as (dispatcher, served):
        by_key = asyncio.run(dispatcher.wait(dispatcher.submit("run", RUN, "ci").request, 30))
        by_hand = asyncio.run(dispatcher.wait(dispatcher.submit("run", RUN, COMMAND_LINE).request, 30))
        clock = served.workspace.project.settings.serve.clock

    assert from_wire(by_key.result).plan.as_of == serving.floor(from_wire(by_key.result).plan.as_of, clock)
    as_of = from_wire(by_hand.result).plan.as_of
    assert as_of != serving.floor(as_of, clock)


def test_a_post_that_is_repeated_is_answered_with_the_run_that_published_it(world: World) -> None:
    file = world.folder / "strandline.yaml"
    file.write_text(file.read_text().replace("sources:", "sources:\n  pushed: {http: {}}"))
    posts = [Posted(source="pushed", key=key, content=Content.JSON, body=b"[1, 2]") for key in "abc"]
    receipts, runs = [], []

    with world.serving(NEVER) as (dispatcher, served):
        for post in posts:
            receipts.append(receive(served.workspace, post))
            ended = asyncio.run(dispatcher.wait(dispatcher.submit("run", RUN, "ci").request, 30))
            runs.append(from_wire(ended.result).run)
        published = [find_published(served.workspace, receipt) for receipt in receipts]

    assert len(set(runs)) == 3
    assert [one and one.run for one in published] == runs
    assert [one and one.tasks[0].rows_written for one in published] == [2, 2, 2]


def test_others_are_told_of_a_run_that_published_and_of_no_other(world: World) -> None:
    told = []
    world.send("events", "a")

    with world.serving(NEVER) as (dispatcher, _):
        dispatcher.on_published.append(lambda outcome: told.append(outcome.run))
        outcomes = [
            from_wire(asyncio.run(dispatcher.wait(dispatcher.submit("run", RUN, "ci").request, 30)).result)
            for _ in range(2)
        ]

    assert told == [outcomes[0].run]
    assert not outcomes[1].results


def test_without_dispatching_requests_wait_for_another_server(world: World) -> None:
    with world.serving(dispatching=False) as (dispatcher, _):
        record = dispatcher.submit("run", RUN, "ci")
        waited = asyncio.run(dispatcher.wait(record.request, 0.2))

    assert waited.status is RequestStatus.PENDING


def test_an_unknown_request_is_said_to_be_unknown(world: World) -> None:
    with world.serving(NEVER) as (dispatcher, _), pytest.raises(CallError) as unknown:
        asyncio.run(dispatcher.wait("nobody", 1))

    assert unknown.value.slug == "unknown-request"
