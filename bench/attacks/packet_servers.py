# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the server of a flow whose name is withheld.

Knowledge of `by_sizes`: a crawler visited each name's host and measured the sizes, and how often
names are withheld in the day's other hours. Naive Bayes: how often the name is withheld, and how
likely the bytes of each direction are for its host, among names of the length that the mask shows.
Knowledge of `same_server`: whether two users' flows to one server have one address. Knowledge of
`next_port`: a host gives out its ports one by one.
"""

from dataclasses import dataclass

import numpy as np
from inference import withheld
from packet_linking import first_packets
from packet_traffic import HELLO_BYTES, Scene
from packet_view import SYN, PacketView
from packets import RESOLVER
from population import HOUR, Floats, Ints, make_flows
from scipy.special import ndtr
from score import Score
from view import Knowledge, OwnLogs

MOST = 4000  # flows that are attacked
CRAWLED = 30  # visits of the crawler to each host
ALL_LENGTHS = -1
PAIRS = 20_000
PAIR_BLOCK = 240 >> 3  # the upper five bits of pair pseudonyms
PAIR_BITS = 27


@dataclass(frozen=True)
class Seen:
    """The TCP flows of a view, one entry each, whose SYN is there and whose name is not shown.

    length: of the masked name, or ALL_LENGTHS if no hello is visible. truth: the flow.
    """

    flow: Ints
    sent: Ints
    received: Ints
    length: Ints


def seen(view: PacketView) -> Seen:
    """Returns the facts of the view about its flows: bytes by sequence numbers, so that gaps
    count."""
    count = int(view.flow.max(initial=-1)) + 1
    tcp = (view.proto == 6) & (view.service == 443)
    seq = view.number(24, 4)
    bytes_of = []
    for up in (True, False):
        which = np.flatnonzero(tcp & (view.up == up))
        flow = view.flow[which]
        start = np.full(count, -1)
        opens = which[view.flags[which] & SYN > 0]
        start[view.flow[opens]] = seq[opens]
        size = view.number(2, 2)[which] - view.payload_at[which]
        end = (seq[which] - start[flow] - 1 + size) % (1 << 32)
        end = np.where((start[flow] < 0) | (end >= 1 << 31), 0, end)
        total = np.zeros(count, dtype=np.int64)
        np.maximum.at(total, flow, end)
        bytes_of.append(total)
    opened = np.zeros(count, dtype=bool)
    opened[view.flow[np.flatnonzero(tcp & view.up & (view.flags & SYN > 0))]] = True
    which, rows = view.hello_bytes("name")
    length = np.full(count, ALL_LENGTHS)
    length[view.flow[which]] = rows[:, 0].astype(np.int64) << 8 | rows[:, 1]
    shown = np.zeros(count, dtype=bool)
    shown[view.flow[which[(rows[:, 2] > 0) & (rows[:, 2] != ord("x"))]]] = True
    flows = np.flatnonzero(opened & ~shown & (bytes_of[1] > 0))
    return Seen(flows, bytes_of[0][flows], bytes_of[1][flows], length[flows])


@dataclass(frozen=True)
class Crawl:
    """Measurements of the crawler: mean and deviation of the logarithms, of each name; and
    priors."""

    mean: Floats
    deviation: Floats
    prior: Floats
    length: Ints


def crawl(scene: Scene, z: int, rng: np.random.Generator) -> Crawl:
    """Visit each host some times; count withheld names of the hours that are not attacked."""
    population = scene.population
    count = len(population.hosts.names)
    name = np.repeat(np.arange(count), CRAWLED)
    flows = make_flows(rng, (name * 0, name, np.arange(len(name)) * 10**9), population.hosts)
    flows = flows.part(flows.tcp)
    logs = np.log(np.stack([sizes(flows.c_bytes, HELLO_BYTES), sizes(flows.s_bytes, 600)], axis=1))
    mean, square = np.zeros((count, 2)), np.zeros((count, 2))
    np.add.at(mean, flows.name, logs / CRAWLED)
    np.add.at(square, flows.name, logs**2 / CRAWLED)
    deviation = np.sqrt(np.maximum(square - mean**2, 0.02**2))
    every = population.flows
    own = OwnLogs(*(np.zeros(0, dtype=np.int64),) * 3)
    hidden = withheld(every, Knowledge(count, z, every, own)) & every.tcp
    hidden &= (every.start_ns < scene.begin_ns) | (every.start_ns >= scene.begin_ns + 2 * HOUR)
    prior = np.bincount(every.name[hidden], minlength=count) + 0.1
    lengths = np.array([len(text) for text in population.hosts.names])
    return Crawl(mean, deviation, np.log(prior / prior.sum()), lengths)


def sizes(values: Ints, least: int) -> Floats:
    """Returns the excess over the smallest size, whose logarithm distinguishes hosts."""
    return np.maximum(values - least, 1).astype(np.float64)


def by_sizes(what: Seen, crawled: Crawl, grain: int, use: tuple[bool, bool]) -> Ints:
    """Returns the likeliest name of each flow.

    grain: size to whose multiples sizes are rounded up. use: whether sizes, and the length, are
    used.
    """
    answers = []
    for begin in range(0, len(what.flow), 500):
        part = slice(begin, begin + 500)
        worth = np.repeat(crawled.prior[None, :], len(what.flow[part]), axis=0)
        if use[0]:
            for i, (values, least) in enumerate(((what.sent, HELLO_BYTES), (what.received, 600))):
                worth += likelihood(values[part], least, crawled, i, grain)
        if use[1]:
            given = what.length[part][:, None]
            worth[(given != ALL_LENGTHS) & (given != crawled.length[None, :])] = -np.inf
        answers.append(worth.argmax(axis=1))
    return np.concatenate(answers) if answers else what.flow[:0]


def likelihood(values: Ints, least: int, crawled: Crawl, i: int, grain: int) -> Floats:
    """log P(bytes | name) of each flow (rows): a normal distribution of the logarithm."""
    mean, deviation = crawled.mean[None, :, i], crawled.deviation[None, :, i]
    top = (np.log(sizes(values, least))[:, None] - mean) / deviation
    if grain == 1:
        return -(top**2) / 2 - np.log(deviation)
    low = (np.log(sizes(values - grain, least))[:, None] - mean) / deviation
    return np.log(ndtr(top) - ndtr(low) * (values > grain)[:, None] + 1e-12)


def true_flows(scene: Scene, view: PacketView) -> Ints:
    """Returns the flow behind each of the view's flows, by the times of its packets."""
    at = np.searchsorted(scene.traffic.t_ns, view.t_ns)
    found = np.empty(int(view.flow.max(initial=-1)) + 1, dtype=np.int64)
    found[view.flow] = scene.traffic.flow[at]
    return found


