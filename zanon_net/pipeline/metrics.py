# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Every metric of a run, in one table: names, labels and values for Prometheus.

Metrics disclose counts, and no rare visit: no label comes from the traffic, and values have three
digits. The times among them come from settings and the clock.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

from zanon_net._core import STAT_INFO
from zanon_net._record import dataclass
from zanon_net._version import __version__
from zanon_net.output.disk import DiskFacts
from zanon_net.pipeline.facts import Drops
from zanon_net.pipeline.totals import Totals

DIGITS = 3
MINUTE_NS = 60_000_000_000

Value = float | Mapping[str, float] | None
"""A number; one number for each value of the label; or None if there is no number yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """State of a run at one time, from which its metrics are computed.

    drops: packets lost so far. z: present z. rotate_ns: length of an epoch in ns. output: (bytes,
    records) passed on so far, by format. packets_per_s, bits_per_s: rates since the previous
    snapshot. ztable_bytes: memory of the z-table. disk: state of the output on the disk.
    interfaces: true for each interface that is present.
    """

    totals: Totals
    drops: Drops
    z: int
    rotate_ns: int
    ztable_bytes: int = 0
    output: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    disk: DiskFacts = field(default_factory=DiskFacts)
    packets_per_s: float = 0.0
    bits_per_s: float = 0.0
    lost_share: float = 0.0
    interfaces: Mapping[str, bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric.

    name: the name after `zanon_`. kind: counter, gauge, info, time (s since the Unix epoch).
    """

    name: str
    kind: str
    help: str
    value: Callable[[Any], Value]
    label: str = ""

    @property
    def full_name(self) -> str:
        """Its name in Prometheus."""
        return f"zanon_{self.name}"

    def samples(self, snapshot: Any) -> list[tuple[Sequence[str], float]]:
        """Returns (values of the labels, number of three digits) at a snapshot."""
        value = self.value(snapshot)
        if value is None:
            return []
        by_label = value if isinstance(value, Mapping) else {"": value}
        return [
            ([label] if self.label else [], number if self.kind == "time" else rounded(number))
            for label, number in by_label.items()
        ]


def rounded(number: float) -> float:
    """Returns the number with its first DIGITS digits; rounded counters still never decrease."""
    return float(f"{number:.{DIGITS}g}")


def _counter(counter: str) -> Callable[[Snapshot], Value]:
    return lambda snapshot: snapshot.totals.counters[counter]


def _table(counter: str) -> Callable[[Snapshot], Value]:
    return lambda snapshot: snapshot.totals.table[counter]


def _group(group: str, prefix: str) -> Callable[[Snapshot], dict[str, float]]:
    """Returns the counters of a group by their names without the prefix."""
    return lambda snapshot: {
        name.removeprefix(prefix): snapshot.totals.counters[name]
        for name, member_of, _text in STAT_INFO
        if member_of == group
    }


def _decisions(snapshot: Snapshot) -> Value:
    suppressed = _group("suppressed", "suppressed_")(snapshot)
    published = {name: snapshot.totals.counters[name] for name in ("released", "generalized")}
    return published | suppressed


def _open_flows(snapshot: Snapshot) -> Value:
    counters = snapshot.totals.counters
    return counters["flows_tcp"] + counters["flows_udp"] - counters["flows_closed"]


def _epoch_start(snapshot: Snapshot) -> Value:
    """Returns the start of the epoch in s, down to the minute.

    The start of a shorter epoch would disclose the time of the last packet.
    """
    if snapshot.totals.time_range_ns is None:
        return None
    last_ns = snapshot.totals.time_range_ns[1]
    start_ns = last_ns - last_ns % snapshot.rotate_ns
    return (start_ns - start_ns % MINUTE_NS) // 1_000_000_000


