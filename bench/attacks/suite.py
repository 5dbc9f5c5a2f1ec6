# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Every attack on every log of a population, with its controls, as rows of figures.

*Live* control: on plainly hashed clients, with nothing else hidden, each attack must answer 95 %
right; else the attack is broken, and its results on other logs mean nothing. *Dead* control: on a
log whose lines have pseudonyms and measurements of other lines, its risk must not be above 0 by
more than its interval.
"""

import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import packets
from differencing import differencing
from inference import suppressed
from known_visits import reid, singling_out
from linking import link, two_epochs
from markers import markers
from operators import operator
from order import order
from population import DAY, HOUR, ROUND_TRIP_NS, START_NS, Ints, Population, S, Scale, make
from score import Score, Truth, linked, named, recognised, singled_out, timed
from tree import BITS, tree
from view import Guesses, Knowledge, Markers, OwnLogs, View, Visits, row_keys, two_digits
from views import DERIVED, OURS, lengths, make_ours, missing, raw, read_ours

LIVE = 0.95
Row = dict[str, Any]
Pairwise = Callable[[View, Knowledge, np.random.Generator, int], Guesses]


@dataclass(frozen=True, slots=True)
class Plan:
    """Parameters of a run: populations, their scale, z, hours of the last day whose links are
    tried."""

    kinds: tuple[str, ...]
    scale: Scale
    z: int
    hours: tuple[int, ...]
    seed: int = 1

    @property
    def last_day(self) -> int:
        """When the day that is attacked begins."""
        return START_NS + (self.scale.days - 1) * DAY

    @property
    def from_ns(self) -> int:
        """Begin of the command's captures: a window before that day."""
        return self.last_day - HOUR


WHOLE = Plan(("distinct", "usual", "alike"), Scale(), 20, (10, 14, 18))
QUICK = Plan(("usual",), Scale(users=300, days=2), 10, (10, 12, 14, 16, 18))

VISITS = 5  # that are known of a target; most attacks use three
TARGETS, MARKED = 4000, 500
CATEGORIES = 20
REID: dict[str, dict[str, int]] = {
    "re-ID@1, one visit, 60 s": {"visits": 1, "near_ns": 60 * S, "best": 1},
    "re-ID@1, 1 s": {"visits": 3, "near_ns": S, "best": 1},
    "re-ID@1, 60 s": {"visits": 3, "near_ns": 60 * S, "best": 1},
    "re-ID@1, 600 s": {"visits": 3, "near_ns": 600 * S, "best": 1},
    "re-ID@5, 60 s": {"visits": 3, "near_ns": 60 * S, "best": 5},
    "re-ID@1, five visits, 60 s": {"visits": 5, "near_ns": 60 * S, "best": 1},
}
LINKS: dict[str, Pairwise] = {
    "link": link,
    "tree": lambda v, k, r, e: tree(v, k, r, e, behaviour=False, depth=BITS),
    "link, tree": lambda v, k, r, e: tree(v, k, r, e, behaviour=True),
    "link, tree, all bits": lambda v, k, r, e: tree(v, k, r, e, behaviour=True, depth=BITS),
}
ALL = ("links", "order", "suppressed", "operator", "known")
WHICH = {
    "raw": ALL,
    "hash": ALL,
    "crypto-pan": ALL,
    "tstat": ALL,
    "alpha-mon": ALL,
    "default": ALL,
    "internal": ALL,
    "client": ("suppressed",),
    "public": ALL,
    "pools": ("links",),
    "pan": ("links",),
}
DIFFERENCED = ("alpha-mon", "default", "internal", "public")
KNOWLEDGE = {
    "link": "the log",
    "tree": "the log",
    "link, tree": "the log and its manifest",
    "link, tree, all bits": "the log",
    "order, by place": "the log",
    "order, middle of the minute": "the log",
    "suppressed": "labelled flows of the days before",
    "suppressed, with context": "labelled flows of the days before",
    "operator": "own log of the largest third party",
    "five operators": "own logs of the five largest third parties",
    "operator, by set": "own log of the largest third party",
    "five operators, by set": "own logs of the five largest third parties",
    "suppressed, category": "labelled flows of the days before, a public list of categories",
    "singling out": "three visits of the target, to 60 s",
    "re-ID@1, one visit, 60 s": "one visit of the target, to 60 s",
    "re-ID@1, 1 s": "three visits of the target, to 1 s",
    "re-ID@1, 60 s": "three visits of the target, to 60 s",
    "re-ID@1, 600 s": "three visits of the target, to 600 s",
    "re-ID@5, 60 s": "three visits of the target, to 60 s",
    "re-ID@1, five visits, 60 s": "five visits of the target, to 60 s",
    "markers": "sizes of a flow of each own host",
    "differencing": "a log of the same traffic at half the z",
}
# On a log that shows all, these reach less than the live control asks, because what is known fits
# several users.
AMBIGUOUS = ("re-ID@1, one visit, 60 s", "re-ID@1, 600 s")


