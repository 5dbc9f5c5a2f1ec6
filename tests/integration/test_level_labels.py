# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Labels of `run --levels`: each decision is that of the rule in Python, every format has the
labels, and no output has a suppressed name."""

import csv
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.demo import under
from support.engine import ALL, LOGS, NO, Outcome, nets, run
from support.level_sites import (
    LEVELS,
    SUFFIXES,
    Site,
    capture,
    expected,
    frames_of,
    sites,
    table_of,
    visits,
)
from support.packet_run import emitted
from support.packets import (
    ACK,
    CLIENT,
    HOUR,
    MINUTE,
    MS,
    PSH,
    SECOND,
    START,
    SYN,
    Tcp,
    Udp,
    crowd,
    hello,
    merged,
    user,
    visit,
)

from zanon_net import _core, read_log
from zanon_net.errors import ConfigError
from zanon_net.pipeline.runner import run as run_to_folder

NAME_LEVELS = ("name", "domain", "category")


@pytest.mark.parametrize("batch", [1, 7, 1 << 14])
@pytest.mark.parametrize("seed", range(6))
def test_each_decision_is_the_rules(tmp_path: Path, seed: int, batch: int) -> None:
    rng = random.Random(seed)
    found, lists, text = sites(rng)
    made = visits(rng, len(found), 400)
    window, z = 10 * MINUTE, rng.randint(3, 5)
    outcome = run(
        frames_of(made, found),
        batch=batch,
        z=z,
        window_ns=window,
        levels=LEVELS,
        networks=table_of(tmp_path, text),
        internal=nets("10.0.0.0/8"),
        **lists,
    )
    times = [(t, u) for t, u, _site in made]
    named = expected(times, [found[s].labels() for _t, _u, s in made], window, z)
    shown = [(o["t_ns"], o["name"], o["name_level"]) for o in outcome.observations]
    assert shown == [(made[i][0] + 3 * MS, label, NAME_LEVELS[level]) for i, label, level in named]
    levels = Counter(level for _i, _label, level in named)
    assert levels[1] > 10  # the test must be able to fail
    assert levels[2] > 0
    assert outcome.stats["generalized_domain"] == levels[1]
    assert outcome.stats["generalized_category"] == levels[2]
    placed = expected(times, [found[s].places(u) for _t, u, s in made], window, z)
    levels = Counter(level for _i, _label, level in placed)
    assert outcome.stats["addr_released"] == levels[0]
    assert outcome.stats["generalized_as"] == levels[1]
    assert outcome.stats["generalized_country"] == levels[2]
    assert levels[1] > 10
    check_flows(
        outcome,
        made,
        found,
        {i: (label, level) for i, label, level in named},
        {i: (label, level) for i, label, level in placed},
    )


def check_flows(
    outcome: Outcome,
    made: list[tuple[int, int, int]],
    found: list[Site],
    named: dict[int, tuple[str, int]],
    placed: dict[int, tuple[str, int]],
) -> None:
    """Each record has the visit's label, and shows a server only with a released name."""
    flows = outcome.flows
    assert len(flows) == len(made)
    for i, flow in enumerate(flows):  # order "closing": visits do not overlap
        label, level = named.get(i, (None, None))
        if level == 0:
            place, kind = placed.get(i, (None, None))
            assert (flow["name_status"], flow["name_level"]) == ("released", "name")
            assert flow["server"] == (place if kind == 0 else None)
            assert flow["server_label"] == (place if kind in (1, 2) else None)
            wanted = None if kind is None else ("address", "as", "country")[kind]
            assert flow["server_level"] == wanted
            continue
        assert flow["name"] == label
        assert flow["name_level"] == (None if level is None else NAME_LEVELS[level])
        assert flow["name_status"] == ("suppressed" if level is None else "generalized")
        assert flow["server"] is flow["server_label"] is flow["server_level"] is None
        assert flow["t_start_ns"] % (60 * SECOND) == 0
        assert flow["c_bytes"] & (flow["c_bytes"] - 1) == 0 or flow["c_bytes"] in range(1 << 20)


