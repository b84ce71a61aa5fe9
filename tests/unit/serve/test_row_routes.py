"""Rows and changes over HTTP: pages, waiting, and streams of events."""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from strandline.app.serving import reload_project
from strandline.lake import change_rows
from strandline.lake.log import find_log
from strandline.serve import row_routes
from tests.published_log import PROJECT, PublishedLog, trade
from tests.unit.serve.serving import KEY, KEYS, OTHER, Server, serving


@pytest.fixture
def log(tmp_path: Path) -> PublishedLog:
    log = PublishedLog.create(tmp_path)
    log.commit({n: trade(n, quantity=n) for n in range(1, 6)}, timestamp=3)
    log.commit({1: None, 2: trade(2, quantity=20)}, timestamp=4)
    return log


@pytest.fixture
def server(log: PublishedLog) -> Iterator[Server]:
    with serving(log.folder) as server:
        yield server


def get(server: Server, path: str, **parameters: Any) -> Any:
    answer = httpx.get(f"{server.url}/v1/datasets/trades/{path}", params=parameters, timeout=30)
    return answer.status_code, answer.json()


def test_rows_have_the_fields_of_the_language(server: Server) -> None:
    code, page = get(server, "rows", where='{"quantity": {"_gte": 4}}', order_by="quantity desc", limit=2)

    assert code == 200
    assert (page["schema"], page["version"], page["reprocessing_status"]) == ("strandline/rows/v1", 1, None)
    assert [row["trade_id"] for row in page["rows"]] == [2, 5]
    rest = get(
        server, "rows", where='{"quantity": {"_gte": 4}}', order_by="quantity desc", after=page["next"]
    )[1]
    assert [row["trade_id"] for row in rest["rows"]] == [4]
    assert rest["next"] is None
    assert get(server, "rows", known_at="0")[1]["rows"][0]["quantity"] == 1


def test_changes_have_the_fields_of_the_language_and_pages_join(server: Server) -> None:
    _, first = get(server, "changes", limit=6)
    _, rest = get(server, "changes", after=first["next"])

    assert len(first["changes"]) == 6
    assert rest["changes"] == [
        {
            "operation": "UPDATE",
            "key": "2",
            "data": {**trade(2, quantity=20)},
            "fields": ["quantity"],
            "before": {"quantity": 2},
            "ts_timestamp": "4",
            "ts_cursor": rest["changes"][0]["ts_cursor"],
        }
    ]
    assert get(server, "changes", after=rest["next"])[1]["changes"] == []


@pytest.mark.parametrize(
    ("path", "parameters", "code", "slug"),
    [
        ("rows", {"where": "{"}, 400, "bad-parameter"),
        ("rows", {"where": '{"nobody": {"_eq": 1}}'}, 400, "unknown-column"),
        ("rows", {"limit": 1001}, 400, "bad-parameter"),
        ("rows", {"order_by": "price; drop"}, 400, "bad-order"),
        ("rows", {"sort": "price"}, 400, "bad-parameter"),
        ("rows", {"known_at": "yesterday"}, 400, "bad-instant"),
        ("changes", {"after": "x"}, 400, "bad-cursor"),
        ("changes", {"after": "0" * 50}, 400, "cursor-of-another-dataset"),
        ("changes", {"wait": 301}, 400, "bad-parameter"),
    ],
)
def test_a_wrong_call_is_refused(
    server: Server, path: str, parameters: dict[str, Any], code: int, slug: str
) -> None:
    status, answer = get(server, path, **parameters)

    assert (status, answer["error"]["slug"]) == (code, slug)
    assert answer["error"]["remedy"]


def test_names_without_rows_or_changes_are_refused(server: Server) -> None:
    def ask(path: str) -> tuple[int, str]:
        answer = httpx.get(f"{server.url}/v1/datasets/{path}")
        return answer.status_code, answer.json()["error"]["slug"]

    assert ask("nobody/rows") == (404, "unknown-table")
    assert ask("quotes/rows") == (409, "never-built")
    assert ask("nobody/changes") == (404, "unknown-dataset")
    assert ask("quotes/changes") == (409, "no-change-log")
    assert server.served.live._engine is not None
    assert not server.served.live._engine.hub._opening


def test_an_expired_cursor_is_a_conflict(server: Server, log: PublishedLog) -> None:
    cursor = get(server, "changes")[1]["next"]
    log.reset()

    status, answer = get(server, "changes", after=cursor)

    assert (status, answer["error"]["slug"]) == (409, "cursor-expired")


def test_a_log_whose_files_are_gone_is_something_outside(server: Server, log: PublishedLog) -> None:
    for file in Path(log.table("trades_changes")).glob("*.parquet"):
        file.unlink()

    status, answer = get(server, "changes")

    assert (status, answer["error"]["slug"]) == (503, "table-unreadable")


