# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The job of `zanon-net run` written the obvious way in Python on dpkt, to compare with.

Usage: python bench/dpkt_peer.py TRACE --packets N --out FILE

It reads a capture, decodes Ethernet to TCP and UDP, keeps flows with packets and bytes of each
direction, takes names from TLS, HTTP and DNS, applies z-anonymity and writes a line a flow. It does
less than the real thing: no QUIC, no evidence, no late packets, a keyed hash for the client in
place of Crypto-PAn. Counts go to stdout as JSON.
"""

import argparse
import hashlib
import json
import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import dpkt  # type: ignore[import-untyped]

HEAD_BYTES = 8192
DNS_PORT = 53
HTTP_METHODS = (b"GET ", b"POST", b"HEAD", b"PUT ", b"CONN", b"OPTI", b"DELE", b"PATC")
BROKEN = (dpkt.Error, IndexError, ValueError, KeyError)

Key = tuple[bytes, int, bytes, int, int]


class ZAnonymity:
    """Algorithm 1 of the paper: an ordered map of names, each with an ordered map of users."""

    def __init__(self, z: int, window_s: float) -> None:
        self._z = z
        self._window_s = window_s
        self._names: OrderedDict[bytes, OrderedDict[bytes, float]] = OrderedDict()

    def observe(self, now_s: float, user: bytes, name: bytes) -> bool:
        """Counts one exposure and returns whether the name may be shown."""
        users = self._names.setdefault(name, OrderedDict())
        users[user] = now_s
        users.move_to_end(user)
        self._names.move_to_end(name)
        oldest = now_s - self._window_s
        while users[next(iter(users))] < oldest:
            users.popitem(last=False)
        while True:
            idle = next(iter(self._names))
            last = self._names[idle]
            if last[next(reversed(last))] >= oldest:
                break
            self._names.popitem(last=False)
        return len(users) >= self._z


@dataclass(slots=True)
class Flow:
    """Counters of one 5-tuple; index 0 is the client's direction."""

    first_s: float
    last_s: float = 0.0
    packets: list[int] = field(default_factory=lambda: [0, 0])
    octets: list[int] = field(default_factory=lambda: [0, 0])
    head: bytes = b""
    undecided: bool = True
    shown: bytes = b"-"


def user_of(address: bytes) -> bytes:
    """Returns the address, IPv6 cut to its /56."""
    return address[:7] if len(address) == 16 else address


def tls_name(head: bytes) -> bytes | None:
    """Returns the SNI of a ClientHello, or None if it is not complete or has no SNI."""
    record = dpkt.ssl.TLSRecord(head)
    hello = dpkt.ssl.TLSHandshake(record.data).data
    if isinstance(hello, dpkt.ssl.TLSClientHello):
        for kind, data in getattr(hello, "extensions", []):
            if kind == 0:
                return bytes(data[5:])
    return None


def stream_name(flow: Flow, payload: bytes) -> bytes | None:
    """Collects the client's first bytes and returns the name in them once it is there."""
    flow.head += payload
    name: bytes | None = None
    if flow.head[:1] == b"\x16":
        wanted = 5 + int.from_bytes(flow.head[3:5], "big")
        if len(flow.head) >= wanted:
            name, flow.undecided = tls_name(flow.head), False
    elif flow.head.startswith(HTTP_METHODS):
        if b"\r\n\r\n" in flow.head:
            host = dpkt.http.Request(flow.head).headers.get("host", "")
            name, flow.undecided = host.partition(":")[0].encode(), False
    else:
        flow.undecided = False
    if len(flow.head) > HEAD_BYTES:
        flow.undecided = False
    return name


def datagram_name(flow: Flow, ports: tuple[int, int], payload: bytes) -> bytes | None:
    """Returns the question of a DNS query."""
    if ports[1] != DNS_PORT:
        flow.undecided = False
        return None
    message = dpkt.dns.DNS(payload)
    flow.undecided = False
    return message.qd[0].name.encode() if message.qd and not message.qr else None


class Job:
    """All state of one run."""

    def __init__(self, z: int, window_s: float) -> None:
        self.flows: dict[Key, Flow] = {}
        self.table = ZAnonymity(z, window_s)
        self.named = self.released = 0
        self._key = secrets.token_bytes(32)

    def packet(self, now_s: float, frame: bytes) -> None:
        """Accounts for one frame."""
        ip = dpkt.ethernet.Ethernet(frame).data
        if not isinstance(ip, dpkt.ip.IP | dpkt.ip6.IP6):
            return
        transport = ip.data
        if not isinstance(transport, dpkt.tcp.TCP | dpkt.udp.UDP):
            return
        key = (ip.src, transport.sport, ip.dst, transport.dport, ip.p)
        side = 0
        flow = self.flows.get(key)
        if flow is None:
            flow = self.flows.get((key[2], key[3], key[0], key[1], key[4]))
            side = 1
        if flow is None:
            flow, side = self.flows.setdefault(key, Flow(now_s)), 0
        payload = transport.data if isinstance(transport.data, bytes) else bytes(transport.data)
        flow.last_s = now_s
        flow.packets[side] += 1
        flow.octets[side] += len(payload)
        if flow.undecided and payload and side == 0:
            self._look(flow, key, payload, now_s)

    def _look(self, flow: Flow, key: Key, payload: bytes, now_s: float) -> None:
        try:
            if key[4] == dpkt.ip.IP_PROTO_TCP:
                name = stream_name(flow, payload)
            else:
                name = datagram_name(flow, (key[1], key[3]), payload)
        except BROKEN:
            flow.undecided = False
            return
        if not name:
            return
        name = name.lower().removesuffix(b".")
        self.named += 1
        if self.table.observe(now_s, user_of(key[0]), name):
            self.released += 1
            flow.shown = name

    def write(self, out: Path) -> None:
        """Writes one line a flow."""
        with out.open("w", encoding="utf-8") as lines:
            for key, flow in self.flows.items():
                client = hashlib.blake2b(key[0], key=self._key, digest_size=8).hexdigest()
                numbers = (*flow.packets, *flow.octets)
                span = f"{flow.first_s:.6f} {flow.last_s:.6f}"
                counts = " ".join(map(str, numbers))
                shown = flow.shown.decode("ascii", "replace")
                lines.write(f"{client} {key[4]} {key[3]} {span} {counts} {shown}\n")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """Processes the capture and returns the counts."""
    job = Job(arguments.z, arguments.window)
    packets = 0
    with arguments.trace.open("rb") as capture:
        for now_s, frame in islice(dpkt.pcap.UniversalReader(capture), arguments.packets):
            packets += 1
            try:
                job.packet(float(now_s), frame)
            except BROKEN:
                continue
    job.write(arguments.out)
    counts = {"flows": len(job.flows), "named": job.named, "released": job.released}
    return {"packets": packets} | counts


def main() -> None:
    """Runs the job and prints its counts."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("trace", type=Path, metavar="TRACE")
    parser.add_argument("--packets", type=int, default=None)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--z", type=int, default=20)
    parser.add_argument("--window", type=float, default=3600.0, help="seconds")
    print(json.dumps(run(parser.parse_args())))


if __name__ == "__main__":
    main()
