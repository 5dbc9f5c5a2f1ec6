# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The share of pseudonyms that are found again, by the length of epochs."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from zanon_net.audit.following import PRODUCTS, Found, over_epochs, span_of, total, within_epoch
from zanon_net.audit.result import AT_LEAST
from zanon_net.audit.subject import TARGETS, Subject
from zanon_net.audit.thresholds import wilson
from zanon_net.config.parse import format_duration

Figures = dict[str, float]

EPOCHS = 4
"""Most epochs that are attacked for one length."""
PARTS = (2, 4, 8, 16, 32, 64)
"""Numbers of parts of an epoch; the first three that the log has records for are attacked."""
SHORTER = 3
FULL = 0.9
"""Least share of two parts that an epoch's records span."""
MULTIPLES = (2, 4, 8)
FEW = 10
"""Fewest targets of a length that is no epoch's own."""
UNDONE = 100_000
"""Most pseudonyms whose addresses one length needs."""


def by_length(subject: Subject, own: Mapping[int, Found]) -> dict[str, Figures]:
    """Returns the share with its interval, baseline and sample for several lengths, from the
    shortest to the longest.

    own: the results of `link` by epoch, for whole epochs if there is a key file, else for halves.
    Without the key file only parts of an epoch can be joined. A longer epoch shows more of each
    user, so the interval of halves has a lower bound of the share for the epoch's length.
    """
    rotate_ns, is_exact = subject.release.rotate_ns, subject.addresses is not None
    shorter = list(islice(_shorter(subject, list(own), {} if is_exact else own), SHORTER))
    figures = {_words(length): _figures(found) for length, found in reversed(shorter)}
    whole = total(own.values())
    if not is_exact:
        return figures | {_words(rotate_ns): {AT_LEAST: wilson(whole.hits, whole.targets)[0]}}
    figures[_words(rotate_ns)] = _figures(whole)
    longer = ((_words(count * rotate_ns), _longer(subject, count)) for count in MULTIPLES)
    return figures | {words: _figures(found) for words, found in longer if found.targets >= FEW}


def _words(length_ns: int) -> str:
    whole = format_duration(length_ns)
    return f"{length_ns / 1e9:g}s" if whole.endswith(("ms", "us", "ns")) else whole


def _figures(found: Found) -> Figures:
    low, high = wilson(found.hits, found.targets)
    share, chance = found.hits / found.targets, found.chances / found.targets
    figures = {"share": share, "low": low, "high": high, "baseline": chance}
    return figures | {"sample": found.targets}


def _shorter(
    subject: Subject, epochs: Sequence[int], halves: Mapping[int, Found]
) -> Iterator[tuple[int, Found]]:
    """Yields lengths (ns) of parts of an epoch, and the result of the attack on two parts.

    halves: results that are known.
    """
    spans = {epoch: last - first for epoch in epochs for first, last in [span_of(subject, epoch)]}
    for parts in PARTS:
        length_us = subject.release.rotate_ns // 1000 // parts
        whole = [epoch for epoch in epochs if spans[epoch] >= FULL * 2 * length_us]
        known = halves if parts == PARTS[0] else {}
        found = total(
            known[epoch]
            if epoch in known
            else within_epoch(subject, epoch, length_us, TARGETS // len(whole), PRODUCTS // 4)
            for epoch in whole
        )
        if found.targets >= FEW:
            yield length_us * 1000, found


def _longer(subject: Subject, count: int) -> Found:
    """Attacks pairs of periods of several epochs. A log without such a pair has no targets."""
    rows = subject.database.rows("SELECT epoch, count(*) FROM people GROUP BY epoch ORDER BY epoch")
    people = {int(epoch): int(number) for epoch, number in rows}
    runs = {first: range(first, first + 2 * count) for first in people}
    firsts = [
        first
        for first, run in runs.items()
        if all(epoch in people for epoch in run) and sum(people[epoch] for epoch in run) <= UNDONE
    ]
    most = max(1, EPOCHS // count)
    chosen = firsts[:: max(1, len(firsts) // most)][:most]
    return total(over_epochs(subject, first, count, TARGETS // len(chosen)) for first in chosen)
