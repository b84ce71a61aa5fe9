"""Which addresses a webhook may reach: public ones, and those that an endpoint allows.

Whoever writes an endpoint's URL could otherwise make the engine call machines of its own network. The blocks
are those of the registries of special-purpose addresses (RFC 6890), complete, so that no version of a library
decides.
"""

import re
from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

SPECIAL: tuple[Network, ...] = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private use
            "100.64.0.0/10",  # shared address space
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link local
            "172.16.0.0/12",  # private use
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",  # private use
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarking
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and the broadcast address
            "::/96",  # unspecified, loopback, and IPv4-compatible addresses
            "64:ff9b:1::/48",  # local translation
            "100::/64",  # discard only
            "100:0:0:1::/64",  # dummy prefix
            "2001::/23",  # protocol assignments: Teredo, ORCHID, benchmarking, AMT, AS112, drones
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
            "5f00::/16",  # segment routing
            "fc00::/7",  # unique local
            "fe80::/10",  # link local
            "fec0::/10",  # site local
            "ff00::/8",  # multicast
        ),
    )
)
NEVER: tuple[Network, ...] = tuple(
    map(
        ip_network,
        (
            "169.254.0.0/16",  # link local, where clouds serve the credentials of a machine
            "fe80::/10",
            "fd00:ec2::254/128",  # metadata of Amazon
            "fd20:ce::254/128",  # of Google
            "100.100.100.200/32",  # of Alibaba
            "168.63.129.16/32",  # of Azure
            "192.0.0.192/32",  # of Oracle
        ),
    )
)
"""Never reached, whatever an endpoint allows."""

_GLOBAL = IPv6Network("2000::/3")
_MAPPED = IPv6Network("::ffff:0:0/96")
_TRANSLATED = IPv6Network("64:ff9b::/96")
_PART = re.compile(r"0x[0-9a-f]*|[0-9]+")


def may_reach(address: Address, allowed: Iterable[Network] = (), *, only_allowed: bool = False) -> bool:
    """Whether a webhook may be sent to an address. `only_allowed`: not even to a public one."""
    judged = _unwrap(address)
    if is_never_reached(address):
        return False
    if _lies_in(judged, allowed) or _lies_in(address, allowed):
        return True
    return not only_allowed and _is_public(judged)


def is_never_reached(address: Address) -> bool:
    """Whether no `allow` can make a webhook go there."""
    return _lies_in(_unwrap(address), NEVER)


def find_address(host: str) -> Address | None:
    """The address that a host of a URL is written as. None for a name.

    Resolvers also read `127.1`, `2130706433`, `0x7f.1` and `0177.0.0.1` as addresses.
    """
    text = host.strip("[]").split("%")[0].rstrip(".").lower()
    try:
        return ip_address(text)
    except ValueError:
        pass
    parts = text.split(".")
    if len(parts) > 4 or not all(_PART.fullmatch(part) for part in parts):
        return None
    try:
        *first, last = (_read_number(part) for part in parts)
    except ValueError:
        return None
    value = last
    for place, byte in enumerate(first):
        value += byte << (24 - 8 * place)
    fits = all(byte < 256 for byte in first) and last < 256 ** (4 - len(first))
    return IPv4Address(value) if fits else None


def _read_number(text: str) -> int:
    if text.startswith("0x"):
        return int(text[2:] or "0", 16)
    return int(text, 8) if len(text) > 1 and text.startswith("0") else int(text)


def _unwrap(address: Address) -> Address:
    """The IPv4 address inside a mapped or translated one."""
    if isinstance(address, IPv6Address) and (address in _MAPPED or address in _TRANSLATED):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _is_public(address: Address) -> bool:
    if isinstance(address, IPv6Address) and address not in _GLOBAL:
        return False
    return not _lies_in(address, SPECIAL)


def _lies_in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
