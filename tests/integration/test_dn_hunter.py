# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""DN-Hunter: the name that DNS gave a flow's server, and when a record may disclose it."""

import struct

import pytest
from support import wire
from support.engine import (
    ALL,
    ANYWHERE,
    NO,
    OWN,
    TCP_COMPLETE,
    UDP_COMPLETE,
    Outcome,
    feed,
    make_engine,
    nets,
    run,
)
from support.packets import (
    ACK,
    CLIENT,
    HOUR,
    MINUTE,
    MS,
    PSH,
    SECOND,
    SERVER,
    SERVER_ADDRESS,
    START,
    SYN,
    Frame,
    Tcp,
    Udp,
    dns,
    hello,
    merged,
    user,
    visit,
)
from support.tunnel import GATEWAY, tunnelled

NAME, OTHER = b"www.example.org", b"other.example.net"
RESOLVER, INNER_RESOLVER = "203.0.113.53", "10.9.9.9"
COLUMNS = ("fqdn", "dns_rslv", "req_tm", "res_tm", "dns_enc")
BLANK = ("-", "-", "0.0", "0.0", "0")


def answer(name: bytes, *addresses: str, ident: int = 7) -> bytes:
    records = b"".join(
        b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + bytes(map(int, address.split(".")))
        for address in addresses
    )
    message = wire.dns_message(
        wire.dns_name(*name.split(b".")),
        flags=0x8180,
        counts=(1, len(addresses), 0, 0),
        rest=records,
    )
    return struct.pack(">H", ident) + message[2:]


def lookup(
    n: int,
    name: bytes = NAME,
    t_ns: int = START,
    *,
    address: str = SERVER_ADDRESS,
    resolver: str = RESOLVER,
) -> list[Frame]:
    """User n asks for a name, and gets the address 1 ms later."""
    talk = Udp(user(n), resolver, ports=(30000 + n, 53), t_ns=t_ns)
    return talk.send(dns(name)).send(answer(name, address), SERVER).frames


def silent(n: int, t_ns: int, server: str = SERVER_ADDRESS) -> list[Frame]:
    """A TCP connection of user n that shows no name."""
    talk = Tcp(user(n), server, (40000, 9000), t_ns).handshake()
    return talk.say(b"\0\1\2\3").close().frames


LATER = START + SECOND
SHARED = [*lookup(1), *lookup(2, t_ns=START + 10 * MS)]  # at z = 2


def line_of(outcome: Outcome, port: int = 9000) -> tuple[str, ...]:
    lines = [line for line in outcome.log(TCP_COMPLETE) if line["s_port"] in (str(port), "0")]
    return tuple(lines[-1][column] for column in COLUMNS)


def hunted(frames: list[Frame], **settings: object) -> Outcome:
    return run(frames, **({"z": 2, "dn_hunter": True, "dns_votes": ALL} | settings))


def disclosed(frames: list[Frame], **settings: object) -> tuple[str, ...]:
    return line_of(hunted(frames, **settings))


def test_a_shared_name_is_told_with_its_times() -> None:
    fqdn, resolver, asked, answered, encrypted = disclosed([*SHARED, *silent(2, LATER)])
    assert (fqdn, resolver, encrypted) == (NAME.decode(), RESOLVER, "0")
    first_ms = START // MS + 10
    assert (asked, answered) == (f"{first_ms}.000000", f"{first_ms + 1}.000000")


@pytest.mark.parametrize("client", [3, 2])
def test_the_name_is_the_servers_though_the_client_is_found_late(client: int) -> None:
    """Of a flow joined in its middle the first guess may be wrong: the other's name is no server's,
    and what the client looked up stays to be told."""
    address, server = (user(3), user(1)) if client == 3 else (SERVER_ADDRESS, SERVER_ADDRESS)
    lookups = [*lookup(1, address=address), *lookup(2, address=address, t_ns=START + 10 * MS)]
    talk = Tcp(user(client), server, (40000, 50000), LATER).segment(SERVER, PSH | ACK, b"hi")
    talk.segment(CLIENT, PSH | ACK, hello(OTHER))
    kept = {"keep_client_port": True, "established": False}
    flow = run([*lookups, *talk.frames], z=1, dn_hunter=True, **kept).flows[-1]
    assert flow["client_port"] == 40000
    assert flow["fqdn"] == (None if client == 3 else NAME.decode())


