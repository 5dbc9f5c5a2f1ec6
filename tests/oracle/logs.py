# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of Zeek's TSV logs that z users make safe, by brute force, with a parser of its own."""

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PRIVATE = [
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
]
LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
NAME = {"dns": "query", "ssl": "server_name", "http": "host", "quic": "server_name"}
STATES = ("SF", "S1", "S2", "S3", "RSTO", "RSTR")


@dataclass(frozen=True)
class Exposure:
    """A row that may vote: its time in seconds, its client, and its name."""

    t: float
    user: str
    name: str


def rows_of(text: str) -> Iterable[dict[str, str]]:
    """The rows of a log, by the names of fields."""
    fields: Sequence[str] = ()
    separator = "\t"
    for line in text.split("\n"):
        if line.startswith("#separator "):
            separator = bytes.fromhex(line.split("\\x")[1]).decode()
        elif line.startswith("#fields"):
            fields = line.split(separator)[1:]
        elif line and not line.startswith("#"):
            values = line.split(separator)
            if len(values) == len(fields):
                yield dict(zip(fields, values, strict=True))


def is_internal(address: str) -> bool:
    ip = ipaddress.ip_address(address)
    return any(ip in network for network in PRIVATE if network.version == ip.version)


def hostname(text: str) -> str | None:
    """The name in its one form; None if it is none that may be released."""
    name = re.sub(r":\d*$", "", text) if text.count(":") == 1 else text
    name = name.lower().removesuffix(".")
    labels = name.split(".")
    if len(name) > 253 or not all(LABEL.fullmatch(label) for label in labels):
        return None
    if all(re.fullmatch(r"\d+|0x[0-9a-f]*", label) for label in labels):
        return None
    homes = ("in-addr.arpa", "ip6.arpa", "local", "home.arpa")
    return None if any(name == home or name.endswith("." + home) for home in homes) else name


def answered(path: str, row: dict[str, str]) -> bool:
    if path == "dns":
        return row.get("rcode", "-") != "-"
    if path == "http":
        return row.get("status_code", "-") != "-"
    if path == "ssl":
        return row.get("established") == "T"
    return all(letter in row.get("history", "") for letter in "iH")


def exposure(path: str, row: dict[str, str]) -> Exposure | None:
    """What the row votes for; None if it votes for nothing."""
    try:
        t = float(row["ts"])
        client = ipaddress.ip_address(row["id.orig_h"])
    except ValueError:
        return None
    raw = row.get(NAME[path], "-")
    name = None if raw in ("-", "(empty)") else hostname(raw)
    server = row.get("id.resp_h", "-")
    inbound = not is_internal(str(client)) and server != "-" and is_internal(server)
    if name is None or inbound or not answered(path, row):
        return None
    user = str(client)
    if client.version == 6:
        user = str(ipaddress.ip_network((client, 56), strict=False))
    if client.is_loopback or client.is_unspecified or client.is_link_local or client.is_multicast:
        user = "special"
    return Exposure(t, user, name)


def released(path: str, text: str, z: int, window_s: float) -> list[tuple[str, str]]:
    """Returns (time, name) of the rows that leave; rows come in the order of their times."""
    seen: list[Exposure] = []
    found = []
    for row in rows_of(text):
        own = exposure(path, row)
        if own is None:
            continue
        seen.append(own)
        users = {
            other.user
            for other in seen
            if other.name == own.name and own.t - window_s <= other.t <= own.t
        }
        if len(users) >= z:
            found.append((row["ts"], own.name))
    return found
