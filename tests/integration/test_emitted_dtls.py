# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""ClientHellos of DTLS in packets that leave: in whichever fragments, with the name or without."""

import itertools
import random

import pytest
from support import wire
from support.packet_run import Emitted, emitted
from support.packets import CLIENT, MS, SECOND, SERVER, START, Frame, Udp
from support.quic_wire import dtls_fragment, dtls_hello, dtls_record, verify_request

NAME = b"dtls.example"
COOKIE = bytes(range(60, 80))
BODY = dtls_hello(host=NAME)
WITH_COOKIE = dtls_hello(host=NAME, cookie=COOKIE)
REQUEST = verify_request(COOKIE)
HEADERS = 14 + 20 + 8
TESTED, DROP, KEEP = 0, 1, 2


def talk(*datagrams: bytes | tuple[int, bytes], step_ns: int = MS) -> Udp:
    """The client's datagrams, and where a side is given, its."""
    udp = Udp("10.7.0.1", ports=(40000, 4433), t_ns=START, step_ns=step_ns)
    for datagram in datagrams:
        side, data = (CLIENT, datagram) if isinstance(datagram, bytes) else datagram
        udp.send(data, side)
    return udp


def left(udp: Udp, hold_ns: int = SECOND, **settings: object) -> Emitted:
    settings = {"z": 1, "established": False, "fingerprints": KEEP} | settings
    return emitted(udp.frames, hold_ns=hold_ns, **settings)


def payload(frame: Frame) -> bytes:
    length = int.from_bytes(frame.data[38:40], "big") - 8
    return frame.data[HEADERS : HEADERS + length]


def payloads(udp: Udp, hold_ns: int = SECOND, **settings: object) -> list[bytes]:
    return [payload(frame) for frame in left(udp, hold_ns, **settings).frames]


def shown(body: bytes) -> bytes:
    """What leaves of a hello that may be shown with its fingerprint."""
    built = body.replace(wire.RANDOM, bytes(32)).replace(COOKIE, bytes(len(COOKIE)))
    assert len(built) == len(body)
    return built


def test_a_hello_in_one_datagram() -> None:
    (out,) = payloads(talk(dtls_record(dtls_fragment(BODY))))
    assert out == dtls_record(dtls_fragment(shown(BODY)))
    assert NAME in out


@pytest.mark.parametrize("hold_ns", [0, MS, SECOND])
def test_the_hello_with_the_cookie_too(hold_ns: int) -> None:
    second = dtls_record(dtls_fragment(WITH_COOKIE, message=1), number=1)
    udp = talk(dtls_record(dtls_fragment(BODY)), (SERVER, REQUEST), second, step_ns=700 * MS)
    first, request, again = payloads(udp, hold_ns)
    assert first == dtls_record(dtls_fragment(shown(BODY)))
    assert request == bytes(len(REQUEST))
    assert again == dtls_record(dtls_fragment(shown(WITH_COOKIE), message=1), number=1)


def test_old_clients_number_both_hellos_alike() -> None:
    second = dtls_record(dtls_fragment(WITH_COOKIE), number=1)
    *_, again = payloads(talk(dtls_record(dtls_fragment(BODY)), (SERVER, REQUEST), second))
    assert again == dtls_record(dtls_fragment(shown(WITH_COOKIE)), number=1)


def test_a_withheld_name() -> None:
    udp = talk(dtls_record(dtls_fragment(BODY)))
    assert left(udp, z=2).frames == []
    (masked,) = payloads(udp, z=2, exact=True)
    assert masked == dtls_record(dtls_fragment(shown(BODY).replace(NAME, b"xxxx.invalid")))


def test_without_a_name_the_flow_passes() -> None:
    body = dtls_hello(host=None)
    more = [dtls_record(bytes(80), kind=23, epoch=1)] * 2
    udp = talk(dtls_record(dtls_fragment(body)), *more, step_ns=100 * MS)
    first, *rest = payloads(udp, 0, z=100)
    assert first == dtls_record(dtls_fragment(shown(body)))
    assert rest == [bytes(93)] * 2


