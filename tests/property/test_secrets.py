# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Compares pairs of runs: with another withheld name, with other clients, or without a user who
exposes a name alone, all other output is the same."""

import ipaddress
import json
import re
import tempfile
from collections import Counter
from dataclasses import replace
from itertools import product, zip_longest
from pathlib import Path

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from oracle.epochs import pseudonym
from oracle.rules import Rules
from scenario.aims import AIMS, moving
from scenario.crowd import (
    CLIENTS,
    CLIENTS6,
    KEY,
    TURNCOAT,
    TURNCOAT6,
    Scenario,
    edges,
    scenarios,
    settings_of,
    visits,
)
from scenario.disguise import Disguise
from scenario.routes import NOTHING, Hop
from scenario.visits import Visit
from support.contract_runs import LIMITS, columns_of, write
from support.examples import examples
from support.packets import SECOND, START, Frame, Udp

import zanon_net
from zanon_net import Config

Files = dict[str, bytes]
Steps = tuple[Hop | str, ...]

TEXTS = ("tstat", "csv", "jsonl", "observations")
FORMATS = (*TEXTS, "parquet")

HERMIT = "10.7.77.1"  # shares nothing with anybody
CAVES = (b"one.cave.example", b"cave.example")


def run(
    rules: Rules,
    frames: list[Frame],
    key_file: str,
    split: str | None = None,
    order: str | None = "closing",
) -> Files:
    """The files of a run, and the popularity of names. order: None for the preset's."""
    with tempfile.TemporaryDirectory() as folder:
        capture, out = write(Path(folder) / "in.pcap", frames), Path(folder) / "out"
        more = {"key_file": key_file, "popularity": Path(folder) / "counts", "split": split}
        more["order"] = order
        given = settings_of(rules) | LIMITS | more
        formats = FORMATS if order is not None else TEXTS  # the order changes the size of Parquet
        config = Config().replace(format=formats, columns=columns_of(rules), **given)
        zanon_net.run(capture, config, out=out)
        paths = [path for path in Path(folder).rglob("*") if path.is_file() and path != capture]
        return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def lines(files: Files, stem: str) -> list[str]:
    """Of all parts."""
    names = (name for name in sorted(files) if name.startswith(f"out/{stem}"))
    parts = (files[name] for name in names if name.endswith(".jsonl"))
    return [line for part in parts for line in part.decode().splitlines()]


def in_any_order(files: Files) -> Files:
    """Sorted lines: what waits for its minute leaves in an order of its own."""
    return {name: b"\n".join(sorted(data.split(b"\n"))) for name, data in files.items()}


def unlike(one: Files, two: Files) -> list[object]:
    """The files that differ, each with its first lines that do; quick, unlike what pytest says."""
    found: list[object] = []
    for name in sorted(one.keys() | two.keys()):
        if one.get(name) != two.get(name):
            pairs = zip_longest(*(files.get(name, b"").split(b"\n") for files in (one, two)))
            found.append((name, next((pair for pair in pairs if pair[0] != pair[1]), None)))
    return found


kinds = (*[scenarios] * 6, *AIMS.values(), moving, *[edges] * 3)
several = st.sampled_from(kinds).flatmap(lambda kind: kind)
secretive = several.filter(lambda one: not one.rules.everything or one.rules.never != ())
splits = st.sampled_from([None, "1m"])
orders = st.sampled_from(["closing", None])


@settings(max_examples=examples(60, 8))
@given(secretive, splits, orders)
def test_what_is_withheld_may_be_anything(
    key_file: str, scenario: Scenario, split: str | None, order: str | None
) -> None:
    files = run(scenario.rules, scenario.frames, key_file, split, order)
    changes = json.loads(files["out/manifest.json"]).get("z_changes", ())
    rules = replace(scenario.rules, z_changes=tuple((one["t_ns"], one["new"]) for one in changes))
    disguise = Disguise.of(replace(scenario, rules=rules))
    disguised = replace(rules, never=disguise.never), disguise.frames(scenario.visits)
    other = run(*disguised, key_file, split, order)
    if order is None:
        other, files = in_any_order(other), in_any_order(files)
    assert unlike(other, files) == []


def neighbour(address: str) -> str:
    """Another host of a client's network; whoever is no client stays."""
    if address not in (*CLIENTS, *CLIENTS6):
        return address
    real = ipaddress.ip_address(address)
    return str(type(real)(int(real) ^ 85))


def next_door(visit: Visit) -> Visit:
    """The visit of neighbours, at whom tunnels may end, too."""

    def passed(steps: Steps) -> Steps:
        return tuple(
            replace(step, near=neighbour(step.near), far=neighbour(step.far))
            if isinstance(step, Hop)
            else step
            for step in steps
        )

    route = visit.route
    detour = route.detour and (route.detour[0], passed(route.detour[1]))
    route = replace(route, around=passed(route.around), detour=detour)
    client, server = map(neighbour, visit.ends)
    return replace(visit, ends=(client, server), route=route)


