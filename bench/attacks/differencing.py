# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Attacks that take published values away from a log with a larger z, or from labels.

`differencing` names the withheld records of a log by a second log of the same traffic with a
smaller z. Knowledge: both logs and their rule. A record that the second log names and the first log
does not may be any withheld record of the first log that it would look like there. If all such
records have one name, that is the answer.

`uncovered` takes the values with finer published labels away from each published label. Knowledge:
the log, z, the window, the rule, and the lists that give each value its labels.
"""

from collections.abc import Iterator

import numpy as np
from view import HIDDEN, SIZES, Guesses, Ints, LabelLog, View, equal_rows, row_keys

MOST = 4000  # records that are attacked


def differencing(view: View, second: View, rng: np.random.Generator) -> Guesses:
    """Returns the name of each of a sample of withheld TCP records, or HIDDEN."""
    hidden = np.flatnonzero(view.tcp & (view.name == HIDDEN))
    hidden = np.sort(rng.permutation(hidden)[:MOST])
    named = np.flatnonzero(second.tcp & (second.name != HIDDEN))
    shown = row_keys(view.name, view.start_ns, *sizes(view))[view.name != HIDDEN]
    again = row_keys(second.name, second.start_ns, *sizes(second))[named]
    named = named[~np.isin(again, shown)]
    looks = view.rule.coarse(second, named)
    key = row_keys(looks["start_ns"], *(looks[field] for field in SIZES))
    asked = row_keys(view.start_ns[hidden], *(size[hidden] for size in sizes(view)))
    record, place = equal_rows(key, asked)
    record, name = np.unique(np.stack([record, second.name[named[place]]]), axis=1)
    alone = np.bincount(record, minlength=len(hidden))[record] == 1
    answer = np.full(len(hidden), HIDDEN)
    answer[record[alone]] = name[alone]
    return Guesses(hidden, answer)


def sizes(view: View) -> list[Ints]:
    """Returns the columns of sizes."""
    return [getattr(view, field) for field in SIZES]


def uncovered(
    log: LabelLog, chains: Ints, window_ns: int, every: int = 1
) -> Iterator[tuple[int, Ints]]:
    """Yields the place of each label above level 0, and the values left below the label.

    chains: the labels of each value, finest first; 0 is none. A value is taken away if the log
    showed a finer label of the value within the window. every: attacks each n-th line of the log.
    """
    level_of = np.zeros(int(chains.max()) + 1, dtype=np.int64)
    for level in range(1, chains.shape[1]):
        level_of[chains[:, level]] = level
    level_of[0] = 0
    shown = np.full(len(level_of), np.iinfo(np.int64).min)
    below: dict[int, tuple[Ints, Ints]] = {}
    for place, (t, label) in enumerate(zip(log.time_ns.tolist(), log.label.tolist(), strict=True)):
        if (level := int(level_of[label])) and place % every == 0:
            if label not in below:
                values = np.flatnonzero(chains[:, level] == label)
                below[label] = values, chains[values, :level]
            values, finer = below[label]
            yield place, values[(shown[finer] < t - window_ns).all(axis=1)]
        shown[label] = t
