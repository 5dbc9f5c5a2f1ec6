# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Whole runs beside a model of the contract: every observation, and what every record says."""

import json
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from oracle.contract import Line, Model, Record, Talks
from oracle.rules import EVERYWHERE
from scenario.aims import AIMS, moving
from scenario.crowd import (
    KEY,
    Jump,
    Rules,
    Scenario,
    capped,
    delayed,
    delays,
    edges,
    jumped,
    jumps,
    scenarios,
    settings_of,
)
from scenario.routes import Hop, Route
from scenario.visits import Visit
from support.contract_runs import LIMITS, columns_of, run_files
from support.engine import SETTINGS, Outcome
from support.engine import run as engine_run
from support.examples import examples
from support.packets import DAY, MINUTE, MS, SECOND, SERVER_ADDRESS, START, Frame

from zanon_net import Config

WHOLE = 1 << 14  # packets in a batch
# Columns of a coarse record beside those of the model.
OTHERS = {"c_isint", "s_isint", "c_iscrypto", "s_iscrypto", "server", "c_type", "s_type"}
OTHERS |= {"first", "last", "c_first_abs", "s_first_abs", "durat", "c_durat", "s_durat"}
NAME_COLUMNS = ("c_tls_SNI", "http_hostname", "quic_SNI")
HUNTED = ("fqdn", "dns_rslv", "req_tm", "res_tm")
MISSING = (0, 0.0, None, "none")


def parsed(text: bytes) -> list[Line]:
    return [json.loads(line) for line in text.splitlines()]


def fits(line: Line, record: Record) -> bool:
    """What may be said in several ways is said in one."""
    name, resolver, *times = (line.get(name) for name in HUNTED)
    return line["server"] in record.servers and any(
        (name, resolver) == tuple(texts)
        and all(abs((ms or 0) - ns / MS) < 0.001 for ms, ns in zip(times, times_ns, strict=True))
        for *texts, times_ns in record.hunted
    )


def check_fits(lines: list[Line], records: list[Record]) -> None:
    """Each record is one of the lines, which else are alike."""
    taken: dict[int, int] = {}  # by line: the record

    def place(record: int, tried: set[int]) -> bool:
        for n, line in enumerate(lines):
            if n not in tried and fits(line, records[record]):
                tried.add(n)
                if n not in taken or place(taken[n], tried):
                    taken[n] = record
                    return True
        return False

    for n, record in enumerate(records):
        assert place(n, set()), (record, [[line.get(name) for name in HUNTED] for line in lines])


def check_times(line: Line) -> None:
    """A coarse line says the same times in all of its columns, and no duration of a side."""
    start, end = line["t_start_ns"] / MS, line["t_end_ns"] / MS
    if line["proto"] == 6:
        assert (line["first"], line["last"], line["durat"]) == (start, end, end - start)
    else:
        assert {line["c_first_abs"], line["s_first_abs"]} <= {start, None}
        assert (line["c_durat"], line["s_durat"]) == (0, 0)


def check_records(found: list[Line], expected: list[Record]) -> None:
    """The records are the expected ones, in whatever order."""
    columns = {"tcp": set(), "udp": set()}
    for record in expected:
        columns["tcp" if record.line["proto"] == 6 else "udp"] |= record.line.keys()

    def key(line: Line) -> str:
        chosen = columns["tcp" if line["proto"] == 6 else "udp"]
        return json.dumps({name: line.get(name) for name in chosen}, sort_keys=True)

    wanted = Counter(key(record.line) for record in expected)
    got = Counter(map(key, found))
    assert got - wanted == wanted - got == Counter()
    for which in wanted:
        lines = [line for line in found if key(line) == which]
        check_fits(lines, [record for record in expected if key(record.line) == which])
    coarse = {key(record.line) for record in expected if record.coarse}
    for line in found:
        if key(line) in coarse:
            rest = line.keys() - columns["tcp" if line["proto"] == 6 else "udp"] - OTHERS
            told = (*MISSING, line["name"])
            check_times(line)
            assert {name: line[name] for name in rest if line[name] not in told} == {}
        assert {line.get(name) for name in NAME_COLUMNS} <= {None, line["name"]}


def check_observations(found: list[Line], expected: list[Line], purpose: str) -> None:
    """The observations are the expected ones; to the public those of a minute leave together."""
    if purpose == "public":
        times = [line["t_ns"] for line in found]
        assert times == sorted(times)
        found, expected = (sorted(lines, key=json.dumps) for lines in (found, expected))
    assert found == expected


