# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""ZTable as a Python class: its arguments, arrays, threads, and what it refuses."""

import copy
import doctest
import inspect
import pickle
import pydoc
import threading
import tracemalloc
from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pytest
from support.examples import each

import zanon_net
from zanon_net import Config, ConfigError, ZTable

YEAR = 365 * 86_400 * 10**9


def columns(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """n observations in time order: some to be released, some not."""
    rng = np.random.default_rng(n)
    t_ns = np.sort(rng.integers(0, 10 * n, n))
    user, attribute = (rng.integers(0, 1 + n // 10, n).astype(np.uint64) for _ in range(2))
    return t_ns, user, attribute


def test_the_example_of_the_docstring_holds() -> None:
    parser = doctest.DocTestParser()
    example = parser.get_doctest(ZTable.__doc__ or "", {"ZTable": ZTable}, "ZTable", None, None)
    assert len(example.examples) >= 5
    runner = doctest.DocTestRunner()
    assert runner.run(example).failed == 0


def test_a_batch_decides_as_its_parts() -> None:
    """Whatever the length of the parts: batches work in groups of groups."""
    t_ns, user, attribute = columns(3000)
    for part in (1, 7, 8, 9, 24, 25, 63, 64, 65, 127, 128, 129, 500):
        whole, parts = ZTable(3, 2000), ZTable(3, 2000)
        expected = whole.observe_batch(t_ns, user, attribute)
        assert 100 < np.count_nonzero(expected) < 2900
        got = [
            parts.observe_batch(t_ns[i : i + part], user[i : i + part], attribute[i : i + part])
            for i in range(0, 3000, part)
        ]
        assert np.array_equal(np.concatenate(got), expected)
        assert whole.stats == parts.stats


def test_the_window_as_text_or_number() -> None:
    hour_ns, usual = 3600 * 10**9, Config().anonymity
    assert (ZTable().z, usual.z) == (20, 20)
    assert f"window_ns={usual.window_ns} " in repr(ZTable())
    same = (ZTable(20, hour_ns), ZTable(window="1h"), ZTable(z=20, window=hour_ns))
    assert {repr(table) for table in same} == {repr(ZTable())}
    for wrong in ("soon", "0s", 0, 1.5):
        with pytest.raises(ConfigError, match=r"^window: "):
            ZTable(window=wrong)
    with pytest.raises(ConfigError, match=r"^window: give it or window_ns, not both$"):
        ZTable(20, hour_ns, window="1h")


def test_the_signature() -> None:
    parameters = inspect.signature(ZTable).parameters
    assert list(parameters)[:4] == ["z", "window_ns", "window", "keep"]
    assert parameters["window"].kind is inspect.Parameter.KEYWORD_ONLY
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    assert repr(ZTable(**defaults)) == repr(ZTable())


def test_the_package_exports_it() -> None:
    assert {"ZTable", "caps_for_bytes"} <= set(zanon_net.__all__)
    assert zanon_net.ZTable is ZTable


class TestConstructor:
    @each(
        "name, value",
        [
            *(("z", value) for value in (0, -1, 2**31 + 1, 2**64)),
            *(("window_ns", value) for value in (0, -1, 3660 * 86_400 * 10**9 + 1, 2**63)),
            *(("keep", value) for value in (-1, 0, 2, 2**32, 2**70)),
            *(("max_tuples", value) for value in (-1, 0, 2**31 + 1, 2**40)),
            *(("max_attributes", value) for value in (-1, 0, 2**27 + 1, 2**40)),
            *(("max_jump_ns", value) for value in (-1, 0, 2**63)),
            *(("rebase_after", value) for value in (-1, 0, 2**32)),
        ],
    )
    def test_values_out_of_range(self, name: str, value: int) -> None:
        with pytest.raises(ConfigError, match=rf"^{name} is {value}: it must be \d+ to \d+$"):
            ZTable(**{"z": 3, "window_ns": 10, name: value})

    @each("value", [1.5, "3", b"3", np.float64(3), [3]])
    @each(
        "name",
        ["z", "window_ns", "keep", "max_tuples", "max_attributes", "max_jump_ns", "rebase_after"],
    )
    def test_what_is_no_whole_number(self, name: str, value: object) -> None:
        with pytest.raises(TypeError, match=f"^{name} must be a whole number, not "):
            ZTable(**{"z": 1, "window_ns": 10, name: value})

    @pytest.mark.parametrize("number", [int, np.int64, np.uint32])
    def test_whole_numbers_of_any_kind(self, number: Callable[[int], object]) -> None:
        table = ZTable(number(2), number(10), keep=number(3), max_jump_ns=number(5))
        assert table.z == 2

    def test_the_largest_values(self) -> None:
        table = ZTable(
            2**31,
            3660 * 86_400 * 10**9,
            keep=2**32 - 1,
            max_tuples=2**31,
            max_attributes=2**27,
            max_jump_ns=2**63 - 1,
            rebase_after=2**32 - 1,
        )
        for t_ns in (0, 2**63 - 1, 0, 2**63 - 1):
            assert not table.observe(t_ns, "u", "a")
        table.check()

    def test_not_twice(self) -> None:
        table = ZTable(2, 10)
        with pytest.raises(RuntimeError, match="opened twice"):
            table.__init__(2, 10)  # type: ignore[misc]

    def test_one_that_failed_is_of_no_use_and_no_harm(self) -> None:
        table = ZTable.__new__(ZTable)
        with pytest.raises(ConfigError):
            table.__init__(0, 10)  # type: ignore[misc]
        array = np.zeros(1, np.int64)
        uses: list[Callable[[], object]] = [
            lambda: table.observe(0, "u", "a"),
            lambda: table.observe_batch(array, array.view(np.uint64), array.view(np.uint64)),
            lambda: table.count("a"),
            lambda: table.set_z(1),
            lambda: table.clear(),
            lambda: table.check(),
            lambda: table.stats,
            lambda: table.memory_bytes,
        ]
        for use in uses:
            with pytest.raises(RuntimeError, match="never opened"):
                use()
        assert repr(table) == "<ZTable, never opened>"


class TestObserve:
    @pytest.mark.parametrize("t_ns", [-1, -(2**63), 2**63, 2**64, -(2**64)])
    def test_times_there_are_not(self, t_ns: int) -> None:
        table = ZTable(1, 10)
        with pytest.raises(ValueError, match="t_ns"):
            table.observe(t_ns, "u", "a")
        assert table.stats["observations"] == 0

    @pytest.mark.parametrize("t_ns", [1.0, "1", None, np.float64(1)])
    def test_times_that_are_no_whole_number(self, t_ns: int) -> None:
        with pytest.raises(TypeError, match="t_ns"):
            ZTable(1, 10).observe(t_ns, "u", "a")

    @pytest.mark.parametrize("value", [1, None, 1.5, bytearray(b"u"), ("u",)])
    def test_users_and_attributes_are_text(self, value: str) -> None:
        table = ZTable(1, 10)
        for pair in ((value, "a"), ("u", value)):
            with pytest.raises(TypeError, match="bytes or str"):
                table.observe(0, *pair)
        assert table.stats["observations"] == 0

    def test_text_that_cannot_be_encoded(self) -> None:
        with pytest.raises(ValueError, match="surrogates"):
            ZTable(1, 10).observe(0, "u", "\ud800")

    def test_str_and_its_bytes_are_the_same(self) -> None:
        table = ZTable(2, 10)
        table.observe(0, "ü", "ä")
        assert not table.observe(1, "ü".encode(), "ä".encode())
        assert table.observe(2, b"", "ä")
        assert table.count("ä".encode()) == 2

    def test_a_number_and_its_bytes_are_different_attributes(self) -> None:
        table = ZTable(1, 10)
        one = np.array([1], np.uint64)
        table.observe_batch(one.astype(np.int64), one, one)
        assert table.count(1) == 1
        assert table.count(one.tobytes()) == table.count("1") == 0

    @pytest.mark.parametrize("attribute", [1.5, None, -1, 2**64])
    def test_count_of_what_cannot_be(self, attribute: int) -> None:
        with pytest.raises((TypeError, ValueError), match="attribute"):
            ZTable(1, 10).count(attribute)


class TestBatch:
    def test_signed_numbers_are_the_same_users_and_attributes(self) -> None:
        tables, t_ns = [ZTable(2, 10), ZTable(2, 10)], np.arange(4)
        user, attribute = np.array([1, -2, 3, -4]), np.array([-7, -7, 5, 5])
        signed = tables[0].observe_batch(t_ns, user, attribute)
        unsigned = tables[1].observe_batch(t_ns, user.view(np.uint64), attribute.view(np.uint64))
        assert signed.tolist() == unsigned.tolist() == [False, True, False, True]
        assert [table.count(2**64 - 7) for table in tables] == [2, 2]

    @each("column", range(3))
    @each("shape", [(), (1,), (2,), (4,), (3, 1), (1, 3), (0,)])
    def test_wrong_shapes(self, column: int, shape: tuple[int, ...]) -> None:
        arrays = [np.zeros(3, np.int64), *(np.zeros(3, np.uint64) for _ in "ua")]
        arrays[column] = np.zeros(shape, arrays[column].dtype)
        table = ZTable(1, 10)
        with pytest.raises(ValueError, match="one dimension and the length of t_ns"):
            table.observe_batch(*arrays)
        assert table.stats["observations"] == 0

    @pytest.mark.parametrize("at", [0, 299, 599])
    def test_a_negative_time_anywhere_refuses_all(self, at: int) -> None:
        table, (t_ns, user, attribute) = ZTable(1, 10), columns(600)
        t_ns[at] = -1
        with pytest.raises(ValueError, match="negative"):
            table.observe_batch(t_ns, user, attribute)
        assert table.stats["observations"] == 0

    @pytest.mark.parametrize("n", [1, 7, 8, 9, 255, 256, 257, 1000])
    def test_numbers_are_the_same_alone_and_in_a_batch(self, n: int) -> None:
        """Hashed one by one or eight at a time: the same users, the same attributes."""
        table = ZTable(2, 10)
        user = np.arange(n, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        attribute = ~user
        t_ns = np.zeros(n, np.int64)
        assert not table.observe_batch(t_ns, user, attribute).any()
        for i in range(0, n, 1 + n // 50):
            one = slice(i, i + 1)
            assert table.count(int(attribute[i])) == 1
            assert not table.observe_batch(t_ns[one], user[one], attribute[one]).any()
            assert table.observe_batch(t_ns[one], user[one] + np.uint64(1), attribute[one]).all()

    def test_none(self) -> None:
        decisions = ZTable(1, 10).observe_batch(*columns(0))
        assert decisions.dtype == bool
        assert decisions.shape == (0,)

    def test_any_layout_in_memory(self) -> None:
        n = 5000
        arrays = columns(n)
        expected = ZTable(3, 5 * n).observe_batch(*arrays)
        assert 0 < expected.sum() < n
        apart, backwards, read_only, mapped = [], [], [], []
        for array in arrays:
            wide = np.zeros((n, 3), array.dtype)
            wide[:, 1] = array
            apart.append(wide[:, 1])
            backwards.append(array[::-1].copy()[::-1])
            frozen = array.copy()
            frozen.flags.writeable = False
            read_only.append(frozen)
            odd = np.zeros(8 * n + 1, np.uint8)[1:].view(array.dtype)
            odd[:] = array
            mapped.append(odd)
        for other in (apart, backwards, read_only, mapped):
            assert (ZTable(3, 5 * n).observe_batch(*other) == expected).all()

    def test_arrays_are_left_as_they_were(self) -> None:
        arrays = columns(1000)
        before = [array.copy() for array in arrays]
        ZTable(3, 1000).observe_batch(*arrays)
        assert all((array == was).all() for array, was in zip(arrays, before, strict=True))

    @pytest.mark.parametrize("writeable", [True, False])
    def test_well_formed_arrays_are_not_copied(self, writeable: bool) -> None:
        n = 1_000_000
        arrays = columns(n)
        for array in arrays:
            array.flags.writeable = writeable
        table = ZTable(3, 1000)
        tracemalloc.start()
        try:
            table.observe_batch(*arrays)
            peak = tracemalloc.get_traced_memory()[1]
            assert n <= peak < 3 * n  # the answers, and not eight bytes more of each
            table.observe_batch(*(array[::-1] for array in arrays))
            assert tracemalloc.get_traced_memory()[1] > 24 * n  # a copy would have been seen
        finally:
            tracemalloc.stop()


class TestThreads:
    def test_a_call_while_another_thread_is_at_work_is_refused(self) -> None:
        n = 400_000
        arrays = columns(n)
        table = ZTable(3, n)

        def work() -> None:
            with suppress(RuntimeError):  # the other one was first
                table.observe_batch(*arrays)

        uses: list[Callable[[], object]] = [
            lambda: table.observe(0, "u", "a"),
            lambda: table.observe_batch(*columns(3)),
            lambda: table.count("a"),
            lambda: table.set_z(3),
            lambda: table.check(),
            lambda: table.clear(),
            lambda: table.stats,
            lambda: table.memory_bytes,
        ]
        shown = False
        for use in uses:
            refused = False
            for _ in range(200):  # until the other thread was met at work
                worker = threading.Thread(target=work)
                worker.start()
                while worker.is_alive() and not refused:
                    shown |= "at work in another thread" in repr(table)
                    try:
                        use()
                    except RuntimeError as error:
                        refused = "another thread" in str(error)
                worker.join()
                if refused:
                    break
            assert refused
        assert shown
        table.check()
        assert table.stats["observations"] >= n

    def test_tables_in_threads_of_their_own(self) -> None:
        arrays = columns(100_000)
        expected = ZTable(3, 10_000).observe_batch(*arrays)
        answers: list[np.ndarray] = []
        threads = [
            threading.Thread(
                target=lambda: answers.append(ZTable(3, 10_000).observe_batch(*arrays))
            )
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all((answer == expected).all() for answer in answers)
        assert len(answers) == 4


class TestLooks:
    def test_repr(self) -> None:
        table = ZTable(2, 10**10, keep=7)
        for user in ("secret user", "other user"):
            table.observe(0, user, "secret.example.org")
        assert repr(table) == (
            "<ZTable z=2 window_ns=10000000000 keep=7 tuples=2 attributes=1 released=1/2 "
            f"memory_bytes={table.memory_bytes}>"
        )
        assert "keep=None" in repr(ZTable(2, 10))

    def test_stats_have_every_counter(self) -> None:
        stats = ZTable(2, 10).stats
        names = "observations released below_z too_late late late_deep no_room clock_jumps"
        assert set(stats) == {*names.split(), "evicted", "tuples", "attributes"}
        assert set(stats.values()) == {0}

    @pytest.mark.parametrize("attempt", [pickle.dumps, copy.copy, copy.deepcopy])
    def test_no_copies(self, attempt: Callable[[ZTable], object]) -> None:
        table = ZTable(2, 10)
        table.observe(0, "u", "a")
        with pytest.raises(TypeError, match="cannot be pickled or copied: it holds exposures"):
            attempt(table)

    def test_every_public_member_is_documented(self) -> None:
        for name in dir(ZTable):
            if not name.startswith("_"):
                assert getattr(ZTable, name).__doc__, name


def test_the_help_says_how_it_is_called() -> None:
    shown = pydoc.plain(pydoc.render_doc(ZTable))
    assert " ZTable(z=20, window_ns=None, *, window=None, keep=None, " in shown
    signature = str(inspect.signature(ZTable))
    assert signature.startswith("(z=20, window_ns=None, *, window=None, keep=None, ")
    with pytest.raises(TypeError):
        ZTable(2, 10, 2)  # type: ignore[misc]
