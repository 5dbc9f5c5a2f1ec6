# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""bench/attacks: the logic of the attacks and of their scorer, on cases small enough to try all."""

import importlib
import itertools
import json
import math
from collections import defaultdict, deque
from dataclasses import replace
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from oracle.generalization import Cascade, Exposure, Naive, Rule, behind, worlds
from support.examples import each
from support.paths import ROOT

pytestmark = pytest.mark.source

MODULES = (
    "differencing",
    "inference",
    "known_visits",
    "labels",
    "linking",
    "markers",
    "order",
    "packet_linking",
    "packet_oracle",
    "packet_report",
    "packet_servers",
    "packet_suite",
    "packet_traffic",
    "packet_view",
    "population",
    "report",
    "score",
    "stacks",
    "suite",
    "tree",
    "view",
    "views",
)
LEAVES, BITS = 12, 6


@pytest.fixture(scope="module")
def attacks() -> SimpleNamespace:
    """The modules of bench/attacks, which import each other as scripts do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "bench" / "attacks")
        return SimpleNamespace(**{name: importlib.import_module(name) for name in MODULES})


def view_of(module: ModuleType, **columns: object):
    """A log whose columns are given, and zero otherwise."""
    count = len(next(iter(columns.values())))  # type: ignore[arg-type]
    numbers = dict.fromkeys(
        ("epoch", "client", "name", "start_ns", "end_ns", *module.SIZES),
        np.zeros(count, dtype=np.int64),
    )
    flags = {"tcp": np.ones(count, dtype=bool), "coarse": np.zeros(count, dtype=bool)}
    return module.View("log", **(numbers | flags | columns))


# --- tree linking -----------------------------------------------------------------------------


def trie(addresses: list[int], bits: int):
    """A tree as nested pairs; a leaf is the index of its address, None is nothing."""
    if not addresses:
        return None

    def grow(members: list[int], left: int):
        if not members:
            return None
        if not left:
            return members[0]
        bit = left - 1
        zeros = [i for i in members if not addresses[i] >> bit & 1]
        ones = [i for i in members if addresses[i] >> bit & 1]
        return (grow(zeros, bit), grow(ones, bit))

    return grow(list(range(len(addresses))), bits)


def arrangements(tree):
    """The tree under every choice of swaps, each once; swaps that change nothing are left out."""
    if not isinstance(tree, tuple):
        yield tree
        return
    left, right = tree
    for a, b in itertools.product(arrangements(left), arrangements(right)):
        yield (a, b)
        yield (b, a)


def worth(one, other, alike) -> float:
    """What it is worth to lay one tree on another."""
    if one is None or other is None:
        return 0.0
    if not isinstance(one, tuple):
        return float(alike[one, other])
    return sum(worth(a, b, alike) for a, b in zip(one, other, strict=True))


@each("seed", range(30))
def test_the_best_swaps_are_found(attacks: SimpleNamespace, seed: int) -> None:
    """Against all swaps of one tree, laid on the other."""
    rng = np.random.default_rng(seed)
    # Few leaves with long stems have 2^(their nodes) swaps: most of the small trees are bushy.
    bits, most = (3, 5) if seed % 2 else (4, 3)
    mine, theirs = (rng.choice(1 << bits, size=rng.integers(1, most + 1), replace=False)
                    for _ in range(2))  # fmt: skip
    alike = rng.integers(1, 5, size=(len(mine), len(theirs))).astype(np.float32)
    (one, leaf), (other, their_leaf) = (attacks.tree.levels(a, bits, bits) for a in (mine, theirs))
    ordered = np.empty_like(alike)
    ordered[np.ix_(leaf, their_leaf)] = alike
    pairs = attacks.tree.best_pairs(one, other, ordered, rng)
    found = sum(ordered[u, v] for u, v in pairs)
    fixed = trie(theirs.tolist(), bits)
    best = max(worth(swapped, fixed, alike) for swapped in arrangements(trie(mine.tolist(), bits)))
    assert found == best


@each("seed", range(20))
def test_up_to_twelve_leaves(attacks: SimpleNamespace, seed: int) -> None:
    """Twelve leaves have too many stems for all swaps one by one: the same, by memory of pairs."""
    rng = np.random.default_rng(seed)
    mine, theirs = (rng.choice(1 << BITS, size=rng.integers(6, LEAVES + 1), replace=False)
                    for _ in range(2))  # fmt: skip
    alike = rng.random((len(mine), len(theirs))).astype(np.float32)

    def best(one, other) -> float:
        if one is None or other is None:
            return 0.0
        if not isinstance(one, tuple):
            return float(alike[one, other])
        (a, b), (c, d) = one, other
        return max(best(a, c) + best(b, d), best(a, d) + best(b, c))

    (one, leaf), (other, their_leaf) = (attacks.tree.levels(a, BITS, BITS) for a in (mine, theirs))
    ordered = np.empty_like(alike)
    ordered[np.ix_(leaf, their_leaf)] = alike
    pairs = attacks.tree.best_pairs(one, other, ordered, rng)
    assert len({u for u, _ in pairs}) == len({v for _, v in pairs}) == len(pairs)
    wanted = best(trie(mine.tolist(), BITS), trie(theirs.tolist(), BITS))
    assert sum(ordered[u, v] for u, v in pairs) == pytest.approx(wanted, rel=1e-5)


def test_leaves_that_look_alike_are_found_as_often_as_chance_says(attacks: SimpleNamespace) -> None:
    """A full tree of 8 leaves: each leaf could be any, so one of 8 is right on average."""
    addresses = np.arange(8)
    levels, _ = attacks.tree.levels(addresses, 3, 3)
    rng = np.random.default_rng(5)
    runs = 800
    alike = np.ones((8, 8), dtype=np.float32)
    hits = sum(u == v for _ in range(runs)
               for u, v in attacks.tree.best_pairs(levels, levels, alike, rng))  # fmt: skip
    # Hits of one run depend on each other: the bound is that of the worst case, all or none.
    assert abs(hits / runs - 1) < 3 * math.sqrt(8 / runs)


def test_pseudonyms_that_keep_prefixes_are_joined(attacks: SimpleNamespace) -> None:
    """Crypto-PAn under two keys: most of a tree is joined by its shape; none of a random one."""
    rng = np.random.default_rng(3)
    addresses = np.unique(rng.integers(1 << 24, 1 << 25, size=64))
    keep = [attacks.views.CryptoPan(bytes([key]) * 32).anonymize_v4(addresses.astype(np.uint32))
            .astype(np.int64) for key in (1, 2)]  # fmt: skip
    alike = np.ones((len(addresses), len(addresses)), dtype=np.float32)
    partner = attacks.tree.pair_clients(alike, *keep, 32, rng)
    assert (partner == np.arange(len(addresses))).mean() > 0.5
    fresh = [rng.permutation(1 << 20)[: len(addresses)] for _ in range(2)]
    partner = attacks.tree.pair_clients(alike, *fresh, 32, rng)
    assert (partner == np.arange(len(addresses))).mean() < 0.2


# --- the scorer -------------------------------------------------------------------------------


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (10, 10), (1, 7), (37, 400), (5, 100_000)])
def test_wilson(attacks: SimpleNamespace, hits: int, trials: int) -> None:
    """Its ends are where the share lies 1.96 standard errors of the end away."""
    low, high = attacks.score.wilson(hits, trials)
    share = hits / trials
    for end in {low, high} - {0.0, 1.0}:
        error = 1.959963984540054 * math.sqrt(end * (1 - end) / trials)
        assert abs(share - end) == pytest.approx(error, rel=1e-9)
    assert low <= share <= high
    assert attacks.score.wilson(0, 0) == (0.0, 1.0)


def test_risk_is_what_lies_beyond_the_baseline(attacks: SimpleNamespace) -> None:
    score = attacks.score.Score(hits=60, trials=100, baseline=0.2)
    said = score.as_json()
    assert said["risk"] == pytest.approx(0.5)
    assert said["risk_low"] == pytest.approx((said["low"] - 0.2) / 0.8, abs=1e-6)
    assert "seconds" not in said


# --- logs -------------------------------------------------------------------------------------


def test_steps_are_powers_rounded_up(attacks: SimpleNamespace) -> None:
    steps = attacks.view.steps("sqrt2").tolist()
    assert steps[:9] == [1, 2, 3, 4, 6, 8, 12, 16, 23]
    for k, step in enumerate(steps[1:], start=2):
        assert (step - 1) ** 2 < 1 << k <= step**2
    assert attacks.view.steps("4").tolist()[:4] == [1, 4, 16, 64]
    assert attacks.view.steps("16").tolist()[:3] == [1, 16, 256]


def test_two_digits(attacks: SimpleNamespace) -> None:
    given = np.array([0, 7, 99, 100, 999, 1009, 123_456])
    assert attacks.view.two_digits(given).tolist() == [0, 7, 99, 100, 990, 1000, 120_000]


def test_populations_are_the_same_for_a_seed(attacks: SimpleNamespace) -> None:
    module = attacks.population
    scale = module.Scale(users=40, days=1)
    one, again, other = (module.make("usual", scale, seed) for seed in (7, 7, 8))
    for field in module.Flows.__slots__:
        assert (getattr(one.flows, field) == getattr(again.flows, field)).all()
    assert len(one.flows) != len(other.flows)
    assert one.hosts.names == again.hosts.names
    assert (np.diff(one.flows.start_ns) > 0).all()
    assert len(np.unique(one.address)) == 40


def test_links_are_the_same_for_a_seed(attacks: SimpleNamespace) -> None:
    population = attacks.population.make("usual", attacks.population.Scale(users=60, days=1), 7)
    view, flow = attacks.views.tstat_like(population)
    truth = attacks.score.Truth.of(view, population.flows, flow)
    knowledge = SimpleNamespace(names=len(population.hosts.names))
    epoch = int(view.epoch.min()) + 15
    guesses = [attacks.linking.link(view, knowledge, np.random.default_rng(1), epoch)
               for _ in range(2)]  # fmt: skip
    assert (guesses[0].answer == guesses[1].answer).all()
    users = truth.users_of(view)
    assert (users >= 0).all()
    assert len(np.unique(users)) == len(np.unique(population.flows.user))
    same = replace(view, rotates=False, client=population.flows.user[flow])
    truth = attacks.score.Truth.of(same, population.flows, flow)
    score = attacks.score.linked(
        same, truth, attacks.linking.link(same, knowledge, np.random.default_rng(1), epoch), 60
    )
    assert score.hits == score.trials > 0


def test_the_flow_behind_a_coarse_record_is_found(attacks: SimpleNamespace) -> None:
    """A log as `public` writes it: no client beside withheld names, rounded times, lines mixed."""
    view_module, rng = attacks.view, np.random.default_rng(4)
    population = attacks.population.make("usual", attacks.population.Scale(users=60, days=1), 3)
    flows = population.flows
    base, flow = attacks.views.tstat_like(population)
    hidden = flows.tcp[flow] & (flows.name[flow] % 3 > 0)
    rule = view_module.Rule("16", True, view_module.MINUTE, True, "minute-all")
    coarse, plain = rule.coarse(flows, flow), rule.named(flows, flow)
    columns = {field: np.where(hidden, coarse[field], plain[field]) for field in coarse}
    name = np.where(hidden, view_module.HIDDEN, base.name)
    client = np.where(hidden, view_module.NOBODY, base.client)
    view = replace(base, name=name, client=client, coarse=hidden, rule=rule, **columns)
    mixed = rng.permutation(len(view))
    view, flow = view.only(mixed), flow[mixed]
    found = attacks.views.find_flows(view, flows)
    assert (found >= 0).mean() > 0.99
    known = found >= 0
    same = rule.coarse(flows, found)
    for field in view_module.SIZES:
        assert (getattr(view, field) == same[field])[view.coarse & known].all()
    assert len(np.unique(found[known])) == known.sum()
    truth, wanted = (attacks.score.Truth.of(view, flows, one) for one in (found, flow))
    assert (truth.users_of(view) == wanted.users_of(view)).mean() > 0.98


def test_an_end_lies_between_those_around_it(attacks: SimpleNamespace) -> None:
    second = 10**9
    ends = np.array([100, 0, 104]) * second
    coarse = np.array([False, True, False])
    view = view_of(attacks.view, end_ns=np.where(coarse, 60 * second, ends), coarse=coarse)
    rng = np.random.default_rng(1)
    placed = attacks.order.order(view, None, rng, by_place=True)
    assert (placed.about.tolist(), placed.answer.tolist()) == ([1], [102 * second])
    middle = attacks.order.order(view, None, rng, by_place=False)
    assert middle.answer.tolist() == [90 * second]


def test_names_with_sizes_of_their_own_are_guessed(attacks: SimpleNamespace) -> None:
    """Twelve names, each with its own size; the labelled day says which is whose."""
    module = attacks.population
    rng = np.random.default_rng(2)
    count = 400
    name = rng.integers(0, 12, size=count)
    day = np.arange(count) // (count // 2)
    start = module.START_NS + day * module.DAY + np.arange(count) * 10**9
    size = 1 << (name + 3)
    ones = np.ones(count, dtype=np.int64)
    flows = module.Flows(rng.integers(0, 9, size=count), name, ones.astype(bool), start, start + 5,
                         ones, ones, size, size)  # fmt: skip
    knowledge = attacks.view.Knowledge(12, 20, flows.part(day == 0), None)
    rule = attacks.view.Rule()
    seen = rule.coarse(flows, np.arange(count))
    view = view_of(attacks.view, name=ones * attacks.view.HIDDEN, coarse=ones.astype(bool), **seen)
    for context in (False, True):
        guesses = attacks.inference.suppressed(view, knowledge, rng, context=context)
        assert len(guesses.about) == (day == 1).sum()
        assert (guesses.answer == name[guesses.about]).all()


# --- packets ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def scene(attacks: SimpleNamespace):
    """Two hours of 80 users' packets."""
    population = attacks.population.make("usual", attacks.population.Scale(users=80, days=1), 1)
    return attacks.packet_traffic.make_scene(population, 13)