def test_a_caller_waits_for_the_next_change(server: Server, log: PublishedLog) -> None:
    cursor = get(server, "changes")[1]["next"]
    threading.Timer(0.5, lambda: log.commit({9: trade(9)})).start()

    started = time.monotonic()
    code, page = get(server, "changes", after=cursor, wait=20)

    assert code == 200
    assert [change["key"] for change in page["changes"]] == ["9"]
    assert time.monotonic() - started < 10
    assert get(server, "changes", after=page["next"], wait=0.3)[1]["changes"] == []


def test_a_stream_has_a_cursor_for_each_event_and_resumes_after_the_last(
    server: Server, log: PublishedLog
) -> None:
    url, headers = f"{server.url}/v1/datasets/trades/changes", {"accept": "text/event-stream"}
    with httpx.stream("GET", url, params={"where": '{"quantity": {"_gte": 5}}'}, headers=headers) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = read_events(answer)
        first, second = next(events), next(events)
        log.commit({7: trade(7, quantity=70)})
        third = next(events)

    resumed = {**headers, "last-event-id": first[0]}
    with httpx.stream("GET", url, params={"where": '{"quantity": {"_gte": 5}}'}, headers=resumed) as answer:
        assert next(read_events(answer)) == second
    assert [event["operation"] for _, event in (first, second, third)] == ["INSERT", "INSERT", "INSERT"]
    assert [event["key"] for _, event in (first, second, third)] == ["5", "2", "7"]
    assert all(cursor == event["ts_cursor"] for cursor, event in (first, second, third))


def test_a_stream_ends_with_an_error_after_a_reset(server: Server, log: PublishedLog) -> None:
    url, headers = f"{server.url}/v1/datasets/trades/changes", {"accept": "text/event-stream"}
    with httpx.stream("GET", url, headers=headers, timeout=30) as answer:
        events = read_events(answer)
        next(events)
        log.reset()
        last = [event for _, event in events][-1]

    assert last["error"]["slug"] == "cursor-expired"


def test_who_follows_a_log_that_cannot_be_read_is_told_so_and_goes_on_after_his_cursor(
    server: Server, log: PublishedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    cursor = get(server, "changes")[1]["next"]
    failing = threading.Event()

    def find(uri: str) -> Any:
        if failing.is_set():
            raise OSError(24, "Too many open files")
        return find_log(uri)

    monkeypatch.setattr(change_rows, "find_log", find)

    def fail() -> None:
        failing.set()
        log.commit({9: trade(9)})

    threading.Timer(0.5, fail).start()
    away = get(server, "changes", after=cursor, wait=20)
    still = get(server, "changes", after=cursor)
    failing.clear()
    threading.Timer(0.5, lambda: log.commit({10: trade(10)})).start()
    back = get(server, "changes", after=cursor)
    next_one = get(server, "changes", after=back[1]["next"], wait=20)

    assert [(status, answer["error"]["slug"]) for status, answer in (away, still)] == [
        (503, "table-unreadable")
    ] * 2
    assert [change["key"] for change in back[1]["changes"]] == ["9"]
    assert [change["key"] for change in next_one[1]["changes"]] == ["10"]


def test_reading_needs_a_key_that_allows_it(log: PublishedLog) -> None:
    log.folder.joinpath("strandline.yaml").write_text(PROJECT + KEYS)

    with serving(log.folder) as server:
        for path in ("rows", "changes"):
            url = f"{server.url}/v1/datasets/trades/{path}"
            assert httpx.get(url).status_code == 401
            assert httpx.get(url, headers={"authorization": f"Bearer {OTHER}"}).status_code == 403
            assert httpx.get(url, headers={"authorization": f"Bearer {KEY}"}).status_code == 200


def test_a_stream_ends_when_its_key_is_removed(log: PublishedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_routes, "_BEAT", 0.2)
    file = log.folder / "strandline.yaml"
    file.write_text(PROJECT + KEYS)

    with serving(log.folder) as server:
        url = f"{server.url}/v1/datasets/trades/changes"
        headers = {"accept": "text/event-stream", "authorization": f"Bearer {KEY}"}
        with httpx.stream("GET", url, headers=headers, timeout=20) as answer:
            events = read_events(answer)
            next(events)
            file.write_text(PROJECT + KEYS.replace(KEY, "n" * 40))
            server.served.workspace = reload_project(server.served.workspace, {})
            rest = list(events)

    assert all("error" not in event for _, event in rest)


def read_events(answer: httpx.Response) -> Iterator[tuple[str, Any]]:
    cursor = ""
    for line in answer.iter_lines():
        if line.startswith("id: "):
            cursor = line.removeprefix("id: ")
        elif line.startswith("data: "):
            yield cursor, json.loads(line.removeprefix("data: "))
