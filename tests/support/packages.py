# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packages that a make target has just built, for the tests that it runs on them."""

import os
import subprocess
from pathlib import Path

import pytest

from support.cli import COMMAND, DEMO, ENVIRONMENT
from support.paths import ROOT

needs_packages = pytest.mark.skipif(
    os.environ.get("ZANON_PACKAGES") != "1",
    reason="needs a package: `make wheel` and `make test-packages` build and test it",
)


def built(pattern: str) -> Path:
    """The one file beneath build/ that matches."""
    [path] = (ROOT / "build").glob(pattern)
    return path


def demo_arguments(out: Path | str, key_file: Path | str, capture: Path | str = DEMO) -> list[str]:
    """Arguments of `zanon-net` that anonymize the demo's capture."""
    return ["run", "-q", str(capture), "--z", "5", "--key-file", str(key_file), "--out", str(out)]


def source_run(out: Path, key_file: str) -> dict[str, bytes]:
    """What the build of the sources writes for the demo's capture."""
    subprocess.run([*COMMAND, *demo_arguments(out, key_file)], check=True, env=ENVIRONMENT)
    return logs(out)


def logs(folder: Path) -> dict[str, bytes]:
    """Every file of an output but the manifest, which has times of the run."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".json")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
