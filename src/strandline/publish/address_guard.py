"""The guard where sockets are made: it judges the address that is dialled, each time.

A name may lead elsewhere at every look-up, so nothing that was judged earlier counts.
"""

import socket
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from ipaddress import ip_address
from typing import Any

from strandline.model.addresses import Network, may_reach

judged: ContextVar[list[bool] | None] = ContextVar("judged", default=None)
"""Of the attempt that runs in this context: whether each address that it tried may be reached."""


class AddressRefusedError(OSError):
    """The address may not be reached."""


def make_guarded_socket(
    allow: Iterable[Network], *, only_allowed: bool
) -> Callable[[tuple[Any, ...]], socket.socket]:
    """A function that makes the socket for an address, or refuses to. `only_allowed`: not for public ones."""
    allowed = tuple(allow)

    def make(info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, target = info
        address = ip_address(str(target[0]).split("%")[0])
        reachable = may_reach(address, allowed, only_allowed=only_allowed)
        verdicts = judged.get()
        if verdicts is not None:
            verdicts.append(reachable)
        if not reachable:
            raise AddressRefusedError("the address may not be reached")
        return socket.socket(family, kind, protocol)

    return make
