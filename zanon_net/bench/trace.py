# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Large captures of realistic traffic, and the number of names that they show.

`zanon_net.bench.traffic` lists the profiles. Noise replaces encrypted data; QUIC flows share a pool
of protected Initials. The file is written in 4 MiB writes: how a trace was written changes how fast
the page cache reads it back, so keep that when you compare traces.
"""

import hashlib
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np

from zanon_net.bench.trace_flows import (
    DNS,
    HTTP,
    PROFILES,
    QUIC,
    SOURCES,
    TINY,
    TLS,
    Flows,
    Ints,
    PayloadMaker,
    Profile,
    draw_flows,
    fill_payloads,
    trace_name,
)
from zanon_net.bench.trace_frames import Noise, Packets, assign_ends, frames, lay_out

WRITE_BYTES = 4 << 20
BATCH = 16384
PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
# Rough bytes of a flow without its data blocks, by kind; blocks are counted with their own size.
BASE_BYTES = {TLS: 6600, QUIC: 3700, DNS: 260, HTTP: 1900}
SEGMENT_BYTES = {TLS: 1530, QUIC: 1308, DNS: 0, HTTP: 1530}
ANSWER_BYTES = {TLS: 70, QUIC: 104, DNS: 0, HTTP: 70}
TINY_BLOCK_BYTES = 174


@dataclass(frozen=True, slots=True)
class Scale:
    """Size of a trace: bytes of the file, homes, hostnames, seconds in which flows start.

    data: the factor by which a flow carries more data blocks than the profile says.
    """

    octets: int = 500_000_000
    homes: int = 20_000
    names: int = 100_000
    seconds: int = 300
    seed: int = 1
    data: int = 1


def flow_bytes(flows: Flows, profile: Profile) -> Ints:
    """Returns about how many bytes each flow will take in the file."""
    if profile.opening is not None:
        return np.full(len(flows), profile.opening_bytes)
    if profile.payload == TINY:
        return BASE_BYTES[TLS] + TINY_BLOCK_BYTES * flows.blocks
    base = np.array([BASE_BYTES[kind] for kind in range(4)])
    segments, answers = sum(profile.bursts), len(profile.bursts)
    block = np.array(
        [SEGMENT_BYTES[kind] * segments + ANSWER_BYTES[kind] * answers for kind in range(4)]
    )
    return base[flows.kind] + block[flows.kind] * flows.blocks


def draw_enough(rng: np.random.Generator, profile: Profile, scale: Scale) -> Flows:
    """Draws flows until they amount to about as many bytes as wanted."""
    homes, names = scale.homes, scale.names
    sample = flow_bytes(draw_flows(rng, profile, (4096, homes, names)), profile)
    count = max(64, int(1.3 * scale.octets / sample.mean()))
    flows = draw_flows(rng, profile, (count, homes, names))
    kept = max(1, int(np.searchsorted(np.cumsum(flow_bytes(flows, profile)), scale.octets)))
    cut = slice(0, kept)
    return Flows(
        flows.kind[cut], flows.blocks[cut], flows.name[cut], flows.home[cut], flows.temporary[cut]
    )


def write_large(path: Path, chunks: Iterable[bytes]) -> int:
    """Writes chunks in writes of 4 MiB and returns the size of the file."""
    pending = bytearray(PCAP_HEADER)
    with path.open("wb", buffering=0) as out:
        for chunk in chunks:
            pending += chunk
            while len(pending) >= WRITE_BYTES:
                write_whole(out, pending[:WRITE_BYTES])
                del pending[:WRITE_BYTES]
        write_whole(out, pending)
        return out.tell()


def write_whole(out: FileIO, data: bytes | bytearray) -> None:
    """Writes all of `data`. On a full disk a write first ends short, and only the next write
    fails."""
    rest = memoryview(data)
    while rest:
        rest = rest[out.write(rest) :]


def describe(flows: Flows, packets: Packets, size: int, with_list: bool) -> dict[str, Any]:
    """Returns the ground truth of the trace."""
    pairs = zip(flows.kind.tolist(), flows.name.tolist(), strict=True)
    seen = Counter((SOURCES[kind], trace_name(name).decode()) for kind, name in pairs)
    lines = sorted(f"{source},{name},{count}" for (source, name), count in seen.items())
    by_source = Counter(SOURCES[kind] for kind in flows.kind.tolist())
    truth: dict[str, Any] = {
        "packets": len(packets.flow),
        "file_bytes": size,
        "mean_packet_bytes": round((size - len(PCAP_HEADER)) / len(packets.flow) - 16, 1),
        "flows": len(flows),
        "users": len(np.unique(flows.home)),
        "name_flows": dict(sorted(by_source.items())),
        "distinct_source_names": len(seen),
        "distinct_names": len({name for _, name in seen}),
        "names_sha256": hashlib.sha256("\n".join(lines).encode()).hexdigest(),
    }
    return truth | ({"names": lines} if with_list else {})


def generate(path: Path, kind: str, scale: Scale, *, with_list: bool = False) -> dict[str, Any]:
    """Writes a capture of the profile `kind` and returns its truth.

    with_list: true if the truth lists every "source,name,count". Raises OSError.
    """
    rng = np.random.default_rng(scale.seed)
    profile = PROFILES[kind].times(scale.data)
    flows = draw_enough(rng, profile, scale)
    maker = PayloadMaker(scale.seed, flows, profile, rng)
    ends = assign_ends(flows, profile, rng)
    fill_payloads(flows, maker, ends.server_address)
    noise = Noise(rng)
    packets = lay_out(flows, profile, noise, scale.seconds, rng)
    size = write_large(path, frames(flows, packets, ends, noise, BATCH))
    truth = describe(flows, packets, size, with_list)
    return {"profile": kind, "seed": scale.seed} | truth
