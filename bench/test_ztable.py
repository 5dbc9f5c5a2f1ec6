# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The z-table next to a C++ table, a table of OrderedDicts and zanon 0.3.4.

The C++ table evicts only what an observation touches, as Algorithm 1 is written. The tables in
Python get the first observations of a stream, because they take much longer.
"""

import ctypes
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from measuring import Measure, Size, peer
from ztable_streams import BURST_NS, BURST_TAIL, STEP_NS, Columns, Kind, Stream

from zanon_net import ZTable

DAY_NS = 86_400 * 10**9
MANY = 1 << 27  # above the tuples and attributes of any stream here
COLLIDING = 2_000  # names that collide in the C++ table, whose time is quadratic in them
CPP, ORDERED, ZANON = "C++ unordered_map", "OrderedDict", "zanon 0.3.4"
OURS = {"keep=16": 16, "keep=None": None}
SHARES = {ORDERED: 5, ZANON: 40}
UTILITIES = [f"util/{name}.c" for name in ("arena", "clock", "error", "hash")]

Job = Callable[[Columns], None]


@dataclass(frozen=True)
class Case:
    """A stream and the table's settings. `window` is a number of observations, or 0 for a day."""

    stream: Stream
    z: int = 10
    window: int = 0

    @property
    def window_ns(self) -> int:
        """The window of the table."""
        return self.window * STEP_NS or DAY_NS


CASES = {
    "Zipf, 10^5": Case(Stream(100_000, 10_000, 10_000)),
    "Zipf, 10^6": Case(Stream(1_000_000, 100_000, 100_000)),
    "Zipf, z=350": Case(Stream(1_000_000, 100_000, 100_000), z=350),
    "Zipf, short window": Case(Stream(1_000_000, 100_000, 100_000), window=10_000),
    "unique names, 10^5": Case(Stream(100_000, kind=Kind.UNIQUE_NAMES)),
    "unique names, 10^6": Case(Stream(1_000_000, kind=Kind.UNIQUE_NAMES)),
    "one name, new users": Case(Stream(500_000, kind=Kind.ONE_NAME)),
    "names equal in 32 bits": Case(Stream(200_000, kind=Kind.LOW_BITS)),
    "names that collide in FNV-1a": Case(Stream(200_000, kind=Kind.FNV)),
    "names that collide in the C++ table": Case(Stream(COLLIDING, kind=Kind.REMAINDER)),
}


def columns_of(case: Case, size: Size, library: Any) -> tuple[Case, Columns]:
    """Returns the case in the wanted size, and its observations."""
    s = case.stream
    n = size.of(s.observations)
    ranks = size.of(s.names) if s.names else 0
    multiple = library.list_buckets(n) if s.kind is Kind.REMAINDER else 1
    case = replace(
        case,
        stream=Stream(n, ranks, ranks, s.kind, multiple),
        window=size.of(case.window) if case.window else 0,
    )
    return case, case.stream.columns()


@pytest.fixture(scope="session")
def cpp(build_c: Callable[..., ctypes.CDLL]) -> ctypes.CDLL:
    """Returns the library of the C++ table."""
    library = build_c("ztable_list.cpp")
    library.list_open.restype = ctypes.c_void_p
    library.list_buckets.restype = ctypes.c_uint64
    library.list_buckets.argtypes = [ctypes.c_uint64]
    library.list_run.restype = ctypes.c_double
    return library


def pointers(columns: Columns) -> ctypes.Array[ctypes.c_void_p]:
    """Returns the three columns as C takes them; valid while they live."""
    arrays = (columns.t_ns, columns.user, columns.name)
    return (ctypes.c_void_p * 3)(*(array.ctypes.data for array in arrays))


