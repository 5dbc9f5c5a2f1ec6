# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Made-up users with interests, and the flows that their visits and apps cause.

Every linking figure depends on how recognisable users are, so there are three populations. They
differ in the share of a user's behaviour that is individual (`TASTES`). `distinct` and `alike` are
the ends, `usual` is calibrated against studies of DNS logs, which linked 85 to 88 % of users from
one day to the next (Herrmann et al. 2013, Banse et al. 2012).

A user has favourites that persist, hours of their own, and a set of apps. A visit to a site brings
the site's own hosts and third parties; an app calls its hosts. A host has its own sizes and its own
idle timeout, and one host in five has an address of its own. All of that is drawn with NumPy, from
one seed.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]

S = 10**9
HOUR = 3600 * S
DAY = 24 * HOUR
START_NS = 1_700_006_400 * S  # 2023-11-15T00:00:00Z
POOL_BITS = 22
POOL_HOSTS = 1 << (32 - POOL_BITS)
POOL_SHARE = 0.6  # of a pool's addresses are taken
INTERNAL = "10.0.0.0/8"
VISITS_A_DAY = 37.7
SHARPNESS = 4.0  # of the own hours of a user
TODAY, SITES_TODAY = 0.6, 5
POPULARITY = 1.0  # the exponent of Zipf's law for sites and apps
CALLS_A_DAY = 6  # of each app
ROUND_TRIP_NS = 20_000_000
HELLO_BYTES = 190  # of c_bytes; what is above is the request
IDLE_S = np.array([0, 1, 3, 5, 10, 15, 20, 30, 45, 60, 65, 75, 90, 110, 120, 150, 180, 240])
DNS_SHARE = 0.8  # of TLS flows have a DNS query before them; others know the address
THIRD_PARTY_SHARE = 0.8  # of a page's third parties load at a visit: others are cached or blocked


@dataclass(frozen=True, slots=True)
class Taste:
    """Individuality of users.

    own: share of visits that go to favourites; of the others, `TODAY` go to the user's topic of
    that day. favourites: number of favourites of a user. popular: the exponent by which favourites
    and apps follow popularity (0: all sites alike). apps: number of apps.
    """

    own: float
    favourites: int
    popular: float
    apps: int


TASTES = {
    "distinct": Taste(own=0.9, favourites=5, popular=0.8, apps=8),
    "usual": Taste(own=0.5, favourites=5, popular=1.0, apps=4),
    "alike": Taste(own=0.2, favourites=5, popular=1.0, apps=2),
}


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of a population: users, days, sites, third parties, apps."""

    users: int = 3000
    days: int = 4
    sites: int = 3600
    third_parties: int = 900
    apps: int = 300


@dataclass(frozen=True, slots=True)
class Hosts:
    """Properties of each name's host. One entry a name."""

    names: list[str]
    third_party: npt.NDArray[np.bool_]
    address: Ints
    sent: Floats  # means of the logarithms of the bytes
    received: Floats
    spread: Floats  # their standard deviation
    idle_ns: Ints
    burst: Ints  # bytes that the server sends at once


@dataclass(frozen=True, slots=True)
class Flows:
    """The truth: a flow an entry, by start time; no two start in the same nanosecond."""

    user: Ints
    name: Ints
    tcp: npt.NDArray[np.bool_]
    start_ns: Ints
    end_ns: Ints
    c_pkts: Ints
    s_pkts: Ints
    c_bytes: Ints
    s_bytes: Ints

    def __len__(self) -> int:
        return len(self.user)

    def part(self, which: slice | npt.NDArray[Any]) -> "Flows":
        """Some of the flows."""
        return Flows(**{field: getattr(self, field)[which] for field in Flows.__slots__})


