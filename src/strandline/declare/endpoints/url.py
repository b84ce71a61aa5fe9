"""The URL of an endpoint: what can be judged before a name is looked up."""

import re
from ipaddress import IPv6Address, ip_network
from urllib.parse import urlsplit

from strandline.model.addresses import Network, find_address, is_never_reached, may_reach
from strandline.model.endpoints import uses_tls
from strandline.model.errors import Place
from strandline.model.references import REFERENCE
from strandline.model.report import Report

_NAME = re.compile(r"[a-z0-9._-]+")
"""What a host may be made of, also one that is an address. `urlsplit` gives it in lower case."""


def check_url(name: str, url: str, allow: tuple[Network, ...], place: Place, report: Report) -> None:
    """Report a URL that is not one, or that leads where no webhook may go.

    A name is judged by the address that is dialled, each time.
    """
    problem, remedy = _find_problem(url, allow)
    if problem:
        report.add("bad-url", f"the URL of the endpoint `{name}` {problem}.", remedy, place)
        return
    address = find_address(urlsplit(url).hostname or "")
    if address is not None and not may_reach(address, allow, only_allowed=not uses_tls(url)):
        what = f"the endpoint `{name}` has the address {address}, which a webhook may not reach."
        remedy = (
            "Use a public address."
            if is_never_reached(address)
            else f'Use a public address, or allow the network if it is yours: `allow: ["{address}"]`.'
        )
        report.add("address-refused", what, remedy, place)


def _find_problem(url: str, allow: tuple[Network, ...]) -> tuple[str, str]:
    """What is wrong with a URL, and what to do. The URL itself may contain a password and is not shown."""
    example = "Write, for example, `https://ops.example/hook`."
    if REFERENCE.search(url):
        return "refers to the environment, which only `secret` and `headers` may", example
    if not url.isascii() or not url.isprintable() or " " in url:
        return "contains a character that no URL may have", example
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        return "has no valid host or port", example
    if not host:
        return "has no host", example
    if not (_is_ipv6(host) if "[" in parts.netloc else _NAME.fullmatch(host)):
        return "has no valid host or port", example
    if parts.username is not None or parts.password is not None:
        return "contains a user or a password", "Put credentials into `headers`, as `${NAME}`."
    if parts.fragment or url.endswith("#"):
        return "contains a fragment, which is never sent", "Remove what follows `#`, and `#` itself."
    if parts.scheme == "http" and not allow:
        return "has the scheme http, which only a network in `allow` may have", "Use https."
    if parts.scheme not in ("http", "https"):
        return f"has the scheme {parts.scheme}, not https", "Use https."
    return "", ""


def _is_ipv6(host: str) -> bool:
    try:
        IPv6Address(host)
    except ValueError:
        return False
    return True


def find_networks(name: str, texts: list[str], place: Place, report: Report) -> tuple[Network, ...]:
    networks = []
    for text in texts:
        try:
            networks.append(ip_network(text))
        except ValueError:
            what = f"`allow` of the endpoint `{name}` contains `{text}`, which is not a network."
            report.add("bad-network", what, "Write, for example, `10.1.0.0/16`.", place)
    return tuple(networks)
