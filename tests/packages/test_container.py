# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The Containerfile, on a base image that debootstrap makes: no registry is asked."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.chroot import make_chroot
from support.packages import needs_packages
from support.paths import ROOT

pytestmark = [pytest.mark.source, needs_packages, pytest.mark.timeout(1800)]


Buildah = Callable[..., str]


@pytest.fixture
def buildah(tmp_path: Path) -> Iterator[Buildah]:
    """Calls buildah, whose images lie in a folder that is removed; returns what it prints."""
    program = shutil.which("buildah")
    if program is None:
        pytest.skip("buildah is not on this machine")
    storage = ["--storage-driver", "vfs", "--root", f"{tmp_path}/storage"]
    storage += ["--runroot", f"{tmp_path}/run"]
    environ = {**os.environ, "BUILDAH_ISOLATION": "chroot"}

    def call(*arguments: str) -> str:
        command = [program, *storage, *arguments]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    yield call
    shutil.rmtree(tmp_path)


def test_the_image_has_the_command(buildah: Buildah, tmp_path: Path) -> None:
    try:
        base = buildah("from", "scratch")
    except AssertionError as error:
        pytest.skip(f"buildah cannot make an image here: {str(error).splitlines()[0]}")
    root = make_chroot(tmp_path / "root")
    for name in ("/etc/resolv.conf", "/etc/hosts"):
        shutil.copy(name, root / "etc")
    buildah("add", base, str(root), "/")
    buildah("commit", base, "localhost/zanon-base")
    file = str(ROOT / "packaging" / "Containerfile")
    arguments = ["--build-arg", "BASE=localhost/zanon-base", "--pull-never", "-f", file]
    buildah("bud", *arguments, "-t", "localhost/zanon-net", str(ROOT))
    container = buildah("from", "localhost/zanon-net")
    assert buildah("run", container, "zanon-net", "--version").startswith("zanon-net ")
