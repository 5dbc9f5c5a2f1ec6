# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Requests whose method IANA does not list: any token is a method where a request surely begins."""

import pytest
from support.examples import each
from support.packets import ACK, CLIENT, PSH, SERVER, SYN, Tcp, request
from support.stream import NAME, OTHER, names, one_user, segments, talk_of

WEB = (40000, 80)
METHODS = "BITS_POST RPC_IN_DATA RPC_OUT_DATA CCM_POST SMS_POST SUBSCRIBE UNSUBSCRIBE NOTIFY PURGE"
METHODS += (
    " BAN M-SEARCH BPROPFIND POLL VIEW SOURCE DEBUG TRACK PRI get Get GETS GE x 1 !#$%&'*+-.^"
)
METHODS += " _`|~ " + "A" * 64 + " " + "A" * 65 + " " + "a" * 300
BODY = request(b"body.example")


def asking(method: str, host: bytes = NAME, *fields: bytes) -> bytes:
    lines = [b"%b /x HTTP/1.1" % method.encode(), b"Host: " + host, *fields, b"", b""]
    return b"\r\n".join(lines)


@each("method", METHODS.split())
def test_any_token_is_a_method_at_a_connections_first_byte(method: str) -> None:
    outcome = one_user(talk_of(asking(method), ports=WEB))
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["suppressed_incomplete"] == 0


@pytest.mark.parametrize("method", METHODS.split())
def test_any_token_is_a_method_behind_a_request_that_ended_by_its_length(method: str) -> None:
    length, chunks = b"Content-Length: %d" % len(BODY), b"Transfer-Encoding: chunked"
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
    first = {
        "no body": asking("GET", OTHER),
        "a length": asking("POST", OTHER, length) + BODY,
        "chunks": asking("POST", OTHER, chunks) + chunked,
    }
    for said in first.values():
        for payloads in ((said, asking(method)), (said + asking(method),)):
            talk = talk_of(*payloads, asking("GET", b"last.example"), ports=WEB)
            assert names(talk) == ["last.example", OTHER.decode(), NAME.decode()]


@pytest.mark.parametrize("method", ["BITS_POST", "get", "1"])
def test_the_body_of_such_a_request_is_passed_over(method: str) -> None:
    said = asking(method, NAME, b"Content-Length: %d" % len(BODY)) + BODY
    for payloads in (
        (said, request(OTHER)),
        (said + request(OTHER),),
        segments(said + request(OTHER), 90),
    ):
        assert names(talk_of(*payloads, ports=WEB)) == [OTHER.decode(), NAME.decode()]


def test_rpc_over_http_announces_a_gigabyte() -> None:
    """Its channel is a request whose body lasts as long as the connection."""
    said = asking("RPC_IN_DATA", NAME, b"Content-Length: 1073741824")
    outcome = one_user(talk_of(said, BODY, b"\5\0\x0b\3" * 40, ports=WEB))
    assert outcome.released() == {NAME.decode()}
    assert outcome.stats["bodies_lost"] == 0


@each("method", ["BITS_POST", "M-SEARCH", "SUBSCRIBE", "GET"])
@each("size", [1, 3, 7, 20, 60])
def test_such_a_request_in_small_segments(method: str, size: int) -> None:
    said = asking(method) + asking(method, OTHER)
    assert names(talk_of(*segments(said, size), ports=WEB)) == [OTHER.decode(), NAME.decode()]


@pytest.mark.parametrize("method", ["get", "1", "purge"])
def test_a_small_word_is_followed_from_its_target_on(method: str) -> None:
    said = asking(method)
    for cut in range(len(method) + 1, len(said)):
        assert names(talk_of(said[:cut], said[cut:], ports=WEB)) == [NAME.decode()]


def test_the_request_may_come_with_the_syn_or_before_the_answer_to_it() -> None:
    said = asking("PURGE")
    opened = Tcp(ports=WEB).segment(CLIENT, SYN, said).segment(SERVER, SYN | ACK)
    assert names(opened.segment(CLIENT, ACK)) == [NAME.decode()]
    overtaking = Tcp(ports=WEB).segment(SERVER, SYN | ACK, ack=1001).segment(CLIENT, SYN)
    assert names(overtaking.segment(CLIENT, ACK).say(said)) == [NAME.decode()]


OTHERS = {
    "SIP": b"INVITE sip:bob@a.example SIP/2.0\r\nHost: www.example.org\r\n\r\n",
    "SIP, to all": b"OPTIONS * SIP/2.0\r\nHost: www.example.org\r\n\r\n",
    "RTSP": b"DESCRIBE rtsp://a.example/x RTSP/1.0\r\nHost: www.example.org\r\n\r\n",
    "ICAP": b"REQMOD icap://a.example/x ICAP/1.0\r\nHost: www.example.org\r\n\r\n",
    "a later version": b"PURGE /x HTTP/2.0\r\nHost: www.example.org\r\n\r\n",
    "no version": b"PURGE /x\r\nHost: www.example.org\r\n\r\n",
    "text": b"HELLO WORLD\r\nHost: www.example.org\r\n\r\n",
    "no token": b"a(b) /x HTTP/1.1\r\nHost: www.example.org\r\n\r\n",
    "a blank in front": b" PURGE /x HTTP/1.1\r\nHost: www.example.org\r\n\r\n",
}


@each("what", OTHERS)
@each("size", [20, 200])
def test_other_request_lines_name_no_host(what: str, size: int) -> None:
    talk = talk_of(*segments(OTHERS[what], size), ports=WEB)
    assert names(talk) == []
    assert names(talk_of(request(OTHER), *segments(OTHERS[what], size), ports=WEB)) == [
        OTHER.decode()
    ]


@pytest.mark.parametrize("first", [b"PING", b"EHLO", b"A B", b"QUIT\n", b"HELF\x20\0\0\0"])
def test_words_that_are_no_request_hide_nothing(first: bytes) -> None:
    """Behind the end of their line, a segment is read as if they had not been there."""
    talk = talk_of(first + b"\r\n", request(NAME), ports=(40000, 5000))
    assert names(talk) == [NAME.decode()]


def test_one_word_is_no_request_if_the_client_never_sent_more() -> None:
    outcome = one_user(talk_of(b"PING", ports=(40000, 5000)).close())
    assert (outcome.last_status, outcome.stats["suppressed_incomplete"]) == ("none", 0)
    talk = talk_of(b"PING", ports=(40000, 5000))
    talk.next[CLIENT] += 30
    outcome = one_user(talk.close())
    assert outcome.last_status == "suppressed"


def test_a_word_without_the_rest_of_its_line_may_have_been_a_request() -> None:
    outcome = one_user(talk_of(b"PURGE /x HTT", ports=WEB))
    assert outcome.last_status == "suppressed"
    assert outcome.stats["suppressed_incomplete"] == 1


def test_what_acknowledges_nobody_begins_no_request() -> None:
    """A word far ahead of the stream is read as a request only if it is registered."""
    talk = Tcp(ports=WEB).handshake().say(request(OTHER))
    talk.next[CLIENT] += 30_000
    assert names(talk.segment(CLIENT, PSH | ACK, asking("PURGE"))) == [OTHER.decode()]
    talk.segment(CLIENT, PSH | ACK, request(NAME))
    assert names(talk) == [OTHER.decode()]
