# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Caps against invented users: the whole engine, and the command."""

import ipaddress
import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from oracle.user_caps import CappedVote, CapsOracle
from oracle.ztable import ZOracle
from support.cli import run_here
from support.demo import Line, Rules, as_seen, read_truth, user_of
from support.engine import make_engine, run, run_capture
from support.examples import each
from support.packet_run import emitted
from support.packets import HOUR, MINUTE, MS, SECOND, START, Frame, visit

from zanon_net import ConfigError

pytestmark = pytest.mark.source
PREFIX = (8, 32)  # networks of the demo with several users


@pytest.fixture(scope="module")
def truth(demo_truth: Path) -> list[Line]:
    return read_truth(demo_truth)


def released_with_caps(truth: list[Line], rules: Rules, **caps: int) -> tuple[list[Line], Counter]:
    """The lines whose observation is released, and the verdicts of the caps."""
    table, oracle = ZOracle(rules.z, rules.window_ns), CapsOracle(rules.window_ns, **caps)
    lines, verdicts = [], Counter()
    for line in filter(rules.counts, truth):
        user, attribute = user_of(line["client"]), (rules.namespace(line), line["name"])
        network = user_of(line["client"], PREFIX)
        verdict = oracle.vote(CappedVote(line["t_ns"], user, network, attribute))
        verdicts[verdict] += 1
        if verdict == "none" and table.observe(line["t_ns"], user, attribute):
            lines.append(line)
    return lines, verdicts


@each(
    "caps",
    [
        {"max_per_prefix": 2},
        {"max_names": 3},
        {"max_per_prefix": 4, "max_names": 2},
    ],
)
@each("dns_votes", ["own", "all"])
def test_the_stream_is_the_oracles(
    demo_pcap: Path, truth: list[Line], caps: dict[str, int], dns_votes: str
) -> None:
    rules = Rules(3, HOUR, dns_votes=dns_votes)
    expected, verdicts = released_with_caps(truth, rules, **caps)
    outcome = run_capture(
        demo_pcap, z=3, window_ns=HOUR, dns_votes=("own", "all").index(dns_votes),
        max_per_prefix=(*PREFIX, caps.get("max_per_prefix", 0)),
        max_names_per_user=caps.get("max_names"),
    )  # fmt: skip
    assert outcome.seen() == as_seen(expected)
    assert set(verdicts) == {"none", *("prefix" for _ in caps.keys() & {"max_per_prefix"}),
                             *("names" for _ in caps.keys() & {"max_names"})}  # fmt: skip
    if dns_votes == "all":
        assert outcome.stats["suppressed_prefix_cap"] == verdicts["prefix"]
        assert outcome.stats["suppressed_user_cap"] == verdicts["names"]
    assert outcome.stats["suppressed_new_user"] == outcome.stats["releases_by_new_users"] == 0


def test_new_users_of_the_demo_do_not_count(demo_pcap: Path, truth: list[Line]) -> None:
    """The truth has only flows with names, and users are also seen by the servers that they reach.
    The oracle's users are therefore younger."""
    rules = Rules(3, HOUR, dns_votes="all")
    outcome = run_capture(demo_pcap, z=3, window_ns=HOUR, dns_votes=1, min_user_age_ns=10 * MINUTE)
    fewer, all_ages = (
        as_seen(released_with_caps(truth, rules, min_age_ns=age)[0]) for age in (10 * MINUTE, 0)
    )
    assert fewer.total() > 100
    assert fewer <= outcome.seen() < all_ages
    stats = outcome.stats
    assert stats["suppressed_new_user"] > 100
    # The window is longer than the age.
    assert 0 < stats["releases_by_new_users"] <= stats["released"]


# ---- attacks ------------------------------------------------------------------------------------

SECRET = b"clinic.example"


def forged(addresses: Iterable[str], *, t_ns: int = START) -> list[Frame]:
    """A visit of each address, a second apart."""
    frames: list[Frame] = []
    for i, address in enumerate(addresses):
        server = "2001:db8::5" if ":" in address else "198.51.100.7"
        frames += visit(address, SECRET, t_ns + i * SECOND, server)
    return frames


def is_released(frames: list[Frame], **settings: Any) -> bool:
    """Returns true if the visit of one more user, in a network of its own, is released."""
    last = frames[-1].t_ns + SECOND
    outcome = run([*frames, *visit("10.200.0.1", SECRET, last)], z=5, window_ns=HOUR, **settings)
    return SECRET.decode() in outcome.released()


def test_forged_users_of_one_network_release_nothing() -> None:
    one = [f"10.7.1.{i}" for i in range(1, 51)]
    assert is_released(forged(one))
    assert not is_released(forged(one), max_per_prefix=(24, 48, 3))
    two = ["10.7.1.1", "10.7.1.2", "10.7.2.1", "10.7.2.2"]  # the summary says four of two networks
    assert is_released(forged(two), max_per_prefix=(24, 48, 2))
    assert not is_released(forged(two), max_per_prefix=(24, 48, 1))
    assert not is_released(forged(two), max_per_prefix=(16, 48, 3))


def test_ipv6_has_its_own_length() -> None:
    six = [f"fd00:0:1:{i}00::1" for i in range(1, 5)]  # four users of a /48
    assert is_released(forged(six), max_per_prefix=(24, 48, 4))
    assert not is_released(forged(six), max_per_prefix=(24, 48, 3))
    assert is_released(forged(six), max_per_prefix=(24, 56, 1))


