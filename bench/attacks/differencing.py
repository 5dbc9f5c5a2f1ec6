# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Names the withheld records of a log by a second log of the same traffic with a smaller z.

Knowledge: both logs and their rule. A record that the second log names and the first log does not
may be any withheld record of the first log that it would look like there. If all such records have
one name, that is the answer.
"""

import numpy as np
from view import HIDDEN, SIZES, Guesses, Ints, View, equal_rows, row_keys

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
