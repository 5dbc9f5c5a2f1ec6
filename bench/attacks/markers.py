# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the pseudonyms of the attacker's own hosts by sizes that the attacker chose.

Knowledge: the name, the hour and the sizes of one flow of each host (`Knowledge.markers`), the
log's rule for sizes. With the hosts' pseudonyms an attacker learns the key's effect on known
addresses (Brekne 2005), or where other clients of their networks are.
"""

import numpy as np
from view import (
    HIDDEN,
    HOUR,
    NOBODY,
    Guesses,
    Knowledge,
    View,
    equal_rows,
    row_keys,
    two_digits,
)


def markers(view: View, knowledge: Knowledge, rng: np.random.Generator) -> Guesses:
    """Returns the pair of each marked flow, if one pair alone has such a record in that hour."""
    marked, of = knowledge.markers, view.groups[2]
    records = np.flatnonzero((view.name != HIDDEN) & (of != NOBODY) & view.tcp)
    rounded = two_digits if view.rule.digits else np.asarray
    hour = view.start_ns[records] // HOUR
    key = row_keys(hour, view.name[records], view.c_bytes[records], view.s_bytes[records])
    asked = row_keys(marked.epoch, marked.name, rounded(marked.c_bytes), rounded(marked.s_bytes))
    flow, place = equal_rows(key, asked)
    flow, pair = np.unique(np.stack([flow, of[records[place]]]), axis=1)
    alone = np.bincount(flow, minlength=len(asked))[flow] == 1
    answer = np.full(len(asked), HIDDEN)
    answer[flow[alone]] = pair[alone]
    return Guesses(np.arange(len(asked)), answer)
