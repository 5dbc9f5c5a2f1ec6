# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What each preset, and each option that it sets, leaves in records and observations."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from oracle.rules import PRESETS, Detail, shortened, stepped
from support import wire
from support.cli import DEMO, Captured, manifest_of, run_main
from support.engine import NO, OWN, Outcome, make_engine, run
from support.formats import LOGS, check_csv, check_parquet, check_tstat
from support.packets import (
    ACK,
    CLIENT,
    HOUR,
    MINUTE,
    MS,
    SECOND,
    SERVER,
    START,
    SYN,
    Frame,
    Tcp,
    Udp,
    crowd,
    hello,
    merged,
    user,
)
from support.parts import capture_of
from support.record import LATER, NAME, SECRET, flow_under_test, popular_server

import zanon_net
from zanon_net import _core
from zanon_net.config.presets import PURPOSES

FORMATS = ("tstat", "jsonl", "csv", "parquet", "observations")
OBSERVATIONS = "observations.jsonl"
ASKED = b"asked.example"  # in DNS alone
DNS_VOTES = {"internal": OWN, "partner": OWN, "public": NO}
Line = dict[str, Any]

# ---- each format says what the preset lets it say -----------------------------------------------


def traffic() -> list[Frame]:
    """Flows of both protocols with a name that is released, and with one that is not."""
    secret = flow_under_test(SECRET, "tls").frames
    shown = Tcp(user(78), t_ns=LATER + 3 * SECOND).handshake().say(hello(NAME)).wait(70 * SECOND)
    shown.say(b"x" * 12_345, SERVER).wait(SECOND).close()
    lookups = [
        Udp(user(i), ports=(port, 53), t_ns=LATER + i * SECOND).lookup(name)
        for i in range(3)
        for port, name in ((40_000, ASKED), (40_001, NAME))
    ]
    long_lookup = Udp(user(5), t_ns=LATER + 59 * SECOND).lookup(NAME).wait(62 * SECOND)
    long_lookup.send(b"x" * 4_321, SERVER)
    rare = Udp(user(9), t_ns=LATER + 5 * SECOND).lookup(b"rare.example")
    talks = [talk.frames for talk in (shown, *lookups, long_lookup, rare)]
    return [*popular_server(), *merged([secret, *talks])]


@pytest.fixture(scope="module", params=PURPOSES)
def written(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, key_file: str
) -> tuple[str, Path]:
    """The purpose, and the folder of a run."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "in.pcap").write_bytes(capture_of(traffic()))
    settings = {"z": 2, "key_file": key_file, "format": FORMATS, "purpose": request.param}
    zanon_net.run(folder / "in.pcap", out=folder / "out", **settings)
    return request.param, folder / "out"


def lines_of(folder: Path, name: str = "flows.jsonl") -> list[Line]:
    return [json.loads(line) for line in (folder / name).read_text("ascii").splitlines()]


def last_suppressed(lines: list[Line], proto: int) -> Line:
    """The last record with a suppressed name; each name's first user has one, too."""
    found = [line for line in lines if line["name_status"] == "suppressed"]
    return [line for line in found if line["proto"] == proto][-1]


def floored(t_ns: int, step_ns: int) -> int:
    return t_ns // step_ns * step_ns


def ms(ns: int) -> float:
    return ns / MS


def test_a_coarse_record(written: tuple[str, Path]) -> None:
    purpose, out = written
    detail = PRESETS[purpose]
    flow = last_suppressed(lines_of(out), 6)
    talk = flow_under_test(SECRET, "tls").frames
    first, last = floored(talk[0].t_ns, MINUTE), floored(talk[-1].t_ns, MINUTE)
    assert (flow["t_start_ns"], flow["t_end_ns"]) == (first if detail.has_end else last, last)
    assert flow["durat"] == (ms(last - first) if detail.has_end else 0)
    assert (flow["first"], flow["last"]) == (ms(flow["t_start_ns"]), ms(last))
    assert (flow["c_pkts"], flow["s_pkts"]) == (stepped(6, detail.base), stepped(4, detail.base))
    assert flow["s_bytes"] == stepped(3000, detail.base)
    assert (flow["client"] is not None) is detail.has_client
    assert (flow["epoch"] != 0, flow["c_iscrypto"]) == (detail.has_client, int(detail.has_client))


