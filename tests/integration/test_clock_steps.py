# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Probes whose packet clock steps: what is wrong reaches no counter, or ends a number of the probe.

The oracle is one run over the packets of all probes, without those of the wrong times.
"""

import json
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from support.engine import Outcome, run
from support.packets import MINUTE, SECOND, START, Frame, Udp, merged, user, visit
from support.probes import Portions, Probes, lines, portions

from zanon_net._core import read_votes
from zanon_net.count.frames import ENDED, votes_header

YEARS = 10 * 365 * 24 * 60 * MINUTE
MIDDLE, END = START + 300 * SECOND, START + 900 * SECOND
SKEW = 10 * MINUTE
LATE_CLIENT = "203.0.113.5"


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("key") / "zanon.key"
    path.write_text("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
    path.chmod(0o600)
    return {"z": 4, "window_ns": MINUTE, "rotate_ns": MINUTE, "key_file": str(path)}


def traffic(visits: int = 900) -> Portions:
    """Visits of 40 users to 10 servers in 15 minutes, at three probes."""
    chance = random.Random(5)
    talks = []
    for _ in range(visits):
        who, where = chance.randrange(40), min(int(chance.paretovariate(0.8)), 9)
        t_ns = START + chance.randrange(END - START)
        host, server = b"h%d.example" % where, f"198.51.100.{where}"
        talks.append((who % 3, visit(user(who), host, t_ns, server)))
    return portions(talks, 3)


def strays(count: int, first_ns: int, every_ns: int = 0) -> list[Frame]:
    """Datagrams of flows of their own."""
    return [
        frame
        for n in range(count)
        for frame in Udp(f"10.9.0.{n % 250}", "198.51.100.99", (9, 9), first_ns + n * every_ns)
        .send(b"x")
        .frames
    ]


def with_strays(part: list[Frame], packets: list[Frame]) -> list[Frame]:
    """The packets of a probe, and others in their middle, whatever their times are."""
    at = next(n for n, frame in enumerate(part) if frame.t_ns >= MIDDLE)
    return part[:at] + packets + part[at:]


@dataclass
class Counted(Probes):
    """Probes whose counter refuses what is more than SKEW ahead of the clock of all others, and all
    that comes behind it; a number that is replaced is gone."""

    def deliver(self, n: int) -> None:
        message = self.waiting[n][0] if self.waiting[n] else None
        if message is None:
            return
        read = read_votes(message)
        shard = self.counter[read["shard"]]
        newest = max([0, *read["t_ns"].tolist()])
        mark = read["watermark_ns"] if read["watermark_ns"] != ENDED else 0
        known = shard.known_probes.get(read["probe"])
        is_next = read["sequence"] <= 2 if known is None else known[0] + 1 == read["sequence"]
        if max(newest, mark) <= END + SKEW and is_next:
            super().deliver(n)
            return
        self.waiting[n].popleft()
        if read["watermark_ns"] == ENDED and known is not None:
            shard.forget_probe(read["probe"])


def counted(parts: Portions, settings: dict[str, Any], kind: type[Probes]) -> tuple[Any, Any]:
    """Feeds the probes in the order of their true times, as packets come that are read live."""
    probes, at = kind(len(parts), settings), [0] * len(parts)
    for second in range((END - START) // SECOND + 40):
        for n, part in enumerate(parts):
            now = START + second * SECOND
            end = at[n]
            while end < len(part) and (part[end].t_ns < now or abs(part[end].t_ns - now) > MINUTE):
                end += 1
            for begin in range(at[n], end, 16):
                probes.feed(n, part[begin : min(begin + 16, end)])
            at[n] = end
            while probes.waiting[n]:
                probes.deliver(n)
            probes.take(n)
    assert all(at[n] == len(part) for n, part in enumerate(parts))
    return probes.finish(), probes


def observed(outcomes: list[Outcome], from_ns: int) -> Counter[bytes]:
    return Counter(
        {
            line: count
            for line, count in lines(outcomes, "observations").items()
            if json.loads(line)["t_ns"] >= from_ns
        }
    )


def servers(outcomes: list[Outcome]) -> Counter[tuple[str, str]]:
    return Counter(
        (flow["server"], flow["name"]) for o in outcomes for flow in o.flows if flow["server"]
    )


@pytest.mark.parametrize("kind", [Probes, Counted])
@pytest.mark.parametrize("away", [YEARS, -YEARS])
@pytest.mark.parametrize("order", [0, 2])
def test_one_packet_of_a_wrong_time_costs_little(
    chosen: dict[str, Any], away: int, kind: type[Probes], order: int
) -> None:
    """No message has heard of it, and the probe is the same one."""
    core = chosen | {"order": order}
    parts = traffic()
    one = run(merged(parts), **core)
    parts[0] = with_strays(parts[0], strays(1, MIDDLE + away))
    outcomes, probes = counted(parts, core, kind)
    assert len({votes_header(message).probe for message in probes.sent}) == 3
    for message in probes.sent:
        assert all(t_ns <= END + MINUTE for t_ns in read_votes(message)["t_ns"].tolist())
        assert votes_header(message).watermark in range(END + MINUTE) or (
            votes_header(message).watermark == ENDED
        )
    found, whole = observed(outcomes, 0), observed([one], 0)
    assert found <= whole
    assert found.total() > 0.8 * whole.total()
    assert observed(outcomes, MIDDLE + 2 * MINUTE) == observed([one], MIDDLE + 2 * MINUTE)
    assert servers(outcomes) <= servers([one])


@pytest.mark.parametrize("kind", [Probes, Counted])
def test_a_clock_that_was_ahead_for_a_while_ends_a_number(
    chosen: dict[str, Any], kind: type[Probes]
) -> None:
    """Whether the counter believes the time, or refuses all that has it."""
    parts = traffic()
    one = run(merged(parts), **chosen)
    parts[0] = with_strays(parts[0], strays(300, MIDDLE + YEARS, SECOND // 50))
    outcomes, probes = counted(parts, chosen, kind)
    own = [votes_header(message) for message in probes.sent]
    numbers = {header.probe: n for n, header in enumerate(own)}
    assert len(numbers) == 4
    old, new = sorted(
        (number for number in numbers if probes.by_number[number] == 0), key=numbers.__getitem__
    )
    assert next(h.sequence for h in own if h.probe == new) == 1
    assert [h.watermark for h in own if h.probe == old][-1] == ENDED
    assert next(h.watermark for h in own if h.probe == new) < END
    found, whole = observed(outcomes, 0), observed([one], 0)
    assert found <= whole
    assert found.total() > 0.7 * whole.total()
    assert observed(outcomes, MIDDLE + 3 * MINUTE) == observed([one], MIDDLE + 3 * MINUTE)
    assert servers(outcomes) <= servers([one])


def test_packets_that_are_further_apart_than_the_window_are_believed(
    chosen: dict[str, Any],
) -> None:
    """Time is that of the packet before the last one."""
    apart, seen = 3 * MINUTE, []
    probes = Probes(1, chosen)
    for n in range(5):
        (packet,) = strays(1, START + n * apart)
        probes.feed(0, [packet])
        seen.append(max(votes_header(message).watermark for message in probes.sent))
    assert seen == [START + max(n - 1, 0) * apart for n in range(5)]
    probes.feed(0, strays(1, START + 4 * apart + SECOND))
    assert votes_header(probes.sent[-1]).watermark == START + 4 * apart + SECOND
    one = run([frame for n in range(5) for frame in strays(1, START + n * apart)], **chosen)
    assert probes.finish()[0].stats["records"] == one.stats["records"]


def test_clients_that_the_counter_never_heard_of_are_no_servers(chosen: dict[str, Any]) -> None:
    """All of the first number was refused, and nobody misses it."""
    parts = traffic()
    client = visit(LATE_CLIENT, b"h1.example", START + SECOND)
    wrong = strays(300, START + YEARS, SECOND // 50)
    for n in range(30):
        at = START + (n + 3) * SECOND
        parts[1] += visit(user(500 + n), b"h1.example", at, LATE_CLIENT)
    parts[1].sort(key=lambda frame: frame.t_ns)
    outcomes, _probes = counted(parts, chosen, Counted)
    assert any(LATE_CLIENT.encode() in outcome.everything() for outcome in outcomes)
    parts[0] = wrong + client + parts[0]
    outcomes, probes = counted(parts, chosen, Counted)
    firsts: dict[int, int] = {}
    for header in map(votes_header, probes.sent):
        firsts.setdefault(header.probe, header.sequence)
    assert sorted(firsts.values()) == [1, 1, 1, 1]
    assert Counter(
        (read["new_session"], read["marks_missing"])
        for read in map(read_votes, probes.sent)
        if read["sequence"] == 1
    ) == {(False, False): 3, (False, True): 1}
    assert not any(LATE_CLIENT.encode() in outcome.everything() for outcome in outcomes)
    later = START + 4 * MINUTE
    one = run(merged([*parts[1:], parts[0][len(wrong) :]]), **chosen)
    assert observed(outcomes, later) == observed([one], later)


@pytest.mark.parametrize("kind", [Probes, Counted])
@pytest.mark.parametrize("count", [1, 300])
def test_clients_from_before_a_step_are_no_servers_after_it(
    chosen: dict[str, Any], kind: type[Probes], count: int
) -> None:
    """The number that ends had told of a client: no probe shows it as a server."""
    parts = traffic()
    epoch = MIDDLE - MIDDLE % MINUTE
    client = visit(LATE_CLIENT, b"h1.example", MIDDLE - SECOND // 5)
    parts[0] = with_strays(parts[0], client + strays(count, MIDDLE + YEARS, SECOND // 50))
    for n in range(30):
        at = MIDDLE + (n + 1) * SECOND
        parts[1] += visit(user(500 + n), b"h1.example", at, LATE_CLIENT)
    parts[1].sort(key=lambda frame: frame.t_ns)
    outcomes, _probes = counted(parts, chosen, kind)
    assert epoch <= MIDDLE < epoch + MINUTE
    assert not any(LATE_CLIENT.encode() in outcome.everything() for outcome in outcomes)


@pytest.mark.parametrize("kind", [Probes, Counted])
@pytest.mark.parametrize("after_s", [72, 78])
def test_clients_of_times_that_were_wrong_are_no_servers(
    chosen: dict[str, Any], kind: type[Probes], after_s: int
) -> None:
    """A clock that was three minutes ahead for a while: its client was told of for that time only,
    and is known to one run all the same."""
    parts, away = traffic(), 3 * MINUTE
    began = MIDDLE - MIDDLE % MINUTE + 10 * SECOND
    client = visit(LATE_CLIENT, b"h1.example", began + away + 4 * SECOND)
    wrong = sorted(strays(300, began + away, SECOND // 50) + client, key=lambda frame: frame.t_ns)
    for n in range(30):
        at = began + (after_s + 8 + n) * SECOND
        parts[1] += visit(user(500 + n), b"h1.example", at, LATE_CLIENT)
    parts[1].sort(key=lambda frame: frame.t_ns)
    before, _probes = counted(parts, chosen, kind)
    assert any(LATE_CLIENT.encode() in outcome.everything() for outcome in before)
    at = next(n for n, frame in enumerate(parts[0]) if frame.t_ns >= began)
    parts[0][at:at] = wrong
    outcomes, probes = counted(parts, chosen, kind)
    assert len({votes_header(message).probe for message in probes.sent}) == len(parts) + 1
    assert not any(LATE_CLIENT.encode() in outcome.everything() for outcome in outcomes)


def test_a_clock_that_is_set_back_twice_before_an_answer_is_one_probe(
    chosen: dict[str, Any],
) -> None:
    """The counter has heard of the first number, so none of the others is another probe to it."""
    probes = Probes(1, chosen)
    for from_ns in (START, START + 20 * SECOND):
        probes.feed(0, strays(20, from_ns, SECOND))
        probes.deliver(0)
    for back in (1, 2):
        probes.feed(0, strays(20, START + back * YEARS, SECOND))
        probes.feed(0, strays(300, START + back * MINUTE, SECOND // 50))
    reads = [read_votes(message) for message in probes.sent]
    firsts = [read for read in reads if read["sequence"] == 1]
    assert len({read["probe"] for read in firsts}) == len(firsts) == 3
    assert [read["new_session"] for read in firsts] == [False, True, True]
    assert [read["new_session"] for read in reads if read["watermark_ns"] == ENDED] == [True, True]
