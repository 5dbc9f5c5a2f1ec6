# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Lines of the logs whatever the traffic held: columns, bytes, names in one form, rounding."""

import math
import re
from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st
from support import wire
from support.engine import TCP_COMPLETE, TCP_NOCOMPLETE, UDP_COMPLETE, rounded, run
from support.examples import each, examples
from support.packets import (
    ACK,
    CLIENT,
    PSH,
    SECOND,
    SERVER,
    START,
    Tcp,
    Udp,
    dns,
    hello,
    request,
    user,
)

LATER = START + 37 * SECOND
SECRET = b"rare-name.example.org"


@settings(max_examples=examples(25))
@given(st.lists(st.one_of(st.integers(0, 400), st.integers(0, 60_000)), min_size=1, max_size=40))
def test_volumes_are_rounded_up_to_powers_of_the_square_root_of_two(sizes: list[int]) -> None:
    frames = []
    for n, size in enumerate(sizes):
        talk = Tcp(user(1), ports=(20000 + n, 443), t_ns=START + n * SECOND)
        talk.handshake().segment(CLIENT, PSH | ACK, hello(b"h%d.example.org" % n))
        for _ in range(n % 7):
            talk.segment(SERVER, ACK, bytes(size))
        frames += [frame.cut(200) for frame in talk.close().frames]
    outcome = run(frames, z=2)
    straight = run(frames, z=2, exact=True)
    for told, whole in zip(outcome.flows, straight.flows, strict=True):
        for column in ("c_pkts", "s_pkts", "c_bytes", "s_bytes", "s_bytes_uniq", "s_pkts_data"):
            assert told[column] == rounded(whole[column])
            assert whole[column] <= told[column] <= math.ceil(whole[column] * math.sqrt(2))


def test_the_steps_of_the_rounding() -> None:
    assert [rounded(x) for x in range(13)] == [0, 1, 2, 3, 4, 6, 6, 8, 8, 12, 12, 12, 12]


LABEL = re.compile(rb"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
HOST_BYTES = st.one_of(
    st.binary(max_size=40),
    st.text('aZ.-_ :[]0\t\n\r"\\#,;=\x00\x7fé', max_size=30).map(lambda t: t.encode("latin-1")),
    st.from_regex(r"[a-z]{1,5}(\.[a-z]{1,5}){0,3}\.?(:[0-9]{0,5})?", fullmatch=True).map(
        str.encode
    ),
)


def exposures_of(host: bytes) -> list[Tcp | Udp]:
    """Conversations that carry the bytes as a name, in every protocol."""
    question = wire.dns_message(wire.dns_name(host[:60]))
    answer = wire.dns_message(wire.dns_name(host[:60]), flags=0x8180)
    return [
        Tcp(user(1), ports=(20000, 443)).handshake().say(hello(host)),
        Tcp(user(1), ports=(20001, 80)).handshake().say(request(host)).close(),
        Tcp(user(1), ports=(20002, 80)).handshake().say(request(host, b"CONNECT")),
        Udp(user(1), ports=(20003, 53)).send(question).send(answer, SERVER),
    ]


@settings(max_examples=examples(150))
@given(host=HOST_BYTES, z=st.sampled_from([1, 2]), established=st.booleans())
def test_every_line_has_its_columns_whatever_the_name(
    host: bytes, z: int, established: bool
) -> None:
    frames = [frame for talk in exposures_of(host) for frame in talk.frames]
    outcome = run(frames, z=z, established=established)
    for name in (TCP_COMPLETE, TCP_NOCOMPLETE, UDP_COMPLETE):
        lines = outcome.log(name)  # splits into exactly the header's columns
        assert all(text for line in lines for text in line.values())
    assert len(outcome.flows) == 4
    for text in outcome.text.values():
        assert not re.search(rb"[^\x20-\x7e\n]", text)
        assert not text or text.endswith(b"\n")
    for name in outcome.released() | {flow["name"] for flow in outcome.flows if flow["name"]}:
        assert z == 1
        assert len(name) <= 253
        assert all(LABEL.fullmatch(label) for label in name.encode().split(b"."))
    if z == 2:
        assert {flow["name"] for flow in outcome.flows} == {None}


@each(
    "host, name",
    [
        (b"WWW.Example.ORG", "www.example.org"),
        (b"www.example.org.", "www.example.org"),
        (b"xn--bcher-kva.example", "xn--bcher-kva.example"),
        (b"_srv._tcp.example", "_srv._tcp.example"),
        (b"a" * 63 + b".example", "a" * 63 + ".example"),
    ],
)
@each("how", range(4))
def test_a_name_has_one_form(host: bytes, name: str, how: int) -> None:
    labels = host.rstrip(b".").split(b".")
    talk: Callable[[], Tcp | Udp]
    talk = [
        lambda: Tcp().handshake().say(hello(host)),
        lambda: Tcp().handshake().say(request(host + b":8080")),
        lambda: Tcp().handshake().say(b"GET http://%s/x HTTP/1.1\r\n\r\n" % host),
        lambda: (
            Udp()
            .send(wire.dns_message(wire.dns_name(*labels)))
            .send(wire.dns_message(wire.dns_name(*labels), flags=0x8180), SERVER)
        ),
    ][how]
    outcome = run(talk().frames, z=1)
    assert outcome.released() == {name}
    assert outcome.flow["name"] == name


def test_an_address_in_place_of_a_name_is_no_name() -> None:
    for host in (b"198.51.100.7", b"198.51.100.7:8080", b"[2001:db8::1]", b"[2001:db8::1]:80"):
        outcome = run(Tcp(t_ns=LATER).handshake().say(request(host)).close().frames, z=2)
        assert outcome.flow["name_status"] == "none"
        assert outcome.stats["names_address"] == 1
        assert host not in outcome.everything()


def test_an_unanswered_question_says_nothing() -> None:
    outcome = run(Udp(t_ns=LATER).send(dns(SECRET)).frames, z=2)
    line = outcome.log(UDP_COMPLETE)[0]
    assert (line["fqdn"], line["s_ip"], line["s_first_abs"]) == ("-", "-", "0.000000")
    assert line["c_bytes_all"] == str(rounded(len(dns(SECRET))))
