# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""QUIC connections whose packets alternate on the same addresses and ports."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations, zip_longest

import pytest
from support import quic_wire as quic
from support.engine import Outcome, run
from support.packets import MS, SECOND, SERVER, START, Frame, Udp
from support.quic_flow import PORTS, quic_talk, status
from support.quic_wire import Initial, crypto
from support.stream import one_user


@dataclass(frozen=True)
class Connection:
    """A connection: its name, the client's first ID and own ID, and the server's ID."""

    name: bytes
    first: bytes
    own: bytes
    server: bytes

    def flight(self) -> list[bytes]:
        """The client's hello, in two datagrams."""
        hello = quic.post_quantum(self.name)
        flight = quic.first_flight(hello, dcid=self.first, scid=self.own)
        assert len(flight) == 2
        return flight

    def answer(self) -> bytes:
        return quic.server_answer(self.own, self.server, key_id=self.first)


ONE = Connection(b"one.example.org", b"first id", b"c1", b"server one")
TWO = Connection(b"two.example.org", b"another1", b"c2", b"2nd server")
BOTH = {ONE.name.decode(), TWO.name.decode()}
# Browsers choose an empty ID, so only the keys show to which connection an answer belongs.
EMPTY = (Connection(ONE.name, ONE.first, b"", ONE.server),
         Connection(TWO.name, TWO.first, b"", TWO.server))  # fmt: skip
PAIRS = pytest.mark.parametrize("pair", [(ONE, TWO), EMPTY], ids=["own IDs", "empty IDs"])


def alternately(*flights: list[bytes]) -> Iterator[bytes]:
    return (datagram for turn in zip_longest(*flights) for datagram in turn if datagram is not None)


