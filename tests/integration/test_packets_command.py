# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""zanon-net packets, and packets by run, in Python and in arrays: files, fates, errors."""

import gzip
import io
import json
import os
import pty
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dpkt
import numpy as np
import pytest
import zstandard
from support.capture_bytes import PCAP_NANOSECONDS, pcap_header, pcap_record
from support.cli import COMMAND, DEMO, ENVIRONMENT, Captured, limited, run_main
from support.packets import START
from support.waiting import running, wait_until

import zanon_net
from zanon_net import ConfigError, Engine, OutputError, Report
from zanon_net.pipeline import packet_fates

SETTINGS = ("--z", "2", "--internal", "10.0.0.0/8,fd00::/8")
NO_FRAME = pcap_header("<", magic=PCAP_NANOSECONDS)
Frames = list[tuple[int, bytes]]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(key_file: str, out: str, *options: str) -> bytes:
    """Runs the command over the demo into a file; returns its bytes."""
    assert run_main("packets", DEMO, out, "-q", "--key-file", key_file, *SETTINGS, *options) == 0
    return Path(out).read_bytes()


def frames_of(data: bytes) -> Frames:
    """(time in ns, bytes) of each frame of a pcap file of ours or a pcapng file, by dpkt."""
    if data[:4] == NO_FRAME[:4]:
        times, at = [], len(NO_FRAME)  # dpkt's have lost the nanoseconds
        reader = list(dpkt.pcap.Reader(io.BytesIO(data)))
        for _t, frame in reader:
            seconds, ns = np.frombuffer(data, "<u4", 2, at).tolist()
            times.append(seconds * 10**9 + ns)
            at += 16 + len(frame)
        return [(t_ns, frame) for t_ns, (_t, frame) in zip(times, reader, strict=True)]
    blocks = np.frombuffer(data, "<u4")
    found, at = [], 0
    while at < len(blocks):
        kind, length = blocks[at : at + 2].tolist()
        if kind == 6:
            _interface, high, low, n, _wire = blocks[at + 2 : at + 7].tolist()
            found.append((high << 32 | low, data[4 * at + 28 : 4 * at + 28 + n]))
        at += length // 4
    frames = [frame for _t, frame in dpkt.pcapng.Reader(io.BytesIO(data))]
    assert [frame for _t, frame in found] == frames
    return found


def one_line(text: str) -> str:
    """The only line of an error."""
    assert text.startswith("zanon-net: "), text
    assert text.count("\n") == 1, text
    return text


def names(folder: str = ".") -> list[str]:
    """The names of what is in a folder."""
    return sorted(path.name for path in Path(folder).iterdir())


# ---- what is written -----------------------------------------------------------------------------


def test_both_formats_hold_the_same_packets(work: Path, key_file: str) -> None:
    pcap, pcapng = made(key_file, "o.pcap"), made(key_file, "o.PcapNG")
    assert frames_of(pcap) == frames_of(pcapng) != []
    assert pcap[:4] == NO_FRAME[:4]
    assert pcapng[:4] == b"\n\r\r\n"
    assert names() == ["o.PcapNG", "o.PcapNG.manifest.json", "o.pcap", "o.pcap.manifest.json"]


def test_compressed_files_hold_the_same_bytes(work: Path, key_file: str) -> None:
    plain = made(key_file, "o.pcap")
    assert gzip.decompress(made(key_file, "o.pcap.gz")) == plain
    packed = io.BytesIO(made(key_file, "o.pcap.zst"))
    assert zstandard.ZstdDecompressor().stream_reader(packed).read() == plain
    compressed = json.loads(Path("o.pcap.zst.manifest.json").read_bytes())
    assert compressed["configuration"]["output"]["compress"] == "zstd"


def test_the_number_of_workers_changes_nothing(work: Path, key_file: str) -> None:
    one, two = made(key_file, "1.pcapng"), made(key_file, "2.pcapng", "--workers", "2")
    assert one == two


