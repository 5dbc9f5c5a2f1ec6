# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Engines that are probes, whose votes a counter decides: logs, clients, silence, and secrets."""

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from support.engine import ALL, ANYWHERE, LOGS, NO, Outcome, run
from support.packets import HOUR, MINUTE, SECOND, START, Frame, Udp, merged, user, visit
from support.probes import Portions, Probes, counted, lines, portions

from zanon_net._core import VOTE_KINDS, read_votes, vote_rules, write_answers
from zanon_net.errors import ConfigError, FormatError

TURNCOAT = "203.0.113.5"
CANARY = b"canary-7f3a.example"


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("key") / "zanon.key"
    path.write_text("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
    path.chmod(0o600)
    return {"z": 5, "window_ns": MINUTE, "rotate_ns": MINUTE // 2, "key_file": str(path)}


def traffic(visits: int = 400, *, seed: int = 1) -> Portions:
    """Visits of 40 users to 30 servers over ten minutes, at four probes."""
    chance = random.Random(seed)
    talks: list[tuple[int, list[Frame]]] = []
    for _ in range(visits):
        who, where = chance.randrange(40), min(int(chance.paretovariate(0.8)), 29)
        t_ns = START + chance.randrange(600 * SECOND)
        host, server = b"h%d.example" % where, f"198.51.100.{where}"
        talks.append((who % 4, visit(user(who), host, t_ns, server)))
    return portions(talks, 4)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"order": 0, "split_ns": 2 * MINUTE, "workers": 2},
        {"shards": 4, "batch": 1},
        {"dn_hunter": True, "exact": True, "columns": ("core", "layer7", "e2e", "options")},
    ],
    ids=["plain", "minutes and periods", "shards", "columns"],
)
def test_probes_write_what_one_run_writes(chosen: dict[str, Any], more: dict[str, Any]) -> None:
    parts = traffic()
    own = {name: more[name] for name in ("shards", "batch") if name in more}
    core = chosen | {name: value for name, value in more.items() if name not in own}
    one = run(merged(parts), **core)
    outcomes, _probes = counted(parts, core, **own)
    for output in LOGS:
        assert lines(outcomes, output) == lines([one], output), output
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        counts.update(outcome.stats)
    own_counts = {"questions", "records_held", "observations_held"}
    assert {k: v for k, v in one.stats.items() if k not in own_counts} == {
        k: counts[k] for k in one.stats if k not in own_counts
    }
    assert one.stats["released"] > 100
    assert counts["questions"] > counts["observations"]


def test_a_client_at_one_probe_is_no_server_at_another(chosen: dict[str, Any]) -> None:
    talks = [(0, visit(TURNCOAT, b"x.example", START))]
    talks += [(1, visit(user(n), b"a.example", START + n * SECOND, TURNCOAT)) for n in range(1, 20)]
    outcomes, probes = counted(portions(talks, 2), chosen)
    assert outcomes[1].stats["released"] > 10
    assert TURNCOAT.encode() not in b"".join(outcome.everything() for outcome in outcomes)
    without, _probes = counted(portions(talks[1:], 2), chosen)
    assert TURNCOAT.encode() in without[1].everything()
    assert not any(TURNCOAT.encode() in message for message in probes.sent)


def test_an_epoch_later_a_client_may_be_a_server(chosen: dict[str, Any]) -> None:
    epoch = chosen["rotate_ns"]
    later = START + 3 * epoch
    talks = [(0, visit(TURNCOAT, b"x.example", START))]
    talks += [(0, visit(user(99), b"b.example", START + n * epoch)) for n in range(4)]
    talks += [(1, visit(user(n), b"a.example", later + n * SECOND, TURNCOAT)) for n in range(20)]
    parts = portions(talks, 2)
    outcomes, _probes = counted(parts, chosen)
    assert lines(outcomes, "jsonl") == lines([run(merged(parts), **chosen)], "jsonl")
    assert TURNCOAT.encode() in outcomes[1].everything()


