# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The analyzer that CONTRIBUTING.md adds is asked about each segment, and its names go out."""

import json
import shutil
from pathlib import Path

import pytest
from support.c_build import run
from support.diffs import apply, documented
from support.packets import SECOND, START, Tcp, user
from support.parts import capture_of
from support.paths import ROOT

pytestmark = [pytest.mark.source, pytest.mark.slow]

PLACES = {
    "csrc/proto/hail.h",
    "csrc/proto/hail.c",
    "csrc/analyzer/hail_analyzer.c",
    "csrc/analyzer/analyzers.h",
    "csrc/util/stats.h",
}
NAME = b"hail.example.org"
HAIL = b"\x02H" + bytes([len(NAME)]) + NAME
NOTHING = b"\xf7" * 40  # what no analyzer begins with


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """examples/c/monitor.c on a copy of csrc/ with the analyzer, built for speed of building."""
    tree = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "csrc", tree / "csrc")
    assert apply(documented("Add an analyzer"), tree) == PLACES
    flags = ["-std=c11", "-O0", "-D_GNU_SOURCE", "-DZN_DEBUG", "-Wall", "-Wextra", "-Werror"]
    sources = [*sorted((tree / "csrc").rglob("*.c")), ROOT / "examples" / "c" / "monitor.c"]
    folders = [f"-I{tree / 'csrc'}", f"-I{tree / 'csrc/include'}"]
    command = ["cc", *flags, *folders, *sources, "-lpcap", "-lcrypto", "-lm"]
    run([*command, "-pthread", "-o", tree / "monitor"])
    return tree / "monitor"


@pytest.mark.parametrize(
    "payloads",
    [[HAIL], [HAIL[:2], HAIL[2:]], [NOTHING, HAIL], [NOTHING] * 9 + [HAIL]],
    ids=["first", "two segments", "second", "tenth"],
)
def test_an_analyzer_is_added_as_documented(
    payloads: list[bytes], monitor: Path, tmp_path: Path
) -> None:
    """The fast path, which nobody told of it, passes over no segment that it has to see."""
    frames = []
    for n in range(2):
        talk = Tcp(user(n), t_ns=START + n * SECOND).handshake()
        for payload in payloads:
            talk.say(payload)
        frames += talk.close().frames
    (tmp_path / "capture.pcap").write_bytes(capture_of(frames))
    lines = run([monitor, "2", tmp_path / "capture.pcap"]).splitlines()
    assert [json.loads(line)["name"] for line in lines] == [NAME.decode()]