def test_standard_output_gets_the_same_bytes(
    work: Path, key_file: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    pcap, pcapng = made(key_file, "o.pcap"), made(key_file, "o.pcapng")
    for options, expected in (([], pcapng), (["--format", "pcap"], pcap)):
        assert (
            run_main("packets", DEMO, "-", "-q", "--key-file", key_file, *SETTINGS, *options) == 0
        )
        out, err = capfdbinary.readouterr()
        assert (out, err) == (expected, b"")


def test_a_run_writes_logs_and_the_same_packets(work: Path, key_file: str) -> None:
    formats = [f"--format={name}" for name in ("csv", "pcap", "pcapng")]
    common = ("--key-file", key_file, *SETTINGS)
    assert run_main("run", DEMO, "--out", "both", *formats, "-q", *common) == 0
    for name in ("packets.pcap", "packets.pcapng"):
        assert Path("both", name).read_bytes() == made(key_file, name)
    manifest = json.loads(Path("both", "manifest.json").read_bytes())
    alone = json.loads(Path("packets.pcap.manifest.json").read_bytes())
    assert manifest["packets"] == alone["packets"]
    listed = {file["file"]: file["records"] for file in manifest["outputs"]}
    assert listed["packets.pcap"] == listed["packets.pcapng"] == alone["outputs"][0]["records"]
    assert listed["flows.csv"] == manifest["records"]["csv"]["written"]
    # One decision: without packets the log is the same.
    assert run_main("run", DEMO, "--out", "log", "--format=csv", "-q", *common) == 0
    assert Path("log", "flows.csv").read_bytes() == Path("both", "flows.csv").read_bytes()
    assert "packets" not in json.loads(Path("log", "manifest.json").read_bytes())


def test_a_run_writes_packets_to_standard_output(
    work: Path, key_file: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    expected = made(key_file, "o.pcap")
    options = ("--format", "pcap", "--out", "-", "-q", "--key-file", key_file)
    assert run_main("run", DEMO, *options, *SETTINGS) == 0
    assert capfdbinary.readouterr().out == expected
    assert run_main("run", DEMO, *options, "--format", "csv") == 2
    assert b"--out - takes one format" in capfdbinary.readouterr().err


def test_parts_of_a_run_are_whole_files(work: Path, key_file: str) -> None:
    whole = frames_of(made(key_file, "o.pcap"))
    options = ("--format", "pcap", "--split", "1h", "-q", "--key-file", key_file)
    assert run_main("run", DEMO, "--out", "parts", *options, *SETTINGS) == 0
    parts = sorted(Path("parts").glob("packets-*.pcap"))
    assert len(parts) == 3
    assert [frame for part in parts for frame in frames_of(part.read_bytes())] == whole


def test_several_sources_and_a_folder(work: Path, key_file: str) -> None:
    Path("in").mkdir()
    packed = gzip.compress(DEMO.read_bytes(), 1)
    Path("in", "demo.pcap.gz").write_bytes(packed)
    Path("none.pcap").write_bytes(NO_FRAME)
    common = ("-q", "--key-file", key_file, *SETTINGS)
    assert run_main("packets", "none.pcap", "in", "o.pcap", *common) == 0
    assert Path("o.pcap").read_bytes() == made(key_file, "alone.pcap")
    manifest = json.loads(Path("o.pcap.manifest.json").read_bytes())
    assert {source["name"] for source in manifest["sources"]} == {"none.pcap", "demo.pcap.gz"}


def test_a_capture_without_frames_becomes_one(work: Path) -> None:
    Path("none.pcap").write_bytes(NO_FRAME)
    assert run_main("packets", "none.pcap", "o.pcap", "-q") == 0
    assert frames_of(Path("o.pcap").read_bytes()) == []
    manifest = json.loads(Path("o.pcap.manifest.json").read_bytes())
    assert manifest["outputs"] == [{"file": "o.pcap", "bytes": 24, "records": 0}]


# ---- what is told --------------------------------------------------------------------------------


def test_every_frame_has_one_fate(work: Path, key_file: str) -> None:
    for number, options in enumerate([[], ["--exact"], ["--hold", "0"], ["--payload", "cut"]]):
        data = made(key_file, f"{number}.pcap", *options)
        manifest = json.loads(Path(f"{number}.pcap.manifest.json").read_bytes())
        told = manifest["packets"]
        left = told["passed"] + told["masked"]
        assert told["frames"] == manifest["counters"]["read"]["frames"] == 15_629
        assert told["frames"] == left + sum(told["dropped"].values())
        assert told["dropped"]["not_ip"] == 12
        assert left == len(frames_of(data)) == manifest["outputs"][0]["records"] > 5_000
        assert (told["masked"] > 0) == (options == ["--exact"])
        assert told["addresses"]["released"] + told["addresses"]["pair"] > 0
        assert "10.0.0.0/8" in told["blocks"]
        assert told["hold_max_bytes"] > 0
        assert told["bytes_kept"] > 54 * left - 9_999  # UDP has shorter headers
        assert told["bytes_zeroed"] > 0


def test_the_summary_has_fates_in_words(work: Path, capsys: Captured) -> None:
    assert run_main("packets", DEMO, "o.pcap", *SETTINGS, "--exact", "--ttl", "keep") == 0
    out, err = capsys.readouterr()
    assert out == ""
    lines = [" ".join(line.split()) for line in err.splitlines()]
    assert "packets 15,629" in lines
    told = json.loads(Path("o.pcap.manifest.json").read_bytes())["packets"]
    left = told["passed"] + told["masked"]
    assert any(line.startswith(f"left anonymized {left:,} of 15,629 (") for line in lines)
    assert f"masked {told['masked']:,} with a withheld name masked" in lines
    assert "dropped packets 12 neither IPv4 nor IPv6" in lines
    assert "weaker than --for partner: --exact, --ttl" in lines
    assert "output o.pcap" in lines
    manifest = json.loads(Path("o.pcap.manifest.json").read_bytes())
    assert manifest["weaker_than"] == {"preset": "partner", "options": ["exact", "ttl"]}
    assert run_main("packets", DEMO, "p.pcap", *SETTINGS) == 0
    assert "a name of the flow is suppressed" in capsys.readouterr().err


def test_coarse_packets(work: Path, key_file: str, capsys: Captured) -> None:
    settings = (*SETTINGS, "--key-file", key_file, "--suppressed", "coarse")
    assert run_main("packets", DEMO, "o.pcapng", *settings) == 0
    lines = [" ".join(line.split()) for line in capsys.readouterr().err.splitlines()]
    manifest = json.loads(Path("o.pcapng.manifest.json").read_bytes())
    told = manifest["packets"]
    assert told["masked"] > 100
    assert f"masked {told['masked']:,} coarse, of flows with a withheld name" in lines
    assert "weaker than --for partner: --suppressed" in lines
    assert manifest["weaker_than"] == {"preset": "partner", "options": ["suppressed"]}
    assert manifest["configuration"]["packets"]["suppressed"] == "coarse"
    assert run_main("packets", DEMO, "p.pcapng", *settings[:-2], "--json") == 0
    usual = json.loads(capsys.readouterr().out)["packets"]
    assert usual["passed"] == told["passed"]
    assert usual["dropped"]["undecided"] == told["dropped"]["undecided"]
    assert usual["dropped"]["suppressed"] > told["dropped"]["suppressed"]


def test_json(work: Path, capsys: Captured) -> None:
    assert run_main("packets", DEMO, "o.pcap", "--json", *SETTINGS) == 0
    out, err = capsys.readouterr()
    printed = json.loads(out)
    del printed["performance"]
    assert printed == json.loads(Path("o.pcap.manifest.json").read_bytes())
    assert err == ""


def test_json_of_standard_output(work: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run_main("packets", DEMO, "-", "--json", *SETTINGS) == 0
    out, err = capfdbinary.readouterr()
    assert len(frames_of(out)) == json.loads(err)["packets"]["passed"]
    assert json.loads(err)["outputs"] == []


def test_a_dry_run_counts_and_writes_nothing(work: Path, key_file: str, capsys: Captured) -> None:
    made(key_file, "o.pcapng")
    real = json.loads(Path("o.pcapng.manifest.json").read_bytes())
    for out in ("dry.pcapng", "-"):
        command = ("packets", DEMO, out, "--dry-run", "--json", "--key-file", key_file)
        assert run_main(*command, *SETTINGS) == 0
        printed = json.loads(capsys.readouterr().out)
        assert (printed["packets"], printed["outputs"]) == (real["packets"], [])
    assert run_main("packets", DEMO, "dry.pcapng", "--dry-run", *SETTINGS) == 0
    assert capsys.readouterr().err.endswith("zanon-net: dry run: nothing was written\n")
    assert run_main("packets", DEMO, "o.pcapng", "--dry-run") == 2
    assert names() == ["o.pcapng", "o.pcapng.manifest.json"]


# ---- errors, before a byte is read ---------------------------------------------------------------

# The source does not exist, which nobody notices.
REFUSED = [
    (["o"], "o names no packet format; name it .pcap or .pcapng"),
    (["o.cap"], "o.cap names no packet format"),
    (["o.pcap.bz2"], "o.pcap.bz2 names no packet format"),
    ([""], "an empty name names no packet format"),
    (["lo"], "lo is a network interface"),
    (["o.pcap", "--format", "pcapng"], "--format: o.pcap is named pcap; leave the format out"),
    (["-", "--format", "csv"], "Invalid value for '--format'"),
    (["o.pcap", "--for", "public"], "--for: public is not for packets"),
    (["-", "--for", "public"], "--for: public is not for packets"),
    (["o.pcap", "--hold", "11s"], "--hold: must be at most 10s, the time after which an idle flow"),
    (["o.pcap", "--hold-memory", "1K"], "--hold-memory: must be from 1M to 64G"),
    (["o.pcap", "--payload", "keep"], "Invalid value for '--payload'"),
    (["o.pcap", "--exact", "--suppressed", "coarse"], "--suppressed: coarse contradicts --exact"),
    (["o.pcap", "--columns", "core"], "No such option '--columns'"),
    (["o.pcap", "--split", "1h"], "No such option '--split'"),
    (["o.pcap", "--popularity", "o.pcap"], "--popularity: is also where the packets go"),
    (["o.pcap", "--popularity", "o.pcap.manifest.json"], "--popularity: is also where"),
    (["taken.pcap"], "taken.pcap exists, and nothing is ever overwritten"),
    (["taken2.pcap"], "taken2.pcap.manifest.json exists, and nothing is ever overwritten"),
    (["left.pcap"], "left.pcap.partial exists: a run that was killed left it; remove it"),
    (["link.pcap"], "link.pcap exists"),
    (["missing.pcap"], "missing.pcap is also a source; choose another file to write"),
    (["./missing.pcap"], "missing.pcap is also a source"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED)
def test_what_is_refused_before_anything_is_read(
    work: Path, capsys: Captured, arguments: list[str], message: str
) -> None:
    for name in ("taken.pcap", "taken2.pcap.manifest.json", "left.pcap.partial"):
        Path(name).write_bytes(b"precious")
    Path("link.pcap").symlink_to("nowhere")
    before = names()
    assert run_main("packets", "missing.pcap", *arguments) == 2
    assert message in one_line(capsys.readouterr().err)
    assert names() == before
    assert Path("taken.pcap").read_bytes() == b"precious"


def test_an_output_that_is_a_source_by_another_name(work: Path, capsys: Captured) -> None:
    shutil.copy(DEMO, "in.pcap")
    os.link("in.pcap", "hard.pcap")
    Path("soft.pcap").symlink_to("in.pcap")
    Path("folder").symlink_to(".")
    for name in ("in.pcap", "hard.pcap", "soft.pcap", "folder/in.pcap"):
        assert run_main("packets", "in.pcap", name) == 2
        assert "is also a source" in one_line(capsys.readouterr().err)
    for sources in (["."], ["in.pcap", "folder"]):
        assert run_main("packets", *sources, "o.pcap") == 2
        assert "o.pcap would lie in " in one_line(capsys.readouterr().err)
    assert Path("in.pcap").read_bytes() == DEMO.read_bytes()


@pytest.mark.parametrize("arguments", [[], ["in.pcap"]])
def test_a_source_and_an_output_are_needed(capsys: Captured, arguments: list[str]) -> None:
    assert run_main("packets", *arguments) == 2
    one_line(capsys.readouterr().err)


def test_errors_name_the_configuration_file(work: Path, capsys: Captured) -> None:
    Path("z.toml").write_text('[output]\nfor = "public"\n[packets]\nttl = "keep"\n')
    assert run_main("packets", DEMO, "o.pcap", "--config", "z.toml") == 2
    assert "z.toml: [output] for: public is not for packets" in one_line(capsys.readouterr().err)
    Path("z.toml").write_text('[output]\nformat = "csv"\nsplit = "1h"\n[packets]\nttl = "keep"\n')
    assert run_main("packets", DEMO, "o.pcap", "--config", "z.toml", "-q") == 0
    manifest = json.loads(Path("o.pcap.manifest.json").read_bytes())
    assert manifest["configuration"]["output"]["format"] == ["pcap"]
    assert manifest["configuration"]["packets"]["ttl"] == "keep"
    Path("z.toml").write_text('addresses = "wide"\n')
    assert run_main("packets", DEMO, "p.pcap", "--config", "z.toml") == 2
    one_line(capsys.readouterr().err)


def test_no_packets_on_a_terminal() -> None:
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(
            [*COMMAND, "packets", str(DEMO), "-"],
            stdout=theirs,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            check=False,
        )
    finally:
        os.close(ours)
        os.close(theirs)
    assert done.returncode == 2
    assert "packets are no text for a terminal" in one_line(done.stderr.decode())


# ---- all or nothing ------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("out", ["o.pcap", "o.pcapng.gz", "o.pcap.zst"])
def test_a_full_disk_leaves_nothing(work: Path, out: str, workers: str) -> None:
    more = (*SETTINGS, "--workers", workers)
    command = limited(20_000, *COMMAND, "packets", str(DEMO), out, *more)
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 1
    assert b"the limit on file sizes is reached" in done.stderr.splitlines()[-1]
    assert b"Traceback" not in done.stderr
    assert names() == []


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("name", ["packets.pcap", "packets.pcapng", "packets.pcapng.gz"])
def test_a_full_disk_leaves_whole_packets_beside_logs(
    work: Path, key_file: str, name: str, workers: str
) -> None:
    """They are those with which a run with enough room begins."""
    form = name.split(".")[1]
    compress = "gzip" if name.endswith(".gz") else "none"
    formats = ["--format=csv", f"--format={form}", "--compress", compress, "--workers", workers]
    limit = 100_000 if compress == "gzip" else 400_000
    command = [*COMMAND, "run", str(DEMO), *formats, *SETTINGS, "--key-file", key_file, "--out"]
    subprocess.run([*command, "whole"], check=True, capture_output=True, env=ENVIRONMENT)
    done = subprocess.run(
        limited(limit, *command, "o"), capture_output=True, env=ENVIRONMENT, check=False
    )
    assert done.returncode == 1
    unpack = gzip.decompress if compress == "gzip" else bytes
    found, whole = (frames_of(unpack(Path(out, name).read_bytes())) for out in ("o", "whole"))
    assert 100 < len(found) < len(whole)
    assert found == whole[: len(found)]
    manifest = json.loads(Path("o", "manifest.json").read_bytes())
    listed = {file["file"]: file for file in manifest["outputs"]}
    assert listed[name]["records"] == len(found)
    assert listed[name]["bytes"] == Path("o", name).stat().st_size
    assert set(names("o")) == {*listed, "manifest.json"}


@pytest.mark.parametrize("nth", [1, 2])
def test_a_file_that_gets_no_name_leaves_nothing(
    work: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    """Its own, or that of the manifest. The first name is that of the state."""
    rename, uses = Path.rename, iter(range(9))

    def failing(path: Path, target: Path) -> Path:
        if next(uses) == nth:
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    assert run_main("packets", DEMO, "o.pcap", "-q") == 1
    one_line(capsys.readouterr().err)
    assert names() == []


def test_a_folder_that_is_not_there(work: Path, capsys: Captured) -> None:
    assert run_main("packets", DEMO, "no/o.pcap", "-q") == 1
    assert "make the folder it is to lie in first" in one_line(capsys.readouterr().err)
    assert names() == []


def test_a_source_that_is_no_capture_leaves_nothing(work: Path, capsys: Captured) -> None:
    Path("text.pcap").write_bytes(b"no capture" * 99)
    assert run_main("packets", "text.pcap", "o.pcap") == 1
    one_line(capsys.readouterr().err)
    assert names() == ["text.pcap"]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"packets_passed": 1}, "frames 15,630 are accounted for"),
        ({"frames": 1}, "of 15,630 frames 15,629 are accounted for"),
        ({"packets_passed": 1, "frames": 1}, "were written, so none is kept"),
    ],
)
def test_a_frame_without_a_fate_leaves_nothing(
    work: Path,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
    wrong: dict[str, int],
    message: str,
) -> None:
    check = packet_fates.check

    def miscounted(counters: dict[str, int], written: dict[str, int]) -> None:
        check({name: n + wrong.get(name, 0) for name, n in counters.items()}, written)

    monkeypatch.setattr(packet_fates, "check", miscounted)
    assert run_main("packets", DEMO, "o.pcap", "-q", *SETTINGS) == 1
    assert message in one_line(capsys.readouterr().err)
    assert names() == []
    assert run_main("run", DEMO, "--out", "o", "--format=csv", "--format=pcap", "-q") == 1
    assert names("o") == ["manifest.json"]
    assert json.loads(Path("o", "manifest.json").read_bytes())["outputs"] == []


def test_an_interrupted_run_keeps_what_was_read(work: Path) -> None:
    frame = bytes(60)
    records = [pcap_record("<", START // 10**9 + n, 0, frame) for n in range(300)]
    command = [*COMMAND, "packets", "-", "o.pcap"]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with running(command, **pipes, env=ENVIRONMENT) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(NO_FRAME + b"".join(records))
        process.stdin.flush()
        wait_until(lambda: Path("o.pcap.partial").exists())
        process.send_signal(signal.SIGINT)
        assert process.wait() == 1
        assert b"interrupted: what had been read is complete" in process.stderr.read()
    manifest = json.loads(Path("o.pcap.manifest.json").read_bytes())
    assert manifest["interrupted"]
    assert frames_of(Path("o.pcap").read_bytes()) == []
    assert sum(manifest["packets"]["dropped"].values()) == manifest["packets"]["frames"]


# ---- in Python -----------------------------------------------------------------------------------


def test_the_function(work: Path, key_file: str) -> None:
    settings: dict[str, Any] = {"z": 2, "internal": "10.0.0.0/8,fd00::/8", "key_file": key_file}
    report = zanon_net.packets(DEMO, work / "o.pcapng", **settings)
    assert isinstance(report, Report)
    assert report.files == [work / "o.pcapng"]
    assert report.out == work / "o.pcapng"
    assert report.counters["packets_passed"] == report.manifest["packets"]["passed"] > 0
    assert report.files[0].read_bytes() == made(key_file, "same.pcapng")
    with pytest.raises(ConfigError, match="nothing to read"):
        report.read()
    dry = zanon_net.packets([DEMO], "dry.pcap", dry_run=True, **settings)
    assert (dry.out, dry.files) == (None, [])
    assert dry.manifest["packets"] == report.manifest["packets"]
    with pytest.raises(ConfigError, match=r"^format: must be pcap or pcapng"):
        zanon_net.packets(DEMO, "-", format="csv")


def batches(engine: Engine, feed: Callable[[Engine], None]) -> Frames:
    """The packets that an engine gives out, taken after each batch."""
    found: Frames = []

    def take() -> None:
        batch = engine.packets()
        kinds = ["uint8", "int64", "uint32", "uint32", "int64"]
        assert [array.dtype.name for array in batch] == kinds
        assert len({len(array) for array in batch[1:]}) == 1
        assert (batch.wire >= batch.length).all()
        for offset, length, t_ns in zip(batch.offset, batch.length, batch.t_ns, strict=True):
            found.append((int(t_ns), batch.data[offset : offset + length].tobytes()))

    for frames in zanon_net.frames(str(DEMO), count=1000):
        engine.feed(*frames)
        feed(engine)
        take()
    engine.finish()
    take()
    return found


def test_arrays_of_an_engine(work: Path, key_file: str) -> None:
    settings: dict[str, Any] = {"z": 2, "internal": "10.0.0.0/8,fd00::/8", "key_file": key_file}
    expected = frames_of(made(key_file, "o.pcap"))
    with Engine(**settings, packets=True) as engine, Engine(**settings) as plain:
        assert len(engine.packets().t_ns) == 0
        assert batches(engine, lambda engine: None) == expected
        for frames in zanon_net.frames(str(DEMO)):
            plain.feed(*frames)
        plain.finish()
        assert len(engine.records()) == len(plain.records())
        with pytest.raises(ConfigError, match=r"^packets: open the engine with packets=True"):
            plain.packets()
    with pytest.raises(ConfigError, match=r"^for: public is not for packets"):
        Engine(packets=True, purpose="public")


def test_the_sum_of_fates_is_checked_by_output() -> None:
    counters = dict.fromkeys(Engine(max_flows=64).stats, 0)
    packet_fates.check(counters | {"frames": 5}, {"csv": 3})  # no packets, no fates
    with pytest.raises(OutputError, match="of 5 frames 0 are accounted for"):
        packet_fates.check(counters | {"frames": 5}, {"packets": 0})
    five = {"frames": 5, "packets_passed": 1, "packets_masked": 1}
    five |= {"packets_dropped_no_flow": 1, "drop_flow_closed": 1, "drop_not_ip": 1}
    five |= {"packets_dropped_fragment": 1, "drop_fragment_incomplete": 1}
    packet_fates.check(counters | five, {"packets": 2, "packets_ng": 2})
    assert {"flow_closed", "fragment_incomplete"}.isdisjoint(packet_fates.dropped(counters | five))
    with pytest.raises(OutputError, match="2 packets left and 1 were written"):
        packet_fates.check(counters | five, {"packets_ng": 1})
