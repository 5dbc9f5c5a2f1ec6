# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""When records and observations leave, and in which order (`--order`)."""

import base64
import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle.epochs import Scope
from oracle.order import MINUTE, Ends, rank
from support import wire
from support.capture_bytes import PCAP_NANOSECONDS, pcap_header, pcap_record
from support.engine import Outcome, Taker, feed, make_engine, run, run_capture
from support.examples import examples
from support.packets import HOUR, MS, SECOND, SERVER_ADDRESS, Frame, Udp, dns, merged, user, visit
from support.packets import START as TALKS_START
from support.paths import ROOT

import zanon_net
from zanon_net import Config
from zanon_net.config.rules import ORDERS

START = TALKS_START - TALKS_START % HOUR  # of a minute and of an epoch
MASTER = bytes(range(32))
MINUTE_ORDER, MINUTE_ALL, CLOSING = map(ORDERS.index, ("minute", "minute-all", "closing"))
IDLE_UDP = 200 * SECOND
HOLD_MAX = 262_144


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("key") / "zanon.key"
    path.write_bytes(base64.b64encode(MASTER) + b"\n")
    path.chmod(0o600)
    return str(path)


@dataclass(frozen=True)
class Visit:
    """A TLS connection; its name is shared, or only its own."""

    number: int
    start_ns: int
    shared: bool

    @property
    def host(self) -> bytes:
        return b"www.shared.example" if self.shared else b"own%d.example" % self.number

    @property
    def frames(self) -> list[Frame]:
        return visit(user(self.number), self.host, self.start_ns)

    @property
    def closes_ns(self) -> int:
        return self.frames[-1].t_ns

    @property
    def ends(self) -> Ends:
        return Ends(user(self.number), SERVER_ADDRESS, 40000, 443, 6)


VISITS = st.lists(
    st.tuples(st.integers(0, 3 * 60 * 1000 - 1), st.booleans()), min_size=1, max_size=25
)


def visits_of(drawn: Sequence[tuple[int, bool]]) -> list[Visit]:
    return [Visit(n, START + ms * MS + n, shared) for n, (ms, shared) in enumerate(drawn)]