def drawn_visits(population: Population, plan: Plan) -> tuple[Visits, Ints]:
    """Draws targets, who visited enough sites in an hour of the plan, and some of their visits.

    Returns the visits, and the user of each target.
    """
    rng = np.random.default_rng([plan.seed, 1])
    flows, hour = population.flows, population.flows.start_ns // HOUR
    hours = [plan.last_day // HOUR + hour for hour in plan.hours]
    visits = flows.tcp & np.isin(hour, hours) & ~population.hosts.third_party[flows.name]
    places = rng.permutation(np.flatnonzero(visits))
    key = hour[places] * plan.scale.users + flows.user[places]
    order = np.argsort(key, kind="stable")
    places, key = places[order], key[order]
    rank = np.arange(len(key)) - np.searchsorted(key, key)
    enough = key[rank == VISITS - 1]
    kept = (rank < VISITS) & np.isin(key, np.sort(rng.permutation(enough)[:TARGETS]))
    drawn = places[kept].reshape(-1, VISITS)
    seen = Visits(hour[drawn[:, 0]], flows.name[drawn], flows.start_ns[drawn])
    return seen, flows.user[drawn[:, 0]]


def drawn_markers(population: Population, plan: Plan) -> tuple[Markers, Ints]:
    """Draws flows whose sizes no other flow of the hour to that name has, as if their hosts had
    chosen them. Returns them, and the user of each."""
    rng = np.random.default_rng([plan.seed, 2])
    flows = population.flows
    places = np.flatnonzero(flows.tcp & (flows.start_ns >= plan.last_day))
    hour = flows.start_ns[places] // HOUR
    rounded = two_digits(flows.c_bytes[places]), two_digits(flows.s_bytes[places])
    key = row_keys(hour, flows.name[places], *rounded)
    _, first, count = np.unique(key, return_index=True, return_counts=True)
    alone = rng.permutation(np.sort(first[count == 1]))[:MARKED]
    drawn = places[alone]
    marked = Markers(hour[alone], flows.name[drawn], flows.c_bytes[drawn], flows.s_bytes[drawn])
    return marked, flows.user[drawn]


def categories(population: Population) -> Ints:
    """Returns a category for each name, equal for the names of a site, an app or a third party."""
    own = re.compile(r"^(?:www|static|api|h\d+)\.")
    domains = [own.sub("", text) for text in population.hosts.names]
    return np.array([zlib.crc32(text.encode()) % CATEGORIES for text in domains])


def knowledge_of(population: Population, plan: Plan) -> tuple[Knowledge, Ints, Ints]:
    """Labelled flows are those before the last day; operators logged what came to third parties.

    Returns the knowledge, the user of each target and the user of each marked flow.
    """
    flows = population.flows
    third = flows.tcp & population.hosts.third_party[flows.name]
    own = OwnLogs(flows.user[third], flows.name[third], flows.start_ns[third] + ROUND_TRIP_NS // 2)
    before = flows.part(flows.start_ns < plan.last_day)
    visits, targets = drawn_visits(population, plan)
    marked, owners = drawn_markers(population, plan)
    knowledge = Knowledge(
        len(population.hosts.names),
        plan.z,
        before,
        own,
        visits,
        marked,
        categories(population),
        lengths(population),
    )
    return knowledge, targets, owners


def link_scores(
    view: View, truth: Truth, knowledge: Knowledge, plan: Plan
) -> Iterator[tuple[str, Score]]:
    """Yields the linking attacks over the plan's hours, each hour to the one before."""
    epochs = [plan.last_day // HOUR + hour for hour in plan.hours]
    candidates = int(np.mean([len(two_epochs(view, epoch)[1]) for epoch in epochs]))
    for name, attack in LINKS.items():
        rng = np.random.default_rng(plan.seed)
        guesses = [attack(view, knowledge, rng, epoch) for epoch in epochs]
        joined = Guesses(
            np.concatenate([g.about for g in guesses]), np.concatenate([g.answer for g in guesses])
        )
        yield name, linked(view, truth, joined, candidates)


def scores(
    view: View, truth: Truth, knowledge: Knowledge, plan: Plan, which: tuple[str, ...]
) -> Iterator[tuple[str, Score]]:
    """Yields the attacks of these groups on a view."""
    if "links" in which:
        yield from link_scores(view, truth, knowledge, plan)
    if "order" in which:
        for name, by_place in (("by place", True), ("middle of the minute", False)):
            rng = np.random.default_rng(plan.seed)
            guesses = order(view, knowledge, rng, by_place=by_place)
            yield f"order, {name}", timed(truth, guesses)
    if "suppressed" in which:
        for name, context in (("suppressed", False), ("suppressed, with context", True)):
            rng = np.random.default_rng(plan.seed)
            yield name, named(truth, suppressed(view, knowledge, rng, context=context))
        rng = np.random.default_rng(plan.seed)
        guesses = suppressed(view, knowledge, rng, context=True, category=True)
        yield "suppressed, category", named(truth, guesses, knowledge.category)
    if "known" in which:
        yield from known_scores(view, truth, knowledge, plan)
    if "operator" in which:
        for by_set in (False, True):
            for name, largest in (("operator", 1), ("five operators", 5)):
                rng = np.random.default_rng(plan.seed)
                guesses = operator(
                    view, knowledge, rng, largest=largest, by_set=by_set, begin_ns=plan.last_day
                )
                yield name + ", by set" * by_set, singled_out(view, truth, guesses)


def known_scores(
    view: View, truth: Truth, knowledge: Knowledge, plan: Plan
) -> Iterator[tuple[str, Score]]:
    """Yields the attacks that know some visits or flows of a target."""
    rng = np.random.default_rng(plan.seed)
    guesses = singling_out(view, knowledge, rng, visits=3, near_ns=60 * S)
    yield "singling out", recognised(view, truth, guesses, truth.targets)
    for name, options in REID.items():
        rng = np.random.default_rng(plan.seed)
        guesses = reid(view, knowledge, rng, **options)
        yield name, recognised(view, truth, guesses, truth.targets)
    rng = np.random.default_rng(plan.seed)
    yield "markers", recognised(view, truth, markers(view, knowledge, rng), truth.owners)


def differencing_score(
    key: str, view: View, truth: Truth, log: Callable[[str, int], View], plan: Plan
) -> Score | None:
    """Scores the attack with a second log at half the z; None: no second log is made of this one.

    For the live control, the names below z are hidden in the first log, and the second shows all.
    """
    if key == "hash":
        first, second = log("alpha-mon", plan.z), view
    elif key in DIFFERENCED:
        first, second = view, log(key, plan.z // 2)
    else:
        return None
    return named(truth, differencing(first, second, np.random.default_rng(plan.seed)))


def dead(view: View, truth: Truth, rng: np.random.Generator) -> tuple[View, Truth]:
    """Returns the log with lines that disclose nothing, and pseudonyms dealt again."""
    return view.shuffled(rng), truth.dealt_anew(rng)


def yardstick(population: Population, knowledge: Knowledge, plan: Plan) -> Row:
    """Users found again from one day to the next by unfiltered names, as in studies of DNS logs."""
    view, flow = raw(population)
    view = replace(view, epoch=view.start_ns // DAY, rotates=True)
    truth = Truth.of(view, population.flows, flow)
    rng = np.random.default_rng(plan.seed)
    guesses = link(view, knowledge, rng, plan.last_day // DAY)
    score = linked(view, truth, guesses, plan.scale.users)
    return {"population": population.kind, "view": "raw, a day", "attack": "yardstick"} | (
        score.as_json()
    )


def attack_population(kind: str, plan: Plan, folder: Path) -> Iterator[Row]:
    """Yields All rows of a population: figures, controls, and logs that this build cannot make."""
    population = make(kind, plan.scale, plan.seed)
    knowledge, targets, owners = knowledge_of(population, plan)
    capture = folder / f"{kind}.pcap"
    packets.write(population, capture, plan.from_ns)
    yield {
        "population": kind,
        "flows": len(population.flows),
        "names": knowledge.names,
        "users": plan.scale.users,
        "days": plan.scale.days,
        "z": plan.z,
    }
    yield yardstick(population, knowledge, plan)

    def log(key: str, z: int) -> View:
        """Returns the log of a kind at another z."""
        if key in OURS:
            source = capture, plan.from_ns
            return read_ours(OURS[key], population, source, folder / "out", z)
        return DERIVED[key](population, z)[0]

    for key, which in WHICH.items():
        if key in OURS and missing(OURS[key]):
            reason = f"this build has no {', '.join(missing(OURS[key]))}"
            yield {"population": kind, "view": key, "unavailable": reason}
            continue
        if key in OURS:
            source = capture, plan.from_ns
            view, flow = make_ours(OURS[key], population, source, folder / "out", plan.z)
        else:
            view, flow = DERIVED[key](population, plan.z)
        truth = Truth.of(view, population.flows, flow)
        truth = replace(truth, targets=targets, owners=owners)
        told = {"population": kind, "view": key}
        figures = list(scores(view, truth, knowledge, plan, which))
        score = differencing_score(key, view, truth, log, plan)
        figures += [] if score is None else [("differencing", score)]
        for name, score in figures:
            row = told | {"attack": name, "knowledge": KNOWLEDGE[name]} | score.as_json()
            if key == "hash" and name not in AMBIGUOUS:
                row |= {"control": "live", "held": score.share >= LIVE}
            yield row
        yield from dead_rows(key, view, truth, knowledge, plan)
    capture.unlink()


def dead_rows(
    key: str, view: View, truth: Truth, knowledge: Knowledge, plan: Plan
) -> Iterator[Row]:
    """Yields the dead controls: of linking and joining on names in the clear, of the other attacks
    on zanon_net's."""
    which = {"tstat": ("links", "operator", "known"), "default": ("order", "suppressed")}.get(key)
    if which is None:
        return
    other, dealt = dead(view, truth, np.random.default_rng(plan.seed))
    for name, score in scores(other, dealt, knowledge, plan, which):
        if name.startswith("order, middle"):
            continue  # is its own baseline
        low = score.risk_of(score.interval[0])
        yield {
            "population": "control",
            "view": f"{key}, shuffled",
            "attack": name,
            "control": "dead",
            "held": low <= 0,
        } | score.as_json()
