# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The ends of windows: counts are brute force's, and z changes there and nowhere else."""

import json
import stat
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from oracle.ztable import ZOracle
from support.demo import Line, Rules, as_seen, read_truth, user_of
from support.engine import Taker, feed, make_engine
from support.packets import HOUR, MINUTE, NAMED_AFTER_NS, SECOND, START, Tcp, user, visit

from zanon_net import Config, ConfigError, ZParams, ZTable, run
from zanon_net._core import OUTPUTS, Capture, ClosedWindow, PacketEngine
from zanon_net.cli import main
from zanon_net.model import smallest_z
from zanon_net.model.observed import observed_stream
from zanon_net.pipeline.adaptive_z import ZController
from zanon_net.popularity import Popularity, two_digits

WINDOWS = [10 * MINUTE, 47 * MINUTE, HOUR, 5 * HOUR]
EVERYTHING = Rules(1 << 30, HOUR)
NAME = b"www.example.org"
CUT_HEAD = b"GET / HTTP/1.1\r\nHost: " + NAME + b"\r\nUser-Agent: x"


@pytest.fixture(scope="module")
def truth(demo_truth: Path) -> list[Line]:
    return read_truth(demo_truth)


@pytest.fixture(scope="module")
def first_ns(demo_truth: Path) -> int:
    meta = json.loads(demo_truth.read_text().splitlines()[0])["meta"]
    return int(meta["first_ns"])


def expected_windows(
    truth: list[Line], first_ns: int, window_ns: int
) -> dict[int, tuple[int, list[int]]]:
    """By start: distinct users with a name, and the distinct users of each name, sorted; without
    those that only DNS has."""
    seen: dict[int, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for line in truth:
        if not EVERYTHING.counts(line) or EVERYTHING.namespace(line) == "dns":
            continue
        start = line["t_ns"] - (line["t_ns"] - first_ns) % window_ns
        seen[start][line["name"]].add(user_of(line["client"]))
    return {
        start: (len(set().union(*names.values())), sorted(map(len, names.values())))
        for start, names in seen.items()
    }


def bins_of(counts: list[int]) -> tuple[int, ...]:
    """How many of the counts are from 2^j to 2^(j+1) - 1, by j."""
    powers = [count.bit_length() - 1 for count in counts]
    return tuple(powers.count(j) for j in range(max(powers, default=-1) + 1))


@dataclass
class Window:
    """A closed window with its counts."""

    closed: ClosedWindow
    counts: np.ndarray

    @classmethod
    def of(cls, engine: PacketEngine) -> Self | None:
        closed = engine.window()
        return None if closed is None else cls(closed, engine.window_counts())


def read_windows(path: Path, batch: int = 1 << 14, **settings: Any) -> list[Window]:
    """All windows of a capture."""
    engine = make_engine(popularity=True, **settings)
    closed = []
    with Capture(str(path)) as capture:
        while engine.run(capture, batch) > 0:
            while (window := Window.of(engine)) is not None:
                closed.append(window)
                engine.run(capture, 0)
    engine.finish()
    last = Window.of(engine)
    return [*closed, last] if last is not None else closed


@pytest.mark.parametrize("window_ns", WINDOWS)
@pytest.mark.parametrize("batch", [7, 1000, 1 << 14])
def test_counts_are_brute_force(
    demo_pcap: Path, truth: list[Line], first_ns: int, window_ns: int, batch: int
) -> None:
    expected = expected_windows(truth, first_ns, window_ns)
    read = read_windows(demo_pcap, batch, window_ns=window_ns)
    closed = [window.closed for window in read]
    found = {w.closed.start_ns: (w.closed.users, sorted(w.counts.tolist())) for w in read}
    assert {start: one for start, one in found.items() if one[0]} == expected
    for window in read:
        assert window.closed.bins == bins_of(window.counts.tolist())
    assert [window.whole for window in closed] == [True] * (len(closed) - 1) + [False]
    assert all(window.end_ns - window.start_ns == window_ns for window in closed)


def test_a_table_too_small_is_no_whole_window(demo_pcap: Path) -> None:
    closed = read_windows(demo_pcap, window_ns=HOUR, max_tuples=50)
    assert not any(window.closed.whole for window in closed)


def test_counting_changes_no_output(demo_pcap: Path, tmp_path: Path, key_file: str) -> None:
    config = Config().replace(
        z=3, window="10m", key_file=key_file, format=["tstat", "observations"]
    )
    without = run(demo_pcap, config, out=tmp_path / "without")
    counted = config.replace(popularity=str(tmp_path / "p.json"))
    beside = run(demo_pcap, counted, out=tmp_path / "beside")
    for output in without.manifest["outputs"]:
        name = output["file"]
        assert (tmp_path / "without" / name).read_bytes() == (
            tmp_path / "beside" / name
        ).read_bytes()
    assert without.manifest["counters"] == beside.manifest["counters"]
    assert beside.manifest["configuration"]["output"]["popularity"] is True


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 40), st.integers(0, 9)), max_size=300),
    st.sampled_from([None, 3, 60]),
)
def test_counts_of_a_table(observations: list[tuple[int, int, int]], keep: int | None) -> None:
    table = ZTable(1, 100, keep=keep)
    for t_ns, who, attribute in sorted(observations):
        table.observe(t_ns, f"u{who}", f"a{attribute}")
    each = [table.count(f"a{attribute}") for attribute in range(10)]
    assert sorted(table.counts().tolist()) == sorted(n for n in each if n)


