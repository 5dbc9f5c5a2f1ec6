# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Packets as tshark reads them, in one pass over each capture."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from zanon_net.audit.raw.attributes import FIELDS_OF, attributes_in
from zanon_net.audit.raw.certificates import common_name
from zanon_net.audit.raw.messages import asked_by
from zanon_net.audit.raw.packets import TCP, UDP, Frame, Ids, Packet, Query, Read, Said
from zanon_net.errors import FormatError

OLDEST = (4, 0)
SPLIT = "\x1f"  # between the values of a field
FIELDS = (
    "frame.time_epoch",
    "frame.protocols",
    "ip.src",
    "ip.dst",
    "ipv6.src",
    "ipv6.dst",
    "tcp.srcport",
    "tcp.dstport",
    "udp.srcport",
    "udp.dstport",
    "tcp.flags",
    "tcp.seq",
    "tcp.ack",
    "tcp.len",
    "udp.length",
    "tls.handshake.type",
    "tls.handshake.extensions_server_name",
    "tls.handshake.extension.type",
    "tls.handshake.certificate",
    "dtls.handshake.type",
    "dtls.handshake.extensions_server_name",
    "dtls.handshake.cookie",
    "http.request.method",
    "http.request.uri",
    "http.host",
    "http2.headers.authority",
    "http2.headers.path",
    "dns.flags.response",
    "dns.id",
    "dns.qry.name",
    "dns.qry.type",
    "quic.long.packet_type",
    "quic.long.packet_type_v2",
    "quic.dcid",
    "quic.scid",
    "gquic.tag.sni",
    "gquic.tag.stk",
    "tls.quic.parameter.google.user_agent",
)
OPTIONS = (
    "tcp.desegment_tcp_streams:TRUE",
    "tcp.reassemble_out_of_order:TRUE",
    "tcp.relative_sequence_numbers:FALSE",
    "tcp.analyze_sequence_numbers:TRUE",
    "tcp.try_heuristic_first:FALSE",
    "http.desegment_body:FALSE",
    "http.dechunk_body:FALSE",
    "http.decompress_body:FALSE",
    "ip.defragment:TRUE",
    "ipv6.defragment:TRUE",
)
ECH = "65037"
CLIENT_HELLO = "1"
INITIAL, INITIAL_2 = "0", "1"  # of the packets of QUIC with a long header: versions 1 and 2
UDP_HEADER = 8
# Protocols that carry no packet of TCP or UDP of a user.
SILENT = {"arp", "icmp", "icmpv6", "stp", "lldp", "igmp", "loop", "cdp", "eapol", "llc", "ospf"}
ERRORS = {"icmp", "icmpv6"}  # their payload quotes another packet
LATEST_NS = 2**63 - 1  # tshark has later times for a damaged one
ROOT = "<Root>"
QUOTING = "lisp"  # a control message that has the packet it is about
FRAMES = {"eth", "wlan"}
PLAIN = {"tcp", "udp", "data", "ip", "ipv6"}  # layers below, and payload that is not dissected
NAMING = {
    "tls",
    "http",
    "http2",
    "dns",
    "quic",
    "gquic",
    "dtls",
    "socks",
}  # protocols that may carry names


class Line(NamedTuple):
    """Line of tshark's output: the values of FIELDS, in their order."""

    time: str
    layers: str
    four_source: str
    four_target: str
    six_source: str
    six_target: str
    tcp_source: str
    tcp_target: str
    udp_source: str
    udp_target: str
    flags: str
    sequence: str
    acknowledged: str
    tcp_length: str
    udp_length: str
    tls_kinds: str
    tls_names: str
    tls_extensions: str
    certificates: str
    dtls_kinds: str
    dtls_names: str
    dtls_cookies: str
    http_methods: str
    http_targets: str
    http_hosts: str
    http2_authorities: str
    http2_targets: str
    dns_responses: str
    dns_numbers: str
    dns_names: str
    dns_kinds: str
    quic_kinds: str
    quic_kinds_2: str
    quic_targets: str
    quic_sources: str
    gquic_names: str
    gquic_tokens: str
    agents: str


def find() -> str | None:
    """Returns the path of a tshark that is new enough, or None."""
    program = shutil.which("tshark")
    return program if program is not None and is_new_enough(program) else None


@cache
def is_new_enough(program: str) -> bool:
    """Returns whether a tshark has at least the version OLDEST. The answer is kept, because a
    start of tshark takes a third of a second."""
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"TShark \(Wireshark\) (\d+)\.(\d+)", done.stdout)
    return found is not None and tuple(map(int, found.groups())) >= OLDEST


