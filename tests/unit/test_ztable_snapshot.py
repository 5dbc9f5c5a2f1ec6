# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A table that is stored and restored decides as the first one does."""

import os
import random
import struct
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.siphash import blocks_of, siphash
from oracle.ztable import ZOracle
from support.small_ztable import SmallZTable

from zanon_net import CapacityError, ConfigError, FormatError, ZTable

SECOND = 10**9
HEADER, TRAILER = 152, 24
MUTATIONS = 1_000_000 if os.environ.get("ZANON_SOAK") else 5_000
Columns = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def stream(n: int, *, names: int = 2000, users: int = 3000, late: bool = False) -> Columns:
    rng = np.random.default_rng(7)
    t_ns = np.sort(rng.integers(0, 100 * SECOND, n))
    if late:
        t_ns = np.maximum(t_ns - rng.integers(0, 12 * SECOND, n) * (rng.random(n) < 0.2), 0)
    rank = np.minimum(rng.zipf(1.15, n), names) - 1
    hashes = rng.integers(0, 2**64, (names, 2), dtype=np.uint64)
    user = rng.integers(0, 2**64, users, dtype=np.uint64)[rng.integers(0, users, n)]
    return t_ns, user, hashes[rank, 0].copy(), hashes[rank, 1].copy()


def part(columns: Columns, start: int, stop: int) -> Columns:
    t_ns, user, lo, hi = (column[start:stop].copy() for column in columns)
    return t_ns, user, lo, hi


@pytest.mark.parametrize("keep", [None, 5, 16, 20, 40, 1000, 3000])
def test_restored_tables_decide_the_same(keep: int | None) -> None:
    columns = stream(60_000)
    table = ZTable(5, 10 * SECOND, keep=keep)
    chain = ZTable(5, 10 * SECOND, keep=keep)  # restored again and again
    for start in range(0, 60_000, 10_000):
        some = part(columns, start, start + 10_000)
        assert (chain.observe_hashed_batch(*some) == table.observe_hashed_batch(*some)).all()
        snapshot = chain.dump()
        chain = ZTable.load(snapshot)
        chain.check()
        assert chain.dump() != b""
        assert len(snapshot) <= HEADER + TRAILER + 26 * chain.stats["tuples"]
        counters = table.stats
        del counters["tuples"], counters["attributes"]  # of those out of the window
        assert chain.stats == chain.stats | counters
    assert table.stats["released"] > 1000 < table.stats["below_z"]


def test_late_observations_may_be_decided_otherwise_but_seldom() -> None:
    columns = stream(60_000, late=True)
    table = ZTable(5, 10 * SECOND)
    table.observe_hashed_batch(*part(columns, 0, 30_000))
    restored = ZTable.load(table.dump())
    rest = part(columns, 30_000, 60_000)
    first, second = table.observe_hashed_batch(*rest), restored.observe_hashed_batch(*rest)
    assert (first != second).sum() < 60 < restored.stats["late"]


def test_one_observation_is_a_batch_of_one() -> None:
    columns = stream(2000)
    singly, batch = ZTable(3, 10 * SECOND), ZTable(3, 10 * SECOND)
    answers = [
        singly.observe_hashed(*row) for row in zip(*(c.tolist() for c in columns), strict=True)
    ]
    assert answers == batch.observe_hashed_batch(*columns).tolist()
    assert singly.stats == batch.stats


def test_bits_that_do_not_decide() -> None:
    table = ZTable(2, 10)
    user = 1 << 56 | 1
    assert not table.observe_hashed(0, user, 1, 1 << 56)
    assert not table.observe_hashed(0, user | 0xFFFFFF << 32, 1, 1 << 56 | 0xFFF << 44)
    assert table.observe_hashed(0, user ^ 1 << 63, 1, 1 << 56)


def test_an_empty_table_and_a_fresh_one() -> None:
    table = ZTable(3, SECOND, keep=4, max_tuples=100, max_attributes=10, max_jump_ns=5)
    restored = ZTable.load(table.dump())
    assert restored.stats == table.stats
    assert restored.dump() == table.dump()
    assert not restored.observe_hashed(7 * SECOND, 1, 2, 3)  # no jump: there is no clock yet
    assert restored.stats["below_z"] == 1


def test_runs_of_rejected_times_go_on() -> None:
    def steps(table: ZTable, times: list[int]) -> list[bool]:
        return [table.observe_hashed(t, 1, 1, 1 << 60) for t in times]

    for times in ([0] * 6, [1000] * 6):  # too late, too far ahead
        table = ZTable(1, 10, max_jump_ns=100, rebase_after=5)
        steps(table, [500, *times[:3]])
        restored = ZTable.load(table.dump())
        assert steps(restored, times[3:]) == steps(table, times[3:]) == [False, True, True]
        assert restored.stats == table.stats


def test_z_in_force_is_stored() -> None:
    table = ZTable(5, 10)
    table.set_z(2)
    assert ZTable.load(table.dump()).z == 2


def test_a_table_under_its_own_key_is_not_dumped() -> None:
    table = ZTable(2, 10)
    table.observe(0, "ann", "example.org")
    with pytest.raises(ConfigError, match="observe_hashed"):
        table.dump()
    table.clear()
    table.observe_batch(np.array([1]), np.array([1]), np.array([1]))
    with pytest.raises(ConfigError, match="observe_hashed"):
        table.dump()
    table.clear()
    assert ZTable.load(table.dump()).stats["tuples"] == 0


# ---- damage -------------------------------------------------------------------------------------


def snapshot(keep: int | None = None, n: int = 300) -> bytes:
    table = ZTable(3, 100 * SECOND, keep=keep, max_tuples=5000, max_attributes=5000)
    table.observe_hashed_batch(*stream(n, names=40, users=60))
    return table.dump()


