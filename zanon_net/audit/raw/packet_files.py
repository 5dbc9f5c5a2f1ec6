# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Checks captures of anonymized packets against the captures that they were made of.

tshark reads addresses, names and checksums of each packet. The bytes of the files are searched for
names that no packet may have.
"""

import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any

from zanon_net.audit.raw.check import RawResult, hidden_names, settings_of
from zanon_net.audit.raw.exposures import Exposures, Name
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.flows import DNS, RESOLVER, SERVER
from zanon_net.audit.raw.names import IDLE_NS, Settings
from zanon_net.audit.raw.networks import is_special
from zanon_net.audit.raw.packet_payload import Choice, payload_of
from zanon_net.audit.raw.reader import ENHANCED, INTERFACE, RESOLUTION, SECTION
from zanon_net.audit.raw.shown_packets import (
    ADDRESSES,
    BAD,
    CHECKSUMS,
    MACS,
    OF_DNS,
    Shown,
    labels_in,
    names_in,
    read_shown,
    secrets_in,
)
from zanon_net.audit.raw.traces import RARE, Secrets, unlikely

# A name in DNS has the length of a label before it.
DOTS = bytes(ord(".") if 0 < value < ord("-") else value for value in range(256))
DOTTED = re.compile(rb"[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)+")
BLOCK, OVERLAP = 1 << 26, 512
SECTION_BYTES, APPLICATION = b"\n\r\r\n", 4  # first bytes of pcapng, and option of a section
RARE_OWN = 1e-4  # a client that is its own pseudonym
ONLY_BARE = "Payload was checked in TCP packets without headers around them only."
UNITS_NS = {"ns": 1, "us": 10**3, "ms": 10**6}
MAC_FORMS = {
    "role": re.compile("02:00:00:00:00:0[12]"),
    "pseudonym": re.compile("02:0[12]:.{11}"),
    "zero": re.compile("00:00:00:00:00:00"),
}


def check_packets(
    path: Path, manifest: Mapping[str, Any], seen: Exposures, raw: Sequence[Path]
) -> tuple[RawResult, int]:
    """Checks a capture with the manifest of its run against what was read of the raw captures.

    raw: the captures, for bytes of payload.

    Returns the result, whose claims are the names and servers that packets show, and the number of
    packets.

    Raises FormatError without tshark, and if tshark cannot read the file.
    """
    settings = settings_of(manifest)
    result = RawResult.of(seen)
    packet_settings = manifest["configuration"]["packets"]
    choice = choice_of(packet_settings)
    ends = {end for flow in seen.flows for end, _port in flow.ends if not is_special(end)}
    real = {end for end in ends if seen.rules.networks.hold(end)}
    inside: set[bytes] = set()  # internal addresses of the output
    own: set[bytes] = set()  # internal addresses that the raw packet has, too
    packets = 0
    for packet in read_shown(path):
        outside = []
        for column, address in addresses_of(packet):
            if seen.rules.networks.hold(address):
                inside.add(address)
                if address in real and had(address, packet.t_ns, choice.unit_ns, seen):
                    own.add(address)
            elif address in ends:
                outside.append((column, address))
        names = list(names_in(packet))
        findings = [
            *names_of(packet, names, path.name, seen, settings),
            *labels_of(packet, path.name, settings.z),
            *servers_of(packet, path.name, seen, settings.z, outside),
            *checksums_of(packet, path.name),
            *macs_of(packet, path.name, packet_settings["mac"]),
            *secrets_of(packet, path.name),
        ]
        packets += 1
        result.claims += len(names) + len(outside)
        for finding in findings:
            (result.violations if finding.proven else result.unproven).append(finding)
    networks = manifest["pseudonyms"]["networks"]
    hidden = hidden_names(seen, settings.z) if settings.z > 1 else set()
    result.violations += [
        *clients_of(path.name, networks, real, inside, own),
        *hidden_in(path, Secrets(real - inside, hidden, set())),
        *blocks_of(path),
        *payload_of(path, raw, choice),
    ]
    if choice.wrapped:
        result.notes.append(ONLY_BARE)
    return result, packets


def had(address: bytes, t_ns: int, unit_ns: int, seen: Exposures) -> bool:
    """Returns whether a flow with a packet at a time has the address. unit_ns: of the times."""
    flows = seen.flows_at(t_ns, t_ns + unit_ns - 1)
    return any(address in (end, *flow.known_as) for flow in flows for end, _port in flow.ends)


def macs_of(packet: Shown, file: str, kind: str) -> Iterator[Finding]:
    """Yields the MAC addresses that no run writes. kind: the run's setting."""
    addresses = (text for column in ADDRESSES for text in packet.values.get(column, ()))
    tails = {ip_address(text).packed[-4:].hex(":") for text in addresses}
    for column in MACS:
        for text in packet.values.get(column, ()):
            is_tail = kind != "pseudonym" or text[6:] in tails
            if not (MAC_FORMS[kind].fullmatch(text) and is_tail):
                yield Finding("addresses", file, packet.number, column, 1, 0, text)


