"""Work that a verb does here, or has the server do that holds the lake."""

from pathlib import Path
from typing import Any

from strandline.app.handover import HandedOver
from strandline.app.handover import do_work as do_anywhere
from strandline.app.watching import Watcher

from . import interrupts


def do_work(folder: Path, verb: str, request: object, watcher: Watcher) -> Any:
    """The outcome of a verb. Whoever interrupts a request that a server executes is told that it goes on."""
    return do_anywhere(folder, verb, request, watcher, _say_that_it_goes_on)


def _say_that_it_goes_on(handed_over: HandedOver) -> None:
    if handed_over.recorded:
        interrupts.say_at_end(f"Interrupted. The server goes on with request {handed_over.request}.")
