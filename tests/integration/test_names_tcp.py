# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Names in TCP streams through the whole engine: in pieces, out of order, behind lost bytes."""

import random
import struct
from collections import Counter

import pytest
from support.engine import NO, run
from support.examples import each
from support.h2 import (
    DATA,
    END_STREAM,
    PREFACE,
    SETTINGS,
    WINDOW_UPDATE,
    Client,
    frame,
    opening,
)
from support.packets import (
    ACK,
    CLIENT,
    MS,
    PSH,
    RST,
    SERVER,
    SERVER_ADDRESS,
    START,
    SYN,
    Frame,
    Tcp,
    dns,
    request,
    user,
)
from support.proxy_starttls_prefix import PREFIXES
from support.stream import (
    CUT,
    DNS,
    HELLO,
    LONG_HELLO,
    NAME,
    OTHER,
    message,
    names,
    one_user,
    place,
    segments,
    talk_of,
)

# ---- DNS over TCP -------------------------------------------------------------------------------


HOSTS = [b"h%d.example" % i for i in range(6)]
QUESTIONS = b"".join(message(host, ident=i) for i, host in enumerate(HOSTS))
DNS_NAMES = [host.decode() for host in HOSTS]


@pytest.mark.parametrize("size", [1, 2, 3, 17, 40, 1000])
def test_dns_messages_in_segments_of_any_size(size: int) -> None:
    outcome = run(talk_of(*segments(QUESTIONS, size), ports=DNS).frames, z=1)
    assert sorted(o["name"] for o in outcome.observations) == DNS_NAMES
    assert {o["name_source"] for o in outcome.observations} == {"dns"}
    assert outcome.flow["name_source"] == "dns"


def test_the_handshake_is_the_evidence_for_dns_over_tcp() -> None:
    talk = talk_of(message(NAME), ports=DNS)
    assert one_user(talk).released() == {NAME.decode()}
    assert not one_user(talk, dns_votes=NO).observations
    lone = Tcp(ports=DNS).segment(CLIENT, PSH | ACK, message(NAME))
    outcome = one_user(lone)
    assert not outcome.observations
    assert outcome.stats["suppressed_unconfirmed"] == 1
    assert one_user(lone, established=False).released() == {NAME.decode()}


def test_dns_messages_out_of_order() -> None:
    dice = random.Random(4)
    for _ in range(20):
        cuts = sorted(dice.sample(range(1, len(QUESTIONS)), 5))
        pieces = list(zip([0, *cuts], [*cuts, len(QUESTIONS)], strict=True))
        dice.shuffle(pieces)
        assert names(place(Tcp(ports=DNS).handshake(), QUESTIONS, pieces)) == DNS_NAMES


def test_a_dns_message_that_is_not_read_is_passed_over() -> None:
    stateful = struct.pack(">HHHHHHH", 16, 9, 6 << 11, 0, 0, 0, 0) + bytes(4)
    update = struct.pack(">H", 40000) + dns(NAME)[:2] + b"\x28\0" + dns(NAME)[4:] + bytes(39967)
    talk = talk_of(message(NAME), stateful, *segments(update, 1400), message(OTHER), ports=DNS)
    assert names(talk) == [OTHER.decode(), NAME.decode()]


def test_a_dns_message_that_lies_is_suppressed_and_passed_over() -> None:
    """Its name's first label has a length that no label can have."""
    lie = dns(OTHER)[:12] + b"\x80" + dns(OTHER)[13:]
    talk = talk_of(message(NAME), struct.pack(">H", len(lie)) + lie, message(HOSTS[0]), ports=DNS)
    outcome = run(talk.frames, z=1)
    assert outcome.released() == {NAME.decode(), HOSTS[0].decode()}
    assert outcome.stats["suppressed_invalid"] == 1


def test_answers_and_what_is_no_dns_show_no_name() -> None:
    talk = Tcp(ports=DNS).handshake().say(message(NAME, response=True))
    assert names(talk) == []
    others = {b"\0\3abc" + bytes(40): "suppressed", bytes(60): "suppressed"}
    for other, status in {**others, b"SSH-2.0-OpenSSH_9\r\n": "none"}.items():
        outcome = run(talk_of(other, ports=DNS).frames, z=1)
        assert not outcome.observations
        assert outcome.flow["name_status"] == status
    assert names(talk_of(HELLO, ports=DNS)) == [NAME.decode()]
    assert names(talk_of(request(NAME), ports=DNS)) == [NAME.decode()]
    assert names(talk_of(message(NAME), ports=(40000, 443))) == []