def test_it_is_off_unless_asked_for() -> None:
    assert disclosed([*SHARED, *silent(2, LATER)], dn_hunter=False) == BLANK


@pytest.mark.parametrize(
    "frames",
    [
        [*lookup(2), *silent(2, LATER)],  # one user
        [*SHARED, *silent(3, LATER)],  # who did not ask
        [*SHARED, *silent(2, LATER, "198.51.100.8")],  # another address
        [*silent(2, START - SECOND), *SHARED],  # the flow was first
    ],
)
def test_anything_less_tells_nothing(frames: list[Frame]) -> None:
    assert disclosed(frames) == BLANK


def test_the_count_is_that_of_the_window_that_ends_now() -> None:
    stale = [*SHARED, *silent(2, START + 2 * HOUR), *silent(3, START + 2 * HOUR + SECOND)]
    assert disclosed(stale) == BLANK


def unproven(n: int, t_ns: int) -> list[Frame]:
    """A connection of user n that casts no vote: nobody answers."""
    return Tcp(user(n), SERVER_ADDRESS, (40000, 9000), t_ns).segment(CLIENT, SYN).frames


def fqdns(frames: list[Frame], **settings: object) -> list[str | None]:
    """The columns of DN-Hunter in the flows to port 9000."""
    outcome = hunted(frames, **settings)
    return [flow["fqdn"] for flow in outcome.flows if flow["server_port"] == 9000]


def test_now_is_the_time_of_packets_not_that_of_the_last_vote() -> None:
    assert fqdns([*SHARED, *unproven(2, START + HOUR)]) == [NAME.decode()]
    assert fqdns([*SHARED, *unproven(2, START + HOUR + 2 * MS)]) == [None]  # user 1 is too old


def test_now_is_when_the_record_is_written() -> None:
    idle = Tcp(user(2), SERVER_ADDRESS, (40000, 9000), LATER).handshake().frames
    tick = unproven(5, LATER + 10 * MINUTE)
    assert fqdns([*SHARED, *idle, *tick]) == [NAME.decode(), None]
    assert fqdns([*SHARED, *idle, *tick], window_ns=5 * MINUTE) == [None, None]


def test_who_came_in_a_time_that_was_given_up_does_not_count() -> None:
    ahead = START + 30 * HOUR
    frames = [*visit(user(7), NAME, ahead), *visit(user(8), NAME, ahead + MS)]
    back = [frame for n in range(300) for frame in unproven(9, START + n * SECOND)]
    frames += [*back, *lookup(1, t_ns=START + HOUR), *silent(1, START + HOUR + SECOND)]
    assert fqdns(frames, internal=ANYWHERE)[-1] is None


def test_it_casts_no_vote() -> None:
    frames = [*SHARED, *silent(1, LATER), *silent(2, LATER + MINUTE)]
    assert disclosed(frames, dns_votes=NO) == BLANK
    assert disclosed([*frames, *visit(user(3), NAME, LATER + MINUTE)], dns_votes=NO) == BLANK


def test_names_that_dns_has_apart_do_not_count() -> None:
    """Who forges questions would else have it tell the name of a real visitor's server."""
    assert disclosed([*SHARED, *silent(2, LATER)], dns_votes=OWN) == BLANK
    assert disclosed([*SHARED, *silent(2, LATER)], dns_votes=OWN, z=1)[0] == NAME.decode()


def test_a_resolver_is_counted_by_who_asks_it() -> None:
    visits = [*visit(user(5), NAME, START), *visit(user(6), NAME, START + 100 * MS)]
    frames = merged([visits, SHARED, silent(2, LATER + SECOND)])
    for votes in (OWN, ALL):
        assert disclosed(frames, dns_votes=votes)[:2] == (NAME.decode(), RESOLVER)
    assert disclosed(frames, dns_votes=NO)[:2] == (NAME.decode(), "-")
    one_asks = merged([visits, lookup(2, t_ns=LATER), silent(2, LATER + SECOND)])
    others = [visit(user(n), NAME, START + n * MS, RESOLVER) for n in (7, 8)]
    for votes, resolver in ((OWN, "-"), (ALL, RESOLVER), (NO, RESOLVER)):
        frames = merged([*others, one_asks])
        assert disclosed(frames, dns_votes=votes)[:2] == (NAME.decode(), resolver)


