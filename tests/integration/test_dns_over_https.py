# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""DNS over HTTPS (RFC 8484) in clear, as a proxy that ends TLS shows it: the question is a name of
DNS beside the host of the request."""

import base64
import struct

from support import h2
from support.engine import ALL, run
from support.examples import each
from support.packets import SERVER, Tcp, dns, request
from support.stream import OTHER, segments, talk_of

RESOLVER, ASKED = b"resolver.example", b"asked.example"
QUESTION = dns(ASKED, ident=0)
MEDIA_TYPE = b"application/dns-message"
WEB = (40000, 80)


def encoded(message: bytes) -> bytes:
    return base64.urlsafe_b64encode(message).rstrip(b"=")


def get(parameter: bytes, path: bytes = b"/dns-query?") -> bytes:
    return request(RESOLVER).replace(b" / ", b" " + path + parameter + b" ")


def post(body: bytes, media_type: bytes = MEDIA_TYPE, *lines: bytes) -> bytes:
    head = request(RESOLVER, b"POST").removesuffix(b"\r\n") + b"Content-Type: " + media_type
    length = b"\r\nContent-Length: %d\r\n" % len(body)
    return head + length + b"".join(lines) + b"\r\n" + body


def chunked(body: bytes, size: int, *, extension: bytes = b"", trailer: bytes = b"") -> bytes:
    """A request whose body comes in chunks of the size."""
    head = post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    parts = segments(body, size)
    chunks = [b"%x%s\r\n%s\r\n" % (len(part), extension, part) for part in parts]
    return head + b"".join(chunks) + b"0\r\n" + trailer + b"\r\n"


def padded(name: bytes, size: int) -> bytes:
    """A question with an option that pads the message (RFC 7830) to about this size."""
    option = struct.pack(">HH", 12, size) + bytes(size)
    record = b"\0" + struct.pack(">HHIH", 41, 4096, 0, len(option)) + option
    message = dns(name, ident=0)
    return message[:10] + b"\0\1" + message[12:] + record


def seen(talk: Tcp, **more: object) -> list[tuple[str, str]]:
    outcome = run(talk.close().frames, **({"z": 1} | more))
    return sorted((o["name_source"], o["name"]) for o in outcome.observations)


BOTH = [("dns", "asked.example"), ("http", "resolver.example")]
REQUESTS = {
    "GET": get(b"dns=" + encoded(QUESTION)),
    "GET, padded": get(b"dns=" + base64.urlsafe_b64encode(QUESTION)),
    "GET, second parameter": get(b"ct=&dns=" + encoded(QUESTION) + b"&x=1"),
    "GET, another path": get(b"dns=" + encoded(QUESTION), b"/resolve/me?"),
    "GET, absolute": get(b"dns=" + encoded(QUESTION), b"http://resolver.example/q?"),
    "POST": post(QUESTION),
    "POST, parameter": post(QUESTION, b"Application/DNS-Message ; x=y"),
    "POST, long": post(padded(ASKED, 3000)),
    "GET, long": get(b"dns=" + encoded(padded(ASKED, 1500))),
    "chunked": chunked(QUESTION, 1000),
    "chunked, in parts": chunked(QUESTION, 5, extension=b";x=y", trailer=b"A: b\r\n"),
    "chunked, long": chunked(padded(ASKED, 3000), 700),
}


@each("case", REQUESTS)
def test_the_question_is_a_name_of_dns(case: str) -> None:
    data = REQUESTS[case] + request(OTHER)
    expected = sorted([*BOTH, ("http", OTHER.decode())])
    assert seen(talk_of(data, ports=WEB)) == expected
    size = max(7, len(data) // 90)
    assert seen(talk_of(*segments(data, size), ports=WEB)) == expected


def test_a_long_parameter_that_is_no_base64url() -> None:
    wrong = encoded(padded(ASKED, 600)) + b"!"
    assert seen(talk_of(get(b"dns=" + wrong), ports=WEB)) == BOTH[1:]


@each("cut", [5, 60, len(post(QUESTION)) - 3])
def test_a_body_in_another_segment(cut: int) -> None:
    data = post(QUESTION)
    assert seen(talk_of(data[:cut], data[cut:], ports=WEB)) == BOTH


@each("parameter", [b"dns=1.1.1.1", b"dns=cloudflare", b"dns=", b"xdns=" + encoded(QUESTION)])
def test_another_parameter_is_no_question(parameter: bytes) -> None:
    """The record says nothing more of it either."""
    talk = talk_of(get(parameter), ports=WEB)
    assert seen(talk) == BOTH[1:]
    assert run(talk.frames, z=1).stats["suppressed_invalid"] == 0


def test_responses_and_other_opcodes_are_no_questions() -> None:
    answer = dns(ASKED, response=True)
    assert seen(talk_of(get(b"dns=" + encoded(answer)), ports=WEB)) == BOTH[1:]


@each("body", [b"no message of DNS", QUESTION[:-1], dns(ASKED, response=True), bytes(1100)])
def test_a_body_that_cannot_be_read_is_counted(body: bytes) -> None:
    for data in (post(body), chunked(body, 100)):
        outcome = run(talk_of(data, ports=WEB).close().frames, z=2, internal=None)
        assert outcome.stats["suppressed_invalid"] == 1
        assert outcome.stats["suppressed_incomplete"] == 0
        assert outcome.flow["t_start_ns"] % 60_000_000_000 == 0


@each(
    "data",
    [
        chunked(QUESTION, 1, extension=b";" + b"x" * 240),  # more than is kept
        chunked(QUESTION, 9).replace(b"\r\n9\r\n", b"\r\nx\r\n", 2),
        chunked(QUESTION, 9)[:-40],
    ],
)
def test_chunks_that_cannot_be_read_are_counted(data: bytes) -> None:
    outcome = run(talk_of(*segments(data, 400), ports=WEB).close().frames, z=1)
    assert outcome.stats["suppressed_incomplete"] == 1
    assert outcome.released() == {RESOLVER.decode()}


def test_a_body_that_never_comes() -> None:
    talk = talk_of(post(QUESTION)[:-9], ports=WEB).close()
    outcome = run(talk.frames, z=1)
    assert outcome.stats["suppressed_incomplete"] == 1
    assert outcome.released() == {RESOLVER.decode()}


def test_the_namespaces_stay_apart() -> None:
    """A question counts for DNS, and with one count for both. A rare question hides the record."""
    talk = talk_of(REQUESTS["GET"], ports=WEB).close().frames
    other = Tcp(client="10.7.0.2", ports=WEB, t_ns=talk[-1].t_ns + 10**9).handshake()
    other.say(request(ASKED)).say(request(RESOLVER)).close()
    own = run([*talk, *other.frames], z=2)
    assert own.released() == {RESOLVER.decode()}
    assert [flow["name"] for flow in own.flows][-1] is None
    assert run([*talk, *other.frames], z=2, dns_votes=ALL).released() == {
        ASKED.decode(),
        RESOLVER.decode(),
    }


# ---- HTTP/2 -------------------------------------------------------------------------------------

OPENING = h2.PREFACE + h2.frame(h2.SETTINGS)


def headers(client: h2.Client, method: bytes, path: bytes, *more: tuple[bytes, bytes]) -> bytes:
    fields = [(b":method", method), (b":scheme", b"http"), (b":path", path)]
    return client.headers(client.encoder.encode([*fields, (b":authority", RESOLVER), *more]))


def body(client: h2.Client, message: bytes, *, padding: int = 0) -> bytes:
    payload = (bytes([padding]) if padding else b"") + message + bytes(padding)
    flags = h2.END_STREAM | (h2.PADDED if padding else 0)
    return h2.frame(h2.DATA, payload, flags=flags, stream=client.stream)


def post_h2(client: h2.Client, **more: int) -> bytes:
    head = headers(client, b"POST", b"/dns-query", (b"content-type", MEDIA_TYPE))
    return head + body(client, QUESTION, **more)


def test_requests_of_http_2() -> None:
    for padding in (0, 9):
        client = h2.Client()
        data = OPENING + post_h2(client, padding=padding) + client.request(OTHER)
        expected = sorted([*BOTH, ("http", OTHER.decode())])
        assert seen(talk_of(data, ports=WEB)) == expected
        assert seen(talk_of(*segments(data, 11), ports=WEB)) == expected
    client = h2.Client()
    asks = headers(client, b"GET", b"/dns-query?dns=" + encoded(QUESTION))
    assert seen(talk_of(OPENING + asks, ports=WEB)) == BOTH


@each("whole", [True, False])
def test_a_long_body_of_http_2(whole: bool) -> None:
    """Of a body in several frames the first one has the question."""
    client, message = h2.Client(), padded(ASKED, 3000)
    head = headers(client, b"POST", b"/dns-query", (b"content-type", MEDIA_TYPE))
    frames = [body(client, message, padding=9)]
    if not whole:
        parts = (message[:300], message[300:])
        frames = [h2.frame(h2.DATA, part, stream=client.stream) for part in parts]
    data = OPENING + head + b"".join(frames) + client.request(OTHER)
    expected = sorted([*BOTH, ("http", OTHER.decode())])
    assert seen(talk_of(data, ports=WEB)) == expected
    assert seen(talk_of(*segments(data, 99), ports=WEB)) == expected


def test_a_body_of_http_2_that_is_lost() -> None:
    client = h2.Client()
    first = headers(client, b"POST", b"/dns-query", (b"content-type", MEDIA_TYPE))
    data = OPENING + first + post_h2(client)
    outcome = run(talk_of(data, ports=WEB).close().frames, z=1)
    assert outcome.stats["suppressed_incomplete"] == 1
    assert ASKED.decode() in outcome.released()
    client = h2.Client()
    cut = OPENING + post_h2(client)[:-5]
    outcome = run(talk_of(cut, ports=WEB).say(b"x", SERVER).close().frames, z=2, internal=None)
    assert outcome.flow["t_start_ns"] % 60_000_000_000 == 0
    assert outcome.stats["suppressed_incomplete"] == 1
