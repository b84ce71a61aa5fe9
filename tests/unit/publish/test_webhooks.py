"""Webhooks against a receiver on this machine: what is sent, what counts as delivered, what is refused."""

import asyncio
import gzip
import json
import shutil
import socket
import ssl
import subprocess
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from standardwebhooks import Webhook

from strandline.model.addresses import NEVER, SPECIAL
from strandline.model.deliveries import Outcome
from strandline.model.endpoints import Endpoint
from strandline.model.webhook_signatures import parse_secret
from strandline.publish.webhooks import MOST_READ, WebhookSender, find_retry_after
from tests.receiver import LOCAL, SECRET, Answer, Receiver, endpoint_of, raw_server, receiving

BODY = '{"event_id":"acf6","data":{"name":"größe 日本"}}'.encode()
QUICK = timedelta(seconds=0.4)
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Names(AbstractResolver):
    """Every name leads to these addresses; at each look to the next of them."""

    def __init__(self, *looks: Sequence[str]) -> None:
        self.looks = list(looks)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        look = self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=0,
            )
            for address in look
        ]

    async def close(self) -> None:
        pass


def send(
    endpoint: Endpoint, *, body: bytes = BODY, names: Names | None = None, times: int = 1
) -> list[Outcome]:
    return asyncio.run(sending(endpoint, body=body, names=names, times=times))


async def sending(
    endpoint: Endpoint, *, body: bytes = BODY, names: Names | None = None, times: int = 1
) -> list[Outcome]:
    secrets = tuple(parse_secret(secret) for secret in endpoint.secrets)
    async with WebhookSender(endpoint, secrets, endpoint.headers, names) as sender:
        return [await sender.send("acf6", body, datetime.now(UTC)) for _ in range(times)]


def exchange(answer: Answer | None = None, **fields: Any) -> tuple[Outcome, Receiver]:
    """One webhook to a receiver that answers so."""
    (outcome,), receiver = exchange_at("http://127.0.0.1:{port}/hook", answer, **fields)
    return outcome, receiver


def exchange_at(
    url: str, answer: Answer | None = None, *, names: Names | None = None, times: int = 1, **fields: Any
) -> tuple[list[Outcome], Receiver]:
    """Webhooks to this address while a receiver listens at its `{port}`."""

    async def run() -> tuple[list[Outcome], Receiver]:
        async with receiving(*([answer] if answer else [])) as receiver:
            endpoint = endpoint_of(url.format(port=receiver.port), **fields)
            return await sending(endpoint, names=names, times=times), receiver

    return asyncio.run(run())


def exchange_raw(talk: Talk, timeout: timedelta = QUICK, path: str = "/") -> Outcome:
    """One webhook to a server that says what it likes."""

    async def run() -> Outcome:
        async with raw_server(talk) as port:
            (outcome,) = await sending(endpoint_of(f"http://127.0.0.1:{port}{path}", timeout=timeout))
            return outcome

    return asyncio.run(run())


def dripping(head: bytes, drop: bytes = b"x", pause: float = 0.05) -> Talk:
    """It begins with this, and goes on for ever, a little at a time."""

    async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(head)
        with suppress(ConnectionError):
            while True:
                writer.write(drop)
                await writer.drain()
                await asyncio.sleep(pause)

    return drip


def answering(status: int, headers: dict[str, str] | None = None) -> Answer:
    async def answer(_request: web.Request, _body: bytes) -> web.StreamResponse:
        return web.Response(status=status, headers=headers)

    return answer


def test_a_receiver_verifies_what_is_sent() -> None:
    outcome, receiver = exchange(headers={"x-team": "risk"})

    ((headers, body),) = receiver.received
    assert outcome.delivered
    assert (body, headers["content-type"], headers["x-team"]) == (BODY, "application/json", "risk")
    assert headers["accept-encoding"] == "identity"
    assert Webhook(SECRET).verify(body.decode(), headers) == json.loads(BODY)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_an_answer_from_200_to_299_is_a_delivery(status: int) -> None:
    outcome, _ = exchange(answering(status))

    assert (outcome.delivered, outcome.status_code) == (True, status)


@pytest.mark.parametrize("status", [304, 400, 401, 404, 410, 429, 500, 503])
def test_any_other_answer_is_not(status: int) -> None:
    outcome, _ = exchange(answering(status))

    assert (outcome.delivered, outcome.status_code, outcome.error) == (False, status, f"HTTP {status}")
    assert not outcome.hopeless


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed(status: int) -> None:
    outcome, receiver = exchange(answering(status, {"Location": "/elsewhere"}))

    assert (outcome.delivered, outcome.status_code) == (False, status)
    assert receiver.paths == ["/hook"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        ("Mon, 15 Jan 2024 10:30:00 GMT", 1800),
        ("Mon, 15 Jan 2024 09:00:00 GMT", 0),
        ("99999999999999999999", 10**9),
        ("00000000000000000077", 77),
        ("Mon, 1 Jan 99999999999999999999 00:00:00 GMT", None),
        ("Mon, 1 Jan 2030 00:00:00 +9999999999999999999999", None),
        ("soon", None),
        ("", None),
        ("-5", None),
    ],
)
def test_the_pause_that_an_answer_asks_for_is_understood(text: str, seconds: int | None) -> None:
    asked = find_retry_after(text, datetime(2024, 1, 15, 10, tzinfo=UTC))

    assert asked == (None if seconds is None else timedelta(seconds=seconds))


