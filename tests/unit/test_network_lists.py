# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of networks: their files, and the look-up in the core against brute force."""

import ipaddress
import random
from pathlib import Path

import pytest
from support.examples import EVERY_CASE, each

from zanon_net._core import ConfigError as CoreConfigError
from zanon_net._core import Networks
from zanon_net.config.network_lists import NetworkList, read_networks
from zanon_net.errors import ConfigError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def table(path: Path, text: str) -> NetworkList:
    path.write_text(text)
    networks = read_networks("networks", [str(path)])
    assert networks is not None
    return networks


def packed(address: str) -> bytes:
    parsed = ipaddress.ip_address(address)
    return parsed.packed if parsed.version == 6 else bytes(10) + b"\xff\xff" + parsed.packed


def found(path: Path, text: str, *addresses: str) -> list[tuple[int, str]]:
    core = Networks(table(path, text).table)
    return [core.find(packed(address)) for address in addresses]


FORMATS = {
    "own": "198.51.100.0/24\t64500\tIT\n2001:db8::/32\tAS64501\tFR\n",
    "blanks": "198.51.100.0/24 64500 IT\n2001:db8::/32 64501 FR\n",
    "commas": "198.51.100.0/24,64500,IT\n2001:db8::/32,64501,FR\n",
    "iptoasn": "198.51.100.0\t198.51.100.255\t64500\tIT\tEXAMPLE, Inc.\n"
    "203.0.113.0\t203.0.113.255\t0\tNone\tNot routed\n"
    "2001:db8::\t2001:db8:ffff:ffff:ffff:ffff:ffff:ffff\t64501\tFR\tEXAMPLE\n",
}


@each("name", FORMATS)
def test_every_format(tmp_path: Path, name: str) -> None:
    places = ("198.51.100.7", "203.0.113.1", "198.51.101.0", "198.51.99.255", "2001:db8::1", "::1")
    wanted = [(64500, "IT"), (0, ""), (0, ""), (0, ""), (64501, "FR"), (0, "")]
    assert found(tmp_path / name, FORMATS[name], *places) == wanted


def test_a_file_of_pyasn_has_no_country(tmp_path: Path) -> None:
    networks = table(tmp_path / "asn.dat", "; IP-ASN32-DAT file\n198.51.100.0/24\t64500\n")
    assert (networks.has_as, networks.has_country) == (True, False)
    assert networks.files[0].rows == 1


def test_as_and_country_come_from_the_smallest_row_that_has_them(tmp_path: Path) -> None:
    text = "198.51.100.0/24\t64500\tIT\n198.51.100.64/26\t64501\t-\n198.51.100.64/27\t-\tFR\n"
    text = text.replace("\t-\tFR", "\t0\tFR")
    places = ("198.51.100.1", "198.51.100.100", "198.51.100.70", "198.51.100.130")
    wanted = [(64500, "IT"), (64501, "IT"), (64501, "FR"), (64500, "IT")]
    assert found(tmp_path / "nested", text, *places) == wanted


@pytest.mark.parametrize("version", [4, 6])
def test_the_longest_prefix_is_that_of_brute_force(tmp_path: Path, version: int) -> None:
    rng = random.Random(version)
    bits, base = (32, 0xC6336000) if version == 4 else (128, 0x20010DB8 << 96)
    for _round in range(40 if EVERY_CASE else 8):
        rows: dict[Network, tuple[int, str]] = {}
        for _row in range(rng.randint(1, 60)):
            length = rng.randint(bits - 12, bits)
            at = base + (rng.randrange(1 << 12) >> (bits - length) << (bits - length))
            net = ipaddress.ip_network((at, length))
            rows[net] = rng.randint(1, 5), rng.choice(["IT", "FR", "DE"])
        text = "".join(f"{net}\t{asn}\t{country}\n" for net, (asn, country) in rows.items())
        core = Networks(table(tmp_path / "t", text).table)
        for _address in range(200):
            address = ipaddress.ip_address(base + rng.randrange(-8, (1 << 12) + 8))
            around = [net for net in rows if address in net]
            best = max(around, key=lambda net: net.prefixlen, default=None)
            wanted = (0, "") if best is None else rows[best]
            assert core.find(packed(str(address))) == wanted


@each(
    "text, message",
    [
        ("198.51.100.0/24\n", "line 1 is not a prefix"),
        ("198.51.100.1/24\t1\tIT\n", "line 1 is not a prefix"),
        ("198.51.100.0/33\t1\tIT\n", "line 1 is not a prefix"),
        ("198.51.100.0/24\tx\tIT\n", "line 1 is not a prefix"),
        ("198.51.100.0/24\t1\tItaly\n", "line 1 is not a prefix"),
        ("198.51.100.0/24\t4294967296\tIT\n", "line 1 is not a prefix"),
        ("198.51.100.9\t198.51.100.0\t1\tIT\n", "line 1 is not a prefix"),
        ("198.51.100.0\t2001:db8::\t1\tIT\n", "line 1 is not a prefix"),
        ("# no row\n", "holds no network"),
        (
            "198.51.100.0/24\t1\tIT\n\n198.51.100.0/24\t2\tIT\n",
            "line 1 and .*t line 3 give one network two values",
        ),
        (
            "198.51.100.0\t198.51.100.9\t1\tIT\n198.51.100.5\t198.51.100.20\t2\tIT\n",
            "line 1 and .*t line 2 overlap",
        ),
    ],
)
def test_errors_name_the_lines(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^networks: .*{message}"):
        table(tmp_path / "t", text)


def test_the_core_refuses_rows_out_of_order() -> None:
    row = bytes(16) + (1).to_bytes(4, "little") + b"IT\0\0"
    with pytest.raises(CoreConfigError, match="order of addresses"):
        Networks(row + row)
    with pytest.raises(ValueError, match="cut"):
        Networks(row[:-1])
