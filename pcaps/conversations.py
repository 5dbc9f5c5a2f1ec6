# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Whole conversations over TCP and UDP (TLS, HTTP, DNS, QUIC), with their sightings of names.

A plan describes the messages and the faults of a conversation. The functions play it on a `TcpTalk`
or `UdpTalk`. They note the packet that completes a name and the packet that confirms the client.
"""

import ipaddress
from dataclasses import dataclass, field

from flows import CLIENT, SERVER, Flow, Packet, Sighting
from packets import TcpTalk, UdpTalk

from zanon_net.bench.messages import (
    HelloShape,
    client_hello,
    dns_query,
    dns_response,
    finished_records,
    hello_record,
    http_request,
    http_response,
    record,
    server_flight_tls12,
    server_flight_tls13,
    server_hello,
)
from zanon_net.bench.quic_packets import (
    DATAGRAM_BYTES,
    LongHeader,
    Side,
    ack_frame,
    client_initials,
    crypto_frame,
    handshake_packet,
    initial_packet,
    short_packet,
)

RETRANSMIT_US = 250_000
DNS_RETRY_US = 5_000_000
QTYPE_A, QTYPE_PTR, QTYPE_AAAA = 1, 12, 28


# --- TCP: opening and ending, shared by TLS and HTTP -------------------------------------------


def open_tcp(talk: TcpTalk, opening: str) -> Packet | None:
    """Open the connection in the way of `opening`. Return the packet that confirms the client.

    "full" is the three-way handshake. "syn_repeated" sends its SYN twice. With "hello_acks" the
    first data segment confirms the client. "no_answer" and "wrong_ack" look like a spoofed source,
    and confirm nothing.
    """
    if opening == "full":
        return talk.open()
    if opening == "syn_repeated":
        talk.emit(CLIENT, "S", seq=talk.next_seq[CLIENT])
        talk.now += 4 * RETRANSMIT_US
        return talk.open()
    talk.emit(CLIENT, "S")
    talk.cross()
    if opening == "no_answer":
        return None
    talk.emit(SERVER, "SA")
    talk.cross()
    return None


def end_tcp(talk: TcpTalk, ending: str) -> None:
    """End the connection: "client_fin", "server_fin", "client_rst", "server_rst" or "open"."""
    talk.now += talk.dice.between(1_000, 400_000)
    if ending == "client_fin":
        talk.close(CLIENT)
    elif ending == "server_fin":
        talk.close(SERVER)
    elif ending == "client_rst":
        talk.emit(CLIENT, "RA")
    elif ending == "server_rst":
        talk.emit(SERVER, "RA")


# --- TLS ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TlsPlan:
    """One TLS connection; `delivery` is "in_order", "reordered" or "repeated"."""

    name: bytes | None
    shape: HelloShape = field(default_factory=HelloShape)
    delivery: str = "in_order"
    opening: str = "full"
    ending: str = "client_fin"


def _deliver_hello(talk: TcpTalk, hello: bytes, delivery: str) -> tuple[Packet, Packet]:
    """Send the hello. Return the first segment sent and the segment that completes the hello."""
    parts = talk.segments(hello)
    base = talk.next_seq[CLIENT]
    if delivery == "reordered":
        # The last part overtakes the others, so the first part comes after it.
        parts = [parts[-1], *parts[:-1]]
    sent = [talk.emit(CLIENT, "PA", part, seq=base + offset) for offset, part in parts]
    if delivery == "repeated":
        talk.now += RETRANSMIT_US
        for offset, part in parts:
            talk.emit(CLIENT, "PA", part, seq=base + offset)
    talk.next_seq[CLIENT] = (base + len(hello)) % (1 << 32)
    talk.cross()
    return sent[0], sent[-1]


def _half_open_hello(talk: TcpTalk, plan: TlsPlan, hello: bytes) -> Flow:
    """Send a hello from a source that never saw the server's SYN-ACK."""
    open_tcp(talk, plan.opening)
    skew = 777_777 if plan.opening == "wrong_ack" else 0
    named = talk.emit(CLIENT, "PA", hello, ack_skew=skew)
    talk.cross()
    if plan.opening == "wrong_ack":
        talk.emit(SERVER, "R")
    if plan.name is not None:
        talk.flow.sightings.append(Sighting(plan.name, "tls", named, None))
    return talk.flow


