"""Who may call: host, origin, access key and role.

Without access keys, callers of this machine may do everything and all others nothing. A web page cannot pass
for such a caller: its browser sends the page's origin, and a name in `Host` that is not of the loopback
interface.
"""

import hmac
import ipaddress
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from strandline.model.errors import CallError
from strandline.model.requests import COMMAND_LINE
from strandline.model.serving import Role, ServeSettings, hash_key, read_key_hash

from .declared import Caller
from .refused import RefusedError

LOOPBACK = Caller(name="loopback", role=Role.OPERATE)
_DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKey:
    caller: Caller
    sha256: str = field(repr=False)
    expires_on: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """What is judged by. A value that is replaced whole when the project file changes."""

    keys: tuple[KnownKey, ...]
    """Those of the project file. Empty: the callers of this machine need none."""
    machine: KnownKey | None = None
    """The key that the holder file of the lake gives to the command line of this machine."""
    hosts: frozenset[str]
    origins: frozenset[str]

    @property
    def is_open(self) -> bool:
        return not self.keys


def open_access(settings: ServeSettings, environ: Mapping[str, str], machine_key: str = "") -> Access:
    """Read the keys. Raises CallError for one that is not set, too short, or declared twice."""
    keys: list[KnownKey] = []
    for access in settings.keys.values():
        known = KnownKey(
            caller=Caller(name=access.name, role=access.role, sources=access.sources),
            sha256=read_key_hash(access, environ),
            expires_on=access.expires_on,
        )
        for other in keys:
            if other.sha256 == known.sha256:
                raise CallError(
                    f"`{access.name}` and `{other.caller.name}` are the same access key.",
                    remedy=f"Make another one with `strandline key {access.name} --role {access.role}`.",
                    slug="same-access-key",
                )
        keys.append(known)
    machine = Caller(name=COMMAND_LINE, role=Role.OPERATE)
    return Access(
        keys=tuple(keys),
        machine=KnownKey(caller=machine, sha256=hash_key(machine_key)) if machine_key else None,
        hosts=frozenset(settings.hosts),
        origins=frozenset(settings.origins),
    )


def require_guarded(settings: ServeSettings, address: str) -> None:
    """Refuse an address that others can reach, unless it is declared who may call, and by which name."""
    if is_loopback(address):
        return
    if not settings.keys:
        raise CallError(
            f"Others can reach `{address}`, and without access keys only this machine is served.",
            remedy="Declare a key under `settings.serve.keys`, made with `strandline key NAME --role ROLE`.",
            slug="keys-required",
        )
    if not settings.hosts:
        raise CallError(
            f"No name is declared by which others may call `{address}`.",
            remedy="Write the name into `settings.serve.hosts`, such as `hosts: [pipe.example]`.",
            slug="hosts-required",
        )


def check_host(access: Access, headers: Headers) -> None:
    """Refuse a name that is not ours: a page of the web that had its name lead to this machine."""
    hosts = headers.getlist("host")
    name = _host_name(hosts[0]) if len(hosts) == 1 else ""
    known = is_loopback(name) or (not access.is_open and name in access.hosts)
    if not name or not known:
        raise RefusedError(
            "This server is not called by the name in `Host`.",
            remedy="Call it by a name of the loopback interface, or add the name to `settings.serve.hosts`.",
            slug="host-refused",
            status=403,
        )


def check_origin(access: Access, headers: Headers) -> str:
    """The other origin that may read the answer (CORS). Empty if the call does not come from one.

    Programs send no origin. A page of this server sends its own.
    """
    origins = headers.getlist("origin")
    if not origins or (len(origins) == 1 and _is_same(origins[0], headers["host"])):
        return ""
    if len(origins) == 1 and origins[0].lower() in access.origins:
        return origins[0]
    raise RefusedError(
        "Pages of that origin may not call this server.",
        remedy="Add the origin to `settings.serve.origins` if the page is yours.",
        slug="origin-refused",
        status=403,
    )


def identify(access: Access, key: str | None, client: str, today: Callable[[], date]) -> Caller:
    """Whose key this is. Every known key is compared, in constant time."""
    if key:
        presented = hash_key(key)
        known: tuple[KnownKey, ...] = (*access.keys, *((access.machine,) if access.machine else ()))
        matching = [one for one in known if hmac.compare_digest(one.sha256, presented)]
        for one in matching:
            if one.expires_on is None or today() < one.expires_on:
                return one.caller
    if access.is_open and is_loopback(client):
        return LOOPBACK
    what = "The access key is unknown or has expired." if key else "This call has no access key."
    slug = "unknown-access-key" if key else "no-access-key"
    raise RefusedError(
        what,
        remedy="Send `Authorization: Bearer KEY`. `strandline key NAME --role ROLE` makes a key.",
        slug=slug,
        status=401,
        headers={"www-authenticate": "Bearer"},
    )


def check_role(caller: Caller, role: Role) -> None:
    if not caller.role.includes(role):
        raise RefusedError(
            f"The access key `{caller.name}` has the role `{caller.role}`, and this call needs `{role}`.",
            remedy=f"Use a key with the role `{role}`.",
            slug="role-refused",
            status=403,
        )


def check_source(caller: Caller, source: str) -> None:
    """Refuse facts for a source that the caller's key does not name."""
    if caller.sources is not None and source not in caller.sources:
        raise RefusedError(
            f"The access key `{caller.name}` may not post facts to `{source}`.",
            remedy=f"Add `{source}` to the key's `sources` in `settings.serve.keys`.",
            slug="source-not-allowed",
            status=403,
        )


def read_bearer(headers: Headers) -> str | None:
    """The key in `Authorization`. None if there is none, or another kind of authorization."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" and key.strip() else None


def is_loopback(name: str) -> bool:
    """Whether a host name or address is of this machine's loopback interface."""
    if name.lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _host_name(host: str) -> str:
    """`pipe.example:8321` -> `pipe.example`. Empty for what is not a host."""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return ""
    bare = parts.netloc == host and not parts.username and "@" not in host
    return (parts.hostname or "").lower() if bare else ""


def _is_same(origin: str, host: str) -> bool:
    """Whether a page's origin is this server, as the page's browser calls it."""
    try:
        page, server = urlsplit(origin.lower()), urlsplit(f"//{host.lower()}")
        port = _DEFAULT_PORTS.get(page.scheme)
        return (
            port is not None
            and page.hostname == server.hostname
            and (page.port or port) == (server.port or port)
        )
    except ValueError:
        return False
