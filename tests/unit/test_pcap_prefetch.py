# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The prefetch of records' heads, ahead of the walk over them: it finds all of them in traffic, and
costs no more than time elsewhere (under ASan, each span in memory of its own size); a capture's
reader uses it where it pays, once for each part."""

import struct
from bisect import bisect_left
from pathlib import Path
from random import Random

import pytest
from support.c_build import CSRC, SANITIZE, compile_c, run
from support.capture_bytes import enhanced, interface, pcap_header, pcap_record, section

pytestmark = [pytest.mark.source]

PREFETCHED = 520 << 10
HEADS = {"pcap": 112, "pcapng": 124}  # bytes at the end in which no record is looked for
HEAD = HEADS["pcap"]
PLACES = 8
SEARCHED = 16 << 10
KINDS = pytest.mark.parametrize("kind", HEADS)
NOW = 1_790_000_000

DRIVER = """
#include "capture/pcap_prefetch.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* driver FILE pcap|pcapng: of each span of the file (four bytes of length, then the span) how many
 * records are found, and the places. */
int main(int argc, char **argv)
{
    FILE *file = argc == 3 ? fopen(argv[1], "rb") : NULL;
    zn_prefetch_kind kind = strcmp(argv[2], "pcap") == 0 ? ZN_PREFETCH_PCAP : ZN_PREFETCH_PCAPNG;
    uint32_t length;
    if (file == NULL)
        return 1;
    while (fread(&length, sizeof length, 1, file) == 1) {
        uint8_t *bytes = malloc(length);
        if (fread(bytes, 1, length, file) != length)
            return 2;
        zn_span span = {bytes, length};
        size_t place[ZN_PCAP_PLACES];
        unsigned places = zn_pcap_places(span, kind, place);
        printf("%zu", zn_pcap_prefetch(span, kind));
        for (unsigned i = 0; i < places; i++)
            printf(" %zu", place[i]);
        puts("");
        free(bytes);
    }
    return fclose(file);
}
"""


READER = """
#include "capture/capture.h"
#include "capture/pcap_prefetch.h"
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static zn_span prefetched;
static size_t calls;
static const char *path;
static bool pays;

bool zn_pcap_prefetch_pays(void)
{
    return pays;
}

size_t zn_pcap_prefetch(zn_span records, zn_prefetch_kind kind)
{
    prefetched = records;
    calls += kind == (strstr(path, "pcapng") != NULL ? ZN_PREFETCH_PCAPNG : ZN_PREFETCH_PCAP);
    return 0;
}

/* reader FILE MAX map|stream pays|costs: how many frames; of them, in no part that was asked for;
 * calls. */
