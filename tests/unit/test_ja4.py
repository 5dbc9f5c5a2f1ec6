# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""JA4 of TLS clients: the examples that its specification publishes, and a second implementation
over random hellos.

https://github.com/FoxIO-LLC/ja4/blob/main/technical_details/JA4.md
"""

import hashlib
import random
import struct

import pytest
from support import wire

from zanon_net import _core

SNI, ALGORITHMS, ALPN, VERSIONS, PARAMETERS = 0, 13, 16, 43, 0x39
GREASE = [n << 12 | 0xA00 | n << 4 | 0xA for n in range(16)]
VERSION_WORDS = {0x304: "13", 0x303: "12", 0x302: "11", 0x301: "10", 0x300: "s3", 2: "s2"}
VERSION_WORDS |= {0xFEFF: "d1", 0xFEFD: "d2", 0xFEFC: "d3"}
ZEROS = "0" * 12


def words(values: list[int]) -> bytes:
    return struct.pack(f">{len(values)}H", *values)


def body(
    suites: list[int],
    extensions: list[tuple[int, bytes]],
    version: int = 0x303,
    cookie: bytes = b"",
) -> bytes:
    """The body of a ClientHello, with a cookie if the version is of DTLS."""
    head = struct.pack(">H", version) + wire.RANDOM + wire.vector(1, b"")
    if version >> 8 == 0xFE:
        head += wire.vector(1, cookie)
    listed = b"".join(wire.extension(kind, data) for kind, data in extensions)
    return head + wire.vector(2, words(suites)) + b"\1\0" + wire.vector(2, listed)


def algorithms(*values: int) -> bytes:
    return wire.vector(2, words(list(values)))


def protocols(*values: bytes) -> bytes:
    return wire.vector(2, b"".join(wire.vector(1, value) for value in values))


def versions(*values: int) -> bytes:
    return wire.vector(1, words(list(values)))


def read(message: bytes) -> tuple[str, str | None]:
    return _core.read_attribute("ja4", message)[:2]


# ---- the specification ---------------------------------------------------------------------------

CHROME = "1301,1302,1303,c02b,c02f,c02c,c030,cca9,cca8,c013,c014,009c,009d,002f,0035"
CHROME_ALGORITHMS = "0403,0804,0401,0503,0805,0501,0806,0601"
FIREFOX = "1301,1303,1302,c02b,c02f,cca9,cca8,c02c,c030,c00a,c009,c013,c014,009c,009d,002f,0035"
FIREFOX_EXTENSIONS = "0000,0017,ff01,000a,000b,0023,0010,0005,0022,0033,002b,000d,002d,001c,0015"
PUBLISHED = [
    (
        CHROME,
        "001b,0000,0033,0010,4469,0017,002d,000d,0005,0023,0012,002b,ff01,000b,000a,0015",
        CHROME_ALGORITHMS,
        "t13d1516h2_8daaf6152771_e5627efa2ab1",
    ),
    (
        FIREFOX,
        FIREFOX_EXTENSIONS,
        "0403,0503,0603,0804,0805,0806,0401,0501,0601,0203,0201",
        "t13d1715h2_5b57614c22b0_3d5424432f57",
    ),
]


def numbers(text: str) -> list[int]:
    return [int(word, 16) for word in text.split(",")]


def published_hello(suites: str, kinds: str, listed: str, *, grease: bool) -> bytes:
    content = {
        SNI: wire.server_name(b"a.example")[4:],
        ALPN: protocols(b"h2", b"http/1.1"),
        VERSIONS: versions(0x0A0A, 0x0303, 0x0304) if grease else versions(0x0304, 0x0303),
        ALGORITHMS: algorithms(*([0x1A1A] * grease), *numbers(listed)),
    }
    extensions = [(kind, content.get(kind, b"")) for kind in numbers(kinds)]
    if grease:
        extensions = [(0x2A2A, b""), *extensions, (0x3A3A, b"\0")]
    return body([0x4A4A] * grease + numbers(suites), extensions)


@pytest.mark.parametrize("grease", [False, True])
@pytest.mark.parametrize(("suites", "kinds", "listed", "fingerprint"), PUBLISHED)
def test_published_examples(
    suites: str, kinds: str, listed: str, fingerprint: str, grease: bool
) -> None:
    hello = published_hello(suites, kinds, listed, grease=grease)
    assert read(hello) == ("done", fingerprint)


def test_the_published_hash_without_algorithms() -> None:
    kinds = [k for k in numbers(PUBLISHED[0][1]) if k not in (SNI, ALPN, VERSIONS, ALGORITHMS)]
    extensions = [(k, b"") for k in kinds] + [(ALGORITHMS, algorithms()), (VERSIONS, versions())]
    text = read(body(numbers(CHROME), extensions))[1]
    assert text == "t00i151400_8daaf6152771_6d807ffa2a79"


@pytest.mark.parametrize(
    ("protocol", "shown"),
    [
        (b"", "00"),
        (b"h", "hh"),
        (b"http/1.1", "h1"),
        (b"\xab", "ab"),
        (b"\x20", "20"),
        (b"\xab\xcd", "ad"),
        (b"\x20\x61", "21"),
        (b"\x30\xab", "3b"),
        (b"\x61\x20", "60"),
        (b"\x30\x31\xab\xcd", "3d"),
        (b"\x30\xab\xcd\x31", "01"),
    ],
)
def test_the_published_table_of_protocols(protocol: bytes, shown: str) -> None:
    text = read(body([1], [(ALPN, protocols(protocol, b"h2"))]))[1]
    assert text is not None
    assert text[8:10] == shown


# ---- a second implementation ---------------------------------------------------------------------


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12] if text else ZEROS


def ends_of(protocol: bytes) -> str:
    if not protocol:
        return "00"
    ends = chr(protocol[0]) + chr(protocol[-1])
    if not (ends.isascii() and ends.isalnum()):
        ends = protocol.hex()[0] + protocol.hex()[-1]
    return ends


def without_grease(values: list[int]) -> list[int]:
    return [value for value in values if value not in GREASE]


def expected(hello: dict[str, list[int]], offers: list[bytes], version: int) -> str:
    kinds, suites = without_grease(hello["kinds"]), without_grease(hello["suites"])
    transport = "d" if version >> 8 == 0xFE else "q" if PARAMETERS in kinds else "t"
    if VERSIONS in kinds:
        version = max(without_grease(hello["versions"]), default=0)
    named = "d" if SNI in kinds else "i"
    offers = [o for o in offers if len(o) != 2 or int.from_bytes(o, "big") not in GREASE]
    offer = ends_of(offers[0]) if ALPN in kinds and offers else "00"
    head = transport + VERSION_WORDS.get(version, "00") + named
    head += f"{min(len(suites), 99):02}{min(len(kinds), 99):02}{offer}"
    listed = ",".join(f"{k:04x}" for k in sorted(kinds) if k not in (SNI, ALPN))
    signed = without_grease(hello["algorithms"]) if ALGORITHMS in kinds else []
    if listed and signed:
        listed += "_" + ",".join(f"{value:04x}" for value in signed)
    return f"{head}_{hashed(','.join(f'{s:04x}' for s in sorted(suites)))}_{hashed(listed)}"


@pytest.mark.parametrize("seed", range(60))
def test_random_hellos(seed: int) -> None:
    rng = random.Random(seed)
    some = [*GREASE, 0xFF, 0x5600, 0xFE00, *range(0x1300, 0x1310), *range(0xC000, 0xC0B0)]
    known = [SNI, ALGORITHMS, ALPN, VERSIONS, PARAMETERS]
    kinds = rng.sample([*known, *known, *GREASE, *range(50, 190)], rng.choice([0, 3, 30, 130]))
    hello = {
        "kinds": list(dict.fromkeys(kinds)),
        "suites": rng.choices(some, k=rng.choice([0, 1, 17, 120, 3000])),
        "versions": rng.sample([*VERSION_WORDS, *GREASE, 0x7F17], rng.randrange(5)),
        "algorithms": rng.choices([*range(0x400, 0x410), *GREASE], k=rng.randrange(9)),
    }
    offers = rng.sample([b"\x0a\x0a", b"h2", b"", b"\xff\1", b"dot", b"a-"], rng.randrange(4))
    content = {
        SNI: wire.server_name(b"a.example")[4:],
        ALPN: protocols(*offers),
        VERSIONS: versions(*hello["versions"]),
        ALGORITHMS: algorithms(*hello["algorithms"]),
    }
    version = rng.choice([*VERSION_WORDS, 0x0305])
    extensions = [(kind, content.get(kind, b"")) for kind in hello["kinds"]]
    message = body(hello["suites"], extensions, version, cookie=bytes(rng.randrange(20)))
    assert read(message) == ("done", expected(hello, offers, version))


# ---- damage --------------------------------------------------------------------------------------


def test_no_part_of_a_damaged_hello_is_read() -> None:
    whole = published_hello(*PUBLISHED[0][:3], grease=True)
    for prefix in wire.prefixes(whole):
        ends = prefix in (whole, whole[:71])  # 71: a hello without extensions
        assert (read(prefix)[0] == "done") == ends
    assert read(whole + b"\0")[0] == "malformed"


@pytest.mark.parametrize(
    "extensions",
    [
        [(5, b""), (5, b"")],
        [(ALGORITHMS, b"\0\4\4\1")],
        [(ALGORITHMS, b"\0\3\4\1\4")],
        [(VERSIONS, b"\5\3\4\3\3")],
        [(VERSIONS, b"\3\3\4\3")],
        [(ALPN, b"\0\3\3h2")],
        [(ALPN, b"\0\4\2h2")],
    ],
)
def test_damaged_extensions(extensions: list[tuple[int, bytes]]) -> None:
    assert read(body([1], extensions))[0] == "malformed"


def test_an_odd_list_of_suites() -> None:
    message = body([], [(5, b"")]).replace(b"\0\0\1\0", b"\0\1\7\1\0", 1)
    assert read(message)[0] == "malformed"
    assert read(body([1] * 8200, []))[0] == "malformed"  # longer than a hello that is read