def tls_flow(talk: TcpTalk, plan: TlsPlan) -> Flow:
    """Play a TLS connection: handshake, one opaque request and answer, ending."""
    dice, tls13 = talk.dice, plan.shape.tls13
    hello = hello_record(plan.name, plan.shape, dice)
    if plan.opening in ("no_answer", "wrong_ack"):
        return _half_open_hello(talk, plan, hello)
    evidence = open_tcp(talk, plan.opening)
    first, named = _deliver_hello(talk, hello, plan.delivery)
    if plan.name is not None:
        talk.flow.sightings.append(Sighting(plan.name, "tls", named, evidence or first))
    talk.emit(SERVER, "A")
    if plan.ending == "server_rst":
        end_tcp(talk, plan.ending)
        return talk.flow
    certified = plan.name or b"no-name.example"
    talk.say(SERVER, server_flight_tls13(dice) if tls13 else server_flight_tls12(certified, dice))
    request = record(23, dice.bytes(dice.between(90, 260)))
    answer = record(23, dice.bytes(dice.between(60, 300)))
    if tls13:
        talk.say(CLIENT, finished_records(tls13, True, dice) + request)
        talk.say(SERVER, answer)
    else:
        talk.say(CLIENT, finished_records(tls13, True, dice))
        talk.say(SERVER, finished_records(tls13, False, dice))
        talk.say(CLIENT, request)
        talk.say(SERVER, answer)
    end_tcp(talk, plan.ending)
    return talk.flow


# --- HTTP --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; `host` None sends no Host header."""

    host: bytes | None
    method: bytes = b"GET"
    target: bytes = b"/"
    body: bytes = b""


def http_flow(talk: TcpTalk, requests: list[Request], split: bool, ending: str) -> Flow:
    """Play requests and answers on one connection; `split` cuts each head inside its Host line."""
    dice = talk.dice
    evidence = talk.open()
    for request in requests:
        data = http_request(request.method, request.target, request.host, request.body)
        cut = data.index(b"Host: ") + 8 if split and request.host is not None else 0
        if cut:
            talk.emit(CLIENT, "PA", data[:cut])
            talk.now += dice.between(500, 5_000)
        named = talk.say(CLIENT, data[cut:])
        if request.host is not None:
            talk.flow.sightings.append(Sighting(request.host, "http", named, evidence))
        talk.cross()
        status = b"403 Forbidden" if request.method == b"CONNECT" else b"200 OK"
        talk.say(SERVER, http_response(status, b"demo " * dice.between(4, 40)))
        talk.now += dice.between(20_000, 900_000)
    end_tcp(talk, ending)
    return talk.flow


# --- DNS ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lookup:
    """One DNS lookup.

    `behaviour`: "answered"; "silent" (asked twice, never answered); "late" (only the repeated
    question is answered); "wrong_id" (the only response has another id); "corrected" (a response
    with a wrong id, then the right response); "denied" (NXDOMAIN); "both" (A and AAAA from one
    port).
    """

    labels: tuple[bytes, ...]
    addresses: tuple[str, ...] = ()
    qtype: int = QTYPE_A
    behaviour: str = "answered"


def _presentation(labels: tuple[bytes, ...]) -> bytes:
    """Return the name as text. Bytes that hostnames do not allow are \\DDD (RFC 1035, 5.1)."""
    plain = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
    texts = ["".join(chr(c) if c in plain else f"\\{c:03d}" for c in label) for label in labels]
    return ".".join(texts).encode()


def _answer(talk: UdpTalk, lookup: Lookup, ident: int, qtype: int) -> Packet:
    packed = [ipaddress.ip_address(address).packed for address in lookup.addresses]
    size = {QTYPE_A: 4, QTYPE_AAAA: 16}.get(qtype)
    found = [address for address in packed if len(address) == size]
    if qtype == QTYPE_PTR and lookup.behaviour != "denied":
        found = [b"\x04host\x07example\x00"]
    if lookup.behaviour == "denied":
        found = []
    return talk.send(SERVER, dns_response(ident, lookup.labels, qtype, found))


