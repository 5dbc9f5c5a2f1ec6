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
from scenario.visits import dns_visit, tcp_visit
from support.engine import Outcome, run
from support.examples import examples
from support.packets import merged
from support.probes import Portions, counted, portions

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
    make = {"dns": dns_visit, "quic": quic_visit}
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


def without_server(outcome: Outcome) -> Lines:
    """The records, but for their servers: those are looked up at the end of a batch."""
    return Counter(json.dumps(flow | {"server": None}).encode() for flow in outcome.flows)


def shown(outcome: Outcome) -> Counter[str]:
    """The server addresses that records show."""
    return Counter(str(flow["server"]) for flow in outcome.flows if flow["server"] is not None)


@settings(suppress_health_check=[HealthCheck.filter_too_much], max_examples=examples(60))
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
