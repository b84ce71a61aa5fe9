"""What every call meets before its route: host, origin, key, role, rate, content type and size."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from starlette.datastructures import Headers
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from strandline.app.workspace import open_workspace
from strandline.model.errors import CallError
from strandline.model.serving import Role, ServeSettings, hash_key
from strandline.serve.access import (
    Access,
    KnownKey,
    check_host,
    check_origin,
    check_source,
    identify,
    is_loopback,
    open_access,
    require_guarded,
)
from strandline.serve.declared import Caller, Route, SocketCall, SocketRoute
from strandline.serve.limits import CALLS_AT_ONCE, REFUSALS_AT_ONCE
from strandline.serve.refused import RefusedError
from tests.unit.serve.builders import (
    HOSTS,
    INGEST,
    KEYS,
    OPERATE,
    READ,
    ROUTES,
    bearer,
    echo,
    serving,
    write_project,
)

NOBODY = Access(keys=(), hosts=frozenset(), origins=frozenset())


def slug(response: object) -> str:
    document = response.json()  # type: ignore[attr-defined]
    assert document["schema"] == "strandline/error/v1"
    assert set(document["error"]) == {"slug", "message", "remedy"}
    return str(document["error"]["slug"])


def test_without_keys_callers_of_this_machine_may_do_everything(tmp_path: Path) -> None:
    with serving(tmp_path) as (http, _):
        answered = http.post("/echo", json={"text": "hello"})

    assert answered.status_code == 200
    assert answered.json() == {"schema": "strandline/echo/v1", "caller": "loopback", "text": "hello"}


def test_without_keys_nobody_else_may_do_anything(tmp_path: Path) -> None:
    with serving(tmp_path, client="192.0.2.7") as (http, _):
        answered = [http.get("/open"), http.post("/echo", json={}), http.get("/nothing")]

    assert [(one.status_code, slug(one)) for one in answered] == [(401, "no-access-key")] * 3


def test_with_keys_a_caller_of_this_machine_needs_one_too(tmp_path: Path) -> None:
    with serving(tmp_path, KEYS) as (http, _):
        without = http.get("/open")
        unknown = http.get("/open", headers=bearer("x" * 40))
        known = http.get("/open", headers=bearer(READ))

    assert (without.status_code, slug(without)) == (401, "no-access-key")
    assert (unknown.status_code, slug(unknown)) == (401, "unknown-access-key")
    assert without.headers["www-authenticate"] == "Bearer"
    assert known.json()["caller"] == "dashboards"


@pytest.mark.parametrize(
    ("key", "codes"),
    [(READ, (200, 403, 403)), (INGEST, (403, 403, 200)), (OPERATE, (200, 200, 200))],
)
def test_a_key_allows_what_its_role_says(tmp_path: Path, key: str, codes: tuple[int, ...]) -> None:
    with serving(tmp_path, KEYS) as (http, _):
        http.headers.update(bearer(key))
        answered = [http.get("/open"), http.post("/echo", json={}), http.post("/facts/x", json={})]

    assert tuple(one.status_code for one in answered) == codes
    assert {slug(one) for one in answered if one.status_code == 403} <= {"role-refused"}


def test_an_unknown_route_asks_for_a_key_and_is_then_unknown(tmp_path: Path) -> None:
    with serving(tmp_path, KEYS) as (http, _):
        without = http.get("/v1/nothing")
        unknown = http.get("/v1/nothing", headers=bearer(READ))
        method = http.get("/echo", headers=bearer(OPERATE))
        right = http.post("/echo", headers=bearer(OPERATE))
        listed = http.get("/open", headers=bearer(READ))
        deeper = http.get("/open/..%2f..%2fetc/passwd", headers=bearer(READ))

    assert without.status_code == 401
    assert (unknown.status_code, slug(unknown)) == (404, "unknown-route")
    assert (method.status_code, slug(method), method.headers["allow"]) == (405, "wrong-method", "POST")
    assert (right.status_code, listed.status_code) == (200, 200)
    assert deeper.status_code == 404


def test_the_key_is_judged_before_the_body_its_type_and_its_size(tmp_path: Path) -> None:
    with serving(tmp_path, KEYS) as (http, _):
        wrong = [
            http.post("/echo", content=b"x" * (2 << 20), headers={"content-type": "text/plain"} | key)
            for key in ({}, bearer(READ), bearer(OPERATE))
        ]

    assert [one.status_code for one in wrong] == [401, 403, 415]


@pytest.mark.parametrize("key", ["key", "password"])
def test_a_key_in_the_address_is_no_key(tmp_path: Path, key: str) -> None:
    with serving(tmp_path, KEYS) as (http, _):
        assert http.get(f"/open?{key}={READ}").status_code == 401


def test_an_expired_key_is_refused_from_its_first_day_on() -> None:
    access = Access(
        keys=(
            KnownKey(
                caller=Caller(name="ci", role=Role.READ),
                sha256=hash_key(READ),
                expires_on=date(2027, 1, 1),
            ),
        ),
        hosts=frozenset(),
        origins=frozenset(),
    )

    before = identify(access, READ, "192.0.2.7", lambda: date(2026, 12, 31))
    with pytest.raises(RefusedError) as refused:
        identify(access, READ, "192.0.2.7", lambda: date(2027, 1, 1))

    assert before.name == "ci"
    assert (refused.value.slug, refused.value.status) == ("unknown-access-key", 401)


def test_the_machine_key_lets_the_command_line_in_and_leaves_others_out(tmp_path: Path) -> None:
    access = open_access(ServeSettings(), {}, machine_key="m" * 40)

    assert identify(access, "m" * 40, "192.0.2.7", lambda: date(2026, 1, 1)).name == "command line"
    with pytest.raises(RefusedError):
        identify(access, None, "192.0.2.7", lambda: date(2026, 1, 1))


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:8321", "127.0.0.1:8321", "[::1]:8321", "LOCALHOST", "127.1.2.3"]
)
def test_names_of_the_loopback_interface_are_ours(host: str) -> None:
    check_host(NOBODY, Headers({"host": host}))


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "192.0.2.7",
        "user@localhost",
        "localhost/evil",
        "localhost:port",
        "",
        "0.0.0.0",
        "pipe.example",
    ],
)
def test_any_other_name_is_refused_while_there_are_no_keys(host: str) -> None:
    access = Access(keys=(), hosts=frozenset({"pipe.example"}), origins=frozenset())

    with pytest.raises(RefusedError) as refused:
        check_host(access, Headers({"host": host}))

    assert (refused.value.slug, refused.value.status) == ("host-refused", 403)


def test_a_call_without_a_host_or_with_two_is_refused() -> None:
    for raw in ([], [(b"host", b"localhost"), (b"host", b"evil.example")]):
        with pytest.raises(RefusedError):
            check_host(NOBODY, Headers(raw=raw))


def test_a_declared_name_is_ours_once_there_are_keys(tmp_path: Path) -> None:
    with serving(tmp_path, KEYS + HOSTS) as (http, _):
        http.headers.update(bearer(READ))
        declared = http.get("/open", headers={"host": "pipe.example"})
        other = http.get("/open", headers={"host": "other.example"})

    assert declared.status_code == 200
    assert (other.status_code, slug(other)) == (403, "host-refused")


def test_an_address_of_ipv6_is_declared_and_called_in_brackets(tmp_path: Path) -> None:
    declared = '\n    hosts: ["[2001:DB8::1]"]\n    origins: ["http://[2001:db8::2]:8080"]\n'
    origin = {"origin": "http://[2001:db8::2]:8080"}
    with serving(tmp_path, KEYS + declared) as (http, _):
        http.headers.update(bearer(READ))
        ours = http.get("/open", headers={"host": "[2001:db8::1]:8321"} | origin)
        other = http.get("/open", headers={"host": "[2001:db8::3]:8321"})

    assert ours.status_code == 200
    assert ours.headers["access-control-allow-origin"] == origin["origin"]
    assert (other.status_code, slug(other)) == (403, "host-refused")


def test_a_page_of_another_server_is_refused_and_gets_no_leave_to_read(tmp_path: Path) -> None:
    with serving(tmp_path) as (http, _):
        called = http.post("/echo", json={}, headers={"origin": "https://dash.example"})
        asked = http.options(
            "/echo",
            headers={"origin": "https://dash.example", "access-control-request-method": "POST"},
        )
        own = http.post("/echo", json={}, headers={"origin": "http://localhost:8321"})

    for refused in (called, asked):
        assert (refused.status_code, slug(refused)) == (403, "origin-refused")
        assert "access-control-allow-origin" not in refused.headers
    assert own.status_code == 200
    assert "access-control-allow-origin" not in own.headers


def test_a_page_that_was_refused_is_answered_once_its_origin_is_declared(tmp_path: Path) -> None:
    page = {"origin": "https://dash.example"} | bearer(READ)
    with serving(tmp_path, KEYS) as (http, _):
        before = http.get("/open", headers=page)
    write_project(tmp_path, KEYS + HOSTS)
    with serving(tmp_path) as (http, _):
        after = http.get("/open", headers=page)

    assert (before.status_code, slug(before)) == (403, "origin-refused")
    assert after.status_code == 200


def test_a_key_with_sources_posts_to_these_alone() -> None:
    caller = Caller(name="feeds", role=Role.INGEST, sources=("pushed",))

    with pytest.raises(RefusedError) as refused:
        check_source(caller, "other")
    check_source(caller, "pushed")
    check_source(Caller(name="feeds", role=Role.INGEST, sources=("pushed", "other")), "other")
    check_source(Caller(name="ci", role=Role.OPERATE), "other")

    assert (refused.value.slug, refused.value.status) == ("source-not-allowed", 403)


def test_a_declared_origin_may_call_and_read_but_needs_its_key(tmp_path: Path) -> None:
    origin = {"origin": "https://dash.example"}
    with serving(tmp_path, KEYS + HOSTS) as (http, _):
        asked = http.options("/open", headers=origin | {"access-control-request-method": "GET"})
        without = http.get("/open", headers=origin)
        called = http.get("/open", headers=origin | bearer(READ))

    assert asked.status_code == 204
    assert "authorization" in asked.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in asked.headers
    assert without.status_code == 401
    assert called.status_code == 200
    for answered in (asked, without, called):
        assert answered.headers["access-control-allow-origin"] == "https://dash.example"
        assert answered.headers["vary"] == "origin"


@pytest.mark.parametrize(
    "origin",
    ["null", "https://evil.example", "http://localhost:3000", "http://127.0.0.1:8321", "localhost:8321", ""],
)
def test_what_is_not_the_own_origin_is_another(origin: str) -> None:
    with pytest.raises(RefusedError):
        check_origin(NOBODY, Headers({"host": "localhost:8321", "origin": origin}))


@pytest.mark.parametrize(
    ("origin", "host"),
    [
        ("https://pipe.example", "pipe.example"),
        ("https://pipe.example", "pipe.example:443"),
        ("http://localhost:8321", "LOCALHOST:8321"),
    ],
)
def test_the_own_origin_is_recognised_behind_a_proxy_too(origin: str, host: str) -> None:
    assert check_origin(NOBODY, Headers({"host": host, "origin": origin})) == ""


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json-patch+json"},
        {"content-type": "application/json", "content-encoding": "gzip"},
    ],
)
def test_a_body_that_is_not_declared_as_plain_json_is_refused(
    tmp_path: Path, headers: dict[str, str]
) -> None:
    with serving(tmp_path) as (http, _):
        answered = http.post("/echo", content=b"{}", headers=headers)
        declared = http.post("/echo", content=b"{}", headers={"content-type": "application/json"})

    assert (answered.status_code, slug(answered)) == (415, "wrong-content-type")
    assert declared.status_code == 200


def test_a_charset_and_no_body_at_all_are_taken(tmp_path: Path) -> None:
    with serving(tmp_path) as (http, _):
        named = http.post("/echo", content=b"{}", headers={"content-type": "Application/JSON; charset=utf-8"})
        empty = http.post("/echo")

    assert (named.status_code, empty.status_code) == (200, 200)


def test_a_body_of_17_mib_is_refused_before_it_is_read_whole(tmp_path: Path) -> None:
    read = 0

    def pieces() -> Iterator[bytes]:
        nonlocal read
        for _ in range(17):
            read += 1
            yield b" " * (1 << 20)

    json_type = {"content-type": "application/json"}
    with serving(tmp_path) as (http, _):
        stated = http.post("/facts/x", content=b" " * (17 << 20), headers=json_type)
        streamed = http.post("/facts/x", content=pieces(), headers=json_type)
        small = http.post("/echo", content=b" " * ((1 << 20) + 1), headers=json_type)
        exact = http.post("/echo", content=b" " * (1 << 20), headers=json_type)

    for refused in (stated, streamed, small):
        assert (refused.status_code, slug(refused)) == (413, "body-too-large")
    assert exact.status_code == 200


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", "not-json"),
        (b"\xff\xfe", "not-json"),
        (b'{"text": NaN}', "not-json"),
        (b"{} {}", "not-json"),
        (b'{"text": "half of a character: \\ud83d"}', "not-json"),
        (b'{"text": "\\uD83D\\uDE00"}', ""),
        (b"[" * 65 + b"]" * 65, "body-too-deep"),
        (b"[" * 500_000, "body-too-deep"),
        (b'{"text": "' + b"[" * 100 + b'"}', ""),
        (b'{"text": "\\"' + b"[" * 100 + b'"}', ""),
        (b"[]", "bad-body"),
        (b'{"texts": "x"}', "bad-body"),
        (b'{"text": 5}', "bad-body"),
    ],
)
def test_a_body_that_is_not_what_the_route_takes_is_refused(
    tmp_path: Path, body: bytes, expected: str
) -> None:
    with serving(tmp_path) as (http, _):
        answered = http.post("/echo", content=body, headers={"content-type": "application/json"})

    assert (answered.status_code, "" if answered.status_code == 200 else slug(answered)) == (
        400 if expected else 200,
        expected,
    )


def test_json_of_64_levels_is_taken(tmp_path: Path) -> None:
    from strandline.serve.bodies import parse_json

    assert parse_json(b"[" * 64 + b"]" * 64)


def test_an_answer_escapes_what_utf_8_cannot_write() -> None:
    from strandline.serve.answers import write

    name = b"orders-\xff.jsonl".decode("utf-8", "surrogateescape")  # as Python lists such a file

    assert json.loads(write("plan", {"files": [name]}))["files"] == [name]


def test_an_error_of_our_own_tells_the_caller_nothing_of_its_inside(tmp_path: Path) -> None:
    with serving(tmp_path) as (http, _):
        answered = http.get("/fail")

    assert (answered.status_code, slug(answered)) == (500, "unexpected")
    assert OPERATE not in answered.text


def test_who_guesses_keys_is_slowed_down_and_who_has_one_is_not(tmp_path: Path) -> None:
    with serving(tmp_path, KEYS) as (http, _):
        guesses = [
            http.get("/open", headers=bearer(f"guess-{n}")).status_code
            for n in range(int(REFUSALS_AT_ONCE) + 30)
        ]
        last = http.get("/open", headers=bearer("guess"))
        known = http.get("/open", headers=bearer(READ))

    assert guesses[0] == 401
    assert (last.status_code, slug(last)) == (429, "too-many-calls")
    assert int(last.headers["retry-after"]) >= 1
    assert known.status_code == 200


def test_too_many_calls_with_one_key_are_refused_with_a_time_to_call_again() -> None:
    from strandline.serve.limits import Rate

    rate = Rate(a_second=10, at_once=3)
    for _ in range(3):
        rate.count("ci", 0.0)

    with pytest.raises(RefusedError) as refused:
        rate.count("ci", 0.0)
    rate.count("other", 0.0)
    rate.count("ci", 1.0)

    assert (refused.value.status, refused.value.slug) == (429, "too-many-calls")
    assert refused.value.headers == {"retry-after": "1"}
    assert CALLS_AT_ONCE > 100


def test_changed_keys_are_in_force_with_the_project_that_declares_them(tmp_path: Path) -> None:
    with serving(tmp_path, KEYS) as (http, served):
        write_project(tmp_path, f"    keys:\n      bot: {{role: read, sha256: '{hash_key('b' * 32)}'}}\n")
        with open_workspace(tmp_path, {}) as changed:
            before = http.get("/open", headers=bearer(READ)).status_code
            served.workspace = changed
            after = [http.get("/open", headers=bearer(key)).status_code for key in (READ, "b" * 32)]

    assert before == 200
    assert after == [401, 200]


def test_keys_that_cannot_be_read_leave_the_old_ones_in_force(tmp_path: Path) -> None:
    with serving(tmp_path, KEYS) as (http, served):
        write_project(tmp_path, "    keys:\n      bot: {role: read, key: '${NOT_SET}'}\n")
        with open_workspace(tmp_path, {}) as changed:
            served.workspace = changed
            answered = http.get("/open", headers=bearer(READ))

    assert answered.status_code == 200
    assert "${NOT_SET}" in served.project_error


def test_a_server_whose_keys_cannot_be_read_does_not_start(tmp_path: Path) -> None:
    write_project(tmp_path, "    keys:\n      bot: {role: read, key: '${BOT_KEY}'}\n")

    for environ, expected in ({}, "secret-not-set"), ({"BOT_KEY": "short"}, "bad-access-key"):
        with pytest.raises(CallError) as refused, serving(tmp_path, environ=environ):
            pass
        assert refused.value.slug == expected
        assert "short" not in str(refused.value)


def test_two_names_of_one_key_are_refused_when_the_environment_tells(tmp_path: Path) -> None:
    yaml = "    keys:\n      a: {role: read, key: '${A}'}\n      b: {role: operate, key: '${B}'}\n"
    write_project(tmp_path, yaml)

    with pytest.raises(CallError) as refused, serving(tmp_path, environ={"A": READ, "B": READ}):
        pass

    assert refused.value.slug == "same-access-key"


@pytest.mark.parametrize("address", ["0.0.0.0", "192.0.2.7", "::", "pipe.example"])
def test_an_address_that_others_reach_needs_keys_and_a_name(address: str, tmp_path: Path) -> None:
    write_project(tmp_path, KEYS)
    with open_workspace(tmp_path, {}) as workspace:
        with_keys = workspace.project.settings.serve
    write_project(tmp_path, KEYS + HOSTS)
    with open_workspace(tmp_path, {}) as workspace:
        with_hosts = workspace.project.settings.serve

    with pytest.raises(CallError) as first:
        require_guarded(ServeSettings(), address)
    with pytest.raises(CallError) as second:
        require_guarded(with_keys, address)
    require_guarded(with_hosts, address)
    require_guarded(ServeSettings(), "127.0.0.1")

    assert (first.value.slug, second.value.slug) == ("keys-required", "hosts-required")
    assert (first.value.exit_code, second.value.exit_code) == (2, 2)


def test_a_mapped_loopback_address_is_of_this_machine() -> None:
    assert is_loopback("::ffff:127.0.0.1")
    assert not is_loopback("::ffff:192.0.2.7")
    assert not is_loopback("testclient")


def test_a_server_with_a_route_that_names_no_role_does_not_start(tmp_path: Path) -> None:
    open_route = Route(method="GET", path="/v1/secrets", role=None, answer=echo)

    with pytest.raises(ValueError, match="names no role"), serving(tmp_path, routes=(*ROUTES, open_route)):
        pass
    with pytest.raises(TypeError, match="role"):
        Route(method="GET", path="/v1/secrets", answer=echo)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="twice"), serving(tmp_path, routes=(*ROUTES, ROUTES[0])):
        pass


def test_calls_are_counted_by_the_declared_route_and_never_by_what_was_typed(tmp_path: Path) -> None:
    with serving(tmp_path, KEYS) as (http, served):
        http.post("/facts/secret-name", json={}, headers=bearer(INGEST))
        http.get("/secret-name", headers=bearer(READ))
        (counted,) = [m for m in served.measures.read() if m.name == "http_requests_total"]

    assert {(s.labels["route"], s.labels["code"]) for s in counted.samples} == {
        ("/facts/{source}", "200"),
        ("unknown", "404"),
    }


async def greet(call: SocketCall) -> None:
    await call.socket.accept()
    caller = call.caller
    if caller is None:
        try:
            caller = call.identify(await call.socket.receive_text())
        except RefusedError as error:
            await call.socket.close(4403, error.slug)
            return
    await call.socket.send_text(caller.name)
    await call.socket.close()


SOCKETS = (SocketRoute(path="/socket", role=Role.READ, serve=greet),)


def knock(http: TestClient, headers: dict[str, str], key: str = "") -> str:
    with http.websocket_connect("/socket", headers={"host": "localhost:8321"} | headers) as socket:
        if key:
            socket.send_text(key)
        return socket.receive_text()


def test_a_socket_is_judged_by_host_origin_key_and_role(tmp_path: Path) -> None:
    with serving(tmp_path, KEYS + HOSTS, sockets=SOCKETS) as (http, _):
        by_header = knock(http, bearer(READ))
        by_message = knock(http, {"origin": "https://dash.example"}, READ)
        for headers in (
            {"host": "evil.example"} | bearer(READ),
            {"origin": "https://evil.example"} | bearer(READ),
            bearer("x" * 40),
            bearer(INGEST),
        ):
            with pytest.raises(WebSocketDisconnect):
                knock(http, headers)
        with pytest.raises(WebSocketDisconnect) as refused:
            knock(http, {}, INGEST)

    assert (by_header, by_message) == ("dashboards", "dashboards")
    assert refused.value.reason == "role-refused"


def test_without_keys_a_socket_is_open_to_this_machine_alone(tmp_path: Path) -> None:
    with serving(tmp_path, sockets=SOCKETS) as (http, _):
        assert knock(http, {}) == "loopback"
        with pytest.raises(WebSocketDisconnect):
            knock(http, {"origin": "https://evil.example"})
    with (
        serving(tmp_path, sockets=SOCKETS, client="192.0.2.7") as (http, _),
        pytest.raises(WebSocketDisconnect),
    ):
        knock(http, {})


def test_keys_are_shown_by_no_value_of_the_server(tmp_path: Path) -> None:
    with serving(tmp_path, KEYS) as (_, served):
        access = open_access(served.workspace.project.settings.serve, {})

    shown = repr(access) + repr(served)
    for key in (READ, INGEST, OPERATE):
        assert key not in shown
        assert hash_key(key) not in shown


def test_logs_are_json_with_route_and_code_and_without_keys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    import structlog

    from strandline.serve.logs import configure_logs

    configure_logs(sys.stderr)
    try:
        with serving(tmp_path, KEYS) as (http, _):
            http.get("/open", headers=bearer(READ))
            http.get("/fail", headers=bearer(READ))
    finally:
        structlog.reset_defaults()
    captured = capsys.readouterr()
    lines = [json.loads(line) for line in captured.err.splitlines()]

    assert captured.out == ""
    requests = [line for line in lines if line["event"] == "request"]
    assert [(line["route"], line["code"], line["caller"]) for line in requests] == [
        ("/open", 200, "dashboards"),
        ("/fail", 500, "dashboards"),
    ]
    assert all(line["request_id"] for line in requests)
    assert READ not in captured.err
