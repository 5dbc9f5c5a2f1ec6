# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Heads of HTTP/1.x for anonymized packets: csrc/build/build_http.h, build_name.h."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire
from support.examples import each
from support.paths import ROOT

from zanon_net import _core

pytestmark = pytest.mark.source  # a wheel has no builders for tests


def built(head: bytes, *, name: bool = True) -> bytes:
    done, out = _core.build_http_request(head, name=name)
    assert done
    assert len(out) == len(head)
    return bytes(out)


def response(data: bytes) -> bytes:
    done, out = _core.build_http_response(data)
    assert done
    assert len(out) == len(data)
    return bytes(out)


def masked(n: int) -> bytes:
    return b"x" * n if n < 10 else b"x" * (n - 8) + b".invalid"


def padding(n: int) -> bytes:
    """The field that replaces others, of n bytes."""
    return b"X-Padding: " + b"x" * (n - 13) + b"\r\n"


GET = b"GET / HTTP/1.1\r\n"
# Request, and what is built of it where its host may be shown.
REQUESTS = {
    "plain": (GET + b"Host: a.example\r\n\r\n", GET + b"Host: a.example\r\n\r\n"),
    "case": (GET + b"hOST:A.Example:8080\r\n\r\n", GET + b"Host: a.example:8080\n\r\n"),
    "final dot": (GET + b"Host: A.example.\r\n\r\n", GET + b"Host: a.example.\r\n\r\n"),
    "blanks": (
        b"GET \t /a b \t HTTP/1.0\t\r\nHost :\t a.example \t\r\n\r\n",
        b"GET   /xxx   HTTP/1.0 \r\nHost: a.example\r\nx:x\n\r\n",
    ),
    "bare line feeds": (b"GET /a HTTP/1.1\nA: b\n\n", b"GET /x HTTP/1.1\nx:xx\n\n"),
    "empty lines": (b"\r\n\n" + GET + b"\r\n", b"\r\n\n" + GET + b"\r\n"),
    "target": (b"PUT /a?b=c#d HTTP/1.1\r\n\r\n", b"PUT /xxxxxxx HTTP/1.1\r\n\r\n"),
    "a method that is not registered": (
        b"M-SEARCH * HTTP/1.1\r\nHost: a.example\r\n\r\n",
        b"xxxxxxxx / HTTP/1.1\r\nHost: a.example\r\n\r\n",
    ),
    "a registered method in lower case": (b"get / HTTP/1.1\r\n\r\n", b"xxx / HTTP/1.1\r\n\r\n"),
    "asterisk": (b"OPTIONS * HTTP/1.1\r\n\r\n", b"OPTIONS / HTTP/1.1\r\n\r\n"),
    "absolute": (
        b"GET HTTP://u:p@A.example:8/p?q HTTP/1.1\r\nHost: a.example:8\r\n\r\n",
        b"GET http://xxx@a.example:8/xxx HTTP/1.1\r\nHost: a.example:8\r\n\r\n",
    ),
    "another scheme": (
        b"GET app+id://a.example?q HTTP/1.1\r\n\r\n",
        b"GET xxxxxx://a.example/x HTTP/1.1\r\n\r\n",
    ),
    "no authority": (b"GET file:///home HTTP/1.1\r\n\r\n", b"GET /xxxxxxxxxxx HTTP/1.1\r\n\r\n"),
    "another Host than the target's": (
        b"GET http://a.example/ HTTP/1.1\r\nHost: other.example\r\n\r\n",
        b"GET http://a.example/ HTTP/1.1\r\nHost: xxxxx.invalid\r\n\r\n",
    ),
    "CONNECT": (
        b"CONNECT me@A.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
        b"CONNECT xx@a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n",
    ),
    "address": (
        GET + b"Host: 192.0.2.1\r\n\r\n",
        GET + b"Host: x.invalid\r\n\r\n".replace(b"x.invalid", masked(9)),
    ),
    "IPv6": (GET + b"Host: [2001:db8::1]:80\r\n\r\n", GET + b"Host: " + masked(16) + b"\r\n\r\n"),
    "home": (GET + b"Host: nas.Home.ARPA\r\n\r\n", GET + b"Host: " + masked(13) + b"\r\n\r\n"),
    "port that is none": (GET + b"Host: a.example:8x\r\n\r\n", GET + b"Host: xxxx.invalid\r\n\r\n"),
    "no host": (GET + b"Host:\r\n\r\n", GET + b"Host: \n\r\n"),
    "fields": (
        GET + b"cookie: a=b; c\r\nX-Forwarded-For: 192.0.2.1\r\nuser-AGENT:me/1.0 (a)\r\n\r\n",
        GET + padding(67) + b"\r\n",
    ),
    "spaces in a name": (GET + b"Cookie x: a\r\n: b\r\n\r\n", GET + padding(18) + b"\r\n"),
    "folded": (GET + b"A: b\r\n  secret x\r\n\r\n", GET + padding(18) + b"\r\n"),
    "no colon": (GET + b"some thing\r\n\r\n", GET + b"x:xxxxxxxxx\n\r\n"),
    "returns": (GET + b"A: b\rHost: c\r\n\r\n", GET + b"X-Padding: x\r\n\r\n"),
    "length": (GET + b"content-length:\t007\r\n\r\n", GET + b"Content-Length: 7\r\nx\n\r\n"),
    "length that is none": (
        GET + b"Content-Length: 1a\r\n\r\n",
        GET + b"Content-Length: \r\nx\n\r\n",
    ),
    "codings": (
        GET + b"Transfer-Encoding: secret,  GZip , chunked;a=b,Chunked\r\n\r\n",
        GET + b"Transfer-Encoding: chunked\r\n" + padding(28) + b"\r\n",
    ),
    "options": (
        GET + b"Connection: Keep-Alive, X-Me,close\r\n\r\n",
        GET + padding(36) + b"\r\n",
    ),
    "in another order": (
        GET + b"Upgrade: h2c\r\nA: b\r\nContent-Length: 9\r\nhost: A.example\r\n\r\n",
        GET + b"Host: a.example\r\nContent-Length: 9\r\nUpgrade: \r\nx:xxxxxx\n\r\n",
    ),
    "two lengths": (
        GET + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n",
        GET + b"Content-Length: \r\n" + padding(20) + b"\r\n",
    ),
    "a length in chunks": (
        GET + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        GET + b"Transfer-Encoding: chunked\r\n" + padding(19) + b"\r\n",
    ),
    "no room for blanks": (
        b"GET / HTTP/1.1\nContent-Length:5\nHost:a.example\n\n",
        b"GET / HTTP/1.1\nHost:a.example\nContent-Length:5\n\n",
    ),
    "room for one blank": (
        b"GET / HTTP/1.1\nContent-Length: 5\nHost:a.example\n\n",
        b"GET / HTTP/1.1\nHost: a.example\nContent-Length:5\n\n",
    ),
    "body": (GET + b"A: b\r\n\r\nsecret\r\n", GET + b"x:xxx\n\r\n" + bytes(8)),
    "cut": (GET + b"Host: a.example\r\nCookie: s", GET + b"Host: a.example\r\n" + bytes(9)),
    "cut without a host": (GET + b"A: b\r\nHost: a.exam", GET + b"x:xxx\n" + bytes(12)),
    "cut in the first field": (GET + b"Host: a.exam", GET + bytes(12)),
}


