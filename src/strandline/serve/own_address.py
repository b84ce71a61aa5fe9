"""An endpoint must not be the server that sends: each message would ask for what makes the next one."""

from urllib.parse import urlsplit

from strandline.model.addresses import find_address
from strandline.model.endpoints import Endpoint
from strandline.model.errors import CallError

from .served import Served

_PORTS = {"http": 80, "https": 443}


def refuse_own_address(served: Served, endpoint: Endpoint) -> None:
    """Raises CallError if the endpoint's URL leads to this server."""
    parts = urlsplit(endpoint.url)
    host = (parts.hostname or "").rstrip(".")
    bound, _, port = served.address.rpartition(":")
    here = host in served.workspace.project.settings.serve.hosts
    if port.isdecimal() and (parts.port or _PORTS.get(parts.scheme)) == int(port):
        here = here or host == bound.strip("[]") or _is_loopback(host)
    if here:
        raise CallError(
            f"The endpoint `{endpoint.name}` is this server itself, so nothing is sent to it.",
            remedy="Write the receiver's address into its `url`. What waits is sent then.",
            slug="endpoint-is-server",
        )


def _is_loopback(host: str) -> bool:
    """Resolvers also read `127.1` and `2130706433` as addresses."""
    address = find_address(host)
    if address is None:
        return host == "localhost" or host.endswith(".localhost")
    mapped = address.ipv4_mapped if address.version == 6 else None
    return (mapped or address).is_loopback or address.is_unspecified
