# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Streams of UCI Adult through groups of a window's rows, with their loss and disclosure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import adult
import numpy as np
import pyarrow as pa

from zanon_net import _core
from zanon_net import microdata as md

SHUFFLES = 5
CLASS, BRACKETS3, BRACKETS5 = "income", "bracket3", "bracket5"
MODES: dict[str, dict[str, Any]] = {
    "k only": {"repair": False, "strict": False},
    "to the letter": {"strict": False},
    "strict": {},
}


@dataclass(frozen=True)
class Stream:
    """Rows as nodes of their hierarchies, and numbers of their sensitive values."""

    names: tuple[str, ...]
    hierarchies: tuple[Any, ...]
    quasi: np.ndarray
    sensitive: dict[str, np.ndarray]

    @classmethod
    def adult(cls) -> "Stream":
        """Returns the three columns of the paper, income, and both synthetic brackets."""
        table = adult.read()
        hierarchies = tuple(md.Hierarchy.read(adult.HIERARCHIES[name]) for name in adult.QUASI)
        quasi = [
            of.codes(pa.chunked_array([table[name]]))
            for name, of in zip(adult.QUASI, hierarchies, strict=True)
        ]
        sensitive = {
            name: np.unique(table[name], return_inverse=True)[1].astype(np.int64)
            for name in (CLASS, BRACKETS3, BRACKETS5)
        }
        return cls(adult.QUASI, hierarchies, np.stack(quasi, axis=1).astype(np.uint16), sensitive)

    def __len__(self) -> int:
        return len(self.quasi)

    def taken(self, rows: np.ndarray) -> "Stream":
        """Some of the rows, in another order."""
        sensitive = {name: values[rows] for name, values in self.sensitive.items()}
        return Stream(self.names, self.hierarchies, self.quasi[rows], sensitive)

    def given(self, name: str, values: np.ndarray) -> "Stream":
        """Returns the rows with one more sensitive column."""
        return Stream(
            self.names,
            self.hierarchies,
            self.quasi,
            self.sensitive | {name: values.astype(np.int64)},
        )

    def shuffled(self) -> Iterator["Stream"]:
        """Yields the rows in each order; the order of a seed is equal on every machine."""
        for seed in range(SHUFFLES):
            yield self.taken(np.random.default_rng(seed).permutation(len(self)))

    def groups(self, rows: int, k: int, l: int, **settings: Any) -> _core.Groups:  # noqa: E741
        """Returns the object that groups windows of `rows` rows."""
        taxonomies = [of.taxonomy for of in self.hierarchies]
        return _core.Groups(taxonomies, rows=rows, k=k, l=l, **settings)

    def losses(self, nodes: np.ndarray) -> np.ndarray:
        """Returns the loss of each group: the mean over the columns."""
        columns = [of.loss[nodes[:, at]] for at, of in enumerate(self.hierarchies)]
        return np.mean(columns, axis=0) if len(nodes) else np.zeros(0)


@dataclass(frozen=True)
class Outcome:
    """Results of one stream.

    loss: over the released rows, and over all rows, where a suppressed row counts 1. LSR: groups
    with at least l values, per cent. entropy: of the groups in bits: mean, least, mean over rows.
    Also rows that left, per cent, and the numbers of repairs.
    """

    loss: float
    loss_of_all: float
    lsr: float
    entropy: float
    entropy_min: float
    entropy_of_rows: float
    suppressed: float
    swaps: float = 0.0
    merges: float = 0.0
    rows: float = 0.0
    windows: float = 0.0

    @classmethod
    def mean(cls, outcomes: Sequence["Outcome"]) -> "Outcome":
        """Of several streams."""
        columns = zip(*(vars(outcome).values() for outcome in outcomes), strict=True)
        return cls(*(float(np.mean(column)) for column in columns))


