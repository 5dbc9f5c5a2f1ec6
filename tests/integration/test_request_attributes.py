# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Attributes of SMTP, SIP and STUN (`run --attributes ehlo,sip,stun`): hosts in the form of names,
and over UDP a vote only with the response to the request."""

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from support import requests_wire as requests
from support import wire
from support.engine import feed, make_engine, run
from support.packets import CLIENT, SECOND, SERVER, START, Frame, Tcp, Udp, hello, merged, user

from zanon_net import _core

ALL = ("ehlo", "sip", "stun")
Talk = Callable[[int], list[Frame]]


def mail(
    i: int, greeting: bytes = b"EHLO Mail.Example.ORG.\r\n", *more: bytes, port: int = 25
) -> list[Frame]:
    talk = Tcp(user(i), ports=(40000, port), t_ns=START + i * SECOND).handshake()
    talk.say(b"220 mx.example.net ESMTP\r\n", SERVER).say(greeting)
    for line in more:
        talk.say(line).say(b"250 fine\r\n", SERVER)
    return talk.close().frames


def call(i: int, uri: bytes = b"sip:bob@Example.org:5060;transport=tcp") -> list[Frame]:
    talk = Tcp(user(i), ports=(40000, 5060), t_ns=START + i * SECOND).handshake()
    talk.say(requests.sip(uri)).say(requests.sip(status=b"200 OK"), SERVER)
    return talk.close().frames


def exchange(i: int, port: int, *packets: tuple[int, bytes]) -> list[Frame]:
    talk = Udp(user(i), ports=(40000, port), t_ns=START + i * SECOND)
    for side, payload in packets:
        talk.send(payload, side)
    return talk.frames


def register(i: int) -> list[Frame]:
    answer = requests.sip(status=b"401 Unauthorized")
    return exchange(i, 5060, (CLIENT, requests.sip()), (SERVER, answer))


def allocate(i: int) -> list[Frame]:
    """STUN over TCP; the client's second message is in the same segment."""
    talk = Tcp(user(i), ports=(40000, 3478), t_ns=START + i * SECOND).handshake()
    talk.say(requests.binding(b"libre v1.2") + requests.binding(b"other", b"another one!"))
    return talk.say(requests.bound(), SERVER).close().frames


def bind(i: int) -> list[Frame]:
    request = requests.binding(b"libre v1.2")
    return exchange(i, 3478, (CLIENT, request), (SERVER, requests.bound()))


def texts(frames: Iterable[Frame], word: str, **settings: Any) -> list[str | None]:
    """The cells of a column, by flow. Each was observed; a record hides some of the observed."""
    outcome = run(list(frames), **({"z": 3, "attributes": ALL} | settings))
    cells = [flow[word] for flow in outcome.flows]
    shown = [o["name"] for o in outcome.observations if o["namespace"] == word]
    assert not Counter(cell for cell in cells if cell) - Counter(shown)
    return cells


@pytest.mark.parametrize(
    ("talk", "word", "text"),
    [
        (mail, "ehlo", "mail.example.org"),
        (call, "sip", "example.org"),
        (register, "sip", "example.org"),
        (bind, "stun", "libre%20v1.2"),
        (allocate, "stun", "libre%20v1.2"),
    ],
)
def test_three_users_release_a_text(talk: Talk, word: str, text: str) -> None:
    frames = merged(talk(i) for i in range(4))
    assert texts(frames, word) == [None, None, text, text]
    outcome = run(frames, z=5, attributes=ALL)
    assert outcome.observations == []
    assert text.encode() not in outcome.everything()
    again = merged([talk(i) for i in range(2)] + [talk(0), talk(1)])
    assert texts(again, word) == [None] * len(run(again, z=1).flows)


def test_the_namespaces_are_apart() -> None:
    frames = [*mail(0, b"HELO example.org\r\n"), *call(1), *call(2)]
    assert texts(frames, "sip") == texts(frames, "ehlo") == [None] * 3


@pytest.mark.parametrize(
    "host",
    [
        b"[192.0.2.7]",
        b"[IPv6:2001:db8::1]",
        b"192.0.2.7",
        b"laptop.local",
        b"a..b",
        b"h\xc3\xa9.example",
        b"two words",
        b"x" * 300,
        b"",
    ],
)
def test_what_is_no_host_is_not_shown(host: bytes) -> None:
    frames = merged(mail(i, b"EHLO " + host + b"\r\n") for i in range(4))
    assert texts(frames, "ehlo") == [None] * 4
    assert run(frames, z=3, attributes=ALL).observations == []


def test_a_list_of_names_holds_for_hosts() -> None:
    frames = merged(mail(i) for i in range(4))
    assert texts(frames, "ehlo", never=[b"example.org"]) == [None] * 4


