"""Sends one webhook at a time to one endpoint, and says what came of it.

No redirect is followed, no proxy of the environment is used, and nothing is unpacked. At most 64 KiB of an
answer are read: only its status counts.
"""

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from types import TracebackType
from urllib.parse import urlsplit

import aiohttp

from strandline.model.addresses import find_address, may_reach
from strandline.model.deliveries import Outcome
from strandline.model.endpoints import Endpoint
from strandline.model.webhook_signatures import Secret, make_headers

from .address_guard import judged, make_guarded_socket

MOST_READ = 64 * 1024
_REFUSED = "The address may not be reached."
_AGENT = "strandline-webhooks/1"


class WebhookSender:
    """The connections to one endpoint. It is an asynchronous context manager."""

    def __init__(
        self,
        endpoint: Endpoint,
        secrets: tuple[Secret, ...],
        headers: Mapping[str, str],
        resolver: aiohttp.abc.AbstractResolver | None = None,
    ) -> None:
        self._endpoint = endpoint
        self._secrets = secrets
        self._headers = dict(headers)
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None
        # A host such as 127.1 is refused before anybody looks it up. The guard judges what is dialled.
        address, only_allowed = find_address(urlsplit(endpoint.url).hostname or ""), self._only_allowed
        self._may_dial = address is None or may_reach(address, endpoint.allow, only_allowed=only_allowed)

    @property
    def _only_allowed(self) -> bool:
        return not self._endpoint.is_encrypted

    async def __aenter__(self) -> "WebhookSender":
        connector = aiohttp.TCPConnector(
            limit=self._endpoint.in_flight,
            use_dns_cache=False,  # a name is looked up for every connection
            resolver=self._resolver,
            socket_factory=make_guarded_socket(self._endpoint.allow, only_allowed=self._only_allowed),
        )
        self._session = aiohttp.ClientSession(
            connector=connector,
            timeout=aiohttp.ClientTimeout(total=self._endpoint.timeout.total_seconds()),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            headers={"User-Agent": _AGENT, "Accept": "*/*", "Accept-Encoding": "identity"},
        )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._session is not None
        await self._session.close()

    async def send(self, message_id: str, body: bytes, now: datetime) -> Outcome:
        """One attempt, which starts at `now`. Whatever the receiver does, an outcome is returned."""
        if len(body) > self._endpoint.max_body:
            error = f"The body has {len(body):,} bytes, and the endpoint takes {self._endpoint.max_body:,}."
            return Outcome(delivered=False, error=error, hopeless=True)
        if not self._may_dial:
            return Outcome(delivered=False, error=_REFUSED, hopeless=True)
        signed = make_headers(self._secrets, message_id, int(now.timestamp()), body)
        started, verdicts = time.monotonic(), list[bool]()
        token = judged.set(verdicts)
        try:
            return await self._post({**self._headers, **signed}, body, now, started)
        except TimeoutError:
            seconds = self._endpoint.timeout.total_seconds()
            return _failed(f"No answer within {seconds:g} s.", started, timed_out=True)
        except (aiohttp.ClientError, OSError, ValueError) as error:
            if verdicts and not any(verdicts):
                return _failed(_REFUSED, started, hopeless=True)
            return _failed(_describe(error), started)
        finally:
            judged.reset(token)

    async def _post(self, headers: Mapping[str, str], body: bytes, now: datetime, started: float) -> Outcome:
        assert self._session is not None
        async with self._session.post(
            self._endpoint.url, data=body, headers=headers, allow_redirects=False
        ) as response:
            status = response.status
            if not await _drain(response):
                response.close()  # the connection is not used again
        if 200 <= status < 300:
            return Outcome(delivered=True, status_code=status, seconds=time.monotonic() - started)
        return Outcome(
            delivered=False,
            status_code=status,
            error=f"HTTP {status}",
            seconds=time.monotonic() - started,
            retry_after=find_retry_after(response.headers.get("Retry-After", ""), now),
        )


def find_retry_after(text: str, now: datetime) -> timedelta | None:
    """The pause that an answer asks for: a number of seconds, or a date. None if it asks for none."""
    if text.isascii() and text.isdecimal():
        return timedelta(seconds=min(int(text.lstrip("0")[:12] or 0), 10**9))
    try:
        at = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
    return max(at - now, timedelta())


async def _drain(response: aiohttp.ClientResponse) -> bool:
    """Read the answer, as far as it is short and comes soon. False if it was not read to its end.

    Its status is known, so whatever happens here changes nothing.
    """
    left = MOST_READ
    try:
        while left > 0:
            block = await response.content.read(left)
            if not block:
                return True
            left -= len(block)
    except (TimeoutError, aiohttp.ClientError, OSError):
        return False
    return False


def _failed(error: str, started: float, *, timed_out: bool = False, hopeless: bool = False) -> Outcome:
    seconds = time.monotonic() - started
    return Outcome(delivered=False, error=error, seconds=seconds, timed_out=timed_out, hopeless=hopeless)


def _describe(error: Exception) -> str:
    """Without the URL, whose path or query may contain what is secret."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    detail = cause.strerror if isinstance(cause, OSError) and cause.strerror else ""
    return f"{type(error).__name__}: {detail}" if detail else type(error).__name__
