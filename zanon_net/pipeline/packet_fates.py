# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Fates of the frames that a run with packets read: each has one, and a counter.

frames = passed + masked + the sum of dropped, for the packets themselves and for each view of them.
Dropped frames are frames of which no packet could be read (the counters drop_*), and packets that
did not leave (packets_dropped_*). Each fragment counts as a frame. Some counters only give a
reason: drop_flow_* counts packets that are in packets_dropped_no_flow, and drop_fragment_* counts
fragments that are in packets_dropped_fragment.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from zanon_net._core import STAT_INFO
from zanon_net.config.packet_views import PacketView
from zanon_net.errors import OutputError
from zanon_net.pipeline.totals import Totals

OUTPUTS = ("packets", "packets_ng")
"""The core's names of the outputs of packets."""

_NOT_DECODED, _NOT_EMITTED = "drop_", "packets_dropped_"
_ONLY_WHY = ("drop_flow_", "drop_fragment_")
_NO_FLOW = "packets_dropped_no_flow"
_PREFIX_OF_TEXT = "not emitted: "


def dropped(counters: Mapping[str, int]) -> dict[str, int]:
    """Returns the frames that did not leave, by reason."""
    return {
        name.removeprefix(prefix): counters[name]
        for prefix in (_NOT_DECODED, _NOT_EMITTED)
        for name, _group, _text in STAT_INFO
        if name.startswith(prefix) and not name.startswith(_ONLY_WHY)
    }


def dropped_lines(counters: Mapping[str, int]) -> list[tuple[str, int]]:
    """Returns (text, count) of each reason without a drop_* counter, if the count is not zero."""
    return [
        (text.removeprefix(_PREFIX_OF_TEXT), counters[name])
        for name, _group, text in STAT_INFO
        if name.startswith(_NOT_EMITTED) and name != _NO_FLOW and counters[name]
    ]


def of_view(counters: Mapping[str, int], view: Mapping[str, int]) -> dict[str, int]:
    """Returns the counters of a run as if its packets were the packets of a view."""
    return {**counters, **{name: view[name] for name, group, _ in STAT_INFO if group == "packet"}}


def manifest_of(totals: Totals, views: Sequence[PacketView]) -> dict[str, Any]:
    """Returns the fates, and the fields of packets, as the manifest has them."""
    return {
        "frames": totals.counters["frames"],
        **_left(totals.counters),
        "blocks": totals.packet_blocks,
        "hold_max_bytes": totals.hold_bytes_max,
        "views": {
            view.name: view.to_dict() | _left(of_view(totals.counters, counters))
            for view, counters in zip(views, totals.views, strict=True)
        },
    }


def _left(counters: Mapping[str, int]) -> dict[str, Any]:
    return {
        "passed": counters["packets_passed"],
        "masked": counters["packets_masked"],
        "dropped": dropped(counters),
        "addresses": {
            "released": counters["packets_servers_released"],
            "pair": counters["packets_servers_pair"],
        },
        "names": {
            "by_vote": counters["packets_names_by_vote"],
            "by_peek": counters["packets_names_by_peek"],
            "masked": counters["packets_names_masked"],
        },
        "certificates": {
            "named": counters["packets_certificates_named"],
            "unnamed": counters["packets_certificates_unnamed"],
        },
        "fingerprints": counters["packets_fingerprints"],
        "resealed": counters["packets_resealed"],
        "stripped": counters["packets_stripped"],
        "bytes_kept": counters["packets_bytes_kept"],
        "bytes_zeroed": counters["packets_bytes_zeroed"],
        "deadline_missed": counters["packets_deadline_missed"],
        "hold_early": counters["packets_hold_early"],
        "flow_turned": counters["packets_flows_turned"],
        "epochs": counters["packets_epochs"],
    }


def check(
    counters: Mapping[str, int], written: Mapping[str, int], names: Iterable[str] = OUTPUTS
) -> None:
    """Raises OutputError if a frame has no fate, or several, before its output appears.

    counters: of an engine that has finished, or of a view of it. written: frames in each output, by
    the core's names; without an output of `names` nothing is checked.
    """
    outputs = [name for name in names if name in written]
    if not outputs:
        return
    left = counters["packets_passed"] + counters["packets_masked"]
    fates = left + sum(dropped(counters).values())
    if fates != counters["frames"]:
        raise OutputError(
            f"of {counters['frames']:,} frames {fates:,} are accounted for, so no packets were"
            " written; please report it"
        )
    for name in outputs:
        if written[name] != left:
            raise OutputError(
                f"{left:,} packets left and {written[name]:,} were written, so none is kept;"
                " please report it"
            )


def check_views(
    counters: Mapping[str, int], views: Sequence[Mapping[str, int]], written: Mapping[str, int]
) -> None:
    """Checks each view as `refuse_unaccounted` does. views: their counters."""
    for number, view in enumerate(views, start=1):
        names = [f"view{number}_{output}" for output in OUTPUTS]
        check(of_view(counters, view), written, names)
