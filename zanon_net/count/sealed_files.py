# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Files of records under AES-256-GCM: none is read, changed or moved without it.

    4 magic "ZNCS"    2 version    2 zero    32 salt    then records: u32 length, sealed bytes

A file has a key of its own, HKDF-SHA256(key, salt, info = "zanon-net/1/count-state"), and record n
the nonce n. A file is written once, from its beginning, so that no nonce comes twice.
"""

import base64
import os
import struct
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedReader
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from zanon_net._core import Keys
from zanon_net.errors import ZanonError
from zanon_net.system.file_errors import explained

MAGIC, VERSION = b"ZNCS", 2
PARTIAL = ".partial"
_HEADER = struct.Struct("<4sHH32s")
_LENGTH = struct.Struct("<I")
_INFO = b"zanon-net/1/count-state"
_ANY_EPOCH_NS = 3_600_000_000_000


class StateError(ZanonError):
    """A state cannot be used: it is damaged, of another version, or of another key."""


def read_key(path: str | os.PathLike[str]) -> bytes:
    """The key out of a key file. Raises the ConfigError or ZanonError that a run raises."""
    Keys(_ANY_EPOCH_NS, os.fspath(path))  # checks the file, its line and its mode
    return base64.b64decode(Path(path).read_bytes().strip())


def _cipher(key: bytes, salt: bytes) -> AESGCM:
    return AESGCM(HKDF(SHA256(), 32, salt, _INFO).derive(key))


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "little")


class SealedWriter:
    """Appends records to a new file, NAME.partial until `publish`; bytes: how many so far.

    Raises OutputError.
    """

    def __init__(self, path: Path, key: bytes) -> None:
        self.path = path
        self.bytes = 0
        self._partial = path.with_name(path.name + PARTIAL)
        salt = os.urandom(32)
        self._cipher, self._records = _cipher(key, salt), 0
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with explained("write", path):
            self._fd = os.open(self._partial, flags, 0o600)
            self._write(_HEADER.pack(MAGIC, VERSION, 0, salt))

    def append(self, record: bytes) -> None:
        """Adds a record. After an error none can be read behind it."""
        sealed = self._cipher.encrypt(_nonce(self._records), record, None)
        self._records += 1  # even if only a part of it comes to the disk
        with explained("write", self.path):
            self._write(_LENGTH.pack(len(sealed)) + sealed)

    def sync(self) -> None:
        """Waits until the whole file is on the disk."""
        with explained("write", self.path):
            os.fdatasync(self._fd)

    def publish(self) -> None:
        """Gives the file its name and replaces an older file. The file can still grow."""
        self.sync()
        with explained("write", self.path):
            self._partial.replace(self.path)
            folder = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def close(self) -> None:
        """Closes the file. A second call does nothing."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.close()
        if error is not None:
            with suppress(OSError):
                self._partial.unlink()  # a full disk needs the space

    def _write(self, data: bytes) -> None:
        self.bytes += len(data)
        view = memoryview(data)
        while view:
            view = view[os.write(self._fd, view) :]


def read_records(path: Path, key: bytes, *, may_be_torn: bool = False) -> Iterator[bytes]:
    """Yields the records of a file.

    may_be_torn: its writer may have been killed, so that the last record may be cut or not on disk
    as a whole: it is left out. Raises StateError, and ZanonError where the file cannot be read.
    """
    try:
        with path.open("rb") as file:
            yield from _records(file, path, key, may_be_torn)
    except OSError as error:
        raise ZanonError(f"cannot read {path}: {error.strerror}") from None


def _records(file: BufferedReader, path: Path, key: bytes, may_be_torn: bool) -> Iterator[bytes]:
    header = file.read(_HEADER.size)
    if len(header) < _HEADER.size or header[:4] != MAGIC:
        raise StateError(f"{path} is no state of a counter; give another folder")
    _magic, version, _zero, salt = _HEADER.unpack(header)
    if version != VERSION:
        raise StateError(
            f"{path} is of version {version} of the counter's state, and this program knows"
            f" {VERSION}; go on with the program that wrote it, or give another folder"
        )
    cipher, number = _cipher(key, salt), 0
    size = os.fstat(file.fileno()).st_size
    while prefix := file.read(_LENGTH.size):
        sealed, is_whole = b"", False
        if len(prefix) == _LENGTH.size:
            (length,) = _LENGTH.unpack(prefix)
            sealed = file.read(min(length, size - file.tell()))
            is_whole = len(sealed) == length
        try:
            if not is_whole:
                raise InvalidTag
            record = cipher.decrypt(_nonce(number), sealed, None)
        except InvalidTag:
            if may_be_torn and number > 0 and file.tell() == size:
                return
            raise StateError(
                f"{path} is damaged, or was written with another key; give the key file that it was"
                " begun with, or another folder"
            ) from None
        yield record
        number += 1
