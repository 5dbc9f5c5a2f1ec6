# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rows under keys that z users' shares give, beside whole numbers and `cryptography`."""

import itertools
import random
from collections.abc import Sequence
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.sealed_rows import (
    PRIME,
    Group,
    Place,
    point,
    polynomial,
    row_key,
    secret,
    share,
    unseal,
)
from oracle.siphash import blocks_of, siphash
from support.examples import each

from zanon_net import _core
from zanon_net.errors import CapacityError, ConfigError, FormatError

KEY = bytes(range(32))
LO, HI = 0x1122334455667788, 0x99AABBCCDDEEFF00
WINDOW = 4000
SETTINGS = 77
WORDS = st.integers(0, (1 << 64) - 1)


class Probe:
    """A probe whose messages have one vote each."""

    def __init__(self, z: int, *, key: bytes = KEY, window: int = WINDOW, epochs: int = 4) -> None:
        self._sealer = _core.ThresholdSealer(key, z=z, window_ns=window, epochs=epochs)
        self._writer = _core.VoteWriter(1, 0, SETTINGS)

    def vote(self, t_ns: int, user: int, row: bytes = b"row", lo: int = LO) -> _core.VoteRows:
        self._writer.add(1, t_ns, user, lo, HI)
        return _core.VoteRows(self._sealer.attach(self._writer.finish(t_ns), [row]))


def take(
    shard: _core.ThresholdShard, vote: _core.VoteRows, *, released: bool = True
) -> bytes | None:
    """The row of the vote, where the shard opens it."""
    probe, number, sequence = vote.key
    answer = _core.write_answers(number, probe, sequence, SETTINGS, [released])
    rows = shard.take([(vote, answer)])
    return rows[0] if rows else None


def checksum(body: bytes) -> int:
    """That of a message."""
    return siphash(b"zanon-net/1/vote", blocks_of(body))


def with_attachment(vote: _core.VoteRows, attachment: bytes) -> _core.VoteRows:
    """The same vote with something else attached."""
    plain = vote.plain()
    section = vote.prefix + len(attachment).to_bytes(2, "little") + attachment
    body = plain[:5] + b"\x02" + plain[6:-8] + section + (len(section) + 4).to_bytes(4, "little")
    return _core.VoteRows(body + checksum(body).to_bytes(8, "little"))


def shares_of(attachment: bytes, epochs: int) -> list[int]:
    return [int.from_bytes(attachment[16 * i : 16 * i + 16], "little") for i in range(epochs)]


def epochs_of(t_ns: int, window: int, epochs: int) -> list[int]:
    """The newest first."""
    newest = t_ns // (window // epochs)
    return [newest - i for i in range(epochs)]


@settings(deadline=None)
@given(
    z=st.integers(1, 40),
    epochs=st.integers(1, 8),
    t_ns=st.integers(0, 1 << 62),
    user=WORDS,
    lo=WORDS,
)
def test_shares_and_rows_are_those_of_the_definition(
    z: int, epochs: int, t_ns: int, user: int, lo: int
) -> None:
    window = 10**12 + 7
    probe = Probe(z, window=window, epochs=epochs)
    rows = probe.vote(t_ns, user, b"a row", lo)
    ((attachment,), prefix), votes = (
        (rows.attachments(), rows.prefix),
        _core.read_votes(rows.plain()),
    )
    group = (int(votes["lo"][0]), int(votes["hi"][0]))
    groups = [Group(*group, epoch) for epoch in epochs_of(t_ns, window, epochs)]
    expected = [share(polynomial(KEY, group, z), user) for group in groups]
    assert shares_of(attachment, epochs) == expected
    key = row_key(groups[-1], polynomial(KEY, groups[-1], z)[0])
    assert unseal(key, prefix[:12], Place(*rows.key, 0), attachment[16 * epochs :]) == b"a row"
    assert prefix[12:] == bytes([epochs]) + bytes(19)


@settings(deadline=None)
@given(users=st.lists(WORDS, min_size=1, max_size=30, unique_by=point), data=st.data())
def test_any_z_shares_give_the_secret(users: Sequence[int], data: st.DataObject) -> None:
    coefficients = [data.draw(st.integers(0, PRIME - 1)) for _user in users]
    points = [(point(user), share(coefficients, user)) for user in users]
    assert secret(points) == coefficients[0]
    assert _core.shamir_secret(points) == coefficients[0]


def test_shares_at_the_edges_of_the_field() -> None:
    for coefficients in ([0], [PRIME - 1], [PRIME - 1] * 5, [0, 0, PRIME - 1], [1 << 126, 1, 0]):
        users = [0, 1, 0xFF << 56 | 0xFFFFFFFF, 0xFFFFFFFF, 1 << 56][: len(coefficients)]
        points = [(point(user), share(coefficients, user)) for user in users]
        assert _core.shamir_secret(points) == coefficients[0]


