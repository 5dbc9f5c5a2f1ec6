# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What anonymized packets have in place of handshakes: TLS, DTLS, QUIC (RFC 8446, 5246, 8701)."""

import random
import ssl
import struct
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st
from support import hellos, wire
from support.examples import each
from support.flights import AGAIN, NEW, OLD, certificates, flight
from support.handshake import KEY, message, named, server_hello
from support.hellos import BROWSER, CANARY, DTLS, PLAIN, QUIC, Hello, Part, masked, secret

from zanon_net import _core

pytestmark = pytest.mark.source

CHOICES = [(name, fingerprint) for name in (True, False) for fingerprint in (True, False)]
NAME = b"*.example.org"
SAMPLES = {"browser": BROWSER, "plain": PLAIN, "quic": QUIC}
CHANGE_CIPHER_SPEC = wire.record(b"\1", 0x0303, 20)


def build(data: bytes, name: bool, fingerprint: bool, form: str = "records") -> bytes | None:
    done, out = _core.build_client_hello(data, name=name, fingerprint=fingerprint, form=form)
    assert len(out) == len(data)
    assert done or out == bytes(len(data))
    return out if done else None


def build_server(data: bytes, common_name: bytes = b"") -> bytes:
    done, out = _core.build_server_flight(data, common_name)
    assert len(out) == len(data)
    assert done or out == bytes(len(data))
    return out


def parts_of(data: bytes, n: int = 4) -> set[bytes]:
    return {data[i : i + n] for i in range(len(data) - n + 1)}


SECRETS = parts_of(CANARY * 2)
seeds = st.integers(0, 1 << 30).map(lambda seed: hellos.one_at_random(random.Random(seed)))


# ---- a client's hello ----------------------------------------------------------------------------


@each("hello", SAMPLES.values())
@each("name, fingerprint", CHOICES)
@each("sizes", [[16384], [100], [5, 1], [9, 400, 3], [1]])
def test_hello(hello: Hello, name: bool, fingerprint: bool, sizes: list[int]) -> None:
    out = build(wire.records(hello.sent(), sizes), name, fingerprint)
    assert out == wire.records(hello.built(name=name, fingerprint=fingerprint), sizes)


@given(seeds, st.booleans(), st.booleans(), st.lists(st.integers(1, 500), min_size=1, max_size=5))
def test_any_hello(hello: Hello, name: bool, fingerprint: bool, sizes: list[int]) -> None:
    """Also: nothing of it is a secret, and our parser reads the same name of it."""
    sent = wire.records(hello.sent(), sizes)
    out = build(sent, name, fingerprint)
    assert out == wire.records(hello.built(name=name, fingerprint=fingerprint), sizes)
    assert not parts_of(out) & SECRETS
    shown = hello.host.lower() if name else masked(len(hello.host))
    assert _core.parse_tls(out)[:2] == ("done", shown)


@pytest.mark.parametrize(("name", "fingerprint"), CHOICES)
def test_other_forms(name: bool, fingerprint: bool) -> None:
    for form, hello in (("message", QUIC), ("message", BROWSER), ("datagram", DTLS)):
        expected = hello.built(name=name, fingerprint=fingerprint)
        assert build(hello.sent(), name, fingerprint, form) == expected
        if form == "message":
            after = hello.sent() + secret(50)
            assert build(after, name, fingerprint, form) == expected + bytes(50)


@pytest.mark.parametrize(("name", "fingerprint"), CHOICES)
def test_what_follows_the_hello_is_zeros(name: bool, fingerprint: bool) -> None:
    sent = wire.record(BROWSER.sent())
    expected = wire.record(BROWSER.built(name=name, fingerprint=fingerprint))
    after = wire.record(secret(30), 0x0303, 23)
    assert build(sent + after, name, fingerprint) == expected + bytes(len(after))
    longer = wire.record(BROWSER.sent() + secret(30))
    assert build(longer, name, fingerprint)[5:] == expected[5:] + bytes(30)