def dns_flow(talk: UdpTalk, lookup: Lookup) -> Flow:
    """Play a lookup from one client port."""
    ident, edns = talk.dice.below(0x10000), talk.dice.chance(40)
    question = dns_query(ident, lookup.labels, lookup.qtype, edns)
    named = talk.send(CLIENT, question)
    evidence = None
    second = (ident + 0x1111) % 0x10000
    if lookup.behaviour == "both":
        talk.send(CLIENT, dns_query(second, lookup.labels, QTYPE_AAAA, edns))
    if lookup.behaviour in ("silent", "late"):
        talk.now += DNS_RETRY_US
        talk.send(CLIENT, question)
    talk.cross()
    if lookup.behaviour in ("wrong_id", "corrected"):
        _answer(talk, lookup, second, lookup.qtype)
    if lookup.behaviour not in ("silent", "wrong_id"):
        evidence = _answer(talk, lookup, ident, lookup.qtype)
    if lookup.behaviour == "both":
        _answer(talk, lookup, second, QTYPE_AAAA)
    talk.flow.sightings.append(Sighting(_presentation(lookup.labels), "dns", named, evidence))
    return talk.flow


# --- QUIC --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class QuicPlan:
    """One QUIC connection.

    `behaviour`: "full"; "repeated" (the first flight is sent again); "silent" (no answer at all);
    "no_return" (the server answers and the client never uses the server's connection ID).
    """

    name: bytes
    mlkem: bool = False
    behaviour: str = "full"


def quic_flow(talk: UdpTalk, plan: QuicPlan) -> Flow:
    """Play a QUIC v1 connection: client and server Initials, Handshake and 1-RTT packets."""
    dice = talk.dice
    first_dcid, server_id = dice.bytes(8), dice.bytes(8)
    client_id = dice.bytes(5) if dice.chance(50) else b""
    shape = HelloShape(mlkem=plan.mlkem, quic_scid=client_id)
    hello = client_hello(plan.name, shape, dice)
    cuts = [dice.between(700, 1000)] if plan.mlkem else []
    flight = client_initials(hello, LongHeader(first_dcid, client_id, 0), cuts, dice)
    for datagram in flight:
        named = talk.send(CLIENT, datagram)
    evidence = None
    if plan.behaviour in ("repeated", "silent"):
        talk.now += RETRANSMIT_US
        again = LongHeader(first_dcid, client_id, len(flight))
        for datagram in client_initials(hello, again, cuts, dice):
            talk.send(CLIENT, datagram)
    talk.cross()
    if plan.behaviour != "silent":
        _quic_answer(talk, (first_dcid, client_id, server_id), len(flight) - 1)
    if plan.behaviour in ("full", "repeated"):
        talk.cross()
        evidence = _quic_return(talk, (first_dcid, client_id, server_id), len(flight))
    talk.flow.sightings.append(Sighting(plan.name, "quic", named, evidence))
    return talk.flow


def _quic_answer(talk: UdpTalk, ids: tuple[bytes, bytes, bytes], largest: int) -> None:
    """Send the server's Initial (ACK, ServerHello) and Handshake data in one datagram."""
    first_dcid, client_id, server_id = ids
    frames = ack_frame(largest) + crypto_frame(0, server_hello(True, talk.dice))
    side = Side(first_dcid, server=True)
    packet = initial_packet(LongHeader(client_id, server_id, 0), side, frames)
    rest = DATAGRAM_BYTES - len(packet)
    talk.send(SERVER, packet + handshake_packet(client_id, server_id, rest, talk.dice))


def _quic_return(talk: UdpTalk, ids: tuple[bytes, bytes, bytes], number: int) -> Packet:
    """Send the client's second flight, the first to name the server's ID, and some 1-RTT data."""
    first_dcid, client_id, server_id = ids
    dice = talk.dice
    finished = handshake_packet(server_id, client_id, 90, dice)
    if dice.chance(30):
        header = LongHeader(server_id, client_id, number)
        size = DATAGRAM_BYTES - len(finished)
        finished = initial_packet(header, Side(first_dcid), ack_frame(0), size) + finished
    evidence = talk.send(CLIENT, finished)
    talk.send(CLIENT, short_packet(server_id, dice.between(60, 180), dice))
    talk.cross()
    talk.send(SERVER, short_packet(client_id, dice.between(90, 500), dice))
    talk.cross()
    talk.send(CLIENT, short_packet(server_id, 34, dice))
    return evidence
