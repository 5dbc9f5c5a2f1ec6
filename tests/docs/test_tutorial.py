# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/tutorial print what the page says; only keys, speed and fits differ."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.cli import ENVIRONMENT
from support.paths import ROOT

pytestmark = pytest.mark.source

PAGES = {"first-run.md": 9, "table.md": 14}  # and how many commands each has
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
DIFFERS = (
    (re.compile(r'("client":)"[0-9a-f.:]+"'), r"\1?"),  # pseudonyms under a random key
    (re.compile(r"^speed .*$", re.MULTILINE), "speed"),
    (re.compile(r"in up to [\d,]+ bytes"), "in up to ? bytes"),  # test_operating_docs.py has them
    (re.compile(r"\d[\d.e±-]* *"), "0"),  # of a fit, whose last digits are the library's
)
PROGRAMS = 'python() { "$PYTHON" "$@"; }; zanon-net() { "$PYTHON" -m zanon_net "$@"; }\n'


def comparable(text: str, command: str) -> str:
    """The text without what differs from run to run, and without blanks at the ends of lines."""
    for pattern, instead in DIFFERS if "zanon-net tune" in command else DIFFERS[:3]:
        text = pattern.sub(instead, text)
    return "\n".join(line.rstrip() for line in text.splitlines())


@pytest.mark.parametrize(("page", "count"), PAGES.items())
def test_commands(tmp_path: Path, page: str, count: int) -> None:
    pytest.importorskip("scipy")
    for folder in ("pcaps", "examples"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    env = {**ENVIRONMENT, "PYTHON": sys.executable, "LC_ALL": "C.UTF-8"}
    text = (ROOT / "docs" / "tutorial" / page).read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    commands = [pair for block in blocks for pair in COMMAND.findall(block)]
    assert len(commands) == count
    for command, expected in commands:
        done = subprocess.run(
            ["bash", "-c", PROGRAMS + command],
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=True,
        )
        assert comparable(done.stdout, command) == comparable(expected, command), command
