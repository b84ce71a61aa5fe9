"""`deliveries`: what it lists, sends and owes again; what it refuses; what it never shows."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from strandline.app import deliveries as verb
from strandline.app import run as running
from strandline.app.maintain import maintain_tables
from strandline.app.workspace import open_workspace
from strandline.catalog import forget_deliveries, open_catalog
from strandline.cli import main
from strandline.dispatch.desk import Desk
from strandline.model.events import make_event_id
from strandline.model.plan import TaskResult
from tests.contract.test_outbox import pass_time
from tests.events import AT, EventLog, Fired
from tests.receiver import SECRET, Receiver, receiving_in_thread
from tests.unit.cli.builders import no_spark, printed
from tests.unit.declare.publishing import edited

ALERT = "large_trade_alert"
TOKEN = "a token of the desk that nobody may see"
MORE = """
    allow: [127.0.0.0/8]
    headers: {x-desk: "desk ${DESK}"}
    retry: [5 min, 5 min]
    ordering: "parallel"""


@dataclass(slots=True)
class Answers:
    """What the receiver says: a status by the event's key, else 204."""

    by_key: dict[str, int] = field(default_factory=dict)

    async def answer(self, _request: web.Request, body: bytes) -> web.StreamResponse:
        return web.Response(status=self.by_key.get(json.loads(body)["data"]["id"], 204))


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """A project with a trigger, an events table, and a receiver of its endpoint `ops`."""

    folder: Path
    log: EventLog
    receiver: Receiver
    answers: Answers

    def fire(self, *keys: str, n: int = 1, **more: Any) -> None:
        self.log.append(*(Fired(key=key, n=n, data=f'{{"id":"{key}"}}', **more) for key in keys))

    def call(self, *words: str) -> int:
        return main(["deliveries", *words, "--project", str(self.folder)])

    @property
    def keys(self) -> list[str]:
        return [json.loads(body)["data"]["id"] for _, body in self.receiver.received]


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Story]:
    answers = Answers()
    monkeypatch.setenv("OPS_SECRET", SECRET)
    monkeypatch.setattr(verb, "now", lambda: AT + timedelta(seconds=5))
    with receiving_in_thread(answers.answer) as receiver, no_spark(monkeypatch):
        text = edited(("https://ops.example/hook", f'{receiver.url}"{MORE}'))
        (tmp_path / "strandline.yaml").write_text(text)
        monkeypatch.setenv("DESK", TOKEN)
        log = EventLog(trigger=ALERT, uri=tmp_path / ".strandline" / "lake" / ALERT)
        made = Story(folder=tmp_path, log=log, receiver=receiver, answers=answers)
        assert made.call() == 0
        yield made


