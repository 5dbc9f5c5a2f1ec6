# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The names that a run over the demo must release, by brute force over its ground truth."""

import ipaddress
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from oracle.ztable import ZOracle

from support.paths import ROOT

HOME_SUFFIXES = ("in-addr.arpa", "ip6.arpa", "local", "home.arpa")
Line = dict[str, Any]
Seen = Counter[tuple[int, str, str]]


def first_frames(target: Path, number: int) -> Path:
    """Writes the first frames of the demo."""
    data, at = (ROOT / "pcaps" / "demo.pcap").read_bytes(), 24
    for _ in range(number):
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
    target.write_bytes(data[:at])
    return target


def read_truth(path: Path) -> list[Line]:
    """The observations, in order of time."""
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return [line for line in lines if "meta" not in line]


@cache
def user_of(address: str, bits: tuple[int, int] = (32, 56)) -> str:
    """The network that makes a user."""
    parsed = ipaddress.ip_address(address)
    prefix = bits[0] if parsed.version == 4 else bits[1]
    return str(ipaddress.ip_network((address, prefix), strict=False))


def under(name: str, suffixes: Sequence[str]) -> bool:
    """Whether the name is one of the suffixes or below it."""
    return any(name == suffix or name.endswith("." + suffix) for suffix in suffixes)


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings that decide who votes for what."""

    z: int
    window_ns: int
    established: bool = True
    never: tuple[str, ...] = ()
    dns_votes: str = "own"
    may_vote: Callable[[Line], bool] = lambda line: True

    def counts(self, line: Line) -> bool:
        """Whether the line is an observation."""
        return (
            line["valid"]
            and (line["established"] or not self.established)
            and (self.z == 1 or not under(line["name"], HOME_SUFFIXES))
            and not under(line["name"], self.never)
            and self.may_vote(line)
        )

    def namespace(self, line: Line) -> str:
        """Where the line's name counts: names of DNS apart, unless they vote for all."""
        return "dns" if line["source"] == "dns" and self.dns_votes != "all" else "name"


def released_lines(truth: Sequence[Line], rules: Rules) -> list[Line]:
    """The lines whose observation is released."""
    oracle = ZOracle(rules.z, rules.window_ns)

    def shared(line: Line) -> bool:
        space = rules.namespace(line)
        if space == "dns" and rules.dns_votes == "no":
            return oracle.users(line["t_ns"], ("name", line["name"])) >= rules.z
        user = user_of(line["client"])
        return oracle.observe(line["t_ns"], user, (space, line["name"]))

    return [line for line in truth if rules.counts(line) and shared(line)]


def as_seen(lines: Sequence[Line]) -> Seen:
    """The lines as the observation stream shows them, without the client."""
    return Counter((line["t_ns"], line["name"], line["source"]) for line in lines)
