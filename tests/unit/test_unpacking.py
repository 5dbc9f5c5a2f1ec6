# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Compressed captures: known by first bytes, unpacked in bounded memory, used up to damage."""

import bz2
import gzip
import io
import lzma
import os
import re
import shutil
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import lz4.block
import lz4.frame
import pytest
import zstandard
from support import packers
from support.capture_bytes import (
    Frames,
    enhanced,
    interface,
    pcap_header,
    pcap_record,
    read_all,
    section,
)
from support.packers import Pack
from support.waiting import filled

import zanon_net
from zanon_net.config.settings import Config
from zanon_net.errors import CapacityError, FormatError
from zanon_net.pipeline.runner import run
from zanon_net.pipeline.sources import OpenSource, open_sources
from zanon_net.system import decompress
from zanon_net.system.decompress import Unpacker, compression_of


def zstd_of_unknown_size(data: bytes) -> bytes:
    """As a pipe into zstd gives it: the frame does not tell its size."""
    stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return stream.compress(data) + stream.flush()


def lzma_alone(data: bytes) -> bytes:
    return lzma.compress(data, lzma.FORMAT_ALONE)


PACKERS: dict[str, Pack] = {**packers.PACKERS, "lzma": lzma_alone}
RECORDS = [os.urandom(40 + i % 200) for i in range(400)]
PCAP = pcap_header() + b"".join(pcap_record("<", i, 0, data) for i, data in enumerate(RECORDS))
FRAMES: Frames = [(i * 1_000_000_000, len(data), 1, data) for i, data in enumerate(RECORDS)]

packed_by = pytest.mark.parametrize("name", PACKERS)


def read_file(path: Path, *, max_bytes: int | None = None) -> tuple[Frames, str | None]:
    """The frames of a file as `run` takes them, and the warning."""
    config = Config().replace(max_bytes=max_bytes) if max_bytes else Config()
    with ExitStack() as stack:
        [source] = open_sources([path], config, stack)
        frames, _ = read_all(source.capture)
        source.check()
        return frames, source.facts().warning


def read_or_refuse(path: Path) -> tuple[Frames, str]:
    """The same with the text of an error in the place of a warning."""
    try:
        frames, warning = read_file(path)
    except FormatError as error:
        return [], str(error)
    return frames, warning or ""


@packed_by
def test_the_first_bytes_tell_not_the_name(name: str, tmp_path: Path) -> None:
    packed = PACKERS[name](PCAP)
    assert compression_of(packed) == name
    for file in ("capture", "capture.pcap", "capture.gz", "capture.zst"):
        (tmp_path / file).write_bytes(packed)
        assert read_file(tmp_path / file) == (FRAMES, None)
    (tmp_path / "plain.gz").write_bytes(PCAP)
    assert read_file(tmp_path / "plain.gz") == (FRAMES, None)


@packed_by
def test_several_members_are_one_capture(name: str, tmp_path: Path) -> None:
    pack = PACKERS[name]
    parts = [PCAP[:30], PCAP[30:5000], b"", PCAP[5000:]]
    (tmp_path / "parts").write_bytes(b"".join(map(pack, parts)))
    assert read_file(tmp_path / "parts") == (FRAMES, None)


def test_zstd_of_unknown_size_and_with_a_skippable_frame(tmp_path: Path) -> None:
    skippable = bytes.fromhex("502a4d18") + (5).to_bytes(4, "little") + b"table"
    (tmp_path / "z").write_bytes(skippable + zstd_of_unknown_size(PCAP) + skippable)
    assert read_file(tmp_path / "z") == (FRAMES, None)


def skippable(size: int, kind: int = 0) -> bytes:
    return bytes((0x50 + kind, 0x2A, 0x4D, 0x18)) + size.to_bytes(4, "little") + os.urandom(size)


