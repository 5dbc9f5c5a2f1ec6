# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a z-table costs: the figure it gives, caps for a budget, and memory that runs out."""

import ctypes
import itertools
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from support import small_ztable
from support.examples import EVERY_CASE

from zanon_net import CapacityError, ConfigError, ZTable, _core, caps_for_bytes

SECOND = 10**9
DAY = 86_400 * SECOND
MIB = 1 << 20


def in_a_process(program: str, *arguments: object) -> list[int]:
    """The numbers that a program prints, in a process whose memory nothing else disturbs."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return list(map(int, done.stdout.split()))


HEAD = """
import numpy as np, resource, sys
from zanon_net import ZTable, caps_for_bytes
keep = eval(sys.argv[1])
def rss():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
def feed(table, t_ns, n, make):
    for at in range(0, n, 50_000):  # in small parts, whose arrays cost nothing that counts
        i = np.arange(at, min(at + 50_000, n))
        user, attribute = make(i)
        t = np.full(len(i), t_ns, np.int64)
        table.observe_batch(t, user.astype(np.uint64), attribute.astype(np.uint64))
rng = np.random.default_rng(1)
def zipf(i):
    n = len(i)
    return rng.integers(0, 100_000, n), (rng.pareto(0.7, n) * 10).astype(np.int64)
warm = ZTable(3, 10**9, keep=keep)
feed(warm, 10**18, 200_000, zipf)  # what Python and numpy take
warm.clear()
"""

TRUE = """
n = int(sys.argv[2])
table = ZTable(3, 10**9, keep=keep)
before = rss() - table.memory_bytes
def tell():
    print(rss() - before, table.memory_bytes)
for step in range(4):
    feed(table, 10**18, n, zipf)
    tell()
feed(table, 10**18, n, lambda i: (i, i % 3))  # three attributes of everybody
tell()
feed(table, 10**18 + 10**9 + 1, n, lambda i: (i % 2, i % 5))  # all else is reclaimed
tell()
assert table.stats["attributes"] == 5 and table.stats["tuples"] == 10
feed(table, 10**18 + 10**9 + 1, n, zipf)
tell()
table.clear()
tell()
feed(table, 10**18, n, zipf)
tell()
"""

no_proc = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs /proc")
foreign_memory = pytest.mark.skipif(
    "ZANON_SANITIZE" in os.environ, reason="a sanitizer's memory is not ours"
)


class TestTrue:
    @pytest.mark.slow
    @no_proc
    @foreign_memory
    @pytest.mark.family(3)
    @pytest.mark.parametrize("keep", [None, 3, 16, 350, 2000])
    def test_memory_bytes_is_the_growth_of_the_process(self, keep: int | None) -> None:
        told = in_a_process(HEAD + TRUE, keep, 1_000_000 if EVERY_CASE else 400_000)
        steps = list(zip(told[::2], told[1::2], strict=True))
        for step, (grown, said) in enumerate(steps):
            assert abs(grown - said) < 0.05 * said + 4 * MIB, f"step {step}"
        cleared = steps[-2]
        assert cleared[1] < MIB  # clear() gives everything back


RESERVED = """
tuples, attributes = 300_000, 100_000
before = rss()
table = ZTable(3, 10**9, keep=keep, max_tuples=tuples, max_attributes=attributes, reserve=True)
def tell():
    print(rss() - before, table.memory_bytes)
tell()
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
chunk = [(np.full(20_000, 10**18, np.int64), *(part.astype(np.uint64) for part in made))
         for made in (zipf(np.arange(20_000)), (np.arange(20_000), np.arange(20_000)))]
for one in chunk:
    table.observe_batch(*one)  # the answers' memory
had = faults()
for step in range(40):
    for t_ns, user, attribute in chunk:
        table.observe_batch(t_ns, user + np.uint64(step), attribute)