def our_table(case: Case, keep: int | None) -> ZTable:
    """Returns a new table, which keeps at least z users."""
    keep = keep and max(keep, case.z)
    return ZTable(case.z, case.window_ns, keep=keep, max_tuples=MANY, max_attributes=MANY // 4)


def observe_batch(table: ZTable, columns: Columns) -> None:
    """Feeds the columns as a user of Python does."""
    for part in columns.chunks(0, len(columns)):
        table.observe_batch(part.t_ns, part.user, part.name)


def observe_ordered(case: Case, rows: list[tuple[int, int, int]]) -> int:
    """Algorithm 1 with an OrderedDict of users for each name. Returns the number released."""
    names: dict[int, OrderedDict[int, int]] = {}
    window_ns, z, released = case.window_ns, case.z, 0
    for t_ns, user, name in rows:
        users = names.get(name)
        if users is None:
            users = names[name] = OrderedDict()
        users[user] = t_ns
        users.move_to_end(user)
        oldest = t_ns - window_ns
        while users[next(iter(users))] < oldest:
            users.popitem(last=False)
        released += len(users) >= z
    return released


def zanon_table(case: Case) -> Any:
    """Returns zanon 0.3.4, by the authors of the paper, with a fixed z."""
    from zanonymity.zanon import zanon  # type: ignore[import-not-found]

    table = zanon(case.window_ns / 1e9, 0.8, 2)
    table.z, table.rate = case.z, float("inf")
    return table


def rows_of(columns: Columns, n: int) -> list[tuple[int, int, int]]:
    """Returns the first n observations as numbers of Python."""
    return list(
        zip(*(c[:n].tolist() for c in (columns.t_ns, columns.user, columns.name)), strict=True)
    )


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("who", [*OURS, peer(CPP), peer(ORDERED), peer(ZANON)])
def test_observe_batch(
    name: str, who: str, size: Size, cpp: ctypes.CDLL, measure: Measure,
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path,
) -> None:  # fmt: skip
    case, columns = columns_of(CASES[name], size, cpp)
    group = f"z-table: {name}"
    n = len(columns) // SHARES.get(who, 1)
    if who in OURS:
        table = our_table(case, OURS[who])
        observe_batch(table, columns)
        live = columns.distinct(min(case.window + 1 if case.window else n, n))
        facts = {"bytes a live tuple:": f"{table.memory_bytes / live:.1f}"}
        del table
        opened = partial(our_table, case, OURS[who])
        measure(group, observe_batch, n, prepare=lambda: (opened(), columns), **facts)
    elif who == CPP:
        measure_cpp(group, case, columns, cpp, measure)
    elif who == ORDERED:
        measure(group, observe_ordered, n, prepare=lambda: (case, rows_of(columns, n)))
    else:
        monkeypatch.chdir(tmp_path)  # zanon writes files
        texts = [(str(t / 1e9), str(u), str(a)) for t, u, a in rows_of(columns, n)]

        def job(table: Any) -> None:
            for row in texts:
                table.anonymize(row)

        measure(group, job, n, prepare=lambda: (zanon_table(case),))


def measure_cpp(
    group: str, case: Case, columns: Columns, library: ctypes.CDLL, measure: Measure
) -> None:
    """Measures the C++ table on all columns."""
    opened: list[ctypes.c_void_p] = []

    def prepare() -> tuple[ctypes.c_void_p]:
        while opened:
            library.list_close(opened.pop())
        opened.append(
            ctypes.c_void_p(library.list_open(case.z, ctypes.c_int64(case.window_ns), 0, 0))
        )
        return (opened[0],)

    def job(table: ctypes.c_void_p) -> None:
        library.list_run(table, pointers(columns), ctypes.c_size_t(len(columns)))

    measure(group, job, len(columns), prepare=prepare)
    library.list_close(opened.pop())


@pytest.mark.parametrize("who", [*OURS, peer(ORDERED)])
def test_observe(who: str, size: Size, cpp: ctypes.CDLL, measure: Measure) -> None:
    case, columns = columns_of(CASES["Zipf, 10^5"], size, cpp)
    group = "z-table: observe, one call an observation"
    rows = rows_of(columns, len(columns))
    if who == ORDERED:
        measure(group, observe_ordered, len(rows), prepare=lambda: (case, rows))
        return
    texts = [(t, u.to_bytes(8, "little"), a.to_bytes(8, "little")) for t, u, a in rows]

    def job(table: ZTable) -> None:
        observe = table.observe
        for t_ns, user, name in texts:
            observe(t_ns, user, name)

    measure(group, job, len(rows), prepare=lambda: (our_table(case, OURS[who]),))


@pytest.mark.parametrize("kind", ["Zipf", "a burst leaves"])
@pytest.mark.parametrize("who", ["keep=16", "keep=None", peer(CPP)])
def test_single_calls(
    kind: str, who: str, size: Size, cpp: ctypes.CDLL, build_c: Callable[..., ctypes.CDLL],
    measure: Measure,
) -> None:  # fmt: skip
    """Wall time of each call in C. The longest of them is printed, in us."""
    n = size.of(500_000)
    stream, window_ns = Stream(n, n // 10, n // 10), DAY_NS
    if kind != "Zipf":
        stream, window_ns = Stream(max(n, 2 * BURST_TAIL), kind=Kind.BURST), BURST_NS
    columns = stream.columns()
    sources = ("anonymity/ztable*.c", *(f"util/{x}.c" for x in ("arena", "clock", "error", "hash")))
    library, prefix = (
        (cpp, "list") if who == CPP else (build_c("ztable_calls.c", *sources), "calls")
    )
    call = {verb: getattr(library, f"{prefix}_{verb}") for verb in ("open", "each", "close")}
    call["open"].restype = ctypes.c_void_p
    took = np.empty(len(columns), np.uint32)

    def job() -> None:
        keep = (OURS[who] or 0) if who in OURS else 0
        table = ctypes.c_void_p(call["open"](10, ctypes.c_int64(window_ns), keep, MANY))
        out = ctypes.c_void_p(took.ctypes.data)
        call["each"](table, pointers(columns), ctypes.c_size_t(len(columns)), out)
        call["close"](table)

    job()
    longest = ", ".join(f"{x / 1e3:.2f}" for x in np.percentile(took, (99, 99.99, 100)))
    facts = {"us of 99 %, 99.99 % and all calls at most:": longest}
    measure(f"z-table: single calls, {kind}", job, len(columns), **facts)


LEVELS_ON, LEVELS_OFF = "levels on", "levels off"
LEVEL_CASES = {
    "z=5": Case(Stream(1_000_000, 10_000, 10_000), z=5),
    "z=20": Case(Stream(1_000_000, 10_000, 10_000), z=20),
    "many names": Case(Stream(1_000_000, 100_000, 100_000)),
}


@pytest.mark.parametrize("name", LEVEL_CASES)
@pytest.mark.parametrize("who", [LEVELS_ON, peer(LEVELS_OFF)])
def test_levels(
    name: str, who: str, size: Size, build_c: Callable[..., ctypes.CDLL], measure: Measure
) -> None:
    """Names with domains and categories above them, beside the z-table alone."""
    case = LEVEL_CASES[name]
    n = size.of(case.stream.observations)
    names = size.of(case.stream.names)
    columns = Stream(n, names, names).columns()
    rng = np.random.default_rng(2)
    domains = rng.integers(1, names // 4 + 2, names).astype(np.uint64)[columns.name]
    categories = rng.integers(1, 60, names // 4 + 2).astype(np.uint64)[domains]
    sources = ("anonymity/ztable*.c", "anonymity/levels.c", "anonymity/vote_table.c", *UTILITIES)
    library = build_c("levels_calls.c", *sources)
    library.levels_make.restype = ctypes.c_void_p
    run = library.levels_on if who == LEVELS_ON else library.levels_off
    run.restype = ctypes.c_double
    labels = (ctypes.c_void_p(column.ctypes.data) for column in (domains, categories))
    made = ctypes.c_void_p(
        library.levels_make(pointers_and_domain(columns), *labels, ctypes.c_size_t(n))
    )
    published = (ctypes.c_uint64 * 3)()

    def job() -> None:
        run(made, case.z, ctypes.c_int64(case.window_ns), published)

    job()
    facts = {"published by level:": ", ".join(f"{count / n:.1%}" for count in published)}
    measure(f"z-table: levels, {name}", job, n, **facts if who == LEVELS_ON else {})
    library.levels_free(made)


class ZnColumns(ctypes.Structure):
    """zn_columns."""

    _fields_ = (
        ("t_ns", ctypes.c_void_p),
        ("user", ctypes.c_void_p),
        ("attribute", ctypes.c_void_p),
        ("domain", ctypes.c_uint8),
    )


def pointers_and_domain(columns: Columns) -> Any:
    """Returns the columns as zn_columns; valid while they live."""
    arrays = (columns.t_ns, columns.user, columns.name)
    return ctypes.byref(ZnColumns(*(array.ctypes.data for array in arrays), 1))
