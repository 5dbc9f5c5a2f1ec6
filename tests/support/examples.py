# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Share of the cases that a run of the tests tries: `make test` tries representatives, and
`make test-all` and `make test-random` try every case."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from inspect import signature
from typing import Any, TypeVar

import pytest

Item = TypeVar("Item")

EVERY_CASE = os.environ.get("ZANON_TESTS") == "all"
SANITIZED = "ZANON_SANITIZE" in os.environ
SANITIZED_SETS = 3 if os.environ.get("ZANON_TESTS") == "few" else 6


def examples(number: int, part: int = 4) -> int:
    """Returns the number of examples that Hypothesis tries: `number` if every case is tried, else
    `number / part`; tests whose examples take longest have a part of 8. This also holds under
    sanitizers, where C is several times slower: few examples reach all code of a test, and
    sanitizers look for other faults than wrong answers."""
    return number if EVERY_CASE and not SANITIZED else -(-number // part)


def spread(items: Sequence[Item], number: int) -> list[Item]:
    """Returns `number` items, spread evenly over all of them."""
    last, steps = len(items) - 1, max(number - 1, 1)
    return [items[i * last // steps] for i in range(number)]


def each(names: str, sets: Iterable[Any]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes one test of all parameter sets, each of which is cheaper than a test of its own.

    Takes the arguments of `pytest.mark.parametrize`. The sets share the fixtures of the test.
    The test ends at the first set that fails, and the failure names the set.
    """
    keys = [name.strip() for name in names.split(",")]
    values = list(sets)
    if SANITIZED and len(values) > SANITIZED_SETS:
        values = spread(values, SANITIZED_SETS)

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def try_all(*arguments: Any, **fixtures: Any) -> None:
            for number, value in enumerate(values):
                chosen = dict(zip(keys, value, strict=True)) if len(keys) > 1 else {names: value}
                try:
                    test(*arguments, **fixtures, **chosen)
                except BaseException as error:
                    error.add_note(f"set {number}: {chosen!r:.1000}")
                    raise

        whole = signature(test)
        others = [one for name, one in whole.parameters.items() if name not in keys]
        try_all.__signature__ = whole.replace(parameters=others)  # type: ignore[attr-defined]
        return try_all

    return decorate


def representatives(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Returns the tests to run, in order. Of a test that is marked `family(n)`, these are the n
    parameter sets that are spread evenly over all of them; n may be 0. Under sanitizers at most
    SANITIZED_SETS sets of any test run, because the others reach the same code."""
    families: dict[str, list[pytest.Item]] = defaultdict(list)
    kept: set[str] = set()
    for item in items:
        families[item.nodeid.partition("[")[0]].append(item)
    for members in families.values():
        mark = members[0].get_closest_marker("family")
        count = len(members) if mark is None else mark.args[0]
        if SANITIZED:
            count = min(count, SANITIZED_SETS)
        chosen = members if count >= len(members) else spread(members, count)
        kept |= {item.nodeid for item in chosen}
    return [item for item in items if item.nodeid in kept]
