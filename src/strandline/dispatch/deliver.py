"""Sends the deliveries that are due: claims them, tries each once, records what came of it.

Any number of processes may do this at once: a delivery belongs to one claim at a time.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack

from strandline.catalog import Catalog
from strandline.model.endpoints import Endpoint, read_headers, read_secrets
from strandline.model.errors import StrandlineError
from strandline.publish.webhooks import WebhookSender

from .lane import Lane, Pace, Sent

MakeSender = Callable[[Endpoint], WebhookSender]


async def send_due(
    catalog: Catalog, endpoints: Mapping[str, Endpoint], holder: str, make_sender: MakeSender, pace: Pace
) -> Sent:
    """Send until nothing is due any more. An endpoint that is slow holds up no other."""
    sent = Sent()
    async with AsyncExitStack() as stack:
        senders = {
            name: await stack.enter_async_context(make_sender(endpoint))
            for name, endpoint in endpoints.items()
        }
        ends = await asyncio.gather(
            *(
                Lane(catalog, endpoint, senders[name], holder, pace, sent).run()
                for name, endpoint in endpoints.items()
            ),
            return_exceptions=True,  # every lane ends before the connections are closed
        )
    for end in ends:
        if end is not None:
            raise end
    return sent


def find_sendable(
    endpoints: Mapping[str, Endpoint], environ: Mapping[str, str]
) -> tuple[dict[str, Endpoint], tuple[StrandlineError, ...]]:
    """The endpoints whose secrets and headers can be read, and why those of others cannot."""
    sendable, refused = {}, list[StrandlineError]()
    for name, endpoint in endpoints.items():
        try:
            make_sender(endpoint, environ)
            sendable[name] = endpoint
        except StrandlineError as error:
            refused.append(error)
    return sendable, tuple(refused)


def make_sender(endpoint: Endpoint, environ: Mapping[str, str]) -> WebhookSender:
    """A sender with the secrets of the environment."""
    return WebhookSender(endpoint, read_secrets(endpoint, environ), read_headers(endpoint, environ))
