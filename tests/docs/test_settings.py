# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The schema of settings: what is made of it is there, and an option is added as documented."""

import json
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.cli import DEMO, ENVIRONMENT
from support.diffs import apply, documented
from support.paths import ROOT

import zanon_net

pytestmark = pytest.mark.source

PAGE = "docs/reference/configuration.md"
COPIED = ("docs", "scripts", "tests/conftest.py", "tests/support", "tests/unit/test_config.py")


@pytest.fixture
def script() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "scripts" / "make_settings.py"))


def test_what_is_made_of_the_schema_is_there(script: dict[str, Any]) -> None:
    """Else run scripts/make_settings.py."""
    page = (ROOT / PAGE).read_text("utf-8")
    assert script["page_with_tables"](page) == page
    assert script["core_source"]() == (ROOT / "zanon_net/core/settings.pyx").read_text("utf-8")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """What a setting touches of the source tree, with the extension that is in use."""
    tree = tmp_path / "tree"
    shutil.copytree(Path(zanon_net.__file__).parent, tree / "zanon_net")
    for name in COPIED:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tree / name)
    shutil.copy(ROOT / "pyproject.toml", tree)
    return tree


def test_an_option_is_added_as_documented(tree: Path) -> None:
    assert (
        len(apply(documented("Add an option"), tree)) <= 3
    )  # and the table, which the script writes

    def python(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            env=ENVIRONMENT | {"PYTHONPATH": str(tree)},
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def retention_of(folder: str) -> int:
        manifest = json.loads((tree / folder / "manifest.json").read_text("utf-8"))
        return int(manifest["configuration"]["output"]["retention"])

    command, day_ns = ("-m", "zanon_net"), 86_400 * 10**9
    python("scripts/make_settings.py")
    assert "| `retention` | no limit | 1ns to 3650d | for how long" in (tree / PAGE).read_text()
    assert "--retention DURATION" in python(*command, "run", "--help-all")
    assert '\n# retention = "90d"\n' in python(*command, "config")
    (tree / "zanon.toml").write_text('[output]\nretention = "30d"\n')
    run = (*command, "run", str(DEMO), "-q", "--config", "zanon.toml")
    python(*run, "--out", "file")
    python(*run, "--out", "option", "--retention", "7d")
    assert (retention_of("file"), retention_of("option")) == (30 * day_ns, 7 * day_ns)
    python("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/unit/test_config.py")
