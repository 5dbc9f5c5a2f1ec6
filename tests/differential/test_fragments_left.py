# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Fragments that scapy makes leave as fragments that scapy and tshark put together."""

import random

import pytest
from differential.conftest import Tshark
from scapy.compat import raw
from scapy.layers.dns import DNS, DNSQR, DNSRROPT
from scapy.layers.inet import IP, UDP, defragment, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrFragment, defragment6, fragment6
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.plist import PacketList
from support.packet_run import emitted
from support.packets import MS, START, Frame

LENGTHS = {"length": "ip.reassembled.length", "length6": "ipv6.reassembled.length"}
FIELDS = LENGTHS | {"malformed": "_ws.malformed", "udp": "udp.length"}
QUESTION = raw(DNS(rd=1, qd=DNSQR(qname="a.example"), ar=DNSRROPT(rclass=4096)))
DATAGRAMS = {
    "plain": UDP(sport=40000, dport=9999) / Raw(bytes(range(256)) * 9),
    "odd": UDP(sport=40000, dport=9999) / Raw(b"\x41" * 1501),
    "dns": UDP(sport=40000, dport=53) / Raw(QUESTION + bytes(700)),
}


def whole_of(packets: list[Packet], six: bool) -> Packet:
    """The datagram that scapy makes of fragments."""
    if not six:
        (found,) = defragment(PacketList(sorted(packets, key=lambda packet: packet[IP].frag)))
        return found[IP]
    joined = defragment6([packet[IPv6] for packet in packets])
    joined.plen = None
    return IPv6(raw(joined))


@pytest.mark.family(6)
@pytest.mark.parametrize("six", [False, True], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("name", DATAGRAMS)
@pytest.mark.parametrize("shuffled", [False, True])
def test_put_together_again(tshark: Tshark, name: str, six: bool, shuffled: bool) -> None:
    inside = DATAGRAMS[name]
    if six:
        head = IPv6(src="fd00:7::1", dst="2001:db8:7::53") / IPv6ExtHdrFragment(id=77)
        parts = fragment6(head / inside, 700)
    else:
        parts = fragment(IP(src="10.7.0.1", dst="198.51.100.7", id=4242) / inside, 600)
    if shuffled:
        random.Random(len(name)).shuffle(parts)
    data = [raw(Ether(src="02:00:00:00:00:09", dst="02:00:00:00:00:08") / part) for part in parts]
    sent = [Frame(START + n * MS, frame, len(frame)) for n, frame in enumerate(data)]
    left = [frame.data for frame in emitted(sent, z=1, established=False).frames]
    assert [len(frame) for frame in left] == [max(60, len(frame)) for frame in data]
    whole = whole_of([Ether(frame) for frame in left], six)
    assert len(raw(whole[UDP])) == whole[UDP].len == len(inside)
    assert not any(raw(whole[UDP].payload))
    told = whole[UDP].chksum
    del whole[UDP].chksum
    version = IPv6 if six else IP
    assert version(raw(whole))[UDP].chksum == told != 0
    rows = tshark(left, 1, FIELDS, every=True)
    assert [row["malformed"] for row in rows] == [""] * len(rows)
    assert {row["length6" if six else "length"] for row in rows} == {"", str(len(inside))}
    assert [row["udp"] for row in rows if row["udp"]] == [str(len(inside))]
