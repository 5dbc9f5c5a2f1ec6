# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The manylinux wheel: its size, what it links, and the demo under every Python that is here."""

import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from support.packages import built, demo_arguments, logs, needs_packages, source_run

pytestmark = [pytest.mark.source, needs_packages]

MAX_BYTES = 4_000_000
SYSTEM_LIBRARIES = {"linux-vdso.so.1", "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}


def find_pythons() -> list[str]:
    """Interpreters that a wheel for 3.11 and later may meet on this machine."""
    versions = [f"3.{minor}" for minor in range(11, 16)]
    found = []
    for version in versions:
        kept = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
        there = shutil.which(f"python{version}", path="/usr/local/bin:/usr/bin") or kept[:1]
        found += [str(there if isinstance(there, str) else there[0])] if there else []
    return found


@pytest.fixture(scope="module")
def wheel() -> Path:
    return built("wheel/dist/*.whl")


@pytest.fixture(scope="module", params=find_pythons(), ids=lambda path: Path(path).name)
def environment(
    request: pytest.FixtureRequest, wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A new environment of one Python, with the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([request.param, "-m", "venv", str(folder)], check=True)
    subprocess.run([folder / "bin" / "pip", "install", "-q", str(wheel)], check=True)
    return folder


def test_name_and_size(wheel: Path) -> None:
    assert wheel.name.endswith("-cp311-abi3-manylinux_2_34_x86_64.whl")
    assert wheel.stat().st_size <= MAX_BYTES


def test_it_brings_libcrypto_alone(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = [Path(name).name for name in archive.namelist() if ".so" in name]
    assert sorted(name.split("-")[0].split(".")[0] for name in names) == ["_core", "libcrypto"]


def test_it_links_nothing_else(environment: Path) -> None:
    [core] = environment.rglob("_core.abi3.so")
    done = subprocess.run(["ldd", str(core)], capture_output=True, check=True, text=True)
    linked = {Path(line.split()[0]).name for line in done.stdout.splitlines()}
    assert {
        name for name in linked - SYSTEM_LIBRARIES if not name.startswith("libcrypto-")
    } == set()
    assert str(environment) in done.stdout


def test_the_demo(environment: Path, tmp_path: Path, key_file: str) -> None:
    """The same bytes as the build of the sources writes, with an empty environment."""
    command = [str(environment / "bin" / "zanon-net"), *demo_arguments(tmp_path / "it", key_file)]
    subprocess.run(["env", "-i", *command], check=True, cwd=tmp_path)
    ours = logs(tmp_path / "it")
    assert len(ours) > 2
    assert ours == source_run(tmp_path / "source", key_file)


def test_files_beside_the_package(environment: Path) -> None:
    assert (environment / "share" / "man" / "man1" / "zanon-net.1").stat().st_size > 1000
    units = {path.name for path in (environment / "lib" / "systemd" / "system").iterdir()}
    assert units == {"zanon-net.service", "zanon-net-counter.service"}
