# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The names in whole conversations, bare, in tunnels and on other links: ours and tshark's."""

import functools
import importlib
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from scapy.packet import Packet
from scenario import conversation as help_
from scenario.conversations_elsewhere import LINKS, RAW, TUNNELS
from support.capture_bytes import write_capture
from support.engine import Outcome, Taker, feed, make_engine, run_capture
from support.examples import each
from support.packets import SECOND, START, Frame

for _module in ("tcp", "http", "udp"):
    importlib.import_module(f"scenario.conversations_{_module}")  # each fills the list of builders


class Captured(NamedTuple):
    """Frames of a link type, and the (source, name) that they show."""

    link: int
    frames: list[bytes]
    names: set[tuple[str, str]]


def _elsewhere() -> dict[str, tuple[str, int, Callable[[Packet], Packet]]]:
    """name -> (builder, link, wrap): one of TCP and one of UDP for each place."""
    places = {f"over-{name}": place for name, place in LINKS.items()}
    places |= {f"through-{name}": (1, wrap) for name, wrap in TUNNELS.items()}
    return {
        f"{base}-{name}": (base, *place)
        for name, place in places.items()
        for base in ("tls-ipv6", "tls-segments-reversed", "http-get", "dns-a", "quic-two-initials")
    }


ELSEWHERE = _elsewhere()
NUMBERS = {name: number for number, name in enumerate([*help_.BUILDERS, *ELSEWHERE])}
# Conversations that may hide a name: a hello that is never whole, or no hello on its port.
HIDDEN = {"tls-hello-that-never-ends", "tls-alert-only", "tls-fragment-lost"}


@functools.cache
def captured(name: str) -> Captured:
    """The conversation of this name; built when it is needed, as scapy takes its time."""
    base, link, wrap = ELSEWHERE.get(name, (name, RAW, lambda packet: packet))
    case = help_.build(base, NUMBERS[name])
    return Captured(link, [bytes(wrap(p)) for p in case.packets], case.names)


def all_captured() -> dict[str, Captured]:
    return {name: captured(name) for name in NUMBERS}


def run_case(case: Captured) -> Outcome:
    taker = Taker(make_engine(z=1, established=False, keep_client_port=True))
    frames = [Frame(START + n * SECOND, data, len(data)) for n, data in enumerate(case.frames)]
    feed(taker.engine, frames, case.link)
    return taker.outcome()


@each("name", NUMBERS)
def test_names(name: str) -> None:
    case = captured(name)
    outcome = run_case(case)
    assert {(o["name_source"], o["name"]) for o in outcome.observations} == case.names
    assert outcome.flow["client_port"] == help_.FIRST_PORT + NUMBERS[name]
    without = "suppressed" if name in HIDDEN else "none"
    assert outcome.flow["name_status"] == ("released" if case.names else without)


def test_only_one_of_them_offers_ech() -> None:
    cases = all_captured().items()
    offers = {name for name, case in cases if run_case(case).flow["ech"] == "offered"}
    assert offers == {"tls-ech-outer-name"}


def test_all_in_one_capture(tmp_path: Path) -> None:
    """pcapng with an interface for each link type; the conversations follow each other."""
    path, cases = tmp_path / "all.pcapng", all_captured().values()
    frames = [(data, case.link) for case in cases for data in case.frames]
    write_capture(path, *zip(*frames, strict=True))
    outcome = run_capture(path, z=1, established=False)
    expected = set.union(*(case.names for case in cases))
    assert {(o["name_source"], o["name"]) for o in outcome.observations} == expected
    assert len(outcome.flows) == len(cases)


# ---- tshark -------------------------------------------------------------------------------------

FIELDS = {
    "sni": "tls.handshake.extensions_server_name",
    "dtls": "dtls.handshake.extensions_server_name",
    "host": "http.host",
    "question": "dns.qry.name",
    "response": "dns.flags.response",
    "protocols": "frame.protocols",
}
FIELDS |= {
    f"{kind} {end}": f"{kind}.{end}port" for kind in ("tcp", "udp") for end in ("src", "dst")
}


def number_of(row: dict[str, str]) -> int | None:
    """The case that a frame belongs to: the port of its client."""
    last = len(NUMBERS) + help_.FIRST_PORT
    ports = [int(port) for f in FIELDS if " " in f for port in row[f].split(",") if port]
    found = {port for port in ports if help_.FIRST_PORT <= port < last}
    return found.pop() - help_.FIRST_PORT if found else None


def tshark_names(row: dict[str, str]) -> set[tuple[str, str]]:
    protocols = row["protocols"].split(":")
    source = "quic" if "quic" in protocols else "tls"
    names = {(source, name) for name in row["sni"].split(",") + row["dtls"].split(",")}
    hosts = row["host"].replace("\\t", " ").split(",")  # as tshark writes a tabulator
    names |= {("http", host.partition(":")[0].strip()) for host in hosts}
    if row["response"] in ("0", "False"):
        names |= {("dns", name) for name in row["question"].split(",")}
    return {(source, name.lower().rstrip(".")) for source, name in names if name}


def test_tshark_finds_the_same_names(tshark: Callable[..., list[dict[str, str]]]) -> None:
    cases = all_captured()
    links: Sequence[int] = [case.link for case in cases.values() for _ in case.frames]
    frames = [data for case in cases.values() for data in case.frames]
    theirs: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for row in tshark(frames, links, FIELDS, every=True):
        number = number_of(row)
        if number is not None:
            theirs[list(cases)[number]] |= tshark_names(row)
    assert len(cases) > 150
    assert {name: theirs[name] for name in cases} == {name: c.names for name, c in cases.items()}