def test_an_answer_that_asks_for_time_says_how_much() -> None:
    outcome, _ = exchange(answering(503, {"Retry-After": "77"}))

    assert outcome.retry_after == timedelta(seconds=77)


def test_a_date_that_no_calendar_has_is_an_answer_that_asks_for_nothing() -> None:
    """It raised, so the attempt was never recorded, and was made again and again."""
    date = "Mon, 1 Jan 99999999999999999999 00:00:00 GMT"

    outcome, _ = exchange(answering(503, {"Retry-After": date}))

    assert (outcome.error, outcome.retry_after) == ("HTTP 503", None)


def test_a_receiver_that_does_not_answer_in_time_has_timed_out() -> None:
    async def wait(_request: web.Request, _body: bytes) -> web.StreamResponse:
        await asyncio.sleep(5)
        return web.Response()

    outcome, _ = exchange(wait, timeout=QUICK)

    assert (outcome.delivered, outcome.timed_out, outcome.error) == (False, True, "No answer within 0.4 s.")


def test_a_receiver_that_drips_headers_has_timed_out() -> None:
    assert exchange_raw(dripping(b"HTTP/1.1 200 OK\r\n")).timed_out


@pytest.mark.parametrize("pause", [0.0, 0.02])
def test_of_an_answer_without_end_little_is_read_and_its_status_counts(pause: float) -> None:
    written = 0

    async def pour(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n")
        with suppress(ConnectionError):
            while written < 200_000_000:
                writer.write(b"x" * 16_384)
                written += 16_384
                await writer.drain()
                await asyncio.sleep(pause)

    outcome = exchange_raw(pour, timedelta(seconds=5))

    assert (outcome.delivered, outcome.status_code) == (True, 200)
    assert outcome.seconds < 3
    assert written < 64 * MOST_READ  # what buffers of the system took is not ours


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
def test_an_answer_that_is_packed_is_not_unpacked(packing: str) -> None:
    bomb = zlib.compress(b"\0" * 60_000_000) if packing == "deflate" else gzip.compress(b"\0" * 60_000_000)

    async def answer(_request: web.Request, _body: bytes) -> web.StreamResponse:
        return web.Response(body=bomb[:60_000], headers={"Content-Encoding": packing})

    tracemalloc.start()
    try:
        outcome, _ = exchange(answer)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert outcome.delivered
    assert most < 1_000_000  # aiohttp unpacks in blocks of a megabyte


def test_a_receiver_that_drips_its_answer_is_left_alone_and_its_status_counts() -> None:
    outcome = exchange_raw(dripping(b"HTTP/1.1 201 Created\r\ncontent-length: 60000\r\n\r\n"))

    assert (outcome.delivered, outcome.status_code) == (True, 201)
    assert outcome.seconds < 2


@pytest.mark.parametrize("announced", ["100 Continue", "102 Processing", "103 Early Hints"])
def test_a_receiver_that_promises_an_answer_for_ever_has_timed_out(announced: str) -> None:
    outcome = exchange_raw(dripping(b"", f"HTTP/1.1 {announced}\r\n\r\n".encode(), pause=0.02))

    assert not outcome.delivered
    assert outcome.seconds < 2


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(tmp_path: Path) -> None:
    if not shutil.which("openssl"):
        pytest.skip("openssl is missing")
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
            ),
            *("-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=127.0.0.1"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        check=True,
        capture_output=True,
    )
    encrypted = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    encrypted.load_cert_chain(certificate, key)
    heard: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(10))

    async def run() -> Outcome:
        server = await asyncio.start_server(listen, "127.0.0.1", 0, ssl=encrypted)
        async with server:
            port = server.sockets[0].getsockname()[1]
            (outcome,) = await sending(endpoint_of(f"https://127.0.0.1:{port}/"))
            return outcome

    outcome = asyncio.run(run())

    assert (outcome.delivered, outcome.hopeless, heard) == (False, False, [])
    assert "Certificate" in outcome.error


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n"]
)
def test_what_does_not_speak_http_fails_and_may_be_tried_again(answer: bytes) -> None:
    async def talk(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        with suppress(ConnectionError):
            await writer.drain()
        writer.close()

    outcome = exchange_raw(talk, path="/?token=hunter2")

    assert (outcome.delivered, outcome.hopeless) == (False, False)
    assert outcome.error
    assert "hunter2" not in outcome.error


def test_a_receiver_that_is_down_may_be_tried_again() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]

    (outcome,) = send(endpoint_of(f"http://127.0.0.1:{port}/"))

    assert (outcome.delivered, outcome.hopeless) == (False, False)
    assert "ClientConnectorError" in outcome.error