def choice_of(settings: Mapping[str, Any]) -> Choice:
    """Returns what the settings of packets say about payload."""
    return Choice(
        unit_ns=UNITS_NS[settings["timestamps"]],
        kept=settings["payload"] == "keep-encrypted",
        wrapped=settings["encapsulation"] == "keep",
    )


def secrets_of(packet: Shown, file: str) -> Iterator[Finding]:
    """Yields the values of hellos that each packet of a run has as zeros."""
    for column, digits in secrets_in(packet):
        yield Finding("hidden", file, packet.number, column, 1, 0, digits)


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
    file: str, networks: Iterable[str], real: set[bytes], inside: set[bytes], own: set[bytes]
) -> list[Finding]:
    """Returns a finding if more internal addresses of the output are real than chance explains.

    networks: the internal networks, within which pseudonyms are permuted. own: addresses that are
    their own pseudonyms.
    """
    pairs, same = 0.0, 0.0
    for text in networks:
        network = ip_network(text)
        counts = [sum(is_in(one, network) for one in addresses) for addresses in (real, inside)]
        pairs += counts[0] * counts[1] / network.num_addresses
        same += counts[0] / network.num_addresses
    for hits, expected, rare in ((real & inside, pairs, RARE), (own, same, RARE_OWN)):
        if hits and unlikely(len(hits), expected, rare):
            detail = str(ip_address(min(hits)))
            number = len(hits), round(expected)
            return [Finding("addresses", file, None, "internal", *number, detail)]
    return []


def is_in(address: bytes, network: IPv4Network | IPv6Network) -> bool:
    """Returns whether an address is in a network."""
    return len(address) == network.max_prefixlen // 8 and ip_address(address) in network


def hidden_in(path: Path, secrets: Secrets) -> Iterator[Finding]:
    """Yields each name and each address that stands in the bytes of a file and must not."""
    found: set[tuple[str, str]] = set()
    with path.open("rb") as file:
        rest = b""
        while block := file.read(BLOCK):
            data = rest + block
            rest = data[-OVERLAP:]
            for text in (data, data.translate(DOTS)):
                tokens = (match.group().decode().lower() for match in DOTTED.finditer(text))
                names = (name for name in map(secrets.hidden, tokens) if name is not None)
                found |= {("hidden", name) for name in names}
            found |= secrets.spelled(data)
    for kind, what in sorted(found):
        yield Finding(kind, path.name, None, "bytes", 1, 0, what)


def blocks_of(path: Path) -> Iterator[Finding]:
    """Yields a finding if a pcapng file has blocks or options that no run writes."""
    others = 0
    with path.open("rb") as file:
        start = file.read(12)
        if start[:4] != SECTION_BYTES:
            return
        order = "<" if start[8:] == b"\x4d\x3c\x2b\x1a" else ">"
        file.seek(0)
        while len(head := file.read(8)) == 8:
            kind, size = struct.unpack(f"{order}II", head)
            body = file.read(max(size - 8, 0))[:-4]
            others += not is_written(kind, body, order)
    if others:
        yield Finding("format", path.name, None, "blocks", others, 0)


def is_written(kind: int, body: bytes, order: str) -> bool:
    """Returns whether a run writes such a block: a section with its application, an interface with
    its unit of times, or a packet."""
    if kind == SECTION and len(body) >= 20:
        code, size = struct.unpack_from(f"{order}HH", body, 16)
        return bool(code == APPLICATION and len(body) == 24 + size + -size % 4)
    if kind == INTERFACE and len(body) == 20:
        return struct.unpack_from(f"{order}HH", body, 8) == (RESOLUTION, 1)
    captured = struct.unpack_from(f"{order}I", body, 12)[0] if len(body) >= 20 else 0
    return bool(kind == ENHANCED and len(body) == 20 + captured + -captured % 4)
