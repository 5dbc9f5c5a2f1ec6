# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The server name of a ClientHello: RFC 8446 4.1.2 and 5.1, RFC 6066 3, RFC 9849."""

import ssl
import struct
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st
from support import wire
from support.examples import each
from support.handshake import KEY, named
from support.wire import HOST, client_hello, extension, record, records, server_name

from zanon_net import _core

VERSIONS = extension(wire.SUPPORTED_VERSIONS, b"\x04\x03\x04\x03\x03")
POST_QUANTUM = extension(wire.KEY_SHARE, wire.vector(2, b"\x11\xec" + wire.vector(2, bytes(1216))))
LONG_HOST = b"a" * 60 + b"." + b"b" * 63 + b".example"
ECH = extension(wire.ECH, bytes(40))

# One ClientHello each, as messages: what the extensions are and where the name stands among them.
MESSAGES = {
    "name-only": client_hello(server_name(HOST)),
    "name-first": client_hello(server_name(HOST), VERSIONS),
    "name-last": client_hello(VERSIONS, extension(0x17), server_name(HOST)),
    "before-renegotiation-info": client_hello(server_name(HOST), extension(0xFF01, b"\0")),
    "before-grease": client_hello(server_name(HOST), extension(wire.GREASE), VERSIONS),
    "before-alps": client_hello(server_name(HOST), extension(wire.ALPS, b"\0\3\2h2")),
    "after-grease": client_hello(extension(wire.GREASE, b"\0"), server_name(HOST)),
    "session-id": client_hello(server_name(HOST), session_id=bytes(32)),
    "ech": client_hello(server_name(HOST), ECH),
    "post-quantum": client_hello(POST_QUANTUM, server_name(HOST), VERSIONS),
}


