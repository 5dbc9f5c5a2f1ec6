# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Hints of a run that released little: the probable reason, and what to do about it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from zanon_net.config.settings import Config
from zanon_net.pipeline.facts import INTERFACE
from zanon_net.pipeline.totals import Totals


def hints(config: Config, totals: Totals, sources: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yields a sentence for each condition that explains why few names were released.

    totals: of a run that has read all of its input. sources: as the manifest has them.
    """
    few = _too_few_users(config, totals.users, sources)
    if few is not None:
        yield few
    unproven = _without_evidence(config, totals)
    if unproven is not None:
        yield unproven


def _too_few_users(config: Config, users: int, sources: Sequence[Mapping[str, Any]]) -> str | None:
    """Returns a hint if the run has fewer users than z. A counter also has users of other
    probes."""
    z = config.anonymity.z
    if not 0 < users < z or config.count.count_at is not None:
        return None
    who = "1 user" if users == 1 else f"{users:,} users"
    if any(source["format"] == INTERFACE for source in sources):
        what = "this traffic has"
    else:
        what = "this capture has" if len(sources) == 1 else "these captures have"
    return f"{what} {who}; no name can reach z = {z:,}"


def _without_evidence(config: Config, totals: Totals) -> str | None:
    """Returns a hint if packets of one direction only were read, so that clients prove nothing.

    The condition is that more than half of the names lack evidence, and at least half of the TCP
    flows have data of one side and no packet of the other side.
    """
    counters = totals.counters
    names, unproven = totals.decided, counters["suppressed_unconfirmed"]
    flows, one_sided = counters["flows_tcp"], counters["flows_one_sided"]
    if config.anonymity.evidence == "any" or 2 * unproven <= names or 2 * one_sided < flows:
        return None
    if not one_sided:
        return None
    return (
        f"{one_sided:,} of {flows:,} TCP flows have packets of one direction only, so most clients"
        f" lack evidence ({unproven:,} of {names:,} names); capture both directions, or see"
        " --evidence"
    )
