# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The demo capture: what comes out is what brute force over its ground truth says."""

import base64
import ipaddress
import re
from collections import Counter
from pathlib import Path

import pytest
from oracle.epochs import Scope, pseudonym
from support.demo import (
    HOME_SUFFIXES,
    Line,
    Rules,
    as_seen,
    read_truth,
    released_lines,
    under,
    user_of,
)
from support.engine import (
    ALL,
    NO,
    TCP_COMPLETE,
    TCP_NOCOMPLETE,
    UDP_COMPLETE,
    nets,
    run_capture,
)
from support.packets import HOUR, MINUTE, SECOND

SETTINGS = [
    (1, HOUR),
    (2, 10 * MINUTE),
    (3, 10 * MINUTE),
    (5, HOUR),
    (20, HOUR),
    (20, 150 * MINUTE),
]
EVIDENCE_DELAY_NS = 30 * SECOND  # more than any answer of the demo takes


@pytest.fixture(scope="module")
def truth(demo_truth: Path) -> list[Line]:
    return read_truth(demo_truth)


@pytest.mark.parametrize(("z", "window_ns"), SETTINGS)
def test_the_stream_is_the_oracles(
    demo_pcap: Path, truth: list[Line], z: int, window_ns: int
) -> None:
    expected = released_lines(truth, Rules(z, window_ns))
    outcome = run_capture(demo_pcap, z=z, window_ns=window_ns)
    assert outcome.seen() == as_seen(expected)
    stats = outcome.stats
    assert stats["released"] + stats["dns_released"] == len(expected)
    assert outcome.released() == {line["name"] for line in expected}
    decided = stats["observations"] + stats["dns_observations"]
    assert decided == sum(map(Rules(z, window_ns).counts, truth))


def status_of(line: Line, released: bool) -> str:
    """What the record of a flow whose first name is this line's says of it."""
    if released:
        return "released"
    if not line["valid"]:
        return "none" if is_address(line["name"]) else "invalid"
    return "suppressed" if line["established"] else "unconfirmed"


def is_address(host: str) -> bool:
    """Whether the text is an address, in brackets or with a port behind."""
    bare = re.sub(r"^\[(.*)\](?::\d+)?$", r"\1", host)
    try:
        ipaddress.ip_address(bare if bare != host else host.partition(":")[0])
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(("z", "window_ns"), SETTINGS)
def test_a_record_has_its_flows_first_name(
    demo_pcap: Path, truth: list[Line], z: int, window_ns: int
) -> None:
    outcome = run_capture(demo_pcap, z=z, window_ns=window_ns)
    released = {id(line) for line in released_lines(truth, Rules(z, window_ns))}
    first: dict[int, Line] = {}
    for line in truth:
        first.setdefault(line["flow"], line)
    expected = Counter(
        (line["name"] if id(line) in released else None, status_of(line, id(line) in released))
        for line in first.values()
    )
    expected[None, "none"] += outcome.stats["flows_closed"] - expected.total()
    assert Counter((flow["name"], flow["name_status"]) for flow in outcome.flows) == expected
    named = Counter(flow["name"] for flow in outcome.flows if flow["name"] is not None)
    columns = ("c_tls_SNI", "http_hostname", "fqdn", "quic_SNI")
    logs = [*outcome.log(TCP_COMPLETE), *outcome.log(UDP_COMPLETE)]
    shown = Counter(line[c] for line in logs for c in columns if line.get(c, "-") != "-")
    unfinished = Counter(f["name"] for f in outcome.flows if f["proto"] == 6 and f["name"]) - shown
    assert shown <= named
    assert unfinished.total() <= len(outcome.log(TCP_NOCOMPLETE))  # which has no name columns


def test_z_1_releases_every_valid_name(demo_pcap: Path, truth: list[Line]) -> None:
    everything = {line["name"] for line in truth if line["valid"]}
    confirmed = {line["name"] for line in truth if line["valid"] and line["established"]}
    assert run_capture(demo_pcap, z=1).released() == confirmed
    assert run_capture(demo_pcap, z=1, established=False).released() == everything
    assert any(under(name, HOME_SUFFIXES) for name in confirmed)


