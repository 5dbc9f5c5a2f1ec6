# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Probes that are behind what is decided."""

from zanon_net.config.parse import format_duration

NS_PER_S = 1_000_000_000
MAX_LAG_NS = 2 * NS_PER_S
"""How far behind a probe that joins may be for decisions to wait for it. From then on all answers
come so much later, and the probes hold what waits for them for `--count-hold`."""
ANSWERS_NS = 2 * NS_PER_S
"""Time between two answers to a probe. Probes send a message once a second, and up to two seconds
after a packet where an interface is quiet; their answers follow at once."""


def lag_text(probe: int, lag_ns: int) -> str:
    """Says that a probe stays behind, what that does, and what to do."""
    return (
        f"probe {probe:016x} stays {format_duration(lag_ns - lag_ns % NS_PER_S)} behind what"
        " is decided: its votes are late, which suppresses most names at it, and no probe shows a"
        " server's address; set its clock by NTP, or begin with --expect-probes"
    )