# ---- what no label may be, and no output may hold ------------------------------------------------


def test_a_domain_with_a_listed_name_is_no_label() -> None:
    """A listed name below a domain makes the domain no label; its category is one."""
    lists = {
        "suffixes": [*SUFFIXES, (b"d.test", 0, 1), (b"e.test", 0, 1)],
        "categories": [(b"news", False), (b"cdn", False)],
    }
    frames = merged(
        visit(user(i), f"a{i}.{domain}.test".encode(), START + (2 * i + k) * SECOND)
        for i in range(8)
        for k, domain in enumerate(("d", "e"))
    )
    settings: dict[str, Any] = {"z": 4, "levels": ("domain", "category"), **lists}
    outcome = run(frames, never=[b"secret.d.test"], **settings)
    assert outcome.released() == {"*.e.test", "category:news"}
    assert run(frames, **settings).released() >= {"*.d.test", "*.e.test"}
    listed = merged(
        visit(user(i), f"x{i}.secret.d.test".encode(), START + i * SECOND) for i in range(8)
    )
    outcome = run(listed, never=[b"secret.d.test"], **settings)
    assert outcome.released() == set()
    assert outcome.stats["suppressed_never_list"] == 8


def test_no_suppressed_name_is_in_any_output(tmp_path: Path) -> None:
    rng = random.Random(3)
    found, lists, text = sites(rng)
    made = visits(rng, len(found), 300)
    networks = table_of(tmp_path, text)
    settings: dict[str, Any] = {"z": 3, "window_ns": 10 * MINUTE, "levels": LEVELS, **lists}
    outcome = run(
        frames_of(made, found), networks=networks, never=[found[0].name.encode()], **settings
    )
    shown = {o["name"] for o in outcome.observations}
    everything = outcome.everything()
    assert any(name.startswith("*.") for name in shown)
    for site in found:
        assert site.name == found[0].name or (site.name in shown) == (
            site.name.encode() in everything
        )
    assert found[0].name.encode() not in everything


