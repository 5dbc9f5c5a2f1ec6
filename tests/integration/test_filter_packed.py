# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net filter` and `publish` on compressed sources."""

import gzip
import json
import lzma
import os
import random
import zlib
from collections.abc import Callable
from pathlib import Path

import lz4.frame
import pytest
import zstandard
from support.filter import run_filter
from support.filter_live import hear, live, say
from support.filter_run import HEADER, ROWS, Captured, run_main, usual
from support.packers import PACKERS, Pack
from support.waiting import filled

from zanon_net.cli import main

packed_by = pytest.mark.parametrize("name", PACKERS)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows(first: int, count: int, header: str = HEADER) -> bytes:
    """Rows of CSV, a second apart; every attribute has ten users."""
    lines = (f"{first + i},u{i % 10},a{i % 7}\n" for i in range(count))
    return (header + "".join(lines)).encode()


@packed_by
def test_first_bytes_tell_the_compression(name: str) -> None:
    """The case of brimdata/super#3987: Zeek rotates its logs to .gz."""
    data, pack = ROWS.encode(), PACKERS[name]
    Path("rows.csv").write_bytes(pack(data))
    fifo = Path("fifo")
    with filled(fifo, pack(b"time,user,attribute\n6,eve,tea\n")):
        stdin = pack(b"time,user,attribute\n5,dan,tea\n")
        done = run_filter(*usual("--no-user", "--json", "rows.csv", "-", "fifo"), stdin=stdin)
    assert done.returncode == 0
    assert done.stdout == b"time,attribute\n3,tea\n4,tea\n5,tea\n6,tea\n"
    [first, *_others] = sources = json.loads(done.stderr)["sources"]
    assert {source["compression"] for source in sources} == {name}
    assert first["bytes"] == len(data)


def test_members_streams_padding_and_skippable_frames(capsys: Captured) -> None:
    parts = [rows(0, 900)[:5000], rows(0, 900)[5000:]]
    skippable = bytes.fromhex("5a2a4d18") + (3).to_bytes(4, "little") + b"abc"
    Path("plain").write_bytes(b"".join(parts))
    Path("gzip").write_bytes(b"".join(map(gzip.compress, parts)) + bytes(512))
    Path("xz").write_bytes(b"".join(lzma.compress(part) + bytes(8) for part in parts))
    for name in ("zstd", "lz4"):
        pack = PACKERS[name]
        Path(name).write_bytes(skippable + pack(parts[0]) + skippable + pack(parts[1]))
    outputs = set()
    for name in ("plain", "gzip", "xz", "zstd", "lz4"):
        assert run_main(*usual("-q", "--no-user", name)) == 0
        outputs.add(capsys.readouterr().out)
    [output] = outputs
    assert output.count("\n") == 1 + 900 - 7


@pytest.mark.parametrize("first", ["P", "P*M", "BZh9", "BZh91AY&S", "Z*", "("])
def test_text_that_begins_like_a_compression(first: str, capsys: Captured) -> None:
    header = f"{first},time,user,attribute\n"
    Path("rows.csv").write_text(header + "x,1,ann,tea\nx,2,bob,tea\n")
    assert run_main(*usual("-q", "--no-user", "rows.csv")) == 0
    assert capsys.readouterr().out == "time,attribute\n2,tea\n"
    Path("cut.csv").write_text(first)
    assert run_main(*usual("-q", "--no-user", "cut.csv")) == 2
    assert "cut.csv: line 1: the header is a single column" in capsys.readouterr().err


def gzip_member() -> Pack:
    member = zlib.compressobj(wbits=31)
    return lambda data: member.compress(data) + member.flush(zlib.Z_SYNC_FLUSH)


def zstd_frame() -> Pack:
    frame = zstandard.ZstdCompressor().compressobj()
    return lambda data: frame.compress(data) + frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)


def lz4_frame() -> Pack:
    frame = lz4.frame.LZ4FrameCompressor(auto_flush=True)
    begun = [frame.begin()]
    return lambda data: (begun.pop() if begun else b"") + frame.compress(data)