def test_a_flow_over_epochs_keeps_its_servers_past(chosen: dict[str, Any]) -> None:
    epoch = chosen["rotate_ns"]
    talks = [(1, visit(user(n), b"a.example", START + n * SECOND, TURNCOAT)) for n in range(9)]
    long = visit(user(30), b"a.example", START + 9 * SECOND, TURNCOAT)
    at = START + 4 * epoch
    slow = [*long[:6], *(replace(f, t_ns=at + n * SECOND) for n, f in enumerate(long[6:]))]
    talks += [(1, slow), (0, visit(TURNCOAT, b"x.example", START + epoch + SECOND))]
    talks += [(n % 2, visit(user(40), b"b.example", START + n * epoch)) for n in range(6)]
    parts = portions(talks, 2)
    outcomes, _probes = counted(parts, chosen, batch=1)
    one = run(merged(parts), batch=1, **chosen)
    assert lines(outcomes, "jsonl") == lines([one], "jsonl")
    servers = {flow["t_start_ns"]: flow["server"] for flow in one.flows if flow["name"]}
    assert servers[max(t_ns for t_ns in servers if t_ns < START + 10 * SECOND)] is None
    assert TURNCOAT in servers.values()


@pytest.mark.parametrize(
    ("core", "options"),
    [
        ({}, {}),
        ({"user_prefix": (24, 64)}, {"user_prefix": (24, 64)}),
        ({"established": False}, {"evidence": "any"}),
        ({"dns_votes": ALL}, {"dns_votes": "all"}),
        ({"dns_votes": NO, "internal": ANYWHERE}, {"dns_votes": "no", "internal": True}),
    ],
    ids=["plain", "users", "evidence", "all of DNS", "none of DNS, internal networks"],
)
def test_a_message_says_who_counts_as_a_user(
    chosen: dict[str, Any], core: dict[str, Any], options: dict[str, Any]
) -> None:
    parts = portions([(0, visit(user(1), b"a.example", START))], 1)
    _outcomes, probes = counted(parts, chosen | core)
    rules = [read_votes(message)["rules"] for message in probes.sent]
    assert len(set(rules)) == 1
    assert rules[0] == vote_rules(**options, key_check=rules[0] >> 24)


def silent(parts: Portions, core: dict[str, Any]) -> list[Outcome]:
    """What four probes write whose counter never answers."""
    probes = Probes(4, core)
    for n, part in enumerate(parts):
        probes.feed(n, part)
        assert probes.engines[n].must_wait
        while probes.engines[n].finish():
            probes.take(n)
        while probes.engines[n].suppress_waiting(True):
            probes.take(n)
        probes.take(n)
    return [taker.outcome() for taker in probes.takers]


def test_silence_suppresses_and_the_run_goes_on(chosen: dict[str, Any]) -> None:
    parts = traffic()
    outcomes = silent(parts, chosen | {"count_leases": False})
    one = run(merged(parts), **chosen)
    assert sum(outcome.stats["released"] for outcome in outcomes) == 0
    assert sum(outcome.stats["records"] for outcome in outcomes) == one.stats["records"]
    for outcome in outcomes:
        assert b"example" not in outcome.everything()
        assert outcome.stats["suppressed_unanswered"] == outcome.stats["observations"]
        assert outcome.stats["questions_unanswered"] > outcome.stats["observations"]


def test_in_silence_a_probe_releases_what_its_own_users_share(chosen: dict[str, Any]) -> None:
    parts = traffic(1200)
    outcomes = silent(parts, chosen)
    observed = lines(outcomes, "observations")
    assert observed == lines([run(part, **chosen) for part in parts], "observations")
    assert observed < lines([run(merged(parts), **chosen)], "observations")


def test_leases_ask_less_and_decide_the_same(chosen: dict[str, Any]) -> None:
    parts, core = traffic(3000), chosen | {"z": 3, "exact": True, "dn_hunter": True}
    one = run(merged(parts), **core)
    sent = {}
    for leases in (True, False):
        outcomes, _probes = counted(parts, core | {"count_leases": leases})
        for output in LOGS:
            assert lines(outcomes, output) == lines([one], output), output
        sent[leases] = sum(outcome.stats["questions"] for outcome in outcomes)
    assert sent[True] < sent[False] - one.stats["released"] / 2