def test_names_from_elsewhere_count_for_it() -> None:
    visits = [*visit(user(5), NAME, START), *visit(user(6), NAME, START + 100 * MS)]
    frames = merged([visits, lookup(2, t_ns=LATER), silent(2, LATER + SECOND)])
    assert disclosed(frames, dns_votes=NO)[0] == NAME.decode()


def test_the_last_answer_counts() -> None:
    again = [*lookup(1, OTHER, LATER), *lookup(2, OTHER, LATER + 10 * MS)]
    assert disclosed([*SHARED, *again, *silent(2, LATER + SECOND)])[0] == OTHER.decode()
    assert disclosed([*again, *SHARED, *silent(2, LATER + SECOND)])[0] == NAME.decode()


def test_an_answer_that_nobody_asked_for_is_no_answer() -> None:
    forged = Udp(user(2), RESOLVER, (30002, 53), START + 20 * MS)
    wrong_id = answer(NAME, "198.51.100.8", ident=8)
    wrong_name = answer(OTHER, "198.51.100.8")
    for payload in (wrong_id, wrong_name, dns(NAME, response=True)):
        frames = [*SHARED, *forged.send(dns(NAME)).send(payload, SERVER).frames]
        assert disclosed([*frames, *silent(2, LATER, "198.51.100.8")]) == BLANK


def test_it_never_undoes_encrypted_client_hello() -> None:
    talk = Tcp(user(2), SERVER_ADDRESS, (40000, 9000), LATER).handshake()
    talk.say(hello(None, wire.extension(wire.ECH, b"\0" + bytes(20)))).close()
    outcome = hunted([*SHARED, *talk.frames])
    assert [flow["ech"] for flow in outcome.flows if flow["proto"] == 6] == ["offered"]
    assert line_of(outcome) == BLANK


def test_a_suppressed_name_takes_it_away() -> None:
    talk = Tcp(user(2), SERVER_ADDRESS, (40000, 9000), LATER).handshake()
    talk.say(hello(b"rare.example.com")).close()
    outcome = hunted([*SHARED, *talk.frames])
    (status,) = (flow["name_status"] for flow in outcome.flows if flow["proto"] == 6)
    assert status == "suppressed"
    assert line_of(outcome) == BLANK


def test_names_never_to_release_are_not_kept() -> None:
    frames = [*SHARED, *silent(2, LATER)]
    assert disclosed(frames, never=[b"example.org"]) == BLANK
    assert disclosed(frames, never=[b"example.org"], z=1) == BLANK
    home = [*lookup(2, b"printer.local"), *silent(2, LATER)]
    assert disclosed(home, z=1) == BLANK


def test_z_1_tells_every_name() -> None:
    assert disclosed([*lookup(2), *silent(2, LATER)], z=1)[:2] == (NAME.decode(), RESOLVER)
    assert disclosed([*lookup(2), *silent(2, LATER)], z=1, dns_votes=NO)[0] == NAME.decode()


def test_a_resolver_is_told_only_as_a_shared_address() -> None:
    own = [*lookup(1), *lookup(2, resolver="203.0.113.54", t_ns=START + 10 * MS)]
    fqdn, resolver, *_rest = disclosed([*own, *silent(2, LATER)])
    assert (fqdn, resolver) == (NAME.decode(), "-")


@pytest.mark.parametrize("asks", [False, True])
def test_a_resolver_that_was_a_client_is_withheld_however_late(asks: bool) -> None:
    """The clients of its flow's epoch are forgotten when the record is written."""
    own = lookup(7, b"far.example", START + 500 * MS, resolver="203.0.113.99")
    as_client = Udp(RESOLVER, "203.0.113.99", ports=(9999, 53), t_ns=START + 500 * MS)
    if asks:
        own = as_client.send(dns(b"far.example")).send(answer(b"far.example"), SERVER).frames
    again = [
        talk.send(dns(NAME)).send(answer(NAME, SERVER_ADDRESS), SERVER).frames
        for n in range(1, 4)
        for talk in [Udp(user(n), RESOLVER, (35000 + n, 53), START + 3 * MINUTE + n * SECOND)]
    ]
    talk = Tcp(user(2), SERVER_ADDRESS, (40000, 9000), LATER).handshake().say(b"\0\1\2\3")
    talk.wait(4 * MINUTE).close()
    frames = merged([SHARED, own, *again, talk.frames])
    assert disclosed(frames, rotate_ns=10 * MINUTE)[:2] == (
        NAME.decode(),
        "-" if asks else RESOLVER,
    )
    assert disclosed(frames, rotate_ns=MINUTE)[:2] == (NAME.decode(), "-")


