# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Limits and texts for probes that are behind the decided time."""

from zanon_net.config.parse import format_duration

NS_PER_S = 1_000_000_000
MAX_LAG_NS = 2 * NS_PER_S
"""Largest lag of a joining probe for which decisions wait. All answers are late by this lag from
then on, and probes keep pending names and records for `--count-hold`."""
ANSWERS_NS = 2 * NS_PER_S
"""Time between two answers to a probe. Probes send a message once a second, and up to two seconds
after a packet on a quiet interface. Their answers follow at once."""


def lag_text(probe: int, lag_ns: int) -> str:
    """Returns the warning of a probe that stays behind: the lag, its effect, and a remedy."""
    return (
        f"probe {probe:016x} stays {format_duration(lag_ns - lag_ns % NS_PER_S)} behind what"
        " is decided: its votes are late, which suppresses most names at it, and no probe shows a"
        " server's address; set its clock by NTP, or begin with --expect-probes"
    )