@pytest.mark.parametrize("z", [1, 2, 5, 20])
def test_a_row_opens_with_the_share_of_the_zth_user(z: int) -> None:
    probe, shard = Probe(z), _core.ThresholdShard(z=z, window_ns=WINDOW)
    for number in range(z + 3):
        row = take(shard, probe.vote(9000 + number, number * 977, b"row %d" % number))
        assert row == (None if number < z - 1 else b"row %d" % number)
    stats = shard.stats
    assert (stats["keys_recovered"], stats["rows_opened"]) == (1, 4)
    assert stats["rows_short"] == z - 1


def test_a_user_who_comes_again_is_one() -> None:
    probe, shard = Probe(3), _core.ThresholdShard(z=3, window_ns=WINDOW)
    users = [1, 2, 1, 2, 1 | 0xABC << 32, 2, 3]  # bits 32 to 55 do not decide
    rows = [take(shard, probe.vote(9000, user)) for user in users]
    assert rows == [None] * 6 + [b"row"]
    assert shard.stats["shares_conflicts"] == 0


def test_what_is_not_released_stays_closed() -> None:
    probe, shard = Probe(2), _core.ThresholdShard(z=2, window_ns=WINDOW)
    rows = [take(shard, probe.vote(9000, user), released=user != 3) for user in range(1, 5)]
    assert rows == [None, b"row", None, b"row"]


def test_shares_of_other_names_and_epochs_do_not_help() -> None:
    probe, shard = Probe(2), _core.ThresholdShard(z=2, window_ns=WINDOW)
    assert take(shard, probe.vote(9000, 1, lo=LO + 1)) is None
    assert take(shard, probe.vote(9000, 2)) is None
    assert take(shard, probe.vote(13000, 3)) is None
    assert take(shard, probe.vote(13001, 4)) == b"row"


def test_shares_without_rows_count() -> None:
    probe, shard = Probe(2), _core.ThresholdShard(z=2, window_ns=WINDOW)
    assert take(shard, probe.vote(9000, 1, b"")) is None
    assert take(shard, probe.vote(9000, 2)) == b"row"


# ---- hostile shares -----------------------------------------------------------------------------


def spoiled(vote: _core.VoteRows) -> _core.VoteRows:
    return with_attachment(vote, bytes(64) + vote.attachments()[0][64:])


@each("false_at", range(4))
@each("z", [2, 3, 5])
def test_a_false_share_costs_one_user(z: int, false_at: int) -> None:
    probe, shard = Probe(z), _core.ThresholdShard(z=z, window_ns=WINDOW)
    rows = []
    for number in range(z + 2):
        vote = probe.vote(9000, number)
        rows.append(take(shard, spoiled(vote) if number == min(false_at, z - 1) else vote))
    assert rows == [None] * z + [b"row"] * 2
    assert shard.stats["keys_recovered"] == 1


def test_many_false_shares_suppress_and_are_counted() -> None:
    probe, shard = Probe(5), _core.ThresholdShard(z=5, window_ns=WINDOW)
    rng = random.Random(1)
    for number in range(500):
        vote = probe.vote(9000, number)
        assert take(shard, spoiled(vote) if rng.random() < 0.9 else vote) is None
    assert shard.stats["keys_spoiled"] == 1
    assert shard.stats["rows_opened"] == 0


def test_a_share_that_differs_from_the_first_of_its_user_is_counted() -> None:
    probe, shard = Probe(3), _core.ThresholdShard(z=3, window_ns=WINDOW)
    take(shard, probe.vote(9000, 1))
    take(shard, spoiled(probe.vote(9000, 1)))
    assert shard.stats["shares_conflicts"] == 4
    assert [take(shard, probe.vote(9000, user)) for user in (2, 3)] == [None, b"row"]


def test_a_row_of_another_key_opens_nothing() -> None:
    """One probe that lies spoils nothing that is recovered, and its row stays closed."""
    probe, liar = Probe(2), Probe(2, key=bytes(32))
    shard = _core.ThresholdShard(z=2, window_ns=WINDOW)
    for user in (1, 2):
        take(shard, probe.vote(9000, user))
    assert take(shard, liar.vote(9000, 3)) is None
    assert shard.stats["rows_spoiled"] == 1
    assert take(shard, probe.vote(9000, 4)) == b"row"


@settings(deadline=None)
@given(noise=st.binary(max_size=400), released=st.booleans())
def test_noise_is_suppressed(noise: bytes, released: bool) -> None:
    shard = _core.ThresholdShard(z=1, window_ns=WINDOW)
    assert take(shard, with_attachment(Probe(1).vote(9000, 1), noise), released=released) is None
    assert shard.stats["votes_malformed"] == (0 < len(noise) < 64)


