# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Several workers: their output is, byte for byte, that of one, for every kind of source."""

import base64
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import wire
from support.c_build import CSRC
from support.c_build import run as run_command
from support.capture_bytes import PCAP_NANOSECONDS, pcap_header, pcap_record
from support.engine import LOGS, Outcome, Taker, make_engine
from support.examples import EVERY_CASE, examples
from support.fragments import framed, packet_of, pieces
from support.packets import DAY, HOUR, MINUTE, MS, SECOND, START, Frame, crowd, merged, user, visit
from support.paths import ROOT
from support.waiting import PATIENCE_S, filled, is_empty, wait_until

import zanon_net
from zanon_net import Config, _core
from zanon_net.bench.trace import Scale, generate
from zanon_net.errors import CapacityError, ConfigError, FormatError
from zanon_net.system.signals import Interruption

HARNESS = ROOT / "tests" / "integration" / "drive_engine.c"
SEVERAL = (2, 4)
CALL = 16384


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pseudonyms that are the same in every run."""
    path = tmp_path_factory.mktemp("key") / "zanon.key"
    path.write_bytes(base64.b64encode(bytes(range(32))) + b"\n")
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def traffic(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Generated captures of each kind."""
    folder = tmp_path_factory.mktemp("traffic")
    scale = Scale(octets=6_000_000, homes=300, names=500)
    for kind in ("isp", "min64", "storm"):
        generate(folder / kind, kind, scale)
    generate(folder / "short", "isp", replace(scale, octets=1_000_000))
    return {kind: folder / kind for kind in ("isp", "min64", "storm", "short")}


def write(path: Path, frames: Sequence[Frame]) -> Path:
    """A capture of these frames, in their order."""
    records = (pcap_record("<", *divmod(f.t_ns, SECOND), f.data, wire=f.wire) for f in frames)
    path.write_bytes(pcap_header(magic=PCAP_NANOSECONDS) + b"".join(records))
    return path


def outcome_of(path: Path, key: Path, calls: Sequence[int] = (CALL,), **more: Any) -> Outcome:
    """An engine's output and counters; `calls` are, over and over, the frames of its calls."""
    chosen = {"key_file": str(key), "outputs": LOGS + _core.ROWS, **more}
    taker = Taker(make_engine(**chosen))
    with _core.Capture(str(path)) as capture:
        at = 0
        while taker.engine.run(capture, calls[at % len(calls)]):
            taker.take()
            while taker.engine.waiting:
                taker.engine.flush()
                taker.take()
            at += 1
    return taker.outcome()


def assert_same(path: Path, key: Path, calls: Sequence[int] = (CALL,), **more: Any) -> Outcome:
    """Any number of workers makes the same of the capture; what that is."""
    one = outcome_of(path, key, calls, workers=1, **more)
    for workers in SEVERAL:
        assert outcome_of(path, key, calls, workers=workers, **more) == one, (path.name, workers)
    return one


def written(path: Path, out: Path, config: Config) -> dict[str, bytes]:
    """The files that a run writes, by name; the manifest without the number of workers."""
    zanon_net.run(path, config, out=out)
    files = {p.relative_to(out).as_posix(): p for p in sorted(out.rglob("*")) if p.is_file()}
    texts = {name: p.read_bytes() for name, p in files.items()}
    told = b'"workers": %d' % config.limits.workers
    assert told in texts["manifest.json"]
    texts["manifest.json"] = texts["manifest.json"].replace(told, b"")
    return texts


