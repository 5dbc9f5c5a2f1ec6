# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs that end in anonymized packets."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zanon_net
from support.capture_bytes import PCAP_MICROSECONDS, PCAP_NANOSECONDS, pcap_header, pcap_record
from support.engine import feed, make_engine
from support.packet_output import packets, records
from support.packets import SECOND, Frame

BATCH = 1 << 14


@dataclass(frozen=True)
class Emitted:
    """Frames that left, and the counters of a run; and the same of its views."""

    frames: list[Frame]
    stats: dict[str, int]
    views: "tuple[Emitted, ...]" = ()

    def dropped(self) -> dict[str, int]:
        """How many frames were not emitted, by reason."""
        start = "packets_dropped_"
        return {
            name.removeprefix(start): n
            for name, n in self.stats.items()
            if name.startswith(start) and n
        }


def emitted(
    frames: Sequence[Frame], *, batch: int = BATCH, link: int = 1, **settings: Any
) -> Emitted:
    """The packets of an engine that is fed `batch` frames at a time."""
    engine = make_engine(**({"outputs": ("packets",), "exact": False} | settings))
    views = [f"view{n}_packets" for n in range(1, 1 + len(settings.get("views", ())))]
    out = dict.fromkeys(("packets", *views), b"")

    def take() -> None:
        for name in out:
            out[name] += engine.take(name)

    for at in range(0, len(frames), batch):
        feed(engine, frames[at : at + batch], link)
        take()
    while engine.finish():
        take()
    take()
    engine.check()
    stats, view_stats = engine.stats, engine.view_stats
    engine.close()
    left = {name: list(records(data)) for name, data in out.items()}
    seen = (Emitted(left[name], of) for name, of in zip(views, view_stats, strict=True))
    return Emitted(left["packets"], stats, tuple(seen))


def write_pcap(path: Path, frames: Sequence[Frame], *, unit_ns: int = 1) -> Path:
    """A pcap file of Ethernet with times in ns, or in units of 1000 ns, which all tools read."""
    parts = [pcap_header(magic=PCAP_NANOSECONDS if unit_ns == 1 else PCAP_MICROSECONDS)]
    for frame in frames:
        seconds, ns = divmod(frame.t_ns, SECOND)
        parts.append(pcap_record("<", seconds, ns // unit_ns, frame.data, wire=frame.wire))
    path.write_bytes(b"".join(parts))
    return path


def anonymized(capture: Path, **settings: Any) -> list[Frame]:
    """The packets of a run over a capture, as the public function makes them."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.pcap"
        zanon_net.packets(capture, out, **settings)  # type: ignore[attr-defined]
        return packets(out.read_bytes()) if out.exists() else []