def test_counts_of_large_attributes() -> None:
    table = ZTable(1, 100)
    users = np.arange(5000, dtype=np.uint64)
    for attribute, share in ((1, 5000), (2, 1500), (3, 10), (4, 1)):
        n = np.full(share, attribute, dtype=np.uint64)
        table.observe_batch(np.zeros(share, dtype=np.int64), users[:share], n)
    assert sorted(table.counts().tolist()) == [1, 10, 1500, 5000]


# ---- the file -----------------------------------------------------------------------------------


def test_the_popularity_file(
    demo_pcap: Path, truth: list[Line], first_ns: int, tmp_path: Path
) -> None:
    path = tmp_path / "p.json"
    config = Config().replace(z=5, window="10m", popularity=str(path))
    run(demo_pcap, config, out=tmp_path / "out")
    expected = expected_windows(truth, first_ns, 10 * MINUTE)
    found = Popularity.load(path)
    kept = {start: one for start, one in expected.items() if one[0] >= 5}
    assert [window.start_ns for window in found.windows] == sorted(kept)
    for window in found.windows:
        users, counts = kept[window.start_ns]
        assert window.users == two_digits(users)
        assert window.bins == tuple(map(two_digits, bins_of(counts)))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "example" not in path.read_text()


def test_a_file_is_never_overwritten(demo_pcap: Path, tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text("mine")
    config = Config().replace(popularity=str(path))
    with pytest.raises(ConfigError, match=r"p\.json exists, and nothing is ever overwritten"):
        run(demo_pcap, config, out=tmp_path / "out")
    assert path.read_text() == "mine"
    assert not (tmp_path / "out").exists()


def test_a_link_to_a_file_that_is_not_there_stays(demo_pcap: Path, tmp_path: Path) -> None:
    """The file's new name would replace the link, and nothing come to where it leads."""
    link = tmp_path / "p.json"
    link.symlink_to(tmp_path / "elsewhere.json")
    with pytest.raises(ConfigError, match=r"p\.json exists, and nothing is ever overwritten"):
        run(demo_pcap, Config().replace(popularity=str(link)), out=tmp_path / "out")
    assert link.is_symlink()


def test_nothing_is_left_after_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    bad = tmp_path / "bad.pcap"
    bad.write_bytes(b"\xd4\xc3\xb2\xa1" + bytes(20) + b"cut")
    arguments = ["run", str(bad), "--out", str(tmp_path / "out"), "--popularity", "p.json"]
    assert main([*arguments[:-1], str(tmp_path / "p.json")]) != 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.pcap"]
    assert capfd.readouterr().err.count("\n") == 1


# ---- z that follows the stream ------------------------------------------------------------------


def dynamic(
    tmp_path: Path, name: str, demo_pcap: Path, key_file: str, **more: Any
) -> dict[str, Any]:
    config = Config().replace(
        z=2, target_p=0.99, window="10m", key_file=key_file, format="observations", **more
    )
    return dict(run(demo_pcap, config, out=tmp_path / name).manifest)


def z_at(changes: list[dict[str, Any]], floor: int, t_ns: int) -> int:
    """z in force at a time."""
    z = floor
    for change in changes:
        if change["t_ns"] <= t_ns:
            z = change["new"]
    return z


def test_every_decision_is_by_the_z_in_the_manifest(
    demo_pcap: Path, truth: list[Line], tmp_path: Path, key_file: str
) -> None:
    manifest = dynamic(tmp_path, "out", demo_pcap, key_file)
    changes = manifest["z_changes"]
    assert len(changes) >= 2
    oracle, expected = ZOracle(1, 10 * MINUTE), []
    for line in filter(EVERYTHING.counts, truth):
        name = (EVERYTHING.namespace(line), line["name"])
        oracle.observe(line["t_ns"], user_of(line["client"]), name)
        if oracle.users(line["t_ns"], name) >= z_at(changes, 2, line["t_ns"]):
            expected.append(line)
    lines = (tmp_path / "out" / "observations.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    assert sorted((o["t_ns"], o["name"]) for o in found) == sorted(
        (t_ns, name) for t_ns, name, _source in as_seen(expected).elements()
    )


def test_changes_are_what_the_windows_need(demo_pcap: Path, tmp_path: Path, key_file: str) -> None:
    changes = dynamic(tmp_path, "out", demo_pcap, key_file)["z_changes"]
    closed = {w.closed.end_ns: w for w in read_windows(demo_pcap, window_ns=10 * MINUTE)}
    z = 2
    for change in changes:
        assert change["old"] == z
        z = change["new"]
        if change["new"] > change["old"]:
            window = closed[change["t_ns"]]
            users, px = observed_stream(window.counts, window.closed.users)
            assert z == smallest_z(px, users, 2, target=0.99, mode="stable")


def test_z_stays_between_its_bounds(demo_pcap: Path, tmp_path: Path, key_file: str) -> None:
    manifest = dynamic(tmp_path, "out", demo_pcap, key_file, z_max=3)
    changes = manifest["z_changes"]
    assert {change["new"] for change in changes} <= {2, 3}
    assert any("more than z_max = 3" in change["reason"] for change in changes)
    closed = [w.closed for w in read_windows(demo_pcap, window_ns=10 * MINUTE)]
    seen = manifest["z_windows"]
    assert seen["seen"] == sum(window.whole for window in closed)
    assert 0 < seen["needed_more_than_z_max"] <= seen["seen"]
    target = manifest["configuration"]["anonymity"]
    assert (target["target_k"], target["target_p"], target["z_max"]) == (2, 0.99, 3)


@pytest.mark.parametrize("batch", [1, 97])
def test_batches_do_not_matter(demo_pcap: Path, key_file: str, batch: int) -> None:
    def outputs(size: int) -> list[bytes]:
        engine = make_engine(
            popularity=True, z=2, z_max=100, window_ns=10 * MINUTE, key_file=key_file
        )
        controller = ZController(ZParams(z=2, target_p=0.9, z_max=100))
        with Capture(str(demo_pcap)) as capture:
            while engine.run(capture, size) > 0:
                while (window := engine.window()) is not None:
                    counts = engine.window_counts()
                    engine.set_z(controller.see(window.end_ns, window.users, counts))
                    engine.run(capture, 0)
        engine.finish()
        return [engine.take(name) for name in OUTPUTS]

    whole = outputs(1 << 14)
    parts = outputs(batch)
    assert [sorted(text.splitlines()) for text in whole] == [
        sorted(text.splitlines()) for text in parts
    ]


@pytest.mark.parametrize("batch", [1, 97, 1 << 14])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_capture_is_over_when_its_last_frame_was_taken(
    demo_pcap: Path, batch: int, workers: int
) -> None:
    with Capture(str(demo_pcap)) as capture:
        frames = len(capture.read(1 << 20)[1])
    engine = make_engine(popularity=True, window_ns=10 * MINUTE, workers=workers)
    with Capture(str(demo_pcap)) as capture:
        while not engine.is_over(capture):
            engine.run(capture, batch)
        assert engine.stats["frames"] == frames
        assert engine.run(capture, batch) == 0
        assert engine.stats["frames"] == frames


@pytest.mark.parametrize(("z", "later"), [([2], [2]), ([3], []), ([2, 3], []), ([3, 2], [])])
def test_a_vote_from_before_a_change_needs_the_highest_z(z: list[int], later: list[int]) -> None:
    """A head that never ends votes when its flow does, for a time when another z was in force."""
    talk = Tcp(ports=(40000, 80)).handshake().say(CUT_HEAD)
    elsewhere = visit(user(8888), b"www.example.net", talk.frames[-1].t_ns + SECOND)
    taker = Taker(make_engine(z=2, z_max=3))
    for one in z[:-1]:
        taker.engine.set_z(one)
    feed(taker.engine, [*visit(user(9999), NAME, talk.frames[0].t_ns - SECOND), *talk.frames])
    feed(taker.engine, elsewhere)
    taker.engine.set_z(z[-1])
    found = [o["name"] for o in taker.outcome().observations]
    assert found == [NAME.decode()] * bool(later)


def test_a_z_of_1_that_may_rise_is_no_leave_to_show_all() -> None:
    """A record written while z is 1 tells no more of a flow that was decided at another."""
    taker = Taker(make_engine(z=1, z_max=2, keep_client_port=True))
    taker.engine.set_z(2)
    feed(taker.engine, visit(user(1), NAME, START))
    taker.engine.set_z(1)
    feed(taker.engine, visit(user(2), b"printer.local", START + SECOND))
    feed(taker.engine, visit(user(3), b"www.example.com", START + 2 * SECOND))
    outcome = taker.outcome()
    assert outcome.released() == {"www.example.com"}
    suppressed = [flow for flow in outcome.flows if flow["name_status"] == "suppressed"]
    assert len(suppressed) == 2
    for flow in suppressed:
        assert (flow["name"], flow["server"], flow["client_port"]) == (None, None, 0)
        assert flow["t_start_ns"] % MINUTE == 0


def test_a_new_z_counts_from_its_window_on() -> None:
    taker = Taker(make_engine(z=2, z_max=3))
    visits = [visit(user(n), NAME, START + n * SECOND) for n in range(5)]
    for one, z in zip(visits, (2, 2, 3, 3, 2), strict=True):
        taker.engine.set_z(z)
        feed(taker.engine, one)
    times = [o["t_ns"] for o in taker.outcome().observations]
    assert times == [START + n * SECOND + NAMED_AFTER_NS for n in (1, 2, 3, 4)]


def controller(**more: Any) -> ZController:
    return ZController(ZParams(**{"z": 5, "target_p": 0.9, "z_max": 500} | more))


def stream(users: int, rate: float) -> tuple[int, np.ndarray]:
    """A window's counts: what so many users expose on average."""
    px = 1 - np.exp(-rate * 12 / np.arange(1, 21))
    return users, np.maximum(np.round(users * px), 1).astype(np.uint32)


def test_more_acts_at_once_and_less_after_two_windows() -> None:
    one = controller()
    busy, calm = stream(1000, 0.2), stream(1000, 0.02)
    high = one.see(100, *busy)
    assert 200 < high < 280
    assert one.see(200, *calm) == high
    assert one.see(300, *busy) == high
    assert one.see(400, *calm) == high
    low = one.see(500, *calm)
    assert low < high
    assert [change.t_ns for change in one.changes] == [100, 500]
    assert [change.old for change in one.changes] == [5, high]


def test_small_changes_down_are_none() -> None:
    one = controller()
    high = one.see(1, *stream(1000, 0.2))
    for t_ns in range(2, 6):
        assert one.see(t_ns, *stream(980, 0.2)) == high


def test_nothing_seen_changes_nothing_and_few_users_close() -> None:
    one = controller(target_k=10)
    assert one.see(1, 0, np.zeros(0, np.uint32)) == 5
    assert one.see(2, 3, np.array([1, 2, 3], np.uint32)) == 5
    assert controller(target_k=100).see(1, 50, np.full(5, 40, np.uint32)) == 51


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"z_max": 30}, "z_max: is for a z that follows"),
        ({"target_p": 1.0}, "target_p: must be a probability"),
        ({"target_p": "high"}, "target_p: must be a probability"),
        ({"target_k": 1}, "target_k: must be from 2"),
        ({"target_p": 0.9, "z": 50, "z_max": 40}, "z_max: must be from 50"),
        ({"popularity": ""}, "popularity: must be the path"),
        ({"popularity": 5}, "popularity: must be the path"),
    ],
)
def test_settings_that_cannot_be_meant(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{message}"):
        Config().replace(**settings)


def test_one_target_setting_brings_the_others() -> None:
    assert not ZParams().dynamic
    by_p, by_k = ZParams(target_p=0.8), ZParams(z=2000, target_k=3)
    assert (by_p.target_k, by_p.target_p, by_p.z_limit) == (2, 0.8, 1000)
    assert (by_k.target_k, by_k.target_p, by_k.z_limit) == (3, 0.95, 2000)


def test_an_engine_refuses_a_z_above_its_largest() -> None:
    engine = make_engine(z=2, z_max=10)
    engine.set_z(10)
    with pytest.raises(ConfigError, match="keep"):
        engine.set_z(11)
