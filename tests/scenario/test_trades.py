"""The story of examples/trades: the commands of its README, checked after each run.

Every dataset, change and event is compared with a model in plain Python, and so is what the receiver took.
"""

import base64
import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from contextlib import chdir, closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from examples.play import Command, run_command
from tests.scenario.story import Played, ask, commands_of, copy_project, in_some_order, play, query
from tests.scenario.trades_model import KEPT_TIMES, PUBLISHED, TRIGGERS, State, after_run, event_id
from tests.scenario.trades_receiver import PORT, SECRET, move_receiver

pytestmark = pytest.mark.spark

COMMANDS = commands_of("trades")
DAYS = ("1", "2", "3", "4")
SENT_ON = ("1", "2", "3", "4")
Rows = list[dict[str, Any]]


@dataclass
class Look:
    """Published and expected after a run."""

    expected: State
    published: dict[str, Rows]


@dataclass
class Received:
    """What the receiver has taken: each body by its id, and how often it came."""

    bodies: dict[str, bytes]
    came: dict[str, int]


@dataclass
class Story:
    played: list[Played] = field(default_factory=list)
    looks: dict[str, Look] = field(default_factory=dict)
    after_loss: Look | None = None
    received: list[tuple[str, Received]] = field(default_factory=list)
    """The day, and what had been taken when the README shows it."""
    deliveries: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """After each `--send`."""
    secret_in: list[str] = field(default_factory=list)
    """Files of the project that contain it."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Plays the README once. A day is checked when its run has ended."""
    project = copy_project("trades", tmp_path_factory.mktemp("readme"))
    move_receiver(project)
    story, state, day = Story(), State(), ""

    def look(command: Command) -> None:
        nonlocal state, day
        match command.words:
            case ["python", "generate.py", day]:
                pass
            case ["strandline", "run", *options]:
                state = after_run(state, project / "data", options)
                story.looks[day] = look_at(state)
            case ["strandline", "rebuild-catalog"]:
                story.after_loss = look_at(state)
            case ["python", "receiver.py", "show"]:
                story.received.append((day, read_received(project)))
            case ["strandline", "deliveries", "--send"]:
                story.deliveries.append((day, ask("deliveries")))

    with pytest.MonkeyPatch.context() as patch, chdir(project):
        patch.setenv("DESK_SECRET", "")  # the README sets it, and it is gone afterwards
        patch.delenv("DESK_SECRET")
        try:
            story.played = play(COMMANDS, look)
            story.secret_in = find_secret(project)
            yield story
        finally:
            run_command(Command(text="python receiver.py stop"))


def look_at(state: State) -> Look:
    logs = {f"{name}_changes": "version, position" for name in PUBLISHED}
    events = dict.fromkeys(TRIGGERS, "version, position")
    ordered = {name: f" ORDER BY {by}" for name, by in (logs | events).items()}
    names = (*PUBLISHED, *ordered)
    published = {name: query(f"SELECT * FROM {name}{ordered.get(name, '')}") for name in names}
    return Look(expected=state, published=published)


def read_received(project: Path) -> Received:
    with closing(sqlite3.connect(project / "received" / "events.db")) as database:
        rows = database.execute("SELECT event_id, body, came FROM events").fetchall()
    return Received(
        bodies={event: bytes(body) for event, body, _ in rows}, came={event: came for event, _, came in rows}
    )


def find_secret(project: Path) -> list[str]:
    encoded = SECRET.removeprefix("whsec_").encode()
    wanted = (encoded, base64.b64decode(encoded))
    files = [path for path in project.rglob("*") if path.is_file() and path.name != "README.md"]
    return [str(path) for path in files if any(text in path.read_bytes() for text in wanted)]


def told(events: Rows) -> Rows:
    return [event for event in events if not event["quiet"]]


def test_every_command_of_the_readme_succeeds(story: Story) -> None:
    assert [(ended.command.text, ended.code, ended.printed * bool(ended.code)) for ended in story.played] == [
        (command.text, 0, "") for command in COMMANDS
    ]
    assert tuple(story.looks) == DAYS


@pytest.mark.parametrize("place", [number for number, command in enumerate(COMMANDS) if command.shown])
def test_the_readme_shows_what_the_command_prints(story: Story, place: int) -> None:
    ended = story.played[place]
    shown = "\n".join(line.rstrip() for line in ended.command.shown)
    printed = "\n".join(line.rstrip() for line in ended.printed.rstrip("\n").splitlines())
    printed = re.sub(r"(?<=//127\.0\.0\.1:)[0-9]+", str(PORT), printed)

    as_shown = re.escape(shown).replace(re.escape("..."), ".*")

    assert re.fullmatch(as_shown, printed, re.DOTALL), f"{ended.command.text} printed\n{printed}"


