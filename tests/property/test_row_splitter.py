# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Where rows end, however the input is cut: as a loop over its bytes says, and with few looks."""

import ctypes
import os

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.c_build import SANITIZE, compile_c

pytestmark = pytest.mark.source

# Counts the bytes that the splitter looks at.
COUNTING = """
#include <string.h>

static size_t looked;

static void *counted(const void *bytes, int byte, size_t n)
{
    const char *found = memchr(bytes, byte, n);
    looked += found == NULL ? n : (size_t)(found - (const char *)bytes) + 1;
    return (void *)found;
}
#define memchr counted
#include "rows/splitter.c"

/* Cuts bytes, which come up to each `end` in turn, into rows: their ends, their lines; how many. */
size_t split(const uint8_t *bytes, const size_t *end, size_t portions, bool quotes,
             size_t *row_end, size_t *row_lines, size_t *looks)
{
    zn_row_splitter splitter = {.quotes = quotes, .delimiter = ','};
    size_t rows = 0, at = 0, n, lines;
    looked = 0;
    for (size_t i = 0; i < portions; i++) {
        while (zn_row_splitter_next(&splitter, (zn_span){bytes + at, end[i] - at}, &n, &lines)) {
            at += n;
            row_end[rows] = at;
            row_lines[rows++] = lines;
        }
    }
    *looks = looked;
    return rows;
}
"""

# What an outer search and one in a quoted field look at: for its end, and for the line's.
LOOKS = 4


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """csrc/rows/splitter as a library."""
    folder = tmp_path_factory.mktemp("splitter")
    source = folder / "counting.c"
    source.write_text(COUNTING)
    flags = SANITIZE if "ZANON_SANITIZE" in os.environ else []
    library = ctypes.CDLL(
        str(compile_c(folder / "splitter.so", [source], "-shared", "-fPIC", *flags))
    )
    library.split.restype = ctypes.c_size_t
    return library


def split(
    c: ctypes.CDLL, data: bytes, ends: list[int], quotes: bool
) -> tuple[list[tuple[int, int]], int]:
    """(end, lines) of each row of data that comes in portions, and how many looks it took."""
    numbers = ctypes.c_size_t * (len(data) + 1)
    row_end, row_lines, looks = numbers(), numbers(), ctypes.c_size_t()
    portions = (ctypes.c_size_t * len(ends))(*ends)
    arguments = (data, portions, ctypes.c_size_t(len(ends)), ctypes.c_bool(quotes))
    rows = c.split(*arguments, row_end, row_lines, ctypes.byref(looks))
    return list(zip(row_end[:rows], row_lines[:rows], strict=True)), looks.value


def by_bytes(data: bytes, quotes: bool) -> list[tuple[int, int]]:
    """(end, lines) of each row, by one look at each byte and the one behind it."""
    rows, begin, i, inside = [], 0, 0, False
    while i < len(data):
        if inside and data[i : i + 2] == b'""':
            i += 1
        elif data[i : i + 1] == b'"' and quotes:
            inside = not inside and (i == begin or data[i - 1 : i] == b",")
        elif data[i : i + 1] == b"\n" and not inside:
            rows.append((i + 1, data.count(b"\n", begin, i + 1)))
            begin = i + 1
        i += 1
    return rows


def ends_of(data: bytes, portion: int) -> list[int]:
    return [*range(portion, len(data), portion), len(data)]


@given(
    st.lists(st.sampled_from([b'"', b'""', b"\n", b",", b"x", b'\n"', b',"']), max_size=60),
    st.lists(st.integers(0, 120), max_size=20),
    st.booleans(),
)
@example([b'"', b"\n", b'"', b"\n"], [1, 2, 3], True)
def test_rows_end_where_a_loop_over_bytes_says(
    c: ctypes.CDLL, parts: list[bytes], places: list[int], quotes: bool
) -> None:
    data = b"".join(parts)
    expected = by_bytes(data, quotes)
    cut = sorted({len(data), *(place % (len(data) + 1) for place in places)} - {0})
    for ends in (cut, ends_of(data, len(data) or 1), ends_of(data, 1)):
        rows, looks = split(c, data, ends, quotes)
        assert rows == expected
        assert looks <= LOOKS * len(data) + len(ends)


@pytest.mark.parametrize("portion", [1 << 10, 1 << 16, 1 << 20])
@pytest.mark.parametrize(
    "field",
    [b"y\n", b"\n", b'""\n', b'"",\n', b'"\n",', b'"",', b'"', b"y"],
    ids=lambda field: field.decode("ascii").encode("unicode_escape").decode(),
)
@pytest.mark.parametrize("begin", [b"", b'"'])
def test_each_byte_is_looked_at_a_few_times(
    c: ctypes.CDLL, begin: bytes, field: bytes, portion: int
) -> None:
    data = begin + field * ((1 << 18) // len(field))
    ends = ends_of(data, portion)
    rows, looks = split(c, data, ends, quotes=True)
    assert looks <= LOOKS * len(data) + len(ends)
    assert rows == split(c, data, [len(data)], quotes=True)[0]
