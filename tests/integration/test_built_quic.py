# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""QUIC flows whose datagrams were built anew, through the whole engine: what is left of them names
the edited host, and proves the client as it did before."""

import pytest
from support import quic_wire as quic
from support.packets import MS, SERVER, START, Udp
from support.quic_flow import ANSWER, HELLO, NAME, RETURNS, quic_talk
from support.quic_wire import DCID, SCID, SERVER_ID, Initial, crypto
from support.stream import one_user

from zanon_net import _core

pytestmark = pytest.mark.source

EDITED = b"xxx.xxxxxxx.org"
STREAM = quic.hello(host=EDITED)
assert len(EDITED) == len(NAME)


def built(datagram: bytes, *, key_id: bytes = DCID, server: bool = False) -> bytes:
    """The datagram as it leaves."""
    stream = b"" if server else STREAM
    return _core.build_quic(datagram, crypto=stream, key_id=key_id, server=server)[0]


def answered(flight: bytes, *returns: bytes) -> Udp:
    """A flow of built datagrams: the client's, the server's, the client's."""
    talk = quic_talk(built(flight)).send(built(ANSWER, server=True), SERVER)
    for datagram in returns:
        talk.send(built(datagram))
    return talk


FLIGHT = Initial(crypto(HELLO), token=b"token", size=1200).seal()


@pytest.mark.parametrize("what", [what for what in RETURNS if "1-RTT" not in what])
def test_the_evidence_stays(what: str) -> None:
    outcome = one_user(answered(FLIGHT, RETURNS[what]), EDITED)
    assert outcome.seen() == {(START + 2 * MS, EDITED.decode(), "quic"): 1}
    assert outcome.stats["suppressed_unconfirmed"] == 0


def test_a_1_rtt_packet_is_no_evidence_any_more() -> None:
    """Nothing but its first byte leaves; of a real handshake, other packets prove the client."""
    assert not one_user(answered(FLIGHT, RETURNS["a 1-RTT packet"]), EDITED).seen()


def test_a_name_in_two_packets() -> None:
    first, rest = quic.pieces_of(HELLO, [60])
    more = Initial(crypto(rest[1], rest[0]), dcid=SERVER_ID, key_id=DCID, number=1).seal()
    talk = answered(Initial(crypto(first[1]), size=1200).seal(), more)
    assert one_user(talk, EDITED).seen() == {(START + 2 * MS, EDITED.decode(), "quic"): 1}


def test_a_retry_still_counts() -> None:
    retry_id = b"retry id"
    again = Initial(crypto(HELLO), dcid=retry_id, token=b"token", number=1).seal()
    talk = quic_talk(built(FLIGHT)).send(built(quic.retry(SCID, retry_id), server=True), SERVER)
    talk.send(built(again, key_id=retry_id))
    assert one_user(talk, EDITED).seen() == {(START + 2 * MS, EDITED.decode(), "quic"): 1}
