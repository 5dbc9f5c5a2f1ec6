# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the pseudonym of a target of whom a few visits are known: re-ID and singling out.

Knowledge: names and times of visits of each target within an hour (`Knowledge.visits`), the span
that the log rounds times to. *Re-ID* ranks the pseudonyms by the number of known visits that their
records match, ties by chance (after the l-diversity paper of 2025, section 4.4). *Singling out*
answers only if exactly one pseudonym matches all known visits (Article 29 Working Party, opinion
05/2014).
"""

import numpy as np
from population import expand
from view import HIDDEN, NOBODY, Guesses, Ints, Knowledge, View

NAME_BITS = 14


def matches(view: View, knowledge: Knowledge, count: int, near_ns: int) -> tuple[Ints, Ints, Ints]:
    """Returns (target, pair, number of matched visits), of the first `count` visits of each target.

    A record matches a visit to its name that began at most `near_ns` from it.
    """
    visits, of = knowledge.visits, view.groups[2]
    assert knowledge.names <= 1 << NAME_BITS
    records = np.flatnonzero((view.name != HIDDEN) & (of != NOBODY) & view.tcp)
    begin = int(min(view.start_ns.min(), visits.time_ns.min())) - near_ns - view.rule.time_ns
    span = int(max(view.start_ns.max(), visits.time_ns.max())) - begin + near_ns + 1
    key = view.name[records] * span + view.start_ns[records] - begin
    order = np.argsort(key, kind="stable")
    name, time_ns = visits.name[:, :count].ravel(), visits.time_ns[:, :count].ravel()
    first = name * span + np.maximum(time_ns - begin - near_ns - view.rule.time_ns + 1, 0)
    last = name * span + time_ns - begin + near_ns
    low = np.searchsorted(key[order], first)
    high = np.searchsorted(key[order], last, "right")
    asked, place = expand(low, high - low, np.arange(len(name)))
    pair = of[records[order[place]]]
    visit, pair = np.unique(np.stack([asked, pair]), axis=1)  # a visit counts once for a pair
    both, matched = np.unique(
        np.stack([visit // min(count, visits.name.shape[1]), pair]), axis=1, return_counts=True
    )
    return both[0], both[1], matched


def reid(
    view: View,
    knowledge: Knowledge,
    rng: np.random.Generator,
    *,
    visits: int,
    near_ns: int,
    best: int,
) -> Guesses:
    """Returns the `best` pseudonyms of each target, HIDDEN where fewer match any visit."""
    target, pair, matched = matches(view, knowledge, visits, near_ns)
    order = np.lexsort((rng.random(len(target)), -matched, target))
    target, pair = target[order], pair[order]
    rank = np.arange(len(target)) - np.searchsorted(target, target)
    answer = np.full((len(knowledge.visits), best), HIDDEN)
    kept = rank < best
    answer[target[kept], rank[kept]] = pair[kept]
    return Guesses(np.arange(len(answer)), answer)


def singling_out(
    view: View, knowledge: Knowledge, rng: np.random.Generator, *, visits: int, near_ns: int
) -> Guesses:
    """Returns the one pseudonym that matches all visits of each target, or HIDDEN."""
    target, pair, matched = matches(view, knowledge, visits, near_ns)
    whole = matched == min(visits, knowledge.visits.name.shape[1])
    target, pair = target[whole], pair[whole]
    alone = np.bincount(target, minlength=len(knowledge.visits))[target] == 1
    answer = np.full(len(knowledge.visits), HIDDEN)
    answer[target[alone]] = pair[alone]
    return Guesses(np.arange(len(answer)), answer)
