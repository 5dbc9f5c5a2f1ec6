# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Two runs beside each other: what is withheld could be something else, and somebody who exposes
alone what he exposes could be away, and nothing that is told of others would differ."""

import ipaddress
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import quote

from capture_bytes import PCAP_NANOSECONDS, pcap_header, pcap_record
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle_contract import Model
from oracle_epochs import pseudonym
from oracle_rules import EVERYWHERE
from packet_help import SECOND, START, Frame, merged
from scenario import (
    KEY,
    TURNCOAT,
    TURNCOAT6,
    Scenario,
    scenarios,
    settings_of,
    visits,
)
from scenario_answers import certificate
from scenario_quic import quic_visit
from scenario_routes import NOTHING, routed
from scenario_visits import Visit, dns_visit, tcp_visit

import zanon_net
from zanon_net import Config

Files = dict[str, bytes]

FORMATS = ("tstat", "csv", "jsonl", "parquet", "observations")
LIMITS = {"max_flows": 4096, "max_tuples": 1 << 16, "max_attributes": 1 << 14}
COLUMNS = ("core", "e2e", "p2p", "options", "layer7")

# What may stand in the place of a text: as long, also in Huffman's code of HPACK.
HOSTS = {"a.example": "o.example", "b.example": "d.example", "www.c.example": "xyz.c.example"}
HOSTS |= {"printer.local": "scanner.local", "d_e.example": "f_e.example"}
HOSTS |= {"two words.example": "six words.example"}
CERTIFICATES = {"*.a.example": "*.o.example", "a.example": "o.example"}
CERTIFICATES |= {"www.c.example": "xyz.c.example", "*.c.example": "*.s.example"}
AGENTS = {"Chrome/115 X": "Chrome/995 X", "Chrome/116 X": "Chrome/996 X"}
SERVERS = {"198.51.100.7": "198.51.100.9", "198.51.100.8": "198.51.100.6"}
SERVERS |= {"2001:db8:ff::7": "2001:db8:ff::9", "2001:db8:ff::8": "2001:db8:ff::a"}

HERMIT = "10.7.77.1"  # shares nothing with anybody
CAVES = (b"one.cave.example", b"cave.example")


@dataclass(frozen=True, slots=True)
class Disguise:
    """What stands in the place of what."""

    hosts: dict[str, str]
    certificates: dict[str, str]
    agents: dict[str, str]
    servers: dict[str, str]
    coarse: frozenset[int]  # visits of which only coarse records are told

    def host(self, raw: bytes) -> bytes:
        """Another host, spelled in the same way."""
        text = raw.decode()
        bare = text.partition(":")[0].removesuffix(".")
        other = self.hosts.get(bare.lower())
        if other is None:
            return raw
        spelled = other.title() if bare != bare.lower() else other
        return (spelled + text[len(bare) :]).encode()

    def certificate(self, name: str) -> str:
        """Another name, in a certificate of the same length."""
        other = self.certificates.get(name, name)
        return other if len(certificate(other)) == len(certificate(name)) else name

    def visit(self, visit: Visit, number: int) -> Visit:
        """The visit with all of it."""
        beside = visit.beside
        if visit.kind == "tls" and beside[0]:
            beside = (self.certificate(beside[0]), beside[1])
        elif visit.kind == "quic":
            beside = (self.agents.get(beside[0], beside[0]), self.agents.get(beside[1], beside[1]))
        elif visit.kind == "dns":
            beside = (self.servers.get(beside[0], beside[0]), beside[1])
        hidden = number in self.coarse and visit.port == 8443
        return replace(
            visit,
            ends=(visit.ends[0], self.servers.get(visit.ends[1], visit.ends[1])),
            hosts=tuple(map(self.host, visit.hosts)),
            beside=beside,
            port=9443 if hidden else visit.port,
        )


def worn(frame: Frame) -> Frame:
    """The packet as another computer, further away, would have sent it."""
    data = bytearray(frame.data)
    four = data[14] >> 4 == 4
    data[14 + (8 if four else 7)] ^= 0x35
    if data[14 + (9 if four else 6)] == 6:
        data[14 + (20 if four else 40) + 14] ^= 0x15  # its window
    return replace(frame, data=bytes(data))


def frames_of(visits: Sequence[Visit], hidden: frozenset[int] = frozenset()) -> list[Frame]:
    """The capture, in order of time."""
    make = {"dns": dns_visit, "quic": quic_visit}
    talks = []
    for n, visit in enumerate(visits):
        frames = make.get(visit.kind, tcp_visit)(visit, n)
        if n in hidden:
            frames = [worn(frame) for frame in frames]
        talks.append(routed(frames, visit.route, visit.ends[0], n))
    return merged(talks)


def run(scenario: Scenario, frames: list[Frame], key_file: str, split: str | None) -> Files:
    """The files of a run, and the popularity of names."""
    with tempfile.TemporaryDirectory() as folder:
        capture, out = Path(folder) / "in.pcap", Path(folder) / "out"
        records = (pcap_record("<", *divmod(f.t_ns, SECOND), f.data) for f in frames)
        capture.write_bytes(pcap_header(magic=PCAP_NANOSECONDS) + b"".join(records))
        more = {"key_file": key_file, "popularity": Path(folder) / "counts", "split": split}
        given = settings_of(scenario.rules) | LIMITS | more
        config = Config().replace(format=FORMATS, columns=COLUMNS, **given)
        zanon_net.run(capture, config, out=out)
        paths = [path for path in Path(folder).rglob("*") if path.is_file() and path != capture]
        return {str(path.relative_to(folder)): path.read_bytes() for path in paths}


def lines(files: Files, stem: str) -> list[str]:
    """Of all parts."""
    names = (name for name in sorted(files) if name.startswith(f"out/{stem}"))
    parts = (files[name] for name in names if name.endswith(".jsonl"))
    return [line for part in parts for line in part.decode().splitlines()]


def coarse_visits(scenario: Scenario) -> frozenset[int]:
    """Visits of which nothing is told exactly."""
    model = Model(scenario.rules, scenario.frames)
    records = iter(model.run().records)
    told: dict[int, bool] = {}
    for _flow, talk in model.flows:
        if talk.shown_at_all:
            ports = [end.port - 20000 for end in talk.ends]
            number = next(n for n in ports if 0 <= n < 1000)
            told[number] = told.get(number, True) and next(records).coarse
    return frozenset(number for number, coarse in told.items() if coarse)


def disguise_of(scenario: Scenario, said: str) -> Disguise:
    """Another text for each that was not told."""

    def kept_back(texts: dict[str, str]) -> dict[str, str]:
        return {text: other for text, other in texts.items() if f'"{text}"' not in said}

    hosts, servers = kept_back(HOSTS), kept_back(SERVERS)
    if any(visit.how in ("forged", "echo") for visit in scenario.visits):
        hosts.pop("b.example", None)  # that is whom they name
    around = str([visit.route for visit in scenario.visits])
    if scenario.rules.internal == EVERYWHERE:
        servers = {}
    servers = {text: other for text, other in servers.items() if f"'{text}'" not in around}
    agents = {text: other for text, other in AGENTS.items() if quote(text, "") not in said}
    return Disguise(hosts, kept_back(CERTIFICATES), agents, servers, coarse_visits(scenario))


# A text and what stands in its place are both on the never list, or neither: so nothing is on it.
several = scenarios.filter(lambda one: one.rules.z > 1 and not one.rules.never)
splits = st.sampled_from([None, "1m"])


@settings(max_examples=30)
@given(several, splits)
def test_what_is_withheld_may_be_anything(
    key_file: str, scenario: Scenario, split: str | None
) -> None:
    files = run(scenario, scenario.frames, key_file, split)
    said = "".join(lines(files, "flows") + lines(files, "observations"))
    other = disguise_of(scenario, said)
    disguised = [other.visit(visit, n) for n, visit in enumerate(scenario.visits)]
    found = run(scenario, frames_of(disguised, other.coarse), key_file, split)
    assert found.keys() == files.keys()
    # One by one: to show how two large files differ would take pytest minutes.
    assert [name for name in files if found[name] != files[name]] == []


def alone(visit: Visit, number: int) -> Visit:
    """The visit as the hermit's, whose servers show and tell what no other does."""
    server = f"198.51.100.{200 + number}"
    told = {"tls": "cave.example", "quic": "Cave/1", "dns": server}.get(visit.kind, "")
    beside = (told if visit.beside[0] else "", visit.beside[1] if visit.kind == "tls" else "")
    return replace(visit, ends=(HERMIT, server), route=NOTHING, beside=beside)