@each("name", REQUESTS)
def test_request(name: str) -> None:
    head, expected = REQUESTS[name]
    assert built(head) == expected


@each("name", REQUESTS)
def test_without_the_name_it_is_masked(name: str) -> None:
    head, expected = REQUESTS[name]
    host = rb"a\.example(\.|:\d+)?"
    assert built(head, name=False) == re.sub(host, lambda m: masked(len(m[0])), expected)


@each("name", REQUESTS)
def test_what_is_built_is_built_of_itself(name: str) -> None:
    expected = REQUESTS[name][1].rstrip(b"\0")
    assert built(expected) == expected


NO_REQUESTS = {
    "nothing": b"",
    "a line not whole": b"GET /secret HTTP/1.1",
    "empty lines only": b"\r\n\r\n",
    "no method": b"<M> * HTTP/1.1\r\nHost: a.example\r\n\r\n",
    "another version": b"GET / HTTP/2.0\r\nHost: a.example\r\n\r\n",
    "two hosts": GET + b"Host: a.example\r\nHost: b.example\r\n\r\n",
    "a folded host": GET + b"Host: a.example\r\n .org\r\n\r\n",
    "too long": GET + b"A: " + b"b" * 16384 + b"\r\n\r\n",
    "no HTTP": b"\x16\x03\x01\x00\x10secret\n",
}


@pytest.mark.parametrize("name", NO_REQUESTS)
def test_no_request(name: str) -> None:
    head = NO_REQUESTS[name]
    assert _core.build_http_request(head, name=True) == (False, bytes(len(head)))