@pytest.fixture(scope="module")
def kinds(attacks: SimpleNamespace, scene):
    """What is read in packets: with addresses mapped alone, ours, and ours with more."""
    module = attacks.packet_view
    more = {"tcp_timestamps": "keep", "keep_client_port": True, "server_address": "linkable"}
    return {
        "addresses": module.addresses_only(scene),
        "default": module.ours(scene, "default", 4)[0],
        "exact": module.ours(scene, "exact", 4, exact=True)[0],
        "more": module.ours(scene, "more", 4, exact=True, **more)[0],
    }


def test_options_of_a_syn_are_whole(attacks: SimpleNamespace) -> None:
    stacks = attacks.stacks.make_stacks(np.random.default_rng(1), 50)
    rows, clock_at = attacks.stacks.syn_options(stacks)
    for user, (row, at) in enumerate(zip(rows.tolist(), clock_at.tolist(), strict=True)):
        found, place = {}, 0
        while place < len(row) and row[place]:
            size = 1 if row[place] == 1 else row[place + 1]
            found[row[place]] = (place, row[place : place + size])
            place += size
        assert found[8] == (at - 2, [8, 10, *[0] * 8])
        assert found[2][1] == [2, 4, *divmod(int(stacks.mss[user]), 256)]
        assert set(found) <= {1, 2, 3, 4, 8}