def test_every_cut_and_flip_is_refused() -> None:
    whole = snapshot(n=40)
    for n in range(len(whole)):
        with pytest.raises(FormatError):
            ZTable.load(whole[:n])
        for bit in range(8):
            changed = bytearray(whole)
            changed[n] ^= 1 << bit
            with pytest.raises(FormatError):
                ZTable.load(bytes(changed))
    with pytest.raises(FormatError):
        ZTable.load(whole + b"\0")


def test_no_mutation_is_taken() -> None:
    """A million of them with ZANON_SOAK=1."""
    dice = random.Random(3)
    snapshots = [snapshot(keep, n) for keep in (None, 4) for n in (20, 300)]
    for _ in range(MUTATIONS):
        changed = bytearray(dice.choice(snapshots))
        for _ in range(dice.randint(1, 4)):
            at = dice.randrange(len(changed))
            if dice.random() < 0.8:
                changed[at] ^= dice.randint(1, 255)
            else:
                del changed[at : at + dice.randint(1, 8)]
        if bytes(changed) not in snapshots:  # the same bit twice
            with pytest.raises(FormatError):
                ZTable.load(bytes(changed))


def test_another_version_is_named() -> None:
    with pytest.raises(FormatError, match="has version 2, and this program reads 1"):
        ZTable.load(sealed(b"ZNZT\2" + snapshot()[5:-8]))


def sealed(body: bytes) -> bytes:
    return body + struct.pack("<Q", siphash(b"zanon-net/1/dump", blocks_of(body)))


def mutations(bodies: list[bytes], n: int) -> Iterator[bytes]:
    """Snapshots changed behind their checksum."""
    dice = random.Random(11)
    for _ in range(n):
        body = bytearray(dice.choice(bodies))
        for _ in range(dice.randint(1, 3)):
            at = dice.randrange(8, len(body))
            match dice.randrange(3):
                case 0:
                    body[at] = dice.choice((0, 1, 127, 128, 255, dice.getrandbits(8)))
                case 1:
                    del body[at : at + dice.randint(1, 40)]
                case 2:
                    body[at:at] = body[at - 20 : at]
        yield sealed(bytes(body))


@pytest.mark.parametrize("keep", [None, 3, 50])
def test_behind_the_checksum_a_table_stays_whole(keep: int | None) -> None:
    """Whatever is accepted is a table that observations could have made."""
    bodies = [snapshot(keep, n)[:-8] for n in (3, 30)]
    accepted = 0
    for data in mutations(bodies, 1500):
        try:
            table = ZTable.load(data)
        except (FormatError, CapacityError):
            continue
        accepted += 1
        table.check()
        for t_ns in (0, 50 * SECOND, 100 * SECOND, 2**63 - 1):
            table.observe_hashed(t_ns, 1, 1, 1)
        table.check()
    assert accepted > 20


# ---- in small steps, and in every form an attribute can take ------------------------------------


@pytest.mark.source
@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30), st.integers(0, 3)), max_size=150),
    st.integers(0, 150),
    st.sampled_from([None, 3, 4, 6, 9]),
    st.sampled_from([256, 257, 300, 1 << 20]),
)
def test_any_stream_cut_anywhere(
    steps: list[tuple[int, int, int]], cut: int, keep: int | None, step: int
) -> None:
    table = SmallZTable(3, 40, keep=keep)
    twin = table
    t_ns = 0
    for i, (later, user, attribute) in enumerate(steps):
        if i == cut:
            snapshot = table.export(step)
            assert len(table.export()) <= len(snapshot)
            twin = table.restored(snapshot)
            twin.check()
        t_ns += later
        user_bytes, name = b"user %d" % user, b"name %d" % attribute
        first = table.observe(t_ns, user_bytes, name)
        if twin is not table:
            assert twin.observe(t_ns, user_bytes, name) == first
            assert twin.count(name) == table.count(name)
    twin.check()


@pytest.mark.source
@given(
    st.lists(st.tuples(st.integers(-60, 60), st.integers(0, 5), st.integers(0, 1)), max_size=80),
    st.sampled_from([None, 3, 4]),
    st.integers(1, 20),
)
def test_with_time_going_every_way_nothing_is_released_too_early(
    steps: list[tuple[int, int, int]], keep: int | None, every: int
) -> None:
    table, oracle, t_ns = SmallZTable(3, 40, keep=keep), ZOracle(3, 40), 1000
    for i, (step, user, attribute) in enumerate(steps):
        t_ns = max(0, t_ns + step)
        released = table.observe(t_ns, b"user %d" % user, b"name %d" % attribute)
        assert released <= oracle.observe(t_ns, user, attribute)
        if i % every == 0:
            table = table.restored(table.export())
            table.check()


@pytest.mark.source
def test_a_long_list_goes_out_in_steps() -> None:
    table = SmallZTable(3, 10**6)
    for user in range(300):
        table.observe(user, b"%d" % user, "one name")
    snapshot = table.export(256)
    assert len(snapshot) > len(table.export())
    assert snapshot.count(snapshot[HEADER : HEADER + 8]) > 5  # its attribute, again in each step
    assert table.restored(snapshot).count("one name") == 300
    with pytest.raises(ConfigError, match="is of a table with z 3"):
        SmallZTable(4, 10**6).restored(snapshot)
    with pytest.raises(ConfigError, match="has 300 tuples and 1 attributes"):
        SmallZTable(3, 10**6, max_tuples=299).restored(snapshot)
    with pytest.raises(ConfigError, match="goes into a table that is empty"):
        table.take_in(snapshot)
    assert table.count("one name") == 300