@pytest.mark.parametrize("sizes", [[16384], [7]], ids=str)
def test_a_part_of_a_hello_is_nothing(sizes: list[int]) -> None:
    sent = wire.records(BROWSER.sent(), sizes)
    assert all(build(part, True, True) is None for part in wire.prefixes(sent))
    body = DTLS.sent()
    built = [p for p in wire.prefixes(body) if build(p, True, True, "datagram") is not None]
    assert built == [replace(DTLS, extensions=()).sent()]  # which is a hello without extensions


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HTTP/1.1\r\n\r\n",
        wire.record(wire.client_hello(wire.server_name(b"a.example", b"b.example"))),
        wire.record(wire.client_hello(wire.server_name(wire.HOST), ciphers=b"\1")),
        wire.record(wire.client_hello(wire.server_name(wire.HOST), session_id=bytes(33))),
        wire.record(wire.client_hello(wire.server_name(wire.HOST), b"\0")),
        wire.record(server_hello()),
    ],
)
def test_no_hello(sent: bytes) -> None:
    assert build(sent, True, True) is None
    assert _core.build_tls_fingerprint(sent) is None


@pytest.mark.parametrize(
    ("host", "hidden"),
    [
        (b"WWW.Example.ORG", False),
        (b"a_b.example", False),
        (b"a.example.", False),
        (b"caf\xc3\xa9.example", True),
        (b"a b.example", True),
        (b"a\0.example.org", True),
        (b"http://example.org", True),
        (b"a.example:443", True),
        (b"192.0.2.1", True),
        (b"printer.local", True),
    ],
)
def test_a_name_of_other_bytes_is_masked(host: bytes, hidden: bool) -> None:
    out = build(wire.record(Hello(host=host).sent()), True, True)
    assert _core.parse_tls(out)[1] == (masked(len(host)) if hidden else host.lower())


def test_a_name_of_another_type_is_zeros() -> None:
    def listed(kind: bytes, value: bytes) -> bytes:
        names = kind + wire.vector(2, value) + b"\0" + wire.vector(2, wire.HOST)
        return wire.extension(wire.SERVER_NAME, wire.vector(2, names))

    out = build(wire.record(wire.client_hello(listed(b"\7", secret(20)))), True, True)
    assert listed(b"\xff", bytes(20)) in out


def test_masked_names() -> None:
    for n in range(400):
        name = _core.build_masked_name(n)
        assert name == masked(n)
        assert all(0 < len(label) <= 63 for label in name.split(b".")) or n == 0
    assert masked(9) == b"xxxxxxxxx"
    assert masked(10) == b"xx.invalid"


MALFORMED = {
    "odd list": (10, wire.vector(2, b"\0\x1d\0")),
    "list too long": (10, b"\0\x08\0\x1d\0\x17"),
    "list too short": (10, b"\0\x02\0\x1d\0\x17"),
    "versions": (43, b"\4\3\4"),
    "formats": (11, b"\2\0"),
    "modes": (45, b"\0\1"),
    "size": (28, b"\x40"),
    "fragment": (1, b"\1\2"),
    "protocol": (16, b"\0\3\7h2"),
    "share": (51, b"\0\x06\0\x1d\0\x20ab"),
    "identity": (41, b"\0\x04\0\x20ab\0\0"),
    "binder": (41, b"\0\x06\0\0\0\0\0\0\0\2\x20a"),
    "status": (5, b"\1\0\4\0\0"),
    "status list": (17, wire.vector(2, b"\2\0\5\0\0\0\0\7")),
    "parameter": (57, b"\1\4abc"),
    "parameter id": (57, b"\xc0\0\0"),
    "parameter length": (57, b"\1\x40"),
    "cookie": (44, b"\0\7abc"),
    "srtp": (14, b"\0\3\0\1\0\0"),
    "authority": (47, b"\0\4\0\5ab"),
    "renegotiation": (0xFF01, b"\2a"),
}


