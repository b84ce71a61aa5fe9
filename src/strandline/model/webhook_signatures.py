"""Signatures of webhooks, as Standard Webhooks 1.0 defines them.

A receiver that knows the secret can check that a message is ours, complete and recent.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Iterable
from dataclasses import dataclass, field

PREFIX = "whsec_"
SHORTEST, LONGEST = 24, 64
"""Of a secret, in bytes."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A key that we share with a receiver. Its bytes are in no text that is made of it."""

    key: bytes = field(repr=False)


def parse_secret(text: str) -> Secret:
    """The secret that a text such as `whsec_...` contains. Raises ValueError, which never shows the text."""
    if not text.startswith(PREFIX):
        raise ValueError(f"it does not start with `{PREFIX}`")
    try:
        key = base64.b64decode(text.removeprefix(PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError(f"what follows `{PREFIX}` is not base64") from None
    if not SHORTEST <= len(key) <= LONGEST:
        raise ValueError(f"it has {len(key)} bytes, and {SHORTEST} to {LONGEST} are allowed")
    return Secret(key)


def sign(secret: Secret, message_id: str, timestamp: int, body: bytes) -> str:
    """`v1,` and the signature of one message. `timestamp` is that of the attempt, in seconds."""
    signed = b"%b.%d.%b" % (message_id.encode(), timestamp, body)
    return "v1," + base64.b64encode(hmac.digest(secret.key, signed, hashlib.sha256)).decode()


def make_headers(secrets: Iterable[Secret], message_id: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers of one attempt, with a signature for each secret."""
    signatures = " ".join(sign(secret, message_id, timestamp, body) for secret in secrets)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": signatures,
        "content-type": "application/json",
    }
