# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packets of several workers: the bytes of one, whatever the portions and the output."""

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from support.engine import make_engine
from support.packet_run import emitted, write_pcap
from support.packets import ACK, MINUTE, SECOND, SERVER, Tcp, hello

import zanon_net
from zanon_net import _core
from zanon_net.bench.trace import Scale, generate

PACKETS = ("packets", "packets_ng")
FULL = 8 << 20  # bytes of output after which it is taken
ZERO, CUT, KEEP_ENCRYPTED = range(3)
SEVERAL = (2, 3, 8)
CALLS = (1 << 16, 3000, 17)  # the last one is below what is read ahead


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keys that are the same in every run."""
    path = tmp_path_factory.mktemp("key") / "zanon.key"
    path.write_bytes(base64.b64encode(bytes(range(32))) + b"\n")
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated capture whose packets are taken once or twice."""
    path = tmp_path_factory.mktemp("small") / "small.pcap"
    generate(path, "isp", Scale(octets=3_000_000, homes=100, names=200))
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated capture whose packets fill the outputs several times."""
    path = tmp_path_factory.mktemp("large") / "large.pcap"
    generate(path, "isp", Scale(octets=4 * FULL, homes=300, names=500))
    return path


def texts(engine: _core.PacketEngine, into: dict[str, bytearray]) -> int:
    """Takes what is ready; returns the bytes."""
    taken = 0
    for period, found, _rows in engine.drain()[0]:
        for marked in into.values():
            marked += b"" if period is None else b"<%d>" % period
        for output, (text, lines) in found.items():
            into[output] += text
            taken += len(text)
            assert lines
    return taken


def of_engine(
    path: Path, key: Path, *, call: int, **settings: Any
) -> tuple[dict[str, bytes], Mapping[str, int], int]:
    """(the texts of an engine, its counters, how often its output was full)."""
    chosen = {"outputs": PACKETS, "key_file": str(key), "z": 1, **settings}
    engine = make_engine(**chosen)
    out = {output: bytearray() for output in _core.OUTPUTS}
    full = 0
    with _core.Capture(str(path)) as capture:
        while engine.run(capture, call):
            full += texts(engine, out) >= FULL
            while engine.waiting:
                engine.flush()
                texts(engine, out)
    while engine.finish():
        texts(engine, out)
    texts(engine, out)
    engine.check()
    stats = engine.stats
    engine.close()
    return {name: bytes(text) for name, text in out.items()}, stats, full


@pytest.mark.parametrize("payload", [ZERO, CUT, KEEP_ENCRYPTED])
@pytest.mark.parametrize("hold_ns", [0, SECOND])
@pytest.mark.parametrize("exact", [False, True])
def test_any_number_of_workers_and_frames_of_a_call(
    small: Path, key: Path, payload: int, hold_ns: int, exact: bool
) -> None:
    settings = {"payload": payload, "hold_ns": hold_ns, "exact": exact, "z": 2}
    one, stats, _full = of_engine(small, key, call=CALLS[0], workers=1, **settings)
    assert len(one["packets"]) > 24
    assert len(one["packets_ng"]) > len(one["packets"])
    for n, workers in enumerate(SEVERAL):
        several = of_engine(small, key, call=CALLS[n], workers=workers, **settings)
        assert several[:2] == (one, stats), workers


@pytest.mark.parametrize("hold_ns", [0, SECOND])
def test_any_number_of_workers_and_coarse_packets(small: Path, key: Path, hold_ns: int) -> None:
    settings = {"coarse_suppressed": True, "hold_ns": hold_ns, "z": 2}
    one, stats, _full = of_engine(small, key, call=CALLS[0], workers=1, **settings)
    assert stats["packets_masked"] > 1000
    for n, workers in enumerate(SEVERAL):
        several = of_engine(small, key, call=CALLS[n], workers=workers, **settings)
        assert several[:2] == (one, stats), workers


@pytest.mark.parametrize("outputs", [("packets",), ("packets_ng",), (*PACKETS, "jsonl", "csv")])
def test_outputs_that_fill_several_times(large: Path, key: Path, outputs: tuple[str, ...]) -> None:
    settings: dict[str, Any] = {"outputs": outputs, "exact": True, "established": False}
    one, stats, full = of_engine(large, key, call=CALLS[0], workers=1, **settings)
    assert full >= 3
    for workers, call in ((2, 1 << 16), (8, 5000)):
        several = of_engine(large, key, call=call, workers=workers, **settings)
        assert several[:2] == (one, stats), workers
        assert several[2] >= 3 or call == 5000


def test_periods_and_little_room_to_wait(small: Path, key: Path) -> None:
    settings = {"split_ns": MINUTE, "hold_bytes": 1 << 18, "outputs": (*PACKETS, "csv")}
    one, stats, _full = of_engine(small, key, call=CALLS[0], workers=1, **settings)
    assert one["packets"].count(b"<") > 1
    for workers in SEVERAL:
        several = of_engine(small, key, call=CALLS[1], workers=workers, **settings)
        assert several[:2] == (one, stats), workers


def test_a_full_delay_line_whatever_the_portions(key: Path, tmp_path: Path) -> None:
    talk = Tcp().handshake()
    for _ in range(4043):  # where portions of 17 frames end, the line is full before the name comes
        talk.segment(SERVER, ACK)
    path = write_pcap(tmp_path / "acks.pcap", talk.say(hello(b"a.example")).say(b"").frames)
    settings = {"hold_bytes": 1 << 18, "hold_ns": 10 * SECOND}
    one, stats, _full = of_engine(path, key, call=CALLS[0], workers=1, **settings)
    for workers, call in ((1, 17), (2, 3000)):
        several = of_engine(path, key, call=call, workers=workers, **settings)
        assert several[:2] == (one, stats), (workers, call)


def test_records_behind_a_greeting_whatever_the_batches() -> None:
    talk = Tcp(ports=(40000, 25)).handshake().say(b"220 mail\r\n", SERVER)
    talk.wait(SECOND).say(b"STARTTLS\r\n").say(b"220 go\r\n", SERVER).wait(SECOND)
    talk.say(hello(b"mail.example")).say(record(22, 60), SERVER)
    talk.say(record(23, 40)).say(record(23, 50), SERVER).close()
    whole = [frame.data[54:] for frame in emitted(talk.frames, z=1, hold_ns=0).frames]
    assert record(22, 60)[:5] in {payload[:5] for payload in whole}
    for batch in (1, 3, 7):
        frames = emitted(talk.frames, batch=batch, z=1, hold_ns=0).frames
        assert [frame.data[54:] for frame in frames] == whole, batch


def record(kind: int, length: int) -> bytes:
    """A TLS record."""
    return bytes((kind, 3, 3)) + length.to_bytes(2, "big") + bytes(range(1, 1 + length))


def files(folder: Path, workers: int) -> dict[str, bytes]:
    """What a run wrote, by name: of a manifest only the packets, and what is listed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        text = path.read_bytes() if path.is_file() else b""
        if path.name.endswith("manifest.json"):
            assert b'"workers": %d' % workers in text
            told = json.loads(text)
            text = json.dumps([told["packets"], told["outputs"]]).encode()
        found[str(path.relative_to(folder))] = text
    return found


@pytest.mark.parametrize("name", ["o.pcap", "o.pcapng.zst"])
def test_files_are_written_behind(large: Path, key: Path, tmp_path: Path, name: str) -> None:
    found = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        folder.mkdir()
        zanon_net.packets(
            large, folder / name, z=1, exact=True, evidence="any", key_file=key, workers=workers
        )
        found.append(files(folder, workers))
    assert found[0] == found[1]
    assert set(found[0]) == {name, f"{name}.manifest.json"}
    assert len(found[0][name]) > 1_000_000


def test_logs_and_packets_in_parts_are_written_behind(
    large: Path, key: Path, tmp_path: Path
) -> None:
    found = []
    for workers in (1, 2):
        folder = tmp_path / str(workers)
        chosen = {"format": ("csv", "parquet", "pcapng"), "split": "10m", "split_size": "4M"}
        zanon_net.run(large, out=folder, z=1, key_file=key, workers=workers, **chosen)
        found.append(files(folder, workers))
    assert found[0] == found[1]
    assert len(found[0]) > 6
