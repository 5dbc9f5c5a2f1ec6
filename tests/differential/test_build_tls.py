# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Handshakes of anonymized packets, read by tshark: nothing malformed, the same fingerprints."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from support import hellos, quic_wire, wire
from support.flights import AGAIN, NEW, OLD, RETRY, flight
from support.hellos import BROWSER, DTLS, PLAIN, QUIC, masked

from zanon_net import _core

pytestmark = pytest.mark.source

Tshark = Callable[..., list[dict[str, str]]]
FIELDS = {
    "name": "tls.handshake.extensions_server_name",
    "ja3": "tls.handshake.ja3_full",
    "malformed": "_ws.malformed",
    "severity": "_ws.expert.severity",
}
ERROR = 8388608  # from this severity of an expert's remark on, a packet is wrong
CHOICES = [(name, fingerprint) for name in (True, False) for fingerprint in (True, False)]
HELLOS = {"browser": BROWSER, "plain": PLAIN, "quic's": replace(QUIC, session=32)}


def built(sent: bytes, name: bool, fingerprint: bool, form: str = "records") -> bytes:
    done, out = _core.build_client_hello(sent, name=name, fingerprint=fingerprint, form=form)
    assert done
    return out


def frames(payloads: list[bytes], *, server: bool = False) -> list[bytes]:
    """One segment each, of a connection of its own."""
    out = []
    for number, payload in enumerate(payloads):
        ports = (40000 + number, 443)
        segment = wire.tcp(payload, ports=ports[::-1] if server else ports)
        out.append(wire.ethernet(wire.ipv4(segment)))
    return out


def wrong(row: dict[str, str]) -> bool:
    severities = [int(value) for value in row["severity"].split(",") if value]
    return row["malformed"] != "" or any(value >= ERROR for value in severities)


def read(tshark: Tshark, payloads: list[bytes], **more: bool) -> list[dict[str, str]]:
    return tshark(frames(payloads, **more), wire.LINK_ETHERNET, FIELDS, every=True)


@pytest.mark.parametrize(("name", "fingerprint"), CHOICES)
def test_hellos(tshark: Tshark, name: bool, fingerprint: bool) -> None:
    sent = [wire.record(hello.sent()) for hello in HELLOS.values()]
    sent += [wire.records(BROWSER.sent(), [700])]
    before = read(tshark, sent)
    after = read(tshark, [built(data, name, fingerprint) for data in sent])
    for hello, old, new in zip([*HELLOS.values(), BROWSER], before, after, strict=True):
        assert not wrong(new)
        shown = hello.host.lower() if name else masked(len(hello.host))
        assert new["name"] == (shown.decode() if hello.extensions else "")
        assert old["ja3"]
        assert (new["ja3"] == old["ja3"]) == fingerprint
        if not fingerprint:
            assert new["ja3"] == ("771,,0-21,," if hello.extensions else "771,,21,,")


def test_real_hellos(tshark: Tshark, corpus: Path) -> None:
    sent = [data for data in hellos.of_captures(corpus) if _core.parse_tls(data)[0] == "done"]
    before = read(tshark, sent)
    after = read(tshark, [built(data, True, True) for data in sent])
    hidden = read(tshark, [built(data, False, False) for data in sent])
    for old, new, less in zip(before, after, hidden, strict=True):
        host = old["name"].encode()
        shown = host.lower() if _core.build_name_allowed(host) else masked(len(host))
        assert (new["name"], new["ja3"]) == (shown.decode(), old["ja3"])
        assert wrong(old) or not (wrong(new) or wrong(less))


@pytest.mark.parametrize(("name", "fingerprint"), CHOICES)
def test_dtls_and_quic(tshark: Tshark, name: bool, fingerprint: bool) -> None:
    body = built(DTLS.sent(), name, fingerprint, "datagram")
    crypto = built(QUIC.sent(), name, fingerprint, "message")
    hello = quic_wire.dtls_record(quic_wire.dtls_fragment(body), version=0xFEFD)
    datagrams = [hello, *quic_wire.first_flight(crypto)]
    ports = (5684, 443)
    udp = [
        wire.ethernet(wire.ipv4(wire.udp(data, ports=(41000, port)), wire.UDP))
        for data, port in zip(datagrams, ports, strict=True)
    ]
    fields = FIELDS | {"dtls": "dtls.handshake.extensions_server_name"}
    rows = tshark(udp, wire.LINK_ETHERNET, fields)
    assert not any(wrong(row) for row in rows)
    shown = wire.HOST if name else masked(len(wire.HOST))
    names = [(DTLS.host.lower() if name else masked(len(DTLS.host))).decode(), shown.decode()]
    assert [rows[0]["dtls"], rows[1]["name"]] == names


FLIGHTS = {
    "old": wire.record(flight(b"").sent, 0x0303),
    "records": wire.records(flight(b"").sent, [300]),
    "retry": wire.record(AGAIN.sent, 0x0303) + wire.record(b"\1", 0x0303, 20),
    "new": wire.record(NEW.sent, 0x0303)
    + wire.record(b"\1", 0x0303, 20)
    + wire.record(hellos.secret(80), 0x0303, 23),
    "finished": wire.record(OLD.sent, 0x0303)
    + wire.record(b"\1", 0x0303, 20)
    + wire.record(hellos.secret(40), 0x0303),
}


@pytest.mark.parametrize("name", [b"", b"*.example.org"], ids=["nameless", "named"])
def test_flights(tshark: Tshark, name: bytes) -> None:
    fields = FIELDS | {
        "ja3s": "tls.handshake.ja3s_full",
        "random": "tls.handshake.random",
        "types": "tls.handshake.type",
        "lengths": "tls.record.length",
        "certificates": "tls.handshake.certificate_length",
        "subject": "x509sat.uTF8String",
    }
    sent = [*FLIGHTS.values(), wire.record(OLD.sent)]
    built = [_core.build_server_flight(data, name)[1] for data in sent]
    rows = [
        tshark(frames(data, server=True), wire.LINK_ETHERNET, fields, every=True)
        for data in (sent, built)
    ]
    for old, new in zip(*rows, strict=True):
        assert not wrong(new)
        for field in ("ja3s", "types", "lengths", "certificates"):
            assert new[field] == old[field]
        assert old["ja3s"]
        if new["certificates"]:
            shown = ["invalid", name.decode(), "invalid"] if name else ["invalid", "invalid"]
            assert new["subject"].split(",") == shown
    randoms = dict(zip(FLIGHTS, (row["random"] for row in rows[1]), strict=False))
    assert randoms.pop("retry") == RETRY.hex()
    assert {value.strip("0") for value in randoms.values()} == {""}


def test_real_flights(tshark: Tshark, corpus: Path) -> None:
    fields = FIELDS | {"ja3s": "tls.handshake.ja3s_full", "lengths": "tls.record.length"}
    sent = list(hellos.of_captures(corpus, 2))
    built = [_core.build_server_flight(data, b"a.example")[1] for data in sent]
    before, after = (
        tshark(frames(data, server=True), wire.LINK_ETHERNET, fields, every=True)
        for data in (sent, built)
    )
    assert len(sent) > 30
    for old, new in zip(before, after, strict=True):
        assert (new["lengths"], new["ja3s"]) == (old["lengths"], old["ja3s"])
        assert wrong(old) or not wrong(new)