METRICS = (
    Metric(
        name="build_info",
        kind="info",
        help="The version of the program.",
        label="version",
        value=lambda _snapshot: {__version__: 1},
    ),
    Metric(
        name="packets_total",
        kind="counter",
        help="Packets read.",
        value=_counter("frames"),
    ),
    Metric(
        name="bytes_total",
        kind="counter",
        help="Bytes of these packets on the wire.",
        value=_counter("bytes_wire"),
    ),
    Metric(
        name="packets_per_second",
        kind="gauge",
        help="Packets read a second, over the last 10 s.",
        value=lambda snapshot: snapshot.packets_per_s,
    ),
    Metric(
        name="bits_per_second",
        kind="gauge",
        help="Bits on the wire a second, over the last 10 s.",
        value=lambda snapshot: snapshot.bits_per_s,
    ),
    Metric(
        name="capture_dropped_packets_total",
        kind="counter",
        help="Packets lost: by the ring, by the interface, by us.",
        label="place",
        value=lambda snapshot: snapshot.drops.to_dict(),
    ),
    Metric(
        name="capture_lost_ratio",
        kind="gauge",
        help="Share of the packets that was lost, 0 to 1, over the last 10 s.",
        value=lambda snapshot: snapshot.lost_share,
    ),
    Metric(
        name="interface_up",
        kind="gauge",
        help="1: the interface is read; 0: it is away. Without captures.",
        label="interface",
        value=lambda snapshot: snapshot.interfaces,
    ),
    Metric(
        name="merged_frames_total",
        kind="counter",
        help="Frames longer than the MTU, in which a receive offload merged packets.",
        value=lambda snapshot: snapshot.totals.counters["frames_merged"],
    ),
    Metric(
        name="drops_total",
        kind="counter",
        help="Packets read that are in no flow, by reason.",
        label="reason",
        value=_group("drop", "drop_"),
    ),
    Metric(
        name="decisions_total",
        kind="counter",
        help="Names released, names generalized, and names suppressed by reason.",
        label="decision",
        value=_decisions,
    ),
    Metric(
        name="flows_total",
        kind="counter",
        help="Flows closed, by what became of their name.",
        label="name_status",
        value=_group("status", "status_"),
    ),
    Metric(
        name="open_flows",
        kind="gauge",
        help="Flows that are open.",
        value=_open_flows,
    ),
    Metric(
        name="ztable_tuples",
        kind="gauge",
        help="Pairs of a user and a name in the z-table.",
        value=_table("tuples"),
    ),
    Metric(
        name="ztable_attributes",
        kind="gauge",
        help="Names and addresses in the z-table.",
        value=_table("attributes"),
    ),
    Metric(
        name="ztable_bytes",
        kind="gauge",
        help="Memory of the z-table.",
        value=lambda snapshot: snapshot.ztable_bytes,
    ),
    Metric(
        name="ztable_evicted_total",
        kind="counter",
        help="Pairs that left the z-table before their window was over: it was full.",
        value=_table("evicted"),
    ),
    Metric(
        name="clock_jumps_total",
        kind="counter",
        help="Times that the clock of the packets jumped, and the z-table was emptied.",
        value=_table("clock_jumps"),
    ),
    Metric(
        name="late_total",
        kind="counter",
        help="Observations that came out of order, within the window.",
        value=_table("late"),
    ),
    Metric(
        name="z",
        kind="gauge",
        help="Users that must share a name before it is released.",
        value=lambda snapshot: snapshot.z,
    ),
    Metric(
        name="key_epoch_start_seconds",
        kind="time",
        help="Start of the epoch whose key makes the pseudonyms, in packet time.",
        value=_epoch_start,
    ),
    Metric(
        name="memory_bytes",
        kind="gauge",
        help="Memory of all tables, with the z-table.",
        value=lambda snapshot: snapshot.totals.memory_bytes,
    ),
    Metric(
        name="output_bytes_total",
        kind="counter",
        help="Bytes of these records before compression, by format, without Parquet.",
        label="format",
        value=lambda snapshot: {name: n for name, (n, _records) in snapshot.output.items()},
    ),
    Metric(
        name="output_records_total",
        kind="counter",
        help="Records, observations or packets written, or lost as the disk was full, by format.",
        label="format",
        value=lambda snapshot: {name: records for name, (_n, records) in snapshot.output.items()},
    ),
    Metric(
        name="removed_parts_total",
        kind="counter",
        help="Old parts removed, of this run and of earlier ones.",
        value=lambda snapshot: snapshot.disk.removed.parts + snapshot.disk.earlier.parts,
    ),
    Metric(
        name="removed_bytes_total",
        kind="counter",
        help="Bytes of these parts.",
        value=lambda snapshot: snapshot.disk.removed.bytes + snapshot.disk.earlier.bytes,
    ),
    Metric(
        name="full_disk_lost_records_total",
        kind="counter",
        help="Records, observations or packets that were not written: the disk was full.",
        value=lambda snapshot: snapshot.disk.records_lost,
    ),
    Metric(
        name="full_disk_waiting",
        kind="gauge",
        help="1 while the disk is full and a run on interfaces waits for space, else 0.",
        value=lambda snapshot: float(snapshot.disk.waits),
    ),
)
"""Table of all metrics; docs/reference/metrics.md explains it."""
