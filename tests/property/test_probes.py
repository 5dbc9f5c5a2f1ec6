# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Probes and their counter beside one run over the packets of all of them."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scenario.crowd import Scenario, scenarios, settings_of
from scenario.quic import quic_visit
from scenario.routes import routed
from scenario.visits import dns_visit, stray_visit, tcp_visit
from support.engine import Outcome, run
from support.examples import examples
from support.packets import HOUR, MINUTE, SECOND, merged
from support.probes import Portions, counted, counted_late, portions

from zanon_net import Config

PROBES = 4
SMALL = {"max_flows": 4096, "max_tuples": 1 << 16, "max_attributes": 1 << 14}
Lines = Counter[bytes]


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("key") / "zanon.key"
    path.write_text("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
    path.chmod(0o600)
    return str(path)


def split(scenario: Scenario) -> Portions:
    """The scenario's packets, each client's at one probe."""
    make = {"dns": dns_visit, "quic": quic_visit, "stray": stray_visit}
    probe_of: dict[str, int] = {}
    talks = []
    for n, visit in enumerate(scenario.visits):
        probe = probe_of.setdefault(visit.ends[0], len(probe_of) % PROBES)
        frames = make.get(visit.kind, tcp_visit)(visit, n)
        talks.append((probe, routed(frames, visit.route, visit.ends[0], n)))
    return portions(talks, PROBES)


def core_settings(scenario: Scenario, key_file: str) -> dict[str, Any]:
    chosen = settings_of(scenario.rules) | {"key_file": key_file}
    found = Config().replace(**chosen).engine_arguments()
    return {k: v for k, v in found.items() if k not in ("outputs", "count_probe")} | SMALL


def with_generations(scenario: Scenario, chosen: dict[str, Any], more: int) -> dict[str, Any]:
    """The settings with the shortest generations of hashes that there may be, or so much longer."""
    rules = scenario.rules
    return chosen | {"count_rotate_ns": rules.window_ns + 2 * rules.rotate_ns + more * SECOND}


def without_server(outcome: Outcome) -> Lines:
    """The records, but for their servers: those are looked up at the end of a batch."""
    return Counter(json.dumps(flow | {"server": None}).encode() for flow in outcome.flows)


def shown(outcome: Outcome) -> Counter[str]:
    """The server addresses that records show."""
    return Counter(str(flow["server"]) for flow in outcome.flows if flow["server"] is not None)


@settings(suppress_health_check=[HealthCheck.filter_too_much], max_examples=examples(60, 8))
@given(scenarios, st.integers(0, 999), st.sampled_from([1, 1, 2, 4]), st.sampled_from([1, 7, 64]))
def test_probes_and_a_counter_say_what_one_run_says(
    key_file: str, scenario: Scenario, seed: int, shards: int, batch: int
) -> None:
    assume(scenario.rules.z > 1)
    scenario = replace(scenario.straight, rules=replace(scenario.rules, dn_hunter=False))
    parts, chosen = split(scenario), core_settings(scenario, key_file)
    one = run(merged(parts), batch=batch, **chosen)
    outcomes, _probes = counted(parts, chosen, batch=batch, shards=shards, seed=seed)
    names = [Counter(o.text["observations"].splitlines()) for o in outcomes]
    assert sum(names, Counter()) == Counter(one.text["observations"].splitlines())
    records = [without_server(outcome) for outcome in outcomes]
    assert sum(records, Counter()) == without_server(one)


@settings(suppress_health_check=[HealthCheck.filter_too_much], max_examples=examples(40, 8))
@given(
    scenarios,
    st.sampled_from([0, 1, 30, 3600]),
    st.integers(0, 9),
    st.sampled_from([0, 2 * SECOND, HOUR]),
)
def test_a_probe_that_comes_late_and_lags_has_nothing_shown_that_one_run_withholds(
    key_file: str, scenario: Scenario, lag_s: int, tenth: int, max_lag_ns: int
) -> None:
    """What each probe says is some of what one run says over the packets that the probes saw."""
    assume(scenario.rules.z > 1)
    rules = scenario.rules
    rules = replace(rules, dn_hunter=False, rotate_ns=max(rules.rotate_ns, MINUTE // 2))
    scenario = replace(scenario.straight, rules=rules)
    parts, chosen = split(scenario), core_settings(scenario, key_file)
    times = [frame.t_ns for part in parts for frame in part]
    joins_ns = min(times) + (max(times) - min(times)) * tenth // 10
    lag_ns = lag_s * SECOND
    outcomes, _probes = counted_late(
        parts, chosen, lag_ns=lag_ns, joins_ns=joins_ns, max_lag_ns=max_lag_ns
    )
    parts[-1] = [frame for frame in parts[-1] if frame.t_ns + lag_ns >= joins_ns]
    one = run(merged(parts), batch=1, **chosen)
    names = [Counter(o.text["observations"].splitlines()) for o in outcomes]
    assert sum(names, Counter()) <= Counter(one.text["observations"].splitlines())


@settings(suppress_health_check=[HealthCheck.filter_too_much], max_examples=examples(40, 8))
@given(scenarios, st.integers(0, 999), st.sampled_from([1, 4]), st.integers(0, 100), st.booleans())
def test_generations_of_hashes_change_nothing(
    key_file: str, scenario: Scenario, seed: int, count: int, more: int, leases: bool
) -> None:
    """Beside the same probes under one key, and one run."""
    assume(scenario.rules.z > 1)
    rules = replace(scenario.rules, rotate_ns=max(scenario.rules.rotate_ns, MINUTE // 2))
    scenario = replace(scenario.straight, rules=rules)
    chosen = core_settings(scenario, key_file) | {"count_leases": leases}
    parts = split(scenario) if count > 1 else [merged(split(scenario))]
    before, _probes = counted(parts, chosen, seed=seed)
    outcomes, _probes = counted(parts, with_generations(scenario, chosen, more), seed=seed)
    one = run(merged(parts), **chosen)
    names = [Counter(o.text["observations"].splitlines()) for o in outcomes]
    assert sum(names, Counter()) == Counter(one.text["observations"].splitlines())
    records = [without_server(outcome) for outcome in outcomes]
    assert records == [without_server(outcome) for outcome in before]
    assert [shown(outcome) for outcome in outcomes] == [shown(outcome) for outcome in before]