int main(int argc, char **argv)
{
    int max = argc == 5 ? atoi(argv[2]) : 0, n, fd = -1;
    size_t frames = 0, alone = 0;
    zn_capture *c;
    zn_frame frame[512];
    zn_error err;
    if (max < 1 || max > 512)
        return 1;
    path = argv[1];
    pays = strcmp(argv[4], "pays") == 0;
    if (strcmp(argv[3], "stream") == 0) {
        fd = open(argv[1], O_RDONLY);
        n = zn_capture_open_fd(&c, fd, (zn_span){NULL, 0}, "a stream", &err);
    } else {
        n = zn_capture_open_path(&c, argv[1], &err);
    }
    if (n != 0)
        return 2;
    while ((n = zn_capture_next(c, frame, max, &err)) > 0) {
        for (int i = 0; i < n; i++) {
            const uint8_t *at = frame[i].data;
            alone += prefetched.p == NULL || at < prefetched.p || at >= prefetched.p + prefetched.n;
        }
        frames += (size_t)n;
    }
    printf("%zu %zu %zu\\n", frames, alone, calls);
    zn_capture_close(c);
    return n;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prefetch")
    driver = folder / "driver.c"
    driver.write_text(DRIVER)
    sources = [driver, CSRC / "capture" / "pcap_prefetch.c", CSRC / "util" / "error.c"]
    return compile_c(folder / "prefetch", sources, "-O1", *SANITIZE)


def found(program: Path, spans: list[bytes], kind: str = "pcap") -> list[list[int]]:
    """How many records are found in each, and the places from which they are."""
    path = program.with_name("spans")
    path.write_bytes(b"".join(struct.pack("<I", len(span)) + span for span in spans))
    lines = run([program, path, kind]).splitlines()
    return [[int(word) for word in line.split()] for line in lines]


def expected(n: int, starts: list[int], kind: str = "pcap") -> list[int]:
    """The same, of n bytes in which records begin at `starts`: one at or behind each eighth."""
    end = max(0, n - HEADS[kind])
    part = end // PLACES
    if part == 0:
        return [0]
    begins = [at for at in starts if at < end]
    first = [bisect_left(begins, i * part) for i in range(PLACES)]
    places = [begins[at] for at in first if at < len(begins)]
    searched = min(part, SEARCHED)
    return [len(begins), *(at for i, at in enumerate(places) if at < i * part + searched)]


def record_of(kind: str, seconds: int, fraction: int, data: bytes, options: bytes = b"") -> bytes:
    """A record of a pcap, or a block of a pcapng."""
    if kind == "pcap":
        return pcap_record("<", seconds, fraction, data)
    return enhanced("<", seconds * 1_000_000 + fraction, data, options=options)


def traffic(
    random: Random, size: int, longest: int = 0, kind: str = "pcap"
) -> tuple[bytes, list[int]]:
    """Records of at least `size` bytes together, seconds apart, and where each begins."""
    records, starts, at, seconds = [], [], 0, NOW + random.randrange(1 << 20)
    longest = longest or random.choice([600, 1514, 1514, 9014])
    while at < size:
        data = random.randbytes(random.randint(14, longest))
        options = random.choice([b"", struct.pack("<HHIHH", 2, 4, 0, 0, 0)])
        records.append(record_of(kind, seconds, random.randrange(1_000_000), data, options))
        starts.append(at)
        at += len(records[-1])
        seconds += random.randrange(500) == 0
    return b"".join(records), starts


@KINDS
def test_all_records_of_real_traffic_are_found(program: Path, kind: str) -> None:
    random = Random(1)
    sizes = [random.choice([200, 5_000, 60_000, PREFETCHED]) for _ in range(60)]
    made = [traffic(random, size, kind=kind) for size in sizes]
    spans = [span[:PREFETCHED] for span, _ in made]
    answers = [expected(len(x), starts, kind) for x, (_, starts) in zip(spans, made, strict=True)]
    assert found(program, spans, kind) == answers
    assert max(map(len, answers)) == 1 + PLACES


@KINDS
def test_of_short_records_no_more_than_it_is_worth_are_walked_over(
    program: Path, kind: str
) -> None:
    """They begin where they are found to; the walks end when they took a step for 128 bytes."""
    random = Random(4)
    longest = 90 if kind == "pcap" else 70  # 106 and 102 bytes with their headers
    made = [traffic(random, size, longest, kind) for size in (200, 5_000, 60_000, PREFETCHED)]
    spans = [span[:PREFETCHED] for span, _ in made]
    answers = [expected(len(x), starts, kind) for x, (_, starts) in zip(spans, made, strict=True)]
    all_found = found(program, spans, kind)
    for span, answer, (begins, *places) in zip(spans, all_found, answers, strict=True):
        assert answer[1:] == places
        assert min(begins, len(span) // 128) <= answer[0] <= min(begins, len(span) // 128 + 15)


@KINDS
def test_a_span_that_ends_anywhere(program: Path, kind: str) -> None:
    span, starts = traffic(Random(2), 4_000, kind=kind)
    lengths = range(len(span))
    answers = [expected(n, starts, kind) for n in lengths]
    assert found(program, [span[:n] for n in lengths], kind) == answers


def test_times_that_are_an_hour_apart_are_found_no_more(program: Path) -> None:
    """The walk from the start finds the records all the same: no time is compared there."""
    span = b"".join(pcap_record("<", NOW + 4000 * n, 0, bytes(600)) for n in range(100))
    begins = sum(616 * n < len(span) - HEAD for n in range(100))
    assert found(program, [span]) == [[begins, 0]]


def test_places_are_looked_for_no_further_than_they_are_worth(program: Path) -> None:
    span = b"".join(pcap_record("<", NOW, 0, bytes(40_000)) for _ in range(13))
    answer = expected(len(span), [40_016 * n for n in range(13)])
    assert found(program, [span]) == [answer]
    assert 2 < len(answer) < 1 + PLACES


@pytest.mark.parametrize(
    "header",
    [
        (NOW + 4000, 0, 20, 20),
        (NOW - 1, 0, 20, 20),
        (NOW, 1_000_000_000, 20, 20),
        (NOW, 0, 0, 20),
        (NOW, 0, 20, 19),
        (NOW, 0, 20, (256 << 10) + 1),
    ],
    ids=["later", "earlier", "fraction", "empty", "longer than it was", "too long"],
)
def test_what_cannot_begin_a_record_is_no_place(
    program: Path, header: tuple[int, int, int, int]
) -> None:
    """Payloads are full of such headers, and a walk from one of them would go elsewhere."""
    record = pcap_record("<", NOW, 0, struct.pack("<4I", *header) * 50)
    answer = expected(len(record) * 100, [len(record) * n for n in range(100)])
    assert found(program, [record * 100]) == [answer]


@pytest.mark.parametrize(
    "words",
    [
        (5, 48, 0, 16, 16),
        (6, 47, 0, 16, 16),
        (6, 48, 2, 16, 16),
        (6, 48, -1, 16, 16),
        (6, 44, 0, 16, 16),
        (6, 48 + 516, 0, 16, 16),
        (6, 48, 0, 0, 16),
        (6, 48, 0, 16, 15),
        (6, 48, 0, 16, (256 << 10) + 1),
    ],
    ids=["other block", "odd", "later", "earlier", "too short", "too much behind", "empty",
         "longer than it was", "too long"],
)  # fmt: skip
def test_what_cannot_begin_a_block_is_no_place(program: Path, words: tuple[int, ...]) -> None:
    kind, length, later, captured, wire = words
    upper = NOW * 1_000_000 >> 32
    header = struct.pack("<7I", kind, length, 0, upper + later, 0, captured, wire)
    block = enhanced("<", NOW * 1_000_000, header * 50)
    answer = expected(len(block) * 100, [len(block) * n for n in range(100)], "pcapng")
    assert found(program, [block * 100], "pcapng") == [answer]


def test_candidates_are_tried_no_longer_than_it_is_worth(program: Path) -> None:
    """Payloads that are all like the time's third byte, and one in which nothing is."""
    like = pcap_record("<", NOW, 0, bytes([NOW >> 16 & 0xFF]) * 8_000)
    unlike = pcap_record("<", NOW, 0, bytes(8_000))
    span = like * 26 + unlike + like * 16
    records, *places = expected(len(span), [8_016 * n for n in range(43)])
    assert found(program, [span]) == [[records, places[0], places[5]]]
    assert len(places) == PLACES


def test_a_walk_ends_where_no_record_can_be(program: Path) -> None:
    span = pcap_record("<", NOW, 0, bytes(600)) + struct.pack("<4I", 0, 0, (256 << 10) + 1, 0)
    assert found(program, [span + bytes(300 << 10)]) == [[2, 0]]


@KINDS
def test_what_is_no_capture_costs_time_alone(program: Path, kind: str) -> None:
    """Headers alone, a payload full of them, noise: a step for 128 bytes, and no more."""
    random = Random(3)
    inner, _ = traffic(random, 100_000, kind=kind)
    captures = record_of(kind, NOW, 0, pcap_header() + inner) * 5
    short = [record_of(kind, NOW, 0, bytes(n)) for n in (0, 1)]
    spans = [random.randbytes(n) for n in (0, 1, 15, 16, HEAD, HEAD + 1, 5_000, PREFETCHED)]
    spans += [filler * 200_000 for filler in (b"\x00", b"\xff")]
    spans += [captures, *(record * 20_000 for record in short)]
    spans += [record_of(kind, NOW, 0, record * 90) * 100 for record in short]
    answers = found(program, spans, kind)
    for span, (records, *places) in zip(spans, answers, strict=True):
        assert records <= len(span) // 128 + 2 * PLACES
        assert all(0 <= at < len(span) for at in places)
    assert max(records for records, *_ in answers) > 2_000


# ---- the reader ---------------------------------------------------------------------------------

RECORDS = 4000
PORTION = 128 << 10


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reader")
    driver = folder / "driver.c"
    driver.write_text(READER)
    names = ("capture", "format", "pcap", "pcapng", "snoop")
    names += ("byte_source", "mapped_file", "sigbus_guard")
    sources = [driver, *(CSRC / "capture" / f"{name}.c" for name in names)]
    sources += (CSRC / "util" / f"{name}.c" for name in ("arena", "error"))
    return compile_c(folder / "reader", sources, "-O1", "-pthread", *SANITIZE)


def read(
    reader: Path, length: int, most: int, *how: str, kind: str = "pcap"
) -> tuple[int, int, int]:
    """Of RECORDS records: frames read, those in no part that was prefetched, and how many were."""
    path = reader.with_name(f"x.{kind}")
    header = pcap_header() if kind == "pcap" else section() + interface()
    path.write_bytes(header + record_of(kind, NOW, 0, bytes(length)) * RECORDS)
    frames, alone, calls = map(int, run([reader, path, str(most), *how]).split())
    return frames, alone, calls


@pytest.mark.family(8)
@pytest.mark.parametrize("most", [1, 7, 512])
@pytest.mark.parametrize("length", [600, 1500, 9000])
@KINDS
def test_long_records_are_prefetched_part_by_part(
    reader: Path, kind: str, length: int, most: int
) -> None:
    size = RECORDS * length
    windows = size // (2 << 20) + 1  # of the mapped file: each ends a part
    frames, alone, calls = read(reader, length, most, "map", "pays", kind=kind)
    assert frames == RECORDS
    # The first records tell the header's length, the next ones their own. A part's last one is cut.
    assert alone <= 2 * min(most, PORTION // length + 1) + calls
    assert size // PREFETCHED <= calls <= size // (PREFETCHED - 2 * PORTION) + 2 * windows


@pytest.mark.parametrize(
    ("length", "how", "pays"),
    [
        (300, "map", "pays"),
        (14_000, "map", "pays"),
        (1500, "map", "costs"),
        (1500, "stream", "pays"),
        (100, "stream", "pays"),
    ],
)
@KINDS
def test_others_are_not_prefetched(
    reader: Path, kind: str, length: int, how: str, pays: str
) -> None:
    assert read(reader, length, 512, how, pays, kind=kind) == (RECORDS, RECORDS, 0)
