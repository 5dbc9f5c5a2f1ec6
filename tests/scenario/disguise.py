# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Other traffic for which a run must write the same: all that it withheld is replaced.

A text is replaced by one of its class: a host's name, a home's, an address, or none of them, which
is on the never list if the text is (that list is never disclosed). It is as long, also in HPACK's
Huffman code, unless all packets with it are padded. No two texts have the same substitute.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from oracle.contract import Model, clients_of
from oracle.rules import EVERYWHERE, Rules
from support.packets import Frame, merged

from scenario.crowd import Scenario
from scenario.quic import AGENTS, quic_visit
from scenario.routes import routed
from scenario.visits import ASTRAY, Visit, dns_visit, stray_visit, tcp_visit

HOSTS = {"a.example": "t.example", "b.example": "g.example", "c.example": "e.example"}
HOSTS |= {"*.a.example": "*.t.example", "*.c.example": "*.e.example"}
HOSTS |= {"www.c.example": "www.e.example", "d_e.example": "f_e.example"}
HOSTS |= {"printer.local": "printed.local", "192.0.2.9": "192.0.2.8", "example": "another"}
HOSTS |= {"two words.example": "two sword.example", "an issuer of example": "an issuer of another"}
LONGER = {"t.example": "other.example", "g.example": "different.example"}
LONGER |= {"e.example": "strange.example", "www.e.example": "www.strange.example"}
OTHER_AGENTS = {one: one.replace("Chrome/11", "Chrome/90").replace("F", "G") for one in AGENTS}
# In another order.
SERVERS = {f"198.51.100.{n}": f"203.0.113.{150 - n}" for n in (7, 8, 9)}
SERVERS |= {f"203.0.113.{n}": f"198.51.100.{150 - n}" for n in (9, 10)}
SERVERS |= {f"2001:db8:ff::{n}": f"2001:db8:ff::{99 - n}" for n in (7, 8)}
# Special addresses, which are never disclosed.
SERVERS |= {"224.0.0.9": "224.0.1.2"}
CLIENTS = {"169.254.3.4": "169.254.30.40", "169.254.7.8": "169.254.70.80"}

FORGING = ("forged", "echo", *ASTRAY)  # visits in which a forger names b.example, undisguised
CLIENT_PORTS = range(20_000, 21_000)


def is_padded(visit: Visit) -> bool:
    """Whether padding keeps the lengths of all its packets with another host."""
    return visit.kind in ("tls", "quic") and visit.how != "through"


def hosts_of(visits: Sequence[Visit]) -> dict[str, str]:
    """The substitute of each host, in all of the visits."""
    fixed = [host for visit in visits if not is_padded(visit) for host in visit.hosts]
    shown = [visit.secondary[0].encode() for visit in visits if visit.kind == "tls"]
    bound = b" ".join([*fixed, *shown]).decode().lower()
    free = {one for one in ("a.example", "b.example", "c.example") if one not in bound}
    return {
        text: LONGER.get(other, other) if text.removeprefix("www.") in free else other
        for text, other in HOSTS.items()
    }


@dataclass(frozen=True, slots=True)
class Disclosed:
    """What a run may disclose of a capture, by the contract's model; visits by their numbers."""

    texts: frozenset[str]  # names, and clients' addresses, which show as pseudonyms
    coarse: frozenset[int]  # visits with coarse records only, or none
    mute: frozenset[int]  # visits none of whose names had a vote
    turned: frozenset[int]  # visits whose client's port is taken for the server's

    @staticmethod
    def of(scenario: Scenario) -> "Disclosed":
        """The disclosures of a run of the scenario."""
        model = Model(scenario.rules, scenario.frames)
        outcome = model.run()
        texts = {str(seen["name"]) for seen in outcome.observations}
        texts |= {str(one) for _flow, talk in model.flows for one in clients_of(talk)}
        for record in outcome.records:
            hunted = (text for name, resolver, _times in record.hunted for text in (name, resolver))
            texts |= {str(text) for text in (*record.line.values(), *record.servers, *hunted)}
        records = iter(outcome.records)
        loud: dict[str, set[int]] = {"coarse": set(), "mute": set()}
        turned: set[int] = set()
        knocks = {n for n, visit in enumerate(scenario.visits) if visit.how == "knock"}
        for _flow, talk in model.flows:
            own = {e.port - CLIENT_PORTS[0] for e in talk.ends if e.port in CLIENT_PORTS}
            numbers = own or knocks  # a knock has no port of its own
            if talk.ends[1].port in CLIENT_PORTS:
                turned |= numbers
            outside = not talk.shown_at_all
            waits = bool(talk.names) and all(name.state == "waiting" for name in talk.names)
            if not outside and not next(records).coarse:
                loud["coarse"] |= numbers
            if not waits and (not outside or scenario.rules.dn_hunter):
                loud["mute"] |= numbers
        visits = frozenset(range(len(scenario.visits)))
        return Disclosed(
            frozenset(texts), visits - loud["coarse"], visits - loud["mute"], frozenset(turned)
        )

    def without(self, texts: dict[str, str]) -> dict[str, str]:
        """The texts that are not disclosed."""
        said = {text for text in texts if {text, quote(text, "")} & self.texts}
        return {text: other for text, other in texts.items() if text not in said}


