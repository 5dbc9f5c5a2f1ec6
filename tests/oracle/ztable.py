# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The oracle of the z-table: brute force, short enough to be checked by reading."""

from collections import defaultdict
from collections.abc import Hashable


class ZOracle:
    """z-anonymity by brute force over all observations received so far, in whatever order."""

    def __init__(self, z: int, window_ns: int) -> None:
        self.z = z
        self.window_ns = window_ns
        self.seen: dict[Hashable, list[tuple[int, Hashable]]] = defaultdict(list)

    def users(self, t_ns: int, attribute: Hashable, first: int | None = None) -> int:
        """Distinct users that exposed `attribute` in [t_ns - window, t_ns]; with `first`, by only
        the first `first` observations of the attribute."""
        seen = self.seen.get(attribute, [])[:first]
        return len({user for t, user in seen if t_ns - self.window_ns <= t <= t_ns})

    def observe(self, t_ns: int, user: Hashable, attribute: Hashable) -> bool:
        """Takes one observation in; True when at least z users share it."""
        self.seen[attribute].append((t_ns, user))
        return self.users(t_ns, attribute) >= self.z
