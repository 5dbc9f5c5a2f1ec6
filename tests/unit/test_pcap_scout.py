# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Where records begin, told ahead of the walk over them: all of them in real traffic, and nothing
worse than time lost anywhere else. Under ASan, each span in memory of its own size."""

import struct
from bisect import bisect_left
from pathlib import Path
from random import Random

import pytest
from c_help import CSRC, SANITIZE, compile_c, run
from capture_bytes import pcap_header, pcap_record

pytestmark = [pytest.mark.source]

SCOUTED = 520 << 10
HEAD = 112  # bytes at the end in which no record is looked for
PLACES = 8
SEARCHED = 16 << 10
NOW = 1_790_000_000

DRIVER = """
#include "io/pcap_scout.h"
#include <stdio.h>
#include <stdlib.h>

/* Of each span of the file (four bytes of length, then the span): how many records are found, and
 * the places. */
int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    uint32_t length;
    if (file == NULL)
        return 1;
    while (fread(&length, sizeof length, 1, file) == 1) {
        uint8_t *bytes = malloc(length);
        if (fread(bytes, 1, length, file) != length)
            return 2;
        zn_span span = {bytes, length};
        size_t place[ZN_PCAP_PLACES];
        unsigned places = zn_pcap_places(span, place);
        printf("%zu", zn_pcap_scout(span));
        for (unsigned i = 0; i < places; i++)
            printf(" %zu", place[i]);
        puts("");
        free(bytes);
    }
    return fclose(file);
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scout")
    driver = folder / "driver.c"
    driver.write_text(DRIVER)
    sources = [driver, CSRC / "io" / "pcap_scout.c", CSRC / "base" / "error.c"]
    return compile_c(folder / "scout", sources, "-O1", *SANITIZE)


def found(program: Path, spans: list[bytes]) -> list[list[int]]:
    """How many records are found in each, and the places from which they are."""
    path = program.with_name("spans")
    path.write_bytes(b"".join(struct.pack("<I", len(span)) + span for span in spans))
    return [[int(word) for word in line.split()] for line in run([program, path]).splitlines()]


def expected(n: int, starts: list[int]) -> list[int]:
    """The same, of n bytes in which records begin at `starts`: one at or behind each eighth."""
    end = max(0, n - HEAD)
    part = end // PLACES
    if part == 0:
        return [0]
    begins = [at for at in starts if at < end]
    first = [bisect_left(begins, i * part) for i in range(PLACES)]
    places = [begins[at] for at in first if at < len(begins)]
    searched = min(part, SEARCHED)
    return [len(begins), *(at for i, at in enumerate(places) if at < i * part + searched)]


def traffic(random: Random, size: int) -> tuple[bytes, list[int]]:
    """Records of at least `size` bytes together, seconds apart, and where each begins."""
    records, starts, at, seconds = [], [], 0, NOW + random.randrange(1 << 20)
    longest = random.choice([90, 1514, 1514, 9014])
    while at < size:
        data = random.randbytes(random.randint(14, longest))
        records.append(pcap_record("<", seconds, random.randrange(1_000_000), data))
        starts.append(at)
        at += len(records[-1])
        seconds += random.randrange(500) == 0
    return b"".join(records), starts


def test_all_records_of_real_traffic_are_found(program: Path) -> None:
    random = Random(1)
    made = [traffic(random, random.choice([200, 5_000, 60_000, SCOUTED])) for _ in range(60)]
    spans = [span[:SCOUTED] for span, _ in made]
    answers = [expected(len(x), starts) for x, (_, starts) in zip(spans, made, strict=True)]
    assert found(program, spans) == answers
    assert max(map(len, answers)) == 1 + PLACES


def test_a_span_that_ends_anywhere(program: Path) -> None:
    span, starts = traffic(Random(2), 4_000)
    lengths = range(len(span))
    answers = [expected(n, starts) for n in lengths]
    assert found(program, [span[:n] for n in lengths]) == answers


def test_times_that_are_an_hour_apart_are_found_no_more(program: Path) -> None:
    """The walk from the start finds the records all the same: no time is compared there."""
    span = b"".join(pcap_record("<", NOW + 4000 * n, 0, bytes(600)) for n in range(100))
    begins = sum(616 * n < len(span) - HEAD for n in range(100))
    assert found(program, [span]) == [[begins, 0]]


def test_what_is_no_capture_costs_time_alone(program: Path) -> None:
    random = Random(3)
    like_time = bytes([NOW >> 16 & 0xFF])
    inner, _ = traffic(random, 100_000)
    captures = pcap_record("<", NOW, 0, pcap_header() + inner) * 5
    empty = pcap_record("<", NOW, 0, b"")
    spans = [random.randbytes(n) for n in (0, 1, 15, 16, HEAD, HEAD + 1, 5_000, SCOUTED)]
    spans += [filler * 200_000 for filler in (b"\x00", b"\xff", like_time)]
    spans += [
        pcap_record("<", NOW, 0, like_time * 1400) * 300
    ]  # each place has too many candidates
    spans += [captures, empty * 20_000, pcap_record("<", NOW, 0, empty * 90) * 100]
    for span, (records, *places) in zip(spans, found(program, spans), strict=True):
        assert records <= len(span) // 16 + PLACES
        assert all(0 <= at < len(span) for at in places)
