# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A second ZTable, on a build of csrc/anonymity/ztable with tiny records and lists from four users
on: cases that take hundreds of users in the real module take five here."""

import ctypes
import hashlib
import os
import weakref
from functools import cache
from pathlib import Path

import numpy as np

from support.c_build import CSRC, LAYOUTS, SANITIZE, ZTABLE, compile_c
from support.shared import built_once
from zanon_net import ConfigError, ZTable

COUNTERS = ("observations", "released", "below_z", "too_late", "late", "late_deep", "no_room")
COUNTERS += ("clock_jumps", "evicted", "tuples", "attributes")


class Config(ctypes.Structure):
    """zn_ztable_config."""

    _fields_ = (
        ("size", ctypes.c_size_t),
        ("z", ctypes.c_uint32),
        ("window_ns", ctypes.c_int64),
        ("keep", ctypes.c_uint32),
        ("max_tuples", ctypes.c_uint32),
        ("max_attributes", ctypes.c_uint32),
        ("max_jump_ns", ctypes.c_int64),
        ("rebase_after", ctypes.c_uint32),
        ("reserve", ctypes.c_bool),
    )


class Error(ctypes.Structure):
    """zn_error."""

    _fields_ = (("code", ctypes.c_int), ("os_errno", ctypes.c_int), ("msg", ctypes.c_char * 256))


class Id(ctypes.Structure):
    """zn_id."""

    _fields_ = (("lo", ctypes.c_uint64), ("hi", ctypes.c_uint64))


class Observation(ctypes.Structure):
    """zn_observation."""

    _fields_ = (("t_ns", ctypes.c_int64), ("user", ctypes.c_uint64), ("attribute", Id))


class Stats(ctypes.Structure):
    """zn_ztable_stats."""

    _fields_ = tuple((name, ctypes.c_uint64) for name in COUNTERS)


@cache
def load(layout: str) -> ctypes.CDLL:
    """The table as a library with its symbols visible."""
    # The library has the sanitizers under which Python runs.
    flags = [*(SANITIZE if "ZANON_SANITIZE" in os.environ else []), *LAYOUTS[layout]]

    def make(folder: Path) -> None:
        compile_c(folder / "ztable.so", ZTABLE, "-O1", "-fPIC", "-shared", *flags)

    library = ctypes.CDLL(str(built_once(f"ztable-{layout}", make) / "ztable.so"))
    handle = ctypes.c_void_p
    library.zn_ztable_open.argtypes = [ctypes.POINTER(handle), *[handle] * 2]
    library.zn_ztable_close.argtypes = [handle]
    library.zn_ztable_clear.argtypes = [handle]
    library.zn_ztable_observe.argtypes = [handle, handle]
    library.zn_ztable_observe_batch.argtypes = [handle, handle, ctypes.c_size_t, handle]
    library.zn_ztable_memory.argtypes = [handle]
    library.zn_ztable_memory.restype = ctypes.c_size_t
    library.zn_ztable_count.argtypes = [handle, Id]
    library.zn_ztable_count.restype = ctypes.c_uint64
    library.zn_ztable_count_at.argtypes = [handle, Id, ctypes.c_int64]
    library.zn_ztable_count_at.restype = ctypes.c_uint64
    library.zn_ztable_set_z.argtypes = [handle, ctypes.c_uint32, handle]
    library.zn_ztable_export.argtypes = [handle, handle, handle, ctypes.c_size_t]
    library.zn_ztable_export.restype = ctypes.c_size_t
    library.zn_ztable_import.argtypes = [handle, ctypes.c_char_p, ctypes.c_size_t, handle]
    library.zn_ztable_get_stats.argtypes = [handle]
    library.zn_ztable_get_stats.restype = Stats
    library.zn_ztable_check.argtypes = [handle]
    library.zn_ztable_check.restype = ctypes.c_char_p
    library.zn_alloc_fail_after.argtypes = [ctypes.c_uint64]
    return library


def words(text: bytes, n: int) -> list[int]:
    """The first n 64-bit words of a hash."""
    digest = hashlib.blake2b(text).digest()
    return [int.from_bytes(digest[8 * i : 8 * i + 8], "little") for i in range(n)]


def as_bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text


def mix(x: np.ndarray) -> np.ndarray:
    """64 bits that look random, different for each number."""
    with np.errstate(over="ignore"):
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            x = (x + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(factor)
            x ^= x >> np.uint64(shift)
    return x


class Cursor(ctypes.Structure):
    """zn_ztable_cursor."""

    _fields_ = (("words", ctypes.c_uint64 * 8), ("numbers", ctypes.c_uint32 * 5))


OBSERVATION = np.dtype([("t_ns", "i8"), ("user", "u8"), ("lo", "u8"), ("hi", "u8")])


class SmallZTable:
    """The arguments and answers of ZTable that tests of both layouts use."""

    def __init__(
        self,
        z: int,
        window_ns: int,
        *,
        keep: int | None = None,
        max_tuples: int = 1 << 24,
        max_attributes: int = 1 << 22,
        max_jump_ns: int | None = None,
        rebase_after: int = 256,
    ) -> None:
        config, error = (
            Config(ctypes.sizeof(Config), z, window_ns, keep or 0, max_tuples, max_attributes),
            Error(),
        )
        config.max_jump_ns, config.rebase_after = max_jump_ns or 0, rebase_after
        self.c = load("small")
        self.config = config
        self.table = ctypes.c_void_p()
        code = self.c.zn_ztable_open(
            ctypes.byref(self.table), ctypes.byref(config), ctypes.byref(error)
        )
        if code != 0:
            raise ConfigError(error.msg.decode())
        weakref.finalize(self, self.c.zn_ztable_close, self.table)
        self.z = z

    def observe(self, t_ns: int, user: str | bytes, attribute: str | bytes) -> bool:
        identity = Id(*words(as_bytes(attribute), 2))
        o = Observation(t_ns, words(as_bytes(user), 1)[0], identity)
        return bool(self.c.zn_ztable_observe(self.table, ctypes.byref(o)) == 0)

    def observe_batch(
        self, t_ns: np.ndarray, user: np.ndarray, attribute: np.ndarray
    ) -> np.ndarray:
        o = np.empty(len(t_ns), OBSERVATION)
        o["t_ns"], o["user"], o["lo"], o["hi"] = t_ns, mix(user), mix(attribute), mix(~attribute)
        decisions = np.empty(len(t_ns), np.uint8)
        self.c.zn_ztable_observe_batch(self.table, o.ctypes.data, len(o), decisions.ctypes.data)
        return decisions == 0

    def export(self, step: int = 1 << 20) -> bytes:
        """A snapshot, taken in steps of so many bytes."""
        cursor, part, parts = Cursor(), ctypes.create_string_buffer(step), []
        while n := self.c.zn_ztable_export(self.table, ctypes.byref(cursor), part, step):
            parts.append(part.raw[:n])
        return b"".join(parts)

    def restored(self, snapshot: bytes) -> "SmallZTable":
        """Another table with the same settings, from a snapshot."""
        c = self.config
        table = SmallZTable(
            self.z,
            c.window_ns,
            keep=c.keep or None,
            max_tuples=c.max_tuples,
            max_attributes=c.max_attributes,
            max_jump_ns=c.max_jump_ns or None,
            rebase_after=c.rebase_after,
        )
        table.take_in(snapshot)
        return table

    def take_in(self, snapshot: bytes) -> None:
        """Puts a snapshot into this table."""
        error = Error()
        if self.c.zn_ztable_import(self.table, snapshot, len(snapshot), ctypes.byref(error)) != 0:
            raise ConfigError(error.msg.decode())

    def count(self, attribute: str | bytes) -> int:
        return int(self.c.zn_ztable_count(self.table, Id(*words(as_bytes(attribute), 2))))

    def count_at(self, attribute: bytes, t_ns: int) -> int:
        return int(self.c.zn_ztable_count_at(self.table, Id(*words(attribute, 2)), t_ns))

    def set_z(self, z: int) -> None:
        if self.c.zn_ztable_set_z(self.table, z, None) != 0:
            raise ConfigError("z")
        self.z = z

    def clear(self) -> None:
        self.c.zn_ztable_clear(self.table)

    def check(self) -> None:
        broken = self.c.zn_ztable_check(self.table)
        assert broken is None, broken

    @property
    def stats(self) -> dict[str, int]:
        stats = self.c.zn_ztable_get_stats(self.table)
        return {name: getattr(stats, name) for name in COUNTERS}

    @property
    def memory_bytes(self) -> int:
        return int(self.c.zn_ztable_memory(self.table))


# For tests that take a table of either layout; tests of a wheel have no sources to build from.
AnyTable = ZTable | SmallZTable
TABLES: list[type[AnyTable]] = [ZTable, *([SmallZTable] if CSRC.is_dir() else [])]