def names(outcome: Outcome) -> list[tuple[int, str]]:
    """Returns the times, in ms since the start, and names of the observations at z = 1."""
    return sorted(((t_ns - START) // MS, name) for t_ns, name, _ in outcome.seen())


# ---- hellos -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", sorted(set(permutations("aabb"))))
def test_two_hellos_in_any_order(order: tuple[str, ...]) -> None:
    flights = {"a": iter(ONE.flight()), "b": iter(TWO.flight())}
    outcome = run(
        quic_talk(*(next(flights[letter]) for letter in order)).frames, z=1, established=False
    )
    ends = {"".join(order).rindex("a"): ONE, "".join(order).rindex("b"): TWO}
    assert names(outcome) == [(at, ends[at].name.decode()) for at in sorted(ends)]
    assert outcome.stats["quic_initials"] == 4
    assert outcome.stats["suppressed_incomplete"] == 0
    assert status(outcome) == ("quic", "released")


def test_as_many_hellos_as_a_flow_may_have_connections() -> None:
    flights = [
        Connection(b"h%d.example" % i, b"id no %03d" % i, b"", b"").flight() for i in range(8)
    ]
    outcome = run(quic_talk(*alternately(*flights)).frames, z=1, established=False)
    assert outcome.released() == {f"h{i}.example" for i in range(8)}


def test_pieces_of_two_hellos_do_not_mix() -> None:
    """A piece with the offset that the other hello lacks does not complete it."""
    hello = quic.post_quantum(ONE.name)
    middle = quic.pieces_of(hello, [1100])[1]
    foreign = Initial(crypto(middle[1], middle[0]), dcid=TWO.first).seal()
    outcome = run(quic_talk(ONE.flight()[0], foreign).frames, z=1, established=False)
    assert not outcome.seen()
    assert outcome.stats["suppressed_incomplete"] == 2
    assert status(outcome) == ("quic", "suppressed")


def test_a_hello_continues_under_an_id_that_only_its_server_knows() -> None:
    """Only the keys show to which connection the second half belongs."""
    hello = quic.post_quantum(ONE.name)
    (_, first), (at, rest) = quic.pieces_of(hello, [700])
    later = Initial(crypto(rest, at), dcid=ONE.server, key_id=ONE.first, number=1).seal()
    talk = quic_talk(Initial(crypto(first), dcid=ONE.first).seal(), *TWO.flight(), later)
    assert run(talk.frames, z=1, established=False).released() == BOTH


def test_each_connection_has_a_retry_of_its_own() -> None:
    talk = quic_talk(ONE.flight()[0], TWO.flight()[0])
    for connection, ident in ((ONE, b"retry one"), (TWO, b"retry two")):
        talk.send(quic.retry(b"", ident, key_id=connection.first), SERVER)
    again = [
        quic.first_flight(quic.post_quantum(c.name), dcid=ident, scid=b"", token=b"token")
        for c, ident in ((ONE, b"retry one"), (TWO, b"retry two"))
    ]
    for datagram in alternately(*again):
        talk.send(datagram)
    assert run(talk.frames, z=1, established=False).released() == BOTH


def test_streams_of_abandoned_hellos_are_freed() -> None:
    """Hellos of more flows, one after another, than may be in progress at a time."""
    frames: list[Frame] = []
    for i in range(300):
        talk = Udp(ports=(1024 + i, 443), t_ns=START + i * 60 * SECOND)
        frames += talk.send(ONE.flight()[0]).send(TWO.flight()[0]).frames
    outcome = run(frames, z=1, established=False, max_flows=64)
    assert outcome.stats["suppressed_incomplete"] > 2 * 3 * 64
    assert outcome.stats["datagrams_full"] == 0


# ---- evidence -----------------------------------------------------------------------------------


def talk_of(pair: tuple[Connection, Connection], *, answers: str, returns: str) -> Udp:
    """Two alternating hellos, then the answers and the client's packets to the server's IDs, "a"
    of the first connection and "b" of the second."""
    named = dict(zip("ab", pair, strict=True))
    talk = quic_talk(*alternately(*(connection.flight() for connection in pair)))
    for letter in answers:
        talk.send(named[letter].answer(), SERVER)
    for letter in returns:
        talk.send(quic.short(named[letter].server))
    return talk


@PAIRS
@pytest.mark.parametrize("answers", ["ab", "ba"])
@pytest.mark.parametrize("returns", ["ab", "ba"])
def test_both_are_proven(pair: tuple[Connection, Connection], answers: str, returns: str) -> None:
    talk = talk_of(pair, answers=answers, returns=returns)
    named = dict(zip("ab", pair, strict=True))
    outcome = run(talk.frames, z=1)
    assert names(outcome) == [(6 + at, named[c].name.decode()) for at, c in enumerate(returns)]
    assert outcome.stats["suppressed_unconfirmed"] == 0


@PAIRS
@pytest.mark.parametrize("letter", "ab")
def test_the_proof_of_one_is_none_of_the_other(
    pair: tuple[Connection, Connection], letter: str
) -> None:
    named = dict(zip("ab", pair, strict=True))
    for answers in ("ab", letter):
        talk = talk_of(pair, answers=answers, returns=letter * 3)
        outcome = run(talk.frames, z=1)
        assert names(outcome) == [(4 + len(answers), named[letter].name.decode())]
        assert outcome.stats["suppressed_unconfirmed"] == 1


@PAIRS
def test_a_long_talk_before_the_second_proof(pair: tuple[Connection, Connection]) -> None:
    """Packets of a proven connection hide no packet of the other."""
    talk = talk_of(pair, answers="ab", returns="b" + "b" * 40 + "a")
    assert [name for _, name in names(run(talk.frames, z=1))] == [
        pair[1].name.decode(),
        pair[0].name.decode(),
    ]


@pytest.mark.parametrize("name", sorted(BOTH))
def test_each_name_needs_z_users_of_its_own(name: str) -> None:
    outcome = one_user(talk_of((ONE, TWO), answers="ab", returns="ab"), name.encode())
    assert {seen for _, seen in names(outcome)} == {name}
    assert outcome.flows[-1]["server"] is None


def echoed(connection: Connection) -> bytes:
    """The server repeats the ID that the client made up for another connection."""
    return quic.server_answer(connection.own, TWO.first, key_id=connection.first)


@pytest.mark.parametrize(
    "made", [echoed, lambda c: quic.server_answer(c.own, b"abc", key_id=c.first)]
)
def test_ids_that_can_be_guessed_prove_no_connection(made: Callable[[Connection], bytes]) -> None:
    answer = made(ONE)
    talk = Udp("10.7.0.1", ports=PORTS)
    for datagram in alternately(ONE.flight(), TWO.flight()):
        talk.send(datagram)
    talk.send(answer, SERVER).send(quic.short(TWO.first)).send(quic.short(b"abc"))
    assert not run(talk.frames, z=1).seen()


@pytest.mark.parametrize("server", [b"abc", TWO.first], ids=["short", "made up by the client"])
def test_packets_to_an_id_that_proves_nothing(server: bytes) -> None:
    """Long after the proof of one connection, packets of the other change nothing."""
    other = Connection(TWO.name, TWO.first, TWO.own, server)
    talk = talk_of((ONE, other), answers="ab", returns="a" * 10 + "ba" * 10)
    outcome = run(talk.frames, z=1)
    assert names(outcome) == [(6, ONE.name.decode())]
    assert outcome.stats["suppressed_unconfirmed"] == 1


def test_packets_of_a_hello_that_stays_incomplete() -> None:
    talk = quic_talk(TWO.flight()[0], *ONE.flight())
    talk.send(TWO.answer(), SERVER).send(ONE.answer(), SERVER)
    for server in (ONE.server, *[TWO.server, ONE.server] * 10):
        talk.send(quic.short(server))
    outcome = run(talk.frames, z=1)
    assert names(outcome) == [(5, ONE.name.decode())]
    assert outcome.stats["suppressed_incomplete"] == 1
