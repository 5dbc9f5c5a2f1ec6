# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Key files: one line of 32 random bytes in base64 that only its owner may read; and the two files
of a reader of sealed rows."""

import base64
import os
from pathlib import Path

from zanon_net._core import Keys, reader_key_new
from zanon_net.errors import ConfigError, ZanonError

KEY_BYTES = 32
ANY_EPOCH_NS = 3_600_000_000_000


def new_key(path: str | os.PathLike[str]) -> None:
    """Makes a key file, readable by its owner only.

    Raises ConfigError if the name is taken, ZanonError if the system refuses. No part of a file is
    left.
    """
    _write_new(Path(path), base64.b64encode(os.urandom(KEY_BYTES)) + b"\n", 0o600)


def new_reader_key(path: str | os.PathLike[str]) -> Path:
    """Makes the keys of a reader of sealed rows: a secret key, readable by its owner only, and a
    public key next to it; returns the path of the public key.

    Raises as new_key does.
    """
    secret_path, public_path = Path(path), public_path_of(path)
    secret, public = reader_key_new()
    _write_new(public_path, public, 0o644)
    try:
        _write_new(secret_path, secret, 0o600)
    except BaseException:
        public_path.unlink(missing_ok=True)
        raise
    return public_path


def public_path_of(path: str | os.PathLike[str]) -> Path:
    """Returns the path of the public key that belongs to a reader's secret key."""
    return Path(f"{os.fspath(path)}.pub")


def _write_new(path: Path, content: bytes, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        handle = os.open(path, flags, mode)
    except FileExistsError:
        raise ConfigError(f"{path} exists, and no key is ever overwritten") from None
    except OSError as error:
        raise ZanonError(f"cannot make {path}: {error.strerror}") from None
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        path.unlink(missing_ok=True)
        raise ZanonError(f"cannot write {path}: {error.strerror}") from None


def check_key(path: str | os.PathLike[str]) -> None:
    """Reads a key file as a run does. Raises the ConfigError or ZanonError that a run raises."""
    Keys(ANY_EPOCH_NS, os.fspath(path))
