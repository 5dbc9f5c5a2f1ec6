# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Third parties join their own logs with a published log, by time.

Knowledge: the times of each user's visits to the operators' hosts. A record of such a host is a
visit if its second (or the span that the log rounds times to) has one visit to the host. The record
then names its pseudonym. `by_set` joins more: the user who visited in most of the pseudonym's
slots, if no other user visited in as many.
"""

import numpy as np
from scipy import sparse
from view import HIDDEN, HOUR, NOBODY, Bools, Guesses, Ints, Knowledge, S, View

ENOUGH = 0.8  # of a pseudonym's slots must be the user's


def slots(name: Ints, time_ns: Ints, length_ns: int) -> Ints:
    """Returns a number for each name and slot of time."""
    return time_ns // length_ns * (1 << 20) + name


def operator(
    view: View,
    knowledge: Knowledge,
    rng: np.random.Generator,
    *,
    largest: int,
    by_set: bool,
    begin_ns: int,
) -> Guesses:
    """Returns the user of each pseudonym in the hours from `begin_ns` on, or HIDDEN.

    largest: number of the operators' hosts, those with most users first.
    """
    own, length = knowledge.own, max(S, view.rule.time_ns)
    hosts = largest_hosts(own.name, own.user, largest)
    epochs, clients, of = view.groups
    about = np.flatnonzero(epochs >= begin_ns // HOUR)
    who = of if view.rotates else np.where(of == NOBODY, NOBODY, view.client)
    records = view.tcp & (of != NOBODY) & np.isin(view.name, hosts)
    if view.rotates:
        records &= view.start_ns >= begin_ns // HOUR * HOUR
    records = np.flatnonzero(records)
    mine = np.isin(own.name, hosts)
    theirs = slots(own.name[mine], own.time_ns[mine], length), own.user[mine]
    ours = slots(view.name[records], view.start_ns[records], length), who[records]
    keys, answers = (joined_by_set if by_set else joined_by_slot)(*ours, *theirs)
    wanted = about if view.rotates else clients[about]
    answer = np.full(len(about), HIDDEN)
    if len(keys):
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        answer = np.where(keys[at] == wanted, answers[at], HIDDEN)
    return Guesses(about, answer)


def largest_hosts(name: Ints, user: Ints, count: int) -> Ints:
    """Returns the names with most users."""
    pairs = np.unique(np.stack([name, user]), axis=1)
    names, users = np.unique(pairs[0], return_counts=True)
    return names[np.argsort(-users, kind="stable")[:count]]


def joined_by_slot(slot: Ints, who: Ints, own_slot: Ints, own_user: Ints) -> tuple[Ints, Ints]:
    """Pseudonyms, in order, and the user whom most of their lonely visits name."""
    visits, first, count = np.unique(own_slot, return_index=True, return_counts=True)
    alone, user = visits[count == 1], own_user[first[count == 1]]
    if not len(alone):
        return who[:0], who[:0]
    at = np.minimum(np.searchsorted(alone, slot), len(alone) - 1)
    hit = alone[at] == slot
    pairs, votes = np.unique(np.stack([who[hit], user[at[hit]]]), axis=1, return_counts=True)
    order = np.lexsort((votes, pairs[0]))
    last = (
        np.append(np.flatnonzero(np.diff(pairs[0][order])), len(order) - 1) if len(order) else order
    )
    return pairs[0][order][last], pairs[1][order][last]


def joined_by_set(slot: Ints, who: Ints, own_slot: Ints, own_user: Ints) -> tuple[Ints, Ints]:
    """Returns pseudonyms, in order, and the one user who visited in most of their slots."""
    every, place = np.unique(np.concatenate([slot, own_slot]), return_inverse=True)
    rows, row = np.unique(who, return_inverse=True)
    ours = as_sets(row, place[: len(slot)], (len(rows), len(every)))
    users = int(own_user.max()) + 1
    theirs = as_sets(own_user, place[len(slot) :], (users, len(every)))
    found, answers = [], []
    for begin in range(0, len(rows), 2000):
        part = ours[begin : begin + 2000]
        shared = (part @ theirs.T).toarray()
        most = shared.max(axis=1)
        # A clock that differs by some ms moves few visits to another slot.
        one: Bools = (shared == most[:, None]).sum(axis=1) == 1
        one &= most >= ENOUGH * part.getnnz(axis=1)
        found.append(rows[begin : begin + 2000][one])
        answers.append(shared[one].argmax(axis=1))
    return (np.concatenate(found), np.concatenate(answers)) if found else (who[:0], who[:0])


def as_sets(row: Ints, column: Ints, shape: tuple[int, int]) -> sparse.csr_matrix:
    """Returns a matrix with 1 for each pair, however often it occurs."""
    matrix = sparse.csr_matrix((np.ones(len(row), dtype=np.int32), (row, column)), shape=shape)
    matrix.sum_duplicates()
    matrix.data[:] = 1
    return matrix
