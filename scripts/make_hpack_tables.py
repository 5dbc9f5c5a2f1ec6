# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Writes csrc/proto/hpack_tables.h from the tables of RFC 7541.

Usage: python scripts/make_hpack_tables.py

Appendix B's Huffman code is canonical: within a length, codes are consecutive in the order of their
symbols, and the first code of a length follows from the shorter codes. So the lengths define it.
"""

from collections.abc import Iterable
from pathlib import Path

# Appendix B: bits of the code of each byte, then of EOS.
CODE_BITS = """
13 23 28 28 28 28 28 28 28 24 30 28 28 30 28 28 28 28 28 28 28 28 30 28 28 28 28 28 28 28 28 28
6 10 10 12 13 6 8 11 10 10 8 11 8 6 6 6 5 5 5 6 6 6 6 6 6 6 7 8 15 6 12 10 13 6 7 7 7 7 7 7 7 7
7 7 7 7 7 7 7 7 7 7 7 7 7 7 8 7 8 13 19 13 14 6 15 5 6 5 6 5 6 6 6 5 7 7 6 6 6 5 6 7 6 5 5 6 7 7
7 7 7 15 11 14 13 28 20 22 20 20 22 22 22 23 22 23 23 23 23 23 24 23 24 24 22 23 24 23 23 23 23
21 22 23 22 23 23 24 22 21 20 22 22 23 23 21 23 22 22 24 21 22 23 23 21 21 22 21 23 22 23 23 20
22 22 22 23 22 22 23 26 26 20 19 22 23 22 25 26 26 26 27 27 26 24 25 19 21 26 27 27 26 27 24 21
21 26 26 28 27 27 27 20 24 20 21 22 21 21 23 22 22 25 25 24 24 26 23 26 27 26 26 27 27 27 27 27
28 27 27 27 27 27 26 30
"""

# Appendix A: the fields of indices 1 to 61, a line each, "name" or "name=value".
FIELDS = """
:authority
:method=GET
:method=POST
:path=/
:path=/index.html
:scheme=http
:scheme=https
:status=200
:status=204
:status=206
:status=304
:status=400
:status=404
:status=500
accept-charset
accept-encoding=gzip, deflate
accept-language
accept-ranges
accept
access-control-allow-origin
age
allow
authorization
cache-control
content-disposition
content-encoding
content-language
content-length
content-location
content-range
content-type
cookie
date
etag
expect
expires
from
host
if-match
if-modified-since
if-none-match
if-range
if-unmodified-since
last-modified
link
location
max-forwards
proxy-authenticate
proxy-authorization
range
referer
refresh
retry-after
server
set-cookie
strict-transport-security
transfer-encoding
user-agent
vary
via
www-authenticate
"""


def fill(items: Iterable[object], indent: str = "    ") -> str:
    """Returns lines of at most 100 characters with items and commas."""
    lines, line = [], indent
    for item in items:
        piece = f"{item},"
        if len(line) + len(piece) > 100:
            lines.append(line.rstrip())
            line = indent
        line += piece + " "
    return "\n".join([*lines, line.rstrip()])


def huffman() -> Iterable[str]:
    """Yields the codes by length, and the symbols in the order of their codes."""
    bits = [int(word) for word in CODE_BITS.split()]
    counts = [bits.count(length) for length in range(max(bits) + 1)]
    symbols = sorted(range(len(bits)), key=lambda symbol: (bits[symbol], symbol))
    yield f"#define HPACK_CODE_BITS_MAX {max(bits)}u"
    yield "#define HPACK_EOS 256u"
    yield ""
    yield "/* Number of codes with 0, 1, 2 ... bits. */"
    yield f"static const uint16_t hpack_codes[] = {{\n{fill(counts)}\n}};"
    yield ""
    yield "/* Symbols in the order of their codes. */"
    yield f"static const uint16_t hpack_symbols[] = {{\n{fill(symbols)}\n}};"


def fields() -> Iterable[str]:
    """Yields the static table."""
    yield "/* Index 1 is the first. */"
    yield "static const struct {"
    yield "    const char *name, *value;"
    yield "    uint16_t name_bytes, value_bytes;"
    yield "} hpack_fields[] = {"
    for line in FIELDS.split("\n")[1:-1]:
        name, _equals, value = line.partition("=")
        yield f'    {{"{name}", "{value}", {len(name)}, {len(value)}}},'
    yield "};"


def header() -> str:
    """Returns the complete file."""
    lines = [
        "/* SPDX-FileCopyrightText: The zanon_net authors */",
        "/* SPDX-License-Identifier: Apache-2.0 */",
        "/* Made by scripts/make_hpack_tables.py from RFC 7541, Appendices A and B. */",
        "#ifndef ZN_PROTO_HPACK_TABLES_H",
        "#define ZN_PROTO_HPACK_TABLES_H",
        "",
        "#include <stdint.h>",
        "",
        "/* clang-format off */",
        *huffman(),
        "",
        *fields(),
        "/* clang-format on */",
        "",
        "#endif",
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    target = Path(__file__).resolve().parents[1] / "csrc/proto/hpack_tables.h"
    target.write_text(header(), encoding="ascii")
