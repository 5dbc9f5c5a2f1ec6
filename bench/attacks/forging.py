# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the cost of releasing a rare name by forging the other users who share it.

Knowledge: the name, and the time of its one real visitor; the attacker sends packets past the tap.
A capture has the packets of n forged users in one way, and then the real visitor: a DNS question
with its answer, and a TLS connection. The command shows whether a record names the visitor's host:
a record of TLS, or of DNS. z - 2 forged users must never suffice. z - 1 suffice if a way works at
all; if it does not work, 300 do not suffice either.
"""

import json
import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from packets import ACK, PCAP_NS, PSH, SYN
from population import START_NS
from views import known_options, run_command

from zanon_net.bench.messages import (
    Dice,
    HelloShape,
    dns_labels,
    dns_query,
    dns_response,
    hello_record,
)

RARE = "rare.example"
NAME = RARE.encode()
Z, MANY = 20, 300
NETWORKS = "10.0.0.0/8,2001:db8::/32"
STEP_NS = 1_000_000
Packet = tuple[bool, bytes]  # true if the attacker sends it, and the packet
Address = IPv4Address | IPv6Address
RESOLVER = ip_address("203.0.113.53")
SERVERS = {4: ip_address("203.0.113.80"), 6: ip_address("2001:db9::80")}
HELLO = hello_record(NAME, HelloShape(), Dice("forging"))


def in_ip(source: Address, target: Address, protocol: int, payload: bytes) -> bytes:
    """Returns an IP packet."""
    ends = source.packed + target.packed
    if source.version == 6:
        return struct.pack(">IHBB", 6 << 28, len(payload), protocol, 64) + ends + payload
    size = 20 + len(payload)
    return struct.pack(">BBHHHBBH", 0x45, 0, size, 1, 0x4000, 64, protocol, 0) + ends + payload


def tcp(
    source: Address,
    target: Address,
    ports: tuple[int, int],
    flags: int,
    numbers: tuple[int, int],
    payload: bytes = b"",
) -> bytes:
    """Returns a TCP segment."""
    header = struct.pack(">HHIIBBHHH", *ports, *numbers, 0x50, flags, 8192, 0, 0)
    return in_ip(source, target, 6, header + payload)


def question(user: Address, ident: int, *, forged: bool) -> list[Packet]:
    """Returns a DNS question and the resolver's answer, which is not forged."""
    labels, port = dns_labels(NAME), 2000 + ident
    out = dns_query(ident, labels, 1, edns=False)
    back = dns_response(ident, labels, 1, [SERVERS[4].packed])
    ask = struct.pack(">HHHH", port, 53, 8 + len(out), 0) + out
    answer = struct.pack(">HHHH", 53, port, 8 + len(back), 0) + back
    return [(forged, in_ip(user, RESOLVER, 17, ask)), (False, in_ip(RESOLVER, user, 17, answer))]


def connection(user: Address, number: int, *, forged: bool, shows: str = "SACH") -> list[Packet]:
    """Returns a connection up to its hello: the packets SYN (S), SYN-ACK (A), ACK (C) and hello (H)
    that `shows` names."""
    server, ports = SERVERS[user.version], (3000 + number, 443)
    isn, other = 1_000_000 + number, 2_000_000 + number
    ours = (isn + 1, other + 1)
    said = {
        "S": (forged, tcp(user, server, ports, SYN, (isn, 0))),
        "A": (False, tcp(server, user, ports[::-1], SYN | ACK, (other, isn + 1))),
        "C": (forged, tcp(user, server, ports, ACK, ours)),
        "H": (forged, tcp(user, server, ports, ACK | PSH, ours, HELLO)),
    }
    return [said[step] for step in shows]


def stranger(number: int) -> Address:
    """Returns an address that the attacker may forge."""
    return ip_address("10.1.0.0") + number + 1


