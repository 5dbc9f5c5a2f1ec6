# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The host of an HTTP/1.x request: RFC 9110 7.2, RFC 9112 3."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import wire
from support.examples import each
from support.wire import HOST

from zanon_net import _core

HEAD_MAX = 16384


def head(*lines: bytes, target: bytes = b"/", method: bytes = b"GET") -> bytes:
    """A request head with these field lines."""
    return b"\r\n".join([method + b" " + target + b" HTTP/1.1", *lines, b"", b""])


def host(data: bytes) -> bytes:
    state, name, _, _ = _core.parse_http(data)
    assert state == "done"
    return name


HEADS = {
    "plain": head(b"Host: www.example.org"),
    "more fields": head(b"Accept: */*", b"Host: www.example.org", b"User-Agent: x", b"X: Host: y"),
    "lower case": head(b"host: www.example.org"),
    "upper case": head(b"HOST: www.example.org"),
    "no space": head(b"Host:www.example.org"),
    "blanks": head(b"Host: \t  www.example.org \t "),
    "blank before the colon": head(b"Host : www.example.org"),
    "twice the same": head(b"Host: www.example.org", b"A: b", b"host:WWW.example.org"),
    "line feeds": b"GET / HTTP/1.1\nHost: www.example.org\n\n",
    "mixed line ends": b"GET / HTTP/1.1\r\nA: b\nHost: www.example.org\n\r\n",
    "HTTP/1.0": b"GET / HTTP/1.0\r\nHost: www.example.org\r\n\r\n",
    "several spaces": b"GET   /index   HTTP/1.1 \r\nHost: www.example.org\r\n\r\n",
    "a space in the target": head(b"Host: www.example.org", target=b"/a b"),
    "beyond ASCII": head("X: ü".encode(), b"Host: www.example.org", target="/ü".encode()),
    "absolute": head(b"Host: other.example", target=b"http://www.example.org/x?y"),
    "absolute without Host": head(target=b"http://www.example.org"),
    "absolute with query": head(target=b"http://www.example.org?q=http://other.example/@x"),
    "absolute with userinfo": head(target=b"ftp://a:b@c@www.example.org/@d"),
    "CONNECT with userinfo": head(target=b"me@www.example.org", method=b"CONNECT"),
    "folded other field": head(b"A: b", b" Host: other.example", b"Host: www.example.org"),
    "line without colon": head(b"nonsense", b"Host: www.example.org"),
    "fields that look alike": head(b"XHost: a", b"Host2: b", b"Hos: c", b"Host: www.example.org"),
    "WebDAV": head(b"Host: www.example.org", method=b"PROPFIND"),
}


@each("data", HEADS.values())
def test_host(data: bytes) -> None:
    assert host(data).lower() == HOST


@each("data", HEADS.values())
def test_a_prefix_gives_no_host(data: bytes) -> None:
    for prefix in wire.prefixes(data):
        assert _core.parse_http(prefix) == ("need_more", b"", 0, 0)


@each("data", HEADS.values())
def test_the_head_ends_at_the_empty_line(data: bytes) -> None:
    for after in (b"x", b"\r\n\r\n", b"GET / HTTP/1.1\r\nHost: other.example\r\n\r\n"):
        assert _core.parse_http(data + after)[1:] == _core.parse_http(data)[1:]
        assert _core.parse_http(data + after)[3] == len(data)


@pytest.mark.parametrize(
    "method", [b"get", b"GETS", b"M-SEARCH", b"X1", b"ET", b"PRI", b"*", b"GE"]
)
def test_a_word_that_is_not_registered_is_no_method(method: bytes) -> None:
    data = head(b"Host: www.example.org", method=method)
    for n in range(len(method) + 1, len(data) + 1):
        assert _core.parse_http(data[:n])[0] == "other"


@pytest.mark.parametrize("before", [b"\r\n", b"\n", b"\r\n\n\r\n"])
def test_empty_lines_before_a_request_are_passed_over(before: bytes) -> None:
    data = head(b"Host: www.example.org")
    state, name, _method, used = _core.parse_http(before + data)
    assert (state, name, used) == ("done", HOST, len(before + data))


CUT = b"GET / HTTP/1.1\r\nA: b\r\nHost: www.example.org\r\n"