def test_dns_goes_on_behind_lost_messages() -> None:
    talk = Tcp(ports=DNS).handshake().say(message(NAME))
    talk.next[CLIENT] += 30_000
    talk.say(message(OTHER))
    assert names(talk) == [OTHER.decode(), NAME.decode()]
    cut = Tcp(ports=DNS).handshake().say(message(NAME))
    long = Frame(cut.frames[3].t_ns, cut.frames[3].data, cut.frames[3].wire)
    cut.frames[3] = long.cut(long.wire - 6)
    outcome = run(cut.frames, z=1)
    assert not outcome.observations
    assert outcome.stats["suppressed_incomplete"] == 1


# ---- HTTP/2 -------------------------------------------------------------------------------------


def h2_stream() -> bytes:
    """Requests that reuse and evict what earlier ones added to the table."""
    client = Client()
    parts = [PREFACE, frame(SETTINGS), frame(WINDOW_UPDATE, bytes(4))]
    for i, host in enumerate(HOSTS):
        parts.append(client.request(host, (b"cookie", b"c%d" % i * 300), cuts=[20]))
        parts.append(frame(DATA, bytes(3000 * i), flags=END_STREAM, stream=client.stream))
        parts.append(client.headers(client.encoder.encode([(b"x-trailer", host)])))
    return b"".join(parts)


H2 = h2_stream()


@pytest.mark.parametrize("size", [9, 100, 1448, 9000, 60000])
def test_h2_in_segments_of_any_size(size: int) -> None:
    outcome = run(talk_of(*segments(H2, size), ports=(40000, 80)).frames, z=1)
    assert sorted(o["name"] for o in outcome.observations) == DNS_NAMES
    assert {o["name_source"] for o in outcome.observations} == {"http"}


def test_h2_votes_like_any_other() -> None:
    talk = talk_of(opening(NAME))
    assert one_user(talk).released() == {NAME.decode()}
    assert not run(talk.frames, z=2).observations


def test_h2_out_of_order() -> None:
    dice = random.Random(9)
    for _ in range(10):
        pieces = [(at, at + 1200) for at in range(0, len(H2), 1200)]
        for i in range(0, len(pieces) - 3, 3):
            part = pieces[i : i + 3]
            dice.shuffle(part)
            pieces[i : i + 3] = part
        assert names(place(Tcp().handshake(), H2, pieces)) == DNS_NAMES