def with_tls_library() -> bytes:
    """What OpenSSL sends."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context()
    client = context.wrap_bio(incoming, outgoing, server_hostname=HOST.decode())
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


STREAMS = {name: record(message) for name, message in MESSAGES.items()}
STREAMS |= {
    "two-records": records(MESSAGES["name-first"], [70, 1000]),
    "record-cut-in-header": records(MESSAGES["name-first"], [2, 1000]),
    "record-cut-in-name": records(MESSAGES["name-only"], [len(MESSAGES["name-only"]) - 5, 5]),
    "one-byte-records": records(MESSAGES["name-last"], [1]),
    "openssl": with_tls_library(),
}


def server_name_end(stream: bytes) -> int:
    """Where the name ends, which in these samples is where its extension ends."""
    return stream.index(HOST) + len(HOST)


@each("stream", STREAMS.values())
def test_name(stream: bytes) -> None:
    assert _core.parse_tls(stream)[:2] == ("done", HOST)
    assert _core.parse_tls(stream, cut=True)[:2] == ("done", HOST)


@each("stream", STREAMS.values())
def test_what_follows_the_hello_changes_nothing(stream: bytes) -> None:
    other = record(client_hello(server_name(b"other.example")))
    for after in (b"\0", b"\x16", b"\x17\3\3\0\1x", other):
        assert _core.parse_tls(stream + after)[:2] == ("done", HOST)


@each("stream", STREAMS.values())
def test_a_prefix_gives_no_name(stream: bytes) -> None:
    for prefix in wire.prefixes(stream):
        assert _core.parse_tls(prefix) == ("need_more", b"", False)


@each("name", [n for n in STREAMS if HOST in STREAMS[n]])
def test_a_cut_prefix_gives_the_whole_name_or_none(name: str) -> None:
    stream = STREAMS[name]
    for prefix in wire.prefixes(stream):
        state, host, _ = _core.parse_tls(prefix, cut=True)
        complete = len(prefix) >= server_name_end(stream)
        assert (state, host) == (("done", HOST) if complete else ("need_more", b""))


@each("stream", STREAMS.values())
@each("cut", [False, True])
def test_a_cut_never_shortens_a_name_over_records(stream: bytes, cut: bool) -> None:
    for prefix in wire.prefixes(stream):
        assert _core.parse_tls(prefix, cut=cut)[1] in (HOST, b"")


@each("name", [n for n in STREAMS if HOST in STREAMS[n]])
@each("cut", [False, True])
def test_a_byte_off_by_one_gives_no_other_name(name: str, cut: bool) -> None:
    stream = STREAMS[name]
    at = stream.index(HOST)
    for place, changed in wire.off_by_one(stream):
        if not at <= place < at + len(HOST):
            assert _core.parse_tls(changed, cut=cut)[1] in (HOST, b"")


def length_fields(stream: bytes) -> dict[str, int]:
    """Last bytes of the length fields in a record of name-only, in front of each thing counted."""
    at = stream.index(HOST)
    fields = {"record": 4, "handshake": 8, "session id": 43, "ciphers": 45, "compression": 52}
    return fields | {"extensions": at - 10, "extension": at - 6, "list": at - 4, "name": at - 1}


@each("field", length_fields(STREAMS["name-only"]))
@each("step", [1, -1])
def test_a_length_off_by_one_is_no_name(field: str, step: int) -> None:
    stream = bytearray(STREAMS["name-only"])
    place = length_fields(bytes(stream))[field]
    stream[place] = (stream[place] + step) & 0xFF
    state, host, _ = _core.parse_tls(bytes(stream))
    # One record length more is true of a record that holds more than the hello: the name is whole.
    longer = field == "record" and step == 1
    assert host == (HOST if longer else b"")
    assert (state == "done") == longer


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0",
        wire.vector(2, b"\0\0\0"),
        wire.vector(2, b"\1" + wire.vector(2, b"not a host")),
    ],
    ids=["no list", "empty list", "empty name", "other type"],
)
def test_no_name_in_the_extension(data: bytes) -> None:
    stream = record(client_hello(extension(wire.SERVER_NAME, data), VERSIONS))
    assert _core.parse_tls(stream) == ("done", b"", False)


def test_a_name_of_another_type_is_skipped() -> None:
    names = b"\1" + wire.vector(2, b"xyz") + b"\0" + wire.vector(2, HOST)
    stream = record(client_hello(extension(wire.SERVER_NAME, wire.vector(2, names))))
    assert _core.parse_tls(stream) == ("done", HOST, False)


@pytest.mark.parametrize(
    "extensions",
    [
        (server_name(HOST), server_name(HOST)),
        (server_name(HOST), VERSIONS, server_name(b"other.example")),
        (extension(wire.SERVER_NAME), server_name(HOST)),
        (server_name(HOST, b"other.example"),),
        (server_name(HOST, HOST),),
    ],
)
def test_two_names_are_malformed(extensions: tuple[bytes, ...]) -> None:
    assert _core.parse_tls(record(client_hello(*extensions))) == ("malformed", b"", False)


def test_ech_is_reported_with_the_outer_name() -> None:
    assert _core.parse_tls(STREAMS["ech"]) == ("done", HOST, True)
    assert _core.parse_tls(record(client_hello(ECH))) == ("done", b"", True)
    assert _core.parse_tls(STREAMS["name-only"])[2] is False


def test_a_host_of_more_than_63_bytes_is_read_whole() -> None:
    assert _core.parse_tls(record(client_hello(server_name(LONG_HOST))))[1] == LONG_HOST


@pytest.mark.parametrize("version", [0x0300, 0x0301, 0x0302, 0x0303])
def test_no_extensions(version: int) -> None:
    stream = record(client_hello(version=version), version=0x0300)
    assert _core.parse_tls(stream) == ("done", b"", False)
    assert _core.parse_tls(stream, cut=True) == ("done", b"", False)


def test_an_empty_extension_block() -> None:
    message = bytearray(client_hello() + b"\0\0")
    message[3] += 2
    assert _core.parse_tls(record(bytes(message))) == ("done", b"", False)


@each(
    "stream",
    [
        bytes.fromhex("802e01000200150000001000000a") + bytes(40),
        b"GET / HTTP/1.1\r\n",
        b"SSH-2.0-x\r\n",
        b"\x17\x03\x03\x00\x20" + bytes(32),
        b"\x15\x03\x01\x00\x02\x02\x28",
        b"\x16\x02\x01\x00\x40\x01\x00\x00\x3c\x03\x03" + bytes(60),
        b"\x16\x03\x01\x00\x40\x02\x00\x00\x3c\x03\x03" + bytes(60),
        b"\x16\x03\x01\x00\x40\x01\x00\x00\x3c\x02\x00" + bytes(60),
        b"\x16\x03\x01\x00\x00\x01\x00\x00\x3c\x03\x03" + bytes(60),
        b"\x16\x03\x01\x42\x00\x01\x00\x00\x3c\x03\x03" + bytes(60),
        b"\x16\x03\x01\x00\x40\x01\x02\x00\x00\x03\x03" + bytes(60),
        b"\x16\x03\x01\x00\x40\x01\x00\x00\x10\x03\x03" + bytes(60),
    ],
)
def test_other_streams(stream: bytes) -> None:
    for cut in (False, True):
        assert _core.parse_tls(stream, cut=cut) == ("other", b"", False)


@pytest.mark.parametrize(
    "start", [b"", b"\x16", b"\x16\3", b"\x16\3\1", b"\x16\3\1\0", b"\x16\3\1\2\0\1\0\1\xfc\3"]
)
def test_a_short_start_needs_more(start: bytes) -> None:
    assert _core.parse_tls(start)[0] == "need_more"


def test_records_that_break_off_into_something_else_are_malformed() -> None:
    first = record(MESSAGES["name-first"][:60])
    for then in (record(b"x" * 200, kind=23), record(b"") * 33, b"\x16\4\1\0\1x"):
        assert _core.parse_tls(first + then) == ("malformed", b"", False)


def write_certificate(folder: Path) -> Path:
    """Writes a key and its certificate for a server."""
    path = folder / "server.pem"
    key = KEY.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    path.write_bytes(key + ssl.DER_cert_to_PEM_cert(named("www.example.org")).encode())
    return path


def with_openssl(stream: bytes, folder: Path) -> list[str]:
    """Names that a server of OpenSSL finds in the stream."""
    found: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(write_certificate(folder))
    context.sni_callback = lambda _socket, name, _context: found.append(name)
    incoming = ssl.MemoryBIO()
    server = context.wrap_bio(incoming, ssl.MemoryBIO(), server_side=True)
    incoming.write(stream)
    with pytest.raises(ssl.SSLError):  # the rest of the handshake is missing
        server.do_handshake()
    return found


def test_odd_records_are_read_as_openssl_reads_them(tmp_path: Path) -> None:
    message = STREAMS["openssl"][5:]
    streams = [record(b"") * n + STREAMS["openssl"] for n in (0, 1, 3, 32, 33)]
    streams += [record(message[:50]) + record(b"") * n + record(message[50:]) for n in (1, 32, 33)]
    streams += [record(message, version) for version in (0x0300, 0x0305, 0x03FF, 0x0405, 0x0200)]
    streams += [record(message[:50], 0x0307) + record(message[50:], 0x0302)]
    streams += [record(b"\1\x64", kind=21) + STREAMS["openssl"]]
    read = [with_openssl(stream, tmp_path) != [] for stream in streams]
    assert read == [_core.parse_tls(stream)[:2] == ("done", HOST) for stream in streams]
    assert read.count(False) == 5


@each("damage", [b"\x00", b"\xaa\xaa\0", b"\xaa\xaa\0\x09x"])
def test_damage_behind_the_name_leaves_the_name(damage: bytes) -> None:
    """An extension that is longer than the list that holds it, or has no whole header."""
    assert _core.parse_tls(record(client_hello(server_name(HOST), damage)))[:2] == ("done", HOST)
    assert _core.parse_tls(record(client_hello(damage, extension(0x17))))[1] == b""
    message = client_hello(server_name(HOST), server_name(HOST), damage)
    assert _core.parse_tls(record(message))[0] == "malformed"


def v2_hello(
    *, version: int = 0x0301, suites: bytes = b"\0\0\x35", session: int = 0, random: int = 16
) -> bytes:
    """A ClientHello in the form of SSL 2.0 (RFC 5246, E.2)."""
    body = struct.pack(">BHHHH", 1, version, len(suites), session, random)
    body += suites + bytes(session + random)
    return struct.pack(">H", 0x8000 | len(body)) + body


def test_a_hello_in_the_form_of_ssl_2() -> None:
    for hello in (v2_hello(), v2_hello(version=0x0303, session=16, random=32, suites=bytes(90))):
        assert _core.parse_tls(hello) == ("done", b"", False)
        for n in range(1, len(hello)):
            assert _core.parse_tls(hello[:n])[0] == "need_more"
    longer = bytearray(v2_hello())
    longer[1] += 1
    others = [v2_hello(version=2), v2_hello(suites=b""), v2_hello(suites=b"\0\x35"), bytes(longer)]
    others += [v2_hello(session=15), v2_hello(random=15), v2_hello(random=33)]
    assert {_core.parse_tls(other)[0] for other in others} == {"other"}


def test_a_message_with_more_behind_its_extensions_is_malformed() -> None:
    message = bytearray(MESSAGES["name-only"] + b"\0")
    message[3] += 1
    assert _core.parse_tls(record(bytes(message))) == ("malformed", b"", False)


def test_the_longest_hello() -> None:
    room = 16384 - len(client_hello(server_name(HOST), extension(wire.PADDING)))
    longest = client_hello(extension(wire.PADDING, bytes(room)), server_name(HOST))
    assert len(longest) == 16384
    assert _core.parse_tls(record(longest))[:2] == ("done", HOST)
    assert _core.parse_tls(records(longest, [5000]))[:2] == ("done", HOST)
    longer = client_hello(extension(wire.PADDING, bytes(room + 1)), server_name(HOST))
    assert _core.parse_tls(records(longer, [5000])) == ("malformed", b"", False)


@given(st.binary(max_size=400), st.booleans())
def test_any_bytes_end_in_a_state(data: bytes, cut: bool) -> None:
    state, host, _ = _core.parse_tls(data, cut=cut)
    assert host == b"" or state == "done"


@given(st.binary(max_size=300), st.binary(max_size=60), st.booleans())
def test_any_extensions_end_in_a_state(extensions: bytes, body: bytes, cut: bool) -> None:
    hello = record(client_hello(extensions, extension(wire.SERVER_NAME, body)))
    state, host, _ = _core.parse_tls(hello, cut=cut)
    assert state in ("done", "malformed")
    assert host in hello


@given(
    st.binary(min_size=1, max_size=255),
    st.lists(st.integers(1, 300), min_size=1, max_size=20),
    st.integers(0, 700),
)
def test_any_name_over_any_records(host: bytes, sizes: list[int], keep: int) -> None:
    stream = records(client_hello(VERSIONS, server_name(host), VERSIONS), sizes)
    assert _core.parse_tls(stream) == ("done", host, False)
    for cut in (False, True):
        assert _core.parse_tls(stream[:keep], cut=cut)[1] in (host, b"")