@pytest.mark.parametrize(
    "rest", [b"", b"U", b"User-Agent: x", b"User-Agent: x\r\n", b"Ho", b"\r", b"Host2: y"]
)
def test_a_cut_head_has_the_host_of_its_whole_line(rest: bytes) -> None:
    data = CUT + rest
    assert _core.parse_http(data)[0] == "need_more"
    assert _core.parse_http(data, cut=True) == ("done", HOST, 1, len(data))
    for n in range(len(CUT)):
        assert _core.parse_http(data[:n], cut=True)[:2] == ("need_more", b"")


@pytest.mark.parametrize("rest", [b"Host: other.example", b"host:", b" x", b"\t", b"Host: o\r\n"])
def test_what_a_cut_head_shows_may_not_contradict_it(rest: bytes) -> None:
    assert _core.parse_http(CUT + rest, cut=True)[0] == "malformed"


def test_the_request_line_of_a_cut_head_may_name_the_host() -> None:
    line = b"GET http://www.example.org/ HTTP/1.1\r\n"
    assert _core.parse_http(line + b"Host: oth", cut=True)[:2] == ("done", HOST)
    assert _core.parse_http(line[:-1], cut=True)[0] == "need_more"


def test_the_port_stays() -> None:
    assert host(head(b"Host: www.example.org:8080")) == b"www.example.org:8080"
    assert host(head(target=b"www.example.org:443", method=b"CONNECT")) == b"www.example.org:443"
    assert host(head(b"Host: [2001:db8::1]:80")) == b"[2001:db8::1]:80"


def test_a_host_of_more_than_63_bytes_is_read_whole() -> None:
    name = b".".join([b"a" * 60] * 4)
    assert host(head(b"Host: " + name)) == name


@pytest.mark.parametrize(
    "data",
    [
        head(),
        head(b"Host:"),
        head(b"Host: \t"),
        head(target=b"*", method=b"OPTIONS"),
        head(target=b"/http://www.example.org/"),
        head(target=b"//www.example.org/"),
        head(b"X-Forwarded-Host: www.example.org"),
    ],
)
def test_no_host(data: bytes) -> None:
    assert host(data) == b""


@pytest.mark.parametrize(
    "data",
    [
        head(b"Host: www.example.org", b"Host: other.example"),
        head(b"Host: www.example.org", b"Host:"),
        head(b"Host: www.example.org", b"host : other.example"),
        head(b"Host: www.example.org", b" .other.example"),
        head(b"Host:", b"\twww.example.org"),
    ],
)
def test_a_host_that_receivers_could_read_differently_is_malformed(data: bytes) -> None:
    assert _core.parse_http(data) == ("malformed", b"", 0, 0)


METHODS = "ACL BASELINE-CONTROL BIND CHECKIN CHECKOUT CONNECT COPY DELETE GET HEAD LABEL LINK LOCK"
METHODS += " MERGE MKACTIVITY MKCALENDAR MKCOL MKREDIRECTREF MKWORKSPACE MOVE OPTIONS ORDERPATCH"
METHODS += " PATCH POST PROPFIND PROPPATCH PUT QUERY REBIND REPORT SEARCH TRACE UNBIND UNCHECKOUT"
METHODS += " UNLINK UNLOCK UPDATE UPDATEREDIRECTREF VERSION-CONTROL"  # IANA's registry, of HTTP/1


@each("method", METHODS.split())
def test_methods(method: str) -> None:
    target = HOST if method == "CONNECT" else b"/"
    data = head(b"Host: www.example.org", target=target, method=method.encode())
    assert _core.parse_http(data) == ("done", HOST, 2 if method == "POST" else 1, len(data))
    for prefix in wire.prefixes(data):
        assert _core.parse_http(prefix)[0] == "need_more"


