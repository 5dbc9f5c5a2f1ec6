# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Every metric of a counter, in a table like the table of a run.

The label of a probe is its session. The session comes from the probe's key, not from any traffic.
"""

from collections.abc import Callable

from zanon_net._version import __version__
from zanon_net.count.facts import CounterFacts
from zanon_net.pipeline.metrics import Metric, Value

REFUSALS = ("format", "settings", "gap", "future", "by_shard")

LIMITS = {
    "probes": "probes_forgotten",
    "senders": "senders_over",
    "answers": "answers_dropped",
    "owners": "owners_forgotten",
}
"""Counts of forgotten objects, by the limit that was reached."""


def _count(name: str) -> Callable[[CounterFacts], Value]:
    return lambda facts: facts.counts.get(name, 0)


def _refused(facts: CounterFacts) -> Value:
    return {reason: facts.counts.get(f"refused_{reason}", 0) for reason in REFUSALS}


def _limits(facts: CounterFacts) -> Value:
    return {limit: facts.counts.get(name, 0) for limit, name in LIMITS.items()}


COUNTER_METRICS = (
    Metric(
        name="build_info",
        kind="info",
        help="The version of the program.",
        label="version",
        value=lambda _facts: {__version__: 1},
    ),
    Metric(
        name="counter_lag_seconds",
        kind="gauge",
        help="From the time up to which all votes are decided until now.",
        value=lambda facts: facts.lag_s,
    ),
    Metric(
        name="probe_last_seen_seconds",
        kind="gauge",
        help="Seconds since the last message of a probe that is waited for.",
        label="probe",
        value=lambda facts: facts.last_seen_s,
    ),
    Metric(
        name="probe_lag_seconds",
        kind="gauge",
        help="From the watermark of a probe that is waited for until now.",
        label="probe",
        value=lambda facts: facts.probe_lag_s,
    ),
    Metric(
        name="probe_late_seconds",
        kind="gauge",
        help="Time by which a late probe is behind the decisions, which do not wait for it.",
        label="probe",
        value=lambda facts: facts.probe_late_s,
    ),
    Metric(
        name="counter_probes_missing",
        kind="gauge",
        help="Probes that are expected and have not come: nothing is decided before.",
        value=lambda facts: facts.probes_missing,
    ),
    Metric(
        name="counter_probe_gone_total",
        kind="counter",
        help="Times that decisions continued without a probe that had not ended.",
        value=_count("probe_gone"),
    ),
    Metric(
        name="counter_messages_total",
        kind="counter",
        help="Messages of votes counted.",
        value=_count("messages"),
    ),
    Metric(
        name="counter_votes_total",
        kind="counter",
        help="Votes counted.",
        value=_count("votes"),
    ),
    Metric(
        name="counter_decided_total",
        kind="counter",
        help="Votes decided.",
        value=_count("decided"),
    ),
    Metric(
        name="counter_released_total",
        kind="counter",
        help="Votes whose name at least z users share.",
        value=_count("table_released"),
    ),
    Metric(
        name="counter_late_total",
        kind="counter",
        help="Votes for a time that was decided already: they can only be suppressed.",
        value=_count("late"),
    ),
    Metric(
        name="counter_client_addresses_total",
        kind="counter",
        help="Votes for addresses that were, or may have been, a client's.",
        value=_count("client_addresses"),
    ),
    Metric(
        name="counter_leases_total",
        kind="counter",
        help="Leases of probes whose own users suffice for a name.",
        value=_count("leases"),
    ),
    Metric(
        name="counter_leases_refused_total",
        kind="counter",
        help="Leases refused: too many, or the lease reaches further than the window.",
        value=_count("leases_refused"),
    ),
    Metric(
        name="counter_duplicates_total",
        kind="counter",
        help="Messages that came again, and had no effect.",
        value=_count("duplicates_resent"),
    ),
    Metric(
        name="counter_uncounted_total",
        kind="counter",
        help="Messages whose votes did not count: their probe had more users than it may.",
        value=_count("uncounted"),
    ),
    Metric(
        name="counter_refused_total",
        kind="counter",
        help="Messages refused, by reason.",
        label="reason",
        value=_refused,
    ),
    Metric(
        name="counter_limit_reached_total",
        kind="counter",
        help="Times that something had to be forgotten, or did not count, by the limit reached.",
        label="limit",
        value=_limits,
    ),
    Metric(
        name="counter_pending",
        kind="gauge",
        help="Votes and messages that wait for their decision.",
        value=_count("pending"),
    ),
    Metric(
        name="counter_pending_limit",
        kind="gauge",
        help="Votes and messages that may wait, by --max-pending, before messages are refused.",
        value=lambda facts: facts.pending_max,
    ),
    Metric(
        name="counter_state_age_seconds",
        kind="gauge",
        help="Since the whole state was last written; the journal has all changes after it.",
        value=lambda facts: facts.state_age_s,
    ),
    Metric(
        name="counter_window_seconds",
        kind="gauge",
        help="The window; the state is to be written every twelfth of it.",
        value=lambda facts: facts.window_s,
    ),
    Metric(
        name="ztable_tuples",
        kind="gauge",
        help="Pairs of a user and a name in the z-tables of all shards.",
        value=_count("table_tuples"),
    ),
    Metric(
        name="ztable_attributes",
        kind="gauge",
        help="Names and addresses in the z-tables of all shards.",
        value=_count("table_attributes"),
    ),
    Metric(
        name="ztable_evicted_total",
        kind="counter",
        help="Pairs that left a z-table before their window was over: it was full.",
        value=_count("table_evicted"),
    ),
    Metric(
        name="memory_bytes",
        kind="gauge",
        help="Memory of all shards.",
        value=lambda facts: facts.memory_bytes,
    ),
)
"""Table of all metrics; docs/reference/metrics.md explains it."""
