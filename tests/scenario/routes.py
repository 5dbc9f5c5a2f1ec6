# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Routes of a conversation's packets: tags, tunnels, extension headers, fragments."""

import ipaddress
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hypothesis import strategies as st
from support import wire
from support.fragments import pieces
from support.packets import Frame, to_ip
from support.tunnel import WRAPS

TAGS = ((), (), (), (0x8100,), (0x88A8, 0x8100))
ICMP, ICMP6 = 1, 58


@dataclass(frozen=True, slots=True)
class Hop:
    """A tunnel; `near` is its end on the client's side."""

    wrap: str
    near: str
    far: str


@dataclass(frozen=True, slots=True)
class Route:
    """The layers around the packets, the innermost first, and the tags of their frames; one packet,
    by number, goes another way."""

    around: tuple[Hop | str, ...] = ()
    tags: tuple[int, ...] = ()
    detour: tuple[int, tuple[Hop | str, ...]] | None = None


NOTHING = Route()


def source(packet: bytes) -> str:
    """A packet's source address, as text."""
    raw = packet[12:16] if packet[0] >> 4 == 4 else packet[8:24]
    return str(ipaddress.ip_address(raw))


def extended(packet: bytes) -> bytes:
    """The packet with an authentication header, and in IPv6 with other extension headers."""
    if packet[0] >> 4 == 4:
        rest = wire.ah(packet[9]) + packet[20:]
        total = (20 + len(rest)).to_bytes(2)
        return packet[:2] + total + packet[4:9] + bytes([51]) + packet[10:20] + rest
    rest = wire.ipv6_option_header(43) + wire.ipv6_option_header(51, 2) + wire.ah(60)
    rest += wire.ipv6_option_header(packet[6]) + packet[40:]
    return packet[:4] + len(rest).to_bytes(2) + b"\0" + packet[7:40] + rest


def refused(packet: bytes) -> bytes:
    """The ICMP error about a packet, sent by its destination."""
    version = packet[0] >> 4
    raw = packet[16:20] if version == 4 else packet[24:40]
    quoted = (b"\3\1" if version == 4 else b"\1\4") + bytes(6) + packet
    protocol = ICMP if version == 4 else ICMP6
    return to_ip(quoted, protocol, (str(ipaddress.ip_address(raw)), source(packet)))[0]


def cut(packet: bytes, number: int, how: str) -> list[bytes]:
    """Three fragments of a packet that is long enough: turned round, or one of them lost."""
    size = len(packet) - (20 if packet[0] >> 4 == 4 else 40)
    if size <= 64:
        return [packet]
    parts = pieces(packet, (24, size // 16 * 8), number)
    return parts[::-1] if how == "turned fragments" else parts[: 2 if how == "lost fragment" else 3]


def passed(packet: bytes, around: Sequence[Hop | str], inside: str, number: int) -> Iterator[bytes]:
    """The packets into which the route turns one from or to the client, whose address is
    `inside`."""
    if not around:
        yield packet
        return
    step, *rest = around
    sent = [packet]
    if isinstance(step, Hop):
        ends = (step.near, step.far) if source(packet) == inside else (step.far, step.near)
        sent, inside = [WRAPS[step.wrap](packet, ends)], step.near
    elif step == "extensions":
        sent = [extended(packet)]
    elif step == "error":
        sent = [packet, refused(packet)]
    else:
        sent = cut(packet, number, step)
    for one in sent:
        yield from passed(one, rest, inside, number)


def routed(frames: Sequence[Frame], route: Route, client: str, number: int) -> list[Frame]:
    """The frames of a conversation on their route; its number is below 1000."""
    out = []
    for nth, frame in enumerate(frames):
        around = route.around
        if route.detour is not None and nth == route.detour[0] % len(frames):
            around = route.detour[1]
        sent = passed(frame.data[14:], around, client, number * 64 + nth % 64)
        for late_ns, packet in enumerate(sent):
            kind = wire.ETHERTYPE_IPV4 if packet[0] >> 4 == 4 else wire.ETHERTYPE_IPV6
            data = wire.ethernet(packet, kind, route.tags)
            out.append(Frame(frame.t_ns + late_ns, data, len(data)))
    return out


def straight(route: Route) -> Route:
    """Without a detour."""
    return replace(route, detour=None)


# ---- strategies ---------------------------------------------------------------------------------

GATEWAYS = ("192.0.2.99", "10.7.0.3", "169.254.7.8", "198.51.100.7", "10.7.0.1", "10.7.0.2")
GATEWAYS6 = ("2001:db8:99::1", "fd00:7::1:2", "fd00:7::1:1", "fe80::9")
CUTS = ("fragments", "turned fragments", "lost fragment")


def way(dice: random.Random) -> tuple[Hop | str, ...]:
    """At most two tunnels, and one of all else; a cut comes last or right before a tunnel."""
    found: list[Hop | str] = []
    for _ in range(dice.choice((0, 1, 1, 2))):
        near, far = dice.sample(dice.choice((GATEWAYS, GATEWAYS, GATEWAYS6)), 2)
        found.append(Hop(dice.choice([*WRAPS]), near, far))
    for more in ("extensions", "error", dice.choice(CUTS)):
        behind = [*found, None]
        places = [
            n for n, step in enumerate(behind) if more not in CUTS or not isinstance(step, str)
        ]
        if dice.random() < 0.2:
            found.insert(dice.choice(places), more)
    return tuple(found)


def route(dice: random.Random) -> Route:
    """A random route; some have a detour."""
    if dice.random() < 0.3:
        return Route(way(dice), (), (dice.randrange(9), way(dice)))
    return Route(way(dice), dice.choice(TAGS))


# A fixed list of routes, the simple ones first, so that one is drawn in a single choice.
ROUTES = sorted((route(random.Random(n)) for n in range(600)), key=lambda one: len(str(one)))
routes = st.one_of(st.just(NOTHING), st.sampled_from(ROUTES))
# For visits with a second hello or request, which would be read if the first one were lost.
whole_routes = routes.map(straight).filter(lambda one: "lost fragment" not in one.around)