def test_parts_of_a_hello_are_where_they_are_read(attacks: SimpleNamespace, scene, kinds) -> None:
    view = kinds["addresses"]
    which, rows = view.hello_bytes("name")
    names, flow = scene.population.hosts.names, scene.traffic.flow
    said = [bytes(row[2 : 2 + (int(row[0]) << 8 | int(row[1]))]).decode() for row in rows]
    assert len(said) == scene.flows.tcp.sum()
    assert said == [names[i] for i in scene.flows.name[flow[which]].tolist()]
    sessions = view.hello_bytes("session")[1]
    keys = np.stack([scene.flows.user[flow[which]], scene.flows.name[flow[which]]])
    assert len(np.unique(sessions, axis=0)) == len(np.unique(keys, axis=1)[0])


def test_numbers_are_followed(attacks: SimpleNamespace) -> None:
    near = attacks.packet_linking.near
    later, earlier = np.array([2.0, np.nan]), np.array([65_535.0, 4.0, 1.0])
    assert near(later, earlier, 65_536, forward=True)[0].tolist() == [-3.0, -65_534.0, -1.0]
    assert near(later, earlier, 65_536, forward=False)[0].tolist() == [-3.0, -2.0, -1.0]
    assert np.isneginf(near(later, earlier, 65_536, forward=True)[1]).all()