@each("kind, data", MALFORMED.values())
def test_data_that_do_not_parse_are_zeros(kind: int, data: bytes) -> None:
    hello = replace(BROWSER, extensions=((0, hellos.NOTHING), (kind, hellos.zeroed(data))))
    out = build(wire.record(hello.sent()), True, True)
    assert out == wire.record(hello.built(name=True, fingerprint=True))
    empty = replace(hello, extensions=((0, hellos.NOTHING), (kind, hellos.NOTHING)))
    prints = [_core.build_tls_fingerprint(h.sent(), form="message") for h in (hello, empty)]
    assert prints[0] == prints[1]


STATUSES = hellos.vector(
    2,
    *[
        hellos.public(b"\2\0\x0b\0\4")
        + hellos.zeroed(secret(4))
        + hellos.public(b"\0\3")
        + hellos.zeroed(secret(3))
    ],
)
MORE = {
    "status list": (17, STATUSES),
    "status": (5, hellos.public(b"\1\0\4") + hellos.zeroed(secret(4)) + hellos.public(b"\0\0")),
    "fragment": (1, hellos.public(b"\2")),
    "heartbeat": (15, hellos.public(b"\1")),
    "certificate types": (19, hellos.vector(1, hellos.public(b"\2\0"))),
    "old parameters": (0xFFA5, hellos.parameters((3, 2))),
    "npn": (0x3374, hellos.NOTHING),
    "srtp": (14, hellos.vector(2, hellos.numbers(1, 7)) + hellos.vector(1, hellos.zeroed(b"id"))),
    "authorities": (47, hellos.vector(2, *[hellos.vector(2, hellos.zeroed(secret(30)))] * 2)),
    "connection id": (54, hellos.vector(1, hellos.zeroed(secret(9)))),
    "draft": (40, hellos.shares((29, 32), (23, 65))),
    "registered": (16, hellos.protocols(b"acme-tls/1", b"stun.nat-discovery", b"co")),
    "grease": (16, hellos.vector(2, *[Part(b"\2\x7a\x7a", b"\2\x0a\x0a"), hellos.public(b"\2h3")])),
}


@each("kind, data", MORE.values())
def test_more_extensions(kind: int, data: Part) -> None:
    hello = replace(BROWSER, extensions=((kind, data), (0, hellos.NOTHING)))
    for fingerprint in (True, False):
        out = build(wire.record(hello.sent()), True, fingerprint)
        assert out == wire.record(hello.built(name=True, fingerprint=fingerprint))


# ---- fingerprints --------------------------------------------------------------------------------


def print_of(hello: Hello) -> bytes:
    form = "message" if hello.cookie is None else "datagram"
    out = _core.build_tls_fingerprint(hello.sent(), form=form)
    assert out is not None
    return out


def test_a_fingerprint_has_no_secret_and_no_name() -> None:
    other = replace(BROWSER, host=b"a.example", session=0, random=bytes(32))
    assert print_of(BROWSER) == print_of(other)
    assert not parts_of(print_of(BROWSER)) & SECRETS
    assert print_of(DTLS) == print_of(replace(DTLS, cookie=0))
    for sizes in ([16384], [50]):
        assert _core.build_tls_fingerprint(wire.records(BROWSER.sent(), sizes)) == print_of(BROWSER)


def test_which_grease_it_is_does_not_count() -> None:
    sent = BROWSER.sent()
    other = sent
    for value in (0x6A6A, 0x4A4A, 0x1A1A, 0x7A7A, 0xFAFA):
        other = other.replace(struct.pack(">H", value), b"\x2a\x2a")
    assert sent != other
    prints = [_core.build_tls_fingerprint(data, form="message") for data in (sent, other)]
    assert prints[0] == prints[1]
    assert build(sent, True, True, "message") == build(other, True, True, "message")


