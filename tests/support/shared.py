# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Expensive input, made once for all worker processes of one run of the tests."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest

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
    with (base / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            done.touch()
    return folder