def test_packets_give_away_what_they_should_and_no_more(
    attacks: SimpleNamespace, scene, kinds
) -> None:
    """The live controls are right far beyond chance; by default numbers say nothing."""
    suite, all_kinds = attacks.packet_suite, attacks.packet_suite.KINDS
    scores = {key: dict(suite.link_rows(scene, view, all_kinds["addresses"], 1))
              for key, view in kinds.items()}  # fmt: skip
    kept = f"{suite.IDS}, kept"
    for name in ("sequence numbers", "ports", "ids", "clocks", "tickets", "stack", kept):
        assert suite.held(name, scores["addresses"][name], live=True), name
    for name in ("ports", "clocks"):
        assert suite.held(name, scores["more"][name], live=True), name
    for name in attacks.packet_linking.COUNTED:
        score = scores["default"][name]
        assert score.interval[0] <= score.baseline + suite.BEYOND, name


def test_withheld_flows_stay_away(attacks: SimpleNamespace, scene, kinds) -> None:
    module = attacks.packet_servers
    assert module.withheld_flows(scene, kinds["default"], 4).hits == 0
    assert module.withheld_flows(scene, kinds["exact"], 4).share == 1
    rng = np.random.default_rng(2)
    assert module.same_server(scene, kinds["exact"], rng).hits == 0
    assert module.same_server(scene, kinds["more"], rng).share == 1
    assert module.own_address(kinds["exact"]).hits == 0
    crawled = module.crawl(scene, 4, rng)
    scores = [module.named(scene, kinds["exact"], crawled, 1, (True, True), rng, shuffled=mixed)
              for mixed in (False, True)]  # fmt: skip
    assert scores[0].interval[0] > 5 * scores[0].baseline
    assert scores[1].interval[0] <= scores[1].baseline