hermits = st.lists(
    visits(st.integers(0, 30).map(lambda n: START + n * SECOND), CAVES), min_size=1, max_size=6
).map(lambda some: [alone(visit, n) for n, visit in enumerate(some)])


@settings(max_examples=20)
@given(several, hermits)
def test_who_is_alone_may_be_away(key_file: str, crowd: Scenario, hermit: list[Visit]) -> None:
    """When others' flows close may tell what DNS said, and whose servers became clients."""
    rules = replace(crowd.rules, dn_hunter=False)
    others = [visit for visit in crowd.visits if visit.ends[0] not in (TURNCOAT, TURNCOAT6)]
    scenario = Scenario(rules, others)
    away = run(scenario, frames_of(others), key_file, None)
    there = run(scenario, frames_of([*others, *hermit]), key_file, None)
    epochs = {(START + n * SECOND) // rules.rotate_ns for n in range(-1, 100)}
    address = ipaddress.ip_address(HERMIT)
    hermits_own = {pseudonym(KEY, rules.rotate_ns, epoch, address) for epoch in epochs}
    told = Counter(lines(there, "flows"))
    assert lines(there, "observations") == lines(away, "observations")
    assert not any(word in part for part in there.values() for word in (b"cave", b"Cave"))
    for line in list(told):
        if json.loads(line)["client"] in hermits_own:
            del told[line]
    assert told == Counter(lines(away, "flows"))
