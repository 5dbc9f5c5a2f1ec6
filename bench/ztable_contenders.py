# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The tables that bench/ztable.py compares: each takes columns and returns the time for them."""

import ctypes
import os
import subprocess
import tempfile
import time
from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from ztable_streams import Columns

from zanon_net import ZTable

BENCH = Path(__file__).resolve().parent
CSRC = BENCH.parent / "csrc"
MAX_ATTRIBUTES = 1 << 25


class Who(Enum):
    """The tables."""

    BATCH = "zanon-net"
    SINGLE = "zanon-net, `observe`"
    CPP = "C++ unordered_map + list"
    ORDERED = "OrderedDict of OrderedDicts"
    ZANON = "zanon 0.3.4"


@dataclass(frozen=True, slots=True)
class Setting:
    """The arguments of every table."""

    z: int
    window_ns: int
    keep: int | None = None
    max_tuples: int = 1 << 27
    max_attributes: int = MAX_ATTRIBUTES
    reserve: bool = False  # reserve all memory of the caps when the table is opened


class Contender(Protocol):
    """A z-table that can be fed."""

    def run(self, columns: Columns) -> float:
        """Returns CPU seconds for the observations."""

    def memory(self) -> int:
        """Bytes as the table itself says, or 0."""

    def close(self) -> None:
        """Gives everything back."""


class Batch:
    """zanon_net.ZTable.observe_batch: what users call."""

    def __init__(self, setting: Setting) -> None:
        start = time.process_time()
        self.table = ZTable(
            setting.z,
            setting.window_ns,
            keep=setting.keep,
            max_tuples=setting.max_tuples,
            max_attributes=setting.max_attributes,
            reserve=setting.reserve,
        )
        self.open_seconds = time.process_time() - start

    def run(self, columns: Columns) -> float:
        start = time.process_time()
        self.table.observe_batch(columns.t_ns, columns.user, columns.name)
        return time.process_time() - start

    def memory(self) -> int:
        return self.table.memory_bytes

    def close(self) -> None:
        del self.table


class Single(Batch):
    """zanon_net.ZTable.observe: one call an observation, users and names as bytes."""

    def run(self, columns: Columns) -> float:
        users = [user.to_bytes(8, "little") for user in columns.user.tolist()]
        names = [name.to_bytes(8, "little") for name in columns.name.tolist()]
        times = columns.t_ns.tolist()
        observe = self.table.observe
        start = time.process_time()
        for t_ns, user, name in zip(times, users, names, strict=True):
            observe(t_ns, user, name)
        return time.process_time() - start


class Ordered:
    """Algorithm 1 with an OrderedDict of users for each attribute."""

    def __init__(self, setting: Setting) -> None:
        self._z, self._window_ns = setting.z, setting.window_ns
        self._names: dict[int, OrderedDict[int, int]] = {}

    def _observe(self, t_ns: int, user: int, name: int) -> bool:
        users = self._names.get(name)
        if users is None:
            users = self._names[name] = OrderedDict()
        users[user] = t_ns
        users.move_to_end(user)
        oldest = t_ns - self._window_ns
        while users[next(iter(users))] < oldest:
            users.popitem(last=False)
        return len(users) >= self._z

    def run(self, columns: Columns) -> float:
        rows = zip(columns.t_ns.tolist(), columns.user.tolist(), columns.name.tolist(), strict=True)
        start = time.process_time()
        for t_ns, user, name in rows:
            self._observe(t_ns, user, name)
        return time.process_time() - start

    def memory(self) -> int:
        return 0

    def close(self) -> None:
        self._names.clear()


