# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""CPU time and memory of the audit's count of users, with much memory and with little.

Observations of a day come in order of time. The most frequent name has about a sixth of them. Each
row is a process of its own, whose peak memory has the observations and Python's modules in it.
"""

import argparse
import resource
import subprocess
import sys
import time

import numpy as np

from zanon_net.audit.raw.sweep import Observations, count_users

HOUR_NS = 3600 * 10**9
DAY_NS = 24 * HOUR_NS
PIECE = 1 << 18
USERS, NAMES = 50_000, 200_000
MEMORIES = (2 << 30, 400_000_000)


def observations(size: int) -> Observations:
    """Returns generated observations, made in pieces so that they take no other memory."""
    rng = np.random.default_rng(1)
    made = Observations(
        np.empty(size, np.int64), np.empty(size, np.uint32), np.empty(size, np.uint32)
    )
    for start in range(0, size, PIECE):
        piece = slice(start, min(start + PIECE, size))
        n = piece.stop - start
        span = DAY_NS * n // size
        made.t_ns[piece] = np.sort(rng.integers(0, span, n)) + DAY_NS * start // size
        made.users[piece] = rng.integers(0, USERS, n)
        made.names[piece] = rng.zipf(1.2, n) % NAMES
    return made


def measure(size: int, memory: int) -> None:
    """Prints a row."""
    rows = observations(size)
    start = time.process_time()
    count_users(rows, HOUR_NS, memory=memory)
    spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{size:12,} {memory / 1e6:9,.0f} MB {spent:8.1f} s {peak / 1e6:9,.0f} MB", flush=True)


def main() -> None:
    """Measures each amount of memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", type=int, default=10_000_000, help="number of observations")
    parser.add_argument("--memory", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory is not None:
        measure(arguments.size, arguments.memory)
        return
    print("observations  --memory    CPU time  peak memory", flush=True)
    for memory in MEMORIES:
        command = [sys.executable, __file__, "--size", str(arguments.size), "--memory", str(memory)]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
