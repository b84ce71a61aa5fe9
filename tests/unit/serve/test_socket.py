"""Subscriptions over WebSocket, by the protocol `graphql-transport-ws`."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import websockets

from strandline.app import changes
from strandline.app import serving as serving_app
from strandline.lake import change_rows
from strandline.serve.graphql import socket
from strandline.serve.subscriptions import feed, hub
from tests.published_log import PROJECT, PublishedLog, trade
from tests.unit.serve.serving import KEY, KEYS, OTHER, Client, Server, serving

ALL = "subscription { trades { operation data { trade_id quantity } fields ts_timestamp ts_cursor } }"
LARGE = "subscription { trades(where: {quantity: {_gte: 10}}) { operation data { trade_id } ts_cursor } }"
AFTER = "subscription($after: String) { trades(after: $after) { operation data { trade_id } ts_cursor } }"


@pytest.fixture
def log(tmp_path: Path) -> PublishedLog:
    log = PublishedLog.create(tmp_path)
    log.commit({1: trade(1, quantity=5), 2: trade(2, quantity=50)}, timestamp=7)
    return log


@pytest.fixture
def server(log: PublishedLog) -> Iterator[Server]:
    with serving(log.folder) as server:
        yield server


def play(story: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(story())  # type: ignore[arg-type]


def test_rows_come_first_and_then_every_change_once(log: PublishedLog, server: Server) -> None:
    async def story() -> None:
        client = await Client.open(server)
        await client.subscribe(ALL)
        rows = await client.updates(2)
        assert [(r["operation"], r["data"]) for r in rows] == [
            ("INSERT", {"trade_id": "1", "quantity": "5"}),
            ("INSERT", {"trade_id": "2", "quantity": "50"}),
        ]
        assert [r["ts_timestamp"] for r in rows] == ["7", "7"]
        assert rows[0]["ts_cursor"] is None
        assert rows[1]["ts_cursor"] is not None

        log.commit({1: trade(1, quantity=6), 3: trade(3)}, timestamp=8)
        log.commit({2: None}, timestamp=9)
        changes = await client.updates(3)

        assert [(c["operation"], c["data"]["trade_id"], c["ts_timestamp"]) for c in changes] == [
            ("UPDATE", "1", "8"),
            ("INSERT", "3", "8"),
            ("DELETE", "2", "9"),
        ]
        assert changes[0]["fields"] == ["quantity"]
        cursors = [rows[1]["ts_cursor"], *(c["ts_cursor"] for c in changes)]
        assert cursors == sorted(set(cursors))
        await client.socket.close()

    play(story)


def test_who_subscribes_before_anything_was_built_is_told_of_the_first_rows(tmp_path: Path) -> None:
    log = PublishedLog.create(tmp_path / "new")

    async def story() -> None:
        client = await Client.open(new)
        await client.subscribe(ALL)
        await asyncio.sleep(0.3)
        log.commit({1: trade(1, quantity=5)}, timestamp=7)

        (first,) = await client.updates(1)
        log.commit({1: trade(1, quantity=6)}, timestamp=8)
        (second,) = await client.updates(1)

        assert (first["operation"], first["data"]) == ("INSERT", {"trade_id": "1", "quantity": "5"})
        assert (second["operation"], second["data"]["quantity"]) == ("UPDATE", "6")
        await client.socket.close()

    with serving(log.folder) as new:
        play(story)


def test_rows_enter_and_leave_a_condition(log: PublishedLog, server: Server) -> None:
    async def story() -> None:
        client = await Client.open(server)
        await client.subscribe(LARGE)
        assert [r["data"]["trade_id"] for r in await client.updates(1)] == ["2"]

        log.commit({1: trade(1, quantity=10), 2: trade(2, quantity=9), 3: trade(3, quantity=9)})
        changes = await client.updates(2)

        assert [(c["operation"], c["data"]["trade_id"]) for c in changes] == [
            ("INSERT", "1"),
            ("DELETE", "2"),
        ]
        await client.socket.close()

    play(story)


def test_a_subscriber_resumes_after_its_cursor_without_a_snapshot(log: PublishedLog, server: Server) -> None:
    async def story() -> None:
        client = await Client.open(server)
        await client.subscribe(ALL)
        cursor = (await client.updates(2))[1]["ts_cursor"]
        await client.socket.close()
        log.commit({3: trade(3)})
        log.commit({3: None, 4: trade(4)})

        again = await Client.open(server)
        await again.subscribe(AFTER, after=cursor)
        missed = await again.updates(3)
        log.commit({5: trade(5)})

        assert [(c["operation"], c["data"]["trade_id"]) for c in missed] == [
            ("INSERT", "3"),
            ("DELETE", "3"),
            ("INSERT", "4"),
        ]
        assert (await again.updates(1))[0]["data"]["trade_id"] == "5"
        await again.socket.close()

    play(story)


def test_without_a_snapshot_only_changes_come(log: PublishedLog, server: Server) -> None:
    async def story() -> None:
        client = await Client.open(server)
        await client.subscribe("subscription { trades(snapshot: false) { data { trade_id } } }")
        await asyncio.sleep(0.3)
        log.commit({8: trade(8)})

        assert await client.updates(1) == [{"data": {"trade_id": "8"}}]
        await client.socket.close()

    play(story)


def test_a_reset_closes_with_1012_and_the_cursor_has_expired(log: PublishedLog, server: Server) -> None:
    async def story() -> None:
        client = await Client.open(server)
        await client.subscribe(ALL)
        cursor = (await client.updates(2))[1]["ts_cursor"]
        log.reset()

        assert await client.close_code() == 1012
        again = await Client.open(server)
        await again.subscribe(AFTER, after=cursor)
        error = await again.receive()
        assert error["type"] == "error"
        assert error["payload"][0]["extensions"]["code"] == "CURSOR_EXPIRED"
        await again.subscribe(ALL, name="2")
        assert len(await again.updates(2)) == 2
        await again.socket.close()

    play(story)


def test_a_log_that_cannot_be_read_closes_with_1012_and_its_followers_resume(
    log: PublishedLog, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    really, failing = change_rows.read_told, [True]

    def read_told(*parts: Any) -> Iterator[Any]:
        yield from really(*parts)
        if failing.pop():
            raise OSError(5, "Input/output error")

    async def story() -> None:
        client = await Client.open(server)
        await client.subscribe(ALL)
        cursor = (await client.updates(2))[-1]["ts_cursor"]
        monkeypatch.setattr(changes, "read_told", read_told)
        log.commit({3: trade(3)}, timestamp=8)
        (told,) = await client.updates(1)
        assert await client.close_code() == 1012
        monkeypatch.setattr(changes, "read_told", really)

        again = await Client.open(server)
        await again.subscribe(AFTER, after=cursor)
        assert await again.updates(1) == [
            {k: told[k] for k in ("operation", "ts_cursor")} | {"data": {"trade_id": "3"}}
        ]
        log.commit({4: trade(4)}, timestamp=9)
        assert (await again.updates(1))[0]["data"] == {"trade_id": "4"}

    play(story)


def test_shutdown_closes_with_1012(log: PublishedLog) -> None:
    async def story() -> None:
        client = await Client.open(running)
        await client.subscribe(ALL)
        await client.updates(2)
        running.served.live.close()

        assert await client.close_code() == 1012

    with serving(log.folder) as running:
        play(story)


@pytest.mark.parametrize(
    ("messages", "code"),
    [
        ([{"type": "subscribe", "id": "1", "payload": {"query": ALL}}], 4401),
        ([{"type": "connection_init"}, {"type": "connection_init"}], 4429),
        ([{"type": "connection_init"}, {"type": "nonsense"}], 4400),
        ([{"type": "connection_init"}, {"type": "subscribe", "payload": {"query": ALL}}], 4400),
        ([{"type": "connection_init"}, {"type": "subscribe", "id": "1", "payload": {}}], 4400),
        (
            [{"type": "connection_init"}, *[{"type": "subscribe", "id": "1", "payload": {"query": ALL}}] * 2],
            4409,
        ),
        (
            [
                {"type": "connection_init"},
                *[{"type": "subscribe", "id": "\U0001f600" * 60, "payload": {"query": ALL}}] * 2,
            ],
            4409,
        ),
        ([[]], 4400),
        ([{"type": "connection_init"}, {"type": "complete", "id": "half \ud83d"}], 4400),
    ],
)
def test_what_breaks_the_protocol_is_closed_with_its_code(
    server: Server, messages: list[object], code: int
) -> None:
    async def story() -> None:
        client = await Client.open(server, init=False)
        for message in messages:
            await client.socket.send(json.dumps(message))

        assert await client.close_code() == code

    play(story)


def test_who_does_not_begin_is_closed_and_so_is_who_speaks_something_else(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "PATIENCE", 0.2)

    async def story() -> None:
        silent = await Client.open(server, init=False)
        assert await silent.close_code() == 4408
        other = await websockets.connect(f"ws://127.0.0.1:{server.port}/graphql")
        with pytest.raises(websockets.ConnectionClosed):
            await other.recv()
        assert other.close_code == 4406

    play(story)


def test_an_access_key_is_needed_and_comes_with_the_first_message(log: PublishedLog) -> None:
    async def story() -> None:
        stranger = await Client.open(running, init=False)
        await stranger.send(type="connection_init", payload={"access_key": "wrong"})
        assert await stranger.close_code() == 4403
        wrong_role = await Client.open(running, init=False)
        await wrong_role.send(type="connection_init", payload={"access_key": OTHER})
        assert await wrong_role.close_code() == 4403
        nobody = await Client.open(running, init=False)
        await nobody.send(type="connection_init")
        assert await nobody.close_code() == 4403
        client = await Client.open(running, payload={"access_key": KEY})
        await client.subscribe(ALL)
        assert len(await client.updates(2)) == 2
        await client.socket.close()

    log.folder.joinpath("strandline.yaml").write_text(PROJECT + KEYS)
    with serving(log.folder) as running:
        play(story)


def test_there_are_at_most_so_many_connections_and_strangers_are_none_of_them(
    log: PublishedLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert hub.MOST_CONNECTIONS == 1_000
    monkeypatch.setattr(hub, "MOST_CONNECTIONS", 2)

    async def story() -> None:
        strangers = [await Client.open(running, init=False) for _ in range(5)]
        first, _second = [await Client.open(running, payload={"access_key": KEY}) for _ in range(2)]
        third = await Client.open(running, init=False)
        await third.send(type="connection_init", payload={"access_key": KEY})
        assert await third.close_code() == 1013
        await first.socket.close()
        await asyncio.sleep(0.3)
        await Client.open(running, payload={"access_key": KEY})
        assert all(one.socket.close_code is None for one in strangers)

    log.folder.joinpath("strandline.yaml").write_text(PROJECT + KEYS)
    with serving(log.folder) as running:
        play(story)


@pytest.mark.parametrize("in_header", [True, False])
def test_who_was_let_in_by_a_key_that_is_removed_is_closed(
    log: PublishedLog, monkeypatch: pytest.MonkeyPatch, *, in_header: bool
) -> None:
    monkeypatch.setattr(socket, "PATIENCE", 0.2)
    monkeypatch.setattr(socket, "RECHECK", 0.1)
    file = log.folder / "strandline.yaml"

    async def story() -> None:
        headers = {"authorization": f"Bearer {KEY}"} if in_header else None
        client = await Client.open(
            running, payload=None if in_header else {"access_key": KEY}, headers=headers
        )
        await client.subscribe(ALL)
        assert len(await client.updates(2)) == 2
        await asyncio.sleep(0.6)
        log.commit({3: trade(3)})
        assert len(await client.updates(1)) == 1

        file.write_text(PROJECT + KEYS.replace(KEY, "n" * 40))
        running.served.workspace = serving_app.reload_project(running.served.workspace, {})
        assert await client.close_code() == 4403

    file.write_text(PROJECT + KEYS)
    with serving(log.folder) as running:
        play(story)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("subscription { trades { nothing } }", "INVALID"),
        ("subscription {", "SYNTAX"),
        ("subscription { trades { operation } more: trades { operation } }", "INVALID"),
        ('subscription { trades(after: "x") { operation } }', "BAD_CURSOR"),
        ("subscription { trades(where: {quantity: {_eq: null}}) { operation } }", "FILTER_UNKNOWN"),
        ('subscription { trades(where: {booked_at: {_gt: "soon"}}) { operation } }', "FILTER_TYPE"),
        ("subscription { trades " + "{ data " * 9 + "}" * 9 + "}", "TOO_DEEP"),
        ("subscription { trades { data { " + "trade_id " * 250 + "} } }", "TOO_MANY_FIELDS"),
        ("subscription { trades { data { " + "trade_id " * 2500 + "} } }", "TOO_MANY_TOKENS"),
    ],
)
def test_a_wrong_subscription_is_an_error_and_the_connection_goes_on(
    server: Server, query: str, code: str
) -> None:
    async def story() -> None:
        client = await Client.open(server)
        await client.subscribe(query)
        error = await client.receive()
        assert (error["type"], error["id"]) == ("error", "1")
        assert error["payload"][0]["extensions"]["code"] == code
        await client.send(type="ping")
        assert await client.receive() == {"type": "pong"}
        await client.subscribe("{ trades_by_pk(trade_id: 2) { quantity } }", name="q")
        assert (await client.receive())["payload"] == {"data": {"trades_by_pk": {"quantity": "50"}}}
        assert await client.receive() == {"id": "q", "type": "complete"}
        await client.socket.close()

    play(story)


def test_a_connection_has_at_most_100_subscriptions_and_an_ended_one_makes_room(server: Server) -> None:
    async def story() -> None:
        client = await Client.open(server)
        for nth in range(101):
            await client.subscribe("subscription { trades(snapshot: false) { operation } }", name=str(nth))
        error = await client.receive()
        assert error["id"] == "100"
        assert error["payload"][0]["extensions"]["code"] == "TOO_MANY_SUBSCRIPTIONS"
        await client.send(type="complete", id="0")
        await client.subscribe(ALL, name="0")
        assert len(await client.updates(2)) == 2
        await client.socket.close()

    play(story)


def test_who_reads_is_not_closed_for_having_many_subscriptions(log: PublishedLog, server: Server) -> None:
    """They get each change a hundred times: more at once than somebody may be behind."""
    query = """subscription($after: String, $least: BigInt) {
        trades(after: $after, snapshot: false, where: {trade_id: {_gte: $least}}) { data { trade_id } } }"""
    numbers, changes_ = range(100), 30

    async def follow(after: str | None) -> Client:
        client = await Client.open(server)
        for number in numbers:
            await client.subscribe(query, str(number), after=after, least=str(-number))
        return client

    async def story() -> None:
        first = await Client.open(server)
        await first.subscribe(ALL)
        cursor = (await first.updates(2))[-1]["ts_cursor"]

        live = await follow(None)
        while server.count("subscribers", "trades") < 1 + len(numbers):
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)
        log.commit({n: trade(n) for n in range(3, 3 + changes_)})
        assert len(await live.updates(len(numbers) * changes_)) == 3_000

        resumed = await follow(cursor)
        assert len(await resumed.updates(len(numbers) * changes_)) == 3_000

    play(story)


def test_who_never_reads_is_closed_and_disturbs_nobody(log: PublishedLog, server: Server) -> None:
    text = "x" * 20_000

    async def story() -> None:
        query = "subscription { trades(snapshot: false) { data { trade_id symbol } } }"
        lazy, eager = await Client.open(server), await Client.open(server)
        for client in (lazy, eager):
            await client.subscribe(query)
        lazy.socket.transport.pause_reading()
        await asyncio.sleep(0.3)

        log.commit({n: trade(n, symbol=text) for n in range(1_000, 1_400)})
        changes = await eager.updates(400)

        assert [c["data"]["trade_id"] for c in changes] == [str(n) for n in range(1_000, 1_400)]
        log.commit({5: trade(5)})
        assert (await eager.updates(1))[0]["data"]["trade_id"] == "5"
        assert server.count("slow_subscribers_total", "trades") == 1
        assert server.count("subscription_messages_total", "trades") >= 401
        lazy.socket.transport.resume_reading()
        assert await lazy.close_code(30) == 1013
        await eager.socket.close()

    play(story)


def test_the_snapshot_has_a_largest_size(log: PublishedLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed, "MOST_SNAPSHOT_ROWS", 1)

    async def story() -> None:
        client = await Client.open(running)
        await client.subscribe(ALL)
        error = await client.receive()
        assert error["payload"][0]["extensions"]["code"] == "SNAPSHOT_TOO_LARGE"
        await client.socket.close()

    with serving(log.folder) as running:
        play(story)