RESPONSES = {
    "plain": (
        b"HTTP/1.1 200 OK\r\nserver: nginx\r\nContent-Length: 6\r\n\r\nsecret",
        b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n" + padding(15) + b"\r\n" + bytes(6),
    ),
    "other phrase": (b"HTTP/1.0 404 Go away\nA: b\n", b"HTTP/1.0 404 xxxxxxx\nx:xx\n"),
    "phrase of another status": (b"HTTP/1.1 404 OK\r\n", b"HTTP/1.1 404 xx\r\n"),
    "no phrase": (b"HTTP/1.1 204\r\nA", b"HTTP/1.1 204\r\n" + bytes(1)),
    "empty phrase": (b"HTTP/1.1 304 \r\n", b"HTTP/1.1 304 \r\n"),
    "host": (b"HTTP/1.1 200 OK\r\nHost: a.b\r\n", b"HTTP/1.1 200 OK\r\nx:xxxxxxxx\n"),
    "cookie": (
        b"HTTP/1.1 302 Found\r\nSet-Cookie: id=7\r\nLocation: http://a/\r\nX-Id: 7\r\n\r\n",
        b"HTTP/1.1 302 Found\r\n" + padding(48) + b"\r\n",
    ),
}


@pytest.mark.parametrize("name", RESPONSES)
def test_response(name: str) -> None:
    data, expected = RESPONSES[name]
    assert response(data) == expected


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"HTTP/1.1 200 OK",
        b"HTTP/2.0 200 OK\r\n",
        b"HTTP/1.x 200 OK\r\n",
        b"HTTP/1.1  200 OK\r\n",
        b"HTTP/1.1 2x0 OK\r\n",
        b"HTTP/1.1 999 Denied\r\n",
        b"HTTP/1.1 099 Denied\r\n",
        b"HTTP/1.1 2000\r\n",
        b"ICY 200 OK\r\n",
        b"secret\r\n",
    ],
)
def test_no_response(data: bytes) -> None:
    assert _core.build_http_response(data) == (False, bytes(len(data)))


def test_a_response_head_has_a_bound() -> None:
    start = b"HTTP/1.1 200 OK\r\n"
    data = start + b"A: bcd\r\n" * 3000
    lines = (16384 - len(start)) // 8
    assert response(data) == start + padding(8 * lines) + bytes(8 * (3000 - lines))


# ---- properties ---------------------------------------------------------------------------------

LABEL = st.from_regex(rb"[A-Za-z0-9_]{1,8}", fullmatch=True)
HOST = st.lists(LABEL, min_size=1, max_size=3).map(b".".join)
VALUE = st.binary(max_size=20).map(lambda v: v.replace(b"\n", b"").replace(b"\r", b""))
NAMES = b"Host|host |Content-Length|Transfer-Encoding|Connection|Upgrade|Cookie|X-Forwarded-For"
FIELD = st.sampled_from([*NAMES.split(b"|"), b"", b" fold", b"Via"])
KNOWN = st.sampled_from([b"chunked", b"12", b"a.example", b"close , upgrade", b"gzip,chunked", b""])
LINE = st.one_of(
    st.builds(lambda n, v: n + b":" + v, FIELD, st.one_of(VALUE, KNOWN)),
    st.just(b"Host: a.example"),
    VALUE,
)
TARGET = st.one_of(
    VALUE.map(lambda v: b"/" + v),
    st.builds(lambda h, v: b"http://" + h + b"/" + v, HOST, VALUE),
    st.builds(lambda u, h: u + b"@" + h + b":443", VALUE, HOST),
)
HEAD = st.builds(
    lambda method, target, end, lines: end.join(
        [method + b" " + target + b" HTTP/1.1", *lines, b"", b""]
    ),
    st.sampled_from([b"GET", b"POST", b"CONNECT", b"HEAD"]),
    TARGET,
    st.sampled_from([b"\r\n", b"\n"]),
    st.lists(LINE, max_size=6),
)
WORDS = rb"x+|x*\.invalid|GET|POST|CONNECT|HEAD|HTTP/1\.1|https?|wss?|ftp|chunked|gzip|"
WORDS += rb"Host|Content-Length: ?[0-9]*|Transfer-Encoding|"
REGISTERED = re.findall(rb'"([A-Z][A-Za-z-]+)"', (ROOT / "csrc/build/build_http.c").read_bytes())
WORDS += b"|".join(sorted(REGISTERED, key=len, reverse=True)) + rb"|[ :,/@.\r\n\0]+"


@given(HEAD, st.booleans(), st.integers(0, 200))
def test_the_parser_reads_the_same(head: bytes, name: bool, cut: int) -> None:
    head = head[: len(head) - cut] if cut > 100 else head
    done, out = _core.build_http_request(head, name=name)
    assert len(out) == len(head)
    if not done:
        assert out == bytes(len(head))
        return
    before, after = (_core.parse_http(data, cut=True) for data in (head, out))
    assert (before[0], before[2:]) == (after[0], after[2:])
    assert after[1] in (before[1].lower(), masked(len(before[1])))


@given(HEAD)
def test_nothing_but_words_of_a_list_is_written(head: bytes) -> None:
    done, out = _core.build_http_request(head, name=False)
    assert not done or re.fullmatch(rb"(?:" + WORDS + rb")*", out)