def of_one_customer(number: int) -> Address:
    """Returns an address of a customer with a /56: each in a /64 of its own."""
    return ip_address("2001:db8:1:100::1") + ((number % 256) << 64) + (number // 256)


def of_one_link(number: int) -> Address:
    """Returns an address of a /64."""
    return ip_address("2001:db8:1:100::1") + number


WAYS = {
    "spoofed DNS query that a resolver answers": lambda i: question(stranger(i), i, forged=True),
    "spoofed hello": lambda i: connection(stranger(i), i, forged=True, shows="H"),
    "spoofed SYN, ACK, hello": lambda i: connection(stranger(i), i, forged=True, shows="SCH"),
    "whole handshakes with an own server": lambda i: connection(stranger(i), i, forged=True),
    "one customer with a /56": lambda i: connection(of_one_customer(i), i, forged=True),
    "one /64 with many addresses": lambda i: connection(of_one_link(i), i, forged=True),
}

SETTINGS = {
    "default": (),
    "established, --dns-votes no": ("--dns-votes", "no"),
    "established, --dns-votes own": ("--dns-votes", "own"),
    "established, --dns-votes all": ("--dns-votes", "all"),
    "any": ("--evidence", "any"),
    "--user-prefix 32,64": ("--user-prefix", "32,64"),
    "--for internal": ("--for", "internal"),
    "--for partner": ("--for", "partner"),
    "--for public": ("--for", "public"),
}


def available(options: tuple[str, ...]) -> bool:
    """Returns true if this build has the options, and values such as `own`."""
    said = known_options()
    if options[:1] == ("--dns-votes",):
        return "own" in said[said.index("--dns-votes ") :][:400] or options[1] == "no"
    return all(f"{option} " in said for option in options if option.startswith("--"))


def capture(way: str, forged: int) -> Iterator[Packet]:
    """Yields the packets of the forged users, then the packets of the real visitor."""
    for i in range(forged):
        yield from WAYS[way](i)
    visitor = ip_address("10.9.9.9")
    yield from question(visitor, 40_000, forged=False)
    yield from connection(visitor, 40_000, forged=False)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of an attempt: the records that name the host, and the packets of the attacker."""

    tls: bool
    dns: bool
    packets: int
    octets: int


def attempt(way: str, forged: int, options: tuple[str, ...], folder: Path) -> Outcome:
    """Runs the command on such a capture."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sent = list(capture(way, forged))
    with (folder / "in.pcap").open("wb") as out:
        out.write(PCAP_NS)
        for i, (_, data) in enumerate(sent):
            at = START_NS + i * STEP_NS
            out.write(struct.pack("<IIII", at // 10**9, at % 10**9, len(data), len(data)) + data)
    fixed = ["--z", str(Z), "--window", "1h", "--internal", NETWORKS, "--format", "jsonl"]
    run_command([str(folder / "in.pcap")], folder / "out", [*fixed, "--columns", "core", *options])
    lines = (folder / "out" / "flows.jsonl").read_text("utf-8").splitlines()
    named = [
        record["proto"] for record in map(json.loads, lines) if record["name"] == NAME.decode()
    ]
    mine = [data for forged_by_attacker, data in sent if forged_by_attacker]
    return Outcome(6 in named, 17 in named, len(mine), sum(map(len, mine)))


def forging(folder: Path, *, quick: bool) -> Iterator[dict[str, object]]:
    """Yields the cost of each way under each setting."""
    for setting, options in SETTINGS.items():
        for way in WAYS:
            row: dict[str, object] = {"way": way, "setting": setting}
            if not available(options):
                yield row | {"unavailable": f"no {' '.join(options)} in this build"}
                continue
            few = attempt(way, Z - 2, options, folder)
            enough = attempt(way, Z - 1, options, folder)
            row |= {
                "few": few.tls or few.dns,
                "tls": enough.tls,
                "dns": enough.dns,
                "packets": enough.packets,
                "bytes": enough.octets,
            }
            if not quick and not (enough.tls or enough.dns):
                many = attempt(way, MANY, options, folder)
                row["many"] = many.tls or many.dns
            yield row
