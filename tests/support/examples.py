# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Share of the cases that a run of the tests tries: `make test` tries representatives, and
`make test-all` and `make test-random` try every case."""

import os
from collections import defaultdict
from collections.abc import Sequence

import pytest

EVERY_CASE = os.environ.get("ZANON_TESTS") == "all"


def examples(number: int) -> int:
    """Returns the number of examples that Hypothesis tries: `number` if every case is tried, else
    half of it. Under sanitizers, where C is several times slower, it is a third: few examples reach
    all code of a test, and sanitizers look for other faults than wrong answers."""
    part = 3 if "ZANON_SANITIZE" in os.environ else 1 if EVERY_CASE else 2
    return -(-number // part)


def representatives(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Returns the tests to run, in order. Of a test that is marked `family(n)`, these are the n
    parameter sets that are spread evenly over all of them; n may be 0."""
    families: dict[str, list[pytest.Item]] = defaultdict(list)
    kept: set[str] = set()
    for item in items:
        families[item.nodeid.partition("[")[0]].append(item)
    for members in families.values():
        mark = members[0].get_closest_marker("family")
        if mark is None or mark.args[0] >= len(members):
            chosen = members
        else:
            last, steps = len(members) - 1, max(mark.args[0] - 1, 1)
            chosen = [members[i * last // steps] for i in range(mark.args[0])]
        kept |= {item.nodeid for item in chosen}
    return [item for item in items if item.nodeid in kept]
