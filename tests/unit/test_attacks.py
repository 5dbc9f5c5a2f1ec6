# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""bench/attacks: the logic of the attacks and of their scorer, on cases small enough to try all."""

import importlib
import itertools
import json
import math
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from support.paths import ROOT

pytestmark = pytest.mark.source

MODULES = (
    "inference",
    "linking",
    "order",
    "population",
    "report",
    "score",
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


@pytest.mark.parametrize("seed", range(30))
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


@pytest.mark.parametrize("seed", range(20))
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


def test_documents_have_the_committed_figures(attacks: SimpleNamespace) -> None:
    results = json.loads((ROOT / "bench" / "attacks" / "results.json").read_text("utf-8"))
    assert all(row["held"] for row in results["rows"] if "control" in row)
    report = attacks.report
    for page, table in (
        ("bench/attacks/README.md", report.tables(results)),
        (report.LIMITS, report.short_table(results)),
    ):
        text = (ROOT / page).read_text("utf-8")
        assert report.renewed(text, table) == text
    assert not report.risen(results, results)
    row = next(row for row in results["rows"] if row.get("view") == "default" and "share" in row)
    assert (
        len(report.risen({"rows": [row | {"low": row["high"] + 0.01}], "forging": []}, results))
        == 1
    )
