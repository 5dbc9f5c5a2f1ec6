# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Guesses the time at which a coarse record's flow ended.

Knowledge: the log alone. The attacker hopes that records are in the order of their flows' ends: the
record before and the record after, whose times are exact, then enclose the end. Otherwise the guess
is the middle of the minute that the record states. A log without coarse records states each end
itself.
"""

import numpy as np
from view import MINUTE, Guesses, Ints, Knowledge, View

MOST = 20_000  # records that are attacked


def middle(view: View, records: Ints) -> Ints:
    """Returns the middle of the minute that these records state for their ends."""
    stated = view.start_ns if view.rule.closing else view.end_ns
    return stated[records] // MINUTE * MINUTE + MINUTE // 2


def order(
    view: View,
    knowledge: Knowledge,
    rng: np.random.Generator,
    *,
    by_place: bool,
) -> Guesses:
    """Returns the end of each coarse TCP record, of a sample of them."""
    tcp = np.flatnonzero(view.tcp)
    targets = tcp[view.coarse[tcp]]
    if not len(targets):
        targets = rng.permutation(tcp)[:MOST]
        return Guesses(targets, view.end_ns[targets])
    targets = np.sort(rng.permutation(targets)[:MOST])
    guess = middle(view, targets)
    exact = tcp[~view.coarse[tcp]]
    if by_place and len(exact):
        after = np.minimum(np.searchsorted(exact, targets), len(exact) - 1)
        ends = view.end_ns[exact] + view.rule.time_ns // 2
        low, high = ends[np.maximum(after - 1, 0)], ends[after]
        narrow = np.abs(high - low) < MINUTE
        guess = np.where(narrow, (low + high) // 2, guess)
    return Guesses(targets, guess)
