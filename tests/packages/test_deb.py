# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The Debian packages: lintian's opinion, a program in C, and an installation in a fresh Debian."""

import base64
import csv
import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.c_build import run, use_installed_library
from support.chroot import inside, make_chroot
from support.cli import DEMO
from support.every_command import use_every_command
from support.packages import built, demo_arguments, logs, needs_packages, source_run
from support.paths import ROOT

pytestmark = [pytest.mark.source, needs_packages, pytest.mark.timeout(3600)]


@pytest.fixture(scope="module")
def package() -> Path:
    return built("deb/zanon-net_*.deb")


@pytest.fixture(scope="module")
def debian(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A fresh Debian with the package in it."""
    folder = make_chroot(tmp_path_factory.mktemp("debian") / "root")
    shutil.copy(package, folder / "zanon-net.deb")
    for name in ("/etc/resolv.conf", "/etc/hosts"):
        shutil.copy(name, folder / "etc")
    for path in Path("/etc/apt").glob("apt.conf.d/*prox*"):
        shutil.copy(path, folder / "etc" / "apt" / "apt.conf.d")
    inside(folder, "apt-get", "install", "-y", "--no-install-recommends", "/zanon-net.deb")
    yield folder
    shutil.rmtree(folder)


@pytest.mark.parametrize("name", ["zanon-net", "libzanon0", "libzanon-dev"])
def test_lintian(name: str) -> None:
    package = built(f"deb/{name}_*.deb")
    program = shutil.which("lintian")
    if program is None:
        pytest.skip("lintian is not on this machine")
    accepted = str(ROOT / "packaging" / "deb" / "lintian-accepted")
    command = [program, "--fail-on", "error,warning", "--suppress-tags-from-file", accepted]
    done = subprocess.run([*command, str(package)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_a_program_in_c_needs_only_the_librarys_packages(tmp_path: Path) -> None:
    for name in ("libzanon0", "libzanon-dev"):
        run(["dpkg-deb", "-x", built(f"deb/{name}_*.deb"), tmp_path])
    [library] = tmp_path.glob("usr/lib/*/libzanon.so.0")
    assert len(use_installed_library(tmp_path, library.parent.relative_to(tmp_path), DEMO)) > 100


def test_the_librarys_packages_bring_what_a_program_needs(debian: Path) -> None:
    """pkg-config checks the libraries that libzanon links, so their headers must come along."""
    packages = [built(f"deb/{name}_*.deb") for name in ("libzanon0", "libzanon-dev")]
    for package in packages:
        shutil.copy(package, debian)
    shutil.copy(ROOT / "examples" / "c" / "monitor.c", debian)
    shutil.copy(DEMO, debian / "demo.pcap")
    compiler = ("gcc", "libc6-dev", "pkg-config")
    wanted = (*compiler, *(f"/{package.name}" for package in packages))
    inside(debian, "apt-get", "install", "-y", "--no-install-recommends", *wanted)
    build = "cc /monitor.c $(pkg-config --cflags --libs zanon libpcap) -o /monitor"
    inside(debian, "sh", "-ec", build)
    assert len(inside(debian, "/monitor", "5", "/demo.pcap").stdout.splitlines()) > 100


def test_the_demo(debian: Path, tmp_path: Path, key_file: str) -> None:
    """The same bytes as the build of the sources writes."""
    shutil.copy(DEMO, debian / "demo.pcap")
    shutil.copy(key_file, debian / "key")
    inside(debian, "zanon-net", *demo_arguments("/out", "/key", "/demo.pcap"))
    ours = logs(debian / "out")
    assert len(ours) > 2
    assert ours == source_run(tmp_path / "source", key_file)


def test_every_command_works(debian: Path) -> None:
    folder = debian / "every"
    folder.mkdir()
    shutil.copy(DEMO, folder / "demo.pcap")

    def shell(line: str) -> None:
        done = inside(debian, "bash", "-e", "-c", f"cd /every && {line}", check=False)
        assert done.returncode == 0, (line, done.stdout, done.stderr)

    use_every_command(shell)


def test_libraries_in_wheels_are_as_they_came(debian: Path) -> None:
    """Each matches the checksum that its wheel lists."""
    library = debian / "usr" / "lib" / "zanon-net"
    checked = 0
    for record in library.glob("*.dist-info/RECORD"):
        with record.open(newline="") as file:
            for name, checksum, _size in csv.reader(file):
                path = library / name
                if ".so" not in path.name or name.startswith("zanon_net/") or not path.exists():
                    continue
                digest = hashlib.sha256(path.read_bytes()).digest()
                found = base64.urlsafe_b64encode(digest).decode().rstrip("=")
                assert checksum == f"sha256={found}", name
                checked += 1
    assert checked > 20


def test_it_links_debians_libraries(debian: Path) -> None:
    said = inside(debian, "sh", "-c", "ldd /usr/lib/zanon-net/zanon_net/_core*.so").stdout
    assert "libcrypto.so.3 => /lib/" in said
    assert "libpcap.so" in said
    assert "not found" not in said


def test_removal_leaves_nothing(debian: Path) -> None:
    """The last test of the module: it takes the package away."""
    inside(debian, "zanon-net", "--version")
    inside(debian, "dpkg", "--purge", "zanon-net")
    assert not (debian / "usr" / "lib" / "zanon-net").exists()
    assert not (debian / "usr" / "bin" / "zanon-net").exists()
