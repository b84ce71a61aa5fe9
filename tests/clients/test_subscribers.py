"""The clients that people use subscribe, resume and are refused: npm `graphql-ws` and PyPI `gql`."""

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from gql import Client, gql
from gql.transport.exceptions import TransportClosed, TransportConnectionFailed, TransportQueryError
from gql.transport.httpx import HTTPXAsyncTransport
from gql.transport.websockets import WebsocketsTransport
from graphql import print_schema

from tests.clients.packages import install_packages, run_script
from tests.published_log import PROJECT, PublishedLog, trade
from tests.unit.serve.serving import KEY, KEYS, OTHER, Server, serving

QUERY = """subscription($after: String, $least: BigInt) {
  trades(after: $after, where: {quantity: {_gte: $least}}) { operation data { trade_id quantity } ts_cursor }
}"""


@pytest.fixture(scope="module")
def folder() -> Path:
    return install_packages()


@pytest.fixture
def log(tmp_path: Path) -> PublishedLog:
    log = PublishedLog.create(tmp_path, PROJECT + KEYS)
    log.commit({n: trade(n, quantity=n) for n in range(1, 4)})
    return log


@pytest.fixture
def server(log: PublishedLog) -> Iterator[Server]:
    with serving(log.folder) as server:
        yield server


def in_javascript(
    folder: Path,
    server: Server,
    count: int,
    *,
    key: str | None = KEY,
    query: str = QUERY,
    **variables: object,
) -> Any:
    url = f"ws://127.0.0.1:{server.port}/graphql"
    given = {"url": url, "key": key, "query": query, "variables": {"least": "2", **variables}, "count": count}
    return run_script(folder, "subscribe.js", given)


def shown(updates: Any) -> list[tuple[str, str]]:
    return [(update["operation"], update["data"]["trade_id"]) for update in updates]


def test_graphql_ws_subscribes_and_resumes(folder: Path, server: Server, log: PublishedLog) -> None:
    threading.Timer(1.0, lambda: log.commit({1: trade(1, quantity=5), 2: None})).start()
    got = in_javascript(folder, server, 4)["updates"]
    log.commit({3: trade(3, quantity=1)})
    resumed = in_javascript(folder, server, 1, after=got[-1]["ts_cursor"])["updates"]

    assert shown(got) == [("INSERT", "2"), ("INSERT", "3"), ("INSERT", "1"), ("DELETE", "2")]
    assert shown(resumed) == [("DELETE", "3")]


@pytest.mark.parametrize("key", [None, "wrong", OTHER])
def test_graphql_ws_is_refused_without_a_key_that_may_read(
    folder: Path, server: Server, key: str | None
) -> None:
    assert in_javascript(folder, server, 1, key=key) == {"updates": [], "closed": 4403}


def test_graphql_ws_is_told_why_an_operation_is_refused(
    folder: Path, server: Server, log: PublishedLog
) -> None:
    cursor = in_javascript(folder, server, 2)["updates"][-1]["ts_cursor"]
    log.reset()

    expired = in_javascript(folder, server, 1, after=cursor)
    wrong = in_javascript(folder, server, 1, query="subscription { trades { nothing } }")

    assert expired["errors"][0]["extensions"]["code"] == "CURSOR_EXPIRED"
    assert wrong["errors"][0]["extensions"]["code"] == "INVALID"


def socket_of(server: Server, key: str | None) -> WebsocketsTransport:
    payload = {} if key is None else {"access_key": key}
    return WebsocketsTransport(
        url=f"ws://127.0.0.1:{server.port}/graphql",
        init_payload=payload,
        subprotocols=["graphql-transport-ws"],
    )


async def subscribe(server: Server, count: int, key: str | None = KEY, **variables: object) -> list[Any]:
    operation = gql(QUERY)
    operation.variable_values = {"least": "2", **variables}
    async with Client(transport=socket_of(server, key)) as session:
        got: list[Any] = []
        async for answer in session.subscribe(operation):
            got.append(answer["trades"])
            if len(got) == count:
                break
        return got


def test_gql_subscribes_and_resumes(server: Server, log: PublishedLog) -> None:
    async def story() -> None:
        asyncio.get_running_loop().call_later(0.5, lambda: log.commit({1: trade(1, quantity=5), 2: None}))
        got = await subscribe(server, 4)
        log.commit({3: trade(3, quantity=1)})
        resumed = await subscribe(server, 1, after=got[-1]["ts_cursor"])

        assert shown(got) == [("INSERT", "2"), ("INSERT", "3"), ("INSERT", "1"), ("DELETE", "2")]
        assert shown(resumed) == [("DELETE", "3")]

    asyncio.run(story())


def test_gql_is_refused(server: Server) -> None:
    async def story() -> None:
        for key in (None, "wrong", OTHER):
            with pytest.raises((TransportClosed, TransportConnectionFailed)):
                await subscribe(server, 1, key=key)
        with pytest.raises(TransportQueryError) as refused:
            await subscribe(server, 1, after="x")
        assert refused.value.errors is not None
        assert refused.value.errors[0]["extensions"]["code"] == "BAD_CURSOR"

    asyncio.run(story())


def test_gql_reads_the_schema_and_queries_over_http(server: Server) -> None:
    async def story() -> None:
        transport = HTTPXAsyncTransport(
            url=f"{server.url}/graphql", headers={"authorization": f"Bearer {KEY}"}
        )
        async with Client(transport=transport, fetch_schema_from_transport=True) as session:
            answer = await session.execute(
                gql("{ trades(order_by: {quantity: desc}, limit: 1) { trade_id } }")
            )
            schema = session.client.schema
        assert answer == {"trades": [{"trade_id": "3"}]}
        assert schema is not None
        assert "trades_by_pk(trade_id: BigInt!): trades" in print_schema(schema)

    asyncio.run(story())
