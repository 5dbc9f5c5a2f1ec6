# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Hints of a run: each appears under its condition, and over no ordinary capture."""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from support import wire
from support.cli import COMMAND, DEMO, ENVIRONMENT
from support.packet_run import write_pcap
from support.packets import CLIENT, SERVER, START, Frame, Tcp, Udp, crowd, hello, merged, user

import zanon_net
from zanon_net.keys import new_key

UNPROVEN = "lack evidence"
TOO_FEW = "no name can reach"


def notes(folder: Path, captures: Sequence[Sequence[Frame]], **settings: Any) -> list[str]:
    sources = [write_pcap(folder / f"{n}.pcap", frames) for n, frames in enumerate(captures)]
    chosen: dict[str, Any] = {"z": 5, "format": "jsonl", **settings}
    return list(zanon_net.run(sources, out=folder / "out", **chosen).manifest["notes"])


def sent_by_users(frames: Sequence[Frame]) -> list[Frame]:
    return [frame for frame in frames if frame.data[26] == 10]


@pytest.mark.parametrize(
    ("users", "said"), [(1, "1 user"), (4, "4 users"), (5, None)], ids=["one", "below", "enough"]
)
def test_fewer_users_than_z(users: int, said: str | None, tmp_path: Path) -> None:
    expected = [] if said is None else [f"this capture has {said}; no name can reach z = 5"]
    assert notes(tmp_path, [crowd(wire.HOST, users)]) == expected


def test_users_are_counted_over_all_captures(tmp_path: Path) -> None:
    parts = [crowd(wire.HOST, 3), crowd(wire.HOST, 3, START + 10**10, first=3)]
    assert notes(tmp_path, parts) == []
    (tmp_path / "six").mkdir()
    expected = ["these captures have 6 users; no name can reach z = 7"]
    assert notes(tmp_path / "six", parts, z=7) == expected


def test_a_z_that_follows_the_stream_may_be_as_low_as_z(tmp_path: Path) -> None:
    assert notes(tmp_path, [crowd(wire.HOST, 6)], target_p=0.9) == []


def test_a_capture_without_a_user_has_another_note(tmp_path: Path) -> None:
    found = notes(tmp_path, [crowd(wire.HOST, 3)], internal="172.16.0.0/12")
    assert found == ["3 of 3 flows have no internal endpoint: check --internal"]


@pytest.mark.parametrize("sender", [CLIENT, SERVER])
def test_one_direction(sender: int, tmp_path: Path) -> None:
    frames = crowd(wire.HOST, 20)
    up = sent_by_users(frames)
    half = up if sender == CLIENT else [frame for frame in frames if frame not in up]
    expected = (
        "20 of 20 TCP flows have packets of one direction only, so most clients lack evidence"
        " (20 of 20 names); capture both directions, or see --evidence"
    )
    # Servers alone name nothing, so nothing lacks evidence.
    assert notes(tmp_path, [half]) == ([expected] if sender == CLIENT else [])


def test_one_direction_needs_no_evidence_of_any(tmp_path: Path) -> None:
    assert notes(tmp_path, [sent_by_users(crowd(wire.HOST, 20))], evidence="any") == []


@pytest.mark.parametrize(("one_sided", "is_hinted"), [(10, False), (11, True)])
def test_the_hint_needs_most_names(one_sided: int, is_hinted: bool, tmp_path: Path) -> None:
    frames = [*crowd(wire.HOST, 10), *sent_by_users(crowd(wire.HOST, one_sided, first=10))]
    frames.sort(key=lambda frame: frame.t_ns)
    assert [UNPROVEN in note for note in notes(tmp_path, [frames])] == [True] * is_hinted


def test_two_directions_in_two_captures_have_one_hint(tmp_path: Path) -> None:
    frames = crowd(wire.HOST, 20)
    up = sent_by_users(frames)
    (note,) = notes(tmp_path, [up, [frame for frame in frames if frame not in up]])
    assert "merge them first: mergecap" in note


def test_names_without_evidence_in_whole_flows(tmp_path: Path) -> None:
    """Flows that were joined after their handshake have packets of both sides."""
    talks = [
        Tcp(user(n), t_ns=START + n).say(hello(wire.HOST)).say(b"data", SERVER).frames
        for n in range(9)
    ]
    assert notes(tmp_path, [merged(talks)]) == []


def test_an_interrupted_run_does_not_know_its_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise zanon_net.OutputError("no more")

    sources = write_pcap(tmp_path / "a.pcap", crowd(wire.HOST, 2))
    runner = sys.modules["zanon_net.pipeline.runner"]
    monkeypatch.setattr(runner, "_finish", fail)
    with pytest.raises(zanon_net.OutputError):
        zanon_net.run(sources, z=5, out=tmp_path / "out")
    assert TOO_FEW not in (tmp_path / "out" / "manifest.json").read_text("utf-8")


def test_shards_have_one_hint(tmp_path: Path) -> None:
    """A user of two shards counts twice, which can only leave out the hint."""
    for n in range(2):
        write_pcap(tmp_path / f"{n}.pcap", crowd(wire.HOST, 2, START + n, first=2 * n))
    new_key(tmp_path / "key")
    options = ("--shards", "2", "--z", "5", "--key-file", "key", "--out", "out")
    command = [*COMMAND, "run", "0.pcap", "1.pcap", *options]
    subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, check=True)
    found = [json.loads(path.read_bytes())["notes"] for path in manifests(tmp_path / "out")]
    assert found == [["these captures have 4 users; no name can reach z = 5"], [], []]


def manifests(out: Path) -> list[Path]:
    """The manifests of a run of two shards: of the run, and of each shard."""
    return [folder / "manifest.json" for folder in (out, out / "shard-0", out / "shard-1")]


@pytest.mark.parametrize("users", [20, 90])
@pytest.mark.parametrize("names", [1, 7])
def test_ordinary_captures_have_no_hint(users: int, names: int, tmp_path: Path) -> None:
    frames = []
    for n in range(names):
        host = b"www%d.example" % n
        frames += crowd(host, users, START + n * 10**9)
        lookups = (Udp(user(u), t_ns=START + u).lookup(host).frames for u in range(users))
        frames += merged(lookups)
    frames.sort(key=lambda frame: frame.t_ns)
    assert notes(tmp_path, [frames], z=20) == []


def test_the_demo_has_no_hint(tmp_path: Path) -> None:
    report = zanon_net.run(DEMO, z=5, out=tmp_path / "out")
    assert report.manifest["notes"] == []
    assert "note" not in report.summary()


def test_the_summary_has_the_hint(tmp_path: Path) -> None:
    source = write_pcap(tmp_path / "a.pcap", crowd(wire.HOST, 1))
    lines = zanon_net.run(source, out=tmp_path / "out").summary(200).splitlines()
    assert lines[-1].split(None, 1)[0] == "note"
    assert "this capture has 1 user; no name can reach z = 20" in lines[-1]