@pytest.mark.parametrize(
    "more",
    [
        {"format": ("tstat", "jsonl", "csv", "parquet", "observations")},
        {"split": "10m", "columns": "core,layer7,e2e,options,p2p", "compress": "gzip"},
        {"popularity": "counts.json", "window": "10m", "filter": "tcp or udp port 53"},
        {"target_p": 0.9, "window": "10m", "z": 2, "z_max": 40},
        {"target_p": 0.9, "window": "10m", "z": 2, "split": "1h", "format": ("parquet", "csv")},
        {"split": "30m", "format": "parquet", "partition": "day,hour"},
        {"max_flows": 50, "dn_hunter": True, "exact": True, "internal": "any"},
    ],
    ids=["formats", "split", "popularity", "target", "parts", "partitions", "limits"],
)
def test_every_file_of_the_demo(
    demo_pcap: Path, key: Path, tmp_path: Path, more: dict[str, Any]
) -> None:
    config = Config().replace(z=3, rotate="10m", key_file=key)
    found = []
    for workers in (1, *SEVERAL):
        chosen = dict(more)
        if "popularity" in more:
            chosen["popularity"] = tmp_path / f"{workers}-counts.json"
        found.append(
            written(demo_pcap, tmp_path / str(workers), config.replace(workers=workers, **chosen))
        )
        if "popularity" in more:
            found[-1]["counts"] = chosen["popularity"].read_bytes()
    assert len(found[0]) >= 4
    for several in found[1:]:
        assert several == found[0]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"max_flows": 30, "dn_hunter": True},
        {"split_ns": MINUTE, "window_ns": MINUTE},
        {"max_tuples": 50, "max_attributes": 50, "columns": ("core", "e2e", "options", "p2p")},
    ],
    ids=["plain", "few flows", "periods", "few attributes"],
)
@pytest.mark.parametrize("kind", ["isp", "min64", "storm"])
def test_generated_traffic(
    traffic: dict[str, Path], key: Path, kind: str, more: dict[str, Any]
) -> None:
    outcome = assert_same(traffic[kind], key, z=3, established=False, **more)
    assert outcome.stats["records"] > 0


@pytest.mark.slow
def test_the_corpus(corpus: Path, key: Path) -> None:
    """`make test` reads every third capture."""
    seen = 0
    for path in sorted(corpus.rglob("*cap*"))[:: 1 if EVERY_CASE else 3]:
        if not path.is_file():
            continue
        try:
            assert_same(path, key, z=2, established=False, max_flows=1 << 12, dn_hunter=True)
        except FormatError:
            continue
        seen += 1
    assert seen > 100


def mixture(dice: random.Random) -> list[Frame]:
    """Visits, of which some come in fragments, and clocks that are set back and forth."""
    frames: list[Frame] = []
    for i in range(120):
        name = b"host%d.example.org" % dice.randrange(6)
        talk = visit(user(i), name, START + dice.randrange(4 * MINUTE), f"192.0.2.{1 + i % 9}")
        if i % 3 == 0:
            talk = [
                part
                for f in talk
                for part in framed(pieces(packet_of(f), [8] if len(f.data) > 60 else []), f.t_ns)
            ]
        frames += talk
    frames.sort(key=lambda frame: frame.t_ns)
    for _ in range(20):  # late ones
        at = dice.randrange(len(frames) - 60)
        frames.insert(at + dice.randrange(60), frames.pop(at))
    past = merged(crowd(b"past.example.org", 60, START - 5 * HOUR + k * SECOND) for k in range(3))
    at = dice.randrange(len(frames))
    return [*frames[:at], *past, *frames[at:]]


@settings(max_examples=examples(15))
@given(st.integers(0, 2**32), st.lists(st.integers(1, 5000), min_size=1, max_size=6))
def test_wherever_the_calls_are_cut(
    tmp_path_factory: pytest.TempPathFactory, key: Path, seed: int, calls: list[int]
) -> None:
    dice = random.Random(seed)
    path = write(tmp_path_factory.mktemp("mixture") / "x.pcap", mixture(dice))
    more = {"z": dice.randrange(1, 4), "max_flows": dice.choice([20, 1 << 12])}
    outcome = assert_same(path, key, calls, window_ns=10 * MINUTE, established=False, **more)
    assert outcome.stats["datagrams"] > 0
    assert outcome.stats["clock_rebased"] > 0


