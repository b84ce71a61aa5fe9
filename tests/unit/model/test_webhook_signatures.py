"""Signatures of webhooks: the vector of Standard Webhooks, and what its own library verifies."""

import base64
import json
import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from strandline.model.webhook_signatures import Secret, make_headers, parse_secret, sign

SPELT = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER = "whsec_" + base64.b64encode(bytes(range(64))).decode()
BODY = '{"event_id":"acf6","data":{"name":"größe 日本 😀","n":1.10}}'.encode()


def test_the_vector_of_the_specification_comes_out() -> None:
    signature = sign(parse_secret(SPELT), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')

    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("receiver", [SPELT, OTHER])
def test_a_receiver_with_either_secret_verifies_a_message_that_both_signed(receiver: str) -> None:
    headers = make_headers([parse_secret(SPELT), parse_secret(OTHER)], "acf6", int(time.time()), BODY)

    assert Webhook(receiver).verify(BODY.decode(), headers) == json.loads(BODY)


def test_a_message_that_was_changed_or_is_old_is_not_verified() -> None:
    now = int(time.time())
    headers = make_headers([parse_secret(SPELT)], "acf6", now, BODY)
    old = make_headers([parse_secret(SPELT)], "acf6", now - 3600, BODY)

    for body, sent in (
        (BODY + b" ", headers),
        (BODY, {**headers, "webhook-id": "acf7"}),
        (BODY, {**headers, "webhook-timestamp": str(now + 1)}),
        (BODY, old),
    ):
        with pytest.raises(WebhookVerificationError):
            Webhook(SPELT).verify(body.decode(), sent)


@pytest.mark.parametrize("size", [24, 64])
def test_a_secret_of_24_to_64_bytes_is_taken(size: int) -> None:
    assert parse_secret("whsec_" + base64.b64encode(b"x" * size).decode()) == Secret(b"x" * size)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it does not start with `whsec_`"),
        ("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "it does not start with `whsec_`"),
        ("whsec_", "it has 0 bytes, and 24 to 64 are allowed"),
        ("whsec_" + base64.b64encode(b"x" * 23).decode(), "it has 23 bytes, and 24 to 64 are allowed"),
        ("whsec_" + base64.b64encode(b"x" * 65).decode(), "it has 65 bytes, and 24 to 64 are allowed"),
        ("whsec_not base64 at all!", "what follows `whsec_` is not base64"),
        ("whsec_größe", "what follows `whsec_` is not base64"),
    ],
)
def test_a_short_or_broken_secret_is_refused_and_never_shown(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=r"^it |^what follows ") as refused:
        parse_secret(text)

    assert str(refused.value) == why


def test_a_secret_is_in_no_text_that_is_made_of_it() -> None:
    assert repr(parse_secret(SPELT)) == "Secret()"
