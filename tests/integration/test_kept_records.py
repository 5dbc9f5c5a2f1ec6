# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""With --payload keep-encrypted, only bytes leave that TLS or QUIC encrypted."""

import contextlib
import random
import ssl
import struct
from pathlib import Path
from typing import Self

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from scenario.quic import quic_visit
from scenario.visits import Visit
from support import wire
from support.examples import each
from support.handshake import KEY, named
from support.packet_run import emitted
from support.packets import (
    ACK,
    CLIENT,
    MS,
    PSH,
    SERVER,
    SERVER_ADDRESS,
    START,
    Tcp,
    Udp,
    hello,
    user,
)

pytestmark = pytest.mark.source

KEEP_ENCRYPTED = 2
HOST = b"a.example"
CLEAR = b"GET /secret-canary HTTP/1.1\r\nCookie: canary\r\n\r\n"
GCM, NULL, NULL_1_3, UNKNOWN, AES_1_3 = 0xC02F, 0x003B, 0xC0B4, 0xFAFA, 0x1301
CHANGE = wire.record(b"\1", 0x0303, 20)
ALERT = 21
HANDSHAKE, DATA, HEARTBEAT = 22, 23, 24
VERSION_1_3 = wire.extension(43, b"\3\4")


def noise(n: int, seed: int = 0) -> bytes:
    """Bytes that look encrypted."""
    return random.Random(n * 1000 + seed).randbytes(n)


def data(n: int = 60, seed: int = 0) -> bytes:
    return wire.record(noise(n, seed), 0x0303, DATA)


def chosen(suite: int, *extensions: bytes) -> bytes:
    """A record with a ServerHello."""
    body = b"\3\3" + bytes(32) + b"\0" + struct.pack(">HB", suite, 0)
    if extensions:
        body += wire.vector(2, b"".join(extensions))
    return wire.record(b"\2" + wire.vector(3, body), 0x0303)


def finished(seed: int) -> bytes:
    return CHANGE + wire.record(noise(40, seed), 0x0303)


class Session(Tcp):
    """A TLS connection up to its first application data."""

    def greet(self, suite: int = GCM, *extensions: bytes) -> Self:
        self.handshake().say(hello(HOST))
        self.say(chosen(suite, *extensions) + finished(1), SERVER)
        self.say(finished(2))
        return self


def left(talk: Tcp) -> list[bytes]:
    """What leaves in place of the payload of each segment."""
    out = emitted(talk.frames, z=1, payload=KEEP_ENCRYPTED)
    assert len(out.frames) == len(talk.frames)
    return [bytes(frame.data[54:]) for frame in out.frames]


def payloads(talk: Tcp) -> list[bytes]:
    return [frame.data[54:] for frame in talk.frames]


def shown_last(talk: Tcp) -> tuple[bytes, bytes]:
    """The payload of the last segment with data, as it was sent and as it leaves."""
    given, found = payloads(talk), left(talk)
    n = max(n for n, one in enumerate(given) if one)
    return given[n], found[n][: len(given[n])]


@pytest.mark.parametrize("side", [CLIENT, SERVER])
@pytest.mark.parametrize(("suite", "extensions"), [(GCM, ()), (AES_1_3, (VERSION_1_3,))])
def test_application_data_stays(side: int, suite: int, extensions: tuple[bytes, ...]) -> None:
    talk = Session(user(1), t_ns=START).greet(suite, *extensions).say(data(), side)
    sent, shown = shown_last(talk)
    assert shown == sent


@each("suite", [NULL, 0x0000, 0x0001, 0x0002, 0x002C, 0x00B0, 0xC001, 0xC010,
                                   0xC03A, NULL_1_3, 0xC0B5, UNKNOWN, 0x00FF])  # fmt: skip
def test_without_encryption_nothing_stays(suite: int) -> None:
    talk = Session(user(1), t_ns=START).greet(suite).say(wire.record(CLEAR, 0x0303, DATA))
    assert not any(shown_last(talk)[1][5:])
    talk.say(data())
    assert not any(shown_last(talk)[1][5:])


def test_a_suite_that_was_not_seen_is_none() -> None:
    talk = Tcp(user(1), t_ns=START).handshake().say(hello(HOST)).say(finished(2))
    talk.say(data()).say(data(), SERVER)
    assert not any(shown_last(talk)[1][5:])


@pytest.mark.parametrize("kind", [ALERT, HANDSHAKE, HEARTBEAT, 20, 25])
def test_other_records_are_zeros(kind: int) -> None:
    talk = Session(user(1), t_ns=START).greet().say(data()).say(data(), SERVER)
    talk.say(wire.record(noise(30), 0x0303, kind))
    assert not any(shown_last(talk)[1])


def test_before_the_change_of_ciphers_data_are_clear() -> None:
    talk = Tcp(user(1), t_ns=START).handshake().say(hello(HOST))
    talk.say(chosen(GCM), SERVER).say(wire.record(CLEAR, 0x0303, DATA)).say(data())
    assert not any(shown_last(talk)[1][5:])


@each("closing", [(CLIENT,), (SERVER,), (CLIENT, SERVER)])
@each("speaks", [CLIENT, SERVER])
@each("after", [CLEAR, data(), wire.record(CLEAR, 0x0303, DATA)])
def test_nothing_stays_behind_an_alert(closing: tuple[int, ...], speaks: int, after: bytes) -> None:
    """FTP goes back to clear text on the same connection (RFC 4217, 12)."""
    talk = Session(user(1), t_ns=START).greet().say(data()).say(data(), SERVER)
    for side in closing:
        talk.say(wire.record(noise(26), 0x0303, ALERT), side)
    talk.say(after, speaks)
    assert not any(shown_last(talk)[1])


