# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of the modes *sealed* and *threshold* of a counter, and their releases.

Usage: python bench/scale_sealed.py [--observations 2000000] [--epochs 1,2,4,8] [--repeat 3]

The stream: names by Zipf's law (1.15) over 36 million, 50,000 users, 4 probes, 833 observations a
second, z = 5 within 10 minutes. Exact is one z-table over the whole stream. Beyond exact are
observations that threshold released and exact did not. Openable are rows for whose name and epoch
the counter has z users' shares when the epoch ends, released or not. Costs are of one thread, the
median of repeats, from Python, with the call spread over a message of 10,000 votes.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np

from zanon_net import ZTable
from zanon_net._core import (
    RowSealer,
    ThresholdSealer,
    ThresholdShard,
    VoteRows,
    VoteWriter,
    read_votes,
    reader_key_new,
    reader_public_key,
    vote_settings,
    write_answers,
)

KEY = bytes(range(32))
Z, WINDOW_NS, USERS, PROBES = 5, 600 * 10**9, 50_000, 4
NAMES, EXPONENT = 36_000_000, 1.15
RATE = 833
ROW = (
    b'{"t_ns":1700000000000000000,"client":"10.123.45.67",'
    b'"name":"%08d.example","name_source":"tls"}'
)
BATCH = 10_000