print(faults() - had, table.stats["tuples"])
tell()
table.clear()
tell()
"""


class TestReserve:
    @no_proc
    @foreign_memory
    @pytest.mark.parametrize("keep", [None, 3, 350])
    def test_all_memory_is_there_from_the_start(self, keep: int | None) -> None:
        told = in_a_process(HEAD + RESERVED, keep)
        opened, (faults, tuples), fed, cleared = zip(told[::2], told[1::2], strict=True)
        assert opened[1] > 10 * MIB
        for grown, said in (opened, fed, cleared):
            assert said == opened[1]
            assert abs(grown - said) < 0.02 * said + 4 * MIB
        assert tuples > 50_000
        assert faults * 4096 < opened[1] / 20  # what NumPy's arrays took

    def test_it_decides_as_any_other_and_caps_hold(self) -> None:
        rng = np.random.default_rng(5)
        t_ns = np.cumsum(rng.integers(0, 2 * SECOND, 20_000))
        user, attribute = (rng.integers(0, n, 20_000).astype(np.uint64) for n in (200, 90))
        for keep in (None, 4, 2000):
            caps = {"keep": keep, "max_tuples": 700, "max_attributes": 60}
            one, other = (ZTable(3, 400 * SECOND, reserve=r, **caps) for r in (False, True))
            for table in (one, other):
                table.observe_batch(t_ns, user, attribute)  # then again, in used memory
                table.clear()
            assert np.array_equal(
                one.observe_batch(t_ns, user, attribute),
                other.observe_batch(t_ns, user, attribute),
            )
            assert one.stats == other.stats
            assert other.stats["evicted"] > 100
            assert other.stats["tuples"] <= 700
            assert other.stats["attributes"] <= 60
            other.check()

    @pytest.mark.parametrize("caps", [{}, {"max_tuples": 10}, {"max_attributes": 10}])
    def test_caps_have_to_be_given(self, caps: dict[str, int]) -> None:
        with pytest.raises(ConfigError, match=r"^reserve needs max_tuples and max_attributes.*$"):
            ZTable(3, SECOND, reserve=True, **caps)

    @no_proc
    def test_more_than_there_is(self) -> None:
        with pytest.raises(CapacityError, match=r"reserves \d+ MiB.* \d+ MiB are left; lower"):
            ZTable(3, SECOND, max_tuples=2**31, max_attributes=2**27, reserve=True)

    @pytest.mark.source
    @pytest.mark.parametrize("keep", [None, 4])
    def test_memory_that_cannot_be_had(self, keep: int | None) -> None:
        for n in itertools.count(1):
            _core.fail_allocation(n)
            with suppress(CapacityError):
                ZTable(3, SECOND, keep=keep, max_tuples=99, max_attributes=9, reserve=True)
                break
        _core.fail_allocation(0)
        assert n > 6  # blocks, and memory for each


def hostile_steps(table: ZTable, tuples: int) -> Iterator[int]:
    """Brings each form of storage to its largest, one after the other; yields the memory used."""
    t_ns = 10**18
    for users in (1, 2, 3, 4, 6, 9, 12, 17, 25, 37, 55, 81, 121, 181, 281, 1001, 5000):
        number = np.arange(tuples + 2 * users, dtype=np.uint64)
        t_ns += 10 * SECOND  # the window is over: nothing that was there is needed any more
        for user, attribute in (
            (number % np.uint64(users), number // np.uint64(users)),
            (number[:1].repeat(tuples), number[:1].repeat(tuples)),
        ):
            table.observe_batch(np.full(len(user), t_ns, np.int64), user, attribute)
            yield table.memory_bytes


BUDGET = """
budget = int(sys.argv[2])
tuples, attributes = caps_for_bytes(budget, keep)
n = 2 * tuples
inputs = {
    "unique names": lambda i: (0 * i, i),
    "one name": lambda i: (i, 0 * i),
    "pairs": lambda i: (i, i // 2),
    "zipf": zipf,
}
for name, make in inputs.items():
    table = ZTable(3, 10**9, keep=keep, max_tuples=tuples, max_attributes=attributes)
    before = rss() - table.memory_bytes
    feed(table, 10**18, n, make)
    stats = table.stats
    assert stats["tuples"] > 0.9 * tuples or stats["attributes"] > 0.9 * attributes or keep, name
    print(rss() - before, table.memory_bytes)
    del table
"""


class TestBudget:
    @pytest.mark.parametrize("budget", [300_000, 4 * MIB])
    @pytest.mark.parametrize("keep", [None, 1, 5, 16, 350, 5000])
    def test_no_input_goes_beyond_it(self, keep: int | None, budget: int) -> None:
        tuples, attributes = caps_for_bytes(budget, keep)
        table = ZTable(
            1, SECOND, keep=keep, max_tuples=tuples, max_attributes=attributes, rebase_after=1
        )
        most = max(hostile_steps(table, tuples))
        assert budget / 4 < most <= budget  # neither is the bound out of reach
        table.clear()
        assert max(hostile_steps(table, tuples)) <= budget
        table.check()

    @pytest.mark.slow
    @no_proc
    @foreign_memory
    @pytest.mark.parametrize("keep", [None, 16])
    def test_nor_does_the_process(self, keep: int | None) -> None:
        budget = (200 if EVERY_CASE else 80) * MIB
        told = in_a_process(HEAD + BUDGET, keep, budget)
        for grown, said in zip(told[::2], told[1::2], strict=True):
            assert said <= budget
            assert grown <= budget + 4 * MIB

    def test_more_memory_is_more_room(self) -> None:
        for keep in (None, 3, 16, 2000):
            caps = [caps_for_bytes(MIB << i, keep) for i in range(0, 16, 3)]
            assert caps == sorted(set(caps))
            for tuples, attributes in caps:
                assert attributes == min(tuples // 4, 1 << 27)

    def test_they_are_the_largest(self) -> None:
        """With a budget that is just too small for them, they are smaller."""
        tuples, _ = caps_for_bytes(10 * MIB, 16)
        low, high = 1, 10 * MIB  # the smallest budget that still gives as many
        while low < high:
            middle = (low + high) // 2
            try:
                enough = caps_for_bytes(middle, 16)[0] >= tuples
            except ConfigError:
                enough = False
            low, high = (low, middle) if enough else (middle + 1, high)
        assert 9 * MIB < high <= 10 * MIB
        assert caps_for_bytes(high - 1, 16)[0] < tuples

    def test_the_largest_budget(self) -> None:
        tuples, attributes = caps_for_bytes(2**62)
        assert 2**24 < tuples <= 2**31
        assert attributes <= 2**27

    @pytest.mark.parametrize(
        ("budget", "keep", "error"),
        [
            (0, None, ConfigError),
            (50_000, None, ConfigError),
            (-1, None, ConfigError),
            (2**63, None, ConfigError),
            (MIB, 0, ConfigError),
            (MIB, 2**32, ConfigError),
            (1.5, None, TypeError),
            ("1G", None, TypeError),
        ],
    )
    def test_wrong_ones_are_refused(
        self, budget: int, keep: int | None, error: type[Exception]
    ) -> None:
        with pytest.raises(error):
            caps_for_bytes(budget, keep)


SMALL_ADDRESS_SPACE = """
import resource, sys
from zanon_net import CapacityError, ZTable, caps_for_bytes
small = ZTable(2, 10, max_tuples=1000, max_attributes=1000)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (8 << 20), used + (8 << 20)))
failed = 0
for keep in (None, 2, 16, 5000):
    try:
        ZTable(2, 10, keep=keep)
    except CapacityError as error:
        assert "memory" in str(error)
        failed += 1
