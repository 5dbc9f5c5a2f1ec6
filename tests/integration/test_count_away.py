# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Probes whose counter is away for so long that they give up what it was to be told: they go on
under another number when it is back."""

import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.certificates import Authority
from support.cli import ENVIRONMENT, run_main
from support.contract_runs import write
from support.count_desk import Desk
from support.counting import START, counts_of, key_file, start_counter
from support.engine import Outcome, run
from support.packets import MINUTE, SECOND, Frame, merged, user, visit
from support.ports import free_port
from support.probes import Portions, Probes, lines, portions
from support.waiting import wait_until

from zanon_net._core import VoteWriter, read_votes
from zanon_net.count.frames import ENDED
from zanon_net.count.url import TlsFiles
from zanon_net.keys import new_key

EPOCH = MINUTE // 2
TURNCOAT = "203.0.113.5"


@pytest.fixture
def chosen(tmp_path: Path) -> dict[str, Any]:
    key = str(key_file(tmp_path))
    return {"z": 5, "window_ns": MINUTE, "rotate_ns": EPOCH, "key_file": key}


# ---- engines -------------------------------------------------------------------------------------


class CutOff(Probes):
    """Probes of which the first one's counter is away for a time, and takes it for gone."""

    def abandon(self) -> None:
        """Has the first one give up what has no answer."""
        before = self.engines[0].count_probe[0]
        self.waiting[0].clear()
        self.engines[0].count_abandon()
        assert self.engines[0].count_probe[0] != before
        self.take(0)

    def forget_silent(self, is_away: bool) -> None:
        """The counter waits no longer for numbers that say nothing. is_away: nor does the first."""
        present = [engine.count_probe[0] for engine in self.engines[is_away:]]
        for shard in self.counter:
            for number in shard.probes.keys() - present:
                shard.forget_probe(number)

    def run(
        self, parts: Portions, away: Callable[[int], bool], gone_ns: int, given_up: list[int]
    ) -> list[Outcome]:
        """Feeds all in the order of time. away: whether the counter is, by time. gone_ns: from when
        on it does not wait for numbers that are silent. given_up: when the first one gives up."""
        arrivals = sorted(
            (frame.t_ns, n, i) for n, part in enumerate(parts) for i, frame in enumerate(part)
        )
        for t_ns, n, i in arrivals:
            if given_up and t_ns > given_up[0]:
                del given_up[0]
                self.abandon()
            self.feed(n, [parts[n][i]])
            for one in range(self.count):
                while self.waiting[one] and not (one == 0 and away(t_ns)):
                    self.deliver(one)
            if t_ns > gone_ns:
                self.forget_silent(away(t_ns))
            self.take(n)
        return self.finish()


def traffic(seed: int) -> Portions:
    """Visits of 40 users to 30 servers over ten minutes, at two probes; half of the servers are
    users at the first one, as well."""
    chance = random.Random(seed)
    talks: list[tuple[int, list[Frame]]] = []
    for _ in range(700):
        who, where = chance.randrange(40), min(int(chance.paretovariate(0.8)), 29)
        server = user(2 * where) if where % 2 else f"198.51.100.{where}"
        t_ns = START + chance.randrange(600 * SECOND)
        talks.append((who % 2, visit(user(who), b"h%d.example" % where, t_ns, server)))
    return portions(talks, 2)