def test_sizes_are_read_from_sequence_numbers(attacks: SimpleNamespace, scene, kinds) -> None:
    for key in ("addresses", "exact"):
        what = attacks.packet_servers.seen(kinds[key])
        truth = attacks.packet_servers.true_flows(scene, kinds[key])[what.flow]
        pushes = scene.flows.s_bytes[truth] == 3000  # whose segments are keepalives
        assert (what.sent == scene.flows.c_bytes[truth])[~pushes].all()
        assert (what.received == scene.flows.s_bytes[truth])[~pushes].all()


def test_dictionaries_say_nothing(attacks: SimpleNamespace) -> None:
    module, rng = attacks.packet_oracle, np.random.default_rng(3)
    words = module.dictionary(rng, 5_000)
    names = words[:40]
    packets = module.masked_packets(names, 1)
    assert {module.KINDS[which % 4] for which, *_ in packets} == {"TLS", "HTTP", "DNS"}
    left, original = (module.checksums(names, words, packets, given, rng)
                      for given in (module.as_left, module.original_checksum))  # fmt: skip
    assert left.interval[0] <= left.baseline
    assert original.share > 0.9
    for settings, differs in (({"exact": True}, 0), ({}, 0), ({"z": 1}, 1)):
        others = iter([module.replaced(names, words, rng)])
        assert module.differing(names, others, 1, **settings).hits == differs


def test_documents_have_the_committed_figures(attacks: SimpleNamespace) -> None:
    results = json.loads((ROOT / "bench" / "attacks" / "results.json").read_text("utf-8"))
    assert all(row["held"] for row in results["rows"] + results["labels"] if "control" in row)
    report = attacks.report
    for page, table in (
        ("bench/attacks/README.md", report.tables(results)),
        (report.LIMITS, report.short_table(results)),
    ):
        text = (ROOT / page).read_text("utf-8")
        assert report.renewed(text, table) == text
    assert results["bars"] == report.bars(results["rows"], results["forging"], results["labels"])
    assert not report.missed(results["bars"])
    assert not report.risen(results, results)
    row = next(row for row in results["rows"] if row.get("view") == "default" and "share" in row)
    assert (
        len(report.risen({"rows": [row | {"low": row["high"] + 0.01}], "forging": []}, results))
        == 1
    )