def test_a_body_that_is_too_large_is_not_sent() -> None:
    outcome, receiver = exchange(max_body=len(BODY) - 1)

    assert (outcome.delivered, outcome.hopeless, receiver.received) == (False, True, [])
    assert outcome.error == f"The body has {len(BODY)} bytes, and the endpoint takes {len(BODY) - 1}."


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "localhost",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "127.0.0.1.",
        "0x7f.0x0.0x0.0x1",
        "0000177.0.0.1",
        "017700000001",
        "127%2e0%2e0%2e1",
        "LOCALHOST",
        "[0:0:0:0:0:ffff:7f00:1]",
        "[::127.0.0.1]",
        "[::1%25lo]",
        "0",
        "[::]",
    ],
)
def test_this_machine_is_not_reached_however_it_is_spelt(host: str) -> None:
    url = f"https://{host}:{{port}}/"

    (outcome,), receiver = exchange_at(url, allow=(), timeout=timedelta(seconds=5))

    assert (outcome.delivered, outcome.hopeless, receiver.received) == (False, True, [])
    assert outcome.error == "The address may not be reached."


@pytest.mark.parametrize(
    "host", ["localhost.", "%31%32%37.0.0.1", "127。0。0。1", "①②⑦.0.0.1", "127.0.0.1%00.example"]
)
def test_this_machine_is_not_reached_by_a_host_that_may_not_be_understood(host: str) -> None:
    url = f"https://{host}:{{port}}/"

    (outcome,), receiver = exchange_at(url, allow=(), timeout=timedelta(seconds=5))

    assert (outcome.delivered, receiver.received) == (False, [])
    assert outcome.error


@pytest.mark.parametrize("block", sorted({*SPECIAL, *NEVER}, key=str), ids=str)
def test_a_name_that_leads_to_a_special_address_is_not_dialled(block: object) -> None:
    addresses = [str(block[0]), str(block[-1])]  # type: ignore[index]
    if ":" not in addresses[0]:
        addresses += [f"::ffff:{addresses[0]}", f"64:ff9b::{addresses[0]}"]

    outcomes = [
        send(endpoint_of("https://ops.example/", allow=(), timeout=QUICK), names=Names([address]))[0]
        for address in addresses
    ]

    assert [(outcome.hopeless, outcome.error) for outcome in outcomes] == [
        (True, "The address may not be reached.")
    ] * len(addresses)


def test_a_name_that_changes_between_two_looks_is_judged_by_what_is_dialled() -> None:
    names = Names(["127.0.0.1"], ["169.254.169.254"], ["10.0.0.1", "192.168.0.1"])
    closing = answering(200, {"Connection": "close"})

    outcomes, receiver = exchange_at("http://ops.example:{port}/", closing, names=names, times=3)

    assert [outcome.delivered for outcome in outcomes] == [True, False, False]
    assert [outcome.hopeless for outcome in outcomes] == [False, True, True]
    assert len(receiver.received) == 1


def test_of_several_addresses_one_that_may_be_reached_is_dialled() -> None:
    names = Names(["10.0.0.1", "127.0.0.1"])

    (outcome,), receiver = exchange_at("http://ops.example:{port}/", names=names)

    assert outcome.delivered
    assert len(receiver.received) == 1


@pytest.mark.parametrize("scheme", ["http", "HTTP", "Http"])
def test_without_tls_even_a_public_address_is_refused_unless_it_is_allowed(scheme: str) -> None:
    (outcome,) = send(
        endpoint_of(f"{scheme}://ops.example/", allow=LOCAL, timeout=QUICK), names=Names(["8.8.8.8"])
    )

    assert outcome.hopeless


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"])
def test_no_proxy_of_the_environment_is_used(
    variable: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me password hunter2\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))

    async def run() -> tuple[Outcome, Receiver, Receiver]:
        async with receiving() as receiver, receiving() as proxy:
            monkeypatch.setenv(variable, f"http://127.0.0.1:{proxy.port}")
            (outcome,) = await sending(endpoint_of(receiver.url))
            return outcome, receiver, proxy

    outcome, receiver, proxy = asyncio.run(run())

    assert outcome.delivered
    assert (len(receiver.received), proxy.received) == (1, [])
    assert "authorization" not in receiver.received[0][0]


def test_no_cookie_is_kept() -> None:
    setting = answering(200, {"Set-Cookie": "a=b"})

    _, receiver = exchange_at("http://127.0.0.1:{port}/hook", setting, times=2)

    assert ["cookie" in headers for headers, _ in receiver.received] == [False, False]
