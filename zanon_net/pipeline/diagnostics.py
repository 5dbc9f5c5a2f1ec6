# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Diagnoses of captures, from an engine's counters alone: the problem and the remedy."""

from collections.abc import Callable, Iterator, Mapping

from zanon_net._record import dataclass
from zanon_net.system.log import log

Counters = Mapping[str, int]
MERGED = (
    "frames are longer than their link carries: a receive offload merged packets, so that packet"
    " counts are too low; switch the offload off where the frames are captured: ethtool -K IFACE"
    " gro off lro off"
)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """reason: a word for machines. count: frames or flows. text: the problem and the remedy."""

    reason: str
    count: int
    text: str


_LOST_BY_A_CUT = (
    "status_truncated",
    "drop_link_truncated",
    "drop_encapsulation_malformed",
    "drop_ip_truncated",
    "drop_ip_fragment",
    "drop_transport_truncated",
)


def _snaplen(n: Counters) -> int:
    """Frames that were cut, if a name or header was lost by that; else 0."""
    return n["frames_cut"] if any(n[name] for name in _LOST_BY_A_CUT) else 0


def _most(part: int, whole: int) -> int:
    """Returns `part` if it is at least half of the whole; else 0."""
    return part if 2 * part >= whole else 0


def _one_sided(n: Counters) -> int:
    return _most(n["flows_one_sided"], n["flows_tcp"])


def _without_handshake(n: Counters) -> int:
    return _most(n["flows_midstream"], n["flows_tcp"])


def _packets_lost(n: Counters) -> int:
    """Flows cut short in a capture that cut no frame."""
    return n["status_truncated"] if not n["frames_cut"] else 0


def _counter(name: str) -> Callable[[Counters], int]:
    return lambda n: n[name]


# Rows: (reason, count, text with the remedy), in the order of the table.
_RULES: list[tuple[str, Callable[[Counters], int], str]] = [
    ("empty", lambda n: int(not n["frames"]), "no packet is in it"),
    (
        "link_type",
        _counter("drop_link_type"),
        "frames of a link type that is not read: capture on another interface",
    ),
    (
        "snaplen",
        _snaplen,
        (
            "frames were cut by the snapshot length, names with them: capture whole packets "
            "(tcpdump -s 0)"
        ),
    ),
    (
        "merged",
        _counter("frames_merged"),
        (
            "frames are longer than a link carries: a receive offload merged packets, and packet "
            "counts are too low; capture with it switched off (ethtool -K IFACE gro off lro off)"
        ),
    ),
    (
        "one_direction",
        _one_sided,
        (
            "TCP flows of which only one direction was captured: mirror both, until then "
            "--evidence any"
        ),
    ),
    (
        "no_handshakes",
        _without_handshake,
        (
            "TCP flows without their handshake: start before the connections do, let no filter "
            "drop SYNs; until then --evidence any"
        ),
    ),
    (
        "packets_lost",
        _packets_lost,
        (
            "flows whose hello or request is not whole though no frame was cut: the capture lost "
            "packets"
        ),
    ),
    (
        "fragments_lost",
        _counter("drop_fragment_incomplete"),
        (
            "IP fragments whose rest never came: the capture lost packets, or a filter on ports "
            "drops fragments, which have none"
        ),
    ),
    (
        "fragments_crowded",
        _counter("drop_fragment_evicted"),
        "IP fragments for which there was no room: a flood of fragments, or of lost ones",
    ),
    (
        "encrypted",
        _counter("drop_encrypted"),
        "frames encrypted below TCP and UDP (ESP, MACsec, WPA): capture where they are in clear",
    ),
    (
        "amsdu",
        _counter("in_amsdu"),
        (
            "aggregated 802.11 frames, of which only the first packet is read: capture on the "
            "wired side"
        ),
    ),
    (
        "ech",
        _counter("status_ech"),
        (
            "flows offer Encrypted ClientHello: their names are outer ones, the real ones cannot "
            "be seen"
        ),
    ),
    (
        "versions",
        _counter("quic_version_unknown"),
        "QUIC packets of a version that is not read",
    ),
    (
        "timestamps",
        lambda n: n["drop_timestamp"] + n["clock_rejected"] + n["clock_rebased"],
        (
            "packets with times that cannot be: check the clock, and that files come in the order "
            "of time"
        ),
    ),
    (
        "flow_table",
        lambda n: n["flows_evicted"] + n["drop_flow_table_full"],
        "flows that were closed early, or not opened, for want of room: raise --max-flows",
    ),
]


class MergeWarning:
    """Warns once that packets were merged before they could be counted."""

    def __init__(self) -> None:
        self._warned = False

    def see(self, counters: Counters) -> None:
        """Warns if these are the first counters of a run with a merged frame."""
        if counters["frames_merged"] and not self._warned:
            self._warned = True
            log.warning("warning: %s", MERGED)


def diagnose(counters: Counters) -> list[Diagnosis]:
    """Returns the diagnoses that call for action, from all counters of an engine."""
    return list(_diagnoses(counters))


def _diagnoses(counters: Counters) -> Iterator[Diagnosis]:
    for reason, count, text in _RULES:
        affected = count(counters)
        if affected:
            yield Diagnosis(reason, affected, text)
