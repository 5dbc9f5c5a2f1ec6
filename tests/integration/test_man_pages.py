# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The man pages: one a command, which `man` renders without a complaint."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from support.every_command import commands_of
from support.installed import share

from zanon_net._version import __version__
from zanon_net.cli.entry import cli


def command_names(command: click.Command, name: str = "zanon-net") -> Iterator[str]:
    yield name
    if isinstance(command, click.Group):
        for word, child in commands_of(command).items():
            yield from command_names(child, f"{name}-{word}")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return share(tmp_path_factory.mktemp("share")) / "man" / "man1"


def render(page: Path) -> str:
    """A page as a reader sees it; nothing may be said on standard error."""
    program = shutil.which("man")
    if program is None:
        pytest.skip("man is not on this machine")
    environ = {
        "LC_ALL": "C.UTF-8",
        "MANWIDTH": "100",
        "PATH": "/usr/bin:/bin",
        "MAN_KEEP_STDERR": "1",
    }
    done = subprocess.run(
        [program, "--warnings", "-l", str(page)], env=environ, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, ""), page.name
    return re.sub(r"\x1b\[\d*m|.\x08", "", done.stdout)


def test_each_command_has_a_page(pages: Path) -> None:
    wanted = {f"{name}.1" for name in command_names(cli)}
    assert len(wanted) > 15
    assert {path.name for path in pages.glob("zanon-net*")} == wanted


@pytest.mark.parametrize("name", list(command_names(cli)))
def test_man_renders(name: str, pages: Path) -> None:
    text = render(pages / f"{name}.1")
    assert re.match(rf"{name.upper()}\(1\) .* {name.upper()}\(1\)\n", text)
    assert re.search(rf"^NAME\n +{name} +- [A-Z].*[^.]$", text, re.M)
    assert f"\n{__version__} " in text


def test_what_a_page_says(pages: Path) -> None:
    text = render(pages / "zanon-net-run.1")
    assert "\n       zanon-net run [OPTIONS] SOURCE...\n" in text
    assert re.search(r"^ +--evidence \[established\|any\]$", text, re.M)
    # Examples keep their lines.
    assert (
        "\n         zanon-net run captures/ more.pcap.zst --format observations --out - | head\n"
        in text
    )


def test_a_fault_in_a_page_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "x.1"
    page.write_text(".TH X 1\n.SH NAME\nx \\- y\n.nosuchrequest\n", encoding="utf-8")
    with pytest.raises(AssertionError, match="nosuchrequest"):
        render(page)