@pytest.mark.parametrize("flushed_by", [gzip_member, zstd_frame, lz4_frame])
def test_a_live_pipe_releases_what_it_can(
    flushed_by: Callable[[], Callable[[bytes], bytes]],
) -> None:
    pack = flushed_by()
    with live(*usual("--no-user")) as process:
        say(process, pack(b"time,user,attribute\n"))
        assert hear(process) == b"time,attribute\n"
        say(process, pack(b"1,ann,tea\n2,bob,tea\n"))
        assert hear(process) == b"2,tea\n"
        say(process, pack(b"3,cat,"))
        say(process, pack(b"tea\n4,"))
        assert hear(process) == b"3,tea\n"
        out, err = process.communicate()
    assert process.returncode == 1
    assert out == b""
    assert b"standard input: the " in err
    assert b" data ends early, after byte 52 of the unpacked data" in err


@packed_by
def test_cut_data_costs_the_cut_row_and_the_rows_behind(name: str, capsys: Captured) -> None:
    data = rows(0, 400)
    packed = PACKERS[name](data)
    Path("rows.csv").write_bytes(packed)
    assert run_main(*usual("-q", "--no-user", "rows.csv")) == 0
    whole = capsys.readouterr().out
    longest = ""
    for cut in [*sorted(random.Random(1).sample(range(14, len(packed)), 40)), len(packed) - 1]:
        Path("rows.csv").write_bytes(packed[:cut])
        assert run_main(*usual("-q", "--no-user", "rows.csv")) == 1
        said = capsys.readouterr()
        assert whole.startswith(said.out)
        assert said.out == "" or said.out.endswith("\n")
        assert said.err.startswith(f"zanon-net: rows.csv: the {name} data ")
        assert said.err.count("\n") == 1
        assert len(said.out) >= len(longest)
        longest = said.out
    if name != "zstd":  # whose last byte is of the only block; here it is of an end or a checksum
        assert longest == whole


@packed_by
def test_damaged_data_is_one_line(name: str, capsys: Captured) -> None:
    packed = PACKERS[name]((HEADER + ROWS.removeprefix(HEADER) * 40).encode())
    draw = random.Random(2)
    failed = 0
    for _ in range(40):
        damaged = bytearray(packed)
        damaged[draw.randrange(14, len(packed))] ^= 1 << draw.randrange(8)
        Path("rows.csv").write_bytes(damaged)
        status = run_main(*usual("-q", "--no-user", "rows.csv"))
        said = capsys.readouterr()
        if f"the {name} data " in said.err:
            failed += 1
            assert status == 1
            assert said.err.splitlines()[-1].startswith(f"zanon-net: rows.csv: the {name} data ")
        assert not any(secret in said.err for secret in ("bob", "cat", "rare"))
    assert failed > (0 if name in ("lz4", "zstd") else 20)  # which have no sums by default


def test_the_row_that_is_cut_with_the_data_is_no_row(capsys: Captured) -> None:
    """The bytes after the last line feed are a row only if the source ended there."""
    member = zlib.compressobj(wbits=31)
    data = b"time,user,attribute\n1,ann,tea\n2,bob,tea\n3,cat,tea"
    packed = member.compress(data) + member.flush()
    Path("rows.csv.gz").write_bytes(packed)
    assert run_main(*usual("-q", "--no-user", "rows.csv.gz")) == 0
    assert capsys.readouterr().out.endswith("\n3,tea\n")
    Path("rows.csv.gz").write_bytes(packed[:-1])
    assert run_main(*usual("-q", "--no-user", "rows.csv.gz", "rows.csv.gz")) == 1
    said = capsys.readouterr()
    assert said.out == "time,attribute\n2,tea\n"
    assert said.err == (
        "zanon-net: rows.csv.gz: the gzip data ends early, after byte 49 of the unpacked data\n"
    )


def test_publish_reads_them_too(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    Path("h.csv").write_text("".join(f"a{i};*\n" for i in range(7)))
    Path("rows.csv.zst").write_bytes(PACKERS["zstd"](rows(0, 100)))
    arguments = ("--quasi", "attribute", "--hierarchy", "attribute=h.csv", "--time-unit", "s")
    command = ["publish", "--k", "5", "--rows", "50", *arguments, "-q", "rows.csv.zst"]
    assert main(command) == 0
    assert capfdbinary.readouterr().out.count(b"\n") == 101
    os.truncate("rows.csv.zst", Path("rows.csv.zst").stat().st_size - 1)
    assert main(command) == 1
    assert b"rows.csv.zst: the zstd data ends early" in capfdbinary.readouterr().err
