# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""HPACK: RFC 7541's examples, an independent encoder, and what must be refused."""

import subprocess
import sys
from pathlib import Path

import hpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import each, examples
from support.paths import ROOT

from zanon_net._core import HeaderTable

Fields = list[tuple[bytes, bytes]]

GET: Fields = [(b":method", b"GET"), (b":scheme", b"http"), (b":path", b"/")]
AUTHORITY = (b":authority", b"www.example.com")
CUSTOM = (b"custom-key", b"custom-value")
REQUESTS: list[Fields] = [
    [*GET, AUTHORITY],
    [*GET, AUTHORITY, (b"cache-control", b"no-cache")],
    [GET[0], (b":scheme", b"https"), (b":path", b"/index.html"), AUTHORITY, CUSTOM],
]
PLAIN = (
    "828684410f7777772e6578616d706c652e636f6d",
    "828684be58086e6f2d6361636865",
    "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
)
CODED = (
    "828684418cf1e3c2e5f23a6ba0ab90f4ff",
    "828684be5886a8eb10649cbf",
    "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
)


@pytest.mark.parametrize("blocks", [PLAIN, CODED], ids=["C.3", "C.4"])
def test_requests_of_the_rfc(blocks: tuple[str, ...]) -> None:
    table = HeaderTable()
    for block, fields in zip(blocks, REQUESTS, strict=True):
        assert table.decode(bytes.fromhex(block)) == ("done", fields)


@pytest.mark.parametrize(
    ("block", "field"),
    [
        ("400a637573746f6d2d6b65790d637573746f6d2d686561646572", (b"custom-key", b"custom-header")),
        ("040c2f73616d706c652f70617468", (b":path", b"/sample/path")),
        ("100870617373776f726406736563726574", (b"password", b"secret")),
        ("82", (b":method", b"GET")),
    ],
    ids=["C.2.1", "C.2.2", "C.2.3", "C.2.4"],
)
def test_single_fields_of_the_rfc(block: str, field: tuple[bytes, bytes]) -> None:
    assert HeaderTable().decode(bytes.fromhex(block)) == ("done", [field])


def test_evictions_of_the_rfc() -> None:
    """C.5: a table of 256 bytes."""
    table = HeaderTable()
    first = (
        "3fe1014803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a3231"
    )
    first += "20474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d"
    third = (
        "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f"
    )
    third += (
        "3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b20"
    )
    third += "76657273696f6e3d31"
    blocks = (first, "4803333037c1c0bf", third)
    found = [table.decode(bytes.fromhex(block)) for block in blocks]
    assert [state for state, _fields in found] == ["done"] * 3
    assert found[1][1][0] == (b":status", b"307")
    assert found[1][1][1] == (b"cache-control", b"private")
    assert found[2][1][3] == (b"location", b"https://www.example.com")
    assert found[2][1][5][1].startswith(b"foo=ASDJ")


TEXTS = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b":authority", b"host", b"cookie", b"www.example.org", b"x" * 900]),
)
BLOCKS = st.lists(
    st.tuples(
        st.lists(st.tuples(TEXTS, TEXTS, st.booleans()), max_size=8),
        st.booleans(),
        st.sampled_from([None, None, None, 0, 31, 300, 4096]),
    ),
    max_size=12,
)


@settings(max_examples=examples(300), deadline=None)
@given(BLOCKS)
def test_what_another_encoder_writes(blocks: list) -> None:
    table, encoder = HeaderTable(), hpack.Encoder()
    for fields, huffman, size in blocks:
        if size is not None:
            encoder.header_table_size = size
        listed = [
            hpack.NeverIndexedHeaderTuple(n, v) if never else hpack.HeaderTuple(n, v)
            for n, v, never in fields
        ]
        block = encoder.encode(listed, huffman=huffman)
        assert table.decode(block) == ("done", [(n, v) for n, v, _never in fields])


def test_all_bytes_in_the_huffman_code() -> None:
    for value in (bytes(range(256)), *(bytes([i]) * 7 for i in range(256))):
        block = hpack.Encoder().encode([(b"a", value)], huffman=True)
        assert HeaderTable().decode(block) == ("done", [(b"a", value)])


def number(value: int, bits: int, first: int) -> bytes:
    limit = (1 << bits) - 1
    if value < limit:
        return bytes([first | value])
    out, value = [first | limit], value - limit
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


@each(
    "block",
    [
        b"\x80",
        b"\xbe",
        number(62, 6, 0x40) + b"\1a",
        b"\x40\5abc",
        b"\x40\1a",
        b"\x40\1a\5abc",
        b"\xff\xff\xff\xff\xff\xff",
        b"\x7f",
        number(4097, 5, 0x20),
        b"\x00\x81\x00\0",
        b"\x00\x82\xff\xff\0",
        b"\x00\x84\xff\xff\xff\xff\0",
        b"\x00\x81\xfe\0",
    ],
)
def test_malformed(block: bytes) -> None:
    assert HeaderTable().decode(block)[0] == "malformed"


def test_a_text_too_long_for_the_table_empties_it() -> None:
    for huffman in (True, False):
        table, encoder = HeaderTable(), hpack.Encoder()
        assert table.decode(encoder.encode([(b"a", b"b")]))[0] == "done"
        long = b"q" * 6000
        state, fields = table.decode(encoder.encode([(b"c", long)], huffman=huffman))
        assert (state, fields) == ("done", [(b"c", long[:4096])])
        assert table.decode(b"\xbe")[0] == "malformed"


def test_the_tables_are_what_the_script_makes(tmp_path: Path) -> None:
    script = ROOT / "scripts/make_hpack_tables.py"
    if not script.exists():
        pytest.skip("an installed wheel has no source")
    code = f"import runpy; print(runpy.run_path({str(script)!r})['header'](), end='')"
    made = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert made.stdout == (ROOT / "csrc/proto/hpack_tables.h").read_text("ascii")


@given(st.binary(max_size=200))
def test_any_bytes_end(block: bytes) -> None:
    state, _fields = HeaderTable().decode(block)
    assert state in ("done", "malformed")
