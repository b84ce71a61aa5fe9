"""The messages, the receiver and the model of examples/trades, without the engine's workers.

The model follows the commands of the README.
"""

import asyncio
import importlib.util
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import aiohttp
import pytest

from examples.play import EXAMPLES
from strandline.model.events import make_event_id
from strandline.model.webhook_signatures import make_headers, parse_secret
from tests.scenario.story import commands_of, copy_project
from tests.scenario.trades_model import State, after_run
from tests.scenario.trades_receiver import SECRET, move_receiver

COMMANDS = commands_of("trades")
DAYS = ("1", "2", "3", "4")
BODY = b"""{"event_id":"acf6","trigger_name":"t","event_type":"MATCH","source_timestamp":"1",
"data":{"trade_id":1}}"""


@dataclass
class Told:
    states: dict[str, State]
    printed: dict[str, tuple[str, ...]]
    written: dict[Path, bytes]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """Runs the generator as the README does, and the model instead of `strandline run`."""
    project = copy_project("trades", tmp_path_factory.mktemp("model"))
    told, state, day = Told({}, {}, {}), State(), ""
    for command in COMMANDS:
        match command.words:
            case ["python", "generate.py", day]:
                told.printed[day] = tuple(generate(project, day).splitlines())
            case ["strandline", "run", *options]:
                told.states[day] = state = after_run(state, project / "data", options)
    told.written |= read_messages(project)
    return told


def generate(project: Path, *arguments: str) -> str:
    call = [sys.executable, "generate.py", *arguments]
    return subprocess.run(call, cwd=project, check=True, capture_output=True, text=True).stdout


def read_messages(project: Path) -> dict[Path, bytes]:
    return {path.relative_to(project): path.read_bytes() for path in project.rglob("*.jsonl")}


def test_the_generator_makes_the_same_messages_each_time(told: Told, tmp_path: Path) -> None:
    project = copy_project("trades", tmp_path)

    for day in DAYS:
        generate(project, day)

    assert read_messages(project) == told.written
    assert len(told.written) == 7


def test_the_readme_delivers_everything_in_order_and_shows_what_the_generator_prints(told: Told) -> None:
    shown = {
        command.words[2]: command.shown
        for command in COMMANDS
        if command.words[:2] == ["python", "generate.py"]
    }

    assert tuple(told.states) == DAYS
    assert shown == told.printed


def events_of(told: Told, day: str, trigger: str = "large_trade_alert") -> list[tuple[str, str]]:
    """What a day adds."""
    before = told.states.get(str(int(day) - 1), State())
    return [
        (event.key, event.event_type)
        for event in told.states[day].events[trigger][len(before.events[trigger]) :]
    ]


def test_every_case_of_the_story_is_among_the_events(told: Told) -> None:
    """Agreement on flawless data would show little."""
    last = told.states["4"]
    ids = {event.event_id: event for event in last.events["large_trade_alert"]}

    assert ids["acf67a288f80147280c9d4b1e99378cd"].key == "123"
    assert events_of(told, "1") == [(key, "MATCH") for key in ("107", "118", "123", "131")]
    assert events_of(told, "2") == [("112", "MATCH"), ("131", "UNMATCH"), ("141", "MATCH")]
    assert events_of(told, "3") == [(key, "MATCH") for key in ("201", "203", "204")]
    assert events_of(told, "4") == [("123", "UNMATCH"), ("142", "MATCH"), ("203", "UNMATCH")]
    assert [event.quiet for event in last.events["large_trade_alert"]] == [False] * 7 + [True] * 3 + [
        False
    ] * 3
    assert [events_of(told, day, "loss_alert") for day in DAYS] == [
        [],
        [("MSFT", "MATCH")],
        [],
        [("MSFT", "UNMATCH")],
    ]


def test_the_view_loses_and_gains_rows_and_changes_one(told: Told) -> None:
    before = len(told.states["1"].changes["large_trades"])
    by_key = {change.key: change.operation for change in told.states["2"].changes["large_trades"][before:]}

    assert by_key == {"107": "UPDATE", "112": "INSERT", "123": "DELETE", "131": "DELETE", "141": "INSERT"}


def test_the_engine_makes_the_ids_of_the_model(told: Told) -> None:
    for event in told.states["4"].events["large_trade_alert"]:
        assert event.source_timestamp is not None
        assert event.event_id == make_event_id("large_trade_alert", event.key, event.source_timestamp)


# The receiver


@pytest.fixture(scope="module")
def receiver() -> ModuleType:
    spec = importlib.util.spec_from_file_location("trades_receiver", EXAMPLES / "trades" / "receiver.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("text", ["", "{}", '{"name":"größe 日本 😀"}', '{"n":1}\n'])
def test_the_receiver_verifies_what_any_of_our_secrets_signed_and_nothing_else(
    receiver: ModuleType, text: str
) -> None:
    other = "whsec_" + "QUJD" * 8
    secrets = [parse_secret(other), parse_secret(SECRET)]
    body, now = text.encode(), 1705316445
    headers = make_headers(secrets, "acf6", now, body)

    assert receiver.verify(SECRET, headers, body, now + 299.0)
    assert receiver.verify(other, headers, body, now - 299.0)
    for changed in (
        {**headers, "webhook-id": "acf7"},
        {**headers, "webhook-timestamp": str(now + 1)},
        {**headers, "webhook-timestamp": "soon"},
        {**headers, "webhook-signature": headers["webhook-signature"].replace("v1,", "v2,")},
        {**headers, "webhook-signature": ""},
        {},
    ):
        assert not receiver.verify(SECRET, changed, body, now)
    assert not receiver.verify(SECRET, headers, body + b" ", now)
    assert not receiver.verify(SECRET, headers, body, now + 301.0)
    assert not receiver.verify("whsec_" + "QUJE" * 8, headers, body, now)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    project = copy_project("trades", tmp_path)
    port = move_receiver(project)
    started = call(project, "start")
    assert started.returncode == 0, started.stderr
    yield project, port
    assert call(project, "stop").returncode == 0


def call(project: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "receiver.py", *arguments],
        cwd=project,
        env={**os.environ, "DESK_SECRET": SECRET},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_receiver_takes_an_event_once_and_refuses_what_is_not_ours(running: tuple[Path, int]) -> None:
    project, port = running
    good = make_headers([parse_secret(SECRET)], "acf6", int(time.time()), BODY)
    other = BODY.replace(b"MATCH", b"UNMATCH")
    forged = make_headers([parse_secret("whsec_" + "QUJD" * 8)], "acf7", int(time.time()), BODY)
    changed = make_headers([parse_secret(SECRET)], "acf6", int(time.time()), other)

    async def post(*messages: tuple[dict[str, str], bytes]) -> list[int]:
        async with aiohttp.ClientSession() as session:
            statuses = []
            for headers, body in messages:
                async with session.post(f"http://127.0.0.1:{port}/hook", data=body, headers=headers) as sent:
                    statuses.append(sent.status)
            return statuses

    statuses = asyncio.run(post((good, BODY), (good, BODY), (forged, BODY), (changed, other), ({}, b"")))

    assert statuses == [204, 204, 401, 409, 401]
    assert call(project, "show").stdout.splitlines()[1].split() == ["t", "1", "MATCH", "acf6", "2"]
    assert call(project, "start").returncode == 1, "something listens there already"
