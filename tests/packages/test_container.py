# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The Containerfile, on a base image that debootstrap makes: no registry is asked."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.chroot import make_chroot
from support.cli import DEMO
from support.every_command import use_every_command
from support.packages import needs_packages
from support.paths import ROOT

pytestmark = [pytest.mark.source, needs_packages, pytest.mark.timeout(3600)]

Buildah = Callable[..., str]
CAPTURE = ("--cap-add", "CAP_NET_RAW", "--cap-add", "CAP_IPC_LOCK")


@pytest.fixture(scope="module")
def buildah(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buildah]:
    """Calls buildah, whose images lie in a folder that is removed; returns what it prints."""
    program = shutil.which("buildah")
    if program is None:
        pytest.skip("buildah is not on this machine")
    folder = tmp_path_factory.mktemp("buildah")
    storage = ["--storage-driver", "vfs", "--root", f"{folder}/storage"]
    storage += ["--runroot", f"{folder}/run"]
    environ = {**os.environ, "BUILDAH_ISOLATION": "chroot"}

    def call(*arguments: str) -> str:
        command = [program, *storage, *arguments]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
        return done.stdout.strip()

    yield call
    shutil.rmtree(folder)


@dataclass(frozen=True)
class Image:
    """The image, and a container of it."""

    buildah: Buildah
    container: str
    config: dict[str, object]

    def run(self, *arguments: str, options: tuple[str, ...] = ()) -> str:
        """Runs a program as the image's user; returns what it prints."""
        return self.buildah("run", *options, self.container, "--", *arguments)

    @property
    def entry(self) -> list[str]:
        """The command that a container starts with."""
        entry = self.config["Entrypoint"]
        assert isinstance(entry, list)
        return entry


@pytest.fixture(scope="module")
def image(buildah: Buildah, tmp_path_factory: pytest.TempPathFactory) -> Image:
    try:
        base = buildah("from", "scratch")
    except AssertionError as error:
        pytest.skip(f"buildah cannot make an image here: {str(error).splitlines()[0]}")
    root = make_chroot(tmp_path_factory.mktemp("base") / "root")
    for name in ("/etc/resolv.conf", "/etc/hosts"):
        shutil.copy(name, root / "etc")
    for path in Path("/etc/apt").glob("apt.conf.d/*prox*"):
        shutil.copy(path, root / "etc" / "apt" / "apt.conf.d")
    buildah("add", base, str(root), "/")
    buildah("commit", base, "localhost/zanon-base")
    shutil.rmtree(root)
    file = str(ROOT / "packaging" / "Containerfile")
    arguments = ["--build-arg", "BASE=localhost/zanon-base", "--pull-never", "-f", file]
    buildah("bud", *arguments, "-t", "localhost/zanon-net", str(ROOT))
    container = buildah("from", "localhost/zanon-net")
    about = json.loads(buildah("inspect", "--type", "image", "localhost/zanon-net"))
    return Image(buildah, container, about["OCIv1"]["config"])


def test_every_command_works_for_its_user(image: Image) -> None:
    assert image.config["User"] == "zanon"
    assert image.run("id", "-un") == "zanon"
    image.buildah("copy", "--chown", "zanon", image.container, str(DEMO), "/data/demo.pcap")
    use_every_command(lambda line: image.run("bash", "-e", "-c", line))


def test_it_starts_without_capabilities_and_cannot_capture(image: Image) -> None:
    """The file of the program asks for both capabilities, and the container has none."""
    none = ("--cap-drop", "CAP_NET_RAW", "--cap-drop", "CAP_IPC_LOCK")
    assert image.run(*image.entry, "--version", options=none).startswith("zanon-net ")
    with pytest.raises(AssertionError, match="cap_net_raw=ep /usr/lib/zanon-net/python"):
        image.run(*image.entry, "run", "lo", "--internal", "any", options=none)


def test_its_user_captures_with_two_capabilities(image: Image) -> None:
    """Root's are not among them: 13 is CAP_NET_RAW and 14 CAP_IPC_LOCK."""
    look = "from pathlib import Path; print(Path('/proc/self/status').read_text())"
    status = image.run(image.entry[0], "-c", look, options=CAPTURE)
    assert f"CapPrm:\t{1 << 13 | 1 << 14:016x}" in status
    stop = ("timeout", "--preserve-status", "--signal", "TERM", "20")
    arguments = ("run", "lo", "--internal", "any", "--out", "/data/live", "-q")
    image.run(*stop, *image.entry, *arguments, options=CAPTURE)
    manifest = json.loads(image.run("cat", "/data/live/manifest.json"))
    assert manifest["error"] is None
    assert manifest["complete"] is True
