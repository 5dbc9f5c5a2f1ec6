# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 frames as a client writes them (RFC 9113)."""

import itertools
from collections.abc import Iterable

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, SETTINGS, PUSH_PROMISE, WINDOW_UPDATE, CONTINUATION = 0, 1, 2, 4, 5, 8, 9
END_STREAM, END_HEADERS, PADDED, PRIORITIZED = 1, 4, 8, 32


def frame(kind: int, payload: bytes = b"", *, flags: int = 0, stream: int = 0) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes([kind, flags])
    return head + stream.to_bytes(4, "big") + payload


def fields(host: bytes | None, *more: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    """The fields of a request."""
    named = [] if host is None else [(b":authority", host)]
    return [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/"), *named, *more]


class Client:
    """A connection's client side: its header table and its stream numbers."""

    def __init__(self) -> None:
        self.encoder = hpack.Encoder()
        self.stream = -1

    def block(self, host: bytes | None, *more: tuple[bytes, bytes]) -> bytes:
        return self.encoder.encode(fields(host, *more))

    def request(
        self, host: bytes | None, *more: tuple[bytes, bytes], cuts: Iterable[int] = ()
    ) -> bytes:
        """HEADERS, and a CONTINUATION behind each cut."""
        return self.headers(self.block(host, *more), cuts=cuts)

    def headers(self, block: bytes, *, cuts: Iterable[int] = ()) -> bytes:
        self.stream += 2
        bounds = [0, *cuts, len(block)]
        parts = [block[a:b] for a, b in itertools.pairwise(bounds)]
        frames = []
        for i, part in enumerate(parts):
            flags = END_HEADERS if i + 1 == len(parts) else 0
            kind = HEADERS if i == 0 else CONTINUATION
            frames.append(frame(kind, part, flags=flags, stream=self.stream))
        return b"".join(frames)


def opening(host: bytes) -> bytes:
    """Preface, settings and a request."""
    return PREFACE + frame(SETTINGS) + Client().request(host)