def servers(flows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(flow["server"] for flow in flows if flow["server"] is not None)


@pytest.mark.family(4)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("leases", [True, False])
def test_no_more_is_shown_than_by_one_run(chosen: dict[str, Any], seed: int, leases: bool) -> None:
    """Given up twice, of which the counter hears once; all is whole again two epochs later.

    While it takes a probe for gone it may show clients of that one as servers, two epochs later.
    """
    parts = traffic(seed)
    core = chosen | {"count_leases": leases}
    one = run(merged(parts), batch=1, **core)
    probes = CutOff(2, core, shards=1 + seed % 2)
    back = START + 330 * SECOND + seed * 7 * SECOND
    lost = START + 200 * SECOND
    outcomes = probes.run(
        parts,
        lambda t_ns: lost < t_ns < back,
        lost + 20 * SECOND,
        [back - MINUTE, back - SECOND],
    )
    observed = lines(outcomes, "observations")
    expected = lines([one], "observations")
    assert observed <= expected
    later = back + 2 * MINUTE

    def late(found: Counter[bytes]) -> Counter[bytes]:
        return Counter({k: n for k, n in found.items() if json.loads(k)["t_ns"] > later})

    assert late(observed) == late(expected)
    assert late(observed).total() > 20
    flows = [flow for outcome in outcomes for flow in outcome.flows]
    while_known = [flow for flow in flows if not lost < flow["t_start_ns"] < back]
    assert servers(while_known) <= servers(one.flows)
    assert len(flows) == len(one.flows)
    assert outcomes[0].stats["marks_dropped"] > 20
    assert outcomes[0].stats["questions_unanswered"] > 0
    begun = Counter(
        votes["marks_missing"]
        for votes in map(read_votes, probes.sent)
        if votes["sequence"] == 1 and votes["shard"] == 0
    )
    assert begun == {False: 2, True: 2}


def test_a_client_of_which_the_counter_was_not_told_is_shown_as_no_server(
    chosen: dict[str, Any],
) -> None:
    """The first probe told of it in what it gave up."""
    back = 11 * EPOCH + 20 * SECOND
    start = START - START % EPOCH

    def at(epoch: int, who: int) -> int:
        return start + epoch * EPOCH + 25 * SECOND + who * SECOND // 10

    epochs = (11, 12, 13)
    talks = [(0, visit(TURNCOAT, b"x.example", start + back - 12 * SECOND))]
    talks += [(0, visit(user(90), b"b.example", start + n * 10 * SECOND)) for n in range(44)]
    talks += [
        (1, visit(user(who + 10), b"a.example", at(epoch, who), TURNCOAT))
        for epoch in epochs
        for who in range(12)
    ]
    probes = CutOff(2, chosen)
    outcomes = probes.run(
        portions(talks, 2),
        lambda t_ns: 6 * EPOCH < t_ns - start < back,
        start + 7 * EPOCH,
        [start + back - SECOND],
    )
    shown = [flow["t_start_ns"] for flow in outcomes[1].flows if flow["server"] == TURNCOAT]
    assert {(t_ns - start) // EPOCH for t_ns in shown} == {13}


def test_after_its_last_messages_a_probe_has_no_other_number(chosen: dict[str, Any]) -> None:
    probes = Probes(1, chosen)
    probes.feed(0, visit(user(1), b"a.example", START))
    while probes.engines[0].finish():
        probes.take(0)
    probes.take(0)
    number = probes.engines[0].count_probe
    probes.engines[0].count_abandon()
    assert probes.engines[0].count_probe == number
    assert probes.engines[0].count_messages() == []
    probes.take(0)
    assert probes.engines[0].count_waiting == 0
    assert probes.takers[0].outcome().stats["marks_dropped"] > 0


def test_marks_that_were_counted_are_not_dropped(chosen: dict[str, Any]) -> None:
    probes = Probes(1, chosen)
    for n in range(10):
        probes.feed(0, visit(user(n), b"a.example", START + 2 * n * SECOND))
    probes.feed(0, visit(user(90), b"a.example", START + 30 * SECOND))
    while probes.waiting[0]:
        probes.deliver(0)
    probes.take(0)
    probes.engines[0].count_abandon()
    assert probes.takers[0].engine.stats["marks_dropped"] <= 1


# ---- a counter that never heard of the number before ---------------------------------------------


def message(desk: Desk, probe: int, sequence: int, second: float) -> bytes:
    """Of a number that took the place of another one."""
    is_first = sequence == 1
    writer = VoteWriter(
        probe,
        0,
        desk.settings.number,
        sequence=sequence,
        new_session=is_first,
        marks_missing=is_first,
    )
    return bytes(writer.finish(START + int(second * SECOND) if second != ENDED else ENDED))


def talk(desk: Desk, probes: list[int], seconds: int, first: int = 1) -> None:
    """Each of the probes says something each second. first: their next message's number."""
    for sequence in range(first, first + seconds):
        desk.now_s += 1
        desk.put(*(message(desk, probe, sequence, desk.now_s) for probe in probes))


def test_probes_of_other_numbers_are_there_once_they_speak_long_enough() -> None:
    """The counter lost its state while they were cut off."""
    desk = Desk(expect_probes=2)
    talk(desk, [1, 2], 29)
    assert desk.transport.answers == []
    assert desk.service.facts().probes_missing == 2
    talk(desk, [1, 2], 5, first=30)
    assert len(desk.transport.answers) > 0
    assert desk.service.facts().probes_missing == 0
    desk.put(message(desk, 1, 35, ENDED), message(desk, 2, 35, ENDED))
    assert desk.service.is_done


def test_probes_that_have_little_to_say_are_there_too() -> None:
    """A probe that waits for its counter speaks every ten seconds."""
    desk = Desk(expect_probes=2, probe_timeout_s=2.0)
    for sequence in (1, 2):
        for probe in (1, 2):
            desk.wait(5)
            desk.put(message(desk, probe, sequence, desk.now_s))
    desk.wait(1)
    assert desk.service.facts().probes_missing == 0


def test_two_numbers_of_one_probe_are_not_two_probes() -> None:
    desk = Desk(expect_probes=2)
    talk(desk, [1], 20)
    talk(desk, [2], 100)
    assert desk.transport.answers == []
    assert desk.service.facts().probes_missing == 2


# ---- processes -----------------------------------------------------------------------------------

SETTINGS = ["--z", "5", "--window", "2m", "--rotate", "1m"]
SMALL = """
import sys
from zanon_net.pipeline import counting
counting.MUTE_BYTES, counting.SPEAK_BYTES, counting.ABANDON_BYTES = 6000, 4000, 12_000
counting.SIZE_S = 0.0
from zanon_net.cli import main
sys.exit(main(sys.argv[1:]))
"""
LENGTH = 600 * SECOND


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A probe's packets and its key."""
    folder, chance = tmp_path_factory.mktemp("capture"), random.Random(3)
    talks = []
    for _ in range(1200):
        who, where = chance.randrange(10, 70), min(int(chance.paretovariate(0.5)), 99)
        t_ns, server = START + chance.randrange(LENGTH), f"198.51.100.{where}"
        talks.append(visit(user(who), b"h%d.example" % where, t_ns, server))
    write(folder / "p0.pcap", merged(talks))
    new_key(folder / "zanon.key")
    return folder


def arguments_of(capture: Path, source: str, out: Path) -> list[str]:
    formats = ["--format", "jsonl", "--format", "observations"]
    key = ["--key-file", str(capture / "zanon.key"), "--internal", "10.0.0.0/8"]
    return ["run", source, "--out", str(out), *SETTINGS, *formats, *key]


class Stream:
    """A probe that reads what is written to it, piece by piece."""

    def __init__(self, capture: Path, out: Path, place: str, *more: str) -> None:
        counting = ["--count-at", place, "--probe", "p", "--count-leases", "no", *more]
        patience = ["--count-hold", "1s", "--count-wait", "2s", "--flush", "100ms"]
        command = [*arguments_of(capture, "-", out), *counting, *patience]
        self._said = out.with_suffix(".said").open("w+b")
        self.process = subprocess.Popen(
            [sys.executable, "-c", SMALL, *command],
            env=ENVIRONMENT,
            stdin=subprocess.PIPE,
            stderr=self._said,
        )
        packets = (capture / "p0.pcap").read_bytes()
        size = len(packets) // 120
        self._pieces: Iterator[bytes] = (
            packets[at : at + size] for at in range(0, len(packets), size)
        )

    @property
    def said(self) -> str:
        self._said.flush()
        return Path(self._said.name).read_text()

    def write(self, pieces: int) -> None:
        assert self.process.stdin is not None
        for _ in range(pieces):
            self.process.stdin.write(next(self._pieces))
            self.process.stdin.flush()
            time.sleep(0.1)

    def write_until(self, text: str) -> None:
        """Writes on until it has said this."""
        while text not in self.said:
            self.write(1)

    def end(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(b"".join(self._pieces))
        self.process.stdin.close()
        assert self.process.wait(60) == 0, self.said


def started(place: str, *more: object) -> "subprocess.Popen[str]":
    """A counter that takes votes."""
    about = Path(place.removeprefix("file:"), "counter.json")
    about.unlink(missing_ok=True)
    process = start_counter(place, *SETTINGS, "--expect-probes", 1, "--probe-timeout", "1s", *more)
    assert process.stderr is not None
    if place.startswith("tls"):
        assert "counting on port" in process.stderr.readline()
    else:
        wait_until(about.exists)
    return process


def times(lines_of: Counter[bytes]) -> list[int]:
    return sorted(json.loads(line)["t_ns"] - START for line in lines_of)


def logs(folder: Path, name: str) -> Counter[bytes]:
    return Counter((folder / f"{name}.jsonl").read_bytes().splitlines())


def tls_options(tls: TlsFiles, prefix: str) -> list[str]:
    files = (("cert", tls.cert), ("key", tls.key), ("ca", tls.ca))
    return [text for name, path in files for text in (prefix + name, str(path))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scheme", "keeps_state"), [("tls", True), ("file", False)], ids=["tls, state", "file, none"]
)
def test_a_run_goes_on_when_its_counter_is_back(
    capture: Path, tmp_path: Path, scheme: str, keeps_state: bool
) -> None:
    """Names are released again, and the counter has one probe, whether it knew it or not."""
    assert run_main(*arguments_of(capture, str(capture / "p0.pcap"), tmp_path / "one"), "-q") == 0
    place, more, own = f"file:{tmp_path / 'votes'}", ["--until-done", "--json"], []
    if scheme == "tls":
        place, authority = f"tls://127.0.0.1:{free_port()}", Authority(tmp_path)
        tls = authority.certify("p")
        own = tls_options(tls, "--count-tls-")
        more += tls_options(authority.certify("counter"), "--tls-")
    if keeps_state:
        files = ("--state", tmp_path / "state", "--state-key-file", key_file(tmp_path))
        more += map(str, files)
    process = started(place, *more)
    probe = Stream(capture, tmp_path / "p0", place, *own)
    try:
        probe.write(30)
        if scheme == "tls":
            tls.key.unlink()  # as where the run may not read it any more
        process.kill()
        process.communicate()
        probe.write_until("the counter has not answered for so long")
        process = started(place, *more)
        probe.write_until("the counter answers again")
        probe.end()
        counts = counts_of(process)
    finally:
        probe.process.kill()
        process.kill()
    assert counts["ended"] == 1
    assert counts["probes"] >= 1 + keeps_state
    assert probe.said.count("the counter has not answered for so long") == 1
    assert probe.said.count("the counter answers again") == 1
    observed, one = (logs(tmp_path / run_, "observations") for run_ in ("p0", "one"))
    assert observed <= one
    assert times(observed)[0] < LENGTH / 3
    assert times(observed)[-1] > LENGTH * 0.8
    flows, all_flows = (
        [json.loads(line) for line in logs(tmp_path / run_, "flows").elements()]
        for run_ in ("p0", "one")
    )
    assert len(flows) == len(all_flows)
    assert servers(flows) <= servers(all_flows)
    about = json.loads((tmp_path / "p0/manifest.json").read_bytes())["counters"]["count"]
    assert about["marks_dropped"] > 0
    if scheme == "file":
        assert not list((tmp_path / "votes").rglob("*.znv"))


@pytest.mark.parametrize("others", [0, 1])
def test_probes_that_ended_are_there_for_a_counter_without_state(others: int) -> None:
    """A number that took the place of one that nobody knows decides nothing, until it is clear that
    the others that are expected have ended, as it may have itself."""
    desk = Desk(expect_probes=1 + others)
    for probe in range(others):
        desk.send(10 + probe, {}, ENDED)
    new_session = VoteWriter(1, 0, desk.settings.number, new_session=True, marks_missing=True)
    desk.put(bytes(new_session.finish(START)))
    last = VoteWriter(1, 0, desk.settings.number, sequence=2)
    assert desk.answers == {}
    if not others:
        desk.put(bytes(last.finish(ENDED)))
        assert not desk.service.counter.is_done
        desk.wait(2)
        assert desk.service.counter.is_done
    else:
        for sequence in range(2, 12):
            again = VoteWriter(1, 0, desk.settings.number, sequence=sequence)
            desk.now_s += 10
            desk.put(bytes(again.finish(START + sequence)))
    assert (1, 1) in desk.answers
    assert desk.service.counter.probes_missing == 0
