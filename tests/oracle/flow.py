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
    """Whether a FIN of this side was acknowledged by a later segment of the other."""
    fins = [(i, p.seq + p.length) for i, p in enumerate(flow) if p.sender == side and p.flags & FIN]
    answers = [(i, p.ack) for i, p in enumerate(flow) if p.sender != side and p.flags & ACK]
    return any(after > before and ack > end for before, end in fins for after, ack in answers)


def begins_another(flow: Flow, p: Unit) -> bool:
    """Whether a client's SYN opens another connection than the flow, of which only the server sent
    packets, none a SYN: before the client's, a server can send no more than its own SYN."""
    opens = p.tcp and p.flags & (SYN | ACK) == SYN
    return opens and all(q.sender != p.sender and not q.flags & SYN for q in flow)


def flows_of(packets: list[Unit]) -> list[tuple[Flow, str, int]]:
    """(packets, how it ended, when it closed) of each flow, for one packet or more in order of
    time."""
    current: dict[tuple[int, int], Flow] = {}
    lingers_until_ns: dict[tuple[int, int], int] = {}
    closed: list[tuple[Flow, str, int]] = []

    def close(flow: Flow, end: str) -> None:
        closed.append((flow, end, closed_ns(flow, end, p.t_ns)))

    for p in packets:
        for ports in [ports for ports, flow in current.items() if late(flow, p.t_ns)]:
            close(current.pop(ports), "idle")
        if p.ports in current and begins_another(current[p.ports], p):
            close(current.pop(p.ports), "idle")
        stray = p.tcp and p.flags & (SYN | ACK) != SYN
        lingers = stray and p.t_ns <= lingers_until_ns.get(p.ports, 0)
        if p.ports not in current and (lingers or p.flags & RST):
            continue
        flow = current.setdefault(p.ports, [])
        flow.append(p)
        if p.flags & RST or (fin_acked(flow, 0) and fin_acked(flow, 1)):
            close(current.pop(p.ports), "rst" if p.flags & RST else "fin")
            lingers_until_ns[p.ports] = p.t_ns + 10 * SECOND
    for flow in current.values():
        close(flow, "idle" if late(flow, p.t_ns) else "input")
    return closed