def test_a_coarse_record_of_udp(written: tuple[str, Path]) -> None:
    purpose, out = written
    detail = PRESETS[purpose]
    flow = last_suppressed(lines_of(out), 17)
    first = LATER + 5 * SECOND
    end = max(frame.t_ns for frame in traffic())  # it is not idle for long enough before
    minute = floored(first if detail.has_end else end, MINUTE)
    assert flow["t_start_ns"] == flow["t_end_ns"] == minute
    assert flow["c_first_abs"] == flow["s_first_abs"] == ms(minute)
    assert (flow["c_durat"], flow["s_durat"]) == (0, 0)
    assert (flow["c_type"], flow["server_port"]) == (19, 53)


def whichever_order(line: Line) -> list[Any]:
    """By what every preset tells."""
    counts = [shortened(line[name], 2) for name in ("c_bytes", "s_bytes", "c_pkts", "s_pkts")]
    minutes = [line[name] // MINUTE for name in ("t_start_ns", "t_end_ns")]
    return [line["proto"], line["name"], *minutes, *counts]


def test_a_record_with_a_name(written: tuple[str, Path]) -> None:
    purpose, out = written
    detail = PRESETS[purpose]
    exact = run(traffic(), z=2, dns_votes=DNS_VOTES[purpose])
    by_name, expected = (
        sorted((line for line in lines if line["name_status"] == "released"), key=whichever_order)
        for lines in (lines_of(out), exact.flows)
    )
    assert len(by_name) == len(expected)
    for line, full in zip(by_name, expected, strict=True):
        check_shortened(line, full, detail)


def test_observations(written: tuple[str, Path]) -> None:
    purpose, out = written
    exact = run(traffic(), z=2, dns_votes=DNS_VOTES[purpose]).observations
    found = [(line["t_ns"], line["name"]) for line in lines_of(out, OBSERVATIONS)]
    step_ns = PRESETS[purpose].times_ns
    assert found == [(floored(line["t_ns"], step_ns), line["name"]) for line in exact]
    assert all(line["client"] for line in lines_of(out, OBSERVATIONS))


def test_a_name_in_dns_alone(written: tuple[str, Path]) -> None:
    """Shared by three users, of whom DNS says so, and who can be forged."""
    purpose, out = written
    votes = DNS_VOTES[purpose] == OWN
    names = [line["name"] for line in lines_of(out) if line["name_source"] == "dns"]
    assert (ASKED.decode() in names) is votes
    assert NAME.decode() in names  # shared by visitors, too
    assert any(line["name"] == ASKED.decode() for line in lines_of(out, OBSERVATIONS)) is votes
    everything = b"".join(path.read_bytes() for path in out.rglob("*") if path.is_file())
    assert (ASKED in everything) is votes


def test_the_formats_agree(written: tuple[str, Path]) -> None:
    _purpose, out = written
    lines = (out / "flows.jsonl").read_bytes()
    rows = lines_of(out)
    check_csv((out / "flows.csv").read_bytes(), lines)
    for stem, proto in (("tcp", 6), ("udp", 17)):
        table = pq.read_table(out / "flows" / f"{stem}.parquet")
        check_parquet(table, [row for row in rows if row["proto"] == proto])
    (folder,) = out.glob("*.out")
    check_tstat({log: (folder / log).read_bytes() for log in LOGS}, rows)


def test_tstats_readers_read_it(written: tuple[str, Path]) -> None:
    purpose, out = written
    table = zanon_net.read_log(out, "tcp_complete")
    rows = [row for row in lines_of(out) if row["proto"] == 6 and not row["midstream"]]
    assert set(table["c_tls_SNI"].dropna()) == {NAME.decode()}
    assert len(table) <= len(rows)
    has_client = PRESETS[purpose].has_client
    assert bool(table["c_ip"].isna().any() or (table["c_ip"] == "-").any()) is not has_client


@pytest.mark.parametrize("purpose", PURPOSES)
def test_rows_for_programs(purpose: str, key_file: str) -> None:
    detail, frames = PRESETS[purpose], traffic()
    with zanon_net.Engine(z=2, key_file=key_file, purpose=purpose) as engine:
        engine.feed(
            b"".join(frame.data for frame in frames),
            np.array([frame.t_ns for frame in frames]),
            np.array([len(frame.data) for frame in frames]),
            np.array([frame.wire for frame in frames]),
            wire.LINK_ETHERNET,
        )
        observed = engine.observations()
        engine.finish()
        records = engine.records()
    coarse = records[records["name_status"] == 2]
    assert len(coarse) == (6 if purpose == "public" else 5)
    assert bool((coarse["t_start_ns"] == coarse["t_end_ns"]).all()) is not detail.has_end
    assert not (coarse["t_start_ns"] % MINUTE).any()
    for name in ("c_pkts", "s_pkts", "c_bytes", "s_bytes"):
        assert all(stepped(int(n), detail.base) == n for n in coarse[name])
    assert bool(coarse["client"].any()) is bool(coarse["client_shown"].any()) is detail.has_client
    assert bool(coarse["epoch"].any()) is detail.has_client
    assert not coarse["complete"].any()  # no format says it beside a suppressed name
    named = records[records["name_status"] == 1]
    for times in (named["t_start_ns"], named["t_end_ns"], observed["t_ns"]):
        assert len(times)
        assert all(t % detail.times_ns == 0 for t in times)
    assert all(n == shortened(int(n), detail.digits) for n in named["s_bytes"])


# ---- times and sizes of records that are not coarse ---------------------------------------------

ABSOLUTE = ("first", "last", "req_tm", "res_tm", "c_first_abs", "s_first_abs")
FROM_START = tuple(
    f"{side}_{name}"
    for side in "cs"
    for name in ("first", "last", "first_ack", "last_handshakeT", "appdataT")
)
CODES = {"proto", "client_port", "server_port", "epoch", "con_t", "http_t", "tls_session_stat"}
CODES |= {"c_npnalpn", "s_npnalpn", "c_type", "s_type"}


def check_shortened(line: Line, full: Line, detail: Detail) -> None:
    """Asserts that the line is the full one, as far as these details may say it."""
    step_ns, kinds = detail.times_ns, {column.name: column.type for column in _core.columns()}
    assert line.keys() == full.keys()
    for name, value in full.items():
        if name in ("t_start_ns", "t_end_ns"):
            assert line[name] == floored(value, step_ns), name
        elif name in ABSOLUTE and value is not None:
            exact_ns = round(value * MS / 1000) * 1000  # as far as a double goes
            assert line[name] == pytest.approx(ms(floored(exact_ns, step_ns)), abs=1e-3), name
        elif name in FROM_START:
            assert line[name] == (value if step_ns == 1 else 0), name
        elif kinds[name] in ("uint32", "uint64") and name not in CODES:
            assert line[name] == shortened(value, detail.digits), name
        elif name == "durat":
            assert line[name] == ms(line["t_end_ns"] - line["t_start_ns"])
        elif name in ("c_durat", "s_durat"):
            if step_ns == 1:
                assert line[name] == value
            else:
                check_duration(line, full, name, step_ns)
        elif name not in ("client", "server", "resolver"):
            assert line[name] == value, name


def check_duration(line: Line, full: Line, name: str, step_ns: int) -> None:
    """Asserts that it is the difference of two times that are rounded down."""
    start = full[f"{name[0]}_first_abs"]
    if start is not None:
        end_ns = round(start * MS) + round(full[name] * SECOND)
        floor = floored(end_ns, step_ns) - floored(round(start * MS), step_ns)
        assert line[name] * SECOND == pytest.approx(floor), name


@pytest.mark.parametrize("times_ns", [0, SECOND, 7 * SECOND, MINUTE, HOUR])
@pytest.mark.parametrize("digits", [0, 2])
@pytest.mark.parametrize("exact", [False, True])
def test_times_and_sizes(times_ns: int, digits: int, exact: bool) -> None:
    """With exact records beside a suppressed name, too, as they are those of a named one."""
    settings = {"z": 2, "columns": ("core", "layer7", "p2p"), "dn_hunter": True, "exact": exact}
    full = run(traffic(), **settings)
    short = run(traffic(), **settings, times_ns=times_ns, digits=digits, rotate_ns=times_ns or HOUR)
    detail = Detail(True, 2**0.5, True, times_ns or 1, digits or None)
    for line, wanted in zip(short.flows, full.flows, strict=True):
        if exact or wanted["name_status"] in ("released", "none"):
            check_shortened(line, wanted | {"epoch": line["epoch"]}, detail)
        else:
            assert line | {"epoch": 0} == wanted | {"epoch": 0, "client": line["client"]}


def test_an_epoch_tells_no_time_that_is_rounded() -> None:
    for rotate_ns, is_told in ((MINUTE, True), (2 * MINUTE, True), (90 * SECOND, False)):
        flow = run(popular_server(), z=2, times_ns=MINUTE, rotate_ns=rotate_ns).flows[-1]
        assert (flow["epoch"] != 0) is is_told


@pytest.mark.parametrize(
    ("count", "said"), [(0, 0), (7, 7), (99, 99), (100, 100), (109, 100), (1234, 1200)]
)
def test_two_digits(count: int, said: int) -> None:
    talk = Udp(user(1), ports=(7777, 9999)).send(b"x" * count)
    assert run(talk.frames, digits=2).flow["c_bytes"] == said
    assert shortened(count, 2) == said


# ---- the steps ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "base"), [(0, 2**0.5), (1, 4), (2, 16)])
def test_steps(steps: int, base: float) -> None:
    powers = {stepped(n, base) for n in range(3000)}
    sizes = sorted({max(n + more, 0) for n in powers for more in (-1, 0, 1) if n + more < 1400})
    for size in sizes:
        talk = Tcp().handshake().say(hello(SECRET)).say(b"x" * size, SERVER)
        assert run(talk.frames, z=2, coarse_steps=steps).flow["s_bytes"] == stepped(size, base)


def test_what_a_power_is() -> None:
    """By hand."""
    assert [stepped(n, 4) for n in (0, 1, 2, 4, 5, 16, 17, 65)] == [0, 1, 4, 4, 16, 16, 64, 256]
    assert [stepped(n, 16) for n in (0, 1, 2, 16, 17, 257)] == [0, 1, 16, 16, 256, 4096]
    assert [stepped(n, 2**0.5) for n in (0, 1, 2, 3, 4, 5, 6, 7)] == [0, 1, 2, 3, 4, 6, 6, 8]


# ---- the minute of closing ----------------------------------------------------------------------

BEGIN = START - START % MINUTE + 58 * SECOND  # what follows is in another minute


def ending(how: str) -> tuple[list[Frame], int]:
    """A flow with a name that is suppressed, alone or not, and when it closes."""
    talk = Tcp(t_ns=BEGIN).handshake().say(hello(SECRET)).wait(90 * SECOND)
    data = talk.say(b"last words")
    last = data.frames[-1].t_ns
    other = Udp(user(5), ports=(7, 9999), t_ns=last)
    if how == "fin":
        return data.wait(MINUTE).close().frames, data.frames[-1].t_ns
    if how == "rst":
        return data.wait(MINUTE).segment(SERVER, 0x04 | ACK).frames, data.frames[-1].t_ns
    if how == "idle":  # noticed much later
        return [*data.frames, *other.wait(HOUR).send(b"x").frames], last + 300 * SECOND
    if how == "idle at the end":
        return [*data.frames, *other.wait(300 * SECOND + 1).send(b"x").frames], last + 300 * SECOND
    if how == "another begins":
        again = Tcp(t_ns=last + 400 * SECOND).segment(CLIENT, SYN)
        return [*data.frames, *again.frames], last + 300 * SECOND
    assert how == "the input ends"
    end = last + 200 * SECOND
    return [*data.frames, *other.wait(200 * SECOND).send(b"x").frames], end


ENDINGS = ("fin", "rst", "idle", "idle at the end", "another begins", "the input ends")


@pytest.mark.parametrize("how", ENDINGS)
@pytest.mark.parametrize("batch", [1, 7, 1 << 14])
def test_the_minute_of_closing(how: str, batch: int) -> None:
    frames, closed_ns = ending(how)
    flow = suppressed(run(frames, z=2, coarse_end=1, batch=batch))
    assert flow["t_start_ns"] == flow["t_end_ns"] == floored(closed_ns, MINUTE)
    assert flow["durat"] == 0
    assert flow["t_start_ns"] > BEGIN
    flow = suppressed(run(frames, z=2, coarse_end=0, batch=batch))
    assert flow["t_start_ns"] == floored(BEGIN, MINUTE)


def test_a_coarse_record_tells_neither_start_nor_sizes(key_file: str) -> None:
    """Two flows that close in the same minute; one began later and sent a little less."""
    texts = []
    for late, size in ((0, 300), (200 * SECOND, 260)):
        talk = Tcp(t_ns=BEGIN + late).handshake().say(hello(SECRET)).say(b"x" * size, SERVER)
        frames = talk.wait(BEGIN + 270 * SECOND - talk.t_ns).close().frames
        outcome = run(frames, z=2, key_file=key_file, coarse_end=1, coarse_steps=1)
        assert suppressed(outcome)["c_pkts"] == 16
        texts.append((outcome.text, outcome.rows))
    assert texts[0] == texts[1]


def test_an_evicted_flow_closes_when_it_is_evicted() -> None:
    talk = Tcp(t_ns=BEGIN).handshake().say(hello(SECRET))
    others = [
        Udp(user(n), ports=(7, 9999), t_ns=BEGIN + 100 * SECOND + n * MS).send(b"x").frames
        for n in range(200)
    ]
    outcome = run([*talk.frames, *merged(others)], z=2, coarse_end=1, max_flows=64)
    flow = suppressed(outcome)
    assert outcome.stats["flows_evicted"] > 0
    assert flow["t_start_ns"] == flow["t_end_ns"] == floored(BEGIN + 100 * SECOND, MINUTE)


def test_a_live_engine_says_the_same(key_file: str) -> None:
    """Whose clock moves without packets."""
    frames, closed_ns = ending("idle")
    with zanon_net.Engine(z=2, key_file=key_file) as engine:
        engine.feed(
            b"".join(frame.data for frame in frames[:-1]),
            [frame.t_ns for frame in frames[:-1]],
            [len(frame.data) for frame in frames[:-1]],
            [frame.wire for frame in frames[:-1]],
            wire.LINK_ETHERNET,
        )
        engine.idle(HOUR)
        (record,) = engine.records()
    assert record["t_start_ns"] == record["t_end_ns"] == floored(closed_ns, MINUTE)


def suppressed(outcome: Outcome) -> Line:
    return last_suppressed(outcome.flows, 6)


# ---- no client ----------------------------------------------------------------------------------


def test_without_its_client_a_coarse_record_tells_nothing_of_the_key() -> None:
    shown, hidden = (
        run([*crowd(NAME, 3), *Tcp(user(9)).handshake().say(hello(SECRET)).frames], **settings)
        for settings in ({"coarse_client": 0}, {"coarse_client": 1})
    )
    flow = suppressed(hidden)
    assert (flow["client"], flow["epoch"], flow["c_iscrypto"]) == (None, 0, 0)
    assert (flow["c_isint"], suppressed(shown)["c_iscrypto"]) == (1, 1)
    left = {"client": 0, "epoch": 0, "c_iscrypto": 0}
    both = [
        [line | (left if line["name_status"] == "suppressed" else {"client": 0}) for line in lines]
        for lines in (hidden.flows, shown.flows)
    ]
    assert both[0] == both[1]
    released = [line for line in hidden.flows if line["name"]]
    assert all(line["client"] and line["epoch"] for line in released)


@pytest.mark.parametrize(
    "settings",
    [
        {"coarse_end": 2},
        {"coarse_steps": 3},
        {"coarse_client": 2},
        {"times_ns": -1},
        {"digits": 1},
        {"digits": 2, "columns": ("core", "e2e")},
        {"times_ns": 1, "columns": ("core", "options")},
    ],
)
def test_the_core_refuses_what_no_record_can_say(settings: dict[str, Any]) -> None:
    with pytest.raises(zanon_net.ConfigError):
        make_engine(**settings)


# ---- the command --------------------------------------------------------------------------------


def run_with(capsys: Captured, *options: str) -> tuple[int, Sequence[str]]:
    code = run_main("run", DEMO, "--z", 5, "--out", "out", *options)
    return code, capsys.readouterr().err.splitlines()


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("options", "purpose", "weaker"),
    [
        ([], "partner", []),
        (["--for", "public"], "public", []),
        (["--no-coarsen"], "partner", ["exact"]),
        (
            ["--for", "public", "--pseudonyms", "networks", "--order", "minute", "--times", "1s"],
            "public",
            ["pseudonyms", "order", "times"],
        ),
        (["--for", "internal", "--coarse-steps", "16"], "internal", []),
        (["--for", "partner", "--coarse-client", "pseudonym"], "partner", ["coarse_client"]),
        (
            ["--coarse-end", "floored", "--coarse-steps", "sqrt2"],
            "partner",
            ["coarse_end", "coarse_steps"],
        ),
    ],
)
def test_what_is_weaker_is_named(
    options: list[str], purpose: str, weaker: list[str], capsys: Captured
) -> None:
    code, said = run_with(capsys, *options)
    assert code == 0
    assert manifest_of("out")["weaker_than"] == {"preset": purpose, "options": weaker}
    lines = [line for line in said if line.startswith("weaker")]
    names = ", ".join(f"--{name.replace('_', '-')}" for name in weaker)
    text = [f"than --for {purpose}: {names}"] if weaker else []
    assert [" ".join(line.split()[1:]) for line in lines] == text


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (
            ["--for", "public", "--columns", "core,e2e"],
            "--columns: e2e discloses more than --times 1m and --sizes 2 lets records say",
        ),
        (["--sizes", "2", "--columns", "core,options"], "--columns: options discloses more than"),
        (["--times", "60"], "--times: '60' is not a duration"),
        (["--for", "friends"], "'--for': 'friends' is not one of"),
        (["--coarse-steps", "3"], "'--coarse-steps': '3' is not one of"),
    ],
)
def test_wrong_options(options: list[str], problem: str, capsys: Captured) -> None:
    code, said = run_with(capsys, *options)
    assert code == 2
    assert len(said) == 1
    assert problem in said[0]
    assert not Path("out").exists()


def test_the_filter_has_no_presets(capsys: Captured) -> None:
    assert run_main("filter", "--for", "public") == 2
    assert "No such option" in capsys.readouterr().err


def test_help_says_what_it_does(capsys: Captured) -> None:
    assert run_main("run", "--help-all") == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "--for [internal|partner|public] Reader of the output" in text
    assert "the summary and the manifest name the weaker options. [default: partner]" in text
    assert "[default: 4; sqrt2 for internal; 16 for public]" in text
