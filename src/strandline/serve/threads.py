"""Reads of the catalog and the lake, which block, in threads beside the event loop."""

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

Result = TypeVar("Result")


async def in_thread(read: Callable[[], Result]) -> Result:
    return await anyio.to_thread.run_sync(read)
