# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The authors' own program, zanon 0.3.4 (PyPI), as a second reader of z-anonymity.

On input in time order it is right, and we agree on every observation. Where it is wrong is shown
below, each case against brute force. It is run as it is; only its plots (matplotlib), which it
imports and does not need, are left out, and its search for a z (`rate`).
"""

import importlib
import os
import random
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from oracle.ztable import ZOracle

from zanon_net import ZTable

PLOTS = ("matplotlib", "matplotlib.pyplot", "matplotlib.ticker", "mpl_toolkits.mplot3d")
Reader = Callable[[float, str, str], bool]


@pytest.fixture
def zanon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[int, float], Reader]:
    """A function from z and Δt in seconds to a reader: (t, u, a) -> released."""
    if find_spec("zanonymity") is None:
        reason = "zanon 0.3.4 is not installed: it is one of the extra `test`"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    for name in PLOTS:
        monkeypatch.setitem(sys.modules, name, MagicMock())
    module = importlib.import_module("zanonymity.zanon")
    monkeypatch.chdir(tmp_path)  # it writes output.txt, counters.txt and output.json

    def start(z: int, delta_t: float) -> Reader:
        table = module.zanon(delta_t, 0.8, 2)
        table.z = z
        table.rate = float("inf")  # z stays

        def read(t: float, u: str, a: str) -> bool:
            before = table.queue[-1] if table.queue else None
            table.anonymize((t, u, a))
            # What it writes out also goes to the end of this queue.
            return bool(table.queue) and table.queue[-1] is not before

        return read

    return start


@pytest.mark.parametrize("seed", range(12))
def test_in_time_order_it_decides_as_we_do(
    seed: int, zanon: Callable[[int, float], Reader]
) -> None:
    rng, t = random.Random(seed), 1_700_000_000
    z, window = rng.choice([1, 2, 3, 5, 10]), rng.choice([20, 60, 3600])
    theirs, ours = zanon(z, window), ZTable(z, window)
    oracle = ZOracle(z, window)
    decisions = set()
    for _ in range(2_000):
        t += rng.choice([0, 0, 0, 1, window // 20, window // 3 if rng.random() < 0.1 else 0])
        user, name = f"u{rng.randrange(40)}", f"{min(rng.randrange(15), rng.randrange(15))}.example"
        decision = ours.observe(t, user, name)
        assert decision == oracle.observe(t, user, name)
        assert decision == theirs(t, user, name)
        decisions.add(decision)
    assert decisions == ({True} if z == 1 else {True, False})


def test_the_border_of_the_window(zanon: Callable[[int, float], Reader]) -> None:
    for age, released in ((60, True), (61, False)):
        theirs, ours = zanon(2, 60), ZTable(2, 60)
        for decide in (theirs, ours.observe):
            decide(1000, "u0", "a")
            assert decide(1000 + age, "u1", "a") == released


class TestWhereItIsWrong:
    def test_late_observations_release_too_much(
        self, zanon: Callable[[int, float], Reader]
    ) -> None:
        """Users seen later than t count for t."""
        theirs, ours, oracle = zanon(2, 60), ZTable(2, 60), ZOracle(2, 60)
        stream = [(1000, "u0", "a"), (990, "u1", "a")]
        assert [oracle.observe(*o) for o in stream] == [False, False]
        assert [ours.observe(*o) for o in stream] == [False, False]
        assert [theirs(*o) for o in stream] == [False, True]

    def test_a_late_observation_hides_old_ones_from_eviction(
        self, zanon: Callable[[int, float], Reader]
    ) -> None:
        """Eviction ends at the first user that is recent, but the list is no longer in order."""
        theirs, ours, oracle = zanon(2, 60), ZTable(2, 60), ZOracle(2, 60)
        stream = [(1000, "u0", "a"), (950, "u1", "a"), (1050, "u2", "b"), (1055, "u0", "a")]
        assert [oracle.observe(*o) for o in stream][-1] is False
        assert [ours.observe(*o) for o in stream][-1] is False
        assert [theirs(*o) for o in stream][-1] is True

    def test_a_late_repetition_takes_a_user_back_in_time(
        self, zanon: Callable[[int, float], Reader]
    ) -> None:
        """The other way round: it forgets that u0 was there at 1000."""
        theirs, ours, oracle = zanon(2, 60), ZTable(2, 60), ZOracle(2, 60)
        stream = [(1000, "u0", "a"), (950, "u0", "a"), (1055, "u1", "a")]
        assert [oracle.observe(*o) for o in stream][-1] is True
        assert [ours.observe(*o) for o in stream][-1] is True
        assert [theirs(*o) for o in stream][-1] is False

    def test_times_are_floating_point(self, zanon: Callable[[int, float], Reader]) -> None:
        """In nanoseconds since 1970, up to 256 of them are one."""
        now = 1_700_000_000_000_000_000
        stream = [(now, "u0", "a"), (now + 101, "u1", "a")]
        theirs, ours = zanon(2, 100), ZTable(2, 100)
        assert [ours.observe(*o) for o in stream] == [False, False]
        assert [theirs(*o) for o in stream] == [False, True]

    def test_an_asterisk_in_a_name_is_a_hierarchy(
        self, zanon: Callable[[int, float], Reader]
    ) -> None:
        """What comes before it is released on its own, which is a feature, but not for names."""
        theirs, ours = zanon(2, 100), ZTable(2, 100)
        stream = [(1, "u0", "secret*a"), (2, "u1", "secret*b")]
        assert [ours.observe(*o) for o in stream] == [False, False]
        assert [theirs(*o) for o in stream] == [False, True]

    def test_what_nobody_touches_stays_for_ever(
        self, zanon: Callable[[int, float], Reader]
    ) -> None:
        theirs, ours = zanon(2, 10), ZTable(2, 10)
        for decide in (theirs, ours.observe):
            for i in range(500):
                decide(1000 + 20 * i, "u", f"{i}.example")
            for i in range(500):
                decide(100_000 + i, "u", "busy.example")
        assert ours.stats["attributes"] == 1
        table = theirs.__closure__[0].cell_contents  # type: ignore[attr-defined]
        assert len(table.H) == 501
