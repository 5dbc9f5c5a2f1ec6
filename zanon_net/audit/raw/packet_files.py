# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Checks captures of anonymized packets against the captures that they were made of.

tshark reads addresses, names and checksums of each packet. The bytes of the files are searched for
names that no packet may have.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

from zanon_net.audit.raw.check import RawResult, settings_of
from zanon_net.audit.raw.exposures import Exposures, Name
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.flows import DNS, RESOLVER, SERVER
from zanon_net.audit.raw.names import IDLE_NS, Settings
from zanon_net.audit.raw.networks import is_special
from zanon_net.audit.raw.shown_packets import (
    ADDRESSES,
    BAD,
    CHECKSUMS,
    OF_DNS,
    Shown,
    labels_in,
    names_in,
    read_shown,
)
from zanon_net.audit.raw.traces import Secrets, unlikely

# A name in DNS has the length of a label before it.
DOTS = bytes(ord(".") if 0 < value < ord("-") else value for value in range(256))
DOTTED = re.compile(rb"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+")
BLOCK, OVERLAP = 1 << 26, 512


def check_packets(
    path: Path, manifest: Mapping[str, Any], seen: Exposures
) -> tuple[RawResult, int]:
    """Checks a capture with the manifest of its run against what was read of the raw captures.

    Returns the result, whose claims are the names and servers that packets show, and the number of
    packets.

    Raises FormatError without tshark, and if tshark cannot read the file.
    """
    settings = settings_of(manifest)
    result = RawResult.of(seen)
    ends = {end for flow in seen.flows for end, _port in flow.ends if not is_special(end)}
    real = {end for end in ends if seen.rules.networks.hold(end)}
    inside: set[bytes] = set()  # internal addresses of the output
    packets = 0
    for packet in read_shown(path):
        outside = []
        for column, address in addresses_of(packet):
            if seen.rules.networks.hold(address):
                inside.add(address)
            elif address in ends:
                outside.append((column, address))
        names = list(names_in(packet))
        findings = [
            *names_of(packet, names, path.name, seen, settings),
            *labels_of(packet, path.name, settings.z),
            *servers_of(packet, path.name, seen, settings.z, outside),
            *checksums_of(packet, path.name),
        ]
        packets += 1
        result.claims += len(names) + len(outside)
        for finding in findings:
            (result.violations if finding.proven else result.unproven).append(finding)
    result.violations += clients_of(path.name, manifest["pseudonyms"]["networks"], real, inside)
    if settings.z > 1:
        result.violations += hidden_in(path, hidden_names(seen, settings.z))
    return result, packets


def checksums_of(packet: Shown, file: str) -> Iterator[Finding]:
    """Yields the checksums that do not fit their packet."""
    for name in CHECKSUMS:
        if BAD in packet.values.get(name, ()):
            yield Finding("checksums", file, packet.number, name.removesuffix(".status"), 0, 1)


def names_of(
    packet: Shown,
    names: Iterable[tuple[str, str]],
    file: str,
    seen: Exposures,
    settings: Settings,
) -> Iterator[Finding]:
    """Yields the names that fewer than z users exposed."""
    for column, name in names:
        spaces = (DNS, "name") if column in OF_DNS else ("name", "certificate")
        users, proven = 0, None
        for space in spaces:
            users, proven = judged((space, name), packet.t_ns, users, seen, settings)
            if proven is None:
                break
        if proven is not None:
            yield Finding("names", file, packet.number, column, users, settings.z, name, proven)


def labels_of(packet: Shown, file: str, z: int) -> Iterator[Finding]:
    """Yields the labels of `--levels` in a packet. Only logs may show labels."""
    for column, text in labels_in(packet):
        yield Finding("names", file, packet.number, column, 0, z, text)


def judged(
    name: Name, t_ns: int, users: int, seen: Exposures, settings: Settings
) -> tuple[int, bool | None]:
    """Returns the most users that shared a name when the packet came, and whether it is proven that
    they are too few; None: they are enough."""
    if settings.z == 1:
        return users, None
    first, last = t_ns - settings.window_ns, t_ns + IDLE_NS
    for one in seen.between(name, first, last):
        users = max(users, one.users)
        if one.users >= settings.z_at(one.t_ns):
            return users, None
    doubtful = seen.doubtful(name, first - settings.window_ns, last)
    return users, users + doubtful < settings.z


def addresses_of(packet: Shown) -> Iterator[tuple[str, bytes]]:
    """Yields the addresses of hosts in a packet, with their columns."""
    for column in ADDRESSES:
        for text in packet.values.get(column, ()):
            try:
                address = ip_address(text).packed
            except ValueError:
                continue
            if not is_special(address):
                yield column, address


def servers_of(
    packet: Shown, file: str, seen: Exposures, z: int, outside: Iterable[tuple[str, bytes]]
) -> Iterator[Finding]:
    """Yields the addresses of servers that fewer than z users visited."""
    for column, address in outside:
        peak = max(seen.peak((space, address)) for space in (SERVER, RESOLVER))
        if z > 1 and peak < z:
            detail = str(ip_address(address))
            yield Finding("addresses", file, packet.number, column, peak, z, detail)


def clients_of(
    file: str, networks: Iterable[str], real: set[bytes], inside: set[bytes]
) -> list[Finding]:
    """Returns a finding if more internal addresses of the output are real than chance explains.

    networks: the internal networks, within which pseudonyms are permuted.
    """
    hits, expected = real & inside, 0.0
    for text in networks:
        network = ip_network(text)
        size = network.max_prefixlen // 8
        counts = [
            sum(len(one) == size and ip_address(one) in network for one in addresses)
            for addresses in (real, inside)
        ]
        expected += counts[0] * counts[1] / network.num_addresses
    if not hits or not unlikely(len(hits), expected):
        return []
    detail = str(ip_address(min(hits)))
    return [Finding("addresses", file, None, "internal", len(hits), round(expected), detail)]


def hidden_names(seen: Exposures, z: int) -> set[str]:
    """Returns the names that never had z users."""
    texts = {name.text for flow in seen.flows for name in flow.names if "." in name.text}
    spaces = ("name", DNS, "certificate")
    return {text for text in texts if max(seen.peak((space, text)) for space in spaces) < z}


def hidden_in(path: Path, names: set[str]) -> Iterator[Finding]:
    """Yields each name that stands in the bytes of a file and must not."""
    secrets = Secrets(set(), names, set())
    found: set[str] = set()
    with path.open("rb") as file:
        rest = b""
        while block := file.read(BLOCK):
            data = rest + block
            rest = data[-OVERLAP:]
            for text in (data, data.translate(DOTS)):
                tokens = (match.group().decode().lower() for match in DOTTED.finditer(text))
                found |= {name for name in map(secrets.hidden, tokens) if name is not None}
    for what in sorted(found):
        yield Finding("hidden", path.name, None, "bytes", 1, 0, what)