def entropies(counts: np.ndarray) -> np.ndarray:
    """Returns the entropy of each row of counts, in bits."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    logs = np.log2(shares, out=np.zeros_like(shares), where=shares > 0)
    return -(shares * logs).sum(axis=1)


def judged(
    of: np.ndarray,
    losses: np.ndarray,
    values: np.ndarray,
    l: int,  # noqa: E741
    **more: float,
) -> Outcome:
    """Returns the outcome of a stream whose rows are in the groups `of`, or in none (-1)."""
    there = of >= 0
    width = int(values.max()) + 1
    counts = np.bincount(of[there] * width + values[there], minlength=len(losses) * width)
    counts = counts.reshape(-1, width).astype(float)
    entropy = entropies(counts)
    loss = losses[of[there]]
    return Outcome(
        loss=float(loss.mean()),
        loss_of_all=float((loss.sum() + (~there).sum()) / len(of)),
        lsr=100 * float(((counts > 0).sum(axis=1) >= l).mean()),
        entropy=float(entropy.mean()),
        entropy_min=float(entropy.min()),
        entropy_of_rows=float(entropy[of[there]].mean()),
        suppressed=100 * float((~there).mean()),
        rows=len(of),
        **more,
    )


def run(
    stream: Stream,
    k: int,
    rows: int,
    l: int,  # noqa: E741
    *,
    sensitive: str = CLASS,
    aims: Any = None,
    shuffle: bool = True,
    **settings: Any,
) -> Outcome:
    """Returns the mean outcome of all shuffles in windows of `rows` rows.

    aims: makes the object that computes the l of each window, from its entropy and values.
    """
    outcomes = []
    for one in stream.shuffled() if shuffle else [stream]:
        groups = one.groups(rows, k, l, **settings)
        values = one.sensitive[sensitive]
        if aims is None:
            of, nodes = groups.window(one.quasi, values, rows=rows)
        else:
            of, nodes = adapted(groups, one.quasi, values, rows, aims())
        stats = groups.stats
        counted = {name: stats[name] for name in ("swaps", "merges", "windows")}
        outcomes.append(judged(of, one.losses(nodes), values, l, **counted))
    return Outcome.mean(outcomes)


def adapted(
    groups: _core.Groups, quasi: np.ndarray, values: np.ndarray, rows: int, aim: _core.AdaptiveL
) -> tuple[np.ndarray, np.ndarray]:
    """Windows whose repairs aim at an l that adapts."""
    of, nodes = np.full(len(quasi), -1), []
    for at in range(0, len(quasi), rows):
        here = slice(at, at + rows)
        l = aim.next(*groups.entropy(quasi[here], values[here])[0])  # noqa: E741
        one, found = groups.window(quasi[here], values[here], l=l)
        of[here] = np.where(one < 0, -1, one + len(nodes))
        nodes.extend(found)
    return of, np.array(nodes)


@dataclass
class Collected:
    """Groups that leave one after the other."""

    of: np.ndarray
    nodes: list[np.ndarray] = field(default_factory=list)

    def add(self, rows: np.ndarray, of: np.ndarray, nodes: np.ndarray) -> None:
        """Takes the groups of some rows of the stream."""
        there = of >= 0
        self.of[rows[there]] = of[there] + len(self.nodes)
        self.nodes.extend(nodes)


def published(stream: Stream, k: int, rows: int, l: int, delay: int) -> tuple[float, float]:  # noqa: E741
    """Returns the results of `md.Publisher` at a row a second: the mean loss of the rows that
    leave, and the suppressed rows, per cent.

    A row without a group waits for the next window, up to `delay` seconds.
    """
    losses, gone = [], []
    for one in stream.shuffled():
        table = {"time": np.arange(len(one)), "value": one.sensitive[CLASS].astype(str)}
        for at, (name, hierarchy) in enumerate(zip(one.names, one.hierarchies, strict=True)):
            table[name] = np.array(hierarchy.labels, object)[one.quasi[:, at]]
        quasi = dict(zip(one.names, one.hierarchies, strict=True))
        plan = md.Plan(quasi=quasi, sensitive="value", k=k, l=l)
        publisher = md.Publisher(plan, rows=rows, delay=f"{delay}s", time_unit="s")
        left = len(publisher.feed(pa.table(table))) + len(publisher.flush())
        losses.append(publisher.report()["classes"]["loss_mean"])
        gone.append(100 - 100 * left / len(one))
    return float(np.mean(losses)), float(np.mean(gone))


def sliding(stream: Stream, k: int, rows: int, l: int = 1, *, by_delay: bool = True) -> Outcome:  # noqa: E741
    """Releases the oldest row with the rows nearest to it; drops it if there are none.

    by_delay: if true, releases when `rows` rows have come since the oldest row, itself included, so
    no row waits longer than in such a window. Else releases when the buffer has `rows` rows, the
    memory of a window.
    """
    outcomes = []
    for one in stream.shuffled():
        groups, values = one.groups(rows, k, l), one.sensitive[CLASS]
        done, buffer, at = Collected(np.full(len(one), -1)), np.zeros(0, np.int64), 0
        while at < len(one) or len(buffer):
            until = at + rows - len(buffer)
            if by_delay:
                until = rows + int(buffer[0] if len(buffer) else at)
            until = min(until, len(one))
            buffer, at = np.concatenate([buffer, np.arange(at, until)]), until
            of, nodes = groups.oldest(one.quasi[buffer], values[buffer])
            done.add(buffer, of, nodes)
            gone = of >= 0
            gone[0] = True
            buffer = buffer[~gone]
        outcomes.append(judged(done.of, one.losses(np.array(done.nodes)), values, l))
    return Outcome.mean(outcomes)


def attacked(stream: Stream, k: int, rows: int, l: int, sensitive: str = CLASS) -> dict[str, Any]:  # noqa: E741
    """Returns the results of `md.risk` for a strict release of the first shuffle: the attacks in
    the whole release and in the target's own window."""
    one = next(stream.shuffled())
    values = one.sensitive[sensitive]
    of, nodes = one.groups(rows, k, l).window(one.quasi, values, rows=rows)
    there, window = of >= 0, np.arange(len(one)) // rows
    raw, released = {"window": window}, {"window": window[there]}
    for at, (name, hierarchy) in enumerate(zip(one.names, one.hierarchies, strict=True)):
        labels = np.array(hierarchy.labels, object)
        raw[name] = labels[one.quasi[:, at]]
        released[name] = labels[nodes[of[there], at]]
    raw["value"], released["value"] = values, values[there]
    plan = md.Plan(quasi=dict(zip(one.names, one.hierarchies, strict=True)), sensitive="value")
    report = md.risk(
        pa.table(raw), pa.table(released), plan, time="window", delay="500ms", time_unit="s"
    )
    return report.to_dict()
