# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Engines that are probes whose hashes change: they decide as if these never did."""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from support.engine import LOGS, Outcome, feed, run
from support.packets import MINUTE, SECOND, START, Frame, merged, user, visit
from support.probes import Portions, Probes, counted, lines, portions, traffic

from zanon_net._core import VOTE_KINDS, PacketEngine, read_votes, vote_settings
from zanon_net.errors import ConfigError, FormatError

TURNCOAT = "203.0.113.5"
WINDOW, EPOCH = MINUTE, MINUTE // 2
LENGTH = WINDOW + 2 * EPOCH + 7 * SECOND
CHANGE = -(-START // LENGTH) * LENGTH  # of generations, the first one after the start
KINDS = {number: name for name, number in VOTE_KINDS.items()}


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    path = tmp_path_factory.mktemp("key") / "zanon.key"
    path.write_text("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
    path.chmod(0o600)
    return {"z": 4, "window_ns": WINDOW, "rotate_ns": EPOCH, "key_file": str(path)}


@pytest.fixture(scope="module")
def chosen(plain: dict[str, Any]) -> dict[str, Any]:
    return plain | {"count_rotate_ns": LENGTH}


def votes_of(probes: Probes, *kinds: str) -> Iterable[tuple[str, int, tuple[int, int, int]]]:
    """(kind, time, (user, lo, hi)) of what was sent."""
    for message in probes.sent:
        votes = read_votes(message)
        columns = (votes[name].tolist() for name in ("kind", "t_ns", "user", "lo", "hi"))
        for kind, t_ns, *ids in zip(*columns, strict=True):
            if KINDS[kind] in kinds:
                yield KINDS[kind], t_ns, (ids[0], ids[1], ids[2])


@pytest.mark.family(6)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "more",
    [
        {},
        {"count_leases": False},
        {"shards": 4, "batch": 1},
        {"probes": 1},
        {"dn_hunter": True, "exact": True, "columns": ("core", "layer7")},
        {"dns_votes": 2, "order": 0},
    ],
    ids=["plain", "no leases", "shards", "one probe", "columns", "minutes"],
)
def test_probes_write_what_they_write_without_generations(
    plain: dict[str, Any], more: dict[str, Any], seed: int
) -> None:
    chance = random.Random(seed)
    own = {name: more[name] for name in ("shards", "batch") if name in more}
    core = {k: v for k, v in more.items() if k not in ("shards", "batch", "probes")}
    window, epoch = chance.randrange(5, 60) * SECOND, chance.randrange(10, 40) * SECOND
    core |= plain | {"window_ns": window, "rotate_ns": epoch}
    parts = traffic(800, seed=seed, probes=more.get("probes", 4))
    length = window + 2 * epoch + chance.randrange(40) * SECOND
    before, _probes = counted(parts, core, seed=seed, **own)
    outcomes, probes = counted(parts, core | {"count_rotate_ns": length}, seed=seed, **own)
    for now, then in zip(outcomes, before, strict=True):
        assert {output: Counter(now.text[output].splitlines()) for output in LOGS} == {
            output: Counter(then.text[output].splitlines()) for output in LOGS
        }
        assert now.stats | {"questions": 0} == then.stats | {"questions": 0}
        assert now.users == then.users
    one = run(merged(parts), **core)
    assert lines(outcomes, "observations") == lines([one], "observations")
    assert one.stats["released"] > 50
    assert len({t_ns // length for _kind, t_ns, _ids in votes_of(probes, "client")}) > 2


def test_votes_count_twice_before_a_change_and_only_then(
    plain: dict[str, Any], chosen: dict[str, Any]
) -> None:
    parts, leases = traffic(800, seed=5), {"count_leases": False}
    _outcomes, probes = counted(parts, chosen | leases)
    _same, before = counted(parts, plain | leases)

    def by_time(of: Probes, *kinds: str) -> Counter[int]:
        return Counter(t_ns for _kind, t_ns, _ids in votes_of(of, *kinds))

    for kind, again in (("name", "only"), ("addr", "addr")):
        votes = by_time(before, kind)
        due = Counter({t: n for t, n in votes.items() if -t % LENGTH <= WINDOW and t % LENGTH})
        assert 0 < due.total() < votes.total() / 2
        assert by_time(probes, *{kind, again}) == votes + due
        assert by_time(probes, kind) >= votes
    for kind in ("peek", "addr_check", "addr_peek"):
        assert by_time(probes, kind) == by_time(before, kind)


def test_no_hash_outlives_its_generation(chosen: dict[str, Any]) -> None:
    _outcomes, probes = counted(traffic(800, seed=6), chosen | {"count_leases": False})
    seen: dict[tuple[str, int], set[int]] = defaultdict(set)
    for kind, t_ns, (of, lo, _hi) in votes_of(probes, "name", "addr_check"):
        for what, number in (("user", of), (kind, lo)):
            if number:
                seen[what, number].add(t_ns // LENGTH)
    assert {len(generations) for generations in seen.values()} == {1}
    assert len(seen) > 100


def test_a_flow_over_a_change_has_a_user_in_each_generation(chosen: dict[str, Any]) -> None:
    """Though its votes are asked about together."""
    talks = []
    for n in range(5):
        slow = visit(user(n), b"slow.example", CHANGE - SECOND + n)
        later = [replace(frame, t_ns=frame.t_ns + 2 * SECOND) for frame in slow[3:]]
        talks += [(0, [*slow[:3], *later])]
        talks += [(0, visit(user(n), b"a.example", CHANGE - 2 * SECOND + n))]
    _outcomes, probes = counted(portions(talks, 1), chosen | {"count_leases": False}, batch=999)
    users: dict[bool, set[int]] = {False: set(), True: set()}
    for _kind, t_ns, (of, _lo, _hi) in votes_of(probes, "name"):
        users[t_ns < CHANGE].add(of)
    assert (len(users[False]), len(users[True])) == (5, 5)
    assert not users[False] & users[True]


def test_a_client_before_a_change_is_no_server_after_it(chosen: dict[str, Any]) -> None:
    """It was told of one epoch, and so one generation, before."""
    told = (CHANGE // EPOCH - 1) * EPOCH + SECOND
    talks = [(0, visit(TURNCOAT, b"x.example", told))]
    begin = CHANGE // EPOCH * EPOCH
    talks += [
        (1, visit(user(n), b"a.example", max(begin, CHANGE) + n * SECOND // 2, TURNCOAT))
        for n in range(20)
    ]
    talks += [(0, visit(user(99), b"b.example", told + n * EPOCH)) for n in range(4)]
    outcomes, _probes = counted(portions(talks, 2), chosen)
    assert outcomes[1].stats["released"] > 10
    assert TURNCOAT.encode() not in b"".join(outcome.everything() for outcome in outcomes)
    without, _probes = counted(portions(talks[1:], 2), chosen)
    assert TURNCOAT.encode() in without[1].everything()


def test_a_late_vote_meets_a_client_of_after_the_change(chosen: dict[str, Any]) -> None:
    """In the epoch in which the generation changes."""
    assert CHANGE % EPOCH > 3 * SECOND
    late = [visit(user(n), b"a.example", CHANGE - 2 * SECOND + n, TURNCOAT) for n in range(1, 20)]
    outcomes = {}
    for tells in (True, False):
        probes = Probes(2, chosen)
        for n in range(2):
            probes.feed(n, visit(user(n), b"b.example", CHANGE - EPOCH))
        if tells:
            probes.feed(0, visit(TURNCOAT, b"x.example", CHANGE + SECOND))
        for n in range(2):
            probes.feed(n, visit(user(n), b"b.example", CHANGE + 3 * SECOND))
        while any(probes.waiting):
            for n in range(2):
                probes.deliver(n)
        assert probes.counter[0].watermark > CHANGE + 2 * SECOND
        probes.feed(1, merged(late))
        outcomes[tells] = probes.finish()[1]
        marks = Counter(t_ns for _kind, t_ns, _ids in votes_of(probes, "client"))
        told = {n for t_ns, n in marks.items() if 0 <= t_ns - CHANGE - SECOND < SECOND}
        assert told == ({2} if tells else set())
    assert TURNCOAT.encode() not in outcomes[True].everything()
    assert TURNCOAT.encode() in outcomes[False].everything()


def users_of(frames: Iterable[Frame]) -> dict[int, bytes]:
    """The client of each frame, by its time."""
    to_client = (443).to_bytes(2, "big")  # the source port
    return {f.t_ns: f.data[30:34] if f.data[34:36] == to_client else f.data[26:30] for f in frames}


def seen_by(parts: Portions, core: dict[str, Any]) -> list[tuple[int, bytes, str]]:
    """(time, user, name) of all votes for names, each probe by itself."""
    seen = []
    for part in parts:
        clients = users_of(part)
        for one in run(part, **(core | {"z": 1})).observations:
            seen.append((one["t_ns"], clients[one["t_ns"]], one["name"]))
    return seen


def assert_shared(
    outcomes: list[Outcome], seen: list[tuple[int, bytes, str]], core: dict[str, Any]
) -> int:
    """Whatever was released, z users shared it; returns how much was."""
    of: dict[str, list[tuple[int, bytes]]] = defaultdict(list)
    for t_ns, who, name in seen:
        of[name].append((t_ns, who))
    released = [one for outcome in outcomes for one in outcome.observations]
    for one in released:
        since_ns, until_ns = one["t_ns"] - core["window_ns"], one["t_ns"]
        users = {who for t_ns, who in of[one["name"]] if since_ns <= t_ns <= until_ns}
        assert len(users) >= core["z"], one
    return len(released)


@pytest.mark.parametrize("seed", range(4))
def test_late_and_lost_answers_release_nothing_else(chosen: dict[str, Any], seed: int) -> None:
    """Packets come out of order, and probes give up."""
    chance, parts = random.Random(seed), traffic(800, seed=seed)
    seen = seen_by(parts, chosen)
    probes, at = Probes(4, chosen), [0] * 4
    mixed = [sorted(part, key=lambda f: f.t_ns + chance.randrange(20) * SECOND) for part in parts]
    while any(at[n] < len(part) for n, part in enumerate(mixed)):
        n = chance.randrange(4)
        probes.feed(n, mixed[n][at[n] : at[n] + 32])
        at[n] += 32
        for m in range(4):
            for _ in range(chance.randrange(4)):
                probes.deliver(m)
            if chance.random() < 0.02:
                probes.engines[m].suppress_waiting(chance.random() < 0.3)
            probes.take(m)
    assert assert_shared(probes.finish(), seen, chosen) > 10


@pytest.mark.parametrize("seed", range(4))
def test_a_clock_that_is_set_back_over_a_change_releases_nothing_else(
    chosen: dict[str, Any], seed: int
) -> None:
    chance, parts = random.Random(seed), traffic(1200, seed=seed)
    back = WINDOW + chance.choice([LENGTH, 2 * LENGTH, 2 * LENGTH + EPOCH])
    wrong = [
        [
            *part[: len(part) // 2],
            *(replace(f, t_ns=f.t_ns - back - 1) for f in part[len(part) // 2 :]),
        ]
        for part in parts
    ]
    seen = seen_by([sorted(part, key=lambda f: f.t_ns) for part in wrong], chosen)
    seen += seen_by([part[: len(part) // 2] for part in wrong], chosen)
    seen += seen_by([part[len(part) // 2 :] for part in wrong], chosen)
    outcomes, _probes = counted(wrong, chosen, seed=seed)
    assert sum(outcome.stats["clock_rebased"] for outcome in outcomes) > 0
    assert assert_shared(outcomes, seen, chosen) > 20


def test_rows_go_with_the_first_of_both_votes(chosen: dict[str, Any]) -> None:
    probes, rows = Probes(1, chosen | {"count_rows": True, "count_leases": False}), []
    engine, t_ns = probes.engines[0], CHANGE - 5 * SECOND
    for n in range(9):
        feed(engine, visit(user(n), b"a.example", t_ns + n * SECOND // 2))
    while engine.finish():
        probes.takers[0].take()
    frames = engine.count_messages()
    for message, block in zip(frames[::2], frames[1::2], strict=True):
        kinds = [KINDS[kind] for kind in read_votes(message)["kind"].tolist()]
        rows += list(zip(kinds, PacketEngine.count_rows_of(block), strict=True))
    assert Counter(kind for kind, row in rows if row is not None) == {"name": 9}
    assert Counter(kind for kind, row in rows if row is None)["only"] == 9


def test_all_probes_and_the_counter_need_the_same_length(
    plain: dict[str, Any], chosen: dict[str, Any]
) -> None:
    number = vote_settings(4, WINDOW, EPOCH, LENGTH)
    assert number != vote_settings(4, WINDOW, EPOCH) == vote_settings(4, WINDOW, EPOCH, None)
    probes, others = Probes(1, chosen), Probes(1, plain)
    assert probes.engines[0].count_probe[1] == number
    assert others.engines[0].count_probe[1] == vote_settings(4, WINDOW, EPOCH)
    others.feed(0, traffic(20, seed=1)[0])
    with pytest.raises(FormatError, match="another z, window or rotation"):
        probes.counter[0].put(others.waiting[0][0])


def test_a_generation_that_is_too_short_is_refused(plain: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="a window and two epochs"):
        Probes(1, plain | {"count_rotate_ns": WINDOW + 2 * EPOCH - 1})