@pytest.mark.parametrize("dataset", PUBLISHED)
@pytest.mark.parametrize("day", DAYS)
def test_a_dataset_equals_the_model_after_each_day(story: Story, day: str, dataset: str) -> None:
    look = story.looks[day]

    assert in_some_order(look.published[dataset]) == in_some_order(list(look.expected.rows[dataset].values()))


@pytest.mark.parametrize("dataset", PUBLISHED)
@pytest.mark.parametrize("day", DAYS)
def test_a_change_log_equals_the_differences_of_the_model(story: Story, day: str, dataset: str) -> None:
    look = story.looks[day]
    log = look.published[f"{dataset}_changes"]

    assert [
        (
            change["operation"],
            change["key"],
            change["source_timestamp"] if dataset in KEPT_TIMES else None,
            tuple(as_value(change["fields"])),
            as_value(change["data"]),
            as_value(change["before"]) or {},
        )
        for change in log
    ] == [
        (
            change.operation,
            change.key,
            change.source_timestamp,
            change.fields,
            change.data,
            change.before,
        )
        for change in look.expected.changes[dataset]
    ]
    places = [(change["version"], change["position"]) for change in log]
    assert places == sorted(set(places))
    by_version: dict[int, list[int]] = defaultdict(list)
    for version, position in places:
        by_version[version].append(position)
    assert all(positions == list(range(len(positions))) for positions in by_version.values())


def as_value(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


@pytest.mark.parametrize("trigger", TRIGGERS)
@pytest.mark.parametrize("day", DAYS)
def test_the_events_equal_the_model(story: Story, day: str, trigger: str) -> None:
    look = story.looks[day]
    events = look.published[trigger]
    expected = look.expected.events[trigger]

    assert [
        (event["event_type"], event["key"], as_value(event["data"]), event["quiet"], event["n"])
        for event in events
    ] == [(event.event_type, event.key, event.data, event.quiet, 1) for event in expected]
    for event, model in zip(events, expected, strict=True):
        if model.source_timestamp is not None:
            assert event["source_timestamp"] == model.source_timestamp
        assert event["event_id"] == event_id(trigger, event["key"], event["source_timestamp"])
    assert len({event["event_id"] for event in events}) == len(events)


def test_a_time_of_a_commit_is_a_recent_one_in_nanoseconds_and_grows(story: Story) -> None:
    """A job's output has no time of a source. Its inputs count nanoseconds, but it is none of them."""
    times = [event["source_timestamp"] for event in story.looks["4"].published["loss_alert"]]

    assert all(earlier < later for earlier, later in pairwise(times))


@pytest.mark.parametrize("place", range(4))
def test_the_receiver_has_each_event_that_was_told_once(story: Story, place: int) -> None:
    day, received = story.received[place]
    look = story.looks[day]
    events = {
        event["event_id"]: (trigger, event) for trigger in TRIGGERS for event in told(look.published[trigger])
    }

    assert received.bodies.keys() == events.keys()
    for name, body in received.bodies.items():
        trigger, event = events[name]
        message = json.loads(body)
        assert list(message) == [
            "event_id",
            "event_type",
            "trigger_name",
            "timestamp",
            "source_timestamp",
            "data",
        ]
        assert message == {
            "event_id": name,
            "event_type": event["event_type"],
            "trigger_name": trigger,
            "timestamp": message["timestamp"],
            "source_timestamp": str(event["source_timestamp"]),
            "data": as_value(event["data"]),
        }
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", message["timestamp"])
    if place < len(story.received) - 1:
        assert set(received.came.values()) == {1}


def test_after_the_loss_of_the_catalog_everything_came_again_with_the_same_bytes(story: Story) -> None:
    """The receiver answers 409 to an id that comes with another body, so none did."""
    (_, before), (_, after) = story.received[-2:]

    assert after.bodies == before.bodies
    assert after.came == {
        name: 3 if name == "acf67a288f80147280c9d4b1e99378cd" else 2 for name in before.came
    }
    assert story.after_loss is not None
    for name, rows in story.looks["4"].published.items():
        assert in_some_order(story.after_loss.published[name]) == in_some_order(rows), name


def test_nothing_is_owed_in_the_end_and_what_the_receiver_refused_was_kept(story: Story) -> None:
    by_day = defaultdict(list)
    for day, answer in story.deliveries:
        by_day[day].append({word: count for word, count in answer["counts"].items() if count})

    assert by_day["1"] == [{"delivered": 4}]
    assert by_day["2"] == by_day["3"] == [{"delivered": 8}]
    assert by_day["4"][0] == {"delivered": 8, "pending": 4}, "the receiver is down"
    assert by_day["4"][1:3] == [{"delivered": 12}] * 2
    assert by_day["4"][3:] == [{"delivered": 12}], "after the catalog was lost"


def test_the_secret_is_in_no_file_and_nothing_that_was_printed(story: Story) -> None:
    assert story.secret_in == []
    assert not [ended.command.text for ended in story.played if SECRET[6:] in ended.printed]