def test_a_new_never_list_turns_labels_off_for_a_window() -> None:
    from support.engine import Taker, feed, make_engine

    lists = {"suffixes": list(SUFFIXES)}
    taker = Taker(make_engine(z=3, window_ns=HOUR, levels=("domain",), **lists))

    def names(start: int) -> None:
        feed(
            taker.engine,
            merged(visit(user(i), f"a{i}.d.test".encode(), start + i * SECOND) for i in range(5)),
        )

    names(START)
    taker.engine.set_never([b"x.other.test"])
    names(START + 10 * MINUTE)
    stats = taker.engine.level_stats
    assert stats is not None
    assert stats["paused"] == 5
    names(START + 2 * HOUR)
    outcome = taker.outcome()
    assert [o["t_ns"] // HOUR for o in outcome.observations].count(START // HOUR) == 3
    assert len(outcome.observations) == 6
    assert outcome.released() == {"*.d.test"}


def test_a_label_that_was_looked_up_before_follows_a_new_never_list() -> None:
    from support.engine import Taker, feed, make_engine

    lists = {"suffixes": list(SUFFIXES)}
    taker = Taker(make_engine(z=3, window_ns=HOUR, levels=("domain",), **lists))
    for start, never in ((START, [b"x.d.test"]), (START + 2 * HOUR, [b"x.other.test"])):
        talks = (visit(user(i), b"a%d.d.test" % i, start + i * SECOND) for i in range(5))
        feed(taker.engine, merged(talks))
        taker.engine.set_never(never)
    assert {o["t_ns"] // HOUR for o in taker.outcome().observations} == {START // HOUR}


# ---- caps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("batch", [1, 1 << 14])
def test_a_cap_on_prefixes_counts_at_each_label(tmp_path: Path, batch: int) -> None:
    """Users 0 to 5 are of one /24; each has a name and a server of its own."""

    def outcome(clients: list[str], **caps: Any) -> Outcome:
        frames = merged(
            visit(client, b"a%d.d.test" % i, START + i * SECOND, f"198.51.1.{1 + i}")
            for i, client in enumerate(clients)
        )
        return run(
            frames, batch=batch, z=3, levels=LEVELS, networks=table, internal=nets("10.0.0.0/8"),
            **lists, **caps
        )  # fmt: skip

    lists: dict[str, Any] = {
        "suffixes": [*SUFFIXES, (b"d.test", 0, 1)],
        "categories": [(b"news", False)],
    }
    table = table_of(tmp_path, "198.51.1.0/24\t64500\tIT\n")
    near = [f"10.7.1.{i}" for i in range(6)]
    far = [f"10.7.{i // 2}.{i}" for i in range(6)]
    free, capped = outcome(near), outcome(near, max_per_prefix=(24, 48, 2))
    assert (free.stats["generalized"], free.stats["generalized_as"]) == (4, 4)
    assert (capped.stats["generalized"], capped.stats["addr_generalized"]) == (0, 0)
    assert capped.stats["suppressed_prefix_cap"] == 4
    spread = outcome(far, max_per_prefix=(24, 48, 2))
    assert (spread.stats["generalized"], spread.stats["generalized_as"]) == (4, 4)
    assert spread.stats["suppressed_prefix_cap"] == 0


# ---- packets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["usual", "exact", "coarse_suppressed"])
@pytest.mark.parametrize("batch", [1, 7, 1 << 14])
def test_packets_show_no_labels(tmp_path: Path, key_file: str, how: str, batch: int) -> None:
    """A run with levels and its view emit the packets that they emit without levels."""
    rng = random.Random(4)
    found, lists, text = sites(rng)
    frames = frames_of(visits(rng, len(found), 120), found)
    settings: dict[str, Any] = {
        "z": 3,
        "window_ns": 10 * MINUTE,
        "internal": nets("10.0.0.0/8"),
        "key_file": key_file,
        "views": [(5, 0, 0, 0, 1, how == "exact")],
    }
    if how != "usual":
        settings[how] = True
    without = emitted(frames, **settings)
    networks = table_of(tmp_path, text)
    shown = emitted(frames, batch=batch, levels=LEVELS, networks=networks, **settings, **lists)
    assert shown.frames == without.frames
    assert shown.views[0].frames == without.views[0].frames
    assert shown.stats["generalized"] > 5
    assert shown.stats["addr_generalized"] > 0
    assert 0 < shown.stats["packets_passed"] == without.stats["packets_passed"] < len(frames)
    assert shown.dropped() == without.dropped()
    assert shown.views[0].stats == without.views[0].stats != shown.stats


@pytest.mark.parametrize("with_packets", [False, True])
def test_a_name_that_only_packets_show_casts_no_vote(with_packets: bool) -> None:
    """User 3 exposes a shared name without evidence, in a packet that leaves. The name is then
    marked for a further window, so user 10 casts no vote for the domain."""
    later = START + 17 * MINUTE
    unproven = Tcp(user(3), t_ns=START + 9 * MINUTE).segment(CLIENT, SYN)
    unproven.segment(CLIENT, PSH | ACK, hello(b"a.d.test"))
    frames = [
        *crowd(b"a.d.test", 3),
        *unproven.frames,
        *visit(user(10), b"a.d.test", later),
        *visit(user(11), b"b.d.test", later + SECOND),
        *visit(user(12), b"c.d.test", later + 2 * SECOND),
    ]
    outputs = LOGS + _core.ROWS + (("packets",) if with_packets else ())
    outcome = run(
        frames, z=3, window_ns=10 * MINUTE, levels=("domain",), suffixes=list(SUFFIXES),
        outputs=outputs,
    )  # fmt: skip
    assert outcome.released() == {"a.d.test"} | (set() if with_packets else {"*.d.test"})


# ---- DNS -----------------------------------------------------------------------------------------


def test_labels_of_dns_are_their_own() -> None:
    """With own votes a domain of DNS needs z users of DNS; with no votes DNS gets no label."""
    tls = merged(visit(user(i), f"a{i}.d.test".encode(), START + i * SECOND) for i in range(2))
    dns = merged(
        Udp(user(10 + i), t_ns=START + (10 + i) * SECOND).lookup(f"b{i}.d.test".encode()).frames
        for i in range(3)
    )
    settings: dict[str, Any] = {"z": 3, "levels": ("domain",), "suffixes": list(SUFFIXES)}
    own = run([*tls, *dns], **settings)
    assert [(o["name"], o["name_source"]) for o in own.observations] == [("*.d.test", "dns")]
    assert own.stats["dns_generalized"] == 1
    assert own.stats["generalized"] == 0
    together = run([*tls, *dns], dns_votes=ALL, **settings)
    assert len(together.observations) == 3
    none = run([*tls, *dns], dns_votes=NO, **settings)
    assert not none.observations


# ---- formats -------------------------------------------------------------------------------------


def test_every_format_has_the_labels(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    rng = random.Random(5)
    found, _lists, text = sites(rng)
    made = visits(rng, len(found), 300)
    (tmp_path / "rules.dat").write_text("test\norg\n")
    (tmp_path / "kinds.tsv").write_text(
        "".join(f"d{d}.test\t{'news' if d % 2 else 'cdn'}\n" for d in range(5)) + "alone\tcdn\n"
    )
    (tmp_path / "networks.tsv").write_text(text)
    report = run_to_folder(
        capture(tmp_path / "in.pcap", frames_of(made, found)),
        out=tmp_path / "logs",
        z=3,
        window="10m",
        levels=LEVELS,
        suffixes=tmp_path / "rules.dat",
        categories=[tmp_path / "kinds.tsv"],
        networks=[tmp_path / "networks.tsv"],
        format=("tstat", "csv", "jsonl", "parquet", "observations"),
        columns=("core", "layer7", "levels"),
    )
    logs = tmp_path / "logs"
    flows = [json.loads(line) for line in (logs / "flows.jsonl").open()]
    wanted = Counter((flow["name"], flow["name_level"], flow["server_label"]) for flow in flows)
    assert any(level == "domain" for _name, level, _label in wanted)
    assert any(label is not None for _name, _level, label in wanted)
    with (logs / "flows.csv").open() as file:
        rows = list(csv.DictReader(file))
    keys = ("name", "name_level", "server_label")
    assert Counter(tuple(row[key] or None for key in keys) for row in rows) == wanted
    for place in (logs, logs / "flows.jsonl", logs / "flows.csv"):
        table = read_log(place, into="arrow")
        read = zip(*(table[key].to_pylist() for key in keys), strict=True)
        assert Counter(read) == wanted, place
    tstat = read_log(logs, "tcp_complete", into="arrow")
    read = zip(*(tstat[key].to_pylist() for key in keys), strict=True)
    assert Counter(read) == wanted
    assert "name_level" in read_log(logs, "observations", into="arrow").column_names
    manifest = report.manifest
    assert manifest["configuration"]["anonymity"]["levels"] == list(LEVELS)
    levels = manifest["levels"]
    assert levels["published"]["domain"] == report.counters["generalized_domain"] > 0
    assert levels["users_behind_labels"]["smallest"] == 3
    assert [one["levels"] for one in levels["tables"]] == [
        ["name", "address"],
        ["domain", "as"],
        ["category", "country"],
    ]
    observed = [json.loads(line) for line in (logs / "observations.jsonl").open()]
    assert {o["name_level"] for o in observed} == {"name", "domain", "category"}
    text_of_manifest = json.dumps(manifest)
    assert not any(site.name in text_of_manifest for site in found)
    assert "*." not in text_of_manifest


def test_without_levels_nothing_is_added(demo_pcap: Path, tmp_path: Path) -> None:
    report = run_to_folder(demo_pcap, out=tmp_path / "logs", format=("jsonl", "observations"))
    assert report.manifest["levels"] is None
    assert b"name_level" not in (tmp_path / "logs/flows.jsonl").read_bytes()
    assert b"name_level" not in (tmp_path / "logs/observations.jsonl").read_bytes()


def test_what_excludes_levels(tmp_path: Path) -> None:
    from zanon_net.config.settings import Config

    rules = tmp_path / "rules.dat"
    rules.write_text("test\n")
    only_as = tmp_path / "as.txt"
    only_as.write_text("; pyasn\n198.51.100.0/24\t64500\n")
    kinds = tmp_path / "kinds.tsv"
    kinds.write_text("a.test\tnews\n")
    domain = {"levels": "domain", "suffixes": str(rules)}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"levels": "category"}, "levels: category needs --categories FILE"),
        ({"levels": "as"}, "levels: as needs --networks FILE"),
        ({"levels": "country", "networks": [str(only_as)]}, "networks: no row has a country"),
        (domain | {"z": 1001}, "levels: z and z_max must be at most 1,000"),
        (domain | {"count_at": "folder:/x", "probe": "p"}, "levels: a counter of probes"),
        (domain | {"shards": 2}, "levels: the processes of --shards"),
        ({"levels": "name"}, "levels: 'name' is not one of"),
        ({"levels": "domain,domain"}, "levels: domain is named twice"),
        ({"categories": [str(kinds)]}, "categories: are not used"),
        (domain | {"categories": [str(kinds)]}, "categories: are not used"),
        (domain | {"networks": [str(only_as)]}, "networks: are not used"),
        ({"suffixes": str(rules)}, "suffixes: are not used"),
        ({"levels": "as", "networks": [str(only_as)], "suffixes": str(rules)}, "suffixes: are not"),
    ]
    for given, message in cases:
        with pytest.raises(ConfigError, match=message):
            Config(**given)
    assert Config(levels="category,domain", suffixes=str(rules), categories=[str(kinds)]).to_dict()[
        "anonymity"
    ]["levels"] == ["domain", "category"]
    Config(categories=[str(kinds)], suffixes=str(rules), skip=["category:news"])


