# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packets that no analyzer asked for are only counted, and no output shows it.

With the E2E columns each segment is counted the long way: the other columns must have the same
values there as here. Built with ZN_DEBUG, as under sanitizers, the engine looks into every packet
that it skips, and stops where that changes anything.
"""

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from support import handshake as hand
from support import wire
from support.engine import TCP_COMPLETE, TCP_NOCOMPLETE, Outcome, run
from support.packets import ACK, CLIENT, FIN, MS, PSH, RST, SECOND, SERVER, SYN, Tcp, hello

DATA = b"\x17\x03\x03\0\x04data"
PAYLOADS = [
    DATA,
    DATA,
    b"x",
    b"GET / HTTP/1.1\r\nHost: www.example\r\n\r\n",
    hello(b"again.example"),
    b"\xff\xfe\xfd\xfc",
    b"",
]
KINDS = [*["next"] * 12, *["ack"] * 4, "unpushed", "again", "ahead", "probe", "bare", "cut"]
KINDS += ["fin", "rst", "stray", "syn"]
WAITS = [*[0] * 20, -5 * MS, SECOND, 11 * SECOND, 301 * SECOND]
OPENINGS = [
    "tls",
    "certificate",
    "handshake",
    "http",
    "unknown",
    "midstream",
    "searched",
    "outside",
]

CERTIFICATES = hand.flight(hand.named("www.example.org"))

Step = tuple[str, int, bytes, int]
steps = st.tuples(
    st.sampled_from(KINDS),
    st.sampled_from([CLIENT, SERVER]),
    st.sampled_from(PAYLOADS),
    st.sampled_from(WAITS),
)


def opened(opening: str) -> Tcp:
    """A connection in which nothing is new any more."""
    outside = {"client": "192.0.2.7", "server": "198.51.100.7"} if opening == "outside" else {}
    talk = Tcp(ports=(40000, 443), **outside)
    if opening != "midstream":
        talk.handshake()
    if opening == "tls":
        talk.say(hello(wire.HOST)).say(wire.record(hand.server_hello(), 0x0303), SERVER)
    elif opening in ("certificate", "handshake"):
        talk.say(hello(wire.HOST)).say(wire.record(CERTIFICATES, 0x0303), SERVER)
        for n in range(0 if opening == "certificate" else 190):
            talk.say(b"\x16\x03\x03\0\1", n % 2)
        return talk
    elif opening == "http":
        talk.say(PAYLOADS[3]).say(b"HTTP/1.1 200 OK\r\n\r\n", SERVER)
    for n in range(16 if opening in ("unknown", "midstream") else 4):
        talk.say(DATA, n % 2)
    return talk


def take(talk: Tcp, step: Step) -> None:
    """One more segment."""
    kind, side, payload, wait_ns = step
    seq = talk.next[side]
    talk.wait(wait_ns)
    match kind:
        case "again":
            talk.segment(side, PSH | ACK, payload, seq=seq - len(payload))
        case "ahead":
            talk.next[side] += 7
            talk.segment(side, PSH | ACK, payload)
        case "probe":
            talk.segment(side, ACK, b"", seq=seq - 1)
        case "bare":
            talk.segment(side, PSH, payload)
        case "ack":
            talk.segment(side, ACK)
        case "stray":  # a RST that is none of the connection
            talk.segment(side, RST, seq=seq + (1 << 28))
        case _:
            more = {"fin": FIN, "rst": RST, "syn": SYN, "unpushed": 0}.get(kind, PSH)
            talk.segment(side, ACK | more, payload if kind != "syn" else b"")
    if kind == "cut":
        talk.frames[-1] = talk.frames[-1].cut(len(talk.frames[-1].data) - len(payload))


def put_out(talk: Tcp, **settings: Any) -> Outcome:
    return run(talk.frames, z=1, batch=7, **settings)


def shown(outcome: Outcome, columns: set[str]) -> list[dict[str, str]]:
    logs = [*outcome.log(TCP_COMPLETE), *outcome.log(TCP_NOCOMPLETE)]
    return [{name: line[name] for name in line if name in columns} for line in logs]


def columns_of(outcome: Outcome) -> set[str]:
    header = outcome.text[TCP_COMPLETE].decode().split("\n")[0].split(" ")
    columns = {word.rpartition("#")[2].partition(":")[0] for word in header}
    return columns - {"c_ip"}  # a pseudonym under a key of each run


NEXT: list[Step] = [("next", n % 2, b"x", 0) for n in range(6)]


@given(st.sampled_from(OPENINGS), st.lists(steps, max_size=40))
@example("tls", [*NEXT, ("fin", CLIENT, b"", 0), ("fin", SERVER, b"", 0), ("ack", CLIENT, b"", 0)])
@example("http", [*NEXT, ("fin", SERVER, b"x", 0), ("next", SERVER, b"x", 0), *NEXT])
@example("handshake", [("next", n % 2, DATA[: n % 3], 0) for n in range(30)])
@example("certificate", [("ack", CLIENT, b"", 0), ("cut", SERVER, DATA, 0), *NEXT])
@example("tls", [*NEXT, ("rst", SERVER, b"", 0), *NEXT])
@example("handshake", [("stray", CLIENT, b"", 0), *NEXT * 4])
@example("unknown", [*NEXT, ("next", CLIENT, b"x", 301 * SECOND), *NEXT])
@example("midstream", [*NEXT, ("next", SERVER, b"x", -5 * MS), *NEXT])
def test_no_column_shows_which_way_a_segment_went(opening: str, taken: list[Step]) -> None:
    talk = opened(opening)
    for step in taken:
        take(talk, step)
    found = put_out(talk)
    looked_into = put_out(talk, columns=("core", "layer7", "e2e"))
    columns = columns_of(found)
    assert shown(found, columns) == shown(looked_into, columns)
    assert found.seen() == looked_into.seen()
    assert found.stats == looked_into.stats


# ---- what a segment begins with -----------------------------------------------------------------

# Text that is no token, so that no method may begin with it. The first byte of the others decides.
TEXT = b"@"
NO_TEXT = [b"\0", b"\2", b"\6", b"\x7f", b"\x80", b"\xff"]
SPOKEN = [
    hello(b"late.example"),
    b"GET / HTTP/1.1\r\nHost: www.example\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n\r\n",
    b"220 mail.example\r\n",
    b"EHLO client\r\n",
    b"STARTTLS\r\n",
]
ways = st.sampled_from([*["next"] * 12, "ack", "again", "ahead", "unpushed", "fin", "cut"])
said = st.one_of([st.integers(4, 7)] * 3 + [st.sampled_from(SPOKEN)])
talks = st.lists(st.tuples(ways, st.sampled_from([CLIENT, SERVER]), said), max_size=50)
Said = tuple[str, int, int | bytes]  # bytes, or how many that begin nothing


def conversation(taken: list[Said], whole: bool, nothing: bytes) -> Outcome:
    talk = Tcp(ports=(40000, 50000))
    if whole:
        talk.handshake()
    for way, side, what in taken:
        take(talk, (way, side, what if isinstance(what, bytes) else nothing * what, 0))
    return put_out(talk)


def compare(taken: list[Said], whole: bool, nothing: bytes) -> None:
    found, text = conversation(taken, whole, nothing), conversation(taken, whole, TEXT)
    assert shown(found, columns_of(found)) == shown(text, columns_of(text))
    assert found.seen() == text.seen()
    assert found.stats == text.stats


def test_what_comes_late_is_found_or_not_whatever_came_before() -> None:
    late: list[list[Said]] = [
        [("next", CLIENT, SPOKEN[0])],
        [("next", SERVER, SPOKEN[3]), ("next", CLIENT, SPOKEN[4])],
    ]
    for spoken in late:
        for count in range(40):
            unread: list[Said] = [("next", n % 2, 4) for n in range(count)]
            compare([*unread, *spoken], True, b"\xff")


@given(st.booleans(), st.sampled_from(NO_TEXT), talks)
def test_bytes_that_begin_nothing_are_all_the_same(
    whole: bool, nothing: bytes, taken: list[Said]
) -> None:
    compare(taken, whole, nothing)
