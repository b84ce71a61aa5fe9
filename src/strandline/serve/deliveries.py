"""Deliveries: a thread of their own with one lane for each endpoint, so that a slow one holds up no other.

It is woken after each run, and wakes by itself when the next delivery is due. It is never busy: an endpoint
for which nothing could be done is looked at again after a pause.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

import structlog

from strandline.app import deliveries, serving
from strandline.app.clock import now
from strandline.app.deliveries import Sent
from strandline.model.errors import StrandlineError

from .own_address import refuse_own_address
from .served import Served

Result = TypeVar("Result")

log = structlog.get_logger("strandline.serve")

_REST = timedelta(seconds=2)
"""An endpoint is looked at again after this, if something was due and nothing could be sent."""
_LONGEST = timedelta(seconds=30)
"""How long it sleeps if it is not woken: other processes owe deliveries too."""


class Deliverer:
    """`start` begins the thread, `wake` lets it look at once, `stop` ends it."""

    def __init__(self, *, environ: Mapping[str, str] | None = None) -> None:
        self.on_sent: list[Callable[[Sent], None]] = []
        """Called in this thread after something was sent."""
        self._environ = os.environ if environ is None else environ
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._rests: dict[str, datetime] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._bell = asyncio.Event()
        self._stopping = False
        self._trouble = ""
        """The slug of why nothing is sent at all, which the log has said."""
        self._thread = threading.Thread(target=self._run, name="deliveries", daemon=True)
        self._served: Served

    def start(self, served: Served) -> None:
        self._served = served
        self._thread.start()

    def wake(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # it has just ended
                self._loop.call_soon_threadsafe(self._bell.set)

    def stop(self, seconds: float) -> None:
        """What is under way is recorded or given back."""
        self._stopping = True
        self.wake()
        self._thread.join(seconds)

    def _run(self) -> None:
        asyncio.run(self._send_always())

    async def _send_always(self) -> None:
        self._loop = asyncio.get_running_loop()
        while not self._stopping:
            self._bell.clear()
            seconds = _LONGEST.total_seconds()
            # The catalog or the lake may be out of reach for a moment. What is owed by then is sent anyway.
            filled = await self._try(asyncio.to_thread(deliveries.fill, self._served.workspace))
            begun = await self._try(self._begin())
            seconds = seconds if begun is None else begun
            if filled is None or begun is None:
                seconds = min(seconds, _REST.total_seconds())
            else:
                self._trouble = ""
            with suppress(TimeoutError):
                await asyncio.wait_for(self._bell.wait(), seconds)
        for lane in self._lanes.values():
            lane.cancel()
        await asyncio.gather(*self._lanes.values(), return_exceptions=True)

    async def _try(self, step: Awaitable[Result]) -> Result | None:
        """None if it fails. Whatever it is: this thread goes on, because nobody else sends."""
        try:
            return await step
        except Exception as error:  # noqa: BLE001
            told = serving.as_told(error)
            if told.slug != self._trouble:
                log.warning("deliveries wait", slug=told.slug, error=type(error).__name__)
            self._trouble = told.slug
            return None

    async def _begin(self) -> float:
        """Begin a lane wherever something is due. Returns for how many seconds nothing else will be."""
        at, soonest = now(), now() + _LONGEST
        for name in self._served.workspace.project.endpoints:
            if name in self._lanes:
                continue
            due = await asyncio.to_thread(deliveries.find_due, self._served.workspace, name)
            if due is None:
                continue
            due = max(due, self._rests.get(name, due))
            if due <= at:
                self._lanes[name] = asyncio.create_task(self._send(name))
            else:
                soonest = min(soonest, due)
        return max(0.05, (soonest - at).total_seconds())

    async def _send(self, name: str) -> None:
        """Send what is due to one endpoint, then let the next lane begin."""
        served = self._served
        try:
            refuse_own_address(served, served.workspace.project.endpoints[name])
            sent, refused = await deliveries.send_to(
                served.workspace, name, serving.server_name(), self._environ
            )
            self._note(name, refused[0] if refused else None)
            if not sent.counts:
                self._rests[name] = now() + _REST
            for told in self.on_sent:
                told(sent)
        except StrandlineError as error:
            self._note(name, error)
            self._rests[name] = now() + _REST
        except KeyError:  # the endpoint was taken out of the project
            self._rests[name] = now() + _REST
        except Exception as error:  # noqa: BLE001 - otherwise it would begin again at once, and say nothing
            self._note(name, serving.as_told(error))
            self._rests[name] = now() + _REST
        finally:
            del self._lanes[name]
            self._bell.set()

    def _note(self, name: str, error: StrandlineError | None) -> None:
        """What cannot be sent is told by `/v1/endpoints`, and once by the log."""
        known = self._served.unsendable.pop(name, None)
        if error is not None:
            self._served.unsendable[name] = error
            if known is None or known.slug != error.slug:
                log.warning("nothing can be sent", endpoint=name, slug=error.slug)
