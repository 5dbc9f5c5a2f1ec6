# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Commands on pages about packets do what the pages say, as far as they read and write files."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from support.cli import DEMO, ENVIRONMENT
from support.paths import ROOT

pytestmark = pytest.mark.source

BLOCK = re.compile(r"^```(sh|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = {  # and how many commands each has that need no interface
    "README.md": 1,
    "docs/howto/share-a-capture.md": 7,
}
# Monitors are no part of this: they read all and say nothing.
PROGRAMS = """set -e -o pipefail
zanon-net() { "$PYTHON" -m zanon_net "$@"; }
zeek() { "$PYTHON" -c 'import sys; sys.exit(not sys.stdin.buffer.read())'; }
suricata() { test -s "$2"; }
"""


def commands(page: str) -> list[str]:
    """The lines of a page's shell blocks that make packets of files."""
    blocks = BLOCK.findall((ROOT / page).read_text(encoding="utf-8"))
    lines = [line for kind, block in blocks if kind == "sh" for line in block.splitlines()]
    makers = [
        line for line in lines if re.search(r"^zanon-net (packets|run .*--format pcap)", line)
    ]
    return [line for line in makers if "--to " not in line]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the pages' readers have: captures, a folder of them, a list of networks."""
    data = DEMO.read_bytes()
    (tmp_path / "capture.pcap").write_bytes(data)
    (tmp_path / "monday").mkdir()
    (tmp_path / "monday" / "morning.pcap").write_bytes(data)
    (tmp_path / "tuesday.pcap.zst").write_bytes(zstandard.compress(data))
    (tmp_path / "nets.txt").write_text("10.0.0.0/8\n")
    return tmp_path


@pytest.mark.parametrize(("page", "count"), PAGES.items())
def test_there_are_as_many(page: str, count: int) -> None:
    assert len(commands(page)) == count


@pytest.mark.parametrize("command", [line for page in PAGES for line in commands(page)])
def test_command(command: str, folder: Path) -> None:
    before = set(folder.iterdir())
    done = subprocess.run(
        ["bash", "-c", PROGRAMS + command],
        cwd=folder,
        env={**ENVIRONMENT, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = {path.name for path in set(folder.iterdir()) - before}
    outputs = set(re.findall(r" (shared\.\S+|logs)\b", command.split("&&")[0]))
    if "--dry-run" in command:
        outputs = set()
    views = {f"shared.{view}.pcapng" for view in re.findall(r" --view ([a-z]+):", command)}
    manifests = {f"{name}.manifest.json" for name in outputs - {"logs"}}
    assert made == outputs | views | manifests


def test_python(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program of the page about sharing a capture."""
    page = (ROOT / "docs" / "howto" / "share-a-capture.md").read_text(encoding="utf-8")
    ((_kind, program),) = [block for block in BLOCK.findall(page) if block[0] == "python"]
    (folder / "program.py").write_text(program)
    monkeypatch.chdir(folder)
    report = runpy.run_path("program.py")["report"]
    assert report.counters["packets_passed"] > 0
    assert (folder / "shared.pcapng").exists()
