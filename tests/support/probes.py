# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Several engines that are probes, and a counter of all of them, in one process."""

import random
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from support.engine import SETTINGS, Outcome, Taker, feed, make_engine
from support.packets import SECOND, START, Frame, Udp, user, visit
from zanon_net._core import VoteShard

Portions = list[list[Frame]]


def alone(frames: Sequence[Frame]) -> list[Frame]:
    """The frames in order of time, no two of the same time."""
    last, placed = 0, []
    for frame in sorted(frames, key=lambda frame: frame.t_ns):
        last = max(frame.t_ns, last + 1)
        placed.append(frame if frame.t_ns == last else Frame(last, frame.data, frame.wire))
    return placed


def portions(talks: Sequence[tuple[int, Sequence[Frame]]], probes: int) -> Portions:
    """The frames of each probe, from talks with the number of the probe that sees them.

    Each probe sees a datagram at the end, so that their clocks end together. No two frames have
    the same time.
    """
    end = max((frame.t_ns for _probe, talk in talks for frame in talk), default=SECOND)
    ends = [
        Udp(f"10.7.250.{n}", f"198.51.100.{200 + n}", (9, 9), end).send(b"end").frames
        for n in range(probes)
    ]
    all_talks = [*talks, *enumerate(ends)]
    numbered = [(frame, probe) for probe, talk in all_talks for frame in talk]
    numbered.sort(key=lambda item: item[0].t_ns)
    frames = alone([frame for frame, _probe in numbered])
    parts: Portions = [[] for _ in range(probes)]
    for frame, (_old, probe) in zip(frames, numbered, strict=True):
        parts[probe].append(frame)
    return parts


def traffic(visits: int, *, seed: int, probes: int = 4, span: int = 600) -> Portions:
    """Visits of 30 users to 20 servers, some of which are clients elsewhere."""
    chance = random.Random(seed)
    talks: list[tuple[int, list[Frame]]] = []
    for _ in range(visits):
        who, where = chance.randrange(30), min(int(chance.paretovariate(0.8)), 19)
        t_ns = START + chance.randrange(span * SECOND)
        host, server = b"h%d.example" % where, f"198.51.100.{where}"
        talks.append((who % probes, visit(user(who), host, t_ns, server)))
        if chance.random() < 0.05:
            client = f"198.51.100.{chance.randrange(20)}"
            talks.append((chance.randrange(probes), visit(client, b"other.example", t_ns)))
    return portions(talks, probes)


@dataclass
class Probes:
    """Probes and the shards of their counter. `settings` are those of one run."""

    count: int
    settings: dict[str, Any]
    shards: int = 1
    max_lag_ns: int = 0
    waits: bool = True  # decides nothing before all have come
    engines: list[Any] = field(default_factory=list)
    sent: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Opens all."""
        settings = SETTINGS | self.settings
        rotate_ns = settings.get("rotate_ns", settings["window_ns"])
        generations = {"count_rotate_ns": settings.get("count_rotate_ns")}
        self.counter = [
            VoteShard(
                settings["z"],
                settings["window_ns"],
                rotate_ns=rotate_ns,
                shard=n,
                max_lag_ns=self.max_lag_ns,
                **generations,
            )
            for n in range(self.shards)
        ]
        for n in range(self.count):
            engine = make_engine(**self.settings, count_probe=f"probe-{n}")
            engine.count_begin(self.shards)
            self.engines.append(engine)
        self.takers = [Taker(engine) for engine in self.engines]
        self.by_number = {engine.count_probe[0]: n for n, engine in enumerate(self.engines)}
        self.waiting: list[deque[bytes]] = [deque() for _ in range(self.count)]

    def collect(self, n: int) -> None:
        """Queues what a probe has to send."""
        messages = self.engines[n].count_messages()
        for message in messages:  # a clock that is set back makes the probe another one
            self.by_number.setdefault(int.from_bytes(message[8:16], "little"), n)
        self.sent += messages
        self.waiting[n].extend(messages)

    def deliver(self, n: int) -> None:
        """Takes one message of a probe to the counter, and brings all answers."""
        if self.waiting[n]:
            message = self.waiting[n].popleft()
            shard = int.from_bytes(message[6:8], "little")
            counter = self.counter[shard]
            assert counter.put(message)
            # all have said from when on they count
            if not self.waits or len(counter.known_probes) >= self.count:
                self.answer(counter.decide())

    def answer(self, answers: Sequence[bytes]) -> None:
        """Brings answers to their probes."""
        for answer in answers:
            number = int.from_bytes(answer[8:16], "little")
            engine = self.engines[self.by_number[number]]
            if number == engine.count_probe[0]:
                engine.count_answer(answer)

    def feed(self, n: int, frames: Sequence[Frame]) -> None:
        """A batch of a probe."""
        feed(self.engines[n], frames)
        self.take(n)

    def take(self, n: int) -> None:
        """Writes what is answered."""
        self.engines[n].flush()
        self.takers[n].take()
        while self.engines[n].waiting:
            self.engines[n].flush()
            self.takers[n].take()
        self.collect(n)

    def finish(self) -> list[Outcome]:
        """Ends all inputs and waits for all answers."""
        for n, engine in enumerate(self.engines):
            while engine.finish():
                self.takers[n].take()
            self.collect(n)
        while any(self.waiting):
            for n in range(self.count):
                self.deliver(n)
        for n, engine in enumerate(self.engines):
            self.take(n)
            assert engine.count_waiting == 0
        return [taker.outcome() for taker in self.takers]


def counted(
    parts: Portions,
    settings: dict[str, Any],
    *,
    batch: int = 64,
    shards: int = 1,
    seed: int = 0,
    make: type[Probes] = Probes,
) -> tuple[list[Outcome], Probes]:
    """Runs the portions as probes, which advance and send at random."""
    chance = random.Random(seed)
    probes = make(len(parts), settings, shards)
    at = [0] * len(parts)
    while any(at[n] < len(part) for n, part in enumerate(parts)):
        n = chance.randrange(len(parts))
        probes.feed(n, parts[n][at[n] : at[n] + batch])
        at[n] += batch
        for m in range(len(parts)):
            for _ in range(chance.randrange(4)):
                probes.deliver(m)
        probes.take(chance.randrange(len(parts)))
    return probes.finish(), probes


def counted_late(
    parts: Portions, settings: dict[str, Any], *, lag_ns: int, joins_ns: int, max_lag_ns: int = 0
) -> tuple[list[Outcome], Probes]:
    """The same, with a last probe that comes at joins_ns of the others' clock, with its packets of
    then on, and whose clock stays lag_ns behind theirs. The counter waits for nobody that it does
    not know."""
    probes = Probes(len(parts), settings, waits=False, max_lag_ns=max_lag_ns)
    last = len(parts) - 1
    arrivals = sorted(
        (frame.t_ns + (lag_ns if n == last else 0), n, i)
        for n, part in enumerate(parts)
        for i, frame in enumerate(part)
    )
    for at_ns, n, i in arrivals:
        if n == last and at_ns < joins_ns:
            continue
        probes.feed(n, [parts[n][i]])
        while probes.waiting[n]:
            probes.deliver(n)
        probes.take(n)
    return probes.finish(), probes


def lines(outcomes: Sequence[Outcome], output: str) -> Counter[bytes]:
    """The lines of a text output over all outcomes, each header once."""
    found: Counter[bytes] = Counter()
    for n, outcome in enumerate(outcomes):
        text = outcome.text[output].splitlines()
        has_header = output.startswith("log") or output == "csv"
        found.update(text[1:] if n and has_header else text)
    return found