def stream(observations: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, users and names, in the order of time."""
    rng = np.random.default_rng(28)
    t_ns = np.sort(rng.integers(0, observations * 10**9 // RATE, observations))
    names = rng.zipf(EXPONENT, 2 * observations)
    names = names[names <= NAMES][:observations]
    return t_ns + 10**18, rng.integers(0, USERS, observations), names


def hashed(numbers: np.ndarray, salt: int) -> np.ndarray:
    """Returns words that replace keyed hashes (splitmix64)."""
    x = (numbers.astype(np.uint64) + np.uint64(salt)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x = (x ^ (x >> np.uint64(shift))) * np.uint64(factor)
    return x ^ (x >> np.uint64(31))


# ---- releases -----------------------------------------------------------------------------------


def threshold_releases(
    columns: tuple[np.ndarray, ...], exact: np.ndarray, epochs: int
) -> np.ndarray:
    """Returns true for observations that threshold releases: messages of 10,000 votes, decided at
    once."""
    t_ns, user, lo, hi = columns
    sealer = ThresholdSealer(KEY, z=Z, window_ns=WINDOW_NS, epochs=epochs)
    shard = ThresholdShard(z=Z, window_ns=WINDOW_NS, epochs=epochs)
    writer = VoteWriter(1, 0, vote_settings(Z, WINDOW_NS))
    released = np.zeros(len(t_ns), bool)
    for start in range(0, len(t_ns), BATCH):
        part = slice(start, start + BATCH)
        writer.add_columns(1, t_ns[part], user[part], lo[part], hi[part])
        plain = writer.finish(int(t_ns[part][-1]))
        numbers = start + writer.order.astype(np.int64)
        rows = VoteRows(sealer.attach(plain, [b"%d" % number for number in numbers]))
        probe, number, sequence = rows.key
        answer = write_answers(number, probe, sequence, vote_settings(Z, WINDOW_NS), exact[numbers])
        opened = shard.take([(rows, answer)])
        released[[int(row) for row in opened]] = True
    return released


def openable(t_ns: np.ndarray, user: np.ndarray, name: np.ndarray, epochs: int) -> np.ndarray:
    """Rows whose epoch has z users of their name in the end."""
    step = WINDOW_NS // epochs
    newest = (t_ns - t_ns[0] // step * step) // step
    rows = np.arange(len(t_ns))
    triples = np.concatenate([
        (name.astype(np.uint64) << np.uint64(34))
        | ((newest - i + epochs).astype(np.uint64) << np.uint64(17))
        | user.astype(np.uint64)
        for i in range(epochs)
    ])  # fmt: skip
    groups, users = np.unique(np.unique(triples) >> np.uint64(17), return_counts=True)
    own = (name.astype(np.uint64) << np.uint64(17)) | (newest + 1).astype(np.uint64)
    return np.asarray(users[np.searchsorted(groups, own[rows])] >= Z)


def print_releases(observations: int, many: list[int]) -> None:
    """Releases of both, for several numbers of epochs."""
    t_ns, user, name = stream(observations)
    table = ZTable(Z, WINDOW_NS, keep=Z)
    exact = table.observe_batch(t_ns, hashed(user, 1), hashed(name, 2))
    columns = (t_ns, hashed(user, 3), hashed(name, 4), hashed(name, 5))
    print(f"{observations} observations, exact releases {exact.sum()}")
    print("| epochs | share of exact | beyond exact | openable, of the released | rows |")
    print("|---:|---:|---:|---:|---:|")
    for epochs in many:
        released = threshold_releases(columns, exact, epochs)
        beyond = int((released & ~exact).sum())
        more = int((openable(t_ns, user, name, epochs) & ~released).sum())
        share = released.sum() / exact.sum()
        print(f"| {epochs} | {share:.4f} | {beyond} | +{more / released.sum():.2%} | +{more} |")


# ---- costs --------------------------------------------------------------------------------------


def nanoseconds(work: Callable[[], object], calls: int, repeat: int) -> float:
    """Returns CPU time of a call."""
    times = []
    for _ in range(repeat):
        begin = time.process_time_ns()
        work()
        times.append((time.process_time_ns() - begin) / calls)
    return statistics.median(times)


def message_of(names: int) -> bytes:
    """Returns a message of BATCH votes for `names` names."""
    writer = VoteWriter(1, 0, 1)
    numbers = np.arange(BATCH)
    words = (hashed(numbers, 1), hashed(numbers % names, 2), hashed(numbers % names, 3))
    writer.add_columns(1, numbers + 10**18, *words)
    return writer.finish(2 * 10**18)


def share_ns(z: int, names: int, repeat: int) -> float:
    """Returns the cost of a share, with four a vote: for popular names, or with new polynomials."""
    plain, nothing = message_of(names), [b""] * BATCH
    sealer = ThresholdSealer(KEY, z=z, window_ns=WINDOW_NS)
    without = nanoseconds(lambda: read_votes(plain), BATCH, repeat)
    if names < BATCH:
        sealer.attach(plain, nothing)
    return (nanoseconds(lambda: sealer.attach(plain, nothing), BATCH, repeat) - without) / 4


def recovery_ns(z: int) -> float:
    """From z shares to a row that is open."""
    sealer = ThresholdSealer(KEY, z=z, window_ns=WINDOW_NS)
    writer, names = VoteWriter(1, 0, 1), 50
    for name in range(names):
        for user in range(z):
            writer.add(1, 10**18, user, name, name)
    plain = writer.finish(2 * 10**18)
    rows = VoteRows(sealer.attach(plain, [ROW % 1] * (names * z)))
    answers = [(i % z == z - 1) for i in range(names * z)]
    both = []
    for decided in (answers, [False] * (names * z)):
        fresh = ThresholdShard(z=z, window_ns=WINDOW_NS)
        answer = write_answers(0, 1, 1, 1, decided)
        begin = time.process_time_ns()
        fresh.take([(rows, answer)])
        both.append(time.process_time_ns() - begin)
    return (both[0] - both[1]) / names


def print_costs(repeat: int) -> None:
    """Costs of shares, rows and keys."""
    print("\n| z | share | share of a new name and epoch | recovery of a key |")
    print("|---:|---:|---:|---:|")
    for z in (5, 20, 100):
        hot, new = share_ns(z, 10, repeat), share_ns(z, BATCH, repeat)
        print(f"| {z} | {hot:.0f} ns | {new:.0f} ns | {recovery_ns(z) / 1000:.0f} us |")
    _secret, public = reader_key_new()
    sealer = RowSealer(reader_public_key(public))
    plain, rows = message_of(100), [ROW % i for i in range(BATCH)]
    seal = nanoseconds(lambda: sealer.attach(plain, rows), BATCH, repeat)
    renew = nanoseconds(sealer.renew, 1, 20)
    sealed, shared = (
        len(sealer.attach(plain, rows)),
        len(ThresholdSealer(KEY, z=Z, window_ns=WINDOW_NS).attach(plain, rows)),
    )
    print(f"\nsealed: {seal:.0f} ns a row, {renew / 1000:.0f} us for the keys of an interval")
    print(
        f"bytes a vote: ask {len(plain) / BATCH:.1f}, sealed {sealed / BATCH:.1f},"
        f" threshold {shared / BATCH:.1f}; a row has {len(ROW % 1)}"
    )


def main() -> None:
    """Prints all tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--observations", type=int, default=2_000_000)
    parser.add_argument("--epochs", default="1,2,4,8")
    parser.add_argument("--repeat", type=int, default=3)
    arguments = parser.parse_args()
    print_releases(arguments.observations, [int(m) for m in arguments.epochs.split(",")])
    print_costs(arguments.repeat)


if __name__ == "__main__":
    main()
