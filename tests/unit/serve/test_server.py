"""`strandline serve` as a process, with plain workers, and the command line beside it."""

import http.client
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from strandline.app.handover import find_serving
from strandline.app.requests import list_newest
from strandline.app.workspace import open_workspace
from strandline.cli import interrupts, main
from strandline.lake.location import Lake
from strandline.model.requests import RequestStatus
from tests.unit.serve.served_world import World, make_folder, wait_until

UPGRADE = (
    b"GET /graphql HTTP/1.1\r\nhost: evil.example\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
PLAIN = [sys.executable, "-m", "tests.unit.serve.plain_server"]
ROOT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, kw_only=True)
class Process:
    popen: subprocess.Popen[str]
    address: str

    def end(self, number: int = signal.SIGTERM) -> tuple[int, float]:
        began = time.monotonic()
        self.popen.send_signal(number)
        self.popen.wait(60)
        return self.popen.returncode, time.monotonic() - began


def start(world: World, *options: str, **environ: str) -> Process:
    words = [*PLAIN, "serve", "--port", "0", "--project", str(world.folder), *options]
    popen = subprocess.Popen(
        words, cwd=ROOT, env={**os.environ, **environ}, stderr=subprocess.PIPE, text=True
    )
    assert popen.stderr is not None
    line = popen.stderr.readline()
    address = re.search(r"http://\S+", line)
    assert address, line + popen.communicate()[1]
    return Process(popen=popen, address=address[0])