@given(st.lists(st.sampled_from(b"abyzABYZ01-;= "), min_size=60, max_size=60))
def test_values_of_the_same_length_look_the_same(letters: list[int]) -> None:
    """Of a masked request nothing but lengths is left."""

    def request(text: bytes) -> bytes:
        path, host, cookie, value = text[:9], text[9:25], text[25:40], text[40:]
        host = re.sub(rb"[^0-9A-Za-z]", b"-", host)
        path = path.replace(b" ", b"+")
        fields = b"Host: h" + host + b".org\r\nCookie: " + cookie + b"\r\nForwarded: " + value
        return b"GET /" + path + b" HTTP/1.1\r\n" + fields + b"\r\n\r\n"

    assert built(request(bytes(letters)), name=False) == built(request(b"a" * 60), name=False)


def test_a_changed_byte_leaks_nothing() -> None:
    """Whatever a byte is, what stands around it is not written."""
    head = (
        b"GET /SeCr HTTP/1.1\r\nHost: SeCr.example\r\nCookie: SeCr\r\nA: SeCr\r\n B: SeCr\r\n\r\n"
    )
    for _, changed in wire.off_by_one(head):
        for name in (False, True):
            out = _core.build_http_request(changed, name=name)[1]
            assert not re.search(rb"S|C", out.replace(b"Cookie", b""))
            assert name or b"secr" not in out.lower()


def test_prefixes() -> None:
    """The whole lines of a prefix are built."""
    head, _expected = REQUESTS["fields"]
    for prefix in wire.prefixes(head):
        done, out = _core.build_http_request(prefix, name=True)
        whole = prefix.rfind(b"\n") + 1
        assert done == (whole != 0)
        assert out[: len(GET)] == (GET if done else bytes(len(out)))[: len(out)]
        assert out.rstrip(b"\0").endswith(b"\n") or not done
        assert out[whole:] == bytes(len(prefix) - whole)


OTHER = st.from_regex(rb"(?i)(x-)?[a-z]{1,12}: ?[a-z0-9 ;=]{0,30}", fullmatch=True)
OTHERS = st.lists(OTHER.filter(lambda line: not line.lower().startswith(SHOWN)), max_size=8)
SHOWN = (b"host:", b"content-length:", b"transfer-encoding:", b"upgrade:")


@given(OTHERS, OTHERS, st.integers(0, 8), st.booleans(), st.booleans())
def test_only_the_length_of_other_fields_is_left(
    one: list[bytes], other: list[bytes], place: int, name: bool, is_request: bool
) -> None:
    """Whatever they are, how many they are, and where the fields that are shown stand."""

    def head(lines: list[bytes], at: int, size: int) -> bytes:
        shown = [b"Host: a.example", b"Content-Length: 12"]
        if not is_request:
            del shown[0]
        listed = [*lines[:at], *shown, *lines[at:]]
        missing = size - len(b"\r\n".join(listed))
        first = GET if is_request else b"HTTP/1.1 200 OK\r\n"
        return first + b"\r\n".join([*listed, b"a:" + b"b" * missing, b"", b""])

    size = 40 + sum(len(line) + 2 for line in (*one, *other))
    heads = head(one, place, size), head(other, 0, size)
    outs = [built(data, name=name) if is_request else response(data) for data in heads]
    assert outs[0] == outs[1]
    assert b"Content-Length: 12\r\n" in outs[0]


# ---- names --------------------------------------------------------------------------------------


@given(st.one_of(HOST, VALUE, st.from_regex(rb"[a-z0-9.-]{1,20}(local|arpa)\.?", fullmatch=True)))
def test_allowed_names_are_those_of_the_release(name: bytes) -> None:
    """But for names that end in a number, which are refused more often."""
    kind, text = _core.normalize_host(name)
    if _core.build_name_allowed(name):
        assert kind == "name"
        assert text == name.lower().removesuffix(b".").decode()
    elif kind == "name" and b":" not in name:
        assert re.fullmatch(r"\d+|0x[0-9a-f]*", text.split(".")[-1])


NEVER = [b"", b".", b"a..b", b"-a.b", b"a-.b", b"a b", b"1.2.3.4", b"0x7f.1", b"a.0x1f", b"x" * 64]
HOMES = [b"1.in-addr.arpa", b"a.IP6.arpa", b"local", b"A.Local.", b"home.arpa", b"a.b.home.arpa."]


@each("name", [*NEVER, *HOMES, b".".join([b"x" * 62] * 5)])
def test_names_that_are_never_written(name: bytes) -> None:
    assert not _core.build_name_allowed(name)


@pytest.mark.parametrize("name", [b"a", b"a.b.", b"_x.Y-z", b"xlocal", b"notip6.arpa", b"1.com"])
def test_names_that_may_be_written(name: bytes) -> None:
    assert _core.build_name_allowed(name)
