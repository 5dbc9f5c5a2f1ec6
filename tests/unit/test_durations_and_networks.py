# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Durations and networks, as settings hold them."""

from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import each

from zanon_net import AddressPolicy, Config, ConfigError, ZParams
from zanon_net.config.parse import core_networks, format_duration, parse_duration, parse_network

HOUR_NS = 3_600_000_000_000


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


# ---- durations ----------------------------------------------------------------------------------


@each(
    "value, ns",
    [
        ("1h", HOUR_NS),
        ("90s", 90_000_000_000),
        ("500ms", 500_000_000),
        ("10m", 600_000_000_000),
        ("1d", 24 * HOUR_NS),
        ("7us", 7_000),
        ("1ns", 1),
        ("1.5h", HOUR_NS * 3 // 2),
        ("0.001us", 1),
        (" 2 h ", 2 * HOUR_NS),
        ("3650d", 3650 * 24 * HOUR_NS),
        (1, 1),
        (HOUR_NS, HOUR_NS),
    ],
)
def test_durations(value: int | str, ns: int) -> None:
    assert parse_duration("window", value) == ns
    assert ZParams(window=value).window_ns == ns


@each(
    "value",
    [
        *("", "1", "3600", "0", "h", "1y", "-1h", "1h30m", "1e3s", "0s", "0.5ns", "3651d", "1h\n2"),
        *("\u0663h", "9" * 19 + "d", "nan", "inf s"),
        *(0, -1, 3651 * 24 * HOUR_NS, True, 1.5, None, ["1h"]),
    ],
)
def test_what_is_no_duration(value: object) -> None:
    with pytest.raises(ConfigError, match=r"^window: "):
        Config().replace(window=value)


@given(st.integers(1, 3650 * 24 * HOUR_NS))
def test_a_duration_reads_back(ns: int) -> None:
    assert parse_duration("window", format_duration(ns)) == ns


# ---- networks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("130.192.0.0/255.255.0.0", "130.192.0.0/16"),
        ("130.192.7.9/255.255.254.0", "130.192.6.0/23"),
        ("192.168.1.7/24", "192.168.1.0/24"),
        ("10.1.2.3/32", "10.1.2.3/32"),
        ("0.0.0.0/0.0.0.0", "0.0.0.0/0"),
        (" fd00:: / 8 ", "fd00::/8"),
        ("2001:db8::/ffff:ffff::", "2001:db8::/32"),
        ("::/0", "::/0"),
    ],
)
def test_networks(text: str, network: str) -> None:
    assert str(parse_network(text)) == network


@each(
    "text",
    [
        *("10.0.0.0", "fd00::", "10.0.0.0/", "/8", "", "host/8", "10.0.0/8", "010.0.0.0/8"),
        *("10.0.0.0/33", "10.0.0.0/-1", "fd00::/129", "10.0.0.0/8/8", "10.0.0.0/8 x"),
        *("10.0.0.0/0.0.0.255", "10.0.0.0/255.0.255.0", "10.0.0.0/ffff::", "fe80::%1/64"),
    ],
)
def test_what_is_no_network(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^internal: "):
        AddressPolicy(internal=[text])


def test_a_list_of_networks() -> None:
    policy = AddressPolicy(internal="10.0.0.0/8, fd00::/8,10.0.0.0/8")
    assert policy.internal == ("10.0.0.0/8", "fd00::/8")
    assert AddressPolicy(internal=policy.internal) == policy
    assert AddressPolicy().networks is None


def test_a_file_of_networks_as_tstat_has_them(tmp_path: Path) -> None:
    text = "# campus\n130.192.0.0/255.255.0.0\n\n 10.0.0.0/8 # labs\n2001:db8::/32\n"
    policy = AddressPolicy(internal=write(tmp_path / "nets", text))
    assert policy.internal == ("130.192.0.0/16", "10.0.0.0/8", "2001:db8::/32")
    older = write(tmp_path / "older", "130.192.0.0\n255.255.0.0\n# labs\n10.0.0.0\n255.0.0.0\n")
    assert AddressPolicy(internal=older).internal == ("130.192.0.0/16", "10.0.0.0/8")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "holds no network"),
        ("# only\n", "holds no network"),
        ("10.0.0.0/8\nx\n", "line 2: "),
        ("10.0.0.0\n255.0.255.0\n", "line 1: "),
        ("255.0.0.0\n", "line 1: "),
    ],
)
def test_a_wrong_file_of_networks(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        AddressPolicy(internal=write(tmp_path / "nets", text))


def test_a_file_of_networks_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not a text file"):
        AddressPolicy(internal=str(tmp_path / "bytes"))
    with pytest.raises(ConfigError, match="cannot read"):
        AddressPolicy(internal=str(tmp_path))
    with pytest.raises(ConfigError, match="no file has this name"):
        AddressPolicy(internal=str(tmp_path / "missing"))


def contained(address: str, internal: str) -> bool:
    """What the core's rule, the first `bits` bits of 16 bytes, says of an address."""
    plain = ip_address(address)
    mapped = plain if plain.version == 6 else ip_address(f"::ffff:{plain}")
    networks = AddressPolicy(internal=internal).networks
    assert networks is not None
    for prefix, bits in core_networks(networks):
        assert len(prefix) == 16
        if (int(mapped) ^ int.from_bytes(prefix)) >> (128 - bits) == 0:
            return True
    return False


@pytest.mark.parametrize(
    ("address", "internal", "expected"),
    [
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("8.8.8.8", "0.0.0.0/0", True),
        ("2001:db8::1", "0.0.0.0/0", False),
        ("2001:db8::1", "::/0", True),
        ("::1", "::/0", True),
        ("8.8.8.8", "::/0", False),
        ("8.8.8.8", "::/64", False),
        ("8.8.8.8", "any", True),
        ("2001:db8::1", "any", True),
        ("2001:db8::1", "2001:db8::/32,10.0.0.0/8", True),
    ],
)
def test_networks_as_the_core_reads_them(address: str, internal: str, expected: bool) -> None:
    assert contained(address, internal) is expected