def expected(visits: Sequence[Visit], closing: list[bytes], scope: Scope) -> list[bytes]:
    """The lines of a run in order of closing, in the order of `minute`."""
    closed = sorted(visits, key=lambda v: v.closes_ns)
    assert len(closed) == len(closing)
    lines: list[bytes] = []
    pairs = zip(closed, closing, strict=True)
    for minute, group in itertools.groupby(pairs, key=lambda pair: pair[0].closes_ns // MINUTE):
        coarse = []
        for v, line in group:
            if json.loads(line)["name_status"] == "released":
                lines.append(line)
            else:
                place = rank(MASTER, scope, minute, v.ends, v.start_ns)
                coarse.append((place, line))
        lines += [line for _, line in sorted(coarse)]
    return lines


def jsonl(outcome: Outcome) -> list[bytes]:
    return outcome.text["jsonl"].splitlines()


@settings(max_examples=examples(30), deadline=None)
@given(VISITS, st.integers(1, 50))
def test_coarse_records_leave_when_their_minute_is_over(
    key_file: str, drawn: list[tuple[int, bool]], batch: int
) -> None:
    visits = visits_of(drawn)
    frames = merged(v.frames for v in visits)
    more: dict[str, Any] = {"key_file": key_file, "z": 2, "batch": batch}
    scope = Scope(rotate_ns=HOUR, z=2, window_ns=HOUR)
    closing = run(frames, order=CLOSING, **more)
    minute = run(frames, order=MINUTE_ORDER, **more)
    assert jsonl(minute) == expected(visits, jsonl(closing), scope)
    assert minute.stats["records"] == len(visits)
    assert minute.stats["records_held"] == 0
    for name, text in closing.text.items():
        assert sorted(text.splitlines()) == sorted(minute.text[name].splitlines())


@settings(max_examples=examples(20), deadline=None)
@given(VISITS, st.lists(st.integers(1, 60), min_size=2, max_size=4))
def test_the_order_does_not_depend_on_batches(
    key_file: str, drawn: list[tuple[int, bool]], batches: list[int]
) -> None:
    frames = merged(v.frames for v in visits_of(drawn))
    for order in (MINUTE_ORDER, MINUTE_ALL):
        first, *others = (
            run(frames, order=order, key_file=key_file, batch=batch) for batch in batches
        )
        assert all(other.text == first.text for other in others)


def write(path: Path, frames: Sequence[Frame]) -> Path:
    records = (pcap_record("<", *divmod(f.t_ns, SECOND), f.data) for f in frames)
    path.write_bytes(pcap_header(magic=PCAP_NANOSECONDS) + b"".join(records))
    return path


@pytest.mark.parametrize("order", [MINUTE_ORDER, MINUTE_ALL])
def test_the_order_does_not_depend_on_workers(tmp_path: Path, key_file: str, order: int) -> None:
    visits = [Visit(n, START + n * 170 * MS, n % 3 == 0) for n in range(1500)]
    capture = write(tmp_path / "many.pcap", merged(v.frames for v in visits))
    one, *several = (
        run_capture(capture, order=order, key_file=key_file, workers=workers)
        for workers in (1, 2, 4)
    )
    assert len(jsonl(one)) == 1500
    assert all(other.text == one.text and other.rows == one.rows for other in several)


def test_a_period_gets_the_coarse_records_of_its_last_minute(tmp_path: Path, key_file: str) -> None:
    visits = [Visit(n, START + n * 4 * SECOND, False) for n in range(45)]
    frames = merged(v.frames for v in visits)
    capture = write(tmp_path / "minutes.pcap", frames)
    config = Config().replace(z=2, key_file=key_file, format="jsonl", split="60s")
    zanon_net.run(capture, config, out=tmp_path / "out")
    parts = sorted((tmp_path / "out").glob("flows*.jsonl"))
    assert [part.read_bytes().count(b"\n") for part in parts] == [15, 15, 15]
    assert [json.loads(part.read_bytes().splitlines()[0])["t_start_ns"] for part in parts] == [
        START,
        START + MINUTE,
        START + 2 * MINUTE,
    ]


def test_records_that_close_while_it_is_quiet_leave_with_their_minute(key_file: str) -> None:
    """As if the next packet had shown it: a live run and one of a file show the same blocks."""
    talks = [
        Udp(client=user(n), t_ns=START + n * SECOND).lookup(b"own%d.example" % n) for n in range(30)
    ]
    frames = merged(talk.frames for talk in talks)
    later = Udp(client=user(99), t_ns=START + 10 * MINUTE).lookup(b"own99.example").frames
    file = run([*frames, *later], order=MINUTE_ORDER, key_file=key_file)
    taker = Taker(make_engine(order=MINUTE_ORDER, key_file=key_file))
    feed(taker.engine, frames)
    last_ns = frames[-1].t_ns
    for quiet_s in range(1, 500, 7):
        taker.engine.idle(quiet_s * SECOND)
        taker.take()
        lines = taker.text["jsonl"].splitlines()
        ended = (last_ns + quiet_s * SECOND) // MINUTE * MINUTE
        over = [t for t in talks if t.frames[-1].t_ns + IDLE_UDP < ended]
        assert len(lines) == len(over)
    feed(taker.engine, later)
    live = taker.outcome()
    assert jsonl(live) == jsonl(file)


def test_an_idle_minute_gets_no_record_of_the_next(key_file: str) -> None:
    """A flow whose idle time ends before the minute does leaves with it, though only a packet of
    the next minute shows that."""
    before = Udp(client=user(1), t_ns=START + 30 * SECOND).lookup(b"own1.example").frames
    ends_ns = before[-1].t_ns + IDLE_UDP
    minute_ends_ns = ends_ns - ends_ns % MINUTE + MINUTE
    other = visit(user(2), b"own2.example", ends_ns - 5 * SECOND)
    after = visit(user(3), b"own3.example", minute_ends_ns + SECOND)
    taker = Taker(make_engine(order=MINUTE_ORDER, key_file=key_file))
    feed(taker.engine, [*before, *other, *after[:1]])
    taker.take()
    assert len(taker.text["jsonl"].splitlines()) == 2
    feed(taker.engine, after[1:])
    assert len(jsonl(taker.outcome())) == 3


def test_all_of_a_minute_leaves_together(key_file: str) -> None:
    """Records and observations, which say no more of time than the minute."""
    visits = [Visit(n, START + n * 900 * MS, n % 2 == 0) for n in range(130)]
    frames = merged(v.frames for v in visits)
    scope = Scope(rotate_ns=HOUR, z=2, window_ns=HOUR)
    closing = run(frames, order=CLOSING, key_file=key_file)
    held = run(frames, order=MINUTE_ALL, key_file=key_file)
    by_closing = sorted(visits, key=lambda v: v.closes_ns)
    of_client = {flow["client"]: v for flow, v in zip(closing.flows, by_closing, strict=True)}
    named = {o["client"]: o["t_ns"] for o in closing.observations}

    def place(client: str, at_ns: int, t_ns: int) -> tuple[int, int]:
        minute = at_ns // MINUTE
        return minute, rank(MASTER, scope, minute, of_client[client].ends, t_ns)

    clients = [flow["client"] for flow in held.flows]
    places = [place(c, of_client[c].closes_ns, of_client[c].start_ns) for c in clients]
    assert len(places) == 130
    assert places == sorted(places)
    clients = [o["client"] for o in held.observations]
    places = [place(c, named[c], named[c]) for c in clients]
    assert len(places) == 64  # of 65 users of the shared name all but the first
    assert places == sorted(places)
    times = [o["t_ns"] for o in held.observations]
    assert times == [named[c] - named[c] % MINUTE for c in clients]
    assert all(flow["t_start_ns"] % MINUTE == 0 == flow["t_end_ns"] % MINUTE for flow in held.flows)


def test_observations_leave_only_when_their_minute_is_over(key_file: str) -> None:
    visits = [Visit(n, START + n * SECOND, True) for n in range(10)]
    taker = Taker(make_engine(order=MINUTE_ALL, key_file=key_file))
    feed(taker.engine, merged(v.frames for v in visits))
    taker.take()
    assert taker.engine.stats["observations_held"] == 9  # all but the first user's
    assert taker.text["observations"] == b""
    feed(taker.engine, Visit(10, START + MINUTE, True).frames[:1])
    taker.take()
    assert taker.text["observations"].count(b"\n") == 9
    taker.outcome()


def test_a_clock_that_is_set_anew_lets_all_leave(key_file: str) -> None:
    early = merged(Visit(n, START + n * SECOND, False).frames for n in range(20))
    back = [
        Udp(client=user(500 + n), t_ns=START - 9 * HOUR + n * MS).send(dns(b"a.example")).frames[0]
        for n in range(300)
    ]
    taker = Taker(make_engine(order=MINUTE_ORDER, key_file=key_file))
    feed(taker.engine, early)
    taker.take()
    assert taker.text["jsonl"] == b""
    feed(taker.engine, back)
    taker.take()
    starts = [json.loads(line)["t_start_ns"] for line in taker.text["jsonl"].splitlines()]
    assert starts.count(START) == 20
    taker.outcome()


def queries(n: int) -> tuple[bytes, np.ndarray[Any, Any]]:
    """n DNS questions, each of another client for another name; and the bytes of one."""
    frame = Udp(client="10.0.0.1").send(dns(b"n0000000.example")).frames[0].data
    table = np.tile(np.frombuffer(frame, np.uint8), (n, 1))
    client = frame.index(bytes([10, 0, 0, 1]))
    table[:, client : client + 4] = np.frombuffer(
        (np.arange(n, dtype=">u4") + 0x0A000001).astype(">u4").tobytes(), np.uint8
    ).reshape(n, 4)
    digits = frame.index(b"n0000000") + 1
    for place in range(7):
        table[:, digits + place] = 48 + np.arange(n) // 10 ** (6 - place) % 10
    return table.tobytes(), np.full(n, len(frame), dtype=np.uint32)


def test_too_many_to_wait_leave_at_once_without_client() -> None:
    n = HOLD_MAX + 5000
    frames, lengths = queries(n)
    engine = make_engine(
        order=MINUTE_ORDER,
        outputs=("jsonl",),
        max_flows=1 << 20,
        max_tuples=1 << 20,
        max_attributes=1 << 20,
    )
    engine.feed(frames, np.full(n, START, dtype=np.int64), lengths, lengths, wire.LINK_ETHERNET)
    text = b""
    while engine.finish():
        text += engine.take("jsonl")
    text += engine.take("jsonl")
    stats = engine.stats
    engine.close()
    lines = text.splitlines()
    assert len(lines) == n
    assert stats["hold_full"] == HOLD_MAX
    assert stats["records_held"] == 0
    without = [b'"client":null' in line and b'"epoch":0,' in line for line in lines]
    assert without == [True] * HOLD_MAX + [False] * 5000


def test_what_waited_says_the_same(key_file: str) -> None:
    """All kinds of records and texts, in every output."""
    demo = ROOT / "pcaps" / "demo.pcap"
    exact: dict[str, Any] = {"columns": ("core", "layer7", "e2e", "options", "p2p")}
    rounded: dict[str, Any] = {"digits": 2, "times_ns": MINUTE}
    for order, more in ((MINUTE_ORDER, exact), (MINUTE_ALL, rounded)):
        closing, held = (
            run_capture(demo, order=one, key_file=key_file, **more) for one in (CLOSING, order)
        )
        for name, text in closing.text.items():
            assert sorted(held.text[name].splitlines()) == sorted(text.splitlines())