def test_an_internal_resolver_has_a_pseudonym_for_its_epoch() -> None:
    inner = [lookup(n, t_ns=START + n * MS, resolver=INNER_RESOLVER) for n in (1, 2)]
    frames = merged([*inner, silent(2, LATER), silent(2, START + 2 * MINUTE)])
    settings = {"internal": nets("10.0.0.0/8")}
    outcome = hunted(frames, **settings)
    (line, *_others) = outcome.log(TCP_COMPLETE)
    (resolver,) = {question["s_ip"] for question in outcome.log(UDP_COMPLETE)} - {"-"}
    assert line["dns_rslv"] == resolver != INNER_RESOLVER
    assert line["dns_enc"] == "1"
    rotated = hunted(frames, rotate_ns=MINUTE, **settings).log(TCP_COMPLETE)
    assert [(line["fqdn"], line["dns_rslv"], line["dns_enc"]) for line in rotated] == [
        (NAME.decode(), rotated[0]["dns_rslv"], "1"),
        (NAME.decode(), "-", "0"),
    ]


@pytest.mark.parametrize(("near", "shown"), [("10.3.3.3", True), ("169.254.1.1", False)])
def test_a_resolver_behind_a_special_end_has_no_pseudonym(near: str, shown: bool) -> None:
    """A tunnel's end stands for the resolver, which somebody outside asks through it."""
    frames = [*lookup(1, resolver=RESOLVER), *silent(1, LATER)]
    outcome = run(
        tunnelled(frames, user(1), GATEWAY, near),
        z=1,
        dn_hunter=True,
        internal=nets("10.3.3.0/24", "169.254.0.0/16"),
    )
    fqdn, resolver = line_of(outcome)[:2]
    assert (fqdn, resolver != "-") == (NAME.decode(), shown)


def test_udp_flows_are_told_it_in_place_of_the_question() -> None:
    talk = Udp(user(2), ports=(40000, 9999), t_ns=LATER).send(b"x").send(b"y", SERVER)
    frames = [*SHARED, *talk.frames]
    told = hunted(frames).log(UDP_COMPLETE)
    names = sorted((line["s_port"], line["fqdn"]) for line in told)
    assert names == [("53", "-"), ("53", "-"), ("9999", NAME.decode())]
    plain = run(frames, z=2).log(UDP_COMPLETE)
    assert sorted(line["fqdn"] for line in plain) == ["-", "-", NAME.decode()]
    assert next(line["fqdn"] for line in plain if line["s_port"] == "9999") == "-"


def test_the_clock_set_back_forgets_it() -> None:
    ahead = START + 30 * HOUR
    frames = [*lookup(1, t_ns=ahead), *lookup(2, t_ns=ahead + MS)]
    back = [frame for n in range(300) for frame in silent(9, START + n * SECOND)]
    frames += [*back, *lookup(1, t_ns=START + HOUR), *silent(2, START + HOUR + SECOND)]
    outcome = hunted(frames, internal=ANYWHERE)
    assert outcome.stats["clock_rebased"] == 1
    assert line_of(outcome) == BLANK


def test_many_clients_push_the_oldest_out_and_nothing_breaks() -> None:
    frames = [frame for n in range(2000) for frame in lookup(n, t_ns=START + n * MS)]
    frames += silent(1999, START + 10 * SECOND)
    assert disclosed(frames)[0] == NAME.decode()


def test_a_name_that_is_listed_later_is_in_no_record_from_then_on() -> None:
    engine = make_engine(z=2, dn_hunter=True, dns_votes=ALL)
    talk = silent(2, LATER)
    feed(engine, [*SHARED, *talk[:-1]])
    engine.set_never([b"example.org"])
    feed(engine, [*talk[-1:], *silent(1, LATER + SECOND)])
    while engine.finish():
        pass
    log = engine.take(TCP_COMPLETE)
    assert log.count(b"\n") == 2
    assert NAME not in log
    engine.close()
