"""An endpoint: where webhooks are sent, and how. Its secrets are read when something is sent."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from urllib.parse import urlsplit

from .addresses import Network
from .errors import CallError, Place
from .references import REFERENCE, fill
from .webhook_signatures import Secret, parse_secret


class Ordering(StrEnum):
    PER_KEY = "per_key"
    """The deliveries of one key go in order, one at a time."""
    PARALLEL = "parallel"


DEFAULT_RETRY = tuple(
    timedelta(seconds=seconds) for seconds in (5, 300, 1800, 2 * 3600, 5 * 3600, 10 * 3600, 10 * 3600)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """As declared. A secret and a header may refer to the environment, so neither is ever shown."""

    name: str
    place: Place
    url: str
    secrets: tuple[str, ...] = field(repr=False)
    """Each is `${NAME}` or the secret itself. A message is signed with all of them."""
    ordering: Ordering = Ordering.PER_KEY
    timeout: timedelta = timedelta(seconds=15)
    rate: float | None = None
    """At most this many attempts a second. None for no limit."""
    in_flight: int = 16
    max_body: int = 256 * 1024
    """In bytes."""
    retry: tuple[timedelta, ...] = DEFAULT_RETRY
    """The pauses before the second attempt and each further one."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    allow: tuple[Network, ...] = ()
    """Networks that are not public and may be reached. Without TLS, only these."""

    @property
    def is_encrypted(self) -> bool:
        return uses_tls(self.url)


def uses_tls(url: str) -> bool:
    """Whether a URL has TLS. Its scheme may be in capitals."""
    return urlsplit(url).scheme != "http"


def read_secrets(endpoint: Endpoint, environ: Mapping[str, str]) -> tuple[Secret, ...]:
    """The secrets of an endpoint. Raises CallError, which never shows one."""
    secrets = []
    for text in endpoint.secrets:
        name = REFERENCE.fullmatch(text)
        which = f" `${{{name[1]}}}`" if name else ""
        try:
            secrets.append(parse_secret(fill(text, f"endpoint `{endpoint.name}`", environ)))
        except ValueError as error:
            raise CallError(
                f"The secret{which} of the endpoint `{endpoint.name}` is not valid: {error}.",
                remedy="Use `whsec_` and the base64 of 24 to 64 random bytes.",
                slug="bad-secret",
            ) from None
    return tuple(secrets)


def read_headers(endpoint: Endpoint, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers of an endpoint. Raises CallError, which never shows a value."""
    headers = {
        name: fill(value, f"endpoint `{endpoint.name}`", environ) for name, value in endpoint.headers.items()
    }
    for name, value in headers.items():
        if not value.isprintable():
            raise CallError(
                f"The header `{name}` of the endpoint `{endpoint.name}` contains a character that no header"
                " may have.",
                remedy="Set the variable to one line of text.",
                slug="bad-header",
            )
    return headers