@dataclass(frozen=True, slots=True)
class Population:
    """Users, hosts and flows."""

    kind: str
    seed: int
    scale: Scale
    address: Ints  # of each user
    hosts: Hosts
    flows: Flows

    def pools(self) -> list[str]:
        """Returns the users' networks, one by one."""
        blocks = np.unique(self.address >> (32 - POOL_BITS)) << (32 - POOL_BITS)
        return [f"{b >> 24}.{b >> 16 & 255}.{b >> 8 & 255}.0/{POOL_BITS}" for b in blocks.tolist()]


def zipf(count: int, exponent: float) -> Floats:
    """Weights of ranks 1 to `count`; their sum is 1."""
    weights = np.arange(1, count + 1, dtype=np.float64) ** -exponent
    return weights / weights.sum()


def draw_ranks(rng: np.random.Generator, weights: Floats, count: int) -> Ints:
    """Ranks by their weights."""
    return np.searchsorted(np.cumsum(weights)[:-1], rng.random(count))


def expand(first: Ints, count: Ints, which: Ints) -> tuple[Ints, Ints]:
    """Returns the members of lists that lie end to end: (index into `which`, member) of each list
    asked."""
    lengths = count[which]
    asked = np.repeat(np.arange(len(which)), lengths)
    ends = np.cumsum(lengths)
    within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - lengths, lengths)
    return asked, first[which][asked] + within


@dataclass(frozen=True, slots=True)
class World:
    """Sites and apps as lists of names, end to end."""

    site_first: Ints
    site_count: Ints
    site_hosts: Ints  # names; the first of a site is its page
    app_first: Ints
    app_count: Ints  # an app's names follow each other


def make_world(rng: np.random.Generator, scale: Scale) -> tuple[World, Hosts]:
    """Sites with their hosts and third parties, apps with theirs."""
    own = 1 + (rng.random((scale.sites, 2)) < (0.9, 0.5)).sum(axis=1)
    in_app = rng.integers(3, 11, size=scale.apps)
    names = [
        f"{('www', 'static', 'api')[i]}.s{site:04d}{'x' * (site % 9)}.example"
        for site, count in enumerate(own.tolist())
        for i in range(count)
    ]
    first_own = np.cumsum(own) - own
    first_third = len(names)
    names += [f"tp{i:03d}{'y' * (i % 7)}.example.net" for i in range(scale.third_parties)]
    first_app = len(names)
    names += [
        f"h{i}.app{app:03d}.example.com" for app, n in enumerate(in_app.tolist()) for i in range(n)
    ]

    parties = np.minimum(1 + rng.poisson(3.5, size=scale.sites), 12)
    drawn = draw_ranks(rng, zipf(scale.third_parties, 1.0), int(parties.sum()))
    rows = np.repeat(np.arange(scale.sites), parties)
    site, party = np.unique(np.stack([rows, drawn]), axis=1)  # each once a page
    hosts_of = np.concatenate([np.repeat(np.arange(scale.sites), own), site])
    host = np.concatenate([np.arange(first_third), first_third + party])
    order = np.lexsort((host, hosts_of))
    counts = np.bincount(hosts_of, minlength=scale.sites)
    world = World(
        np.cumsum(counts) - counts,
        counts,
        host[order],
        first_app + np.cumsum(in_app) - in_app,
        in_app,
    )
    # A site's own hosts have lower numbers than third parties, so the page stays the first.
    assert bool((world.site_hosts[world.site_first] == first_own).all())
    return world, make_hosts(rng, names, first_third, first_app)


def make_hosts(
    rng: np.random.Generator, names: list[str], first_third: int, first_app: int
) -> Hosts:
    """Draws the properties of each host."""
    count = len(names)
    third = np.zeros(count, dtype=bool)
    third[first_third:first_app] = True
    shared = 198 << 24 | 18 << 16  # 400 front ends of content networks
    address = shared + rng.integers(0, 400, size=count)
    alone = rng.random(count) < 0.2
    address[alone] = (203 << 24) + 512 + np.flatnonzero(alone)
    return Hosts(
        names,
        third,
        address,
        rng.normal(6.6, 0.7, size=count),
        rng.normal(9.0, 1.3, size=count),
        rng.choice([0.05, 0.15, 0.3, 0.6], size=count),
        IDLE_S[rng.integers(0, len(IDLE_S), size=count)] * S,
        rng.choice([14_000, 28_000, 56_000], size=count),
    )


