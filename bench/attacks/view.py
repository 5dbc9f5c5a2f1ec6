# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The attacker's view of a log, further knowledge, and answers."""

from dataclasses import dataclass, replace
from dataclasses import field as field_of
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from population import HOUR, Floats, Flows, Ints, S, expand

from zanon_net.audit.coarse import steps

Bools = npt.NDArray[np.bool_]
NOTHING = np.zeros(0, dtype=np.int64)
HIDDEN = -1  # a name that is withheld
NOBODY = -1  # a client that is withheld
MINUTE = 60 * S
EXACT = "exact"  # a coarse record's measurements are those of a named record


def two_digits(values: Ints) -> Ints:
    """Cuts what is above 99 to its two leading digits."""
    values = np.asarray(values, dtype=np.int64)
    power = np.ones_like(values)
    while (big := values // power > 99).any():
        power = np.where(big, power * 10, power)
    return values // power * power


@dataclass(frozen=True, slots=True)
class Rule:
    """The log's rule for a flow's measurements, as its manifest states it.

    step: of the sizes of coarse records, or EXACT.
    closing: true if a coarse record's time is the minute in which its flow closed; else it has the
    minutes of start and end.
    time_ns, digits: for records with a name; 1 and False are exact.
    order: of lines, as with `--order`.
    """

    step: str = "sqrt2"
    closing: bool = False
    time_ns: int = 1
    digits: bool = False
    order: str = "closing"

    def coarse(self, flows: Flows, which: Ints) -> dict[str, Ints]:
        """Returns the columns of these flows, as if they were withheld. TCP flows here close at
        their end."""
        start, end = flows.start_ns[which], flows.end_ns[which]
        sizes = {field: getattr(flows, field)[which] for field in SIZES}
        if self.step == EXACT:
            return sizes | {"start_ns": start, "end_ns": end}
        values = steps(self.step)
        out = {
            field: np.where(exact > 0, values[np.searchsorted(values, exact)], 0)
            for field, exact in sizes.items()
        }
        out["start_ns"] = (end if self.closing else start) // MINUTE * MINUTE
        out["end_ns"] = end // MINUTE * MINUTE
        return out

    def named(self, flows: Flows, which: Ints) -> dict[str, Ints]:
        """Returns the columns of these flows, as if they had a name."""
        out = {field: getattr(flows, field)[which] for field in SIZES}
        if self.digits:
            out = {field: two_digits(values) for field, values in out.items()}
        for field in ("start_ns", "end_ns"):
            out[field] = getattr(flows, field)[which] // self.time_ns * self.time_ns
        return out


CLIENT_BITS = 32


def pair_keys(epoch: Ints, client: Ints) -> Ints:
    """Returns a number for each pair of epoch and client."""
    return epoch << CLIENT_BITS | client


def row_keys(*columns: Ints) -> Ints:
    """Returns a number for each row: a hash, equal for equal rows."""
    key = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        key = (key ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(29)
    return key


def equal_rows(keys: Ints, asked: Ints) -> tuple[Ints, Ints]:
    """Returns (index into `asked`, index into `keys`) of each pair of equal keys."""
    order = np.argsort(keys, kind="stable")
    low = np.searchsorted(keys[order], asked)
    high = np.searchsorted(keys[order], asked, "right")
    which, place = expand(low, high - low, np.arange(len(asked)))
    return which, order[place]


SIZES = ("c_pkts", "s_pkts", "c_bytes", "s_bytes")


@dataclass(frozen=True)
class View:
    """A log, one entry a record, in the order of its lines (TCP, then UDP).

    client: the pseudonym as a number, or NOBODY; pseudonyms of two epochs are compared only if
    `rotates` is False. name: HIDDEN or the index of a name, which the log spells out. letters:
    number of characters of the name, if the log shows it of hidden names too; else None. kept:
    number of leading bits of an address that the pseudonyms keep, as the manifest states it.
    """

    label: str
    epoch: Ints
    client: Ints
    name: Ints
    tcp: Bools
    start_ns: Ints
    end_ns: Ints
    c_pkts: Ints
    s_pkts: Ints
    c_bytes: Ints
    s_bytes: Ints
    coarse: Bools
    rotates: bool = True
    kept: int = 32
    rule: Rule = Rule()
    letters: Ints | None = None

    def __len__(self) -> int:
        return len(self.client)

    @cached_property
    def groups(self) -> tuple[Ints, Ints, Ints]:
        """The (epoch, client) pairs that the log has: epochs, clients, and the pair of each record.

        A record without a client has the pair NOBODY.
        """
        shown = self.client != NOBODY
        pairs, inverse = np.unique(
            pair_keys(self.epoch[shown], self.client[shown]), return_inverse=True
        )
        of = np.full(len(self), NOBODY)
        of[shown] = inverse
        return pairs >> CLIENT_BITS, pairs & ((1 << CLIENT_BITS) - 1), of

    def shuffled(self, rng: np.random.Generator) -> "View":
        """Returns the lines, each with a client and measurements of other lines.

        The client is any of its epoch's. The measurements are those of another line of the epoch of
        equal kind (with a name or without), so the log looks alike, but discloses nothing.
        """
        epochs, clients, of = self.groups
        low, high = (
            np.searchsorted(epochs, self.epoch),
            np.searchsorted(epochs, self.epoch, "right"),
        )
        drawn = low + (rng.random(len(self)) * (high - low)).astype(np.int64)
        client = np.where(of == NOBODY, NOBODY, clients[np.minimum(drawn, len(clients) - 1)])
        kind = (self.epoch * 2 + self.tcp) * 2 + (self.name != HIDDEN)
        order = np.argsort(kind, kind="stable")
        mixed = np.lexsort((rng.random(len(self)), kind))
        columns: dict[str, Any] = {"client": client}
        letters = () if self.letters is None else ("letters",)
        for field in (*SIZES, "start_ns", "end_ns", "coarse", *letters):
            values = np.empty_like(getattr(self, field))
            values[order] = getattr(self, field)[mixed]
            columns[field] = values
        return replace(self, label=f"{self.label}, shuffled", **columns)

    def only(self, which: Bools | Ints) -> "View":
        """Some of the records."""
        fields = ("epoch", "client", "name", "tcp", "start_ns", "end_ns", *SIZES, "coarse")
        return replace(self, **{field: getattr(self, field)[which] for field in fields})


@dataclass(frozen=True, slots=True)
class OwnLogs:
    """Logs of third parties about visits to their own hosts: user, host, time (ns)."""

    user: Ints
    name: Ints
    time_ns: Ints


@dataclass(frozen=True, slots=True)
class Visits:
    """Visits of targets that the attacker saw: a row a target, a column a visit.

    epoch: the hour of each target's visits. The scorer alone knows the users.
    """

    epoch: Ints
    name: Ints
    time_ns: Ints

    def __len__(self) -> int:
        return len(self.epoch)


@dataclass(frozen=True, slots=True)
class Markers:
    """Flows of the attacker's own hosts, made to have a size that no other flow of the hour has."""

    epoch: Ints
    name: Ints
    c_bytes: Ints
    s_bytes: Ints


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The attacker's knowledge besides the log; each attack states the part that it uses.

    names: number of names. labelled: flows with names and users, of the days before the attacked
    days. category, letters: of each name. z and window: of the log, as the manifest states them.
    """

    names: int
    z: int
    labelled: Flows
    own: OwnLogs
    visits: Visits = Visits(NOTHING, NOTHING, NOTHING)
    markers: Markers = Markers(NOTHING, NOTHING, NOTHING, NOTHING)
    category: Ints = field_of(default_factory=lambda: NOTHING)
    letters: Ints = field_of(default_factory=lambda: NOTHING)
    window_ns: int = HOUR


@dataclass(frozen=True, slots=True)
class LabelLog:
    """Published labels, by time. Level 0 is the value itself. Labels of levels have own numbers."""

    time_ns: Ints
    label: Ints


@dataclass(frozen=True, slots=True)
class Guesses:
    """Answers of an attack: the record (or pair, or target) of each, and the guess.

    answer has a column a guess if the attack makes several for each.
    """

    about: Ints
    answer: Ints


__all__ = ["EXACT", "HIDDEN", "HOUR", "MINUTE", "NOBODY", "SIZES", "Bools", "Floats", "Guesses",
           "Ints", "Knowledge", "LabelLog", "Markers", "OwnLogs", "Rule", "View", "Visits",
           "equal_rows", "pair_keys", "row_keys", "steps", "two_digits"]  # fmt: skip