@pytest.mark.parametrize("kind", ["distinct", "usual", "alike"])
def test_a_log_for_partners_that_shows_too_many_names_misses_its_bar(
    attacks: SimpleNamespace, kind: str
) -> None:
    report = attacks.report
    rows = json.loads((ROOT / "bench" / "attacks" / "results.json").read_text("utf-8"))["rows"]
    row = report.find(rows, population=kind, view="default", attack="suppressed, with context")
    row["share"] = 0.0301
    (line,) = report.missed(report.bars(rows, [], []))
    assert line.startswith(f"{kind}, default: suppressed, with context: 3.01 %, to reach <= 3")


def test_a_label_with_fewer_than_z_users_misses_its_bar(attacks: SimpleNamespace) -> None:
    report = attacks.report
    results = json.loads((ROOT / "bench" / "attacks" / "results.json").read_text("utf-8"))
    ours = [row for row in results["labels"] if "control" not in row]
    assert [row["hits"] for row in ours] == [0] * 4
    for change in ({"hits": 1, "smallest": 19}, {"trials": 0}):
        (line,) = report.missed(report.bars([], [], [ours[0] | change, *ours[1:]]))
        assert line.startswith("labels of names: ")


def test_documents_have_the_committed_figures_of_packets(attacks: SimpleNamespace) -> None:
    report, folder = attacks.packet_report, ROOT / "bench" / "attacks"
    results = json.loads((folder / report.FILE).read_text("utf-8"))
    assert all(row["held"] for row in results["rows"] if "control" in row)
    assert results["bars"] == report.bars(results["rows"])
    for page, text in report.pages(folder, results).items():
        assert page.read_text("utf-8") == text
    assert not report.risen(results["rows"], results)


# --- known visits, markers, second logs -------------------------------------------------------


def known(module: ModuleType, **columns: object):
    """An attacker's knowledge of ten names, with these columns."""
    nothing = module.NOTHING
    return module.Knowledge(10, 20, None, module.OwnLogs(nothing, nothing, nothing), **columns)


def test_pseudonyms_are_found_by_visits_that_were_seen(attacks: SimpleNamespace) -> None:
    """Of pseudonyms 7, 8 and 9, the first has both visits of the first target. Two have those of
    the second target. A withheld name, another hour's time and another name match nothing."""
    view_module = attacks.view
    s = view_module.S
    names = np.array([1, 2, 1, 3, 4, 3, 4, -1, 2])
    times = np.array([100, 200, 100, 300, 400, 301, 402, 200, 290]) * s
    view = view_of(
        view_module, client=np.array([7, 7, 8, 8, 8, 9, 9, 9, 8]), name=names, start_ns=times
    )
    visits = view_module.Visits(
        np.zeros(3, dtype=np.int64),
        np.array([[1, 2], [3, 4], [5, 1]]),
        np.array([[101, 199], [300, 401], [100, 900]]) * s,
    )
    knowledge, rng = known(view_module, visits=visits), np.random.default_rng(1)
    near = {"visits": 2, "near_ns": 2 * s}
    alone = attacks.known_visits.singling_out(view, knowledge, rng, **near)
    assert alone.answer.tolist() == [0, -1, -1]
    found = attacks.known_visits.reid(view, knowledge, rng, **near, best=2)
    assert found.answer[0].tolist() == [0, 1]
    assert sorted(found.answer[1].tolist()) == [1, 2]
    assert found.answer[2].tolist() == [-1, -1]
    first = [
        attacks.known_visits.reid(view, knowledge, rng, **near, best=1).answer[1, 0]
        for _ in range(40)
    ]
    assert set(first) == {1, 2}  # ties by chance
    truth = attacks.score.Truth(
        None,
        None,
        attacks.view.pair_keys(np.zeros(3, int), np.array([7, 8, 9])),
        np.array([70, 80, 90]),
    )
    score = attacks.score.recognised(view, truth, found, np.array([70, 90, 70]))
    assert (score.hits, score.trials) == (2, 3)
    assert score.baseline == pytest.approx(2 / 3)