def test_addresses_of_servers_are_capped_like_names() -> None:
    four = [f"10.7.1.{i}" for i in range(1, 5)]
    frames = [*forged(four), *visit("10.200.0.1", SECRET, START + 10 * SECOND)]
    free = run(frames, z=5)
    assert free.flows[-1]["server"] is not None
    capped = run(frames, z=5, max_per_prefix=(24, 48, 3))
    assert all(flow["server"] is None for flow in capped.flows)
    assert capped.stats["addr_suppressed"] == capped.stats["addr_observations"] == 5


def test_a_user_releases_no_more_names_than_its_cap() -> None:
    names = [b"a.example", b"b.example", b"c.example"]
    frames: list[Frame] = []
    for i, (name, n) in enumerate((name, n) for name in names for n in (1, 2)):
        frames += visit(f"10.7.1.{n}", name, START + i * SECOND)
    assert len(run(frames, z=2).released()) == 3
    capped = run(frames, z=2, max_names_per_user=2)
    assert capped.released() == {"a.example", "b.example"}
    assert capped.stats["suppressed_user_cap"] == 2
    again = visit("10.7.1.1", names[0], START + MINUTE)  # a name that counts already
    assert run([*frames, *again], z=2, max_names_per_user=2).stats["suppressed_user_cap"] == 2
    later = visit("10.7.1.1", names[2], START + 2 * HOUR)
    assert run([*frames, *later], z=2, max_names_per_user=2).stats["suppressed_user_cap"] == 2


def test_a_user_that_was_just_seen_does_not_count() -> None:
    four = [f"10.7.1.{i}" for i in range(1, 5)]
    seen = [frame for address in (*four, "10.200.0.1")
            for frame in visit(address, b"other.example", START - 11 * MINUTE)]  # fmt: skip
    assert not is_released(forged(four), min_user_age_ns=10 * MINUTE)
    assert is_released([*seen, *forged(four)], min_user_age_ns=10 * MINUTE)
    assert not is_released([*seen, *forged(four)], min_user_age_ns=12 * MINUTE)


@each("caps", [{"max_per_prefix": (24, 48, 1)}, {"max_names_per_user": 1},
               {"min_user_age_ns": HOUR}])  # fmt: skip
def test_packets_show_no_name_whose_vote_a_cap_refuses(caps: dict[str, Any], key_file: str) -> None:
    """Without a delay, packets show names that z others share before the vote is decided."""
    frames = visit("10.8.0.1", b"other.example", START - 10 * MINUTE)
    for i in range(1, 4):
        frames += visit(f"10.7.{i}.1", SECRET, START - 2 * HOUR + i)
        frames += visit(f"10.7.{i}.1", SECRET, START + i * MS)
    frames.sort(key=lambda frame: frame.t_ns)
    last = START + MINUTE
    if "max_per_prefix" in caps:
        frames += visit("10.8.0.2", SECRET, last - SECOND)
    frames += visit("10.8.0.1", SECRET, last)
    chosen = {"z": 3, "window_ns": 3 * HOUR, "hold_ns": 0, "key_file": key_file}
    assert any(frame.t_ns >= last for frame in emitted(frames, **chosen).frames)
    assert not any(frame.t_ns >= last for frame in emitted(frames, **chosen, **caps).frames)


# ---- limits and errors --------------------------------------------------------------------------


@each(
    "settings, message",
    [
        ({"z": 1, "max_names_per_user": 1}, "z is 1"),
        ({"min_user_age_ns": -1}, "must not be negative"),
        ({"max_per_prefix": (0, 48, 1)}, "1 to 32 bits"),
        ({"max_per_prefix": (24, 57, 1)}, "1 to 56 .IPv6., not 24 and 57"),
        ({"max_names_per_user": 1, "count_probe": "p", "key_file": "k"}, "a probe has no caps"),
        ({"max_names_per_user": 1, "window_ns": 1831 * 24 * HOUR}, "at most 5 years"),
    ],
)
def test_the_core_refuses(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make_engine(**settings)


def test_the_summary_and_the_manifest_say_what_an_attack_takes(
    demo_pcap: Path, tmp_path: Path
) -> None:
    caps = ["--max-per-prefix", "24,48=3", "--max-names-per-user", "40", "--min-user-age", "10m"]
    done = run_here("run", demo_pcap, "--out", tmp_path / "out", "--z", "5", *caps)
    assert (
        "4 release a name that one real user exposes, from 2 networks (/24, /48), "
        "for 40 names in a window, 10m after they were first seen"
    ) in " ".join(done.stderr.decode().split())
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_bytes())
    assert manifest["forged_users"] == {
        "name": 4, "networks": 2, "prefixes": [24, 48], "names": 40, "age": "10m",
    }  # fmt: skip
    shown = manifest["configuration"]["anonymity"]
    assert (shown["max_per_prefix"], shown["max_names_per_user"]) == ("24,48=3", 40)
    assert shown["min_user_age"] == "10m"
    assert manifest["decisions"]["suppressed"]["new_user"] > 0


def test_networks_of_the_demo() -> None:
    """`user_of` cuts as the core does."""
    assert user_of("10.9.8.7", PREFIX) == "10.0.0.0/8"
    assert ipaddress.ip_network(user_of("fd20:3a7:6::1", PREFIX)).prefixlen == 32