def test_the_fingerprint_is_an_attribute_of_its_own() -> None:
    udp = talk(dtls_record(dtls_fragment(BODY)))
    (out,) = payloads(udp, fingerprints=DROP)
    assert NAME in out
    assert b"\xc0\x2b\xc0\x2f" not in out
    assert left(udp, fingerprints=TESTED).stats["packets_fingerprints"] == 1


def test_sequence_numbers_show_two_bytes() -> None:
    (out,) = payloads(talk(dtls_record(dtls_fragment(BODY), number=0xABCDEF123456)))
    assert out == dtls_record(dtls_fragment(shown(BODY)), number=0x3456)


@pytest.mark.parametrize(
    "other",
    [
        dtls_record(b"\1\0", kind=21),
        dtls_record(dtls_fragment(b"secret", kind=11, message=1)),
        dtls_record(b"secret", epoch=1),
        dtls_record(dtls_fragment(BODY, 5, 5)),
        b"secret",
    ],
)
def test_what_else_a_datagram_holds_is_zeros(other: bytes) -> None:
    whole = dtls_record(dtls_fragment(BODY))
    (out,) = payloads(talk(whole + other))
    assert out == dtls_record(dtls_fragment(shown(BODY))) + bytes(len(other))
    *_, out = payloads(talk(whole, other + whole))
    assert out == bytes(len(other + whole))


def fragments(chance: random.Random, body: bytes) -> list[tuple[int, int]]:
    """The body in up to six parts, (start, end)."""
    cuts = {chance.randrange(1, len(body)) for _ in range(chance.randrange(6))}
    return list(itertools.pairwise([0, *sorted(cuts), len(body)]))


def datagrams(chance: random.Random, parts: list[tuple[int, int]], body: bytes) -> list[bytes]:
    """The fragments in records and datagrams, drawn by `chance`."""
    made = [b""]
    for number, (start, end) in enumerate(parts):
        record = dtls_record(dtls_fragment(body, start, end), number=number)
        if made[-1] and chance.random() < 0.6:
            made.append(b"")
        made[-1] += record
    return made


@pytest.mark.parametrize("hold_ns", [50 * MS, SECOND])
def test_fragments_in_any_order(hold_ns: int) -> None:
    for seed in range(150):
        chance = random.Random(seed)
        parts = fragments(chance, BODY)
        for _ in range(chance.choice((0, 0, 1, 2))):
            parts.insert(chance.randint(0, len(parts)), chance.choice(parts))
        if chance.random() < 0.5:
            chance.shuffle(parts)
        udp, again = (datagrams(random.Random(seed), parts, body) for body in (BODY, shown(BODY)))
        assert payloads(talk(*udp), hold_ns) == again, seed


def test_fragments_that_leave_before_the_hello_is_whole_are_zeros() -> None:
    parts = [dtls_record(dtls_fragment(BODY, *part)) for part in ((0, 30), (30, None))]
    udp = talk(*parts, parts[0], step_ns=200 * MS)
    outcome = left(udp, 100 * MS)
    assert [payload(frame) for frame in outcome.frames] == [
        bytes(len(parts[1])),
        bytes(len(parts[0])),
    ]
    assert outcome.stats["packets_deadline_missed"] == 1
    assert outcome.stats["packets_dropped_undecided"] == 1


def test_a_part_that_is_missing_or_differs_leaves_zeros() -> None:
    parts = [dtls_record(dtls_fragment(BODY, *part)) for part in ((0, 30), (30, 50), (50, None))]
    assert left(talk(parts[0], parts[2])).frames == []  # truncated: a name was missed
    other = bytearray(parts[1])
    other[-1] ^= 1
    assert left(talk(parts[0], parts[1], bytes(other), parts[2])).frames == []
    exact = payloads(talk(parts[0], parts[1], bytes(other), parts[2]), exact=True)
    assert all(set(data) == {0} for data in exact)