def test_times_that_are_rounded_still_match(attacks: SimpleNamespace) -> None:
    view_module = attacks.view
    s = view_module.S
    view = view_of(
        view_module, client=np.array([7]), name=np.array([1]), start_ns=np.array([60 * s])
    )
    view = replace(view, rule=view_module.Rule(time_ns=60 * s))
    for time_s, answer in ((60, 0), (119, 0), (120, 0), (121, -1), (59, 0), (58, -1)):
        visits = view_module.Visits(
            np.zeros(1, dtype=np.int64), np.array([[1]]), np.array([[time_s * s]])
        )
        knowledge = known(view_module, visits=visits)
        found = attacks.known_visits.singling_out(
            view, knowledge, np.random.default_rng(1), visits=1, near_ns=s
        )
        assert found.answer.tolist() == [answer], time_s


def test_own_hosts_are_found_by_their_sizes(attacks: SimpleNamespace) -> None:
    """The size of the second host is another pseudonym's too, the third host's name is withheld."""
    view_module = attacks.view
    view = view_of(
        view_module,
        client=np.array([7, 8, 9, 7]),
        name=np.array([1, 1, 1, -1]),
        c_bytes=np.array([1111, 2222, 2222, 3333]),
        s_bytes=np.array([5, 6, 6, 7]),
    )
    marked = view_module.Markers(
        np.zeros(3, dtype=np.int64),
        np.array([1, 1, 2]),
        np.array([1111, 2222, 3333]),
        np.array([5, 6, 7]),
    )
    knowledge, rng = known(view_module, markers=marked), np.random.default_rng(1)
    assert attacks.markers.markers(view, knowledge, rng).answer.tolist() == [0, -1, -1]
    rounded = replace(
        view, rule=view_module.Rule(digits=True), c_bytes=view_module.two_digits(view.c_bytes)
    )
    assert attacks.markers.markers(rounded, knowledge, rng).answer.tolist() == [0, -1, -1]


def test_a_second_log_names_what_the_first_withholds(attacks: SimpleNamespace) -> None:
    """The second log names three flows. The first log names one of them; two are withheld there,
    and look alike if they are of one minute and of sizes between the same steps."""
    view_module = attacks.view
    minute = view_module.MINUTE
    start = np.array([1, 2, 3]) * minute + 5
    exact = {"start_ns": start, "end_ns": start, "c_bytes": np.array([100, 200, 300])}
    second = view_of(view_module, name=np.array([1, 2, 3]), client=np.zeros(3, int), **exact)
    first = view_of(
        view_module,
        name=np.array([1, -1, -1]),
        client=np.zeros(3, int),
        start_ns=np.array([start[0], 2 * minute, 9 * minute]),
        end_ns=np.array([start[0], 2 * minute, 9 * minute]),
        c_bytes=np.array([100, 256, 363]),
    )
    rng = np.random.default_rng(1)
    guesses = attacks.differencing.differencing(first, second, rng)
    assert guesses.about.tolist() == [1, 2]
    assert guesses.answer.tolist() == [2, -1]
    other = replace(second, name=np.array([1, 2, 3]), start_ns=start[[0, 1, 1]])
    assert attacks.differencing.differencing(first, other, rng).answer.tolist() == [2, -1]
    alike = replace(other, c_bytes=np.array([100, 200, 210]))
    assert attacks.differencing.differencing(first, alike, rng).answer.tolist() == [-1, -1]


def test_a_category_sums_up_its_names(attacks: SimpleNamespace) -> None:
    worth = np.log(np.array([[0.4, 0.3, 0.3], [0.6, 0.2, 0.2]], dtype=np.float32))
    category = np.array([0, 1, 1])
    assert attacks.inference.by_category(worth, category).tolist() == [1, 0]


