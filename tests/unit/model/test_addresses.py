"""Where webhooks may go: public addresses and those that an endpoint allows, whatever their spelling."""

import socket
from ipaddress import IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.model.addresses import NEVER, SPECIAL, Network, find_address, may_reach

REGISTERED = [
    # IANA IPv4 Special-Purpose Address Registry
    "0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32",
    "192.0.0.170/32", "192.0.0.171/32", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24",
    "192.88.99.0/24", "192.88.99.2/32", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "255.255.255.255/32", "224.0.0.0/4",
    # IANA IPv6 Special-Purpose Address Registry
    "::1/128", "::/128", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32",
    "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32", "2001:4:112::/48",
    "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48",
    "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "ff00::/8", "fec0::/10",
]  # fmt: skip


def edges(network: Network) -> list[str]:
    return [str(network[0]), str(network[-1]), str(network[network.num_addresses // 2])]


@pytest.mark.parametrize("block", REGISTERED)
def test_no_address_of_a_registered_block_is_reached(block: str) -> None:
    for text in edges(ip_network(block)):
        assert not may_reach(ip_address(text)), text


@pytest.mark.parametrize("block", [block for block in REGISTERED if "." in block])
@pytest.mark.parametrize("prefix", ["::ffff:0:0", "64:ff9b::", "::"])
def test_no_such_address_is_reached_inside_an_address_of_ipv6(block: str, prefix: str) -> None:
    for text in edges(ip_network(block)):
        inside = IPv6Address(int(ip_address(prefix)) | int(ip_address(text)))

        assert not may_reach(inside), inside


@pytest.mark.parametrize(
    "text",
    [
        "8.8.8.8",
        "1.1.1.1",
        "100.63.255.255",
        "172.32.0.1",
        "2606:4700::1111",
        "64:ff9b::808:808",
        "::ffff:8.8.8.8",
    ],
)
def test_a_public_address_is_reached(text: str) -> None:
    assert may_reach(ip_address(text))
    assert not may_reach(ip_address(text), only_allowed=True)


def test_what_is_allowed_is_reached_and_nothing_beside_it() -> None:
    allow = (ip_network("10.1.0.0/16"), ip_network("fd00::/64"))

    for text in ("10.1.2.3", "::ffff:10.1.2.3", "fd00::1"):
        assert may_reach(ip_address(text), allow, only_allowed=True)
    for text in ("10.2.0.1", "127.0.0.1", "fd00:0:0:1::1"):
        assert not may_reach(ip_address(text), allow)


@pytest.mark.parametrize("block", NEVER, ids=str)
def test_link_local_and_metadata_addresses_are_never_reached(block: Network) -> None:
    everything = (ip_network("0.0.0.0/0"), ip_network("::/0"))

    for text in edges(block):
        assert not may_reach(ip_address(text), everything)
        if block.version == 4:
            assert not may_reach(ip_address(f"::ffff:{text}"), everything)


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1"),
        ("0x7f000001", "127.0.0.1"),
        ("0x7F.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("017700000001", "127.0.0.1"),
        ("10.258", "10.0.1.2"),
        ("127.0.0.1.", "127.0.0.1"),
        ("0", "0.0.0.0"),
        ("[::1]", "::1"),
        ("[::ffff:7f00:1]", "::ffff:127.0.0.1"),
        ("fe80::1%eth0", "fe80::1"),
        ("ops.example", None),
        ("1.2.3.4.5", None),
        ("256.1.1.1", None),
        ("1.2.3.", "1.2.0.3"),
        ("", None),
        ("09", None),
        ("4294967296", None),
    ],
)
def test_an_address_is_found_however_it_is_spelt(host: str, address: str | None) -> None:
    assert find_address(host) == (ip_address(address) if address else None)


number = st.integers(0, 2**33).flatmap(lambda n: st.sampled_from([str(n), hex(n), "0" + oct(n)[2:]]))


@given(st.lists(number, min_size=1, max_size=4).map(".".join))
def test_an_address_is_read_as_the_system_reads_it(host: str) -> None:
    try:
        expected = socket.inet_ntoa(socket.inet_aton(host))
    except OSError:
        expected = None

    found = find_address(host)

    assert (str(found) if found else None) == expected


def test_the_list_of_blocks_has_no_other() -> None:
    known = [ip_network(block) for block in [*REGISTERED, "::/96"]]

    assert [str(block) for block in SPECIAL if block not in known] == []
