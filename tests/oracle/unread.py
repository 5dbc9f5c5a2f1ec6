# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Flows without a name that are not known to have none: section 4 of the contract, "Unread"."""

from support.packets import ACK, FIN, SYN

from oracle.layers import Packet
from oracle.talks import Talk

# The ports of the analyzers' protocols that scenarios use.
PORTS = {True: (53, 80, 443, 8080, 8443), False: (53, 80, 443, 4433, 8443)}


def sent_bytes(flow: list[Packet], client: int) -> bool:
    """Returns True if sequence numbers of either side show that the client sent bytes. Numbers
    count from the SYN, and a captured FIN takes a number."""
    start = next(p.seq for p in flow if p.sender == client and p.flags & SYN) + 1
    fin = 0
    for p in flow:
        own = p.sender == client
        fin |= int(own and p.flags & FIN > 0)
        if own and p.seq + (p.flags & SYN > 0) + p.length > start + (fin if not p.length else 0):
            return True
        if not own and p.flags & ACK and p.ack > start + fin:
            return True
    return False


def is_unread(flow: list[Packet], talk: Talk) -> bool:
    """Returns True if the flow has no name, and its client's bytes may have held a name."""
    own = [p for p in flow if p.sender == talk.client]
    if talk.names or talk.unread:
        return False
    if talk.midstream or not own or (not talk.first.tcp and flow[0].sender != talk.client):
        return True
    if any(p.length and not talk.speaks(p) for p in own):
        return True
    if talk.first.tcp and not sent_bytes(flow, talk.client):
        return False
    if not talk.first.tcp and not any(p.length for p in own):
        return False
    return not talk.understood and talk.ends[1].port in PORTS[talk.first.tcp]
