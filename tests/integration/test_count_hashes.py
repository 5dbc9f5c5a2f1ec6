# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The hashes in vote messages, beside those of docs/reference/vote-messages.md."""

import hashlib
import hmac
import ipaddress
from pathlib import Path
from typing import Any

import pytest
from support.engine import feed, make_engine, nets
from support.packets import MINUTE, START, visit
from support.paths import ROOT

from zanon_net._core import VOTE_KINDS, read_votes, vote_rules

MASTER = bytes(range(32))
DECIDING = 0xFF000000FFFFFFFF  # bits of a user
SERVER = "2001:db8:5::7"
PAGE = "docs/reference/vote-messages.md"


def keyed(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


K_COUNT = keyed(keyed(bytes(32), MASTER), b"zanon-net/1/count" + bytes(8) + b"\1")


def pair(domain: bytes, value: bytes) -> tuple[int, int]:
    """`lo` and the bits of `hi` that a message has."""
    digest = keyed(K_COUNT, domain + value)
    low, high = (int.from_bytes(digest[at : at + 8], "little") for at in (0, 8))
    return low, high & 0xFF000FFFFFFFFFFF


def user_of(address: str) -> int:
    return pair(b"U", packed(address))[0] & DECIDING


def packed(address: str) -> bytes:
    """An IPv4 address as its mapped one."""
    is_mapped = ipaddress.ip_address(address).version == 4
    return ipaddress.ip_address(f"::ffff:{address}" if is_mapped else address).packed


@pytest.fixture
def chosen(tmp_path: Path) -> dict[str, Any]:
    path = tmp_path / "zanon.key"
    path.write_text("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
    path.chmod(0o600)
    settings = {"z": 5, "window_ns": MINUTE, "rotate_ns": MINUTE, "key_file": str(path)}
    return settings | {"user_prefix": (32, 128), "internal": nets("10.0.0.0/8", "2001:db8:1::/48")}


def votes_of(chosen: dict[str, Any], client: str, server: str) -> dict[str, set[tuple[int, ...]]]:
    """(user, lo, hi) of what one visit has the counter count, by kind."""
    engine = make_engine(**chosen, count_probe="probe")
    engine.count_begin(1)
    feed(engine, visit(client, b"a.example", START, server))
    while engine.finish():
        engine.flush()
    found: dict[str, set[tuple[int, ...]]] = {}
    names = {number: name for name, number in VOTE_KINDS.items()}
    for message in engine.count_messages():
        votes = read_votes(message)
        columns = (votes[name].tolist() for name in ("kind", "user", "lo", "hi"))
        for kind, *vote in zip(*columns, strict=True):
            found.setdefault(names[kind], set()).add(tuple(vote))
    return found


@pytest.mark.parametrize(
    ("client", "server"),
    [
        ("10.1.2.3", "198.51.100.7"),
        ("2001:db8:1::ffff:a01:203", SERVER),  # whose last bytes are the other's
        ("2001:db8:1:6572:3a01:203:a01:203", SERVER),
    ],
)
def test_a_message_holds_the_documented_hashes(
    chosen: dict[str, Any], client: str, server: str
) -> None:
    votes = votes_of(chosen, client, server)
    assert votes["name"] == {(user_of(client), *pair(b"n", b"a.example"))}
    assert votes["addr"] == {(user_of(client), *pair(b"A", packed(server)))}
    assert votes["client"] == {(0, *pair(b"A", packed(client)))}


def test_each_message_says_under_which_key_its_hashes_are(chosen: dict[str, Any]) -> None:
    """That of no generation, so that the rules of probes do not change with the time."""
    check = int.from_bytes(keyed(K_COUNT, b"K")[:5], "little")
    day = 24 * 60 * MINUTE
    for more in ({}, {"count_rotate_ns": day}):
        engine = make_engine(**chosen, **more, count_probe="probe")
        engine.count_begin(2)
        feed(engine, visit("10.1.2.3", b"a.example", START, "198.51.100.7"))
        while engine.finish():
            engine.flush()
        headers = [read_votes(message) for message in engine.count_messages()]
        assert headers
        rules = vote_rules(user_prefix=(32, 128), internal=True, key_check=check)
        assert {header["rules"] for header in headers} == {rules}


def test_no_value_that_somebody_chooses_has_the_hash_of_a_user_or_a_client() -> None:
    """The first byte says what is hashed. A user agent, which is whatever its user likes, was told
    from a user by four bytes before, of which its namespace was the first."""
    source = (ROOT / "csrc" / "anonymity" / "votes.c").read_text("utf-8")
    namespaces = source.partition("namespaces[]")[2].partition("};")[0].split("'")[1::2]
    assert len(namespaces) == len(set(namespaces)) == 7
    assert not set(namespaces) & set("AKPU")


@pytest.mark.source
def test_the_pages_examples() -> None:
    page = (ROOT / PAGE).read_text("utf-8")
    assert f"K_count is `{K_COUNT.hex()}`" in " ".join(page.split())
    for domain, address in ((b"U", "10.1.2.3"), (b"A", "10.1.2.3"), (b"U", "2001:db8:1::7")):
        digest = keyed(K_COUNT, domain + packed(address)).hex()[:32]
        assert f"| `{domain.decode()}` and {address} | `{digest}` |" in page
    name = keyed(K_COUNT, b"n" + b"a.example").hex()[:32]
    assert f"| `n` and a.example | `{name}` |" in page
    assert f"| `K` | `{keyed(K_COUNT, b'K').hex()[:32]}` |" in page
