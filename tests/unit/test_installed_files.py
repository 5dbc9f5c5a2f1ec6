# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a wheel installs outside its package. Editable installations have but the unit."""

import sys
from importlib import metadata
from pathlib import Path

import pytest
from support.paths import ROOT

WANTED = {
    "lib/systemd/system/zanon-net-counter.service",
    "lib/systemd/system/zanon-net.service",
    "share/bash-completion/completions/zanon-net",
    "share/fish/vendor_completions.d/zanon-net.fish",
    "share/man/man1/zanon-net-run.1",
    "share/man/man1/zanon-net.1",
    "share/zsh/site-functions/_zanon-net",
}


@pytest.fixture
def installed() -> set[str]:
    """The installed files, relative to the environment."""
    if (ROOT / "setup.py").exists():
        pytest.skip("needs an installed wheel: `make dist` runs it")
    prefix = Path(sys.prefix).resolve()
    files = metadata.files("zanon-net") or []
    paths = (Path(str(file.locate())).resolve() for file in files)
    return {path.relative_to(prefix).as_posix() for path in paths}


def test_nothing_is_missing(installed: set[str]) -> None:
    assert set() == WANTED - installed
    assert all((Path(sys.prefix) / name).stat().st_size > 100 for name in WANTED)


def test_no_source_is_installed(installed: set[str]) -> None:
    """No C and no Cython. The classes of `zanon-net flink` are compiled where it runs. The list
    of categories is data."""
    names = {name.partition("/site-packages/zanon_net/")[2] for name in installed} - {""}
    ours = {name for name in names if not name.startswith("flink/java/")}
    assert {Path(name).suffix for name in ours} <= {".py", ".pyc", ".pyi", ".so", ".tsv", ".typed"}
    assert {Path(name).suffix for name in names - ours} == {".java"}


def test_the_units_are_those_of_the_documents(installed: set[str]) -> None:
    units = [name for name in installed if name.endswith(".service")]
    texts = [(Path(sys.prefix) / unit).read_text(encoding="utf-8") for unit in sorted(units)]
    assert "ExecStart=/usr/bin/zanon-net count $ZANON_COUNTER_ARGUMENTS" in texts[0]
    assert "ExecStart=/usr/bin/zanon-net run $ZANON_ARGUMENTS" in texts[1]