@each(
    "data",
    [
        b"<34>Oct 11 x GET / HTTP/1.1\r\n",
        b"127.0.0.1 GET / HTTP/1.1\r\n",
        b"GET%00 / HTTP/1.1\r\n",
        b"A" * 33 + b" / HTTP/1.1\r\n",
        b"\r\n",
        b"\r\n" * 9 + b"GET / HTTP/1.1\r\n",
        b"GET\t/ HTTP/1.1\r\n",
        b" GET / HTTP/1.1\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"\x16\3\1\2\0\1",
        b"GET /\r\n",
        b"GET\r\n",
        b"GET \r\n",
        b"GET / HTTP/2.0\r\n",
        b"GET / HTTP/1\r\n",
        b"GET / HTTP/1.x\r\n",
        b"GET / HTTP/1.10\r\n",
        b"GET / http/1.1\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"OPTIONS rtsp://www.example.org/ RTSP/1.0\r\n",
        b"NOTIFY sip:x@www.example.org SIP/2.0\r\n",
        b"GET /\0 HTTP/1.1\r\n",
        b"GET /\0",
        b"POST \x01\x02",
        b"SSH-2.0-x\r\n",
        b"\r",
        b"GE\r",
    ],
)
def test_other_streams(data: bytes) -> None:
    assert _core.parse_http(data) == ("other", b"", 0, 0)
    assert _core.parse_http(data + b"Host: www.example.org\r\n\r\n")[0] == "other"


@pytest.mark.parametrize("start", [b"", b"G", b"GE", b"GET", b"GET ", b"GET /", b"PROP", b"M"])
def test_a_short_start_needs_more(start: bytes) -> None:
    assert _core.parse_http(start)[0] == "need_more"


def test_the_longest_head() -> None:
    field = b"X: " + b"y" * (HEAD_MAX - len(head(b"Host: www.example.org", b"X: ")))
    longest = head(b"Host: www.example.org", field)
    assert len(longest) == HEAD_MAX
    assert host(longest) == HOST
    assert _core.parse_http(longest[:-1])[0] == "need_more"
    assert _core.parse_http(b"GET /" + b"x" * HEAD_MAX)[0] == "malformed"
    assert _core.parse_http(head(field + b"y" * 30, b"Host: www.example.org"))[0] == "malformed"


def test_a_longer_head_has_the_host_of_its_whole_line() -> None:
    """The head's bytes up to the field that is not whole are read."""
    before = head(b"Host: www.example.org").removesuffix(b"\r\n")
    for field in (b"X: ", b"Cookie: a=", b"y"):
        data = before + field + b"y" * HEAD_MAX
        assert _core.parse_http(data) == ("done", HOST, 1, len(before))
    for rest in (b"Host: b.example" + b"y" * HEAD_MAX, b" fold" + b"y" * HEAD_MAX):
        assert _core.parse_http(before + rest)[0] == "malformed"
    absolute = b"GET http://www.example.org/ HTTP/1.1\r\nX: " + b"y" * HEAD_MAX
    assert _core.parse_http(absolute)[:2] == ("done", HOST)


@each("line", [b"OPTIONS HTTP/1.1", b"GET  HTTP/1.0", b"OPTIONS  \t HTTP/1.1"])
def test_the_target_of_a_registered_method_may_be_missing(line: bytes) -> None:
    data = line + b"\r\nHost: www.example.org\r\n\r\n"
    assert _core.parse_http(data) == ("done", HOST, 1, len(data))
    other = data.replace(line.split()[0], b"PURGE")
    assert _core.parse_http(other, any_method=True)[0] == "other"


FIELD = st.sampled_from([b"Host: a", b"Host:", b"Host", b" ", b"\t", b"\r\n", b"\n", b":", b"Hos"])
LINES = st.lists(FIELD | st.binary(max_size=8), max_size=30).map(b"".join)


@given(st.binary(max_size=200) | LINES)
def test_any_bytes_end_in_a_state(data: bytes) -> None:
    for start in (b"", b"GET / HTTP/1.1\r\n", b"CONNECT "):
        state, name, method, size = _core.parse_http(start + data)
        assert name in start + data
        assert (size > 0) == (method > 0) == (state == "done")


@given(LINES, st.data())
def test_a_cut_gives_the_same_host_or_none(data: bytes, draw: st.DataObject) -> None:
    whole = b"GET / HTTP/1.1\r\n" + data
    cut = draw.draw(st.integers(0, len(whole)))
    state, name, _, _ = _core.parse_http(whole[:cut])
    if state == "done":
        assert name == _core.parse_http(whole)[1]
