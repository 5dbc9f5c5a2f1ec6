# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A fresh Debian in a folder, by debootstrap from the machine's own mirror."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def debian_release() -> str:
    """The code name of this machine's Debian, for which its packages are built."""
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    fields = dict(line.split("=", 1) for line in lines if "=" in line)
    return fields.get("VERSION_CODENAME", "")


def mirror_of(release: str) -> str:
    """Where apt has this release from."""
    wanted = ["Created-By: Packages", "Origin: Debian", f"Codename: {release}"]
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not done.stdout:
        pytest.skip("apt knows no mirror of this machine's Debian: run apt-get update")
    return done.stdout.split()[0]


def make_chroot(folder: Path) -> Path:
    """A minimal Debian."""
    if os.geteuid() != 0 or shutil.which("debootstrap") is None:
        pytest.skip("needs root and debootstrap")
    release = debian_release()
    command = ["debootstrap", "--variant=minbase", release, str(folder), mirror_of(release)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"debootstrap cannot make a chroot here: {done.stdout.splitlines()[-1:]}")
    return folder


def inside(folder: Path, *command: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Runs a command in the chroot, with nothing of this environment."""
    environ = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive"}
    return subprocess.run(
        ["chroot", str(folder), *command], env=environ, capture_output=True, text=True, check=check
    )