tuples, attributes = caps_for_bytes(1 << 40)  # what there is room for
table = ZTable(2, 10, max_tuples=tuples, max_attributes=attributes)
released = sum(small.observe(i, "u%d" % (i % 2), "a") for i in range(1000))
small.check()
print(failed, tuples, released)
"""


class TestOutOfMemory:
    @pytest.mark.source
    @pytest.mark.parametrize("keep", [None, 4, 100, 5000])
    def test_an_allocation_that_fails_is_an_error_and_no_more(self, keep: int | None) -> None:
        options = {"keep": keep, "max_tuples": 1000, "max_attributes": 1000}
        said = set()
        try:
            for n in itertools.count(1):
                _core.fail_allocation(n)
                try:
                    table = ZTable(3, DAY, **options)
                    break
                except CapacityError as error:
                    said.add("memory" in str(error))
        finally:
            _core.fail_allocation(0)
        assert n > 3
        assert said == {True}
        table.check()

    @pytest.mark.source
    @pytest.mark.parametrize("keep", [None, 2, 2000])
    def test_nothing_is_allocated_once_it_is_open(self, keep: int | None) -> None:
        table, other = (ZTable(2, 1000, keep=keep, max_tuples=20_000) for _ in range(2))
        rng = np.random.default_rng(0)
        t = 10**9 + np.sort(rng.integers(0, 20_000, 100_000))
        user, attribute = (
            np.minimum(rng.integers(0, 2000, 100_000), rng.integers(0, 2000, 100_000))
            for _ in range(2)
        )
        expected = other.observe_batch(t, user.astype(np.uint64), attribute.astype(np.uint64))
        try:
            _core.fail_allocation(1)
            decided = table.observe_batch(t, user.astype(np.uint64), attribute.astype(np.uint64))
            table.clear()
            with pytest.raises(CapacityError):  # the failure was still to come
                ZTable(2, 1000)
        finally:
            _core.fail_allocation(0)
        assert (decided == expected).all()
        assert 0 < decided.sum() < len(decided)

    @pytest.mark.skipif("ZANON_SANITIZE" in os.environ, reason="a sanitizer needs address space")
    @pytest.mark.skipif(not hasattr(resource, "RLIMIT_AS"), reason="needs RLIMIT_AS")
    def test_address_space_that_ends(self) -> None:
        failed, tuples, released = in_a_process(SMALL_ADDRESS_SPACE)
        assert failed == 4
        assert 1000 < tuples < 100_000
        assert released == 999

    @pytest.mark.source
    def test_helper(self) -> None:
        """Trial tables that cannot be made count as too large, and leave nothing behind."""
        try:
            _core.fail_allocation(1)
            tuples, _ = caps_for_bytes(MIB)
        finally:
            _core.fail_allocation(0)
        assert 0 < tuples <= caps_for_bytes(MIB)[0]


@pytest.mark.source
@pytest.mark.parametrize("keep", [0, 4, 100])
def test_a_failed_open_leaves_no_table_in_c(keep: int) -> None:
    library = small_ztable.load("default")
    config = small_ztable.Config(
        ctypes.sizeof(small_ztable.Config), 3, DAY, keep, 1000, 1000, 0, 256
    )
    for n in itertools.count(1):
        table, error = ctypes.c_void_p(1), small_ztable.Error()
        library.zn_alloc_fail_after(n)
        code = library.zn_ztable_open(
            ctypes.byref(table), ctypes.byref(config), ctypes.byref(error)
        )
        if code == 0:
            break
        assert table.value is None
        assert b"memory" in error.msg
    library.zn_alloc_fail_after(0)
    library.zn_ztable_close(table)
    assert n > 3