def test_h2_behind_an_upgrade() -> None:
    upgrade = b"GET / HTTP/1.1\r\nHost: first.example\r\nConnection: Upgrade, HTTP2-Settings\r\n"
    upgrade += b"Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n"
    talk = Tcp().handshake().say(upgrade)
    talk.say(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", SERVER).say(opening(NAME))
    assert names(talk) == ["first.example", NAME.decode()]


def test_h2_whose_bytes_are_lost_is_followed_no_further() -> None:
    """What the lost bytes added to the table is not known."""
    client = Client()
    talk = Tcp().handshake().say(PREFACE + frame(SETTINGS) + client.request(NAME))
    lost = client.request(OTHER)
    talk.next[CLIENT] += len(lost)
    talk.say(client.request(b"third.example")).say(client.request(OTHER))
    outcome = run(talk.frames, z=1)
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["suppressed_incomplete"] == 1
    data = Tcp().handshake().say(PREFACE + frame(SETTINGS) + client.request(NAME)[:-3])
    assert run(data.frames, z=1).stats["suppressed_incomplete"] == 1


def test_lost_bytes_inside_a_body_do_not_matter() -> None:
    client = Client()
    talk = Tcp().handshake().say(PREFACE + frame(SETTINGS) + client.request(NAME))
    body = frame(DATA, bytes(9000), stream=1)
    talk.say(body[:1000])
    talk.next[CLIENT] += 5000
    talk.say(body[6000:]).say(client.request(OTHER))
    assert names(talk) == [OTHER.decode(), NAME.decode()]


BROKEN_H2 = {
    "no HPACK": frame(1, b"\x80", flags=4, stream=1),
    "a table too large": frame(1, b"\x3f\xe2\x1f", flags=4, stream=1),
    "continuation alone": frame(9, b"", flags=4, stream=1),
}


@pytest.mark.parametrize("data", BROKEN_H2.values(), ids=BROKEN_H2)
def test_h2_that_cannot_be_followed_is_suppressed(data: bytes) -> None:
    talk = talk_of(PREFACE + frame(SETTINGS) + data + Client().request(NAME))
    outcome = run(talk.frames, z=1)
    assert not outcome.observations
    assert outcome.flow["name_status"] == "invalid"
    assert outcome.stats["suppressed_invalid"] == 1


def test_h2_names_that_are_not_allowed() -> None:
    for host, more in [
        (b"me@www.example.org", ()),
        (NAME, ((b"host", OTHER),)),
        (b"", ()),
        (b"192.0.2.1:80", ()),
    ]:
        client = Client()
        talk = talk_of(PREFACE + frame(SETTINGS) + client.request(host, *more))
        assert names(talk.say(client.request(OTHER))) == [OTHER.decode()]


def test_h2_states_run_out() -> None:
    """Their cap can only suppress."""
    frames = []
    for i in range(8200):
        talk = Tcp(user(i), ports=(20000, 80), t_ns=START + i).handshake()
        frames += talk.segment(CLIENT, PSH | ACK, opening(NAME)).frames
    outcome = run(frames, z=1, max_flows=1 << 14)
    assert outcome.stats["header_tables_full"] == 8
    assert outcome.stats["suppressed_capacity"] == 8
    assert len(outcome.observations) == 8192


# ---- requests that are not whole ----------------------------------------------------------------


def test_a_request_head_that_the_capture_never_finishes() -> None:
    """Decided when the flow ends, at the time of its last bytes."""
    talk = talk_of(CUT[:20], CUT[20:])
    outcome = one_user(talk)
    assert outcome.seen() == Counter({(START + 5 * MS, NAME.decode(), "http"): 1})
    assert outcome.flows[-1]["name_status"] == "released"
    assert not run(talk.frames, z=2).observations
    whole = talk_of(CUT[:20], CUT[20:], b"\r\n\r\n")
    assert one_user(whole).seen().total() == 1


@pytest.mark.parametrize("rest", [b"\r\nHost: www.example.net", b"\r\nHost: x\r\n", b"\r\nhost:"])
def test_a_head_that_contradicts_itself_names_nothing(rest: bytes) -> None:
    outcome = one_user(talk_of(CUT + rest))
    assert not outcome.observations
    assert outcome.stats["suppressed_invalid"] == 1


def test_a_head_with_a_hole_names_nothing() -> None:
    data = request(NAME)[:-2] + b"X: " + b"y" * 3000 + b"\r\n\r\n"
    talk = place(Tcp().handshake(), data, [(0, 1000), (2000, len(data))])
    outcome = one_user(talk)
    assert not outcome.observations
    assert outcome.stats["suppressed_incomplete"] == 1


def test_a_snapshot_length_cuts_heads_and_the_next_ones_still_count() -> None:
    first = request(NAME)[:-2] + b"Cookie: " + b"c" * 500 + b"\r\n\r\n"
    talk = talk_of(first, first.replace(NAME, OTHER))
    talk.frames = [frame.cut(200) for frame in talk.frames]
    assert names(talk) == [OTHER.decode(), NAME.decode()]
    talk.frames = [frame.cut(54 + 25) for frame in talk.frames]
    outcome = run(talk.frames, z=1)
    assert not outcome.observations
    assert outcome.stats["suppressed_incomplete"] == 1  # and behind a lost head none is read


def test_what_stands_behind_lost_bytes_is_read_when_the_flow_ends() -> None:
    for payload in (HELLO, request(NAME)):
        talk = Tcp().handshake()
        talk.next[CLIENT] += 100
        talk.say(payload)
        assert one_user(talk).released() == {NAME.decode()}
    far = Tcp().handshake()
    far.next[CLIENT] += 30_000
    far.say(request(NAME))
    assert one_user(far).seen() == Counter({(START + 3 * MS, NAME.decode(), "http"): 1})


def test_requests_go_on_behind_lost_bytes() -> None:
    talk = Tcp().handshake().say(b"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 9\r\n\r\n")
    talk.next[CLIENT] += 700
    talk.say(request(NAME)).say(request(OTHER))
    assert names(talk) == ["a.example", OTHER.decode(), NAME.decode()]


@pytest.mark.parametrize("start", [b"", b"GET / HTTP/1.1\r\nHost: a.example\r\n"])
@pytest.mark.parametrize("tail", [b"Accept: x\r\n\r\n", b"\r\n\r\n", b"\n\n", b"x\r\n\r\n\r\n"])
def test_behind_the_rest_of_a_request_only_the_search_goes_on(start: bytes, tail: bytes) -> None:
    """A stream whose start is lost is searched like one that is joined in its middle, at the starts
    of segments; one whose request is lost in its middle is not read any more."""
    for pieces in ([tail, request(NAME)], [tail + request(NAME)]):
        talk = talk_of(start) if start else Tcp().handshake()
        talk.next[CLIENT] += 300
        for piece in pieces:
            talk.say(piece)
        outcome = run(talk.say(request(OTHER)).frames, z=1)
        assert not outcome.released() & ({NAME.decode(), OTHER.decode()} if start else set())
        assert outcome.stats["suppressed_incomplete"] == bool(start)
        assert outcome.stats["names_after_gaps"] == (not start)


@pytest.mark.parametrize("before", [b"0", b"0\r\n", b"x\r\n\r\n0", b"x\r\n\r\n0\r\n"])
def test_no_request_begins_in_the_middle_of_lost_ones(before: bytes) -> None:
    talk = Tcp().handshake()
    talk.next[CLIENT] += 300
    assert names(talk.say(before + request(NAME))) == []


@pytest.mark.parametrize("size", [1, 7])
def test_a_request_in_tiny_segments(size: int) -> None:
    assert names(talk_of(*segments(request(NAME), size))) == [NAME.decode()]


def test_a_sender_of_single_bytes_is_not_followed_for_ever() -> None:
    slow = request(NAME)[:-2] + b"X: " + b"y" * 400 + b"\r\n\r\n"
    outcome = run(talk_of(*segments(slow, 1)).frames, z=1)
    assert not outcome.observations
    assert outcome.stats["suppressed_incomplete"] == 1


# ---- flows joined in their middle ---------------------------------------------------------------


AGAIN = PREFIXES["TLS 1.3, before the second hello"] + HELLO


@each("payload", [HELLO, AGAIN, request(NAME), opening(NAME)])
@each("ports", [(40000, 443), (443, 40000), (40000, 50000)])
def test_joined_in_the_middle(payload: bytes, ports: tuple[int, int]) -> None:
    talk = Tcp(ports=ports).segment(SERVER, ACK, b"x" * 5).segment(CLIENT, PSH | ACK, b"y" * 5)
    talk.say(payload)
    assert run(talk.frames, z=1, established=False).released() == {NAME.decode()}
    assert not run(talk.frames, z=1).observations


@pytest.mark.parametrize("server", [SERVER_ADDRESS, user(2)])
def test_who_showed_a_name_stays_the_client(server: str) -> None:
    """Its votes, which may wait in the same batch, would be the other's."""
    talk = Tcp(user(1), server, DNS).segment(CLIENT, PSH | ACK, message(NAME))
    talk.segment(CLIENT, PSH | ACK, message(OTHER))
    talk.frames[-1] = talk.frames[-1].cut(len(talk.frames[-1].data) - 8)
    first = run(talk.frames, z=1, established=False, keep_client_port=True)
    talk.segment(SERVER, PSH | ACK, request(b"late.example"))
    outcome = run(talk.frames, z=1, established=False, keep_client_port=True)
    assert outcome.released() == first.released() == {NAME.decode()}
    assert outcome.flow["client_port"] == first.flow["client_port"] == 40000


def test_a_hello_in_pieces_out_of_order_behind_a_syn_that_came_late() -> None:
    talk = Tcp().segment(SERVER, SYN | ACK).segment(CLIENT, SYN, seq=1000)
    place(talk, LONG_HELLO, [(700, len(LONG_HELLO)), (0, 700)])
    assert names(talk, established=False) == [NAME.decode()]
    assert not names(talk)


def test_any_bytes_in_any_order_leave_no_state() -> None:
    """The engine's own check runs at the end of each."""
    dice = random.Random(11)
    sources = [H2, QUESTIONS, LONG_HELLO, request(NAME) * 9, *PREFIXES.values()]
    for _ in range(150):
        data = bytearray(b"".join(dice.choices(sources, k=3)))
        for _ in range(dice.randrange(4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        talk = Tcp(ports=(40000, dice.choice([53, 443])))
        if dice.random() < 0.8:
            talk.handshake()
        for _ in range(30):
            at = dice.randrange(len(data))
            piece = bytes(data[at : at + dice.choice([1, 30, 1400, 30000])])
            talk.segment(CLIENT, PSH | ACK, piece, seq=1001 + at)
        if dice.random() < 0.5:
            talk.segment(SERVER, RST)
        run(talk.frames, z=1, established=False)