CHANGES = {
    "version": replace(BROWSER, version=0x0301),
    "suite": replace(BROWSER, suites=(*BROWSER.suites, 0x0004)),
    "method": replace(BROWSER, methods=b"\1\0"),
    "no extension": replace(BROWSER, extensions=BROWSER.extensions[:-1]),
    "order": replace(BROWSER, extensions=BROWSER.extensions[::-1]),
    "group": replace(BROWSER, extensions=((10, hellos.vector(2, hellos.numbers(25))),)),
    "unknown": replace(BROWSER, extensions=((0x1235, hellos.NOTHING),)),
}


@pytest.mark.parametrize("other", CHANGES.values(), ids=CHANGES)
def test_what_counts(other: Hello) -> None:
    assert print_of(other) != print_of(BROWSER)


@given(seeds, seeds)
def test_one_fingerprint_has_one_output(one: Hello, other: Hello) -> None:
    """All that the output has of a fingerprint is in its bytes: lengths aside, which are equal when
    names and session IDs are as long."""
    one, other = (replace(hello, host=wire.HOST, session=0) for hello in (one, other))
    outs = [build(hello.sent(), True, True, "message") for hello in (one, other)]
    assert (print_of(one) == print_of(other)) == (outs[0] == outs[1])


@given(seeds, st.integers(0, 4000), st.integers(1, 255))
def test_a_changed_byte(hello: Hello, place: int, change: int) -> None:
    """What is built of it is what is built of that, and our parser reads its name or a mask."""
    sent = bytearray(hello.sent())
    sent[place % len(sent)] ^= change
    is_read = _core.parse_hello(bytes(sent))[0] == "done"
    assert (build(bytes(sent), True, False, "message") is not None) == is_read
    out = build(bytes(sent), True, True, "message")
    assert is_read or out is None  # damaged extensions have no fingerprint, and then none is built
    if out is not None:
        assert build(out, True, True, "message") == out
        assert _core.parse_hello(out)[:2] == ("done", build_name(bytes(sent)))


def build_name(sent: bytes) -> bytes:
    name = _core.parse_hello(sent)[1]
    return name.lower() if _core.build_name_allowed(name) else masked(len(name))


@given(seeds, st.integers(0, 1 << 30))
def test_without_a_fingerprint_only_length_and_name_are_left(hello: Hello, seed: int) -> None:
    """Another client's hello, padded to the same length, becomes the same."""
    dice = random.Random(seed)
    other = replace(hellos.one_at_random(dice), host=hello.host)
    sizes = [len(one.sent()) for one in (hello, other)]
    grown = []
    for one, size in zip((hello, other), sizes, strict=True):
        padding = (21, hellos.zeroed(bytes(max(sizes) - size + 1)))
        place = dice.randrange(len(one.extensions) + 1)
        listed = (*one.extensions[:place], padding, *one.extensions[place:])
        grown.append(replace(one, extensions=listed).sent())
    for name in (True, False):
        outs = {build(sent, name, False, "message") for sent in grown}
        assert len(outs) == 1


@pytest.mark.parametrize("form", ["message", "datagram"])
@pytest.mark.parametrize("host", [b"", b"a", b"www.example.org"])
def test_every_length_without_a_fingerprint(host: bytes, form: str) -> None:
    """Also if the rest is too short for an extension."""
    cookie, version = (None, 0x0303) if form == "message" else (0, 0xFEFD)
    for session in range(33):
        for methods in range(1, 4):
            extensions = ((0, hellos.NOTHING),) if host else ()
            suites = (0x1301,)
            hello = Hello(host, extensions, suites, bytes(methods), session, version, cookie)
            out = build(hello.sent(), True, False, form)
            assert out == hello.built(name=True, fingerprint=False)
            assert build(out, True, False, form) == out


def test_a_fingerprint_that_is_too_long() -> None:
    suites = tuple(range(1, 600))
    assert print_of(replace(PLAIN, suites=suites[:400]))
    hello = replace(PLAIN, suites=suites)
    assert _core.build_tls_fingerprint(hello.sent(), form="message") is None
    assert build(hello.sent(), True, False, "message") is not None


# ---- a server's flight ---------------------------------------------------------------------------