def test_the_host_goes_with_the_name_behind_starttls() -> None:
    secret = hello(b"rare.example")
    frames = merged(mail(i, b"EHLO a.example\r\n", b"STARTTLS\r\n", secret) for i in range(4))
    assert texts(frames, "ehlo") == [None, None, "a.example", "a.example"]
    other = merged(
        mail(i, b"EHLO a.example\r\n", b"STARTTLS\r\n", hello(b"rare%d.example" % i))
        for i in range(4)
    )
    assert texts(other, "ehlo") == [None] * 4
    unread = merged(mail(i, b"EHLO a.example\r\n", b"STARTTLS\r\n", secret[:40]) for i in range(4))
    assert texts(unread, "ehlo") == [None] * 4


@pytest.mark.parametrize("split", [3, 9])
def test_a_line_in_two_segments_is_read_whole(split: int) -> None:
    line = b"EHLO a.example\r\n"
    frames = merged(mail(i, line[:split], line[split:]) for i in range(4))
    assert texts(frames, "ehlo") == [None, None, "a.example", "a.example"]


SIP, STUN = requests.sip(), requests.binding(b"libre")
UNPROVEN = [
    ("no answer", 5060, [(CLIENT, SIP)]),
    ("another call", 5060, [(CLIENT, SIP), (SERVER, requests.sip(call=b"x", status=b"200 OK"))]),
    (
        "another sequence number",
        5060,
        [(CLIENT, SIP), (SERVER, requests.sip(sequence=b"2 REGISTER", status=b"200 OK"))],
    ),
    ("an echo", 5060, [(CLIENT, SIP), (SERVER, SIP)]),
    ("the client's answer", 5060, [(CLIENT, SIP), (CLIENT, requests.sip(status=b"200 OK"))]),
    (
        "an echo of an answer",
        5060,
        [(CLIENT, SIP), *((side, requests.sip(status=b"200 OK")) for side in (CLIENT, SERVER))],
    ),
    ("an early answer", 5060, [(SERVER, requests.sip(status=b"200 OK")), (CLIENT, SIP)]),
    ("no answer of STUN", 3478, [(CLIENT, STUN)]),
    ("another transaction", 3478, [(CLIENT, STUN), (SERVER, requests.bound(b"other trans."))]),
    ("an echo of STUN", 3478, [(CLIENT, STUN), (SERVER, STUN)]),
    ("an echo of a response", 3478, [(s, p) for p in (STUN, requests.bound()) for s in (0, 1)]),
]


@pytest.mark.parametrize(
    ("port", "packets"), [case[1:] for case in UNPROVEN], ids=[case[0] for case in UNPROVEN]
)
def test_a_request_without_its_response_does_not_vote(
    port: int, packets: list[tuple[int, bytes]]
) -> None:
    frames = merged(exchange(i, port, *packets) for i in range(4))
    outcome = run(frames, z=2, attributes=ALL)
    assert outcome.observations == []
    assert {flow["sip"] or flow["stun"] for flow in outcome.flows} == {None}


def test_an_error_answers_a_request() -> None:
    answers = [(CLIENT, STUN), (SERVER, requests.bound(kind=0x111))]
    frames = merged(exchange(i, 3478, *answers) for i in range(2))
    assert texts(frames, "stun", z=2) == [None, "libre"]


def test_a_cut_datagram_is_not_read() -> None:
    frames = [frame.cut(60) for i in range(4) for frame in bind(i)]
    assert texts(frames, "stun", z=1, established=False) == [None] * 4


def test_each_vote_is_counted_once() -> None:
    """Random visits of all kinds against a count of users by hand."""
    dice = random.Random(41)
    talks: dict[str, Talk] = {"ehlo": mail, "sip": register, "stun": bind}
    made = [(dice.choice(ALL), dice.randrange(60)) for _ in range(60)]
    frames, seen = [], {word: set[int]() for word in ALL}
    expected = []
    for n, (word, who) in enumerate(made):
        talk = talks[word](who)
        shift = START + n * SECOND - talk[0].t_ns
        ports = (41000 + n).to_bytes(2, "big")
        for frame in talk:
            ip = frame.data[14:]
            at = 34 if ip[12:16] == bytes([10, 7, who >> 8, who & 255]) else 36
            data = frame.data[:at] + ports + frame.data[at + 2 :]
            frames.append(Frame(frame.t_ns + shift, data, frame.wire))
        seen[word].add(who)
        if len(seen[word]) >= 7:
            expected.append(word)
    outcome = run(merged([frames]), z=7, attributes=ALL)
    assert [o["namespace"] for o in outcome.observations] == expected
    assert len(expected) > 20


