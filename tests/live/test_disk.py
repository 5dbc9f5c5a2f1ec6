# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The disk of a run on an interface: old parts go, also those of killed runs; a full disk frees."""

import json
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.live import Live, data_of
from support.netns import Namespace
from support.packets import crowd
from support.small_disk import SmallDisk, small_disk

# A run that looks after its disk ten times a second.
HURRIED = """
import sys
from zanon_net import cli
from zanon_net.pipeline import metrics_clock, upkeep
metrics_clock.REFRESH_S = upkeep.TEND_S = 0.1
sys.exit(cli.main())
"""
USUAL = ("--internal", "10.0.0.0/8", "--z", "2", "--format", "csv", "--format", "observations")
FRAMES = data_of(crowd(b"shared.example", 200))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", "16m") as found:
        yield found


@pytest.fixture
def hurried(net: Namespace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Starts a Live into a folder; whatever happens, none is left running."""
    monkeypatch.setattr(Live, "command", (sys.executable, "-c", HURRIED, "run"))
    started: list[Live] = []

    def start(out: Path, *arguments: object) -> Live:
        started.append(Live(net, out, "a", *arguments, *USUAL))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
            one.process.communicate()


def part(net: Namespace, run: Live) -> None:
    """Has a part end in which there are records."""
    before = len(re.findall(r"status:", run.said))
    net.send("b", FRAMES)
    run.wait_for("status:")
    run.process.send_signal(signal.SIGHUP)
    while len(re.findall(r"status:", run.said)) < before + 3:
        run.wait_for("status:")


def parts_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("observations-*.jsonl"))


@pytest.mark.usefixtures("hangups_end")
def test_parts_of_killed_runs_go_before_those_of_this_one(
    net: Namespace, hurried: Any, tmp_path: Path
) -> None:
    """And the parts that stay are those that the manifests have."""
    options = ("--split", "1d", "--keep", "10d", "--status", "200ms")
    folders = [tmp_path / f"zanon-2026010{n}T000000Z" for n in (1, 2)]
    run = hurried(folders[0], *options)
    part(net, run)
    part(net, run)
    run.process.kill()
    run.process.communicate()
    left = parts_in(folders[0])
    assert len(left) == 2
    unfinished = sorted(path.name for path in folders[0].glob("*.partial"))
    run = hurried(folders[1], "--split", "1d", "--keep", "3s", "--status", "200ms")
    part(net, run)
    while run.said.count("over for more than --keep 3s") < 3:
        run.wait_for("status:")
    assert run.said.count(f"removed {folders[0].name}/") == 2
    manifest = run.end()
    assert parts_in(folders[0]) == []
    assert sorted(path.name for path in folders[0].iterdir()) == unfinished
    before = json.loads((folders[0] / "manifest.json.partial").read_bytes())
    assert (before["outputs"], before["removed"]["parts"]) == ([], 2)
    assert manifest["removed"]["parts"] == 1
    assert manifest["removed"]["earlier_runs"]["parts"] == 2
    listed = {file["file"] for file in manifest["outputs"]}
    assert listed == {path.name for path in folders[1].iterdir()} - {"manifest.json"}
    assert "shared.example" not in run.said


def test_a_run_goes_on_while_its_disk_is_full(
    net: Namespace, hurried: Any, disk: SmallDisk
) -> None:
    metrics = disk.path.with_name("zanon.prom")
    run = hurried(
        disk.path / "out", "--on-full", "wait", "--flush", "100ms", "--status", "200ms",
        "--metrics-file", metrics,
    )  # fmt: skip
    net.send("b", FRAMES)
    run.wait_for_packets(len(FRAMES))
    disk.fill()
    while "records are lost until there is space" not in run.said:
        net.send("b", FRAMES)
        run.wait_for("status:")
    while "zanon_full_disk_waiting 1.0" not in metrics.read_text():
        run.wait_for("status:")
    net.send("b", FRAMES)
    run.wait_for("status:")
    disk.free()
    run.wait_for("there is space again: a new part begins; the disk was full once")
    net.send("b", FRAMES)
    run.wait_for("status:")
    run.wait_for("status:")
    manifest = run.end()
    assert not manifest["complete"]
    lost = manifest["full_disk"]["records_lost"]
    written = {"csv": 0, "observations": 0}
    for file in manifest["outputs"]:
        kind = "csv" if file["file"].endswith(".csv") else "observations"
        content = (disk.path / "out" / file["file"]).read_bytes()
        assert content.endswith(b"\n")
        assert content.count(b"\n") - (kind == "csv") == file["records"]
        written[kind] += file["records"]
    assert manifest["records"]["csv"]["lost"] == lost["csv"] > 0
    assert written["csv"] + lost["csv"] == manifest["records"]["records"]
    assert written["observations"] + lost["observations"] == manifest["decisions"]["released"]
    assert written["observations"] > 0
    assert "zanon_full_disk_waiting 0.0" in metrics.read_text()
    assert "shared.example" not in run.said
