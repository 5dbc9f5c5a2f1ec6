# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Every attack on every log of a population, with its controls, as rows of figures.

*Live* control: on plainly hashed clients, with nothing else hidden, each attack must answer 95 %
right; else the attack is broken, and its results on other logs mean nothing. *Dead* control: on a
log whose lines have pseudonyms and measurements of other lines, its risk must not be above 0 by
more than its interval.
"""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import packets
from inference import suppressed
from linking import link, two_epochs
from markers import operator
from order import order
from population import DAY, HOUR, ROUND_TRIP_NS, START_NS, Population, Scale, make
from score import Score, Truth, linked, named, singled_out, timed
from tree import BITS, tree
from view import Guesses, Knowledge, OwnLogs, View
from views import DERIVED, OURS, make_ours, missing, raw

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

LINKS: dict[str, Pairwise] = {
    "link": link,
    "tree": lambda v, k, r, e: tree(v, k, r, e, behaviour=False, depth=BITS),
    "link, tree": lambda v, k, r, e: tree(v, k, r, e, behaviour=True),
    "link, tree, all bits": lambda v, k, r, e: tree(v, k, r, e, behaviour=True, depth=BITS),
}
WHICH = {
    "hash": ("links", "order", "suppressed", "operator"),
    "tstat": ("links", "operator"),
    "default": ("links", "order", "suppressed", "operator"),
    "internal": ("order", "suppressed"),
    "client": ("suppressed",),
    "public": ("links", "order", "suppressed", "operator"),
    "pools": ("links",),
    "pan": ("links",),
}
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
}


def knowledge_of(population: Population, plan: Plan) -> Knowledge:
    """Labelled flows are those before the last day; operators logged what came to third parties."""
    flows = population.flows
    third = flows.tcp & population.hosts.third_party[flows.name]
    own = OwnLogs(flows.user[third], flows.name[third], flows.start_ns[third] + ROUND_TRIP_NS // 2)
    before = flows.part(flows.start_ns < plan.last_day)
    return Knowledge(len(population.hosts.names), plan.z, before, own)


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
    if "operator" in which:
        for by_set in (False, True):
            for name, largest in (("operator", 1), ("five operators", 5)):
                rng = np.random.default_rng(plan.seed)
                guesses = operator(
                    view, knowledge, rng, largest=largest, by_set=by_set, begin_ns=plan.last_day
                )
                yield name + ", by set" * by_set, singled_out(view, truth, guesses)


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
    knowledge = knowledge_of(population, plan)
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
    for key, which in WHICH.items():
        if key in OURS and missing(OURS[key]):
            reason = f"this build has no {', '.join(missing(OURS[key]))}"
            yield {"population": kind, "view": key, "unavailable": reason}
            continue
        if key in OURS:
            view, flow = make_ours(
                OURS[key], population, (capture, plan.from_ns), folder / "out", plan.z
            )
            shutil.rmtree(folder / "out")
        else:
            view, flow = DERIVED[key](population)
        truth = Truth.of(view, population.flows, flow)
        told = {"population": kind, "view": key}
        for name, score in scores(view, truth, knowledge, plan, which):
            row = told | {"attack": name, "knowledge": KNOWLEDGE[name]} | score.as_json()
            if key == "hash":
                row |= {"control": "live", "held": score.share >= LIVE}
            yield row
        yield from dead_rows(key, view, truth, knowledge, plan)
    capture.unlink()


def dead_rows(
    key: str, view: View, truth: Truth, knowledge: Knowledge, plan: Plan
) -> Iterator[Row]:
    """Yields the dead controls: of linking and joining on names in the clear, of the other attacks
    on zanon_net's."""
    which = {"tstat": ("links", "operator"), "default": ("order", "suppressed")}.get(key)
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