@pytest.fixture(autouse=True)
def _own_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `serve` says at its end is not what the next verb in this process says."""
    for name in ("_sentence", "_grace"):
        monkeypatch.setattr(interrupts, name, getattr(interrupts, name))


@contextmanager
def serving(world: World, *options: str, **environ: str) -> Iterator[Process]:
    process = start(world, *options, **environ)
    try:
        yield process
    finally:
        if process.popen.poll() is None:
            process.popen.kill()
        process.popen.communicate()


def call(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    """A call of the command line in a process of its own."""
    command = [*PLAIN, *words, "--project", str(world.folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def at_rest(world: World, dataset: str = "item") -> None:
    wait_until(lambda: world.rows(dataset), f"rows of {dataset}")


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    made = make_folder(tmp_path_factory.mktemp("served") / "project")
    poll = "settings: {workers: 1, serve: {poll: 1 hour}}"
    file = made.folder / "strandline.yaml"
    file.write_text(file.read_text().replace("settings: {workers: 1}", poll))
    return made


@pytest.fixture(scope="module")
def server(world: World) -> Iterator[Process]:
    with serving(world) as process:
        yield process


def test_the_holder_file_is_for_its_owner_alone(world: World, server: Process) -> None:
    holder = world.folder / ".strandline" / "lake" / "_strandline.holder"

    said = json.loads(holder.read_text())

    assert stat.S_IMODE(holder.stat().st_mode) == 0o600
    assert said["pid"] == server.popen.pid
    assert said["server"]["address"] in server.address
    assert len(said["server"]["key"]) >= 32
    assert said["server"]["key"] not in json.dumps([server.address, *server.popen.args])  # type: ignore[misc]


def test_an_answer_does_not_wait_until_its_head_is_acknowledged(server: Process) -> None:
    host, _, port = server.address.removeprefix("http://").rpartition(":")
    connection = http.client.HTTPConnection(host, int(port))

    seconds = []
    for _ in range(30):
        began = time.monotonic()
        connection.request("GET", "/v1/runs")
        assert connection.getresponse().read()
        seconds.append(time.monotonic() - began)
    connection.close()

    assert min(seconds[10:]) < 0.035


def test_every_line_of_the_log_is_json_whatever_is_sent(tmp_path: Path) -> None:
    with serving(make_folder(tmp_path / "project")) as process:
        host, _, port = process.address.removeprefix("http://").rpartition(":")
        for sent in (b"nonsense\r\n\r\n", b"GET /nope HTTP/1.1\r\nhost: evil.example\r\n\r\n", UPGRADE):
            with socket.create_connection((host, int(port)), timeout=10) as connection:
                connection.sendall(sent)
                assert connection.recv(100).startswith(b"HTTP/1.1 4")
        process.popen.kill()
        _, log = process.popen.communicate(timeout=60)

    events = [json.loads(line)["event"] for line in log.splitlines()]
    assert "Invalid HTTP request received." in events
    assert "socket refused" in events


def test_a_run_beside_a_server_prints_what_it_prints_alone(
    world: World, server: Process, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    alone = make_folder(tmp_path / "project")
    assert call(alone, "run").returncode == 0  # as the server did when it started
    at_rest_log = world.folder / ".strandline" / "lake" / "other_facts" / "_delta_log"
    wait_until(at_rest_log.exists, "the first look of the server")
    for one in (world, alone):
        one.send("events", "a", "b")

    outputs = []
    for one in (world, alone):
        ended = call(one, "run")
        assert ended.returncode == 0, ended.stderr
        outputs.append((_calm(ended.stdout), sorted(_calm(ended.stderr).splitlines())))
    documents = []
    for one in (world, alone):
        one.send("events", "c")
        documents.append(json.loads(call(one, "run", "--output", "json").stdout))

    assert outputs[0] == outputs[1]
    for document in documents:
        for name in ("run", "as_of"):
            del document[name]
        for task in document["tasks"]:
            del task["seconds"]
    assert documents[0] == documents[1]
    assert world.rows("item") == ["a", "b", "c"]


def _calm(text: str) -> str:
    """Without how long things took and in which order tasks that do not wait for each other ended."""
    return re.sub(r" *[0-9]+\.[0-9](?= |$)", " 0.0", re.sub(r"[0-9]+/[0-9]+", "n/m", text), flags=re.M)


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--select", "nobody"),
        ("backfill", "nobody", "--all"),
        ("backfill", "events", "--all"),
        ("invalidate", "item", "--where", "id = 'a'", "--reason", "r"),
        ("quarantine", "nobody", "--release"),
        ("verify", "nobody"),
        ("plan", "--select", "nobody"),
    ],
    ids=" ".join,
)
def test_a_wrong_call_is_refused_as_alone(
    world: World,
    server: Process,
    words: tuple[str, ...],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    at_rest_world = make_folder(tmp_path / "project")

    beside = main([*words, "--project", str(world.folder)])
    told = capfd.readouterr()
    alone = main([*words, "--project", str(at_rest_world.folder)])

    expected = capfd.readouterr()
    assert beside == alone == 2
    if words[0] != "invalidate":  # the other project has built nothing
        assert told == expected


def test_a_plan_beside_a_server_is_the_plan(
    world: World, server: Process, capfd: pytest.CaptureFixture[str]
) -> None:
    world.send("others", "z")

    assert main(["plan", "--output", "json", "--project", str(world.folder)]) == 0
    planned = json.loads(capfd.readouterr().out)
    assert main(["run", "--output", "json", "--project", str(world.folder)]) == 0
    done = json.loads(capfd.readouterr().out)

    assert [t["node"] for t in planned["tasks"]] == [t["node"] for t in done["tasks"]]
    assert "others" in [t["node"] for t in done["tasks"]]


def test_a_backfill_beside_a_server_is_recorded_with_its_actor(world: World, server: Process) -> None:
    assert main(["backfill", "item", "--all", "--project", str(world.folder)]) == 0

    with open_workspace(world.folder) as workspace:
        newest = list_newest(workspace, 1)[0]
    assert (newest.verb, newest.actor, newest.status) == ("backfill", "command line", RequestStatus.DONE)


def test_a_second_server_is_told_who_holds_the_lake(
    world: World, server: Process, capfd: pytest.CaptureFixture[str]
) -> None:
    code = main(["serve", "--port", "0", "--project", str(world.folder)])

    assert code == 3
    assert f"process {server.popen.pid} on" in capfd.readouterr().err


def test_a_port_in_use_is_said(
    world: World, server: Process, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = make_folder(tmp_path / "project")
    port = server.address.rpartition(":")[2]

    code = main(["serve", "--port", port, "--project", str(other.folder)])

    assert code == 3
    assert "[port-in-use]" in capfd.readouterr().err
    with serving(other):  # another port
        pass


def test_without_keys_no_other_address_is_served(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    other = make_folder(tmp_path / "project")

    code = main(["serve", "--host", "0.0.0.0", "--port", "0", "--project", str(other.folder)])

    assert code == 2
    assert "[keys-required]" in capfd.readouterr().err


def test_another_project_over_the_lake_is_told_whose_it_is(
    world: World, server: Process, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = make_folder(tmp_path / "project")
    file, lake = other.folder / "strandline.yaml", world.folder / ".strandline" / "lake"
    file.write_text(file.read_text().replace("{workers: 1}", f"{{workers: 1, lake: '{lake}'}}"))

    code = main(["run", "--project", str(other.folder)])

    told = capfd.readouterr().err
    assert code == 2
    assert "[other-project]" in told
    assert str(world.folder) in told
    assert main(["plan", "--project", str(world.folder)]) == 0


def test_another_strandline_is_told_to_restart_the_server(
    world: World,
    server: Process,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("strandline.app.handover.version", lambda _: "9.9")

    code = main(["run", "--project", str(world.folder)])

    assert code == 3
    assert "[other-version]" in capfd.readouterr().err


def test_a_caller_without_the_key_of_the_machine_is_refused(world: World, server: Process) -> None:
    body = json.dumps({"version": "0", "project": "", "verb": "run", "request": None}).encode()
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {'x' * 43}"}
    request = urllib.request.Request(f"{server.address}/v1/handover", body, headers)

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request)

    assert refused.value.code == 401


def test_a_server_that_is_told_to_end_gives_the_lake_back(tmp_path: Path) -> None:
    world = make_folder(tmp_path / "project")
    world.send("events", "a")
    with serving(world) as process:
        at_rest(world)
        code, seconds = process.end()

    assert code == 0
    assert seconds < 30
    lake = world.folder / ".strandline" / "lake"
    assert find_serving(Lake(root=str(lake))) is None
    assert not (lake / "_strandline.holder").exists()
    assert call(world, "run").stdout == "Everything is up to date.\n"


def test_a_server_that_nobody_asks_ends_by_itself(tmp_path: Path) -> None:
    with serving(make_folder(tmp_path / "project"), "--idle-stop", "1s") as process:
        process.popen.wait(30)

    assert process.popen.returncode == 0


def test_a_request_in_progress_is_interrupted_and_left_to_the_next_server(tmp_path: Path) -> None:
    world = make_folder(tmp_path / "project")
    world.send("events", "a")
    with _held(world) as (process, client), ThreadPoolExecutor() as pool:
        waiting = pool.submit(_post, f"{process.address}/v1/runs?wait=300")
        wait_until(lambda: _runs(world) == 2, "the request of who waits")
        code, seconds = process.end()
        _, told = client.communicate(timeout=30)

    assert code == 0
    assert seconds < 30
    assert waiting.result()[0] == 202
    assert waiting.result()[1]["status"] == "pending"
    assert client.returncode == 3
    assert "[server-lost]" in told
    _finish_once(world, 2)


def test_a_request_of_a_server_that_was_killed_is_done_once_by_the_next(tmp_path: Path) -> None:
    world = make_folder(tmp_path / "project")
    world.send("events", "a")
    with _held(world) as (process, client):
        process.end(signal.SIGKILL)
        _, told = client.communicate(timeout=30)

    assert client.returncode == 3
    assert "[server-lost]" in told
    _finish_once(world)


def test_a_client_that_is_interrupted_is_told_that_its_request_goes_on(tmp_path: Path) -> None:
    world = make_folder(tmp_path / "project")
    world.send("events", "a")
    with _held(world) as (_, client):
        client.send_signal(signal.SIGINT)
        _, told = client.communicate(timeout=30)
        (world.folder / "go").touch()
        at_rest(world)
        wait_until(lambda: _newest(world).status is RequestStatus.DONE, "the request")

    assert client.returncode == 130
    assert f"The server goes on with request {_newest(world).request}." in told


@contextmanager
def _held(world: World) -> Iterator[tuple[Process, subprocess.Popen[str]]]:
    """A server that stands still in a run that a client asked for."""
    failpoint = f"before-prepare:item_facts=block:{world.folder / 'go'}"
    # By itself the server finds nothing to do: the tables are there, and the file comes with the client.
    files = sorted((world.folder / "data").iterdir())
    aside = [file.rename(world.folder / file.name) for file in files]
    file = world.folder / "strandline.yaml"
    file.write_text(file.read_text().replace("{workers: 1}", "{workers: 1, serve: {poll: 1 hour}}"))
    assert call(world, "run").returncode == 0
    before = _versions(world, "events")
    with serving(world, STRANDLINE_FAILPOINTS=failpoint) as process:
        for one in aside:
            one.rename(world.folder / "data" / one.name)
        command = [*PLAIN, "run", "--project", str(world.folder)]
        client = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        wait_until(lambda: _newest(world), "its request")
        wait_until(lambda: len(_versions(world, "events")) > len(before), "its first task")
        yield process, client
        if client.poll() is None:
            client.kill()
        client.communicate()


def _post(url: str) -> tuple[int, Any]:
    with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=60) as answer:
        return answer.status, json.load(answer)


def _versions(world: World, table: str) -> list[Path]:
    return list((world.folder / ".strandline" / "lake" / table / "_delta_log").glob("*.json"))


def _runs(world: World) -> int:
    with open_workspace(world.folder) as workspace:
        return len(list_newest(workspace, 10))


def _newest(world: World) -> Any:
    with open_workspace(world.folder) as workspace:
        newest = list_newest(workspace, 1)
    return newest[0] if newest else None


def _finish_once(world: World, asked: int = 1) -> None:
    assert _newest(world).status in (RequestStatus.PENDING, RequestStatus.RUNNING)
    with serving(world):
        wait_until(lambda: _newest(world).status is RequestStatus.DONE, "the request")
    assert world.rows("item") == ["a"]
    assert _runs(world) == asked
