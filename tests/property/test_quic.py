# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A ClientHello in random CRYPTO frames of random Initials in random order stays the same."""

import random

from hypothesis import given
from hypothesis import strategies as st
from support import quic_wire as quic
from support import wire
from support.engine import run
from support.packets import SERVER, Udp
from support.quic_wire import DCID, SCID, V1, V2, Initial, crypto

from zanon_net import parse

HOSTS = st.from_regex(r"[a-z]{1,9}(\.[a-z0-9]{1,20}){1,5}\.example", fullmatch=True)
VERSIONS = st.sampled_from([V1, V2, quic.DRAFT_29, 0xFF00001B, 0xFF000022])


Flight = tuple[bytes, list[list[bytes]], int]


@st.composite
def flights(draw: st.DrawFn) -> Flight:
    """(host, client datagrams as packets, version): up to 8 Initials, some coalesced, some sent
    twice."""
    host = draw(HOSTS).encode()
    version = draw(VERSIONS)
    filler = wire.extension(wire.PADDING, bytes(draw(st.integers(0, 4000))))
    message = quic.hello(filler, host=host)
    dice = random.Random(draw(st.integers(0, 2**32)))
    packets = draw(st.integers(-(-len(message) // 1000), 7))
    cuts = [len(message) * n // packets for n in range(1, packets)]
    parts = quic.pieces_of(message, cuts)
    dice.shuffle(parts)
    sealed = []
    for number, (offset, data) in enumerate(parts):
        inner = quic.pieces_of(data, sorted(dice.sample(range(len(data)), k=dice.randrange(8))))
        frames = [crypto(piece, offset + at) for at, piece in inner]
        frames += dice.choices([quic.PADDING, quic.PING, quic.ACK, quic.ACK_ECN], k=3)
        dice.shuffle(frames)
        dcid = DCID if number == 0 or dice.random() < 0.7 else quic.SERVER_ID
        initial = Initial(
            b"".join(frames),
            version,
            dcid,
            number=number,
            number_bytes=dice.randint(1, 4),
            key_id=DCID,
            token=dice.randbytes(dice.choice([0, 0, 30])),
        )
        sealed.append(initial.seal())
    if len(sealed) < 8 and dice.random() < 0.5:
        sealed.append(dice.choice(sealed))
    datagrams: list[list[bytes]] = []
    for packet in sealed:
        together = datagrams and sum(map(len, datagrams[-1])) + len(packet) < 1400
        if together and dice.random() < 0.6:
            datagrams[-1].append(packet)
        else:
            datagrams.append([packet])
    datagrams[0].append(quic.opaque(quic.ZERO_RTT, DCID, SCID, version=version))
    return host, datagrams, version


def played(datagrams: list[list[bytes]]) -> Udp:
    talk = Udp(ports=(40000, 8443))
    for packets in datagrams:
        if packets:
            talk.send(b"".join(packets))
    return talk


@given(flights())
def test_any_flight_gives_its_name_once(flight: Flight) -> None:
    host, datagrams, _ = flight
    outcome = run(played(datagrams).frames, z=1, established=False)
    assert [seen["name"] for seen in outcome.observations] == [host.decode()]
    assert outcome.flow["name_source"] == "quic"
    assert outcome.stats["quic_not_authentic"] == 0


@given(flights(), st.data())
def test_a_flight_that_lacks_a_packet_gives_no_name(flight: Flight, data: st.DataObject) -> None:
    _, datagrams, _ = flight
    zero_rtt = datagrams[0][-1]
    lost = data.draw(st.sampled_from(sorted({p for d in datagrams for p in d} - {zero_rtt})))
    kept = [[packet for packet in packets if packet != lost] for packets in datagrams]
    outcome = run(played(kept).frames, z=1, established=False)
    assert not outcome.seen()
    assert [flow["name_status"] for flow in outcome.flows] == ["suppressed"] * len(outcome.flows)


@given(flights(), st.data())
def test_a_byte_changed_on_the_way_gives_no_other_name(flight: Flight, data: st.DataObject) -> None:
    host, datagrams, _ = flight
    which = data.draw(st.integers(0, len(datagrams) - 1))
    changed = bytearray(b"".join(datagrams[which]))
    changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    datagrams[which] = [bytes(changed)]
    outcome = run(played(datagrams).frames, z=1, established=False)
    assert outcome.released() <= {host.decode()}


@given(flights())
def test_the_pieces_are_what_was_sent(flight: Flight) -> None:
    host, datagrams, version = flight
    stream: dict[int, int] = {}
    for packets in datagrams:
        initial = parse.quic_initial(b"".join(packets), DCID)
        assert (initial.version, initial.scid) == (version, SCID)
        for offset, piece in initial.crypto:
            stream |= dict(enumerate(piece, offset))
    message = bytes(stream[at] for at in range(len(stream)))
    whole = parse.quic_initial(Initial(crypto(message)).seal())
    assert (whole.state, whole.raw) == ("done", host)


OWN_IDS = [b"client 1", b"client 2", b"\1" * 8, b"\2" * 8, b"another one", b"sixth id", b"id7"]


def near(ident: bytes, dice: random.Random) -> bytes:
    """What a server makes out of a client's ID, or a forger of a guess."""
    made = bytearray(ident)
    for _ in range(dice.randrange(4)):
        made[dice.randrange(len(made))] = dice.randrange(256)
    return bytes(made)


@given(st.integers(0, 2**64), st.integers(1, 60))
def test_a_forger_who_sees_no_answer_never_votes(seed: int, steps: int) -> None:
    """A client that knows nothing of the server's packets; a server that keeps to RFC 9000."""
    dice = random.Random(seed)
    forger = random.Random(seed + 1)  # the server's IDs are not drawn from what the forger knows
    message = quic.hello(host=b"forged.example")
    talk = Udp(ports=(40000, 443))
    used = [OWN_IDS[0]]
    sent = answered = 0
    for _ in range(steps):
        if dice.random() < 0.6:
            ident = forger.choice(used if forger.random() < 0.5 else OWN_IDS)
            kind = forger.randrange(5)
            if kind <= 1:
                used.append(ident)
                piece = quic.pieces_of(message, [30])[forger.randrange(2)]
                frames = crypto(message) if kind else crypto(piece[1], piece[0])
                packet = Initial(frames, dcid=ident, key_id=forger.choice([ident, used[0]])).seal()
            elif kind == 2:
                packet = quic.short(near(ident, forger))
            else:
                packet = quic.opaque(forger.choice([1, 2]), near(ident, forger), SCID)
            talk.send(packet)
            sent += len(packet)
            continue
        scid = dice.choice(
            [dice.randbytes(8), near(dice.choice(used), dice), dice.randbytes(2), b""]
        )
        packet = quic.opaque(quic.HANDSHAKE, SCID, scid, 100)
        packet = dice.choice([packet, quic.retry(SCID, scid), quic.negotiation(SCID, scid, V1)])
        if answered + len(packet) <= 3 * sent:
            talk.send(packet, SERVER)
            answered += len(packet)
    if talk.frames:
        outcome = run(talk.frames, z=1)
        assert not outcome.seen()
        assert b"forged" not in outcome.everything()
