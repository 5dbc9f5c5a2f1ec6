# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Privileges of the process: another user instead of root."""

import os
import pwd
import sys
from collections.abc import Callable
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from zanon_net import output, pipeline, system
from zanon_net.config.parse import shown
from zanon_net.config.settings import Config
from zanon_net.errors import CaptureError, ConfigError, ZanonError
from zanon_net.output.folder import default_folder
from zanon_net.output.parquet import parquet
from zanon_net.pipeline.hardening import forbid_core_dumps, gain_no_privileges
from zanon_net.pipeline.window_hooks import controller
from zanon_net.system.capabilities import keep_over_change_of_user, leave_capture
from zanon_net.system.decompress import LIBRARIES

WITH_THREADS = ("adaptive_z", "counter_run")
"""Modules that import NumPy. Its threads would keep the right to gain privileges."""


def find_user(name: str) -> pwd.struct_passwd:
    """Returns the user to continue as. Raises ConfigError if the process cannot become that
    user."""
    try:
        user = pwd.getpwnam(name)
    except (KeyError, ValueError):
        raise ConfigError(f"drop_to: there is no user {shown(name)}") from None
    if user.pw_uid == 0:
        raise ConfigError(f"drop_to: {shown(name)} is root; name a user without privileges")
    if os.geteuid() != 0:
        raise ConfigError("drop_to: only root can become another user; leave it out, or use sudo")
    return user


def load_libraries(config: Config) -> None:
    """Imports every module that a run may import later, because its user may not be able to read
    the modules.

    Raises ZanonError if a library is missing.
    """
    names = [
        f"{package.__name__}.{module.name}"
        for package in (output, pipeline, system)
        for module in iter_modules(package.__path__)
        if module.name not in WITH_THREADS
    ]
    for name in (*names, *LIBRARIES):
        with suppress(ImportError):  # of a library that is not installed
            import_module(name)
    if "parquet" in config.output.format:
        parquet()
    if config.anonymity.dynamic:
        controller(config.anonymity)


def go_on_as(
    user: pwd.struct_passwd,
    out: str | os.PathLike[str] | None,
    stack: ExitStack,
    *,
    keeps_capture: bool = False,
) -> str | os.PathLike[str]:
    """Becomes `user`, after making the folder `out` for the user if it does not exist; returns the
    output.

    out: as `run` takes it. `stack` removes the folder if it stayed empty. keeps_capture, and
    raises: as `become`.
    """
    out = default_folder(datetime.now(UTC)) if out is None else out
    if out != "-":
        folder = Path(out)
        with suppress(OSError):  # the sink, which writes into it, reports the error
            folder.mkdir()
            stack.callback(_remove_empty, folder)
            os.chown(folder, user.pw_uid, user.pw_gid, follow_symlinks=False)
    become(user, keeps_capture=keeps_capture)
    return out


def _remove_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def become(user: pwd.struct_passwd, *, keeps_capture: bool = False) -> None:
    """Continues as `user`, with its groups and without a way back. Raises ZanonError.

    keeps_capture: if true, the right to capture stays permitted, see `capabilities`.
    """
    if keeps_capture:
        _keep(keep_over_change_of_user)
    try:
        os.initgroups(user.pw_name, user.pw_gid)
        os.setresgid(user.pw_gid, user.pw_gid, user.pw_gid)
        os.setresuid(user.pw_uid, user.pw_uid, user.pw_uid)
    except OSError as error:
        raise ZanonError(f"cannot become {user.pw_name}: {error.strerror}") from None
    if keeps_capture:
        _keep(leave_capture)
    with suppress(OSError):
        os.setuid(0)
    if 0 in (*os.getresuid(), *os.getresgid()):
        raise ZanonError(f"cannot become {user.pw_name}: root's rights could be regained")
    gain_no_privileges()
    forbid_core_dumps()  # a change of user makes the process dumpable again


def _keep(step: Callable[[], None]) -> None:
    """Takes a step to keep the right to capture. Raises ConfigError."""
    try:
        step()
    except OSError as error:
        raise ConfigError(
            "on_lost: wait opens interfaces again, for which the system does not let CAP_NET_RAW be"
            f" kept with --drop-to ({error.strerror}); leave --drop-to out, or use fail and let a"
            " service manager start the run again"
        ) from None


def explain_missing(error: CaptureError) -> CaptureError:
    """Adds the remedy to `error`, which is about a missing capability."""
    program = Path(sys.executable).resolve()
    advice = (
        "run it as root (sudo zanon-net run ... --drop-to USER), or let every program of this"
        f" Python capture: sudo setcap cap_net_raw=ep {program}"
    )
    return CaptureError(error.errno, f"{error}; {advice}")