def test_a_suffix_list_that_was_found_goes_with_the_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from zanon_net.config.settings import Config

    (tmp_path / "rules.dat").write_text("test\n")
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    monkeypatch.setattr("zanon_net.config.name_lists.DEBIAN_SUFFIXES", tmp_path / "rules.dat")
    config = Config(levels="domain")
    assert config.to_dict()["anonymity"]["suffixes"]["name"] == "rules.dat"
    assert config.replace(levels=()).to_dict()["anonymity"]["suffixes"] is None


def test_the_demo_under_levels_hides_what_it_hides_without(demo_pcap: Path, tmp_path: Path) -> None:
    """Names are released as without levels; the others leave only as labels."""
    (tmp_path / "rules.dat").write_text("example\ntest\n")
    plain = run_to_folder(demo_pcap, out=tmp_path / "plain", z=5, format="observations")
    general = run_to_folder(
        demo_pcap,
        out=tmp_path / "levels",
        z=5,
        format="observations",
        levels="domain",
        suffixes=tmp_path / "rules.dat",
    )
    both = [
        [json.loads(line) for line in (folder / "observations.jsonl").open()]
        for folder in (tmp_path / "plain", tmp_path / "levels")
    ]
    names = [Counter((o["t_ns"], o["name"]) for o in seen if "*" not in o["name"]) for seen in both]
    assert names[0] == names[1]
    assert general.counters["generalized"] > 0
    assert plain.counters["released"] == general.counters["released"]
    labels = {o["name"] for o in both[1] if "*" in o["name"]}
    assert all(under(label.removeprefix("*."), ("example", "test")) for label in labels)