def test_what_an_attacker_knows_is_of_the_truth(attacks: SimpleNamespace) -> None:
    """Visits are the target's own and of one hour, and no other flow of the hour has a marker's
    name and sizes."""
    plan = attacks.suite.QUICK
    population = attacks.population.make("usual", attacks.population.Scale(users=60, days=2), 1)
    flows, hour = population.flows, attacks.view.HOUR
    visits, targets = attacks.suite.drawn_visits(population, plan)
    assert len(visits) > 20
    for row, user in enumerate(targets.tolist()):
        places = np.searchsorted(flows.start_ns, visits.time_ns[row])
        assert (flows.user[places] == user).all()
        assert (flows.name[places] == visits.name[row]).all()
        assert (visits.time_ns[row] // hour == visits.epoch[row]).all()
        assert len(set(places.tolist())) == attacks.suite.VISITS
    marked, owners = attacks.suite.drawn_markers(population, plan)
    columns = np.stack([flows.start_ns // hour, flows.name, flows.c_bytes, flows.s_bytes])
    for row, user in enumerate(owners.tolist()):
        wanted = [marked.epoch[row], marked.name[row], marked.c_bytes[row], marked.s_bytes[row]]
        same = (columns == np.array(wanted)[:, None]).all(axis=0) & flows.tcp
        assert flows.user[same].tolist() == [user]


# --- labels -----------------------------------------------------------------------------------


def groups_of(
    attacks: SimpleNamespace,
    visits: list[Exposure],
    log: list[tuple[int, int]],
    z: int,
    window: int,
) -> list[int]:
    """The users that the attack leaves behind each label."""
    numbers = {chain: i for i, chain in enumerate(dict.fromkeys(chain for *_, chain in visits))}
    chains = np.array(list(numbers))
    times, users, values = np.array([(t, user, numbers[chain]) for t, user, chain in visits]).T
    truth = attacks.score.Exposures.of(times, users, values, chains)
    labels = attacks.view.LabelLog(*np.array(log).T)
    left = attacks.differencing.uncovered(labels, chains, window)
    return attacks.score.users_behind(truth, labels, left, z, window).tolist()


def test_the_one_visitor_of_another_name_is_isolated(attacks: SimpleNamespace) -> None:
    """24 users visit a name of a domain, and the last five visits are published. Then the one visit
    to another name is published as the domain: all other users are taken away from this label."""
    visits = [(t, t, (1, 3)) for t in range(24)] + [(24, 24, (2, 3))]
    log = [(t, 1) for t in range(19, 24)] + [(24, 3)]
    assert groups_of(attacks, visits, log, 20, 100) == [1]
    assert groups_of(attacks, visits, log[-1:], 25, 100) == [25]
    assert groups_of(attacks, visits, log[-1:], 20, 100) == [1]  # z users share the name
    assert groups_of(attacks, visits, log[-1:], 20, 10) == [11]
    assert groups_of(attacks, [(t, user, (0, 3)) for t, user, _ in visits], log[-1:], 20, 100) == [
        25
    ]


@each("make", [Naive, Cascade, Rule])
@each("kind", ["names", "gaps", "addresses", "rows"])
def test_users_behind_labels_are_those_of_the_definition(
    attacks: SimpleNamespace, make: Any, kind: str
) -> None:
    """Against brute force, which counts from all exposures. Only the rule of the core keeps z."""
    z, found = 3, []
    for world, window, stream in itertools.islice(worlds(kind, 1), 4):
        rule, history, log, expected = make(world, window), [], [], []
        shown: dict[int, deque[int]] = defaultdict(deque)
        for t, (_t, user, chain, _z) in enumerate(stream, 1000):
            history.append((t, user, chain))
            level = rule.observe(t, user, chain, z)
            if level is None:
                continue
            if level > 0:
                label = chain[level], level
                expected.append(len(behind(rule, history, shown, label, window, t, z)))
            shown[chain[level]].append(t)
            log.append((t, chain[level]))
        assert groups_of(attacks, history, log, z, window) == expected
        found += expected
    assert len(found) > 50
    assert (min(found) >= z) == (make is Rule)


@each("settings", [{}, {"exact": True}, {"suppressed": "coarse", "coarse_client": "pseudonym"}])
def test_packets_are_the_same_for_internal_readers(
    attacks: SimpleNamespace, settings: dict[str, object]
) -> None:
    """So the figures of the default hold for `--for internal`; `public` refuses packets."""
    population = attacks.population.make("usual", attacks.population.Scale(users=60, days=1), 5)
    traffic = attacks.packet_traffic.make_scene(population, 13).traffic
    (one, fates), (other, their_fates) = (
        attacks.packet_view.anonymized(traffic, 5, 5, purpose=purpose, **settings)
        for purpose in ("internal", "partner")
    )
    assert len(one[3]) > 1000
    assert all(np.array_equal(mine, theirs) for mine, theirs in zip(one, other, strict=True))
    assert fates == their_fates
