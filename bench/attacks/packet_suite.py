# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Every attack on every kind of packets, with its controls, as rows of figures.

*Live* control: on packets that are known to disclose, an attack must be right at least five times
as often as by chance, by the lower end of its interval; else it is broken. *Dead* control: on sizes
of another flow, an attack must not be above its baseline by more than its interval.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import packet_oracle as oracle
import packet_servers as servers
from packet_linking import COUNTED, STAYING, Attack, Two, guess
from packet_traffic import Scene, make_scene
from packet_view import PacketView, addresses_only, ours
from population import Ints, Scale, make
from score import Score

from zanon_net import Config, ConfigError

BEYOND = 0.02  # share that an attack may find beyond chance
LIVE_TIMES = 5.0
KIND = "usual"
GRAIN = 16_384  # of the positions of coarse packets
COARSE = {"suppressed": "coarse", "coarse_client": "pseudonym"}
"""Settings of coarse packets that show the client. Without the client they cannot be linked."""
IDS = "connection IDs"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PacketPlan:
    """Parameters of a run. names, captures: numbers of names and captures for the oracle."""

    scale: Scale
    z: int
    names: int
    captures: int
    hour: int = 13
    seed: int = 1


WHOLE_PACKETS = PacketPlan(Scale(days=1), 20, 2000, 20)
QUICK_PACKETS = PacketPlan(Scale(users=300, days=1), 10, 80, 2)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of packets: its label, its settings; the links that are tried.

    live: the attacks of which it is the live control. grain: size to whose multiples sizes are
    rounded up, for guesses of withheld names.
    """

    label: str
    settings: dict[str, Any] | None
    links: tuple[str, ...] = ()
    live: tuple[str, ...] = ()
    grain: int | None = None


ALL = (*COUNTED, *STAYING)
TELLING = (*(name for name in ALL if name != IDS), f"{IDS}, kept", "next port")
KINDS = {
    "addresses": Kind("only addresses mapped, as other tools do", None, ALL, TELLING),
    "default": Kind("ours, default", {}, ALL),
    "exact": Kind("ours, --exact", {"exact": True}, ALL, ("sizes", "sizes, length"), 1),
    "coarse": Kind("ours, --suppressed coarse", COARSE, ALL, (), GRAIN),
    "linkable": Kind(
        "ours, --exact --server-address linkable",
        {"exact": True, "server_address": "linkable"},
        live=("same server",),
    ),
    "port": Kind(
        "ours, --keep-client-port",
        {"keep_client_port": True},
        ("ports",),
        ("ports", "next port"),
    ),
    "clock": Kind(
        "ours, --tcp-timestamps keep",
        {"tcp_timestamps": "keep"},
        ("clocks", "clock skew"),
        ("clocks", "clock skew"),
    ),
    "offset": Kind(
        "ours, --tcp-timestamps offset", {"tcp_timestamps": "offset"}, ("clocks", "clock skew")
    ),
    "hello": Kind(
        "ours, --fingerprint keep",
        {"fingerprint": "keep"},
        ("hello", "names, stack, hello"),
        ("hello",),
    ),
    "ttl": Kind("ours, --ttl keep", {"ttl": "keep"}, ("stack", "names, stack, hello"), ("stack",)),
}


def missing(kind: Kind) -> str:
    """Returns why this build cannot make packets of a kind; empty if it can."""
    try:
        Config().replace(**(kind.settings or {}))
    except (ConfigError, TypeError, ValueError) as error:
        return str(error)
    return ""


def link_rows(scene: Scene, view: PacketView, kind: Kind, seed: int) -> Iterator[tuple[str, Score]]:
    """Yields the linking attacks: pseudonyms of the second hour whose user is found in the
    first."""
    two = Two.of(view)
    user = np.full(len(view.groups[0]), -1)
    user[view.groups[2]] = scene.flows.user[
        scene.traffic.flow[np.searchsorted(scene.traffic.t_ns, view.t_ns)]
    ]
    for name in kind.links:
        attack = (COUNTED | STAYING)[name]
        found = linked(two, attack, user, np.random.default_rng(seed))
        if name == IDS:
            keeps = scene.stacks.keeps_id[user[two.later]] > 0
            yield f"{name}, kept", scored(found, keeps, two)
            found = (found[0], found[1] & ~keeps)
        yield name, scored(found, np.ones(len(two.later), dtype=bool), two)


def linked(two: Two, attack: Attack, user: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Returns for each pair of the second epoch whether its user was found, and whether it can be
    found."""
    guesses = guess(two, attack, rng)
    return user[guesses] == user[two.later], np.isin(user[two.later], user[two.earlier])


