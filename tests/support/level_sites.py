# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Traffic of sites with labels, and the rule's decisions on it."""

import ipaddress
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oracle.generalization import Chain, Rule, World

from support.capture_bytes import pcap_header, pcap_record
from support.packets import SECOND, START, Frame, Tcp, hello, merged, user, visit
from zanon_net.config.name_lists import PUBLIC
from zanon_net.config.network_lists import read_networks

SUFFIXES = [(b"test", PUBLIC, 0), (b"org", PUBLIC, 0)]
LEVELS = ("domain", "category", "as", "country")


@dataclass(frozen=True)
class Site:
    """A name with the first of its three servers, and the labels; None: the value lacks this
    label."""

    name: str
    domain: str | None
    category: str | None
    server: str
    number: int
    country: str

    def labels(self) -> tuple[str, str | None, str | None]:
        return self.name, self.domain, self.category

    def server_of(self, user: int) -> str:
        """The server that a user reaches."""
        return str(ipaddress.ip_address(self.server) + 10 * (user % 3))

    def places(self, user: int) -> tuple[str, str, str]:
        return self.server_of(user), f"as:{self.number}", f"country:{self.country}"


def sites(rng: random.Random) -> tuple[list[Site], dict[str, Any], str]:
    """Sites, the lists of names as the core takes them, and a table of networks."""
    found, suffixes, networks = [], [*SUFFIXES, (b"alone", 0, 2)], []
    for d in range(rng.randint(8, 10)):
        domain, category = f"d{d}.test", rng.choice([0, 1, 1, 2])
        suffixes.append((domain.encode(), 0, category))
        networks.append((f"198.51.{d}.0/25", 64500 + d, "IT"))
        networks.append((f"198.51.{d}.128/25", 64500 + d, rng.choice(["IT", "FR"])))
        for n in range(rng.choice([1, 1, 1, 3, 5])):
            half = rng.randrange(2)
            found.append(
                Site(
                    f"n{n}.{domain}",
                    f"*.{domain}",
                    [None, "category:news", "category:cdn"][category],
                    f"198.51.{d}.{1 + n + 128 * half}",
                    64500 + d,
                    networks[-2 + half][2],
                )
            )
    found.append(Site("x.alone", None, "category:cdn", "198.51.0.1", 64500, "IT"))
    lists = {"suffixes": suffixes, "categories": [(b"news", False), (b"cdn", False)]}
    table = "".join(f"{net}\t{number}\t{country}\n" for net, number, country in networks)
    return found, lists, table


def world_of(chains: list[tuple[str | None, ...]]) -> tuple[World, dict[int, str], list[Chain]]:
    """A world of the oracle, the text of each of its labels, and a chain for each value."""
    numbers: dict[object, int] = {}
    listed = [
        tuple(
            0 if label is None else numbers.setdefault((level, label), len(numbers) + 1)
            for level, label in enumerate(chain)
        )
        for chain in chains
    ]
    texts = {number: str(label) for (_level, label), number in numbers.items()}  # type: ignore[misc]
    distinct = list(dict.fromkeys(listed))
    return World(distinct, [1.0] * len(distinct)), texts, listed


def visits(rng: random.Random, n_sites: int, number: int) -> list[tuple[int, int, int]]:
    """(time, user, site) of visits in order of time, each a second or more after the one before."""
    t, made = START, []
    for _ in range(number):
        t += rng.choice([1, 1, 2, 30]) * SECOND
        made.append((t, rng.randrange(15), min(rng.randrange(n_sites), rng.randrange(n_sites))))
    return made


def frames_of(made: list[tuple[int, int, int]], found: list[Site]) -> list[Frame]:
    return merged(
        visit(user(u), found[s].name.encode(), t, found[s].server_of(u)) for t, u, s in made
    )


def expected(
    times: list[tuple[int, int]], chains: list[tuple[str | None, ...]], window: int, z: int
) -> list[tuple[int, str, int]]:
    """(visit, label, level) of each publication by the rule. times: (time, user) of each visit;
    chains: the labels of its value."""
    world, texts, listed = world_of(chains)
    rule = Rule(world, window, z_max=z)
    published = []
    for i, (t, u) in enumerate(times):
        level = rule.observe(t, u, listed[i], z)
        if level is not None:
            published.append((i, texts[listed[i][level]], level))
    return published


def table_of(tmp_path: Path, text: str) -> bytes:
    path = tmp_path / "networks.tsv"
    path.write_text(text)
    networks = read_networks("networks", [str(path)])
    assert networks is not None
    return networks.table


def capture(path: Path, frames: list[Frame]) -> Path:
    records = b"".join(
        pcap_record("<", f.t_ns // SECOND, f.t_ns % SECOND // 1000, f.data) for f in frames
    )
    path.write_bytes(pcap_header() + records)
    return path


def hellos(visits: Sequence[tuple[int, int, bytes]]) -> list[Frame]:
    """A ClientHello alone for each visit, (time, user, name), in a flow of its own. The times of a
    capture are in microseconds."""
    return [
        Tcp(user(u), ports=(1024 + i % 60000, 443), t_ns=t).say(hello(name)).frames[0]
        for i, (t, u, name) in enumerate(visits)
    ]
