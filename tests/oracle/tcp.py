# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The counters of one side of a TCP flow (Tstat's columns), with a set of sequence numbers."""

from collections import Counter

from support.packets import ACK, FIN, RST, SYN, Unit

COLUMNS = "pkts_all rst_cnt ack_cnt ack_cnt_p bytes_uniq pkts_data bytes_all pkts_retx bytes_retx"
COLUMNS += " pkts_ooo syn_cnt fin_cnt"


def counts(flow: list[Unit], side: int) -> Counter[str]:
    """The side's counters. Bytes below the first segment seen count as sent before it.

    A segment that was sent before, if only in part, is a retransmission; one that brings missing
    places and ends below the highest came out of order.
    """
    n = Counter(dict.fromkeys(COLUMNS.split(), 0))
    sent: set[int] = set()
    top: int | None = None  # behind the highest sequence number sent
    for p in (p for p in flow if p.sender == side):
        data = p.seq + (p.flags & SYN > 0)
        end = data + p.length + (p.flags & FIN > 0)
        if top is None:
            sent, top = set(range(p.seq)), end
        elif end > p.seq:
            places = set(range(p.seq, end))
            n["pkts_ooo"] += end < top and not places <= sent
            n["pkts_retx"] += not places.isdisjoint(sent)
            n["bytes_retx"] += sum(place in sent for place in range(data, data + p.length))
            top = max(top, end)
        sent |= set(range(p.seq, end))
        n["pkts_all"] += 1
        n["bytes_all"] += p.length
        n["pkts_data"] += p.length > 0
        n["rst_cnt"] += p.flags & RST > 0
        n["syn_cnt"] += p.flags & SYN > 0
        n["fin_cnt"] += p.flags & FIN > 0
        n["ack_cnt"] += p.flags & ACK > 0
        n["ack_cnt_p"] += p.flags & (ACK | SYN | FIN | RST) == ACK and p.length == 0
    n["bytes_uniq"] = n["bytes_all"] - n["bytes_retx"]
    return n
