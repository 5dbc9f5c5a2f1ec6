# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Counters of an engine, by their groups."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from zanon_net._core import STAT_ALIASES, STAT_INFO, PacketEngine
from zanon_net._record import dataclass

_NAMES_SEEN_IN = "names seen in "  # the start of the texts of these counters


@dataclass(frozen=True, slots=True)
class Totals:
    """Counters of an engine at the end of its input.

    views: the packet counters of each view. packet_blocks: the blocks that addresses of packets lie
    in. hold_bytes_max: the most bytes that waiting packets took. levels: the counts of the levels
    of generalization; None without levels. attributes: the counts of each attribute besides names;
    None without attributes.
    """

    counters: Mapping[str, int]
    views: Sequence[Mapping[str, int]]
    table: Mapping[str, int]
    users: int
    time_range_ns: tuple[int, int] | None
    memory_bytes: int
    key_scope: str
    networks_left_out: int
    pseudonym_id: str | None
    packet_blocks: list[str]
    hold_bytes_max: int
    levels: Mapping[str, Any] | None = None
    attributes: Mapping[str, Mapping[str, int]] | None = None

    @classmethod
    def of(cls, engine: PacketEngine) -> "Totals":
        """Returns the totals of `engine`, which has finished."""
        return cls(
            counters=dict(engine.stats),
            views=engine.view_stats,
            table=dict(engine.table_stats),
            users=engine.users,
            time_range_ns=engine.time_range_ns,
            memory_bytes=engine.memory_bytes,
            key_scope=engine.key_scope,
            networks_left_out=engine.networks_left_out,
            pseudonym_id=engine.pseudonym_id,
            packet_blocks=json.loads(engine.packet_blocks or b"[]"),
            hold_bytes_max=engine.hold_bytes_max,
            levels=engine.level_stats,
            attributes=engine.attribute_stats,
        )

    def group(self, group: str) -> dict[str, int]:
        """Returns the counters of one group, in their order; renamed counters also by their old
        names."""
        return {
            either: self.counters[name]
            for name, member_of, _text in STAT_INFO
            if member_of == group
            for either in (name, STAT_ALIASES.get(name, name))
        }

    def lines(self, group: str) -> list[tuple[str, int]]:
        """Returns (text, count) of each counter of a group that is not zero."""
        return [
            (text, self.counters[name.lower()])
            for name, member_of, text in STAT_INFO
            if member_of == group and self.counters[name.lower()]
        ]

    def names(self) -> dict[str, int]:
        """Returns the names seen by source, "TLS" and so on, without repetitions in a flow."""
        return {
            text.removeprefix(_NAMES_SEEN_IN): self.counters[name.lower()]
            for name, _group, text in STAT_INFO
            if text.startswith(_NAMES_SEEN_IN)
        }

    @property
    def decided(self) -> int:
        """Names that were released, generalized or suppressed, for any reason; without the names of
        DNS that were decided apart."""
        published = self.counters["released"] + self.counters["generalized"]
        return published + sum(self.group("suppressed").values())

    def decisions(self) -> dict[str, Any]:
        """Returns the decisions on names, and the z-table's counters, as the manifest has them."""
        table = ("late", "late_deep", "clock_jumps", "evicted")
        return {
            **self.group("decision"),
            "suppressed": {
                name.removeprefix("suppressed_"): count
                for name, count in self.group("suppressed").items()
            },
            **{name: self.table[name] for name in table},
        }