@dataclass(frozen=True, slots=True)
class Disguise:
    """The substitutes, in visits whose names count and in those that are mute."""

    hosts: dict[str, str]
    mute_hosts: dict[str, str]
    agents: dict[str, str]
    addresses: dict[str, str]
    disclosed: Disclosed
    rules: Rules

    @staticmethod
    def of(scenario: Scenario) -> "Disguise":
        """Substitutes for all that is not disclosed."""
        disclosed = Disclosed.of(scenario)
        addresses = disclosed.without(SERVERS) | CLIENTS
        around = str([visit.route for visit in scenario.visits])
        if scenario.rules.internal == EVERYWHERE:  # internal hosts show as pseudonyms
            addresses = {}
        addresses = {one: other for one, other in addresses.items() if f"'{one}'" not in around}
        every = hosts_of(scenario.visits)
        if any(visit.how in FORGING for visit in scenario.visits):
            del every["b.example"]
        agents = disclosed.without(OTHER_AGENTS)
        return Disguise(
            disclosed.without(every), every, agents, addresses, disclosed, scenario.rules
        )

    def _text(self, text: str, number: int) -> str:
        """The substitute of a text, spelled in the same way."""
        bare = text.partition(":")[0].removesuffix(".")
        hosts = self.hosts if number not in self.disclosed.mute else self.mute_hosts
        other = hosts.get(bare.lower(), bare)
        return (other.title() if bare != bare.lower() else other) + text[len(bare) :]

    def _visit(self, visit: Visit, number: int) -> Visit:
        secondary = visit.secondary
        if visit.kind == "tls":
            secondary = (self._text(secondary[0], number), secondary[1])
        elif visit.kind == "quic":
            agents = self.agents if number not in self.disclosed.mute else OTHER_AGENTS
            secondary = (
                agents.get(secondary[0], secondary[0]),
                agents.get(secondary[1], secondary[1]),
            )
        elif visit.kind == "dns":
            secondary = (self.addresses.get(secondary[0], secondary[0]), secondary[1])
        client, server = (self.addresses.get(one, one) for one in visit.ends)
        hosts = [self._text(host.decode(), number).encode() for host in visit.hosts]
        hidden = number in self.disclosed.coarse and visit.port == 8443
        port = 9443 if hidden else visit.port
        return replace(
            visit, ends=(client, server), hosts=tuple(hosts), secondary=secondary, port=port
        )

    def _worn(self, frame: Frame, number: int) -> Frame:
        """The packet from another port; in a visit with coarse records as another computer, further
        away, would have sent it."""
        data = bytearray(frame.data)
        four = data[14] >> 4 == 4
        at = 14 + (20 if four else 40)
        coarse = number in self.disclosed.coarse
        if coarse or not (self.rules.keep_client_port or number in self.disclosed.turned):
            for where in (at, at + 2):
                if int.from_bytes(data[where : where + 2]) in CLIENT_PORTS:
                    data[where] ^= 0x20
        if coarse:
            data[14 + (8 if four else 7)] ^= 0x35
        if coarse and data[14 + (9 if four else 6)] == 6:
            data[at + 14] ^= 0x15  # its window
        return replace(frame, data=bytes(data))

    def frames(self, visits: Sequence[Visit]) -> list[Frame]:
        """The capture, in order of time."""
        make = {"dns": dns_visit, "quic": quic_visit, "stray": stray_visit}
        talks = []
        for n, visit in enumerate(visits):
            other = self._visit(visit, n)
            frames = [self._worn(frame, n) for frame in make.get(visit.kind, tcp_visit)(other, n)]
            talks.append(routed(frames, visit.route, other.ends[0], n))
        return merged(talks)

    @property
    def never(self) -> tuple[str, ...]:
        """The never list."""
        return tuple(self.hosts[name] for name in self.rules.never)
