# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The one scorer: it alone sees the truth.

risk = (attack - baseline) / (1 - baseline), after Giomi et al. (PETS 2023): the gain of the log
over a guess without it. Intervals are Wilson's of 95 %.
"""

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from population import Flows, Ints, S
from view import CLIENT_BITS, HIDDEN, MINUTE, NOBODY, NOTHING, Guesses, LabelLog, View, pair_keys

from zanon_net.audit.thresholds import wilson

NEAR_NS = 1 * S  # an end that is guessed to the second is a hit


@dataclass(frozen=True, slots=True)
class Score:
    """Result of an attack. seconds: the median error, if the answer is a time."""

    hits: int
    trials: int
    baseline: float
    seconds: float | None = None

    @property
    def share(self) -> float:
        """Share of the trials that the attack answered right."""
        return self.hits / self.trials if self.trials else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson's of the share."""
        return wilson(self.hits, self.trials)

    def risk_of(self, share: float) -> float:
        """Returns the share beyond the baseline, as a risk."""
        return (share - self.baseline) / (1 - self.baseline) if self.baseline < 1 else 0.0

    def as_json(self) -> dict[str, Any]:
        """For results.json."""
        low, high = self.interval
        said: dict[str, Any] = asdict(self) | {
            "share": self.share,
            "low": low,
            "high": high,
            "risk": self.risk_of(self.share),
            "risk_low": self.risk_of(low),
            "risk_high": self.risk_of(high),
        }
        if self.seconds is None:
            del said["seconds"]
        return {key: round(v, 6) if isinstance(v, float) else v for key, v in said.items()}