@pytest.mark.parametrize("seed", range(8))
def test_late_answers_release_nothing_else(chosen: dict[str, Any], seed: int) -> None:
    """Whatever is given up, no more is released than by one run."""
    chance, parts = random.Random(seed), traffic(seed=seed)
    core = chosen | {"count_hold_ns": chance.choice([0, SECOND, 20 * SECOND])}
    probes, at = Probes(4, core), [0] * 4
    while any(at[n] < len(part) for n, part in enumerate(parts)):
        n = chance.randrange(4)
        probes.feed(n, parts[n][at[n] : at[n] + 32])
        at[n] += 32
        for m in range(4):
            if chance.random() < 0.5:
                probes.deliver(m)
            if chance.random() < 0.1:
                probes.engines[m].suppress_waiting(chance.random() < 0.3)
            probes.take(m)
    outcomes = probes.finish()
    one = run(merged(parts), **core)
    observed = lines(outcomes, "observations")
    assert observed <= lines([one], "observations")
    assert 0 < observed.total() < lines([one], "observations").total()
    assert sum(o.stats["questions_unanswered"] for o in outcomes) > 0
    servers = [Counter(f["server"] for f in o.flows if f["server"]) for o in (*outcomes, one)]
    assert sum(servers[:-1], Counter()) <= servers[-1]


def test_no_name_leaves_a_probe(chosen: dict[str, Any]) -> None:
    talks = [
        (n % 2, visit(user(n), CANARY, START + n * SECOND, f"198.51.100.{n}")) for n in range(9)
    ]
    outcomes, probes = counted(portions(talks, 2), chosen)
    assert any(CANARY in outcome.everything() for outcome in outcomes)
    dumps = [counter.dump() for counter in probes.counter]
    for sent in (*probes.sent, *dumps):
        assert CANARY not in sent
        assert b"canary" not in sent
        assert bytes([10, 7, 0]) not in sent


def test_bad_answers_are_refused(chosen: dict[str, Any]) -> None:
    probes = Probes(1, chosen)
    engine = probes.engines[0]
    with pytest.raises(FormatError):
        engine.count_answer(b"no answer")
    probes.feed(0, traffic()[0])
    probes.deliver(0)
    other = Probes(1, chosen)
    other.feed(0, traffic()[0])
    for message in other.engines[0].count_messages() + list(other.waiting[0]):
        assert other.counter[0].put(message)
    answers = other.counter[0].decide()
    assert answers
    for answer in answers:
        with pytest.raises(FormatError, match="did not ask"):
            engine.count_answer(answer)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"key_file": None}, "key file"),
        ({"z": 1}, "nothing to count"),
        ({"z_max": 9}, "counts"),
        ({"popularity": True}, "counts"),
        ({"outputs": ("packets",)}, "packets"),
    ],
)
def test_what_a_counter_cannot_decide_is_refused(
    chosen: dict[str, Any], wrong: dict[str, Any], text: str
) -> None:
    with pytest.raises(ConfigError, match=text):
        Probes(1, chosen | wrong)


def test_shards_are_a_power_of_two(chosen: dict[str, Any]) -> None:
    probes = Probes(1, chosen)
    with pytest.raises(ConfigError, match="already"):
        probes.engines[0].count_begin(1)
    assert chosen["window_ns"] < HOUR


def test_epochs_that_a_probe_slept_through_count(chosen: dict[str, Any]) -> None:
    """The server of a flow that is open meanwhile is a client elsewhere."""
    epoch = chosen["rotate_ns"]
    talks = [(1, visit(user(n), b"a.example", START + n * SECOND, TURNCOAT)) for n in range(9)]
    long = visit(user(30), b"a.example", START + 9 * SECOND, TURNCOAT)
    at = START + 6 * epoch
    slow = [*long[:6], *(replace(f, t_ns=at + n * SECOND) for n, f in enumerate(long[6:]))]
    talks += [(1, slow), (0, visit(TURNCOAT, b"x.example", START + 2 * epoch + SECOND))]
    talks += [(0, visit(user(40), b"b.example", START + n * epoch)) for n in range(7)]
    parts = portions(talks, 2)
    outcomes, _probes = counted(parts, chosen, batch=1)
    one = run(merged(parts), batch=1, **chosen)
    servers = [Counter(f["server"] for f in o.flows if f["server"]) for o in (*outcomes, one)]
    assert sum(servers[:-1], Counter()) <= servers[-1]


