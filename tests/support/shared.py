# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Expensive input, made once for all worker processes of one run of the tests, or kept for the
next run."""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.paths import ROOT

KEPT = ROOT / "build" / "tests"
"""Folder of compiled files that the next run uses again. `make clean` removes it."""
KEPT_S = 7 * 86_400
"""Seconds after which a file in KEPT that no run used is removed."""

_factories: list[pytest.TempPathFactory] = []


def remember(factory: pytest.TempPathFactory) -> None:
    """Keeps pytest's factory of folders for `built_once`."""
    _factories[:] = [factory]


def built_once(name: str, make: Callable[[Path], object]) -> Path:
    """Returns the folder of `made_once`, for a caller that is not a fixture."""
    return made_once(_factories[0], name, make)


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder that `make` fills: the first worker that asks calls it, others wait."""
    base = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder, done = base / name, base / f"{name}.made"
    with _locked(base / f"{name}.lock"):
        if not done.exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            done.touch()
    return folder


def made_again(name: str, key: str, make: Callable[[Path], object]) -> None:
    """Lets `make` bring the folder `name` of KEPT up to date.

    key: text of all that `make` does not notice. The folder is empty if the text differs, or if the
    last call of `make` failed.
    """
    folder, made = KEPT / name, KEPT / f"{name}.made"
    KEPT.mkdir(parents=True, exist_ok=True)
    with _locked(KEPT / f"{name}.lock"):
        if not made.exists() or made.read_text("utf-8") != key:
            shutil.rmtree(folder, ignore_errors=True)
        made.unlink(missing_ok=True)
        folder.mkdir(exist_ok=True)
        make(folder)
        made.write_text(key, encoding="utf-8")


def kept_file(texts: Iterable[bytes], make: Callable[[Path], object]) -> Path:
    """Returns the file that `make` makes, or the file that an earlier run made from equal texts."""
    folder, digest = KEPT / "files", hashlib.sha256()
    for text in texts:
        digest.update(hashlib.sha256(text).digest())
    path = folder / digest.hexdigest()
    if path.exists():
        os.utime(path)
        return path
    folder.mkdir(parents=True, exist_ok=True)
    for other in folder.iterdir():
        with suppress(FileNotFoundError):  # another process removed the file
            if time.time() - other.stat().st_mtime > KEPT_S:
                other.unlink()
    made = path.with_suffix(f".{os.getpid()}")
    make(made)
    return made.rename(path)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