def named(scene: Scene, view: PacketView, crawled: Crawl, grain: int, use: tuple[bool, bool],
          rng: np.random.Generator, shuffled: bool = False) -> Score:  # fmt: skip
    """Scores guessed withheld names. Baseline: the most frequent name."""
    what = seen(view)
    pick = rng.permutation(len(what.flow))[:MOST]
    what = Seen(*(getattr(what, field)[pick] for field in ("flow", "sent", "received", "length")))
    right = scene.flows.name[true_flows(scene, view)[what.flow]]
    if shuffled:
        mixed = rng.permutation(len(right))
        what = Seen(what.flow, what.sent[mixed], what.received[mixed], what.length[mixed])
    guess = by_sizes(what, crawled, grain, use)
    most = int(np.bincount(right).max()) if len(right) else 0
    return Score(int((guess == right).sum()), len(right), most / max(1, len(right)))


def withheld_flows(scene: Scene, view: PacketView, z: int) -> Score:
    """Flows with a name that fewer than z users have in all of the traffic, and that left."""
    flows = scene.flows
    users = np.unique(np.stack([flows.name, flows.user]), axis=1)
    count = np.bincount(users[0], minlength=len(scene.population.hosts.names))
    rare = count[flows.name] < z
    left = np.zeros(len(flows), dtype=bool)
    left[true_flows(scene, view)] = True
    return Score(int((rare & left).sum()), int(rare.sum()), 0.0)


def own_address(view: PacketView) -> Score:
    """Flows whose name is not shown that have the server's own address."""
    flows = seen(view).flow
    server = np.zeros(int(view.flow.max(initial=-1)) + 1, dtype=np.int64)
    server[view.flow] = view.server
    return Score(int((server[flows] >> 27 != PAIR_BLOCK).sum()), len(flows), 0.0)


def server_addresses(scene: Scene, truth: Ints) -> Ints:
    """Returns the address that each of these flows went to."""
    flows = scene.flows
    named = flows.tcp[truth] | scene.quic[truth]
    return np.where(named, scene.population.hosts.address[flows.name[truth]], RESOLVER)


def same_server(scene: Scene, view: PacketView, rng: np.random.Generator) -> Score:
    """Scores pairs of flows of two users to one server, both with a pseudonym of it, that are
    equal.

    Baseline: the chance that two pair pseudonyms are equal.
    """
    first = np.flatnonzero(first_packets(view) & (view.server >> 27 == PAIR_BLOCK))
    truth = scene.traffic.flow[np.searchsorted(scene.traffic.t_ns, view.t_ns[first])]
    flows, address = scene.flows, server_addresses(scene, truth)
    key = view.epoch[first] << 32 | address
    order = np.lexsort((rng.random(len(key)), key))
    left, right = order[:-1], order[1:]
    ok = (key[left] == key[right]) & (flows.user[truth[left]] != flows.user[truth[right]])
    left, right = left[ok][:PAIRS], right[ok][:PAIRS]
    same = view.server[first[left]] == view.server[first[right]]
    return Score(int(same.sum()), len(left), 2.0**-PAIR_BITS)


def collisions(view: PacketView, scene: Scene) -> Score:
    """Scores servers of one epoch, each of one user, whose pseudonym is another server's, too.

    Baseline: the chance of pair pseudonyms of this number of bits.
    """
    first = np.flatnonzero(first_packets(view) & (view.server >> 27 == PAIR_BLOCK))
    truth = scene.traffic.flow[np.searchsorted(scene.traffic.t_ns, view.t_ns[first])]
    epoch, user = view.epoch[first], scene.flows.user[truth]
    pairs = np.unique(np.stack([epoch, user, server_addresses(scene, truth)]), axis=1)
    shown = np.unique(np.stack([epoch, view.server[first]]), axis=1)
    each = np.bincount(pairs[0] - pairs[0].min(initial=0)).astype(np.float64)
    expected = (each * (each - 1) / 2).sum() / 2.0**PAIR_BITS
    many = pairs.shape[1]
    return Score(many - shown.shape[1], many, float(expected) / max(1, many))


def next_port(view: PacketView) -> Score:
    """Scores flows whose port follows the port of the user's previous flow. Baseline: of the
    range."""
    first = np.flatnonzero(first_packets(view))
    order = first[np.argsort(view.groups[2][first], kind="stable")]
    pair, port = view.groups[2][order], view.port[order]
    same = pair[1:] == pair[:-1]
    hits = same & (port[1:] == port[:-1] + 1)
    return Score(int(hits.sum()), int(same.sum()), 1 / 32_768)