class Zanon:
    """zanon 0.3.4 by the authors of the paper. It writes files, here into a folder of its own."""

    def __init__(self, setting: Setting) -> None:
        from zanonymity.zanon import zanon  # type: ignore[import-not-found]

        self._folder = tempfile.TemporaryDirectory()
        os.chdir(self._folder.name)
        self._table = zanon(setting.window_ns / 1e9, 0.8, 2)
        self._table.z = setting.z
        self._table.rate = float("inf")  # z stays as it is

    def run(self, columns: Columns) -> float:
        rows = [
            (str(t_ns / 1e9), str(user), str(name))
            for t_ns, user, name in zip(
                columns.t_ns.tolist(), columns.user.tolist(), columns.name.tolist(), strict=True
            )
        ]
        anonymize = self._table.anonymize
        start = time.process_time()
        for row in rows:
            anonymize(row)
        return time.process_time() - start

    def memory(self) -> int:
        return 0

    def close(self) -> None:
        self._table.endFiles()
        os.chdir(BENCH)
        self._folder.cleanup()


def compile_shared(folder: Path) -> None:
    """Compiles the C++ table and the timing of single calls into `folder`."""
    flags = ["-O2", "-fPIC", "-shared"]
    names = ("arena", "clock", "error", "hash")
    base = [CSRC / "util" / f"{name}.c" for name in names]
    table = sorted((CSRC / "anonymity").glob("ztable*.c"))
    c_flags = ["-std=c11", "-D_GNU_SOURCE", f"-I{CSRC}", f"-I{CSRC}/include"]
    calls = [BENCH / "ztable_calls.c", *table, *base]
    subprocess.run(["cc", *flags, *c_flags, *calls, "-o", folder / "calls.so"], check=True)
    cpp = ["-std=c++17", BENCH / "ztable_list.cpp"]
    subprocess.run(["c++", *flags, *cpp, "-o", folder / "list.so"], check=True)


def pointers(columns: Columns) -> ctypes.Array[ctypes.c_void_p]:
    """Returns the three columns as C takes them; valid while they live."""
    arrays = (columns.t_ns, columns.user, columns.name)
    return (ctypes.c_void_p * 3)(*(array.ctypes.data for array in arrays))


class Shared:
    """A table in a library compiled by compile_shared, with the names prefix_open and so on."""

    def __init__(self, folder: Path, prefix: str, setting: Setting) -> None:
        self._library = ctypes.CDLL(str(folder / f"{prefix}.so"))
        self._prefix = prefix
        window = ctypes.c_int64(setting.window_ns)
        self._call("open").restype = ctypes.c_void_p
        table = self._call("open")(setting.z, window, setting.keep or 0, setting.max_tuples)
        if not table:
            raise MemoryError("the table cannot be made")
        self._table = ctypes.c_void_p(table)

    def _call(self, verb: str) -> Any:
        return getattr(self._library, f"{self._prefix}_{verb}")

    def run(self, columns: Columns) -> float:
        function = self._call("run")
        function.restype = ctypes.c_double
        return float(function(self._table, pointers(columns), ctypes.c_size_t(len(columns))))

    def each(self, columns: Columns) -> npt.NDArray[np.uint32]:
        """Wall time of each call in ns."""
        took = np.empty(len(columns), np.uint32)
        size, out = ctypes.c_size_t(len(columns)), ctypes.c_void_p(took.ctypes.data)
        self._call("each")(self._table, pointers(columns), size, out)
        return took

    def memory(self) -> int:
        return 0

    def close(self) -> None:
        self._call("close")(self._table)


def list_buckets(folder: Path, names: int) -> int:
    """Returns the number of buckets of the C++ table with `names` names."""
    library = ctypes.CDLL(str(folder / "list.so"))
    library.list_buckets.restype = ctypes.c_uint64
    return int(library.list_buckets(ctypes.c_uint64(names)))


def make(who: Who, setting: Setting, folder: Path) -> Contender:
    """Returns a new table of this kind; raises ModuleNotFoundError if its package is missing."""
    match who:
        case Who.BATCH:
            return Batch(setting)
        case Who.SINGLE:
            return Single(setting)
        case Who.CPP:
            return Shared(folder, "list", setting)
        case Who.ORDERED:
            return Ordered(setting)
        case Who.ZANON:
            return Zanon(setting)