def read(program: str, path: Path, attributes: Sequence[str] = ()) -> Iterator[Read]:
    """Yields the packets of a capture. Raises FormatError if tshark cannot read it.

    attributes: words of the attributes besides names that are read, too.
    """
    packet: Read = Frame(0, dark=False)
    wanted = dict.fromkeys(field for word in attributes for field in FIELDS_OF.get(word, ()))
    more = tuple(field for field in wanted if field not in FIELDS)
    for cells in lines_of(program, path, (*FIELDS, *more), OPTIONS):
        if not cells:
            yield Frame(packet.t_ns, dark=False, cut=True)
            return
        packet = packet_of(Line._make(cells[: len(FIELDS)]))
        if attributes and isinstance(packet, Packet):
            texts = dict(zip((*FIELDS, *more), map(listed, cells), strict=True))
            packet = packet._replace(attributes=tuple(attributes_in(texts, attributes)))
        yield packet


def lines_of(
    program: str,
    path: Path,
    fields: Sequence[str],
    options: Sequence[str],
    *,
    whole: bool = False,
) -> Iterator[list[str]]:
    """Yields the values of fields of each frame of a capture, and an empty list for a cut frame.

    fields: of tshark; `frame.time_epoch` is one of them. options: preferences of tshark.
    whole: true if a capture whose end tshark cannot read is an error.

    Raises FormatError if tshark cannot read the capture.
    """
    command = [program, "-n", "-r", str(path), "-T", "fields", "-E", "occurrence=a"]
    command += ["-E", f"aggregator={SPLIT}"]
    command += [word for option in options for word in ("-o", option)]
    command += [word for field in fields for word in ("-e", field)]
    time, some = fields.index("frame.time_epoch"), False
    with started(command) as child:
        assert child.stdout is not None
        for line in child.stdout:
            some = True
            cells = line[:-1].decode("utf-8", "replace").split("\t")
            if not cells[time]:  # tshark takes some texts for captures
                raise FormatError(f"{path}: a frame has no time, so it is no capture")
            yield cells
    if child.returncode != 0:
        if whole or not some:
            raise FormatError(f"{path}: tshark cannot read it as a capture")
        yield []


@contextmanager
def started(command: Sequence[str]) -> Iterator["subprocess.Popen[bytes]"]:
    """Starts tshark and waits for its end; an exception in the block kills it.

    The preferences of a user have no effect, nor does a library that is loaded before others.
    """
    with tempfile.TemporaryDirectory() as home:
        environment = {name: text for name, text in os.environ.items() if name != "LD_PRELOAD"}
        environment |= {"HOME": home, "XDG_CONFIG_HOME": home, "LC_ALL": "C.UTF-8"}
        with subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as child:
            try:
                yield child
            except BaseException:
                child.kill()
                raise


def packet_of(line: Line) -> Read:
    """Returns what a line of tshark says."""
    t_ns, layers = nanoseconds(line.time), line.layers.split(":")
    if t_ns > LATEST_NS:
        return Frame(LATEST_NS, dark=True)
    if QUOTING in layers:
        layers = layers[: layers.index(QUOTING)]
    transport = next((name for name in reversed(layers) if name in ("tcp", "udp")), "")
    sources = [*listed(line.four_source), *listed(line.six_source)]
    if transport not in ("tcp", "udp") or ERRORS & set(layers) or not sources:
        return Frame(t_ns, dark=not SILENT & set(layers))
    pairs = addresses(layers, line)
    if not pairs:
        return Frame(t_ns, dark=True)
    tcp = transport == "tcp"
    at = layers.count(transport) - 1
    owns = listed(line.tcp_source if tcp else line.udp_source)
    others = listed(line.tcp_target if tcp else line.udp_target)
    if len(owns) <= at or len(others) <= at or (tcp and not line.tcp_length):
        return Frame(t_ns, dark=True)
    behind = layers[len(layers) - layers[::-1].index(transport) :]
    if FRAMES & set(behind):  # a tunnel with a frame that has no packet of IP
        return Frame(t_ns, dark=False)
    source, target = pairs[-1]
    said = said_in(line) if tcp or "tls" not in behind or "quic" in behind else ()
    return Packet(
        t_ns,
        TCP if tcp else UDP,
        source,
        int(owns[at]),
        target,
        int(others[at]),
        int(last(line.flags, "0"), 16) if tcp else 0,
        int(last(line.sequence, "0")) if tcp else 0,
        int(last(line.acknowledged, "0")) if tcp else 0,
        int(last(line.tcp_length, "0"))
        if tcp
        else max(int(last(line.udp_length, "8")) - UDP_HEADER, 0),
        tuple(pairs[:-1]),
        said,
        queries_in(line) if line.dns_responses else (),
        ids_in(line) if line.quic_targets or line.quic_kinds or line.quic_kinds_2 else (),
        bool(set(behind) - PLAIN) and not NAMING & set(behind),
        bool((line.dtls_cookies + line.gquic_tokens).replace(SPLIT, "")),
    )


def listed(cell: str) -> list[str]:
    """Returns the values of a field."""
    return cell.split(SPLIT) if cell else []


