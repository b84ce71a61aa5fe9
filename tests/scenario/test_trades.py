"""The story of examples/trades: the commands of its README, checked after each run.

Every dataset, change and event is compared with a model in plain Python, and so is what the receiver took.
The second half plays the same days over HTTP, and ends with the same rows and events.
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

from examples.play import Command, end_background, run_command
from tests.scenario.story import Played, ask, commands_of, copy_project, in_some_order, play, query
from tests.scenario.trades_model import KEPT_TIMES, PUBLISHED, TRIGGERS, State, after_run, event_id
from tests.scenario.trades_receiver import PORT, SECRET, move_receiver, move_server

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
    commands: tuple[Command, ...] = ()
    """Those of the README, with other ports."""
    played: list[Played] = field(default_factory=list)
    looks: dict[str, Look] = field(default_factory=dict)
    after_loss: Look | None = None
    received: list[tuple[str, Received]] = field(default_factory=list)
    """The day, and what had been taken when the README shows it."""
    over_http: Received | None = None
    """What had been taken at the end of the second half."""
    served: dict[str, Rows] = field(default_factory=dict)
    """What is published by the server at its end."""
    subscribed: Rows = field(default_factory=list)
    """What the subscriber has at its end."""
    deliveries: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """After each `--send`."""
    secret_in: list[str] = field(default_factory=list)
    """Files of the project that contain it."""


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Plays the README once. A day is checked when its run has ended."""
    project = copy_project("trades", tmp_path_factory.mktemp("readme"))
    move_receiver(project)
    commands = move_server(project, COMMANDS)
    story, state, day = Story(commands=commands), State(), ""

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
            case ["python", "receiver.py", "show", "15"]:
                story.over_http = read_received(project)
            case ["python", "subscriber.py", "show", "14"]:
                story.subscribed = read_subscribed(project)
            case ["kill", *_]:
                with chdir(project / "served"):
                    story.served = look_at(state).published
            case ["python", "receiver.py", "show"]:
                story.received.append((day, read_received(project)))
            case ["strandline", "deliveries", "--send"]:
                story.deliveries.append((day, ask("deliveries")))

    with pytest.MonkeyPatch.context() as patch, chdir(project):
        patch.setenv("DESK_SECRET", "")  # the README sets it, and it is gone afterwards
        patch.delenv("DESK_SECRET")
        try:
            story.played = play(commands, look)
            story.secret_in = find_secret(project)
            yield story
        finally:
            end_background()
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


def read_subscribed(project: Path) -> Rows:
    with closing(sqlite3.connect(project / "subscribed" / "large_trades.db")) as database:
        database.row_factory = sqlite3.Row
        return [dict(row) for row in database.execute("SELECT * FROM large_trades")]


def find_secret(project: Path) -> list[str]:
    encoded = SECRET.removeprefix("whsec_").encode()
    wanted = (encoded, base64.b64decode(encoded))
    files = [path for path in project.rglob("*") if path.is_file() and path.name != "README.md"]
    return [str(path) for path in files if any(text in path.read_bytes() for text in wanted)]


def told(events: Rows) -> Rows:
    return [event for event in events if not event["quiet"]]


def test_every_command_of_the_readme_succeeds(story: Story) -> None:
    assert [(ended.command.text, ended.code, ended.printed * bool(ended.code)) for ended in story.played] == [
        (command.text, 0, "") for command in story.commands
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


@pytest.mark.parametrize("dataset", PUBLISHED)
def test_the_same_days_over_http_end_with_the_same_rows(story: Story, dataset: str) -> None:
    by_files = story.looks["4"].published[dataset]

    assert in_some_order(story.served[dataset]) == in_some_order(by_files)


def test_the_subscriber_ends_with_the_table(story: Story) -> None:
    columns = ("trade_id", "symbol", "quantity", "notional")
    shown = [{c: str(row[c]) for c in columns} for row in story.served["large_trades"]]

    assert in_some_order(story.subscribed) == in_some_order(shown)


def test_over_http_the_desk_is_told_the_same_once_under_the_same_ids(story: Story) -> None:
    """Nobody asked for quiet there. A loss has the time of its commit, so its id is another one."""
    assert story.over_http is not None
    recorded = {event["event_id"]: event for event in story.looks["4"].published["large_trade_alert"]}
    bodies = {name: json.loads(body) for name, body in story.over_http.bodies.items()}
    trades = {name: one for name, one in bodies.items() if one["trigger_name"] == "large_trade_alert"}

    assert trades.keys() == recorded.keys()
    for name, body in trades.items():
        event = recorded[name]
        assert body["data"] == as_value(event["data"])
        assert (body["event_type"], body["source_timestamp"]) == (
            event["event_type"],
            str(event["source_timestamp"]),
        )
    assert [one["event_type"] for one in bodies.values() if one["trigger_name"] == "loss_alert"] == [
        "MATCH",
        "UNMATCH",
    ]
    assert set(story.over_http.came.values()) == {1}


def test_what_the_server_was_asked_for_is_answered(story: Story) -> None:
    answers = {
        re.sub(r".*/v1/|[?].*", "", ended.command.words[-1]): json.loads(ended.printed)
        for ended in story.played
        if ended.command.words[0] == "curl" and ended.printed
    }

    assert {one["dataset"]: one["result"] for one in answers["verify"]["datasets"]} == {
        "large_trades": "equal",
        "profit_and_loss": "equal",
    }
    assert (answers["facts/trade_messages"]["received"], answers["facts/price_messages"]["received"]) == (
        3,
        1,
    )
    (replayed,) = (answer for path, answer in answers.items() if path.endswith("/replay"))
    assert replayed["schema"] == "strandline/delivery/v1"