def test_bytes_that_no_line_has_are_suppressed() -> None:
    probe, shard = Probe(1), _core.ThresholdShard(z=1, window_ns=WINDOW)
    for row in (b"a\nb", b"\x1b[0m", b"\x7f", b"\xc3\xa9"):
        assert take(shard, probe.vote(9000, 1, row)) is None
    assert shard.stats["rows_unprinted"] == 4
    assert take(shard, probe.vote(9000, 1, b" ~")) == b" ~"


# ---- time, memory and snapshots -----------------------------------------------------------------


def test_epochs_that_are_over_take_no_memory() -> None:
    probe = Probe(2)
    shard = _core.ThresholdShard(z=2, window_ns=WINDOW, max_groups=50)
    for t_ns in range(0, 100_000, 500):
        take(shard, probe.vote(t_ns, 1, lo=t_ns))
    assert shard.stats["shares_full"] == 0


@pytest.mark.source
def test_memory_that_cannot_be_had_is_an_error() -> None:
    for n in itertools.count(1):
        _core.fail_allocation(n)
        with suppress(CapacityError):
            _core.ThresholdShard(z=2, window_ns=WINDOW, epochs=4, max_groups=50)
            break
    _core.fail_allocation(0)
    assert n > 10  # the shard, two slabs, shares, scratch memory, and five tables of epochs


def test_at_the_cap_new_shares_are_dropped() -> None:
    probe = Probe(2)
    shard = _core.ThresholdShard(z=2, window_ns=WINDOW, max_groups=8)
    rows = [take(shard, probe.vote(9000, user, lo=lo)) for lo in range(4) for user in range(2)]
    assert rows == [None, b"row", None, b"row", None, None, None, None]
    assert shard.stats["shares_full"] > 0


def test_late_votes_are_suppressed_until_the_clock_is_proved_wrong() -> None:
    probe, shard = Probe(2), _core.ThresholdShard(z=2, window_ns=WINDOW)
    take(shard, probe.vote(10**15, 1))
    rows = [take(shard, probe.vote(9000, user)) for user in range(300)]
    assert rows[:257] == [None] * 257
    assert all(row == b"row" for row in rows[258:])
    assert shard.stats["resets"] == 1


@settings(deadline=None)
@given(seed=st.integers(0, 1 << 32), cut=st.integers(0, 60))
def test_a_restored_shard_goes_on(seed: int, cut: int) -> None:
    rng = random.Random(seed)
    z = rng.choice([1, 2, 5])
    probe = Probe(z)
    votes = []
    for number in range(60):
        vote = probe.vote(9000 + 40 * number, rng.randrange(9), lo=rng.randrange(3))
        votes.append(spoiled(vote) if rng.random() < 0.1 else vote)
    whole = _core.ThresholdShard(z=z, window_ns=WINDOW)
    expected = [take(whole, vote) for vote in votes]
    first = _core.ThresholdShard(z=z, window_ns=WINDOW)
    rows = [take(first, vote) for vote in votes[:cut]]
    second = _core.ThresholdShard(z=z, window_ns=WINDOW)
    second.load(first.dump())
    assert rows + [take(second, vote) for vote in votes[cut:]] == expected


@settings(deadline=None)
@given(data=st.data())
def test_a_damaged_snapshot_is_refused_or_only_suppresses(data: st.DataObject) -> None:
    probe, shard = Probe(3), _core.ThresholdShard(z=3, window_ns=WINDOW)
    for user in (1, 2):
        take(shard, probe.vote(9000, user))
    changed = bytearray(shard.dump())
    if data.draw(st.booleans()):
        del changed[data.draw(st.integers(0, len(changed) - 1)) :]
    else:
        changed[data.draw(st.integers(0, len(changed) - 1))] ^= data.draw(st.integers(1, 255))
    other = _core.ThresholdShard(z=3, window_ns=WINDOW)
    with suppress(FormatError):
        other.load(bytes(changed))
    assert take(other, probe.vote(9000, 2)) is None
    assert take(other, probe.vote(9000, 3)) in (None, b"row")


def test_a_snapshot_of_other_settings_is_refused() -> None:
    dump = _core.ThresholdShard(z=3, window_ns=WINDOW).dump()
    for others in ({"z": 4}, {"window_ns": 5000}, {"epochs": 5}):
        shard = _core.ThresholdShard(**{"z": 3, "window_ns": WINDOW, **others})
        with pytest.raises(FormatError, match="other settings"):
            shard.load(dump)


@pytest.mark.parametrize(
    "numbers", [{"z": 0}, {"z": 1025}, {"epochs": 0}, {"epochs": 17}, {"window_ns": 3}]
)
def test_numbers_out_of_range_are_refused(numbers: dict[str, int]) -> None:
    chosen = {"z": 3, "window_ns": WINDOW, "epochs": 4, **numbers}
    with pytest.raises(ConfigError):
        _core.ThresholdShard(**chosen)
    with pytest.raises(ConfigError):
        _core.ThresholdSealer(KEY, **chosen)
