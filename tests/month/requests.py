# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Requests that a server of metrics may get: right ones, odd ones, and what is no HTTP at all."""

import random
import socket
from collections.abc import Callable

from zanon_net.pipeline.metrics import METRICS

PATIENCE_S = 30.0
METHODS = (b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"TRACE", b"CONNECT", b"PRI")
ODD_VERSIONS = (b"HTTP/0.9", b"HTTP/2.0", b"HTTP/9.99", b"HTTP/-1", b"HTTP/1.1.1", b"", b"X")
PATHS = (b"/metrics", b"/", b"/../../etc/passwd", b"//[", b"/%2e%2e", b"*", b"http://a/metrics")
HEADERS = (
    b"Accept: application/openmetrics-text; version=1.0.0",
    b"Accept: text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
    b"Accept: application/openmetrics-text;version=9;escaping=dots",
    b"Accept: ;;q=,",
    b"Accept-Encoding: gzip",
    b"Accept-Encoding: br, gzip;q=0",
    b"Connection: keep-alive",
    b"Expect: 100-continue",
    b"Transfer-Encoding: chunked",
    b"Content-Length: -1",
    b"Content-Length: 99999999999999999999",
    b"Host: ",
    b": nothing",
    b" folded",
)


def any_bytes(draw: random.Random, most: int) -> bytes:
    return draw.randbytes(draw.randrange(most))


def _path(draw: random.Random) -> bytes:
    path = draw.choice(PATHS)
    if draw.random() < 0.1:
        path = b"/" + any_bytes(draw, 200)
    queries = (
        b"",
        b"?name[]=" + draw.choice(METRICS).full_name.encode(),
        b"?name[]=zanon_packets_total&name[]=%ff",
        b"?" + any_bytes(draw, 40).hex().encode(),
        b"?name[]=" + any_bytes(draw, 40),
    )
    return path + draw.choice(queries)


def _headers(draw: random.Random) -> bytes:
    lines = draw.choices(HEADERS, k=draw.randrange(5))
    if draw.random() < 0.05:
        lines.append(b"X: " + any_bytes(draw, 300))
    return b"".join(line + b"\r\n" for line in lines)


def usual(draw: random.Random) -> bytes:
    """What Prometheus, a browser or curl may send."""
    path = draw.choice((b"/metrics", b"/", _path(draw)))
    return b"GET " + path + b" HTTP/1.1\r\nHost: a\r\n" + _headers(draw) + b"\r\n"


def odd(draw: random.Random) -> bytes:
    """Another method, version or path, with a body or a second request behind it."""
    version = draw.choice((b"HTTP/1.1", b"HTTP/1.0", draw.choice(ODD_VERSIONS)))
    line = b" ".join((draw.choice(METHODS), _path(draw), version))
    rest = draw.choice((b"", any_bytes(draw, 100), b"GET / HTTP/1.1\r\n\r\n"))
    return line + b"\r\n" + _headers(draw) + b"\r\n" + rest


def broken(draw: random.Random) -> bytes:
    """Bytes in other places, or none where there should be some."""
    data = bytearray(odd(draw))
    for _ in range(draw.randrange(1, 8)):
        at = draw.randrange(len(data))
        data[at : at + draw.randrange(3)] = any_bytes(draw, 4)
    return bytes(data[: draw.randrange(1, len(data) + 1)])


def noise(draw: random.Random) -> bytes:
    """Anything, such as the first bytes of TLS."""
    return draw.choice((any_bytes(draw, 400), b"\x16\x03\x01" + any_bytes(draw, 200), b"\r\n", b""))


def large(draw: random.Random) -> bytes:
    """A line that is too long, or too many headers."""
    line = b"GET /" + b"a" * draw.randrange(60_000, 70_000) + b" HTTP/1.1\r\n\r\n"
    headers = b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * draw.randrange(90, 200) + b"\r\n"
    return draw.choice((line, headers))


KINDS: tuple[tuple[Callable[[random.Random], bytes], int], ...] = (
    (usual, 40),
    (odd, 30),
    (broken, 19),
    (noise, 10),
    (large, 1),
)
_MAKERS, _WEIGHTS = zip(*KINDS, strict=True)


def request(draw: random.Random) -> bytes:
    """One of them."""
    (make,) = draw.choices(_MAKERS, _WEIGHTS)
    made: bytes = make(draw)
    return made


def answer(port: int, sent: bytes, *, reads: bool) -> bytes:
    """What the server answers to the bytes. reads: whether the client waits for it."""
    heard = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S) as client:
        try:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            while reads and (piece := client.recv(1 << 16)):
                heard += piece
        except (BrokenPipeError, ConnectionResetError):  # it had heard enough
            pass
    return bytes(heard)