def scored(found: tuple[Ints, Ints], which: Ints, two: Two) -> Score:
    """Baseline: one of the first epoch's pseudonyms."""
    trials = found[1] & which
    hits = int((found[0] & trials).sum())
    return Score(hits, int(trials.sum()), 1 / max(1, len(two.earlier)))


def server_rows(
    scene: Scene, view: PacketView, kind: Kind, plan: PacketPlan, crawled: servers.Crawl
) -> Iterator[tuple[str, Score]]:
    """Yields the attacks on servers."""
    rng = np.random.default_rng(plan.seed)
    yield "withheld flows", servers.withheld_flows(scene, view, plan.z)
    if kind.grain:
        for name, use in (
            ("length of the name", (False, True)),
            ("sizes", (True, False)),
            ("sizes, length", (True, True)),
        ):
            yield name, servers.named(scene, view, crawled, kind.grain, use, rng)
        yield (
            "sizes, shuffled",
            servers.named(scene, view, crawled, kind.grain, (True, True), rng, shuffled=True),
        )
        yield "own address", servers.own_address(view)
        yield "one pseudonym for two servers", servers.collisions(view, scene)
    yield "same server", servers.same_server(scene, view, rng)
    yield "next port", servers.next_port(view)


def oracle_rows(plan: PacketPlan) -> Iterator[tuple[str, str, Score]]:
    """Yields (kind, attack, figure) of a dictionary against masked names."""
    rng = np.random.default_rng(plan.seed)
    words = oracle.dictionary(rng)
    names = [words[i] for i in rng.choice(len(words), size=plan.names, replace=False)]
    packets = oracle.masked_packets(names, plan.seed)
    for key, given in (("exact", oracle.as_left), ("checksum", oracle.original_checksum)):
        yield key, "dictionary", oracle.checksums(names, words, packets, given, rng)
    few = names[: plan.names // 5]
    for key, settings in (
        ("exact", {"exact": True}),
        ("default", {}),
        ("coarse", COARSE),
        ("any z", {"z": 1}),
    ):
        if not missing(Kind(key, settings)):
            others = (oracle.replaced(few, words, rng) for _ in range(plan.captures))
            yield key, "other names", oracle.differing(few, others, plan.seed, **settings)


def held(name: str, score: Score, live: bool) -> bool:
    """Returns true if a control held."""
    low = score.interval[0]
    return low > LIVE_TIMES * score.baseline if live else score.risk_of(low) <= 0


LIVE_ORACLES = ("checksum", "any z")


def attack_packets(plan: PacketPlan) -> Iterator[Row]:
    """Yields All rows: figures, controls, and packets that this build cannot make."""
    scene = make_scene(make(KIND, plan.scale, plan.seed), plan.hour)
    crawled = servers.crawl(scene, plan.z, np.random.default_rng([plan.seed, 3]))
    frames, flows = len(scene.traffic.t_ns), len(scene.flows)
    yield {
        "population": KIND,
        "users": plan.scale.users,
        "flows": flows,
        "frames": frames,
        "names": len(scene.population.hosts.names),
        "z": plan.z,
    }
    for key, kind in KINDS.items():
        if reason := missing(kind):
            yield {"view": key, "unavailable": f"this build says: {reason}"}
            continue
        view = addresses_only(scene) if kind.settings is None else (
            ours(scene, kind.label, plan.z, **kind.settings)[0])  # fmt: skip
        yield from view_rows(scene, view, key, plan, crawled)
    for key, name, score in oracle_rows(plan):
        row = {"view": key, "attack": name} | score.as_json()
        if key in LIVE_ORACLES:
            row |= {"control": "live", "held": held(name, score, live=True)}
        yield row


def view_rows(
    scene: Scene, view: PacketView, key: str, plan: PacketPlan, crawled: servers.Crawl
) -> Iterator[Row]:
    """Yields the rows of one kind of packets."""
    kind = KINDS[key]
    rows = list(link_rows(scene, view, kind, plan.seed))
    rows += server_rows(scene, view, kind, plan, crawled)
    for name, score in rows:
        if not score.trials:
            continue
        row = {"view": key, "attack": name} | score.as_json()
        if name in kind.live:
            row |= {"control": "live", "held": held(name, score, live=True)}
        elif name.endswith("shuffled"):
            row |= {"control": "dead", "held": held(name, score, live=False)}
        yield row