def test_an_output_that_is_full_waits(key: Path, tmp_path: Path) -> None:
    """Records wait where an output is full, and so do portions that were read by then."""
    path = tmp_path / "long"
    generate(path, "storm", Scale(octets=24_000_000, homes=2000, names=5000))
    outcome = assert_same(path, key, [60_000], z=1, established=False)
    assert sum(map(len, outcome.text.values())) > 16 << 20


def test_a_capture_that_ends_in_the_middle(
    traffic: dict[str, Path], key: Path, tmp_path: Path
) -> None:
    body = traffic["isp"].read_bytes()
    for size in (24, 30, 100_000, len(body) - 1):
        path = tmp_path / str(size)
        path.write_bytes(body[:size])
        assert_same(path, key, z=1)


def test_a_long_record_between_short_ones(key: Path, tmp_path: Path) -> None:
    """A record that takes many reads, in the middle of portions that are not used up."""
    frames = visit(user(1), b"www.example.org", START)
    short = b"".join(pcap_record("<", *divmod(f.t_ns, SECOND), f.data) for f in frames) * 400
    long = pcap_record("<", START // SECOND, 0, bytes(250_000))
    path = tmp_path / "long.pcap"
    path.write_bytes(pcap_header(magic=PCAP_NANOSECONDS) + (short + long * 5) * 3)
    assert assert_same(path, key, z=1).stats["frames"] == (400 * len(frames) + 5) * 3


def test_several_sources_and_a_pipe(traffic: dict[str, Path], key: Path, tmp_path: Path) -> None:
    """One after the other; a pipe is not read ahead."""
    found = []
    for workers in (1, 2):
        config = Config().replace(z=2, key_file=key, workers=workers, format=("jsonl",))
        fifo = tmp_path / f"fifo{workers}"
        out = tmp_path / str(workers)
        with filled(fifo, traffic["min64"].read_bytes()):
            report = zanon_net.run([traffic["isp"], fifo, traffic["storm"]], config, out=out)
        found.append((report.manifest["counters"]["read"], len(report.manifest["sources"])))
    assert found[0] == found[1]


@pytest.mark.parametrize("workers", [1, 4])
def test_one_call_may_leave_what_was_read_ahead(
    traffic: dict[str, Path], key: Path, workers: int
) -> None:
    """An engine is closed, or given another capture, whatever there is."""
    for path in (traffic["isp"], traffic["storm"]):
        engine = make_engine(key_file=str(key), workers=workers, popularity=True, window_ns=SECOND)
        with _core.Capture(str(path)) as capture, _core.Capture(str(path)) as other:
            assert engine.run(capture, CALL) > 0
            assert engine.window() is not None
            capture.close()
            assert engine.run(other, CALL) > 0
            engine.close()


@pytest.mark.parametrize("workers", [1, 3])
def test_a_capture_belongs_to_one_thread_at_a_time(tmp_path: Path, key: Path, workers: int) -> None:
    """Whoever reads, closes or runs it meanwhile is refused: it would be torn from below."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    keep = os.open(fifo, os.O_RDWR)
    frames = visit(user(1), b"www.example.org", START)
    os.write(keep, pcap_header(magic=PCAP_NANOSECONDS))
    capture = _core.Capture(str(fifo))
    engine, other = (make_engine(key_file=str(key), workers=workers) for _ in range(2))
    reader = threading.Thread(target=engine.run, args=(capture, CALL), daemon=True)
    reader.start()
    records = b"".join(pcap_record("<", *divmod(f.t_ns, SECOND), f.data) for f in frames)
    os.write(keep, records[:1])
    wait_until(lambda: is_empty(keep))  # now it waits for the rest
    for call in (
        capture.close,
        capture.peek_ns,
        lambda: capture.frames(1),
        lambda: other.run(capture, CALL),
    ):
        with pytest.raises(RuntimeError, match="in use by another thread"):
            call()
    os.write(keep, records[1:])
    reader.join(PATIENCE_S)
    assert not reader.is_alive()
    os.close(keep)
    capture.close()
    capture.close()
    assert engine.stats["frames"] > 0


@pytest.mark.parametrize("workers", [0, 65, -1, 1.5, True, "2"])
def test_how_many_there_may_be(workers: Any) -> None:
    with pytest.raises(ConfigError, match=r"^workers: "):
        Config().replace(workers=workers)


def test_an_engine_refuses_too_many() -> None:
    with pytest.raises((ConfigError, CapacityError), match="workers must be from 1 to 64"):
        make_engine(workers=65)


def test_signals_reach_the_program(demo_pcap: Path, tmp_path: Path) -> None:
    """Workers take no signal: the run ends well, and its manifest says that it was ended."""
    code = (
        "import os, signal, sys, zanon_net\n"
        "from zanon_net.system.signals import Interruption\n"
        "def progress(*_): os.kill(os.getpid(), signal.SIGTERM)\n"
        "with Interruption() as interruption:\n"
        "    report = zanon_net.run(sys.argv[1], zanon_net.Config().replace(workers=4),\n"
        "        out=sys.argv[2], progress=progress, interruption=interruption)\n"
        "assert report.manifest['interrupted']\n"
    )
    arguments = [sys.executable, "-c", code, str(demo_pcap), str(tmp_path / "out")]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("workers", [1, 2])
def test_what_was_read_ahead_of_a_signal_is_written(tmp_path: Path, workers: int) -> None:
    """Where outputs are full, more has been read than taken. The second capture stays closed."""
    ends = ("10.0.0.1", "198.51.100.1")
    frames = []
    for n in range(40_000):
        datagram = wire.udp(b"x", ports=(1024 + n, 9))
        data = wire.ethernet(wire.ipv4(datagram, wire.UDP, addresses=ends))
        frames.append(Frame(START + n * MS, data, len(data)))
    capture = write(tmp_path / "lone.pcap", frames)
    other = write(tmp_path / "other.pcap", [Frame(START + DAY, frames[0].data, 60)])
    config = Config().replace(workers=workers, z=1, evidence="any", format="jsonl,csv")
    with Interruption() as interruption:

        def stop(_done: int, _total: int, packets: int) -> None:
            if packets > 1 and not interruption.requested:
                os.kill(os.getpid(), signal.SIGTERM)

        report = zanon_net.run(
            [capture, other], config, out=tmp_path / "out", progress=stop, interruption=interruption
        )
    source, unread = report.manifest["sources"]
    assert unread["frames"] == 0
    assert report.manifest["interrupted"]
    assert source["frames"] < len(frames)
    assert source["link_types"] == {"ETHERNET": source["frames"]}
    assert report.manifest["records"]["records"] == source["frames"]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The harness under ThreadSanitizer."""
    out = tmp_path_factory.mktemp("tsan") / "drive_engine"
    flags = ["-std=c11", "-g1", "-Og", "-pthread", "-D_GNU_SOURCE", "-DZN_DEBUG"]
    flags += [f"-I{CSRC}", f"-I{CSRC}/include"]
    probe = out.with_suffix(".c")
    probe.write_text("int main(void) { return 0; }\n")
    try:
        subprocess.run(["cc", "-fsanitize=thread", probe, "-o", out], check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("the compiler has no ThreadSanitizer")
    sources = sorted(CSRC.rglob("*.c"))
    run_command(
        [
            "cc",
            *flags,
            "-fsanitize=thread",
            HARNESS,
            *sources,
            "-lcrypto",
            "-lpcap",
            "-lm",
            "-o",
            out,
        ]
    )
    return out


@pytest.mark.source
@pytest.mark.slow
@pytest.mark.sanitized
def test_no_two_threads_meet(
    watched: Path, demo_pcap: Path, traffic: dict[str, Path], key: Path
) -> None:
    """ThreadSanitizer ends the program with 66 where two threads meet."""
    captures = [demo_pcap, traffic["short"]]
    found = [run_command([watched, str(workers), key, *captures]) for workers in (1, 4)]
    assert found[0] == found[1]
    assert "BROKEN" not in found[0]
    assert len(found[0].splitlines()) == 6 * len(captures)
