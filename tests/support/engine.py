# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs of `_core.PacketEngine`, and their output, parsed."""

import ipaddress
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from support import wire
from support.packets import HOUR, SECOND, Frame, Tcp, Udp, user, visit
from zanon_net import _core
from zanon_net.config.rules import ORDERS

TCP_COMPLETE, TCP_NOCOMPLETE, UDP_COMPLETE = _core.OUTPUTS[:3]
OWN, ALL, NO = range(3)  # dns_votes, as the core numbers them
LOGS = tuple(output for output in _core.OUTPUTS if "packets" not in output)
SETTINGS: dict[str, Any] = {
    "z": 2,
    "window_ns": HOUR,
    "established": True,
    "dns_votes": OWN,
    "internal": None,
    "never": [],
    "user_prefix": (32, 56),
    "pseudonyms": (0, 32, 128),
    "key_file": None,
    "keep_client_port": False,
    "coarse_end": 0,
    "coarse_steps": 0,
    "coarse_client": 0,
    "times_ns": 0,
    "digits": 0,
    "dn_hunter": False,
    "exact": False,
    "order": ORDERS.index("closing"),
    "outputs": LOGS + _core.ROWS,
    "split_ns": 0,
    "columns": ("core", "layer7"),
    "max_flows": 1 << 14,
    "max_tuples": 1 << 16,
    "max_attributes": 1 << 14,
    "z_max": 0,
    "popularity": False,
    "workers": 1,
    "hold_ns": SECOND,
    "hold_bytes": 64 << 20,
    "payload": 0,
    "wide_addresses": False,
    "server_addresses": 0,
    "macs": 0,
    "tcp_timestamps": 0,
    "keep_ttl": False,
    "keep_encapsulation": False,
    "fingerprints": 0,
    "coarse_suppressed": False,
    "packet_times_ns": 1,
    "views": [],
    "tunnel_ports": [],
    "max_per_prefix": (0, 0, 0),
    "max_names_per_user": None,
    "min_user_age_ns": None,
    "suffixes": [],
    "categories": [],
    "levels": (),
    "attributes": (),
    "networks": b"",
    "count_probe": None,
    "count_hold_ns": 5 * SECOND,
    "count_rows": False,
    "count_leases": True,
}


def nets(*texts: str) -> list[tuple[bytes, int]]:
    """Networks as the core takes them: IPv4 as IPv4-mapped IPv6."""
    parsed = [ipaddress.ip_network(text) for text in texts]
    return [
        (net.network_address.packed, net.prefixlen)
        if net.version == 6
        else (bytes(10) + b"\xff\xff" + net.network_address.packed, 96 + net.prefixlen)
        for net in parsed
    ]


ANYWHERE = nets("0.0.0.0/0", "::/0")


def make_engine(**settings: Any) -> _core.PacketEngine:
    """An engine with small tables; `settings` override SETTINGS, rotate_ns is the window."""
    chosen = SETTINGS | settings
    return _core.PacketEngine(**({"rotate_ns": chosen["window_ns"]} | chosen))


def feed(
    engine: _core.PacketEngine, frames: Sequence[Frame], link: int = wire.LINK_ETHERNET
) -> None:
    """One batch."""
    engine.feed(
        b"".join(frame.data for frame in frames),
        np.array([frame.t_ns for frame in frames], dtype=np.int64),
        np.array([len(frame.data) for frame in frames], dtype=np.uint32),
        np.array([frame.wire for frame in frames], dtype=np.uint32),
        link,
    )


@dataclass(frozen=True)
class Outcome:
    """The output of an engine, and its counters."""

    text: dict[str, bytes]
    stats: dict[str, int]
    users: int
    rows: bytes = b""

    @cached_property
    def observations(self) -> list[dict[str, Any]]:
        """The observation stream."""
        return [json.loads(line) for line in self.text["observations"].splitlines()]

    @cached_property
    def flows(self) -> list[dict[str, Any]]:
        """The JSONL records."""
        return [json.loads(line) for line in self.text["jsonl"].splitlines()]

    @property
    def flow(self) -> dict[str, Any]:
        """The only JSONL record."""
        (record,) = self.flows
        return record

    def log(self, name: str) -> list[dict[str, str]]:
        """The lines of a Tstat log by column name."""
        header, *lines = self.text[name].decode("ascii").split("\n")[:-1]
        columns = [word.rpartition("#")[2].partition(":")[0] for word in header.split(" ")]
        return [dict(zip(columns, line.split(" "), strict=True)) for line in lines]

    @property
    def last_status(self) -> str:
        """The name_status of the last record."""
        return str(self.flows[-1]["name_status"])

    def released(self) -> set[str]:
        """The names in the observation stream."""
        return {observation["name"] for observation in self.observations}

    def seen(self) -> Counter[tuple[int, str, str]]:
        """(time, name, source) of the observation stream, with how often each occurs."""
        return Counter((o["t_ns"], o["name"], o["name_source"]) for o in self.observations)

    def everything(self) -> bytes:
        """All outputs, for searching."""
        return b"\n".join((*self.text.values(), self.rows))


def rounded(x: int) -> int:
    """The smallest ceil(2^(k/2)), k = 0, 1, ..., that is at least x."""
    steps = (math.isqrt(2**k - 1) + 1 if k else 1 for k in range(130))
    return next(step for step in steps if step >= x) if x else 0


class Taker:
    """Gathers an engine's outputs over several takes."""

    def __init__(self, engine: _core.PacketEngine) -> None:
        self.engine = engine
        self.text = {output: engine.header(output) for output in LOGS}
        self.rows = b""

    def take(self) -> None:
        """Empties the engine's outputs."""
        for output in LOGS:
            self.text[output] += self.engine.take(output)
        self.rows += b"".join(map(self.engine.take, _core.ROWS))

    def outcome(self) -> Outcome:
        """Ends the input and closes the engine."""
        while self.engine.finish():
            self.take()
        self.take()
        self.engine.check()
        outcome = Outcome(self.text, self.engine.stats, self.engine.users, self.rows)
        self.engine.close()
        return outcome


def run(frames: Sequence[Frame], *, batch: int = 1 << 14, **settings: Any) -> Outcome:
    """Feeds the frames in their order, `batch` at a time."""
    taker = Taker(make_engine(**settings))
    for at in range(0, len(frames), batch):
        feed(taker.engine, frames[at : at + batch])
        taker.take()
    return taker.outcome()


def after_another_user(talk: Tcp | Udp, **settings: Any) -> Outcome:
    """The talk after another user's visit: z = 2 releases HOST iff the talk votes for it, by DNS as
    well."""
    before = visit(user(9999), wire.HOST, talk.frames[0].t_ns - SECOND)
    return run([*before, *talk.frames], **({"z": 2, "dns_votes": ALL} | settings))


def run_capture(path: Path, **settings: Any) -> Outcome:
    """Runs a capture file to its end."""
    taker = Taker(make_engine(**settings))
    with _core.Capture(str(path)) as capture:
        while taker.engine.run(capture, 16384):
            taker.take()
    return taker.outcome()