def last(cell: str, default: str) -> str:
    """Returns the last value of a field."""
    return cell.rpartition(SPLIT)[2] or default


def nanoseconds(text: str) -> int:
    """Returns a time in ns."""
    seconds, _point, fraction = text.partition(".")
    return int(seconds) * 10**9 + int(fraction[:9].ljust(9, "0") or 0)


@lru_cache(maxsize=1 << 18)
def packed(text: str) -> bytes:
    """Returns the bytes of an address."""
    return ip_address(text).packed


def addresses(layers: list[str], line: Line) -> list[tuple[bytes, bytes]]:
    """Returns source and destination of each IP header, the outermost first."""
    four = list(zip(listed(line.four_source), listed(line.four_target), strict=False))
    six = list(zip(listed(line.six_source), listed(line.six_target), strict=False))
    pairs = []
    for name in layers:
        if name == "ip" and four:
            pairs.append(four.pop(0))
        elif name == "ipv6" and six:
            pairs.append(six.pop(0))
    return [(packed(source), packed(target)) for source, target in pairs]


def said_in(line: Line) -> tuple[Said, ...]:
    """Returns the names in a packet's messages."""
    said: list[Said] = []
    source = "quic" if ":quic" in line.layers else "tls"
    if line.tls_kinds:
        said += hellos(source, line.tls_kinds, line.tls_names, line.tls_extensions)
        if line.certificates:
            name = common_name(bytes.fromhex(listed(line.certificates)[0].replace(":", "")))
            said.append(Said("certificate", name))
    if line.dtls_kinds:
        said += hellos("tls", line.dtls_kinds, line.dtls_names, "")
    if line.http_methods:
        said += requests(line)
    said += [Said("http", name) for name in listed(line.http2_authorities)]
    said += [Said("dns", name) for name in asked_in(line)]
    said += [Said("quic", name) for name in listed(line.gquic_names)]
    said += [Said("agent", quote(text, safe="")) for text in listed(line.agents)]
    return tuple(said)


def asked_in(line: Line) -> Iterator[str]:
    """Yields the names in questions of DNS over HTTPS: in targets, and in bodies (RFC 8484)."""
    for target in (*listed(line.http_targets), *listed(line.http2_targets)):
        yield from asked_by(target)
    if line.dns_responses and {"http", "http2"} & set(line.layers.split(":")):
        yield from (query.name for query in queries_in(line) if not query.response)


def hellos(source: str, kinds: str, names: str, extensions: str) -> list[Said]:
    """Returns the hellos of clients."""
    count = listed(kinds).count(CLIENT_HELLO)
    if not count:
        return []
    hidden = ECH in listed(extensions)
    found = [Said(source, name, hidden) for name in listed(names)]
    return found or [Said(source, None, hidden)] * count


def requests(line: Line) -> list[Said]:
    """Returns the hosts of requests of HTTP/1: the target's authority, else the field Host."""
    methods, targets, hosts = (
        listed(line.http_methods),
        listed(line.http_targets),
        listed(line.http_hosts),
    )
    if len(methods) != 1 or len(targets) != 1:
        return [Said("http", host) for host in hosts] or [Said("http", None)]
    if methods[0] == "CONNECT":
        return [Said("http", targets[0])]
    scheme, found, rest = targets[0].partition("://")
    if found and scheme.lower() in ("http", "https"):
        return [Said("http", re.split("[/?#]", rest, maxsplit=1)[0].rpartition("@")[2])]
    return [Said("http", hosts[0] if hosts else None)]


def queries_in(line: Line) -> tuple[Query, ...]:
    """Returns the messages of DNS."""
    rows = zip(listed(line.dns_responses), listed(line.dns_numbers), strict=False)
    names, kinds = listed(line.dns_names), listed(line.dns_kinds)
    return tuple(
        Query(response in ("1", "True"), int(number, 16), int(kind), "" if name == ROOT else name)
        for (response, number), name, kind in zip(rows, names, kinds, strict=False)
    )


def ids_in(line: Line) -> tuple[Ids, ...]:
    """Returns the connection IDs of QUIC: of packets with a long header, then of one with a short
    header."""
    targets, sources = ids(line.quic_targets), ids(line.quic_sources)
    kinds = [kind == INITIAL for kind in listed(line.quic_kinds)]
    kinds += [kind == INITIAL_2 for kind in listed(line.quic_kinds_2)]
    found = []
    for at in range(max(len(targets), len(kinds))):
        target = targets[at] if at < len(targets) else b""  # tshark leaves out what is empty
        source = sources[at] if at < len(sources) else b""
        long = at < len(kinds)
        found.append(Ids(target, source if long else None, long and kinds[at]))
    return tuple(found)


def ids(cell: str) -> list[bytes]:
    """Returns the connection IDs of a field."""
    return [bytes.fromhex(text.replace(":", "")) for text in listed(cell)]
