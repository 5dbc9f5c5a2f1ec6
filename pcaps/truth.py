# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Ground truth of an invented capture: one JSON object per observation.

It does not use the program's parser, because tests compare the two.
"""

import ipaddress
import json
import re
from collections.abc import Iterable

from flows import NS_PER_US, Flow

LDH_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*")
HOST_PORT = re.compile(r"([^:]*):[0-9]*")


def is_ip_literal(text: str) -> bool:
    """Return true if a host is an address and not a name. RFC 3986 writes IPv6 in brackets."""
    try:
        ipaddress.ip_address(text.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def normalise(raw: bytes) -> tuple[str, bool]:
    """Return (normalised name, True), or (raw text, False) if the text is not a hostname.

    A normalised name is in lower case, without a port and one trailing dot. It has LDH labels plus
    "_" of at most 63 bytes, and 253 bytes in total. Addresses are not names.
    """
    text = raw.decode("latin-1")
    bare = re.sub(r"(?<=\]):[0-9]*\Z", "", text)
    with_port = HOST_PORT.fullmatch(bare)
    if with_port:
        bare = with_port[1]
    name = bare.lower().removesuffix(".")
    if is_ip_literal(bare) or not LDH_NAME.fullmatch(name):
        return text, False
    return name, True


def user_of(client: str) -> str:
    """Return the user of a client address: the IPv4 address, or the /56 of an IPv6 address."""
    address = ipaddress.ip_address(client)
    width = 32 if address.version == 4 else 56
    return str(ipaddress.ip_network((address, width), strict=False))


def flow_lines(number: int, flow: Flow) -> Iterable[tuple[int, str]]:
    """Yield (time in ns, JSON line) once for each distinct name that the flow exposes."""
    exposed: set[str] = set()
    for sighting in flow.sightings:
        name, valid = normalise(sighting.raw)
        if name in exposed:
            continue
        exposed.add(name)
        shown = [sighting.named, *([sighting.evidence] if sighting.evidence else [])]
        t_ns = max(packet.t_us for packet in shown) * NS_PER_US
        observation = {
            "t_ns": t_ns,
            "client": flow.path.client,
            "server": flow.path.server,
            "client_port": flow.client_port,
            "server_port": flow.server_port,
            "proto": flow.proto,
            "name": name,
            "source": sighting.source,
            "established": sighting.evidence is not None,
            "valid": valid,
            "flow": number,
        }
        yield t_ns, json.dumps(observation)


def truth_lines(flows: Iterable[Flow]) -> list[str]:
    """Return the observation lines of all flows, sorted by time. Flows are numbered in order."""
    timed = [line for number, flow in enumerate(flows) for line in flow_lines(number, flow)]
    return [line for _, line in sorted(timed, key=lambda item: item[0])]
