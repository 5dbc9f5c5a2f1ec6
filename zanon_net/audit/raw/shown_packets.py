# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packets of a capture of anonymized packets, read with tshark, and the names that they show."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from zanon_net.audit.raw import tshark
from zanon_net.audit.raw.exposures import Name
from zanon_net.audit.raw.hosts import NAME, normal
from zanon_net.audit.raw.lists import is_label
from zanon_net.audit.raw.payload_streams import RETRY
from zanon_net.errors import FormatError

ADDRESSES = (
    *("ip.src", "ip.dst", "ipv6.src", "ipv6.dst", "arp.src.proto_ipv4", "arp.dst.proto_ipv4"),
    *("dns.a", "dns.aaaa", "icmpv6.nd.ns.target_address", "icmpv6.nd.na.target_address"),
)
MACS = ("eth.src", "eth.dst")
OF_DNS = ("dns.qry.name", "dns.resp.name", "dns.cname")
NAMES = (
    *("tls.handshake.extensions_server_name", "dtls.handshake.extensions_server_name"),
    *("http.host", "http2.headers.authority", "x509sat.uTF8String", "x509sat.printableString"),
    *OF_DNS,
)
CHECKSUMS = ("ip.checksum.status", "tcp.checksum.status", "udp.checksum.status")
SECRETS = tuple(
    f"{protocol}.handshake.{name}"
    for protocol in ("tls", "dtls")
    for name in (
        *("random", "session_id", "extensions_key_share_key_exchange", "extensions.cookie"),
        "extensions.psk.identity.identity",
    )
)
"""Values of hellos that are zeros in each packet of a run."""
STREAMS = ("tcp.stream", "udp.stream")
FIELDS = (
    *("frame.number", "frame.time_epoch", *ADDRESSES, *MACS, *NAMES, *CHECKSUMS, *SECRETS),
    *STREAMS,
)
BAD = "0"  # of a checksum
OPTIONS = ("ip.check_checksum:TRUE", "tcp.check_checksum:TRUE", "udp.check_checksum:TRUE")
HEX = re.compile("(?:[0-9a-f]{2}){8,}")
PLACEHOLDER = re.compile(r"(?:x+\.)+invalid")
"""The form of names that take the place of names which are withheld."""


class Shown(NamedTuple):
    """A packet of the output. values: of the fields of tshark but the first two."""

    number: int
    t_ns: int
    values: Mapping[str, Sequence[str]]


def read_shown(path: Path) -> Iterator[Shown]:
    """Yields the packets of a capture. Raises FormatError if tshark cannot read it."""
    program = tshark.find()
    if program is None:
        raise FormatError(f"{path}: packets are read with tshark; install it")
    for cells in tshark.lines_of(program, path, FIELDS, (*tshark.OPTIONS, *OPTIONS), whole=True):
        yield shown(cells)


def shown(cells: Sequence[str]) -> Shown:
    """Returns what a line of tshark says."""
    values = {
        name: cell.split(tshark.SPLIT)
        for name, cell in zip(FIELDS[2:], cells[2:], strict=True)
        if cell
    }
    return Shown(int(cells[0]), tshark.nanoseconds(cells[1]), values)


def names_in(packet: Shown) -> Iterator[tuple[str, str]]:
    """Yields the names of hosts in a packet, with their columns."""
    for column in NAMES:
        for text in packet.values.get(column, ()):
            kind, name = normal(text)
            if kind == NAME and "." in name and not PLACEHOLDER.fullmatch(name):
                yield column, name


def labels_in(packet: Shown) -> Iterator[tuple[str, str]]:
    """Yields the labels of `--levels` in a packet, with their columns. A certificate may have a
    name that begins as the label of a domain does."""
    for column in NAMES:
        for text in packet.values.get(column, ()):
            if is_label(text) and not (column.startswith("x509sat") and text.startswith("*.")):
                yield column, text


def secrets_in(packet: Shown) -> Iterator[tuple[str, str]]:
    """Yields the values of hellos that are not zeros, with their columns."""
    for column in SECRETS:
        for text in packet.values.get(column, ()):
            digits = text.replace(":", "")
            if HEX.fullmatch(digits) and digits.strip("0") and digits != RETRY.hex():
                yield column, digits


def first_names(path: Path, dns: str) -> Iterator[tuple[Name, int]]:
    """Yields each name that the packets of a connection show, with the time of the first packet
    that shows the name. dns: namespace of the names in DNS."""
    seen: set[tuple[str, ...]] = set()
    for packet in read_shown(path):
        stream = [packet.values.get(name, [""])[0] for name in STREAMS]
        for column, name in names_in(packet):
            space = dns if column in OF_DNS else "name"
            key = (*stream, space, name)
            if key not in seen:
                seen.add(key)
                yield (space, name), packet.t_ns


__all__ = [
    *("ADDRESSES", "BAD", "CHECKSUMS", "MACS", "OF_DNS", "Shown"),
    *("first_names", "labels_in", "names_in", "read_shown", "secrets_in"),
]
