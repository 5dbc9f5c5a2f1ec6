# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Links pseudonyms of one epoch to pseudonyms of the next by behaviour: cosine, nearest neighbour.

Knowledge: the log alone. Behaviour is the names that the log shows for a pseudonym (and how often),
the sizes of its records in half octaves and, with long epochs, its hours. A feature that many share
weighs less (Herrmann et al. 2013). If keys do not change, a pseudonym is one user, and nothing is
compared.
"""

import numpy as np
from scipy import sparse
from view import HIDDEN, HOUR, Floats, Guesses, Ints, Knowledge, View

from zanon_net.audit.attack_math import (
    HOUR_WEIGHT,
    HOURS,
    SIZE_BINS,
    SIZE_WEIGHT,
    counted,
    stacked,
    unit_rows,
)


def behaviour(view: View, knowledge: Knowledge, records: Ints, pairs: Ints) -> sparse.csr_matrix:
    """Returns a row of features for each of the pairs, of length one; `records`: those to look
    at."""
    row_of = np.full(len(view.groups[0]), -1)
    row_of[pairs] = np.arange(len(pairs))
    row = row_of[view.groups[2][records]]
    shape = (len(pairs), knowledge.names)
    named = view.name[records] != HIDDEN
    parts = [counted(row[named], view.name[records][named], shape)]
    tcp = view.tcp[records]
    size = np.log2(np.maximum(view.s_bytes[records][tcp], 1)) * 2
    parts.append(counted(row[tcp], size.astype(np.int64), (len(pairs), SIZE_BINS)) * SIZE_WEIGHT)
    hour = view.start_ns[records] // HOUR % HOURS
    if len(np.unique(hour)) > 1:
        parts.append(counted(row, hour, (len(pairs), HOURS)) * HOUR_WEIGHT)
    return unit_rows(stacked(parts))


def two_epochs(view: View, epoch: int) -> tuple[Ints, Ints, Ints]:
    """Returns the pairs of an epoch and of the one before, and the records of both."""
    epochs = view.groups[0]
    later, earlier = np.flatnonzero(epochs == epoch), np.flatnonzero(epochs == epoch - 1)
    of = view.groups[2]
    records = np.flatnonzero((of >= 0) & ((view.epoch == epoch) | (view.epoch == epoch - 1)))
    return later, earlier, records


def similarity(view: View, knowledge: Knowledge, epoch: int) -> tuple[Ints, Ints, Floats]:
    """Pairs of the epoch, pairs of the one before, and how alike they are (cosine)."""
    later, earlier, records = two_epochs(view, epoch)
    rows = behaviour(view, knowledge, records, np.concatenate([later, earlier]))
    alike = (rows[: len(later)] @ rows[len(later) :].T).toarray().astype(np.float32)
    if not view.rotates:
        clients = view.groups[1]
        alike += 2 * (clients[later][:, None] == clients[earlier][None, :])
    return later, earlier, alike


def link(view: View, knowledge: Knowledge, rng: np.random.Generator, epoch: int) -> Guesses:
    """For each pair of the epoch the most similar one of the epoch before; ties by chance."""
    later, earlier, alike = similarity(view, knowledge, epoch)
    if not len(later) or not len(earlier):
        return Guesses(later[:0], later[:0])
    mixed = rng.permutation(len(earlier))
    return Guesses(later, earlier[mixed[alike[:, mixed].argmax(axis=1)]])