def make_addresses(rng: np.random.Generator, users: int) -> Ints:
    """Addresses in as many pools as it takes, each 60 % full."""
    pools = -(-users // int(POOL_HOSTS * POOL_SHARE))
    places = rng.choice(1 << (POOL_BITS - 8), size=pools, replace=False)
    bases = (10 << 24) + (places << (32 - POOL_BITS))
    each = np.full(pools, users // pools)
    each[: users % pools] += 1
    hosts = [
        base + 1 + rng.choice(POOL_HOSTS - 2, size=n, replace=False)
        for base, n in zip(bases.tolist(), each.tolist(), strict=True)
    ]
    return np.concatenate(hosts).astype(np.int64)


def own_choices(
    rng: np.random.Generator, scale: Scale, taste: Taste, things: int, each: int
) -> Ints:
    """For each user `each` of `things`, by popularity to the power that the taste says."""
    weights = zipf(things, POPULARITY) ** taste.popular
    drawn = draw_ranks(rng, weights / weights.sum(), scale.users * each)
    return drawn.reshape(scale.users, each)


def draw_times(rng: np.random.Generator, who: Ints, scale: Scale) -> Ints:
    """Returns a time for each event, by its user's own hours."""
    hours = np.arange(24)
    people = 0.15 + np.clip(np.sin((hours - 7) / 24 * 2 * np.pi) + 0.7, 0, None)
    peak = rng.integers(0, 24, size=scale.users)
    own = np.exp(SHARPNESS * np.cos((hours[None, :] - peak[:, None]) / 24 * 2 * np.pi))
    weights = people[None, :] * own
    steps = np.cumsum(weights / weights.sum(axis=1, keepdims=True), axis=1)
    # A user's 24 steps follow the steps of the users before, so one search finds all hours.
    places = np.searchsorted((steps + np.arange(scale.users)[:, None]).ravel()[:-1],
                             who + rng.random(len(who)) * 0.999_999)  # fmt: skip
    hour = places - 24 * who
    day = rng.integers(0, scale.days, size=len(who))
    return START_NS + day * DAY + hour * HOUR + rng.integers(0, HOUR, size=len(who))


def draw_contacts(
    rng: np.random.Generator, scale: Scale, taste: Taste, world: World
) -> tuple[Ints, Ints, Ints]:
    """Draws the contacts: (user, name, time) of visits and of apps."""
    rate = rng.lognormal(-0.125, 0.5, size=scale.users) * VISITS_A_DAY * scale.days
    who = np.repeat(np.arange(scale.users), rng.poisson(rate))
    favourites = own_choices(rng, scale, taste, scale.sites, taste.favourites)
    rank = draw_ranks(rng, zipf(taste.favourites, 0.7), len(who))
    when = draw_times(rng, who, scale)
    site = draw_ranks(rng, zipf(scale.sites, POPULARITY), len(who))
    today = draw_ranks(rng, zipf(scale.sites, POPULARITY), scale.users * scale.days * SITES_TODAY)
    today = today.reshape(scale.users, scale.days, SITES_TODAY)
    after = rng.random(len(who)) < TODAY
    nth = rng.integers(0, SITES_TODAY, size=len(who))
    site[after] = today[who, (when - START_NS) // DAY, nth][after]
    own = rng.random(len(who)) < taste.own
    site[own] = favourites[who[own], rank[own]]
    visit, place = expand(world.site_first, world.site_count, site)
    name = world.site_hosts[place]
    page = place == world.site_first[site][visit]
    loads = page | (rng.random(len(name)) < THIRD_PARTY_SHARE)
    delay = np.where(page, 0, 0.2 * S + rng.exponential(1.2 * S, size=len(name))).astype(np.int64)
    visits = (who[visit][loads], name[loads], (when[visit] + np.minimum(delay, 20 * S))[loads])

    apps = own_choices(rng, scale, taste, scale.apps, taste.apps)
    calls = rng.poisson(CALLS_A_DAY * scale.days, size=(scale.users, taste.apps))
    who = np.repeat(np.repeat(np.arange(scale.users), taste.apps), calls.ravel())
    app = np.repeat(apps.ravel(), calls.ravel())
    host = (rng.random(len(app)) ** 1.5 * world.app_count[app]).astype(np.int64)
    name = world.app_first[app] + host
    when = draw_times(rng, who, scale)
    return tuple(np.concatenate(pair) for pair in zip(visits, (who, name, when), strict=True))


def make_flows(rng: np.random.Generator, contacts: tuple[Ints, Ints, Ints], hosts: Hosts) -> Flows:
    """Returns a TLS flow for each contact and, before most of them, a DNS query."""
    user, name, when = contacts
    count = len(user)
    spread = hosts.spread[name]
    request = np.exp(hosts.sent[name] + spread * rng.normal(size=count) * 0.5)
    sent = HELLO_BYTES + 5 + np.minimum(request, 30_000).astype(np.int64)
    received = np.exp(hosts.received[name] + spread * rng.normal(size=count))
    received = 600 + np.minimum(received, 400_000).astype(np.int64)
    bursts = -(-received // hosts.burst[name])
    transfer = 4 * ROUND_TRIP_NS + bursts * 15_000_000 + rng.integers(0, 400_000_000, size=count)
    idle = hosts.idle_ns[name] + rng.integers(0, 300_000_000, size=count)
    early = rng.random(count) < 0.25  # the page is left before the server's timeout
    idle[early] = (idle[early] * rng.random(int(early.sum()))).astype(np.int64)

    asked = np.flatnonzero(rng.random(count) < DNS_SHARE)
    lookup = rng.integers(4_000_000, 60_000_000, size=len(asked))
    size = 18 + np.array([len(text) for text in hosts.names])[name[asked]]
    both = np.arange(count), asked
    ones = np.ones(len(asked), dtype=np.int64)
    flows = Flows(
        np.concatenate([user[i] for i in both]),
        np.concatenate([name[i] for i in both]),
        np.concatenate([np.ones(count, dtype=bool), np.zeros(len(asked), dtype=bool)]),
        np.concatenate([when, when[asked] - lookup - 2_000_000]),
        np.concatenate([when + transfer + idle, when[asked] - 2_000_000]),
        np.concatenate([np.full(count, 3), ones]),
        np.concatenate([1 + bursts, ones]),
        np.concatenate([sent, size]),
        np.concatenate([received, size + 16]),
    )
    return by_start(flows)


def by_start(flows: Flows) -> Flows:
    """Returns the flows in the order of their starts, which are moved by some ns where two are
    equal."""
    order = np.argsort(flows.start_ns, kind="stable")
    columns = {field: getattr(flows, field)[order] for field in Flows.__slots__}
    index = np.arange(len(order))
    start = np.maximum.accumulate(columns["start_ns"] - index) + index
    columns["end_ns"] = columns["end_ns"] + (start - columns["start_ns"])
    columns["start_ns"] = start
    return Flows(**columns)


def make(kind: str, scale: Scale, seed: int) -> Population:
    """Returns the population of a kind; equal arguments give equal populations."""
    # The numbers before it are of the world, which all kinds share.
    rng = np.random.default_rng([seed, 0])
    world, hosts = make_world(rng, scale)
    rng = np.random.default_rng([seed, 1 + list(TASTES).index(kind)])
    address = make_addresses(rng, scale.users)
    flows = make_flows(rng, draw_contacts(rng, scale, TASTES[kind], world), hosts)
    return Population(kind, seed, scale, address, hosts, flows)