@pytest.mark.parametrize(
    "after", [CLEAR, wire.record(CLEAR, 0x0303, DATA), b"\x17\3\3\0\0" + CLEAR]
)
def test_clear_text_behind_records_is_zeros(after: bytes) -> None:
    """In TLS 1.3 the alert looks like data."""
    talk = Session(user(1), t_ns=START).greet(AES_1_3, VERSION_1_3).say(data()).say(data(), SERVER)
    talk.say(data(19)).say(after)
    assert not any(shown_last(talk)[1])
    talk = Session(user(1), t_ns=START).greet(AES_1_3, VERSION_1_3).say(data()).say(data(), SERVER)
    talk.say(data(19) + after)
    assert shown_last(talk)[1] == data(19) + bytes(len(after))


@pytest.mark.parametrize("size", [1, 3, 7, 100, 1000])
def test_records_over_segments_stay(size: int) -> None:
    """A header in two segments, too."""
    talk = Session(user(1), t_ns=START).greet().say(data(), SERVER)
    stream = b"".join(data(n, n) for n in (20, 300, 5, 1200, 33))
    begin = len(talk.frames)
    for at in range(0, len(stream), size):
        talk.segment(CLIENT, PSH, stream[at : at + size])
    found = left(talk)[begin:]
    sizes = [len(one) for one in payloads(talk)[begin:]]
    assert b"".join(one[:n] for one, n in zip(found, sizes, strict=True)) == stream


def test_segments_again_and_out_of_order() -> None:
    talk = Session(user(1), t_ns=START).greet().say(data(), SERVER)
    first, second, third = data(200, 1), data(200, 2), data(200, 3)
    seq = talk.next[CLIENT]
    for part in (first, second):
        talk.segment(CLIENT, PSH, part)
    talk.segment(CLIENT, PSH, first, seq=seq)
    talk.segment(
        CLIENT, PSH, third, seq=seq + 2 * len(first) + 300
    )  # its header's place is unknown
    found = [one[: len(first)] for one in left(talk)[-4:]]
    assert found == [first, second, first, bytes(len(third))]


@pytest.mark.parametrize("text", [CLEAR, b"@" + noise(10), b"A" * 20])
def test_datagrams_that_are_not_quic_are_zeros(text: bytes) -> None:
    frames = quic_visit(Visit(START, (user(1), SERVER_ADDRESS), "quic", (HOST,), "unanswered"), 1)
    ports = struct.unpack_from(">HH", frames[0].data, 34)
    talk = Udp(user(1), SERVER_ADDRESS, ports, t_ns=frames[-1].t_ns + MS).send(text)
    out = emitted([*frames, *talk.frames], z=1, established=False, payload=KEEP_ENCRYPTED).frames
    assert out[-1].t_ns == talk.frames[0].t_ns
    assert not any(out[-1].data[43 : 42 + len(text)])


def test_quic_behind_its_handshake_stays() -> None:
    frames = quic_visit(Visit(START, (user(1), SERVER_ADDRESS), "quic", (HOST,)), 1)
    ports = struct.unpack_from(">HH", frames[0].data, 34)
    sealed = b"\x41" + noise(60)
    talk = Udp(user(1), SERVER_ADDRESS, ports, t_ns=frames[-1].t_ns + MS).send(sealed)
    out = emitted([*frames, *talk.frames], z=1, payload=KEEP_ENCRYPTED).frames
    assert out[-1].data[42 : 42 + len(sealed)] == sealed


def flights(version: ssl.TLSVersion, folder: Path) -> list[tuple[int, bytes]]:
    """What a client and a server of OpenSSL send each other, in turn."""
    key = KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    pem = x509.load_der_x509_certificate(named("www.example.org"))
    (folder / "both.pem").write_bytes(key + pem.public_bytes(serialization.Encoding.PEM))
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(folder / "both.pem")
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ours.check_hostname, ours.verify_mode = False, ssl.CERT_NONE
    ours.minimum_version = ours.maximum_version = version
    wires = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        ours.wrap_bio(wires[1], wires[0], server_hostname=HOST.decode()),
        theirs.wrap_bio(wires[0], wires[1], server_side=True),
    )
    said: list[tuple[int, bytes]] = []

    def send(side: int) -> None:
        if flight := wires[side].read():
            said.append((side, flight))
            wires[side].write(flight)

    for turn in range(4):
        with contextlib.suppress(ssl.SSLWantReadError):
            ends[turn % 2].do_handshake()
        send(turn % 2)
    for side in (CLIENT, SERVER, CLIENT):
        ends[side].write(CLEAR * 100)
        send(side)
        ends[1 - side].read(1 << 16)
    return said


def data_in(stream: bytes) -> list[tuple[int, int]]:
    """Where records of application data begin and end."""
    found, at = [], 0
    while at < len(stream):
        end = at + 5 + int.from_bytes(stream[at + 3 : at + 5])
        if stream[at] == DATA:
            found.append((at, end))
        at = end
    return found


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_openssl(version: ssl.TLSVersion, tmp_path: Path) -> None:
    talk = Tcp(user(1), t_ns=START).handshake()
    for side, flight in flights(version, tmp_path):
        for at in range(0, len(flight), 1400):
            talk.segment(side, PSH | ACK, flight[at : at + 1400])
    given, found = payloads(talk), left(talk)
    for side in (CLIENT, SERVER):
        own = [n for n, frame in enumerate(talk.frames) if (frame.data[34:36] == b"\1\xbb") == side]
        sent = b"".join(given[n] for n in own)
        shown = b"".join(found[n][: len(given[n])] for n in own)
        kept = data_in(sent)
        assert sum(end - begin for begin, end in kept) > 4000
        assert all(sent[begin:end] == shown[begin:end] for begin, end in kept)