DAMAGED = [
    ("ehlo", mail(0, b"EHLO \r\n"), 1),
    ("ehlo", mail(0, b"EHLO a b\r\n"), 0),  # no host, and whole
    ("sip", call(0, b"sip:alice@a@b.example"), 1),
    ("sip", exchange(0, 5060, (CLIENT, requests.sip(sequence=b""))), 1),
    ("sip", exchange(0, 5060, (SERVER, requests.sip(sequence=b""))), 0),
    ("stun", exchange(0, 3478, (CLIENT, requests.binding(b"libre")[:-4])), 1),
    ("stun", exchange(0, 3478, (CLIENT, b"\xff" * 40)), 0),
    ("stun", Tcp(user(0)).handshake().say(requests.binding(b"libre")[:-4]).close().frames, 1),
]


@pytest.mark.parametrize(("word", "frames", "count"), DAMAGED)
def test_a_damaged_attribute_is_counted(word: str, frames: list[Frame], count: int) -> None:
    engine = make_engine(z=1, attributes=(word,))
    feed(engine, frames)
    engine.finish()
    counts = engine.attribute_stats[word]
    assert (counts["malformed"], counts["released"]) == (count, 0)


# ---- the readers ---------------------------------------------------------------------------------


def read(word: str, message: bytes) -> tuple[str, str | None]:
    return _core.read_attribute(word, message)[:2]


@pytest.mark.parametrize(
    ("line", "result"),
    [
        (b"ehlo  a.example \r\nMAIL FROM:<a@b.example>\r\n", ("done", "a.example")),
        (b"HELO a.example\n", ("done", "a.example")),
        (b"EHLO a b\r\n", ("done", "a%20b")),
        (b"EHLO a.example", ("malformed", "")),
        (b"EHLO \r\n", ("malformed", "")),
        (b"EHLOa.example\r\n", ("other", "")),
        (b"LHLO a.example\r\n", ("other", "")),
        (b"", ("other", "")),
    ],
)
def test_the_line_of_smtp(line: bytes, result: tuple[str, str]) -> None:
    assert read("ehlo", line) == result


@pytest.mark.parametrize(
    ("uri", "result"),
    [
        (b"sip:example.org", ("done", "example.org")),
        (b"SIPS:alice:secret@example.org:5061;user=phone?to=x", ("done", "example.org")),
        (b"sip:+4912345;phone-context=x@gw.example", ("done", "gw.example")),
        (b"sip:alice@[2001:db8::1]:5060", ("done", "[2001:db8::1]")),
        (b"sip:alice@a@b.example", ("malformed", "")),
        (b"sip:alice@", ("malformed", "")),
        (b"sip:", ("malformed", "")),
        (b"tel:+4912345", ("other", "")),
        (b"urn:service:sos", ("other", "")),
    ],
)
def test_the_uri_of_sip(uri: bytes, result: tuple[str, str]) -> None:
    state, text = read("sip", requests.sip(uri))
    assert (state, text) == result


@pytest.mark.parametrize("method", [b"ACK", b"BYE", b"register", b"NOTIFY", b""])
def test_requests_within_a_call_are_not_read(method: bytes) -> None:
    assert read("sip", requests.sip(method=method)) == ("other", "")


def test_no_part_of_a_request_is_read() -> None:
    line = b"REGISTER sip:bob@example.org SIP/2.0\r\n"
    for prefix in wire.prefixes(line):
        assert read("sip", prefix)[0] != "done" or prefix in (line, line[:-1])
    whole = requests.binding(b"libre")
    for prefix in wire.prefixes(whole):
        assert read("stun", prefix)[0] != "done" or prefix == whole
    assert read("stun", whole + bytes(4))[0] == "malformed"


def test_the_software_of_stun() -> None:
    named = requests.stun_attribute(requests.SOFTWARE, b"libre \xe2\x82\xac")
    other = requests.stun_attribute(requests.SOFTWARE, b"other")
    signed = requests.stun_attribute(requests.INTEGRITY, bytes(20))
    text = "libre%20%E2%82%AC"
    assert read("stun", requests.stun(named, other)) == ("done", text)
    assert read("stun", requests.stun(named, kind=3)) == ("done", text)  # Allocate
    assert read("stun", requests.stun(signed, named)) == ("other", "")
    assert read("stun", requests.stun(named, kind=0x101)) == ("other", "")
    assert read("stun", requests.stun(named, kind=0x11)) == ("other", "")
    assert read("stun", requests.stun(requests.stun_attribute(requests.SOFTWARE, b""))) == (
        "other",
        "",
    )
    old = requests.stun(named).replace(requests.COOKIE.to_bytes(4, "big"), bytes(4))
    assert read("stun", old) == ("other", "")  # RFC 3489
    assert read("stun", requests.stun(requests.stun_attribute(requests.SOFTWARE, b"x" * 254))) == (
        "done",
        None,
    )
