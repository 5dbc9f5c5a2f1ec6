# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`publish` without memory, with states from elsewhere, and with users who come again late."""

import struct
from typing import Any

import numpy as np
import pytest
from support.publish import AGE, CITY, csv_bytes, open_publisher

from zanon_net import _core
from zanon_net.errors import CapacityError, ConfigError, FormatError

pytestmark = pytest.mark.source

S = 1_000_000_000


def test_without_memory_no_part_of_a_release_leaves() -> None:
    """A release is one class of 100 users here: fewer of its lines would be fewer users."""
    data = csv_bytes([(n, f"user{n}", "bern", 1, "x" * 1500, "") for n in range(100)])
    seen = set()
    for n in range(60):
        publisher = open_publisher(k=100, rows=100)
        _core.fail_allocation(n)
        try:
            publisher.feed(data)
            publisher.end()
        except CapacityError:
            seen.add("failed")
        finally:
            _core.fail_allocation(0)
        lines = [line for line in publisher.take().splitlines() if b"x" in line]
        assert len(lines) in (0, 100), n
        seen.add(len(lines))
    assert seen == {"failed", 0, 100}


def written(times_and_users: list[tuple[int, str]], **options: Any) -> list[str]:
    """The products of the rows that leave: the users' names here."""
    publisher = open_publisher(k=1, rows=100, **options)
    publisher.feed(csv_bytes([(t, user, "bern", 1, user, "") for t, user in times_and_users]))
    publisher.end()
    publisher.finish()
    return sorted(line.split(",")[-1] for line in publisher.take().decode().splitlines()[1:])


def test_a_late_row_is_a_further_row_too() -> None:
    late = [(0, "x"), (60, "b"), (1, "x"), (61, "c"), (62, "d")]
    assert written(late, delay="100s", once="60s") == ["b", "c", "d", "x"]
    between = [(0, "x"), (60, "x"), (30, "x"), (120, "x")]
    assert written(between, delay="100s", once="60s") == ["x", "x", "x"]


def test_once_needs_a_delay() -> None:
    with pytest.raises(ConfigError, match="once: needs --delay"):
        open_publisher(once="60s", delay=None)


NUMBERS = {
    "k": 1,
    "l": 1,
    "kind": 0,
    "c": 1.0,
    "max_share": 1.0,
    "sensitive_count": 1,
    "with_user": True,
    "rows": 4,
    "neighbours": 3,
    "growth": 3,
    "lambda_": 0.7,
    "adapt_way": 1,
}
KINDS = [
    {"delay_ns": 0, "sliding": False, "adapt_l": 3, "once_ns": 0},
    {"delay_ns": 9 * S, "sliding": False, "adapt_l": 0, "once_ns": 5 * S},
    {"delay_ns": 0, "sliding": True, "adapt_l": 0, "once_ns": 0},
    {"delay_ns": 9 * S, "sliding": True, "adapt_l": 0, "once_ns": 0},
]
WORDS = [0, 1, 3, 4, 5, 7, 8, 2**31, 2**32, 2**63, 2**64 - 1, 0xBFF0000000000000]  # -1.0


def coded(kind: dict[str, Any]) -> Any:
    return _core.CodedPublisher([CITY.taxonomy, AGE.taxonomy], **NUMBERS, **kind)


def feed(publisher: Any, n: int, start: int) -> None:
    """Takes n rows of different users, a second apart."""
    numbers = np.arange(start, start + n)
    nodes = [numbers.astype(np.int32) % 3, numbers.astype(np.int32) % 2]
    users = numbers.astype(np.uint64)
    publisher.feed(numbers * S, users, nodes, [users % np.uint64(3)], start)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_state_that_was_changed_breaks_nothing(kind: dict[str, Any]) -> None:
    """Each of its words is replaced; what is accepted goes on within its bounds."""
    first = coded(kind)
    feed(first, 3, 1)
    saved = first.save()
    refused = 0
    # Not those of the counters of delays and of l, which are only added up.
    for at in (*range(0, 320, 8), *range(len(saved) - 480, len(saved), 8)):
        for word in WORDS:
            changed = saved[:at] + struct.pack("<Q", word) + saved[at + 8 :]
            publisher = coded(kind)
            try:
                publisher.load(changed)
            except FormatError:
                refused += 1
                continue
            assert len(publisher.waiting()) < (4 if kind["sliding"] else 8)
            feed(publisher, 9, 10)
            publisher.end()
            assert len(publisher.waiting()) == 0
    assert refused > 50
    whole = coded(kind)
    whole.load(saved)
    assert list(whole.waiting()) == [1, 2, 3]


def test_an_unopened_publisher_is_an_error() -> None:
    empty = _core.CodedPublisher.__new__(_core.CodedPublisher)
    with pytest.raises(RuntimeError, match="never opened"):
        _ = empty.deadline_ns
