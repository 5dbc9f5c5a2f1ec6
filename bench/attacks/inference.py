# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Guesses the name of a withheld record from its sizes.

Knowledge: labelled flows of the days before (their names, users, times and sizes), the log's rule
for coarse records, z and the window. Only labelled flows count that the log would have withheld.
Naive Bayes: how often the name was withheld, how often its records had these sizes and, with
context, which released names the log showed for the pseudonym around that time.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from population import expand
from scipy import sparse
from view import (
    EXACT,
    HIDDEN,
    MINUTE,
    NOBODY,
    Bools,
    Flows,
    Guesses,
    Ints,
    Knowledge,
    Rule,
    View,
)

from zanon_net.audit.attack_math import likelihood

MOST = 4000  # records that are attacked
BEHIND = 2 * MINUTE  # longest time of a visit's begin before the minute of closing
CONTEXT_SMOOTH, CONTEXT_WEIGHT = 0.5, 0.7
Logs = npt.NDArray[np.float32]


def withheld(flows: Flows, knowledge: Knowledge) -> Bools:
    """Returns true for flows that the log would not name: fewer than z users in their window's
    slice."""
    users = int(flows.user.max()) + 1
    slices = flows.start_ns // knowledge.window_ns * knowledge.names + flows.name
    exposures = np.unique(slices * users + flows.user) // users
    keys, count = np.unique(exposures, return_counts=True)
    return count[np.searchsorted(keys, slices)] < knowledge.z


def features(columns: dict[str, Ints], rule: Rule) -> list[Ints]:
    """Returns the features of a coarse record: bytes and packets, and its minutes if it states
    them. Exact sizes are compared in eighths of an octave."""
    sent, received = columns["c_bytes"], columns["s_bytes"] * 4096 + columns["s_pkts"]
    if rule.step == EXACT:
        sent, received = (
            (np.log2(np.maximum(columns[field], 1)) * 8).astype(np.int64)
            for field in ("c_bytes", "s_bytes")
        )
    if rule.closing:
        return [sent, received]
    return [sent, received, (columns["end_ns"] - columns["start_ns"]) // MINUTE]


@dataclass(frozen=True, slots=True)
class Beside:
    """Records in order of (who, time), to find a client's records within a time range."""

    key: Ints
    name: Ints

    @classmethod
    def of(cls, who: Ints, time_ns: Ints, name: Ints) -> "Beside":
        key = (who << 40) + seconds(time_ns)
        order = np.argsort(key, kind="stable")
        return cls(key[order], name[order])

    def pairs(self, who: Ints, low_ns: Ints, high_ns: Ints) -> tuple[Ints, Ints]:
        """Returns (index of the request, name) of each record from low (included) to high
        (excluded), once each."""
        low = np.searchsorted(self.key, (who << 40) + seconds(low_ns))
        high = np.searchsorted(self.key, (who << 40) + seconds(high_ns))
        asked, place = expand(low, high - low, np.arange(len(who)))
        if not len(asked):
            return asked, asked
        return tuple(np.unique(np.stack([asked, self.name[place]]), axis=1))


def seconds(time_ns: Ints) -> Ints:
    """Whole seconds."""
    return time_ns // 10**9


class Context:
    """Likelihood ratio of each withheld name next to each released name."""

    def __init__(self, hidden: Flows, named: Flows, view: View, names: int) -> None:
        stated = view.rule.coarse(hidden, np.arange(len(hidden)))["start_ns"]
        start = view.rule.named(named, np.arange(len(named)))["start_ns"]
        self._closing = view.rule.closing
        beside = Beside.of(named.user, start, named.name)
        asked, name = beside.pairs(hidden.user, *self.span(stated))
        ones = np.ones(len(asked), dtype=np.float32)
        together = sparse.csr_matrix((ones, (hidden.name[asked], name)), shape=(names, names))
        together.sum_duplicates()
        usual = np.bincount(name, minlength=names) / len(hidden)
        often = np.bincount(hidden.name, minlength=names)
        together.data = np.log1p(together.data / usual[together.indices] / CONTEXT_SMOOTH)
        self._gain = together.T.tocsr()
        self._absent = np.log(CONTEXT_SMOOTH / (often + CONTEXT_SMOOTH)).astype(np.float32)

    def span(self, stated: Ints) -> tuple[Ints, Ints]:
        """Returns when the names next to a record that states this minute began."""
        return stated - (BEHIND if self._closing else 0), stated + MINUTE

    def worth(self, view: View, targets: Ints) -> Logs:
        """Returns for each target (rows) and each name the evidence of the released names next to
        it."""
        of = view.groups[2]
        named = np.flatnonzero(view.tcp & (view.name != HIDDEN) & (of != NOBODY))
        beside = Beside.of(of[named], view.start_ns[named], view.name[named])
        shown = np.flatnonzero(of[targets] != NOBODY)
        asked, name = beside.pairs(of[targets[shown]], *self.span(view.start_ns[targets[shown]]))
        shape = (len(targets), len(self._absent))
        ones = np.ones(len(asked), dtype=np.float32)
        there = sparse.csr_matrix((ones, (shown[asked], name)), shape=shape)
        gain = np.asarray((there @ self._gain).todense(), dtype=np.float32)
        return gain + np.asarray(there.sum(axis=1)) * self._absent[None, :]


def by_category(worth: Logs, category: Ints) -> Ints:
    """Returns the category that has most of each row's probability."""
    of_names = np.exp(worth - worth.max(axis=1, keepdims=True))
    members = sparse.csr_matrix(
        (np.ones(len(category), dtype=np.float32), (np.arange(len(category)), category))
    )
    return np.asarray((members.T @ of_names.T).argmax(axis=0)).ravel()


def suppressed(
    view: View,
    knowledge: Knowledge,
    rng: np.random.Generator,
    *,
    context: bool,
    category: bool = False,
) -> Guesses:
    """Returns the name, or its category, of each of a sample of withheld TCP records after the
    labelled days."""
    flows = knowledge.labelled.part(knowledge.labelled.tcp)
    begin = int(flows.start_ns.max()) // MINUTE * MINUTE + MINUTE
    later = np.flatnonzero(view.tcp & (view.start_ns >= begin))
    targets = later[view.name[later] == HIDDEN]
    if not len(targets):  # this log names all
        targets = rng.permutation(later)[:MOST]
        name = view.name[targets]
        return Guesses(targets, knowledge.category[name] if category else name)
    targets = np.sort(rng.permutation(targets)[:MOST])
    missing = withheld(flows, knowledge)
    hidden = flows.part(missing)
    columns = view.rule.coarse(hidden, np.arange(len(hidden)))
    said = {field: getattr(view, field)[targets] for field in columns}
    worth = np.log(np.bincount(hidden.name, minlength=knowledge.names) + 0.01)[None, :]
    worth = np.repeat(worth.astype(np.float32), len(targets), axis=0)
    pairs = list(zip(features(columns, view.rule), features(said, view.rule), strict=True))
    if view.letters is not None:
        pairs.append((knowledge.letters[hidden.name], view.letters[targets]))
    for known, asked in pairs:
        worth += likelihood(known, hidden.name, asked, knowledge.names)
    if context:
        beside = Context(hidden, flows.part(~missing), view, knowledge.names)
        worth += CONTEXT_WEIGHT * beside.worth(view, targets)
    if category:
        return Guesses(targets, by_category(worth, knowledge.category))
    return Guesses(targets, worth.argmax(axis=1))