def check(files: dict[str, bytes], scenario: Scenario) -> None:
    manifest = json.loads(files["manifest.json"])
    changes = tuple((one["t_ns"], one["new"]) for one in manifest.get("z_changes", ()))
    expected = Model(replace(scenario.rules, z_changes=changes), scenario.frames).run()
    observations = parsed(files["observations.jsonl"])
    check_observations(observations, expected.observations, scenario.rules.purpose)
    check_records(parsed(files["flows.jsonl"]), expected.records)
    decisions, dns = manifest["decisions"], manifest["counters"]["dns"]
    assert decisions["observations"] == expected.names
    assert dns["dns_observations"] == expected.dns
    assert dns["dns_observations"] == dns["dns_released"] + dns["dns_suppressed"]
    spaces = Counter(scenario.rules.namespace(o["name_source"]) for o in expected.observations)
    assert (decisions["released"], dns["dns_released"]) == (spaces["name"], spaces["dns"])


def one_visit(kind: str, how: str, *hosts: bytes, route: Route, **more: Any) -> Scenario:
    """A visit on a route, of which all is released that counts."""
    chosen = Rules(z=1, window_ns=SECOND, rotate_ns=SECOND, key=KEY, internal=EVERYWHERE)
    ends = ("10.7.0.1", SERVER_ADDRESS)
    return Scenario(chosen, [Visit(START, ends, kind, hosts, how, route=route, **more)])


TUNNEL = (Hop("vxlan", "10.7.0.3", "192.0.2.99"),)
# The first half of a hello comes by a tunnel that is not its user's, or never; a server's answer,
# which a forger sends by such a tunnel first, so that it may be an echo; of a connection, only a
# part of a certificate is captured.
HALF = one_visit("tls", "in two", b"a.example", route=Route(detour=(3, TUNNEL)), end="open")
OTHER_HALF = one_visit(
    "tls", "turned round", b"a.example", route=Route(detour=(4, ("lost fragment",))), end="open"
)
ECHO = one_visit("quic", "echoed", b"a.example", route=Route(detour=(1, TUNNEL)))
PART = one_visit(
    "tls",
    "whole",
    b"a.example",
    route=Route((*TUNNEL, "lost fragment"), detour=(5, ())),
    port=8443,
    secondary=("*.a.example", "turned round"),
)


@settings(max_examples=examples(50, 8))
@given(scenarios, st.integers(1, 4))
@example(HALF, 1)
@example(OTHER_HALF, 1)
@example(ECHO, 1)
@example(PART, 1)
def test_a_run_says_what_the_contract_says(key_file: str, scenario: Scenario, sources: int) -> None:
    check(run_files(scenario, key_file, sources), scenario)


@settings(max_examples=examples(25))
@given(moving)
def test_z_that_follows_the_stream_decides_as_long_as_it_is_in_force(
    key_file: str, scenario: Scenario
) -> None:
    check(run_files(scenario, key_file, z_max=5), scenario)


def fed(frames: list[Frame], chosen: Rules, key_file: str, batch: int) -> Outcome:
    """What an engine puts out that decides each batch when it was fed."""
    given = Config().replace(**settings_of(chosen), key_file=key_file).engine_arguments()
    wanted = {name: given[name] for name in SETTINGS.keys() & given.keys() - LIMITS.keys()}
    wanted |= {"outputs": ("jsonl", "observations"), "rotate_ns": chosen.rotate_ns}
    wanted["columns"] = columns_of(chosen)
    return engine_run(frames, batch=batch, **wanted)


def a_window_apart(off_ns: int) -> Scenario:
    """Two users of a name, and a nanosecond that decides."""
    chosen = Rules(z=2, window_ns=SECOND, rotate_ns=SECOND, key=KEY)
    starts = ((0, "10.7.0.1"), (SECOND + off_ns, "10.7.0.2"))
    return Scenario(
        chosen,
        [Visit(START + ns, (user, SERVER_ADDRESS), "tls", (b"a.example",)) for ns, user in starts],
    )


def check_fed(scenario: Scenario, key_file: str, batch: int) -> None:
    outcome = fed(scenario.frames, scenario.rules, key_file, batch)
    expected = Model(scenario.rules, scenario.frames).run()
    check_observations(outcome.observations, expected.observations, scenario.rules.purpose)
    check_records(outcome.flows, expected.records)


@settings(max_examples=examples(250, 8))
@given(edges)
@example(a_window_apart(0))
@example(a_window_apart(1))
def test_few_users_are_told_from_enough(key_file: str, scenario: Scenario) -> None:
    check_fed(scenario, key_file, WHOLE)


@pytest.mark.parametrize("aim", AIMS)
@settings(max_examples=examples(20, 8))
@given(st.data())
def test_what_seldom_comes_is_as_the_contract_says(
    key_file: str, aim: str, data: st.DataObject
) -> None:
    check_fed(data.draw(AIMS[aim]), key_file, WHOLE)