@pytest.mark.parametrize(("z", "window_ns"), SETTINGS[1:])
def test_evidence_any_counts_more_and_never_too_much(
    demo_pcap: Path, truth: list[Line], z: int, window_ns: int
) -> None:
    """Names then count when seen, which the truth tells to within the evidence's delay."""
    outcome = run_capture(demo_pcap, z=z, window_ns=window_ns, established=False)
    names = outcome.released()
    assert names >= {line["name"] for line in released_lines(truth, Rules(z, window_ns))}
    wider = Rules(z, window_ns + EVIDENCE_DELAY_NS, established=False)
    narrower = Rules(z, window_ns - EVIDENCE_DELAY_NS, established=False)
    assert names <= {line["name"] for line in released_lines(truth, wider)}
    assert names >= {line["name"] for line in released_lines(truth, narrower)}
    for observation in outcome.observations:
        since, until = observation["t_ns"] - window_ns, observation["t_ns"] + EVIDENCE_DELAY_NS
        users = {
            user_of(line["client"])
            for line in truth
            if line["name"] == observation["name"] and since <= line["t_ns"] <= until
        }
        assert len(users) >= z


def test_spoofed_votes_release_a_name_only_without_evidence(demo_pcap: Path) -> None:
    assert "target-clinic.example" not in run_capture(demo_pcap, z=20).released()
    assert "target-clinic.example" in run_capture(demo_pcap, z=20, established=False).released()


def test_names_on_the_never_list_stay_inside(demo_pcap: Path, truth: list[Line]) -> None:
    never = ("search.example", "www.news.example", "test")
    rules = Rules(2, HOUR, never=never)
    outcome = run_capture(demo_pcap, z=2, never=[suffix.encode() for suffix in never])
    assert outcome.seen() == as_seen(released_lines(truth, rules))
    assert outcome.stats["suppressed_never_list"] > 0
    assert not any(under(name, never) for name in outcome.released())


def test_dns_kept_out_of_the_vote(demo_pcap: Path, truth: list[Line]) -> None:
    """Its names are shown where enough visitors share them."""
    rules = Rules(3, HOUR, dns_votes="no")
    outcome = run_capture(demo_pcap, z=3, dns_votes=NO)
    expected = released_lines(truth, rules)
    assert outcome.seen() == as_seen(expected)
    shown = sum(line["source"] == "dns" for line in expected)
    assert outcome.stats["dns_released"] == shown > 0
    asked = [line for line in truth if line["source"] == "dns" and rules.counts(line)]
    assert outcome.stats["dns_observations"] == len(asked) > shown


def test_dns_in_one_namespace(demo_pcap: Path, truth: list[Line]) -> None:
    outcome = run_capture(demo_pcap, z=3, dns_votes=ALL)
    expected = released_lines(truth, Rules(3, HOUR, dns_votes="all"))
    assert outcome.seen() == as_seen(expected)
    assert outcome.stats["released"] == len(expected)
    assert outcome.stats["dns_observations"] == 0
    assert len(expected) > len(released_lines(truth, Rules(3, HOUR)))


def test_only_internal_users_vote(demo_pcap: Path, truth: list[Line]) -> None:
    inside = [ipaddress.ip_network(text) for text in ("10.128.0.0/9", "fd20:3a7::/33")]

    def internal(address: str) -> bool:
        return any(ipaddress.ip_address(address) in net for net in inside)

    assert not any(internal(line["server"]) for line in truth)
    rules = Rules(2, HOUR, may_vote=lambda line: internal(line["client"]))
    outcome = run_capture(demo_pcap, z=2, internal=nets(*map(str, inside)))
    expected = released_lines(truth, rules)
    assert expected
    assert outcome.seen() == as_seen(expected)
    assert outcome.stats["flows_external"] > 0
    assert len(outcome.flows) == outcome.stats["flows_closed"] - outcome.stats["flows_external"]
    assert outcome.stats["flows_internal_both"] == 0


def test_pseudonyms_are_those_of_the_epochs_key(
    demo_pcap: Path, truth: list[Line], tmp_path: Path
) -> None:
    """Derived keys, worked out here from the published formula."""
    master, rotate_ns = bytes(range(100, 132)), 20 * MINUTE
    key_file = tmp_path / "key"
    key_file.write_bytes(base64.b64encode(master) + b"\n")
    key_file.chmod(0o600)
    scope = Scope(rotate_ns, z=5, window_ns=HOUR)
    epochs = set()

    def of_epoch(line: Line, started_before_ns: int) -> str:
        epoch = (line["t_ns"] - started_before_ns) // rotate_ns
        epochs.add(epoch)
        return pseudonym(master, scope, epoch, ipaddress.ip_address(line["client"]))

    outcome = run_capture(demo_pcap, z=5, key_file=str(key_file), rotate_ns=rotate_ns)
    clients = {(o["t_ns"], o["name"]): o["client"] for o in outcome.observations}
    lines = released_lines(truth, Rules(5, HOUR))
    assert len(clients) == len(lines)
    for line in lines:  # a flow's pseudonym is of the epoch in which it began
        wanted = {of_epoch(line, 0), of_epoch(line, 15 * SECOND)}
        assert clients[line["t_ns"], line["name"]] in wanted
    assert len(epochs) > 5
