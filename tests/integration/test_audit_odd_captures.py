# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The raw mode of the audit on captures with late packets, on cut captures, and with a file of
names never to release."""

import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from support.cli import DEMO, Captured, run_main
from support.demo import first_frames

import zanon_net
from zanon_net import Config
from zanon_net.audit.raw import reader
from zanon_net.audit.raw.check import RawResult, check_files, read_captures
from zanon_net.audit.raw.flows import FlowTable, Rules
from zanon_net.audit.raw.messages import asked_by
from zanon_net.audit.raw.networks import Networks
from zanon_net.audit.raw.packets import ACK, SYN, TCP, Frame, Packet

LATE_S = 40 * 60
FRAMES = 6000
HEAD = 24  # bytes of a pcap's header

needs_tshark = pytest.mark.usefixtures("needs_tshark")


def frames_of(capture: Path) -> list[bytes]:
    """The first frames of a capture, with their headers."""
    data, at, found = capture.read_bytes(), HEAD, []
    while len(found) < FRAMES:
        size = 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        found.append(data[at : at + size])
        at += size
    return found


def seconds(frame: bytes) -> int:
    return int.from_bytes(frame[:4], "little")


def early(frame: bytes) -> bytes:
    """The frame with a time that is earlier by LATE_S."""
    return (seconds(frame) - LATE_S).to_bytes(4, "little") + frame[4:]


def some_packets(frames: Sequence[bytes]) -> list[bytes]:
    rng = random.Random(1)
    return [early(frame) if rng.random() < 0.1 else frame for frame in frames]


def a_stretch(frames: Sequence[bytes]) -> list[bytes]:
    """More packets in a row than set back the clock, if they are later than the window."""
    return [early(frame) if 4000 < i < 5000 else frame for i, frame in enumerate(frames)]


def come_later(frames: Sequence[bytes]) -> list[bytes]:
    """Packets that come LATE_S after others of their time, one in thirty."""
    rng = random.Random(2)
    places = [seconds(frame) + (LATE_S if rng.random() < 1 / 30 else 0) for frame in frames]
    return [frames[i] for i in sorted(range(len(frames)), key=lambda i: places[i])]


def checked(folder: Path, frames: Sequence[bytes], **settings: Any) -> RawResult:
    """The audit of a run over the frames."""
    capture = folder / "capture.pcap"
    capture.write_bytes(DEMO.read_bytes()[:HEAD] + b"".join(frames))
    config = Config().replace(**({"z": 3, "format": ("csv", "observations")} | settings))
    zanon_net.run([capture], config, out=folder / "out")
    manifest = json.loads((folder / "out" / "manifest.json").read_bytes())
    return check_files(folder / "out", manifest, read_captures(manifest, [capture]))


@pytest.mark.family(3)
@needs_tshark
@pytest.mark.parametrize("window", ["1h", "10m"])
@pytest.mark.parametrize("delay", [some_packets, a_stretch, come_later])
def test_late_packets_are_no_violation(
    tmp_path: Path, delay: Callable[[Sequence[bytes]], list[bytes]], window: str
) -> None:
    frames = delay(frames_of(DEMO))
    result = checked(tmp_path, frames, window=window, rotate=window)
    assert result.violations == []
    assert result.claims > 100


def test_a_late_packet_shows_a_client_when_it_comes() -> None:
    """The first packet of a flow that is late may come from a server. The address was no client
    when earlier records showed it."""
    client, server, now_ns = b"\xc6\x33\x64\1", b"\xc0\0\2\1", 10**18
    hour_ns = 3600 * 10**9
    rules = Rules(Networks(None, (32, 56)), 2, False, "own", hour_ns, hour_ns, ephemeral=True)
    table = FlowTable(rules, lambda _flow: None)
    table.take(Packet(now_ns, TCP, client, 40000, server, 8080, SYN))
    table.take(Packet(now_ns - hour_ns // 2, TCP, server, 8080, client, 40001, ACK))
    assert table.clients == {client: [now_ns], server: [now_ns]}


@needs_tshark
def test_of_late_packets_only_hellos_of_quic_are_unproven(tmp_path: Path) -> None:
    """tshark does not join a hello of QUIC whose datagrams are not in the order of their times."""
    result = checked(tmp_path, some_packets(frames_of(DEMO)), z=2, evidence="any")
    lines = (tmp_path / "out" / "flows.csv").read_text().splitlines()
    unproven = [lines[one.row - 1] for one in result.unproven if one.row and "flows" in one.file]
    assert all(",quic," in line for line in unproven)
    assert {one.column for one in result.unproven} <= {"name"}
    assert result.violations == []


@needs_tshark
def test_a_request_behind_a_gap_is_unproven(tmp_path: Path) -> None:
    """tshark reads no request behind bytes that come later; the run does."""
    result = checked(tmp_path, come_later(frames_of(DEMO)), z=2, evidence="any", window="10m")
    assert (result.violations, result.unproven != []) == ([], True)


@needs_tshark
def test_a_cut_capture_has_a_note(tmp_path: Path) -> None:
    frames = frames_of(DEMO)[:1000]
    assert "cut" not in checked(tmp_path, frames).note()
    (tmp_path / "cut").mkdir()
    result = checked(tmp_path / "cut", [*frames, frames[-1][:30]])
    assert result.violations == []
    assert "1 captures are cut at their end" in result.note()


@pytest.mark.parametrize("left", [7, 30, None])
def test_the_reader_without_tshark_notes_a_cut(tmp_path: Path, left: int | None) -> None:
    frames = frames_of(DEMO)[:10]
    more = b"" if left is None else frames[0][:left]
    (tmp_path / "capture").write_bytes(DEMO.read_bytes()[:HEAD] + b"".join(frames) + more)
    found = list(reader.read(tmp_path / "capture"))
    cut = [one for one in found if isinstance(one, Frame) and one.cut]
    assert (len(found) - len(cut), len(cut)) == (10, left is not None)


QUESTION = "AAABAAABAAAAAAABA3d3dwdleGFtcGxlA29yZwAAAQAB"


@pytest.mark.parametrize(
    ("target", "names"),
    [
        (f"/dns-query?ct=1&dns={QUESTION}&x", ["www.example.org"]),
        (f"/dns-query?name={QUESTION}", []),
        (f"/dns-query?dns={QUESTION[:20]}", []),
        ("/dns-query?dns=www.example.org", []),
    ],
)
def test_a_question_in_a_target_is_read(target: str, names: list[str]) -> None:
    assert list(asked_by(target)) == names


# ---- names never to release ---------------------------------------------------------------------


@needs_tshark
def test_a_name_of_the_never_list_is_a_violation(tmp_path: Path, capfd: Captured) -> None:
    never, other = tmp_path / "never", tmp_path / "other"
    never.write_text("www.news.example\nabsent.example\n")
    other.write_text("www.news.example\n")
    out, capture = tmp_path / "out", first_frames(tmp_path / "capture.pcap", 3000)
    assert run_main("run", capture, "--out", out, "--z", 3, "--never", never, "-q",
                    "--format", "observations") == 0  # fmt: skip
    arguments = ("audit", out, "--raw", capture, "--for", "internal", "--check", "reasons")
    report = tmp_path / "report.json"
    assert run_main(*arguments, "-q", "--json", report) == 0
    assert "give the run's file" in report.read_text()
    assert run_main(*arguments, "-q", "--never", other) == 2
    assert "1 suffixes, and the run had 2" in capfd.readouterr().err
    assert run_main(*arguments, "-q", "--never", never) == 0
    log = out / "observations.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert not [line for line in lines if line["name"].endswith("www.news.example")]
    manifest = json.loads((out / "manifest.json").read_bytes())
    seen = read_captures(manifest, [capture], never=never.read_text().split())
    (key, found) = next(
        (key, found) for key, found in seen.barred.items() if key[1] == "www.news.example"
    )
    shown = {**lines[-1], "t_ns": found[0][0], "name": key[1], "name_source": "tls"}
    log.write_text(log.read_text() + json.dumps(shown) + "\n")
    assert "reasons" in {one.check for one in check_files(out, manifest, seen).violations}