SIZES = [[16384], [100], [5, 1], [9, 400, 3], [1]]
ENCRYPTED = wire.record(secret(40), 0x0303), wire.record(secret(60), 0x0303, 23)


def hidden(record: bytes) -> bytes:
    return record[:5] + bytes(len(record) - 5)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_flight(sizes: list[int]) -> None:
    sent, built = wire.records(flight(NAME).sent, sizes), wire.records(flight(NAME).built, sizes)
    assert build_server(sent, NAME) == built
    after = CHANGE_CIPHER_SPEC + ENCRYPTED[0] + ENCRYPTED[1]
    expected = built + CHANGE_CIPHER_SPEC + b"".join(map(hidden, ENCRYPTED))
    assert build_server(sent + after, NAME) == expected
    assert not parts_of(expected) & SECRETS
    assert _core.parse_certificate(expected)[1] == NAME


def test_a_flight_without_a_name() -> None:
    nameless = OLD + certificates(b"", named("www.example.org"))
    assert build_server(wire.record(nameless.sent)) == wire.record(nameless.built)
    assert _core.parse_certificate(wire.record(nameless.built))[0] == "other"


def test_a_name_that_does_not_fit_is_left_out() -> None:
    der = bytes(280)
    for name in (b"a" * 200, b"\0", b"a" * 256):
        nameless = OLD + certificates(b"", der)
        assert build_server(wire.record(nameless.sent), name) == wire.record(nameless.built)
    tiny = certificates(b"", bytes(280)).sent.replace(message(bytes(280)), message(secret(30)))
    out = build_server(wire.record(OLD.sent + tiny))
    assert out == wire.record(OLD.built + message(bytes(30)))


def test_tls_1_3() -> None:
    after = CHANGE_CIPHER_SPEC + ENCRYPTED[1] * 3
    sent, built = wire.record(NEW.sent) + after, wire.record(NEW.built) + CHANGE_CIPHER_SPEC
    assert build_server(sent) == built + hidden(ENCRYPTED[1]) * 3


@pytest.mark.parametrize("middle", [CHANGE_CIPHER_SPEC, b""], ids=["compatible", "plain"])
def test_hello_retry_request(middle: bytes) -> None:
    def talk(first: bytes, second: bytes) -> bytes:
        return wire.record(first, 0x0303) + middle + wire.record(second, 0x0303)

    after = wire.record(secret(30), 0x0303)  # encrypted, behind the other's ChangeCipherSpec
    sent = talk(AGAIN.sent, NEW.sent) + CHANGE_CIPHER_SPEC + after
    expected = talk(AGAIN.built, NEW.built) + CHANGE_CIPHER_SPEC + hidden(after)
    assert build_server(sent) == expected
    # Only a whole HelloRetryRequest is one.
    sent = wire.record(AGAIN.sent[:-1], 0x0303) + CHANGE_CIPHER_SPEC + after
    assert build_server(sent)[-30:] == bytes(30)


def test_parts_of_a_flight_have_no_secret() -> None:
    sent = wire.record(flight(NAME).sent) + CHANGE_CIPHER_SPEC + ENCRYPTED[1]
    whole = build_server(sent, NAME)
    for n in range(len(sent)):
        out = build_server(sent[:n], NAME)
        assert all(a in (0, b) for a, b in zip(out, whole, strict=False)), n
        assert out[:5] == (whole[:5] if n >= 5 else bytes(n))


def test_what_is_no_record_ends_the_flight() -> None:
    sent = wire.record(NEW.sent)
    for after in (b"HTTP/1.1 400 Bad Request\r\n", b"\x16\2\3\0\5abcde", b"\x17\3\3\xff\xffabc"):
        assert build_server(sent + after) == wire.record(NEW.built) + bytes(len(after))
        assert build_server(after) == bytes(len(after))


def test_alerts_and_unknown_messages() -> None:
    alert = wire.record(b"\2\x28", 0x0303, 21)
    assert build_server(alert) == hidden(alert)
    unknown = b"\x63" + wire.vector(3, secret(20))
    assert build_server(wire.record(OLD.sent + unknown)) == (
        wire.record(OLD.built + bytes(len(unknown)))
    )


