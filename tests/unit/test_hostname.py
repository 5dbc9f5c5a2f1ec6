# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Hostnames: the one form in which a name is counted, and what is no name."""

import ipaddress
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.examples import each

from zanon_net._core import normalize_host

NAMES = {
    b"example.org": "example.org",
    b"WWW.Example.ORG": "www.example.org",
    b"example.org.": "example.org",
    b"example.org:443": "example.org",
    b"example.org.:443": "example.org",
    b"example.org:": "example.org",
    b"localhost": "localhost",
    b"_dmarc.example.org": "_dmarc.example.org",
    b"a_b.example": "a_b.example",
    b"x--y.example": "x--y.example",
    b"xn--bcher-kva.example": "xn--bcher-kva.example",
    b"3com.example": "3com.example",
    b"1e100.example": "1e100.example",
    b"1e100": "1e100",
    b"10.1.1.a": "10.1.1.a",
    b"0a.1": "0a.1",
    b"0x1g": "0x1g",
    b"00x1": "00x1",
    b"1x1": "1x1",
    b"x.1": "x.1",
    b"0x.example": "0x.example",
    b"example.123": "example.123",
    b"1.2.3.4.example": "1.2.3.4.example",
    b"localx": "localx",
    b"mylocal": "mylocal",
    b"local.example": "local.example",
    b"home.arpa.example": "home.arpa.example",
    b"xin-addr.arpa": "xin-addr.arpa",
    b"a" * 63 + b".example": "a" * 63 + ".example",
}
HOMES = (
    b"printer.local",
    b"LOCAL",
    b"local.",
    b"a.b.Local:80",
    b"1.0.0.10.in-addr.arpa",
    b"in-addr.arpa",
    b"b.a.9.8.ip6.arpa",
    b"router.home.arpa.",
    b"home.arpa",
)
ADDRESSES = (
    b"192.0.2.1",
    b"192.0.2.1:8080",
    b"192.0.2.1.",
    b"0.0.0.0",
    b"167837959",
    b"1.2.3",
    b"10.65799:80",
    b"012.1.1.7",
    b"010.001.001.008",
    b"0xa010107",
    b"0XA.0x1.1.7.",
    b"0x",
    b"256.1.1.1",
    b"[2001:db8::1]",
    b"[2001:db8::1]:443",
    b"[2001:db8::1]:",
    b"2001:db8::1",
    b"::",
    b"::ffff:192.0.2.1",
)
INVALID = (
    b"a..b",
    b".example.org",
    b"example.org..",
    b"-a.example",
    b"a-.example",
    b"example.-",
    b"two words",
    b"a/b",
    b"a,b",
    b"user@example.org",
    b"caf\xc3\xa9.example",
    b"nul\0.example",
    b"new\nline.example",
    b"tab\t.example",
    b"*.example.org",
    b"example.org:https",
    b"example.org:80:80",
    b"[]",
    b"[::1",
    b"[::1]x",
    b"[::1]80",
    b"[example.org]",
    b"[192.0.2.1]",
    b"fe80::1%eth0",
    b"a" * 64 + b".example",
    b".".join([b"a" * 49] * 5) + b".toolong",
)


@each("raw", NAMES)
def test_names(raw: bytes) -> None:
    assert normalize_host(raw) == ("name", NAMES[raw])


@pytest.mark.parametrize("raw", HOMES)
def test_homes_and_addresses_spelled_as_names(raw: bytes) -> None:
    kind, text = normalize_host(raw)
    assert kind == "home"
    assert text == raw.decode().lower().partition(":")[0].rstrip(".")


@each("raw", ADDRESSES)
def test_addresses_are_no_names(raw: bytes) -> None:
    assert normalize_host(raw) == ("address", "")


@pytest.mark.parametrize("raw", [b"", b".", b":80", b".:80"])
def test_nothing(raw: bytes) -> None:
    assert normalize_host(raw) == ("empty", "")


@each("raw", INVALID)
def test_invalid_names(raw: bytes) -> None:
    assert normalize_host(raw) == ("invalid", "")


def test_253_bytes_are_the_most() -> None:
    longest = b".".join([b"a" * 49] * 5) + b".abc"
    assert len(longest) == 253
    assert normalize_host(longest) == ("name", longest.decode())
    assert normalize_host(longest + b".:65535") == ("name", longest.decode())
    assert normalize_host(longest + b"d") == ("invalid", "")


# ---- against the rules as regular expressions ---------------------------------------------------

LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
HOST = re.compile(rf"(?=.{{1,253}}\Z){LABEL}(?:\.{LABEL})*")
HOME = re.compile(r"(?:.*\.)?(?:in-addr\.arpa|ip6\.arpa|local|home\.arpa)")


def is_address(text: str, version: int) -> bool:
    try:
        return "%" not in text and ipaddress.ip_address(text).version == version
    except ValueError:
        return False


def by_the_rules(raw: bytes) -> tuple[str, str]:
    text = raw.decode("latin-1")
    bracketed = re.fullmatch(r"\[([^\]]+)\](?::[0-9]*)?", text, re.DOTALL)
    if bracketed or is_address(text, 6):
        inner = bracketed[1] if bracketed else text
        return ("address" if is_address(inner, 6) else "invalid"), ""
    with_port = re.fullmatch(r"([^:]*):[0-9]*", text, re.DOTALL)
    host = (with_port[1] if with_port else text).removesuffix(".")
    if not host:
        return "empty", ""
    name = host.lower()
    if not HOST.fullmatch(name):
        return "invalid", ""
    if all(re.fullmatch(r"[0-9]+|0x[0-9a-f]*", label) for label in name.split(".")):
        return "address", ""
    return ("home" if HOME.fullmatch(name) else "name"), name


WORDS = ["a", "Z", "0", "-", "_", ".", ":", "[", "]", "::", "1.2.3.4", "local", "ip6.arpa", "%"]
WORDS += ["0x", "a.", "9", "home", ".arpa", "in-addr", ":80", "\u00e9", "/"]
PIECES = st.sampled_from([*WORDS, "a" * 62, "b.c." * 60, " ", "\0", "\n"])


@given(st.one_of(st.lists(PIECES, max_size=8).map("".join), st.text(max_size=12)))
@example("\u212a.example")  # the Kelvin sign: its lower case is an ASCII letter
def test_any_text(text: str) -> None:
    raw = text.encode()
    assert normalize_host(raw) == by_the_rules(raw)


@given(st.binary(max_size=300))
def test_any_bytes(raw: bytes) -> None:
    assert normalize_host(raw) == by_the_rules(raw)


LABELS = st.lists(st.from_regex(LABEL, fullmatch=True), min_size=1, max_size=12)


@given(LABELS.map(".".join).filter(HOST.fullmatch))
def test_a_normal_form_stays_as_it_is(name: str) -> None:
    kind, text = normalize_host(name.encode())
    if kind in ("name", "home"):
        assert text == name
        assert normalize_host(text.upper().encode() + b".:80") == (kind, text)
