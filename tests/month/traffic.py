# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What the users of the month do, hour by hour, from a seed.

Names have the popularity of Zipf, so that some always, some now and then and most never have z
users at a time. Canaries are names, on servers of their own, that never have as many.
"""

import heapq
import ipaddress
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

from support.packets import (
    HOUR,
    MINUTE,
    MS,
    SERVER,
    Frame,
    Tcp,
    Udp,
    hello,
    request,
)

Z = 4
WINDOW = HOUR
INTERNAL = "10.0.0.0/8,2001:db8:40::/44"
USERS, USERS_V6, NAMES = 100, 12, 40
CANARIES, CANARY_VISITS = 2, 6  # a span
FILLER_BYTES = 8000
LONG_EVERY = 20  # visits, one of which goes on for hours
MARK = "qzcanary"  # in each name of a canary
DATA = b"\x17\x03\x03\0\x04data"
VOTES_AFTER = {"tls": 3 * MS, "http": 3 * MS, "dns": MS}  # the start of a conversation
ONE_AFTER_THE_OTHER = 20 * MS  # conversations, so that none begins within another's handshake


@dataclass(frozen=True, slots=True)
class Visit:
    """A user's exposure to a name. start_ns: the first packet of its flow."""

    start_ns: int
    user: str
    name: str
    source: str

    @property
    def t_ns(self) -> int:
        """When it counts."""
        return self.start_ns + VOTES_AFTER[self.source]


@dataclass
class Traffic:
    """visits: an hour, not counting those to canaries."""

    seed: int
    visits: int
    canaries: set[str] = field(default_factory=set)
    _later: list[tuple[int, int, Frame]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._numbers = itertools.count()
        self._ports = itertools.cycle(range(20_000, 60_000))
        draw = self._random
        hosts = draw.sample(range(1 << 16, 1 << 24), USERS)
        self.users = [str(ipaddress.ip_address((10 << 24) + host)) for host in hosts]
        self.users += [f"2001:db8:4{n % 16:x}:{n + 1:x}00::{n + 0xA0:x}" for n in range(USERS_V6)]
        self.names = [f"site{n}.{draw.randrange(1 << 32):08x}.example" for n in range(NAMES)]
        self._weights = [1 / (n + 1) for n in range(NAMES)]

    @property
    def servers(self) -> list[str]:
        """The addresses of canaries' servers."""
        return ["192.0.2.77", "2001:db8:ffff::77"]

    def span(self, start_ns: int, length_ns: int) -> tuple[list[Frame], list[Visit]]:
        """The frames of a span of time, and the visits that begin in it, in order of time."""
        visits = sorted(self._visits(start_ns, length_ns), key=lambda visit: visit.start_ns)
        for n, visit in enumerate(visits):
            self._push(self._conversation(visit, is_long=n % LONG_EVERY == LONG_EVERY - 1))
        frames = []
        while self._later and self._later[0][0] < start_ns + length_ns:
            frames.append(heapq.heappop(self._later)[2])
        return frames, visits

    def fillers(self, count: int, start_ns: int) -> list[Frame]:
        """Datagrams without a name, a ms apart."""
        talk = Udp(self.users[0], "198.51.100.9", (next(self._ports), 9), start_ns)
        for _ in range(count):
            talk.send(bytes(FILLER_BYTES))
        return talk.frames

    def rush(self, count: int, start_ns: int) -> tuple[list[Frame], list[Visit]]:
        """Visits to one site by all users in turn, one right after the other."""
        users = itertools.islice(itertools.cycle(self.users), count)
        visits = [
            Visit(start_ns + n * ONE_AFTER_THE_OTHER, user, self.names[0], "tls")
            for n, user in enumerate(users)
        ]
        return [frame for visit in visits for frame in self._conversation(visit)], visits

    def _push(self, frames: list[Frame]) -> None:
        for frame in frames:
            heapq.heappush(self._later, (frame.t_ns, next(self._numbers), frame))

    def _visits(self, start_ns: int, length_ns: int) -> Iterator[Visit]:
        draw, count = self._random, self.visits * length_ns // HOUR
        slots = range(length_ns // ONE_AFTER_THE_OTHER - 1)
        starts = (
            start_ns + slot * ONE_AFTER_THE_OTHER + draw.randrange(MS)
            for slot in draw.sample(slots, count + CANARIES * CANARY_VISITS)
        )
        for name in draw.choices(self.names, self._weights, k=count):
            source = draw.choice(("tls", "tls", "http", "dns"))
            yield Visit(next(starts), draw.choice(self.users), name, source)
        for _ in range(CANARIES):
            name = f"{MARK}{draw.randrange(1 << 48):012x}.example"
            self.canaries.add(name)
            few = draw.sample(self.users, draw.randrange(1, Z))
            for user in draw.choices(few, k=CANARY_VISITS):
                yield Visit(next(starts), user, name, draw.choice(("tls", "http", "dns")))

    def _conversation(self, visit: Visit, *, is_long: bool = False) -> list[Frame]:
        name, is_v6 = visit.name.encode(), ":" in visit.user
        if visit.name.startswith(MARK):
            server = self.servers[is_v6]
        else:
            site = self.names.index(visit.name) + 1
            server = f"2001:db8:ffff::{site:x}" if is_v6 else f"198.51.100.{site}"
        port = next(self._ports)
        if visit.source == "dns":
            return Udp(visit.user, server, (port, 53), visit.start_ns).lookup(name).frames
        is_tls = visit.source == "tls"
        talk = Tcp(visit.user, server, (port, 443 if is_tls else 80), visit.start_ns).handshake()
        talk.say(hello(name) if is_tls else request(name))
        talk.say(DATA if is_tls else b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", SERVER)
        if is_long and is_tls:
            for _ in range(self._random.randrange(10, 60)):
                talk.wait(4 * MINUTE).say(DATA, SERVER)
        return talk.close().frames