@pytest.mark.parametrize("cut", [1, 3, 40, 60])
def test_a_hello_whose_lengths_lie_is_zeros(cut: int) -> None:
    body = OLD.sent[4:-cut]
    sent = b"\2" + wire.vector(3, body)
    assert build_server(wire.record(sent)) == wire.record(sent[:4] + bytes(len(body)))


def test_more_than_is_read_is_zeros() -> None:
    many = OLD + certificates(b"", *[named("www.example.org")] * 80)
    sizes = [16384, 3000]
    out = build_server(wire.records(many.sent, sizes))
    assert len(many.sent) > 16384
    assert out[5 : 5 + 15000] == many.built[:15000]
    assert set(out[5 + 16384 + 5 :][:3000]) == {0}


# ---- real ones -----------------------------------------------------------------------------------


def handshake(version: ssl.TLSVersion, tmp_path: Path) -> tuple[bytes, bytes]:
    """What OpenSSL's client and server say."""
    key = KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    pem = x509.load_der_x509_certificate(named("www.example.org"))
    (tmp_path / "both.pem").write_bytes(key + pem.public_bytes(serialization.Encoding.PEM))
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(tmp_path / "both.pem")
    theirs.set_alpn_protocols(["h2"])
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ours.check_hostname, ours.verify_mode = False, ssl.CERT_NONE
    ours.minimum_version = ours.maximum_version = version
    ours.set_alpn_protocols(["h2", "http/1.1"])
    wires = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ours.wrap_bio(wires[1], wires[0], server_hostname="WWW.example.org")
    server = theirs.wrap_bio(wires[0], wires[1], server_side=True)
    said = []
    for side, out in ((client, wires[0]), (server, wires[1])):
        with pytest.raises(ssl.SSLWantReadError):
            side.do_handshake()
        said.append(out.read())
        out.write(said[-1])
    return said[0], said[1]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_openssl(version: ssl.TLSVersion, tmp_path: Path) -> None:
    client, flight = handshake(version, tmp_path)
    for name, fingerprint in CHOICES:
        out = build(client, name, fingerprint)
        assert _core.parse_tls(out)[1] == (b"www.example.org" if name else b"xxxxxxx.invalid")
        random_bytes = client[11:43]
        assert not parts_of(out) & parts_of(random_bytes)
    built = build_server(flight, b"a.example")
    assert built[11:43] == bytes(32)
    assert _core.parse_tls_details(built)[0] == _core.parse_tls_details(flight)[0]
    if version is ssl.TLSVersion.TLSv1_2:
        assert _core.parse_certificate(flight) == ("done", b"www.example.org")
        assert _core.parse_certificate(built) == ("done", b"a.example")
        der = named("www.example.org")
        assert der in flight
        assert not parts_of(der[-70:], 8) & parts_of(built, 8)


def test_real_hellos(corpus: Path) -> None:
    read = 0
    hidden: dict[tuple[int, int, bytes], set[bytes]] = defaultdict(set)
    for sent in hellos.of_captures(corpus):
        state, host, _ = _core.parse_tls(sent)
        if state != "done":
            assert build(sent, True, True) is None
            continue
        read += 1
        named = _core.build_name_allowed(host)
        for name, fingerprint in CHOICES:
            out = build(sent, name, fingerprint)
            shown = host.lower() if name and named else masked(len(host))
            assert _core.parse_tls(out)[1] == shown
            assert out[11:43] == bytes(32)
            assert build(out, name, fingerprint) == out
        message = sent[5 : 5 + int.from_bytes(sent[3:5])]
        if len(message) == 4 + int.from_bytes(message[1:4]):  # in one record
            without = build(message, False, False, "message")
            hidden[len(message), len(host), without[:6]].add(without)
    assert read > 50
    assert {len(outs) for outs in hidden.values()} == {1}