def lied_to(frames: list[Frame], core: dict[str, Any], batch: int = 64) -> Outcome:
    """What a probe writes whose counter says yes to everything."""
    probes = Probes(1, core)
    engine, taker = probes.engines[0], probes.takers[0]

    def say_yes() -> None:
        probes.take(0)
        while probes.waiting[0]:
            votes = read_votes(probes.waiting[0].popleft())
            place = (votes["shard"], votes["probe"], votes["sequence"], votes["settings"])
            engine.count_answer(write_answers(*place, [True] * len(votes["kind"])))
        probes.take(0)

    for at in range(0, len(frames), batch):
        probes.feed(0, frames[at : at + batch])
        say_yes()
    while engine.finish():
        taker.take()
    say_yes()
    assert engine.count_waiting == 0
    return taker.outcome()


def test_a_lying_counter_shows_nothing_that_the_probe_withholds(chosen: dict[str, Any]) -> None:
    never, inside, home = b"never-9c1.example", "10.7.9.9", b"printer-5d2.home.arpa"
    talks = [(0, visit(TURNCOAT, b"x.example", START))]
    for n in range(1, 20):
        at = START + n * SECOND
        talks.append((0, visit(user(n), b"a.example", at, TURNCOAT)))
        talks.append((0, visit(user(n), never, at, inside)))
        talks.append((0, visit(user(n), home, at, "169.254.7.7")))
        talks.append((0, visit(user(n), b"bad name", at)))
        talks.append((0, visit(user(n), b"half-3e1.example", at)[3:4]))
    outcome = lied_to(portions(talks, 1)[0], chosen | {"never": [b"never-9c1.example"]})
    assert outcome.stats["released"] > 10
    written = outcome.everything()
    assert b"a.example" in written
    for withheld in (never, home, b"bad name", b"half-3e1", b"169.254.7.7", inside.encode()):
        assert withheld not in written
    assert TURNCOAT.encode() not in written  # a client of this very probe


@pytest.mark.parametrize("workers", [1, 2])
def test_flows_that_wait_leave_room_for_others(chosen: dict[str, Any], workers: int) -> None:
    """Though no answer comes while one call takes many more flows than there may be."""
    frames = traffic(3000)[0]
    small = chosen | {"max_flows": 64, "workers": workers}
    probes = Probes(1, small)
    probes.feed(0, frames)
    outcome = probes.finish()[0]
    assert outcome.stats["drop_flow_table_full"] == 0
    assert outcome.stats["records"] == run(frames, **small).stats["records"]


def test_a_clock_set_back_finds_no_flow_that_waits(chosen: dict[str, Any]) -> None:
    """A connection that closed is as gone on the new clock as in a run that counts by itself."""
    talk = visit(user(1), b"a.example", START)
    earlier = START - HOUR
    packets = [
        Udp("10.7.1.1", "198.51.100.9", (9, 9), earlier + n).send(b"x").frames for n in range(300)
    ]
    again = [replace(f, t_ns=earlier + SECOND + n) for n, f in enumerate(talk[4:6])]
    frames = [*talk, *(frame for packet in packets for frame in packet), *again]
    one = run(frames, batch=64, **chosen)
    probes = Probes(1, chosen)
    for at in range(0, len(frames), 64):
        probes.feed(0, frames[at : at + 64])
    outcome = probes.finish()[0]
    assert one.stats["clock_rebased"] == outcome.stats["clock_rebased"] == 1
    for name in ("flows_tcp", "flows_midstream", "drop_flow_closed"):
        assert outcome.stats[name] == one.stats[name], name


def test_a_silent_counter_costs_few_messages(chosen: dict[str, Any]) -> None:
    probes = Probes(1, chosen)
    probes.engines[0].count_mute(True)
    for second in range(100):
        probes.feed(
            0, Udp("10.7.1.1", "198.51.100.9", (9, 9), START + second * SECOND).send(b"x").frames
        )
    assert len(probes.sent) == 10


def test_a_late_client_is_one_in_its_own_epoch(chosen: dict[str, Any]) -> None:
    epoch = chosen["rotate_ns"]
    late = visit(user(1), b"a.example", START + epoch - SECOND)
    probes = Probes(1, chosen)
    probes.feed(0, visit(user(2), b"a.example", START + epoch))
    probes.feed(0, late)
    probes.finish()
    told = [read_votes(message) for message in probes.sent]
    marked = {
        t_ns // epoch - START // epoch
        for votes in told
        for kind, t_ns in zip(votes["kind"].tolist(), votes["t_ns"].tolist(), strict=True)
        if kind == VOTE_KINDS["client"]
    }
    assert marked == {0, 1}
