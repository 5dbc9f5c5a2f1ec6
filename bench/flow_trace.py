# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Makes a trace of many flows that are all live: the profile `flows` of turns.py.

Each flow is a TCP handshake and then segments of 20 bytes, one in each round, in turn from the
client and the server. A round has one packet of each flow, in an order of its own, so that a
flow is long out of every cache when its next packet comes. No flow has a name.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import flow_traffic as traffic
import numpy as np
import numpy.typing as npt

from zanon_net.bench.trace import write_large

FLOWS = 500_000
PACKETS_MIN = 4  # of a flow
PAYLOAD = 20
ROUND_NS = 5 * 10**9  # a flow is never idle for long
RECORD_BYTES = 16
Ints = npt.NDArray[Any]


def records(rows: npt.NDArray[np.uint8], start_ns: int) -> bytes:
    """Returns the rows of frames, one a record, over one round's time."""
    count, length = rows.shape
    out = np.zeros((count, RECORD_BYTES + length), dtype=np.uint8)
    out[:, RECORD_BYTES:] = rows
    times = start_ns + np.arange(count, dtype=np.int64) * ROUND_NS // count
    fields = (times // 10**9, times % 10**9 // 1000, times * 0 + length, times * 0 + length)
    for i, values in enumerate(fields):
        out[:, 4 * i : 4 * i + 4] = values.astype("<u4")[:, None].view(np.uint8)
    return out.tobytes()


def segments(number: Ints, step: int) -> npt.NDArray[np.uint8]:
    """Returns the `step`th packet of each flow: SYN, SYN-ACK, ACK, then data from either side in
    turn."""
    handshake = (traffic.SYN, traffic.SYN | traffic.ACK, traffic.ACK)
    data = step >= len(handshake)
    back = step == 1 if not data else step % 2 == 0
    flags = traffic.ACK | traffic.PUSH if data else handshake[step]
    rows = traffic.copies(traffic.segment(flags, bytes(PAYLOAD if data else 0)), len(number))
    traffic.set_ends(rows, number, 443, back=back)
    client = number * 2_654_435_761 + (step > 0) + PAYLOAD * max(0, (step - 2) // 2)
    server = number * 2_246_822_519 + (step > 1) + PAYLOAD * max(0, (step - 3) // 2)
    seq, ack = (server, client) if back else (client, server if step else server * 0)
    traffic.put(rows, traffic.L4 + 4, seq & 0xFFFFFFFF, 4)
    traffic.put(rows, traffic.L4 + 8, ack & 0xFFFFFFFF, 4)
    traffic.put(rows, traffic.IP + 2, number * 0 + rows.shape[1] - traffic.IP, 2)
    return rows


def chunks(flows: int, packets: int) -> Iterator[bytes]:
    """Yields the records, round by round."""
    rng = np.random.default_rng(1)
    for step in range(packets):
        order = rng.permutation(flows).astype(np.int64)
        yield records(segments(order, step), traffic.START_NS + step * ROUND_NS)


def write(out: Path, flows: int, packets: int) -> dict[str, object]:
    """Writes a trace of this number of live flows, each with this number of packets, and returns
    its truth in the form of gen_trace.py."""
    write_large(out, chunks(flows, packets))
    nothing = hashlib.sha256(b"").hexdigest()
    return {"packets": flows * packets, "flows": flows, "names_sha256": nothing}


def generate(out: Path, octets: int) -> dict[str, object]:
    """Writes a trace of about `octets` bytes and returns its truth in the form of gen_trace.py."""
    each = RECORD_BYTES + len(traffic.segment(0, bytes(PAYLOAD)))
    flows = min(FLOWS, max(1, octets // (PACKETS_MIN * each)))
    return write(out, flows, max(PACKETS_MIN, octets // (flows * each)))