@dataclass(frozen=True, slots=True)
class Truth:
    """The truth of a log.

    flow: of each record the index of its flow, or -1 if it could not be found. pairs, users: the
    user of each (epoch, client) pair, by `pair_keys` in order; -1 if unknown. targets, owners: the
    users of `Knowledge.visits` and of `Knowledge.markers`.
    """

    flows: Flows
    flow: Ints
    pairs: Ints
    users: Ints
    targets: Ints = field(default_factory=lambda: NOTHING)
    owners: Ints = field(default_factory=lambda: NOTHING)

    @classmethod
    def of(cls, view: View, flows: Flows, flow: Ints) -> "Truth":
        """Returns a pair's user is that of most of its records."""
        epochs, clients, of = view.groups
        known = (of != NOBODY) & (flow >= 0)
        users = int(flows.user.max()) + 1
        key, votes = np.unique(of[known] * users + flows.user[flow[known]], return_counts=True)
        order = np.argsort(votes, kind="stable")  # the largest is written last
        found = np.full(len(epochs), -1)
        found[key[order] // users] = key[order] % users
        return cls(flows, flow, pair_keys(epochs, clients), found)

    def users_of(self, view: View) -> Ints:
        """Returns the user of each pair of the view."""
        epochs, clients, _ = view.groups
        return self.users[np.searchsorted(self.pairs, pair_keys(epochs, clients))]

    def dealt_anew(self, rng: np.random.Generator) -> "Truth":
        """Returns the pairs with users of other pairs of their epoch."""
        epoch = self.pairs >> CLIENT_BITS
        users = np.empty_like(self.users)
        users[np.argsort(epoch, kind="stable")] = self.users[
            np.lexsort((rng.random(len(epoch)), epoch))
        ]
        return replace(self, users=users)


def linked(view: View, truth: Truth, guesses: Guesses, candidates: int) -> Score:
    """Scores pairs of an epoch that were found again in the epoch before, of those whose user is
    there.

    A guess is a pair; candidates: number of pairs of the earlier epoch (of several epochs, the
    mean).
    """
    epochs = view.groups[0]
    user = truth.users_of(view)
    known = user[guesses.about] >= 0
    earlier = epochs[guesses.answer]
    there = np.unique(np.stack([epochs[user >= 0], user[user >= 0]]), axis=1)
    scale = int(user.max()) + 2
    present = np.isin(earlier * scale + user[guesses.about], there[0] * scale + there[1])
    trials = known & present
    hits = trials & (user[guesses.about] == user[guesses.answer])
    return Score(int(hits.sum()), int(trials.sum()), 1 / max(1, candidates))


def named(truth: Truth, guesses: Guesses, category: Ints | None = None) -> Score:
    """Scores guessed withheld names, or their categories. Baseline: the most frequent one."""
    known = truth.flow[guesses.about] >= 0
    right = truth.flows.name[truth.flow[guesses.about[known]]]
    right = right if category is None else category[right]
    hits = int((right == guesses.answer[known]).sum())
    most = int(np.bincount(right).max()) if len(right) else 0
    return Score(hits, len(right), most / max(1, len(right)))


def recognised(view: View, truth: Truth, guesses: Guesses, owners: Ints) -> Score:
    """Scores pairs that were found for known users; HIDDEN is no guess. Baseline: any pairs of an
    hour."""
    answer = guesses.answer.reshape(len(guesses.about), -1)
    user = np.append(truth.users_of(view), -1)  # HIDDEN is the last place
    hits = (user[answer] == owners[guesses.about][:, None]).any(axis=1)
    candidates = len(view.groups[0]) / max(1, len(np.unique(view.groups[0])))
    return Score(int(hits.sum()), len(answer), min(1, answer.shape[1] / max(1, candidates)))


def singled_out(view: View, truth: Truth, guesses: Guesses) -> Score:
    """Scores pairs whose user was named, of all pairs; HIDDEN is no guess."""
    user = truth.users_of(view)[guesses.about]
    known = user >= 0
    hits = known & (guesses.answer != HIDDEN) & (user == guesses.answer)
    users = len(np.unique(truth.flows.user))
    return Score(int(hits.sum()), int(known.sum()), 1 / max(1, users))


def timed(truth: Truth, guesses: Guesses) -> Score:
    """Scores ends that were guessed to the second. Baseline: the middle of the minute."""
    known = truth.flow[guesses.about] >= 0
    right = truth.flows.end_ns[truth.flow[guesses.about[known]]]
    error = np.abs(right - guesses.answer[known])
    middle = right // MINUTE * MINUTE + MINUTE // 2
    baseline = float((np.abs(right - middle) <= NEAR_NS).mean()) if len(right) else 0.0
    median = float(np.median(error)) / S if len(right) else math.nan
    return Score(int((error <= NEAR_NS).sum()), len(right), baseline, round(median, 3))


@dataclass(frozen=True, slots=True)
class Exposures:
    """The truth of a log of labels, by time. chains: the labels of each value, finest first."""

    time_ns: Ints
    user: Ints
    value: Ints
    chains: Ints

    @classmethod
    def of(cls, time_ns: Ints, user: Ints, value: Ints, chains: Ints) -> "Exposures":
        """Returns the exposures in the order of their times."""
        order = np.argsort(time_ns, kind="stable")
        return cls(time_ns[order], user[order], value[order], chains)


def users_behind(
    truth: Exposures, log: LabelLog, left: Iterable[tuple[int, Ints]], z: int, window_ns: int
) -> Ints:
    """Returns for each label the number of users who exposed a value that is left in its window.

    left: labels by their places in the log, with these values. A value that z users share does not
    count, because it could be published.
    """
    scale, groups = int(truth.user.max()) + 1, []
    is_left = np.zeros(len(truth.chains), dtype=bool)
    below: dict[int, tuple[Ints, Ints]] = {}
    for place, values in left:
        t, label = int(log.time_ns[place]), int(log.label[place])
        if label not in below:
            among = np.flatnonzero((truth.chains == label).any(axis=1)[truth.value])
            below[label] = among, truth.time_ns[among]
        among, times = below[label]
        among = among[np.searchsorted(times, t - window_ns) : np.searchsorted(times, t, "right")]
        is_left[values] = True
        among = among[is_left[truth.value[among]]]
        is_left[values] = False
        pairs = np.unique(truth.value[among] * scale + truth.user[among])
        value, of, count = np.unique(pairs // scale, return_inverse=True, return_counts=True)
        counts = (count < z) | (truth.chains[value, 0] == 0)
        groups.append(len(np.unique(pairs[counts[of]] % scale)))
    return np.array(groups)