def known_as(rules: Rules, epochs: set[int]) -> dict[str, str]:
    """The clients' pseudonyms, by those of their neighbours."""
    names = {}
    for epoch, client in product(epochs, (*CLIENTS, *CLIENTS6)):
        both = map(ipaddress.ip_address, (client, neighbour(client)))
        own, other = (pseudonym(KEY, rules.scope, epoch, one) for one in both)
        names[other] = own
    return names


@settings(max_examples=examples(25, 8))
@given(several)
def test_a_neighbour_differs_by_the_pseudonym(key_file: str, crowd: Scenario) -> None:
    rules, frames = crowd.rules, crowd.frames
    here = run(rules, frames, key_file)
    there = run(rules, Scenario(rules, [*map(next_door, crowd.visits)]).frames, key_file)
    names = known_as(rules, {frame.t_ns // rules.rotate_ns for frame in frames})
    for stem in ("flows", "observations"):
        text = "\n".join(lines(there, stem))
        own = re.sub('(?<=")[0-9a-f:.]+(?=")', lambda word: names.get(word[0], word[0]), text)
        pairs = zip_longest(own.splitlines(), lines(here, stem))
        assert [pair for pair in pairs if pair[0] != pair[1]] == []
    facts = [json.loads(files["out/manifest.json"]) for files in (here, there)]
    assert facts[0] | {"outputs": 0} == facts[1] | {"outputs": 0}  # pseudonyms differ in length
    assert here["counts"] == there["counts"]


def alone(visit: Visit, number: int) -> Visit:
    """The visit as the hermit's, whose servers expose what no other does."""
    server = f"198.51.100.{200 + number}"
    text = {"tls": "cave.example", "quic": "Cave/1", "dns": server}.get(visit.kind, "")
    secondary = (
        text if visit.secondary[0] else "",
        visit.secondary[1] if visit.kind == "tls" else "",
    )
    return replace(visit, ends=(HERMIT, server), route=NOTHING, secondary=secondary)


hermits = st.lists(
    visits(st.integers(0, 30).map(lambda n: START + n * SECOND), CAVES), min_size=1, max_size=6
).map(lambda some: [alone(visit, n) for n, visit in enumerate(some)])


def ended(*captures: list[Frame]) -> list[list[Frame]]:
    """The captures, each with a last packet at one time: the end of the input closes flows."""
    end_ns = max(frame.t_ns for frames in captures for frame in frames)
    last = Udp("10.7.50.50", ports=(30_000, 9), t_ns=end_ns).send(b"the end").frames
    return [[*frames, *last] for frames in captures]


# What z is at last may tell how many users came.
steady = several.filter(lambda one: one.rules.target_p is None and one.rules.z > 1)


@settings(max_examples=examples(25, 8))
@given(steady, hermits)
def test_who_is_alone_may_be_away(key_file: str, crowd: Scenario, hermit: list[Visit]) -> None:
    """When others' flows close may tell what DNS said, and whose servers became clients."""
    rules = replace(crowd.rules, dn_hunter=False)
    others = [visit for visit in crowd.visits if visit.ends[0] not in (TURNCOAT, TURNCOAT6)]
    everyone, rest = (Scenario(rules, visits).frames for visits in ([*others, *hermit], others))
    packed = ipaddress.ip_address(HERMIT).packed
    own = [frame for frame in everyone if packed in frame.data[:34]]
    captures = ended(everyone, rest, own)
    exposed = run(replace(rules, z=1, never=()), captures[2], key_file)
    assume(all("cave.example" in line for line in lines(exposed, "observations")))
    there, away, apart = (run(rules, frames, key_file) for frames in captures)
    epochs = {(START + n * SECOND) // rules.rotate_ns for n in range(-1, 100)}
    address = ipaddress.ip_address(HERMIT)
    hermits_own = {pseudonym(KEY, rules.scope, epoch, address) for epoch in epochs}
    told = Counter(lines(there, "flows"))
    seen = (lines(files, "observations") for files in (there, away))
    assert [pair for pair in zip_longest(*seen) if pair[0] != pair[1]] == []
    assert not any(word in part for part in there.values() for word in (b"cave", b"Cave"))
    for line in list(told):
        record = json.loads(line)  # a stranger may open a flow to the hermit
        if hermits_own & {record["client"], record["server"]}:
            del told[line]
    for line in lines(apart, "flows"):
        record = json.loads(line)
        opened = record["name_status"] == "suppressed" and record["client"] not in hermits_own
        if record["client"] is None or opened:  # coarse: it names nobody, or only the stranger
            told -= Counter([line])
    others_told = Counter(lines(away, "flows"))
    assert told - others_told == others_told - told == Counter()
