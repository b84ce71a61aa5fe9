"""Deliveries from the catalog to receivers: order, limits, pace, failures, and who is held up by whom."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from aiohttp import web

from strandline.catalog import (
    Catalog,
    DeliveryFilter,
    count_deliveries,
    enqueue_deliveries,
    find_delivery_cursor,
    open_catalog,
    read_deliveries,
    read_endpoint_states,
)
from strandline.dispatch.deliver import make_sender, send_due
from strandline.dispatch.lane import Pace, Sent
from strandline.model.deliveries import NewDelivery
from strandline.model.endpoints import Endpoint, Ordering
from strandline.model.errors import CallError
from tests.receiver import SECRET, endpoint_of, receiving

NOW = Pace(now=lambda: datetime.now(UTC))


@pytest.fixture
def catalog() -> Catalog:
    return open_catalog("sqlite://")


def owe(catalog: Catalog, *some: tuple[str, str], endpoint: str = "ops") -> None:
    """(event id, key) each."""
    before = find_delivery_cursor(catalog, "alert")
    after = ("table", before[1] + 1 if before else 0)
    owed = [
        NewDelivery(
            event_id=name,
            event_type="MATCH",
            trigger="alert",
            endpoint=endpoint,
            key=key,
            source_timestamp=1,
            body=f'{{"event_id":"{name}"}}'.encode(),
        )
        for name, key in some
    ]
    enqueue_deliveries(catalog, "alert", before, after, owed)


async def send(catalog: Catalog, *endpoints: Endpoint, pace: Pace = NOW) -> Sent:
    declared = {endpoint.name: endpoint for endpoint in endpoints}
    return await send_due(catalog, declared, "sender", lambda one: make_sender(one, {}), pace)


def statuses(catalog: Catalog) -> Mapping[str, int]:
    return {str(status): count for status, count in count_deliveries(catalog, DeliveryFilter()).items()}


def test_everything_that_is_due_is_sent_and_each_key_in_order(catalog: Catalog) -> None:
    async def run() -> list[str]:
        async def answer(_request: web.Request, body: bytes) -> web.StreamResponse:
            await asyncio.sleep(0.001 * (len(body) % 5 + hash(body) % 7))
            return web.Response()

        async with receiving(answer) as receiver:
            sent = await send(catalog, endpoint_of(receiver.url))
            assert sent.total("delivered") == 60
            return receiver.ids

    owe(catalog, *((f"{key}{n:02}", key) for n in range(20) for key in "abc"))

    ids = asyncio.run(run())

    assert statuses(catalog) == {"delivered": 60}
    for key in "abc":
        assert [name for name in ids if name[0] == key] == [f"{key}{n:02}" for n in range(20)]


@pytest.mark.parametrize(("ordering", "most"), [(Ordering.PARALLEL, 4), (Ordering.PER_KEY, 1)])
def test_no_more_attempts_are_under_way_than_allowed(catalog: Catalog, ordering: Ordering, most: int) -> None:
    async def run() -> int:
        async def answer(_request: web.Request, _body: bytes) -> web.StreamResponse:
            await asyncio.sleep(0.02)
            return web.Response()

        async with receiving(answer) as receiver:
            await send(catalog, endpoint_of(receiver.url, in_flight=4, ordering=ordering))
            return receiver.most_under_way

    owe(catalog, *((f"d{n}", "one key") for n in range(12)))

    assert asyncio.run(run()) == most


def test_attempts_start_at_the_rate_of_the_endpoint(catalog: Catalog) -> None:
    slept: list[float] = []
    clock = [datetime(2024, 1, 1, tzinfo=UTC)]

    async def sleep(seconds: float) -> None:
        slept.append(round(seconds, 3))

    async def run() -> None:
        async with receiving() as receiver:
            pace = Pace(now=lambda: clock[0], sleep=sleep)
            await send(catalog, endpoint_of(receiver.url, rate=2.0, in_flight=16), pace=pace)

    owe(catalog, *((f"d{n}", str(n)) for n in range(5)))
    asyncio.run(run())

    assert slept == [0.5, 1.0, 1.5, 2.0]  # on a clock that stands still


def test_an_endpoint_that_fails_holds_up_no_other_and_loses_nothing(catalog: Catalog) -> None:
    async def run() -> Sent:
        async def fail(_request: web.Request, _body: bytes) -> web.StreamResponse:
            return web.Response(status=500)

        async with receiving() as healthy, receiving(fail) as failing:
            return await send(catalog, endpoint_of(healthy.url), endpoint_of(failing.url, name="desk"))

    owe(catalog, *((f"d{n}", str(n)) for n in range(30)))
    owe(catalog, *((f"d{n}", str(n)) for n in range(30)), endpoint="desk")

    sent = asyncio.run(run())

    assert sent.counts["ops", "delivered"] == 30
    assert read_endpoint_states(catalog)["desk"].is_paused
    assert sent.counts["desk", "failed"] <= 26  # ten failed, what was under way then, and one more a minute
    assert statuses(catalog) == {"delivered": 30, "pending": 30}


def test_a_failed_attempt_waits_by_the_schedule(catalog: Catalog) -> None:
    async def run() -> None:
        async def answer(request: web.Request, _body: bytes) -> web.StreamResponse:
            slow = request.headers["webhook-id"] == "slow"
            return web.Response(status=503, headers={"Retry-After": "7200"} if slow else {})

        async with receiving(answer) as receiver:
            await send(catalog, endpoint_of(receiver.url))

    owe(catalog, ("soon", "a"), ("slow", "b"))
    asyncio.run(run())

    due = {record.event_id: record.next_at for _, record in read_deliveries(catalog, DeliveryFilter(), 10)}
    waits = {name: at - datetime.now(UTC) for name, at in due.items() if at is not None}
    assert timedelta(seconds=2) < waits["soon"] < timedelta(seconds=7)
    assert timedelta(minutes=119) < waits["slow"] < timedelta(minutes=121)


def test_after_the_last_pause_a_delivery_is_dead_and_the_next_of_its_key_goes(catalog: Catalog) -> None:
    async def run() -> list[str]:
        async def answer(request: web.Request, _body: bytes) -> web.StreamResponse:
            return web.Response(status=500 if request.headers["webhook-id"] == "bad" else 200)

        async with receiving(answer) as receiver:
            await send(catalog, endpoint_of(receiver.url, retry=()))
            return receiver.ids

    owe(catalog, ("bad", "a"), ("good", "a"))

    assert asyncio.run(run()) == ["bad", "good"]
    assert statuses(catalog) == {"delivered": 1, "dead": 1}


def test_410_ends_the_sending_and_holds_what_is_left(catalog: Catalog) -> None:
    async def run() -> list[str]:
        async def gone(_request: web.Request, _body: bytes) -> web.StreamResponse:
            return web.Response(status=410)

        async with receiving(gone) as receiver:
            await send(catalog, endpoint_of(receiver.url, in_flight=1))
            return receiver.ids

    owe(catalog, ("a", "a"), ("b", "b"), ("c", "c"))

    assert asyncio.run(run()) == ["a"]
    assert statuses(catalog) == {"held": 3}


def test_whoever_is_stopped_gives_back_what_was_not_answered(catalog: Catalog) -> None:
    async def run() -> None:
        arrived = asyncio.Event()

        async def hang(_request: web.Request, _body: bytes) -> web.StreamResponse:
            arrived.set()
            await asyncio.sleep(30)
            return web.Response()

        async with receiving(hang) as receiver:
            sending = asyncio.create_task(send(catalog, endpoint_of(receiver.url)))
            await asyncio.wait_for(arrived.wait(), 5)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    owe(catalog, ("a", "a"), ("b", "b"))
    asyncio.run(run())

    assert statuses(catalog) == {"pending": 2}
    assert [record.attempts for _, record in read_deliveries(catalog, DeliveryFilter(), 9)] == [0, 0]


def test_a_secret_that_is_not_set_is_told_before_anything_is_sent(catalog: Catalog) -> None:
    owe(catalog, ("a", "a"))
    endpoint = endpoint_of("https://ops.example/", secrets=("${OPS_SECRET}",))

    with pytest.raises(CallError) as refused:
        asyncio.run(send(catalog, endpoint))

    assert (refused.value.slug, statuses(catalog)) == ("secret-not-set", {"pending": 1})
    assert make_sender(endpoint, {"OPS_SECRET": SECRET})