def test_what_is_due_is_sent_and_listed(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    story.fire("a", "b")
    capsys.readouterr()

    assert story.call("--send", "--output", "json") == 0

    document = printed(capsys)
    assert document["schema"] == "strandline/deliveries/v1"
    assert document["counts"] == {"delivered": 2}
    assert document["sent"] == {"ops": {"delivered": 2}}
    newest = document["deliveries"][0]
    event_id = make_event_id(ALERT, "b", 1)
    assert list(newest) == [
        "id",
        "event_id",
        "event_type",
        "trigger",
        "endpoint",
        "key",
        "source_timestamp",
        "status",
        "attempts",
        "next_at",
        "created_at",
        "ended_at",
        "status_code",
        "error",
    ]
    same = ("event_id", "event_type", "trigger", "endpoint", "key", "source_timestamp", "status")
    assert [newest[name] for name in same] == [event_id, "MATCH", ALERT, "ops", "b", 1, "delivered"]
    assert (newest["id"], newest["attempts"], newest["status_code"]) == (f"{event_id}-ops", 1, 204)
    assert (newest["error"], newest["next_at"]) == (None, None)
    assert newest["ended_at"].endswith("Z")
    assert sorted(story.keys) == ["a", "b"]


def test_what_failed_is_shown_and_the_call_ends_with_1(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    story.fire("a", "b")
    story.answers.by_key["b"] = 503
    capsys.readouterr()

    assert story.call("--send") == 1

    text = capsys.readouterr().out
    assert "ops: 1 delivered, 1 failed." in text
    assert "2 deliveries: 1 pending, 1 delivered." in text
    assert "HTTP 503" in text
    assert story.call("--output", "csv") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "id,event_id,event_type,trigger,endpoint,key,source_timestamp,status,attempts,"
    )
    assert len(lines) == 3


def test_dead_deliveries_are_listed_and_owed_again_with_the_same_id_and_bytes(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    story.fire("a", "b")
    story.answers.by_key["b"] = 500
    for _ in range(3):
        story.call("--send")
        _pass(story, timedelta(minutes=10))
    capsys.readouterr()
    assert story.call("--dead", "--output", "json") == 0
    document = printed(capsys)
    assert document["counts"] == {"delivered": 1, "dead": 1}
    assert [one["key"] for one in document["deliveries"]] == ["b"]
    story.answers.by_key.clear()

    assert story.call("--dead", "--since", "2024-01-01", "--send", "--output", "json") == 0

    again = printed(capsys)
    assert (again["replayed"], again["counts"]) == (1, {"delivered": 2})
    tries = [(headers["webhook-id"], body) for headers, body in story.receiver.received]
    assert len([one for one in tries if b'"b"' in one[1]]) == 4
    assert len(set(tries)) == 2


def test_one_delivery_is_owed_again_by_its_id(story: Story, capsys: pytest.CaptureFixture[str]) -> None:
    story.fire("a", "b")
    story.call("--send")
    delivery = f"{make_event_id(ALERT, 'a', 1)}-ops"
    capsys.readouterr()

    assert story.call("--replay", delivery) == 0
    assert "1 delivery owed again." in capsys.readouterr().out
    assert story.call("--replay", delivery) == 2
    assert "[delivery-not-ended]" in capsys.readouterr().err
    assert story.call("--send") == 0

    assert sorted(story.keys) == ["a", "a", "b"]
    assert len(set(story.receiver.ids)) == 2


def test_what_a_disabled_endpoint_would_get_is_held_until_it_is_enabled(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    story.fire("a")
    story.answers.by_key["a"] = 410
    assert story.call("--send") == 1
    story.fire("b")
    capsys.readouterr()
    assert story.call("--send", "--output", "json") == 1
    held = printed(capsys)
    assert held["counts"] == {"held": 2}
    assert held["endpoints"][0]["state"] == "disabled"
    assert story.call() == 0
    assert "strandline deliveries --endpoint ops --enable" in capsys.readouterr().out
    story.answers.by_key.clear()

    assert story.call("--endpoint", "ops", "--enable", "--send", "--output", "json") == 0

    enabled = printed(capsys)
    assert (enabled["enabled"], enabled["counts"]) == (2, {"delivered": 2})
    assert "endpoints" not in enabled


def test_what_is_owed_to_an_endpoint_that_is_gone_is_cancelled(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    story.fire("a")
    story.call()
    file = story.folder / "strandline.yaml"
    text = file.read_text().replace("  ops:\n", "  renamed:\n").replace("[ops, desk]", "desk")
    file.write_text(text.replace("endpoint: ops", "endpoint: desk"))
    capsys.readouterr()

    assert story.call("--endpoint", "ops", "--output", "json") == 0

    gone = printed(capsys)
    assert (gone["counts"], gone["cancelled"]) == ({"cancelled": 1}, 1)
    assert story.call("--replay", gone["deliveries"][0]["id"]) == 2
    assert "[endpoint-gone]" in capsys.readouterr().err


def test_what_waits_goes_to_the_url_that_is_declared_now(story: Story) -> None:
    story.fire("a")
    story.answers.by_key["a"] = 503
    assert story.call("--send") == 1
    with receiving_in_thread() as moved:
        file = story.folder / "strandline.yaml"
        file.write_text(file.read_text().replace(story.receiver.url, moved.url))
        _pass(story, timedelta(minutes=10))

        assert story.call("--send") == 0

        (first,), (second,) = story.receiver.received, moved.received
    assert (second[0]["webhook-id"], second[1]) == (first[0]["webhook-id"], first[1])


@pytest.mark.parametrize(
    ("secret", "slug"), [(None, "secret-not-set"), ("whsec_c2hvcnQ=", "bad-secret"), ("short", "bad-secret")]
)
def test_an_endpoint_without_a_valid_secret_is_not_sent_to_and_the_others_are(
    story: Story,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    secret: str | None,
    slug: str,
) -> None:
    """Only `--send` reads it, and only for endpoints to which something is owed."""
    other = EventLog(trigger="costly", uri=story.log.uri.parent / "costly")
    other.append(Fired(key="x", data='{"id":"x"}'), at=AT)
    monkeypatch.setenv("NEW_SECRET", SECRET)
    monkeypatch.setenv("DESK_TOKEN", TOKEN)
    if secret is None:
        monkeypatch.delenv("OPS_SECRET")
    else:
        monkeypatch.setenv("OPS_SECRET", secret)
    file = story.folder / "strandline.yaml"
    desk = 'http://10.1.2.3:8080/hook"\n    secret: ["${NEW_SECRET}", "${OLD_SECRET}"]'
    text = file.read_text().replace(desk, f'{story.receiver.url}"\n    secret: "${{NEW_SECRET}}"')
    file.write_text(text.replace("10.1.0.0/16", "127.0.0.0/8"))
    assert story.call() == 0
    capsys.readouterr()

    assert story.call("--send", "--output", "json") == 2

    out, err = capsys.readouterr()
    assert json.loads(out)["counts"] == {"pending": 1, "delivered": 1}
    assert story.keys == ["x"]
    assert f"[{slug}]" in err
    monkeypatch.setenv("OPS_SECRET", SECRET)
    assert story.call("--send") == 0
    assert story.keys == ["x", "x"]


@pytest.mark.parametrize(
    ("words", "slug", "better"),
    [
        (("--endpoint", "opps"), "unknown-endpoint", ("--endpoint", "ops")),
        (("--trigger", "large_trade"), "unknown-trigger", ("--trigger", ALERT)),
        (("--until", "2024-01-01"), "call", ("--since", "2024-01-01", "--until", "2024-01-01")),
        (("--enable",), "call", ("--enable", "--endpoint", "ops")),
        (("--send", "--trigger", ALERT), "call", ("--send",)),
        (("--since", "yesterday"), "bad-instant", ("--since", "2024-01-13")),
        (("--replay", "x"), "unknown-delivery", ()),
        (("--replay", "x", "--since", "2024-01-13"), "call", ("--since", "2024-01-13")),
        (("--limit", "0"), "call", ("--limit", "1")),
    ],
)
def test_a_call_that_means_nothing_is_refused_and_done_as_the_message_says(
    story: Story,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    slug: str,
    better: tuple[str, ...],
) -> None:
    assert story.call(*words) == 2
    assert f"[{slug}]" in capsys.readouterr().err
    assert story.call(*better) == 0


def test_quiet_takes_the_names_of_triggers(
    story: Story, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet: list[frozenset[str]] = []

    def execute(desk: Desk, *_: object) -> tuple[TaskResult, ...]:
        quiet.append(desk.quiet)
        return ()

    monkeypatch.setattr(running, "open_lake", lambda *_: running.no_session)
    monkeypatch.setattr(running, "execute", execute)
    project = ("--project", str(story.folder))

    assert main(["run", "--quiet", "large_trade", *project]) == 2
    assert "Did you mean `large_trade_alert`?  [not-a-trigger]" in capsys.readouterr().err
    main(["run", "--quiet", ALERT, *project])
    main(["run", *project, "--quiet"])
    main(["run", *project])

    assert quiet == [{ALERT}, {ALERT, "costly"}, set()]


def test_a_list_for_people_is_short_and_that_for_programs_is_complete(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    story.fire(*(f"k{n:02}" for n in range(30)))
    story.call("--output", "json")
    assert len(json.loads(capsys.readouterr().out.splitlines()[-1])["deliveries"]) == 30

    story.call()
    assert "The newest 20 of 30 are listed; `--limit N` lists N." in capsys.readouterr().out
    story.call("--limit", "30")
    assert "are listed" not in capsys.readouterr().out


def test_maintain_removes_deliveries_that_ended_long_ago(
    story: Story, capsys: pytest.CaptureFixture[str]
) -> None:
    story.fire("a", "b")
    story.answers.by_key["b"] = 500
    story.call("--send")
    _pass(story, timedelta(days=31))
    capsys.readouterr()
    assert main(["maintain", "--dry-run", "--output", "json", "--project", str(story.folder)]) == 0
    assert printed(capsys)["deliveries"] == {"removed": 1}

    with open_workspace(story.folder) as workspace:
        assert maintain_tables(workspace, ALERT, lambda _: None).forgotten == 0
        assert maintain_tables(workspace, None, lambda _: None).forgotten == 1

    story.call("--output", "json")
    assert printed(capsys)["counts"] == {"pending": 1}


def test_a_catalog_that_was_rebuilt_owes_again_what_is_inside_its_schedule(
    story: Story, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """L6: with the same ids and bytes. Nobody is told about a quiet event or about one of long ago."""
    from strandline.app import rebuild_catalog

    monkeypatch.setattr(rebuild_catalog, "now", lambda: AT + timedelta(minutes=5))
    story.log.append(Fired(key="old", data='{"id":"old"}'), at=AT - timedelta(days=2))
    story.fire("a", "b")
    story.fire("q", quiet=True)
    story.call("--send")
    before = {headers["webhook-id"]: body for headers, body in story.receiver.received}
    story.receiver.received.clear()
    (story.folder / ".strandline" / "catalog.db").unlink()
    capsys.readouterr()

    assert main(["rebuild-catalog", "--project", str(story.folder)]) == 0
    assert "did not know which events of `large_trade_alert` were delivered" in capsys.readouterr().out
    assert story.call("--send") == 0

    assert sorted(story.keys) == ["a", "b"]
    assert all(before[headers["webhook-id"]] == body for headers, body in story.receiver.received)


def test_secrets_are_in_no_output_file_or_catalog(
    story: Story, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither that of an endpoint nor a header's value, whatever the receiver does."""
    monkeypatch.setenv("STRANDLINE_DEBUG", "1")
    story.fire("a", "b", "c")
    story.answers.by_key |= {"b": 500, "c": 302}
    project = ("--project", str(story.folder))

    story.call("--send")
    story.call("--output", "json")
    monkeypatch.setenv("OPS_SECRET", SECRET[:-6])
    _pass(story, timedelta(minutes=10))
    assert story.call("--send") == 2
    for words in (["check"], ["plan"], ["status"], ["status", "--output", "html"], ["doctor"]):
        main([*words, *project])
    main(["rebuild-catalog", *project])

    out, err = capfd.readouterr()
    hidden = [SECRET, SECRET.removeprefix("whsec_")[:24], TOKEN]
    assert {headers["x-desk"] for headers, _ in story.receiver.received} == {f"desk {TOKEN}"}
    for text in hidden:
        assert text not in out + err
    for file in (path for path in story.folder.rglob("*") if path.is_file()):
        assert not any(text.encode() in file.read_bytes() for text in hidden), file


def test_deliveries_that_are_no_longer_kept_are_owed_again_from_their_events(
    story: Story, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    story.fire("a", "b")
    story.fire("silent", quiet=True)
    story.call("--send")
    monkeypatch.setattr(verb, "now", lambda: AT + timedelta(days=40))
    story.log.append(Fired(key="new", data='{"id":"new"}'), at=AT + timedelta(days=39))
    story.call("--send")
    _pass(story, timedelta(days=31))
    with open_workspace(story.folder) as workspace:
        assert forget_deliveries(workspace.catalog, timedelta(days=30)) == 3
    first = list(story.receiver.received)
    capsys.readouterr()

    assert story.call("--replay", f"{make_event_id(ALERT, 'a', 1)}-ops") == 0
    assert "1 delivery owed again." in capsys.readouterr().out
    for unknown in (
        f"{make_event_id(ALERT, 'a', 2)}-ops",
        f"{make_event_id(ALERT, 'silent', 1)}-ops",
        "a-ops",
    ):
        assert story.call("--replay", unknown) == 2
        assert "[unknown-delivery]" in capsys.readouterr().err
    assert story.call("--since", "2024-01-01", "--until", "2024-01-15", "--output", "json") == 0
    assert printed(capsys)["replayed"] == 0
    assert story.call("--since", "2024-01-01", "--dead", "--output", "json") == 0
    assert printed(capsys)["replayed"] == 0, "nobody knows whether they were dead"
    assert story.call("--since", "2024-01-01", "--send", "--output", "json") == 0

    # `a` waits already. Of `new` a delivery would still be kept, so it may never have been owed.
    assert printed(capsys)["replayed"] == 1
    assert sorted(story.keys[3:]) == ["a", "b"]
    again = {headers["webhook-id"]: body for headers, body in story.receiver.received[3:]}
    assert again.items() <= {headers["webhook-id"]: body for headers, body in first}.items()


def _pass(story: Story, by: timedelta) -> None:
    catalog = open_catalog(f"sqlite:///{story.folder / '.strandline' / 'catalog.db'}")
    pass_time(catalog, by)
    catalog.close()
