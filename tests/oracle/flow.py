# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The packets of each flow and its end by Tstat's rules, from all packets again each time."""

from support.packets import ACK, FIN, RST, SECOND, SYN, Unit

Flow = list[Unit]


def patience_ns(flow: Flow) -> int:
    """For how long the flow may be idle."""
    opens = flow[0].flags & (SYN | ACK) == SYN
    only_syns = opens and all(p.sender == flow[0].sender and p.flags & SYN for p in flow)
    idle_s = (10 if only_syns else 300) if flow[0].tcp else (10 if len(flow) == 1 else 200)
    return idle_s * SECOND


def late(flow: Flow, now_ns: int) -> bool:
    """Whether the flow has been idle for too long."""
    return now_ns - flow[-1].t_ns > patience_ns(flow)


def closed_ns(flow: Flow, end: str, now_ns: int) -> int:
    """When a flow closed of which it is known at now_ns how it ended (section 5): at its last
    packet, or when its patience was over, or now."""
    if end in ("fin", "rst"):
        return flow[-1].t_ns
    return min(flow[-1].t_ns + patience_ns(flow), now_ns)


def fin_acked(flow: Flow, side: int) -> bool:
    """Returns true if a FIN of this side was acknowledged. A tap may show the acknowledgement
    before that FIN, but not before the first FIN of the connection."""
    closing = flow[next((i for i, p in enumerate(flow) if p.flags & FIN), len(flow)) :]
    fins = [p.seq + p.length for p in closing if p.sender == side and p.flags & FIN]
    answers = [p.ack for p in closing if p.sender != side and p.flags & ACK]
    return any(ack > end for end in fins for ack in answers)


def begins_another(flow: Flow, p: Unit) -> bool:
    """Returns true if a client's SYN opens another connection than the flow. Only the server sent
    packets of the flow, and no SYN-ACK among them acknowledges that SYN. A server that opens
    itself opens the same connection."""
    if not p.tcp or p.flags & (SYN | ACK) != SYN or any(q.sender == p.sender for q in flow):
        return False
    answers = [q.ack for q in flow if q.flags & SYN and q.flags & ACK]
    if flow[0].flags & (SYN | ACK) == SYN or not answers:
        return not any(q.flags & SYN for q in flow)
    return not p.seq < answers[-1] <= p.seq + 1 + p.length


def answers_another(flow: Flow, p: Unit) -> bool:
    """Returns true if a SYN-ACK behind a flow's end answers the SYN of the next connection, which
    is captured later."""
    if not p.tcp or p.flags & (SYN | ACK | RST) != SYN | ACK:
        return False
    others = [q for q in flow if q.sender != p.sender]
    syns = [q.seq for q in others if q.flags & SYN]
    end = max(
        (q.seq + q.length + bool(q.flags & SYN) + bool(q.flags & FIN) for q in others), default=0
    )
    return bool(syns) and not syns[0] < p.ack <= end


def flows_of(packets: list[Unit]) -> list[tuple[Flow, str, int]]:
    """(packets, how it ended, when it closed) of each flow, for one packet or more in order of
    time."""
    current: dict[tuple[int, int], Flow] = {}
    lingering: dict[tuple[int, int], tuple[Flow, int]] = {}  # and until when
    closed: list[tuple[Flow, str, int]] = []

    def close(flow: Flow, end: str) -> None:
        closed.append((flow, end, closed_ns(flow, end, p.t_ns)))

    for p in packets:
        for ports in [ports for ports, flow in current.items() if late(flow, p.t_ns)]:
            close(current.pop(ports), "idle")
        if p.ports in current and begins_another(current[p.ports], p):
            close(current.pop(p.ports), "idle")
        stray = p.tcp and p.flags & (SYN | ACK) != SYN
        former, until_ns = lingering.get(p.ports, ([], 0))
        lingers = stray and p.t_ns <= until_ns and not answers_another(former, p)
        if p.ports not in current and (lingers or p.flags & RST):
            continue
        flow = current.setdefault(p.ports, [])
        flow.append(p)
        if p.flags & RST or (fin_acked(flow, 0) and fin_acked(flow, 1)):
            close(current.pop(p.ports), "rst" if p.flags & RST else "fin")
            lingering[p.ports] = flow, p.t_ns + 10 * SECOND
    for flow in current.values():
        close(flow, "idle" if late(flow, p.t_ns) else "input")
    return closed
