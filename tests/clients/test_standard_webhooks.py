"""The libraries of Standard Webhooks for JavaScript and Python verify what we sign, and sign as we do."""

import base64
import hashlib
import json
import shutil
import subprocess
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from strandline.model.events import Event, EventType, make_body
from strandline.model.webhook_signatures import make_headers, parse_secret

HERE = Path(__file__).parent
SECRETS = ["whsec_" + base64.b64encode(bytes(range(size))).decode() for size in (24, 64)]
VECTOR = (
    "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    "msg_p5jXN8AQM9LWM0D4loKWxJek",
    1614265330,
    '{"test": 2432232314}',
    "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
)
"""Of the specification: secret, id, timestamp, body, signature."""
EVENT = Event(
    trigger="large_trade_alert",
    event_type=EventType.MATCH,
    key="größe%3A日本,😀",
    source_timestamp=1705316445123456789,
    n=1,
    data='{"name":"größe 日本 😀\u2028","price":"1.10","\\"":"\\\\"}',
    version=1,
    position=0,
    revision=1,
    quiet=False,
)
RECORDED_AT = datetime(2024, 1, 15, 10, 30, 45, 123456, UTC)
BODIES = ['{"data":{"quantity":15000}}', '{"data":{"name":"größe 日本 😀 \\u2028"}}', '{"data":{}}\n']


@pytest.fixture(scope="module")
def folder() -> Path:
    """A folder with the packages of package-lock.json. They are installed once, into a cache."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node or npm is missing")
    files = [HERE / name for name in ("package.json", "package-lock.json", "verify.js")]
    digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    cache = Path.home() / ".cache" / "strandline" / "npm" / digest
    if not (cache / "node_modules").exists():
        cache.mkdir(parents=True, exist_ok=True)
        for file in files:
            shutil.copy(file, cache)
        command = ["npm", "ci", "--no-audit", "--no-fund"]
        installed = subprocess.run(command, cwd=cache, capture_output=True, text=True, timeout=120)
        if installed.returncode:
            shutil.rmtree(cache)
            pytest.skip("npm cannot install its packages here")
    return cache


def verify(folder: Path, messages: list[dict[str, Any]]) -> list[tuple[object, str]]:
    """Of each message: True or why it is refused, and the signature that the library makes."""
    answer = subprocess.run(
        ["node", "verify.js"],
        cwd=folder,
        input=json.dumps(messages),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return [(verdict, signature) for verdict, signature in json.loads(answer.stdout)]


def make_messages(now: int) -> list[dict[str, Any]]:
    """Each signed with both secrets, for a receiver that knows one of them."""
    secrets = [parse_secret(secret) for secret in SECRETS]
    return [
        {"secret": secret, "headers": make_headers(secrets, EVENT.event_id, now, body), "body": body.decode()}
        for body in (*(body.encode() for body in BODIES), make_body(EVENT, RECORDED_AT))
        for secret in SECRETS
    ]


def test_a_receiver_in_javascript_verifies_our_messages_and_no_others(folder: Path) -> None:
    now = int(time.time())
    messages = make_messages(now)
    changed = [{**message, "body": f"{message['body']} "} for message in messages]
    old = make_messages(now - 3600)

    verdicts = [verdict for verdict, _ in verify(folder, [*messages, *changed, *old])]

    assert verdicts[: len(messages)] == [True] * len(messages)
    assert True not in verdicts[len(messages) :]


def test_a_receiver_in_python_verifies_our_messages_and_no_others() -> None:
    for message in make_messages(int(time.time())):
        webhook, headers, body = Webhook(message["secret"]), message["headers"], str(message["body"])

        assert webhook.verify(body, headers) == json.loads(body)
        with pytest.raises(WebhookVerificationError):
            webhook.verify(body + " ", headers)


def test_the_libraries_sign_as_we_do_and_as_the_specification_says(folder: Path) -> None:
    secret, message_id, timestamp, body, expected = VECTOR
    of_specification: dict[str, Any] = {
        "secret": secret,
        "headers": make_headers([parse_secret(secret)], message_id, timestamp, body.encode()),
        "body": body,
    }
    messages = [of_specification, *make_messages(timestamp)]

    in_javascript = [signature for _, signature in verify(folder, messages)]

    in_python = [
        Webhook(message["secret"]).sign(
            message["headers"]["webhook-id"], datetime.fromtimestamp(timestamp, UTC), message["body"]
        )
        for message in messages
    ]
    ours = [message["headers"]["webhook-signature"].split() for message in messages]
    assert in_javascript == in_python
    assert all(signature in made for signature, made in zip(in_javascript, ours, strict=True))
    assert (ours[0], in_javascript[0]) == ([expected], expected)