@settings(max_examples=examples(100, 8))
@given(capped, st.sampled_from([1, 7, WHOLE]))
def test_caps_on_invented_users(key_file: str, scenario: Scenario, batch: int) -> None:
    check_fed(scenario, key_file, batch)


def asked_again() -> Scenario:
    """Two users ask for a name, and again a minute later, both in the same nanosecond. The record
    of a flow in between is written when the first of these questions has moved the clock: by then
    the first pair of questions has left the window, and the second pair has not been counted."""
    chosen = Rules(z=2, window_ns=30 * SECOND, rotate_ns=SECOND, key=KEY, established=False)
    chosen = replace(chosen, dns_votes="all", dn_hunter=True, purpose="internal")
    server = "198.51.100.7"
    asks = [
        Visit(START + ns, (user, "198.51.100.8"), "dns", (b"a.example",), secondary=(server, ""))
        for ns in (0, MINUTE)
        for user in ("10.7.0.1", "10.7.0.2")
    ]
    visit = Visit(START + SECOND, ("10.7.0.1", server), "tls", (b"a.example",), "nameless")
    return Scenario(chosen, [*asks, visit])


@settings(max_examples=examples(40, 8))
@given(scenarios, st.integers(1, 50))
@example(asked_again(), 1)
@example(asked_again(), WHOLE)
def test_batches_change_nothing(key_file: str, scenario: Scenario, batch: int) -> None:
    check_fed(scenario, key_file, batch)


@settings(max_examples=examples(20))
@given(scenarios)
def test_workers_change_nothing(key_file: str, scenario: Scenario) -> None:
    one, two = (run_files(scenario, key_file, workers=n) for n in (1, 2))
    two["manifest.json"] = two["manifest.json"].replace(b'"workers": 2', b'"workers": 1')
    assert one == two


def check_bounds(frames: list[Frame], chosen: Rules, key_file: str, batch: int) -> None:
    """A flow that its packets' order or times end early may vote again, and at another time: at
    most, it exposes its names all the time. Of a preset with exact times, which decide."""
    chosen = replace(chosen, purpose="partner")
    outcome, exposures = fed(frames, chosen, key_file, batch), Talks(chosen, frames).exposed()
    for seen in outcome.observations:
        space = chosen.namespace(seen["name_source"]) if chosen.dns_votes != "no" else "name"
        assert exposures.users(seen["t_ns"], (space, seen["name"])) >= chosen.z
    told = {(flow["name"], flow["name_source"]) for flow in outcome.flows if flow["name"]}
    assert told <= {(seen["name"], seen["name_source"]) for seen in outcome.observations}


@settings(max_examples=examples(35, 8))
@given(scenarios, delays, st.one_of(st.integers(1, 50), st.just(WHOLE)))
def test_late_packets_release_nothing_more(
    key_file: str, scenario: Scenario, late: list[tuple[int, int]], batch: int
) -> None:
    check_bounds(delayed(scenario.straight.frames, late), scenario.rules, key_file, batch)


def talks_of_two() -> Scenario:
    """A user 20 s behind the start, and another one right behind; the window is 10 s."""
    chosen = Rules(z=2, window_ns=10 * SECOND, rotate_ns=SECOND, key=KEY)
    starts = ((20, "10.7.0.1"), (21, "10.7.0.2"))
    return Scenario(
        chosen,
        [
            Visit(START + n * SECOND, (user, SERVER_ADDRESS), "tls", (b"a.example",))
            for n, user in starts
        ],
    )


SECOND_TALK = len(talks_of_two().frames) // 2  # its first packet
# A body that looks like a request, and overtakes its own, which comes a day later; and requests of
# which the first is in fragments that are a minute apart.
BODY_ALONE = one_visit("http", "body first", b"a.example", route=Route())
PARTED = one_visit(
    "http", "absolute", b"b.example", b"a.example", route=Route(("turned fragments",))
)


@settings(max_examples=examples(35, 8))
@given(scenarios, jumps, st.integers(1, 50))
@example(talks_of_two(), [(SECOND_TALK, -5 * SECOND, True)], 1)  # late: before the first user's
@example(talks_of_two(), [(SECOND_TALK, -12 * SECOND, True)], 1)  # too late
@example(BODY_ALONE, [(4, DAY, True)], 1)
@example(PARTED, [(4, MINUTE, False)], 1)
def test_wrong_times_release_nothing_more(
    key_file: str, scenario: Scenario, wrong: list[Jump], batch: int
) -> None:
    check_bounds(jumped(scenario.straight.frames, wrong), scenario.rules, key_file, batch)
