"""The libraries of Standard Webhooks for JavaScript and Python verify what we sign, and sign as we do."""

import base64
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from strandline.model.events import Event, EventType, make_body
from strandline.model.webhook_signatures import make_headers, parse_secret
from tests.clients.packages import install_packages, run_script

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
    return install_packages()


def verify(folder: Path, messages: list[dict[str, Any]]) -> list[tuple[object, str]]:
    """Of each message: True or why it is refused, and the signature that the library makes."""
    return [(verdict, signature) for verdict, signature in run_script(folder, "verify.js", messages)]


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
