# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""DN-Hunter in the contract's model: the last name for which a response gave a client an address,
when a flow to that address begins."""

from dataclasses import dataclass, field

from support.packets import SECOND

from oracle.layers import Address, Packet
from oracle.names import normal, question, under
from oracle.talks import DNS_PORT, Talk

ANSWERED_NS = 60 * SECOND  # a later response is no answer


@dataclass(frozen=True, slots=True)
class Resolution:
    """A name, the resolver that was asked for it, and the times of question and answer."""

    name: str
    resolver: Talk
    asked_ns: int
    answered_ns: int


@dataclass(slots=True)
class Resolved:
    """The answers that clients got."""

    never: tuple[str, ...]
    asked: dict[object, int] = field(default_factory=dict)
    last: dict[tuple[Address, Address], Resolution] = field(default_factory=dict)

    def of(self, talk: Talk) -> Resolution | None:
        """The answer that a flow that begins now belongs to."""
        return self.last.get((talk.ends[0].address, talk.ends[1].address))

    def take(self, talk: Talk, p: Packet) -> None:
        """Takes a packet: a response counts if it answers a question of the same flow."""
        if p.tcp or talk.ends[1].port != DNS_PORT or not talk.shown_at_all or not talk.speaks(p):
            return
        q = question(p.payload)
        kind, name = normal(q.name)
        if kind != "name" or under(name, self.never) or q.response == (p.sender == talk.client):
            return
        key = (id(talk), q.ident, q.kind, name)
        if not q.response:
            self.asked[key] = p.t_ns
        elif key in self.asked and p.t_ns - self.asked[key] <= ANSWERED_NS:
            found = Resolution(name, talk, self.asked[key], p.t_ns)
            self.last |= {(talk.ends[0].address, one): found for one in q.addresses}