@pytest.mark.parametrize("name", ["lz4", "zstd"])
def test_skippable_frames_anywhere_are_skipped(name: str, tmp_path: Path) -> None:
    """The frame behind skippable frames says which compression it is."""
    parts = [PACKERS[name](PCAP[:5000]), PACKERS[name](PCAP[5000:])]
    between = [skippable(0), skippable(3, 15) + skippable(70_000, 7), skippable(8192 - 8)]
    for before in between:
        for middle in (b"", *between):
            path = tmp_path / "x"
            path.write_bytes(before + parts[0] + middle + parts[1] + before)
            assert read_file(path) == (FRAMES, None)
            with ExitStack() as stack:
                [source] = open_sources([path], Config(), stack)
                read_all(source.capture)
                assert source.facts().compression == name
    (tmp_path / "cut").write_bytes(parts[0] + parts[1] + skippable(70_000)[:-1])
    frames, warning = read_file(tmp_path / "cut")
    assert frames == FRAMES
    assert f"the {name} data ends early" in (warning or "")


def test_skippable_frames_alone_are_no_capture(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(skippable(10) + skippable(20))
    with pytest.raises(FormatError, match="x "):
        read_file(tmp_path / "x")


@pytest.mark.parametrize("size", [0, 4, 8, 12, 512, 8192, 100_000])
def test_padding_of_xz_streams_is_part_of_the_format(size: int, tmp_path: Path) -> None:
    streams = [lzma.compress(PCAP[:5000]), lzma.compress(b""), lzma.compress(PCAP[5000:])]
    (tmp_path / "between").write_bytes(bytes(size).join(streams))
    assert read_file(tmp_path / "between") == (FRAMES, None)
    (tmp_path / "behind").write_bytes(b"".join(streams) + bytes(size))
    assert read_file(tmp_path / "behind") == (FRAMES, None)
    report = run(tmp_path / "behind", Config(), out=tmp_path / "out")
    assert report.manifest["complete"] is True


@pytest.mark.parametrize("size", [1, 2, 3, 5, 4097])
def test_padding_of_xz_that_is_no_multiple_of_four_is_told(size: int, tmp_path: Path) -> None:
    """As xz -d does: the first stream's data and an error."""
    streams = [lzma.compress(PCAP), lzma.compress(PCAP[24:])]
    for packed in (bytes(size).join(streams), streams[0] + bytes(size)):
        (tmp_path / "x").write_bytes(packed)
        frames, warning = read_file(tmp_path / "x")
        assert frames == FRAMES
        assert "the xz data is damaged" in (warning or "")


def test_bzip2_has_no_padding(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bz2.compress(PCAP) + bytes(4) + bz2.compress(PCAP[24:]))
    frames, warning = read_file(tmp_path / "x")
    assert frames == FRAMES
    assert "the bzip2 data is damaged" in (warning or "")


def lz4_legacy(data: bytes) -> bytes:
    """As `lz4 -l` writes: blocks of 8 MiB, and nothing that says where they end."""
    packed = b"\x02\x21\x4c\x18"
    for at in range(0, len(data), 8 << 20):
        block = lz4.block.compress(data[at : at + (8 << 20)], store_size=False)
        packed += len(block).to_bytes(4, "little") + block
    return packed


def test_lz4_legacy(tmp_path: Path) -> None:
    """Alone, several, mixed with frames, cut, damaged, with other bytes behind."""
    first, rest = PCAP[:5000], PCAP[5000:]
    whole = [
        lz4_legacy(PCAP),
        lz4_legacy(first) + lz4_legacy(rest),
        lz4_legacy(first) + lz4.frame.compress(rest),
        lz4.frame.compress(first) + lz4_legacy(rest),
        skippable(9) + lz4_legacy(first) + skippable(9) + lz4_legacy(b"") + lz4_legacy(rest),
    ]
    for packed in whole:
        (tmp_path / "x").write_bytes(packed)
        assert read_file(tmp_path / "x") == (FRAMES, None)
    packed = lz4_legacy(first) + lz4_legacy(rest)
    second = len(lz4_legacy(first))
    for size in (second + 5, second + 20, len(packed) - 1):
        (tmp_path / "x").write_bytes(packed[:size])
        frames, warning = read_file(tmp_path / "x")
        assert frames == FRAMES[: len(frames)]
        assert frames
        assert "the lz4 data ends early" in (warning or "")
    for behind in (b"no more packets", bytes(4), b"xy", bytes(9)):
        (tmp_path / "x").write_bytes(lz4_legacy(PCAP) + behind)
        frames, warning = read_file(tmp_path / "x")
        assert frames == FRAMES
        assert warning is not None


def test_lz4_legacy_of_several_blocks(tmp_path: Path) -> None:
    record = pcap_record("<", 1, 0, os.urandom(1000) + bytes(60_000))
    (tmp_path / "x").write_bytes(lz4_legacy(pcap_header() + 300 * record))
    frames, warning = read_file(tmp_path / "x")
    assert (len(frames), warning) == (300, None)


@pytest.mark.skipif(shutil.which("xz") is None, reason="needs xz")
def test_lzma_files_as_xz_writes_them(tmp_path: Path) -> None:
    """With any preset, of known and of unknown size."""
    for level in ("-0", "-6", "-9e"):
        packed = subprocess.run(
            ["xz", "--format=lzma", level, "-c"], input=PCAP, capture_output=True, check=True
        ).stdout
        known = packed[:5] + len(PCAP).to_bytes(8, "little") + packed[13:]
        for each in (packed, known):
            assert compression_of(each) == "lzma"
            (tmp_path / "x").write_bytes(each)
            assert read_file(tmp_path / "x") == (FRAMES, None)


def test_captures_are_not_taken_for_lzma() -> None:
    for magic in ("a1b2c3d4", "d4c3b2a1", "4d3cb2a1", "a1b23c4d", "34cdb2a1", "0a0d0d0a"):
        for version in (bytes.fromhex("00020004"), bytes.fromhex("02000400"), bytes(4)):
            assert compression_of(bytes.fromhex(magic) + version + bytes(5)) is None
    assert compression_of(b"snoop\0\0\0" + bytes(5)) is None
    assert compression_of(bytes(13)) is None


PROGRAMS = {"xz": ["xz", "-dc"], "bzip2": ["bzip2", "-dc"], "lz4": ["lz4", "-dc"]}


@pytest.mark.parametrize("program", PROGRAMS)
def test_what_follows_a_stream_is_read_as_the_program_reads_it(
    program: str, tmp_path: Path
) -> None:
    """The same bytes, and a warning where the program has one."""
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")
    first, rest = PACKERS[program](PCAP[:5000]), PACKERS[program](PCAP[5000:])
    legacy = [lz4_legacy(PCAP[5000:])] if program == "lz4" else []
    for second in [rest, *legacy]:
        for between in [bytes(n) for n in (0, 1, 3, 4, 8, 510)] + [b"abcd", skippable(5)]:
            for behind in (b"", bytes(3), bytes(4), b"BZ", b"\xfd7zXZ\0" + bytes(9)):
                packed = first + between + second + behind
                done = subprocess.run(
                    PROGRAMS[program], input=packed, capture_output=True, check=False
                )
                (tmp_path / "plain").write_bytes(done.stdout)
                (tmp_path / "packed").write_bytes(packed)
                frames, warning = read_file(tmp_path / "packed")
                assert frames == read_file(tmp_path / "plain")[0], (between, behind)
                complains = bool(done.returncode or done.stderr)
                assert complains == (warning is not None and "data" in warning), (between, behind)


def test_pcapng_is_unpacked_too(tmp_path: Path) -> None:
    blocks = b"".join(enhanced("<", i, data) for i, data in enumerate(RECORDS))
    (tmp_path / "ng").write_bytes(gzip.compress(section() + interface() + blocks))
    frames, warning = read_file(tmp_path / "ng")
    assert [data for *_, data in frames] == RECORDS
    assert warning is None


@packed_by
def test_a_cut_tail_costs_only_itself(name: str, tmp_path: Path) -> None:
    packed = PACKERS[name](PCAP)
    most = 0
    for size in range(len(packed) - 1, 0, -len(packed) // 23):
        (tmp_path / "cut").write_bytes(packed[:size])
        frames, said = read_or_refuse(tmp_path / "cut")
        assert frames == FRAMES[: len(frames)]
        if frames:
            assert f"the {name} data ends early, after byte " in said
        else:
            assert re.search(f"the {name} data ends early|too short|not a capture", said)
        most = max(most, len(frames))
    if name not in ("bzip2", "lz4", "zstd"):  # which give a block, and this is one, or nothing
        assert most > len(FRAMES) // 2


@packed_by
def test_blocks_before_a_cut_are_used(name: str, tmp_path: Path) -> None:
    """A capture of several blocks, cut in its last third: at most the cut block is lost."""
    noise = [os.urandom(1400) for _ in range(1400)]
    data = pcap_header() + b"".join(pcap_record("<", 1, 0, each) for each in noise)
    packed = PACKERS[name](data)
    (tmp_path / "cut").write_bytes(packed[: len(packed) * 2 // 3])
    frames, warning = read_file(tmp_path / "cut")
    assert [each for *_, each in frames] == noise[: len(frames)]
    assert len(frames) > len(noise) // 4
    assert warning is not None


@packed_by
def test_a_damaged_place_is_no_traceback(name: str, tmp_path: Path) -> None:
    packed = PACKERS[name](PCAP)
    for at in range(len(packed) // 3, len(packed), len(packed) // 11):
        damaged = bytearray(packed)
        damaged[at] ^= 0x55
        (tmp_path / "damaged").write_bytes(damaged)
        _frames, said = read_or_refuse(tmp_path / "damaged")
        assert said or name in ("lz4", "zstd", "lzma")  # which have no sums by default


@pytest.mark.parametrize("name", [name for name in PACKERS if name != "lzma"])  # has no checksum
def test_a_wrong_checksum_at_the_end_is_told(name: str, tmp_path: Path) -> None:
    if name == "zstd":
        packed = zstandard.ZstdCompressor(write_checksum=True).compress(PCAP)
    elif name == "lz4":
        packed = lz4.frame.compress(PCAP, content_checksum=True)
    else:
        packed = PACKERS[name](PCAP)
    at = {"gzip": -8, "bzip2": -5, "xz": -4, "lz4": -1, "zstd": -1}[name]
    damaged = bytearray(packed)
    damaged[at] ^= 1
    (tmp_path / "sum").write_bytes(damaged)
    frames, warning = read_file(tmp_path / "sum")
    assert frames == FRAMES[: len(frames)]
    assert warning is not None
    assert "damaged" in warning or "ends early" in warning


def test_rubbish_behind_the_packed_data_is_told(tmp_path: Path) -> None:
    for name, pack in PACKERS.items():
        for behind in (b"no more packets", b"x", b"\x00" * 3 + b"x", pack(PCAP)[2:]):
            (tmp_path / name).write_bytes(pack(PCAP) + behind)
            frames, warning = read_file(tmp_path / name)
            assert frames == FRAMES
            assert warning == (
                f"the {name} data is damaged after byte {len(PCAP)} of the unpacked data"
            )


@packed_by
def test_the_bound_is_an_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(PACKERS[name](PCAP))
    assert read_file(tmp_path / "x", max_bytes=len(PCAP)) == (FRAMES, None)
    with pytest.raises(CapacityError, match=r"unpacks to more than \d+ bytes; raise --max-bytes"):
        read_file(tmp_path / "x", max_bytes=len(PCAP) - 1)
    with pytest.raises(CapacityError, match="raise --max-bytes"):
        read_file(tmp_path / "x", max_bytes=10)
    with pytest.raises(CapacityError, match=r"x: the \w+ data unpacks to more"):
        run(tmp_path / "x", Config().replace(max_bytes=9000), out=tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x"]


@packed_by
def test_without_a_bound_there_is_one(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decompress, "UNBOUNDED_BYTES", 100_000)
    monkeypatch.setattr(decompress, "RATIO_MAX", 3)
    bomb = pcap_header() + 3000 * pcap_record("<", 1, 0, bytes(1000))
    (tmp_path / "bomb").write_bytes(PACKERS[name](bomb))
    with pytest.raises(CapacityError):
        read_file(tmp_path / "bomb")
    (tmp_path / "dense").write_bytes(PACKERS[name](PCAP))
    assert read_file(tmp_path / "dense") == (FRAMES, None)


def test_a_window_that_is_too_large_has_a_way_out(tmp_path: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=30)
    stream = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    (tmp_path / "long").write_bytes(stream.compress(PCAP) + stream.flush())
    with pytest.raises(FormatError, match=r"unpack it first \(zstd -d --long=31\)"):
        read_file(tmp_path / "long")


@packed_by
def test_closing_early_ends_the_thread(name: str) -> None:
    endless = PACKERS[name](pcap_header() + bytes(8 << 20))
    unpacker = Unpacker(io.BytesIO(endless[6:]), endless[:6], None)
    assert os.read(unpacker.fd, 4)
    unpacker.close()
    unpacker.close()
    names = [thread.name for thread in threading.enumerate()]
    assert "unpacking" not in names


@packed_by
def test_through_a_fifo_and_standard_input(name: str, tmp_path: Path) -> None:
    packed = PACKERS[name](PCAP)
    fifo = tmp_path / "fifo"
    with filled(fifo, packed):
        assert read_file(fifo) == (FRAMES, None)
    code = "from zanon_net.cli import main; raise SystemExit(main(['inspect', '--json', '-']))"
    environment = {**os.environ, "PYTHONPATH": str(Path(zanon_net.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", code], input=packed, env=environment, capture_output=True, check=True
    )
    assert f'"frames": {len(FRAMES)}'.encode() in done.stdout
    assert f'"compression": "{name}"'.encode() in done.stdout


@packed_by
@pytest.mark.skipif("ZANON_SANITIZE" in os.environ, reason="a sanitizer's memory is not ours")
def test_memory_is_bounded(name: str, tmp_path: Path) -> None:
    """Unpacking 150 MB takes little more than unpacking 10 MB does."""
    code = (
        "import re, sys; from zanon_net.cli import main; "
        "main(['inspect', '--json', '--max-bytes', '1G', sys.argv[1]]); "
        "status = open('/proc/self/status').read(); "
        "print(re.search(r'VmHWM:\\s+(\\d+)', status)[1], file=sys.stderr)"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(zanon_net.__file__).parents[1])}
    peaks = []
    megabyte = 16 * pcap_record("<", 1, 0, bytes(1 << 16))
    for megabytes in (10, 150):
        path = tmp_path / "large"
        path.write_bytes(
            PACKERS[name](pcap_header()) + PACKERS[name](10 * megabyte) * (megabytes // 10)
        )
        done = subprocess.run(
            [sys.executable, "-c", code, path], env=environment, capture_output=True, check=True
        )
        peaks.append(int(done.stderr.split()[-1]))
    assert peaks[1] < peaks[0] + 64 * 1024  # kB


def test_a_source_knows_how_far_it_is(tmp_path: Path) -> None:
    path = tmp_path / "capture"
    path.write_bytes(gzip.compress(PCAP))
    source = OpenSource(str(path), Config())
    assert source.progress() == (0, path.stat().st_size)
    assert read_all(source.capture)[0] == FRAMES
    assert source.progress() == (path.stat().st_size, path.stat().st_size)
    source.close()
