# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The engine in another program: arrays in and out, and the program that the docs show."""

import ipaddress
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import wire
from support.engine import SETTINGS, Outcome, make_engine, run
from support.packets import SECOND, START, Frame, Tcp, Udp, crowd, hello, merged, user, visit
from support.paths import ROOT

import zanon_net
from zanon_net import OBSERVATION_DTYPE, RECORD_DTYPE, Config, Engine
from zanon_net._core import columns
from zanon_net.config.presets import PURPOSES
from zanon_net.embedding import DISCLOSURES, NAME_LEVELS, NAME_SOURCES, NAME_STATUSES
from zanon_net.errors import ConfigError

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(zanon_net.__file__).parents[1])}


def config(**settings: Any) -> Config:
    small = {"max_flows": 1 << 14, "max_tuples": 1 << 16, "max_attributes": 1 << 14}
    return Config().replace(**({"z": 2} | small | settings))


def arrays(frames: list[Frame]) -> tuple[Any, ...]:
    return (
        np.frombuffer(b"".join(frame.data for frame in frames), dtype=np.uint8),
        np.array([frame.t_ns for frame in frames], dtype=np.int64),
        np.array([len(frame.data) for frame in frames], dtype=np.uint32),
        np.array([frame.wire for frame in frames], dtype=np.uint32),
        wire.LINK_ETHERNET,
    )


def traffic() -> list[Frame]:
    """Released, suppressed, unconfirmed, invalid and no names; both families; TCP and UDP."""
    shared = crowd(b"shared.example", 4)
    rare = visit(user(50), b"rare.example", START)
    forged = Tcp("10.7.9.9", ports=(5, 443)).segment(0, 2).segment(0, 16, hello(b"forged.example"))
    odd = Tcp("10.7.9.8", ports=(6, 443)).handshake().say(hello(b"not a name"))
    silent = Udp("10.7.9.7", ports=(40007, 9999)).send(b"x" * 99)
    lookups = [Udp(user(60 + i), "192.0.2.53").lookup(b"asked.example").frames for i in range(3)]
    six = [visit(f"fd00:0:0:{i}00::1", b"six.example", START, "2001:db8::9") for i in range(3)]
    return merged([shared, rare, forged.frames, odd.frames, silent.frames, *lookups, *six])


def address(row: Any, side: str) -> str | None:
    """As the JSON log prints it."""
    if row[f"{side}_shown"] == DISCLOSURES.index("withheld"):
        assert not row[side].any()
        return None
    packed = ipaddress.IPv6Address(row[side].tobytes())
    return str(packed.ipv4_mapped or packed)


def as_json(row: Any) -> dict[str, Any]:
    """A row of records as the JSON log has it."""
    return {
        **{name: int(row[name]) for name in ("t_start_ns", "t_end_ns", "proto", "epoch")},
        **{name: int(row[name]) for name in ("c_pkts", "s_pkts", "c_bytes", "s_bytes")},
        **{name: int(row[name]) for name in ("client_port", "server_port", "complete")},
        "client": address(row, "client"),
        "server": address(row, "server"),
        "name": row["name"].decode("ascii") or None,
        "name_source": NAME_SOURCES[row["name_source"]],
        "name_status": NAME_STATUSES[row["name_status"]],
        "ech": "offered" if row["ech"] else "none",
    }


def lines(rows: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


@pytest.fixture
def logged(key_file: str, purpose: str) -> Outcome:
    """The traffic as the logs have it."""
    arguments = config(key_file=key_file, purpose=purpose).engine_arguments()
    return run(traffic(), **arguments | {"outputs": SETTINGS["outputs"]})


@pytest.mark.parametrize("purpose", PURPOSES)
def test_rows_are_what_the_logs_say(key_file: str, purpose: str, logged: Outcome) -> None:
    with Engine(config(key_file=key_file, purpose=purpose)) as engine:
        engine.feed(*arrays(traffic()))
        seen = [*engine.observations()]
        assert bool(seen) is (purpose != "public")  # whose minute is not over
        engine.finish()
        seen.extend(engine.observations())
        flows = [as_json(row) for row in engine.records()]
        assert engine.stats == logged.stats
    known = flows[0].keys()
    wanted = [{name: flow[name] for name in known} for flow in logged.flows]
    for flow in wanted:
        flow["complete"] = flow["complete"] or 0  # null beside a suppressed name
    assert lines(flows) == lines(wanted)
    assert {flow["name_status"] for flow in flows} == {*NAME_STATUSES} - {"generalized"}
    assert {flow["name_source"] for flow in flows} >= {None, "tls", "dns"}
    observed = [
        {
            "t_ns": int(row["t_ns"]),
            "client": address(row, "client"),
            "name": row["name"].decode("ascii"),
            "name_source": NAME_SOURCES[row["name_source"]],
        }
        for row in seen
    ]
    assert observed == logged.observations
    assert len(observed) == (5 if purpose == "public" else 7)  # where DNS does not vote


def test_fields_of_rows_are_columns() -> None:
    """But for what says how an address is disclosed; and each holds what its column holds."""
    sizes = {"time": 8, "int64": 8, "uint64": 8, "uint16": 2, "uint8": 1, "bool": 1}
    words = {"name_source", "name_status", "name_level", "ech"}  # as numbers
    known = {
        column.name: column.type
        for column in columns()
        if column.group == "FLOW" or column.name == "name_level"
    }
    names = RECORD_DTYPE.names or ()
    assert {name.removesuffix("_shown") for name in names} == known.keys() - {"midstream", "early"}
    for name in set(names) - words - {"client", "server", "name", "client_shown", "server_shown"}:
        assert RECORD_DTYPE[name].itemsize == sizes[known[name] or ""], name


@pytest.mark.source
def test_the_page_has_every_field_of_a_row() -> None:
    page = (ROOT / "docs" / "reference" / "embedding.md").read_text("utf-8")
    table = page[page.index("| field | |") :].partition("\n\n")[0]
    cells = " ".join(line.split("|")[1] for line in table.splitlines()[2:])
    names = {*(RECORD_DTYPE.names or ()), *(OBSERVATION_DTYPE.names or ())}
    assert set(re.findall(r"`(\w+)`", cells)) == names


def test_what_is_withheld_is_not_in_the_rows(key_file: str) -> None:
    frames = traffic()
    engine = Engine(config(key_file=key_file))
    engine.feed(*arrays(frames))
    raw = engine.observations().tobytes()
    engine.finish()
    raw += engine.records().tobytes()
    assert b"shared.example" in raw
    for name in (b"rare", b"forged", b"not a name"):
        assert name not in raw
    for n in (0, 1, 2, 3, 50, 60, 61, 62):
        assert ipaddress.ip_address(user(n)).packed not in raw
    for n in range(3):
        assert ipaddress.ip_address(f"fd00:0:0:{n}00::1").packed not in raw


def test_batches_give_what_one_feed_gives(key_file: str) -> None:
    frames = traffic()
    found = []
    for size in (1, 7, len(frames)):
        with Engine(config(key_file=key_file)) as engine:
            rows: list[dict[str, Any]] = []
            for at in range(0, len(frames), size):
                engine.feed(*arrays(frames[at : at + size]))
                rows += [as_json(row) for row in engine.records()]
            engine.finish()
            rows += [as_json(row) for row in engine.records()]
            found.append(lines(rows))
    assert found[0] == found[1] == found[2]


def test_any_buffer_and_any_whole_numbers() -> None:
    frames = visit(user(1), b"a.example", START)
    buffer, ts_ns, caplen, wirelen, link = arrays(frames)
    for given in (
        (buffer.tobytes(), ts_ns, caplen, wirelen),
        (bytearray(buffer), ts_ns.tolist(), caplen.tolist(), wirelen.tolist()),
        (memoryview(buffer), ts_ns.astype(np.uint64), caplen.astype(np.int64), wirelen),
        (buffer, np.repeat(ts_ns, 2)[::2], np.repeat(caplen, 2)[::2], wirelen),
    ):
        with Engine(config(z=1)) as engine:
            engine.feed(*given, link)
            assert engine.stats["frames"] == len(frames)
            assert [bytes(name) for name in engine.observations()["name"]] == [b"a.example"]


def test_no_frames() -> None:
    with Engine() as engine:
        engine.feed(b"", [], [], [], 1)
        assert engine.stats["frames"] == 0
        assert engine.observations().size == engine.records().size == 0


@pytest.mark.parametrize(
    ("change", "error", "problem"),
    [
        ({0: b"short"}, ValueError, "does not fit the buffer"),
        ({1: [1.5]}, TypeError, "ts_ns must hold whole numbers"),
        ({1: [[1]]}, ValueError, "ts_ns must have one dimension"),
        ({1: [1, 2]}, ValueError, "differ in length"),
        ({2: [-1]}, ValueError, "caplen holds a number out of range"),
        ({2: [1 << 32]}, ValueError, "caplen holds a number out of range"),
        ({3: [10]}, ValueError, "does not fit the buffer"),
        ({4: 1.5}, TypeError, "linktype must be a whole number"),
        ({4: True}, TypeError, "linktype must be a whole number"),
        ({4: -1}, ValueError, "linktype is out of range"),
        ({4: 1 << 32}, ValueError, "linktype is out of range"),
    ],
)
def test_what_does_not_fit(change: dict[int, Any], error: type[Exception], problem: str) -> None:
    given: list[Any] = [bytes(60), [1], [60], [60], 1]
    for index, value in change.items():
        given[index] = value
    with Engine(config()) as engine:
        with pytest.raises(error, match=problem):
            engine.feed(*given)
        assert engine.stats["frames"] == 0
        engine.feed(bytes(60), [1], [60], [60], 1)
        assert engine.stats["frames"] == 1


@pytest.mark.parametrize(
    ("quiet_ns", "error"), [(1.5, TypeError), (None, TypeError), (1 << 63, ValueError)]
)
def test_an_idle_time_that_is_none(quiet_ns: Any, error: type[Exception]) -> None:
    with Engine(config()) as engine:
        with pytest.raises(error, match=r"^quiet_ns "):
            engine.idle(quiet_ns)
        engine.idle(np.int64(1))


def test_a_closed_engine() -> None:
    engine = Engine(config())
    engine.close()
    engine.close()
    with pytest.raises(ValueError, match="closed"):
        engine.feed(b"", [], [], [], 1)
    with pytest.raises(ValueError, match="closed"):
        engine.records()


def test_frames_behind_the_end_are_ended_too() -> None:
    frames = traffic()
    with Engine(config()) as engine:
        found = []
        for _ in range(2):
            engine.feed(*arrays(frames))
            engine.finish()
            found.append(len(engine.records()))
        assert found[0] == found[1] > 0
        assert engine.stats["flows_tcp"] + engine.stats["flows_udp"] == sum(found)


def test_a_z_that_follows_the_stream_is_refused() -> None:
    """Nobody moves it: it would stay at the least that was asked for."""
    for target in ({"target_p": 0.9}, {"target_k": 3}):
        with pytest.raises(ConfigError, match=r"^target_p: "):
            Engine(config(**target))


def test_a_counter_is_refused(key_file: str) -> None:
    """An engine without a connection would suppress every name."""
    probe = {"count_at": "tcp:localhost:1", "probe": "north", "key_file": key_file}
    with pytest.raises(ConfigError, match=r"^count_at: only a whole run uses a counter; [^\n]+$"):
        Engine(config(**probe))


@pytest.mark.parametrize(
    "wrong",
    [
        {"user_prefix": (33, 64)},
        {"user_prefix": (32, 129)},
        {"user_prefix": (0, 64)},
        {"max_flows": 0},
        {"max_flows": 2**32 - 1},
    ],
)
def test_what_the_core_refuses(wrong: dict[str, Any]) -> None:
    """A program in C sets these as it likes; they must not reach beyond an address or a table."""
    with pytest.raises(ConfigError):
        make_engine(**wrong)


def test_rows_have_no_gap_that_could_hold_anything(key_file: str) -> None:
    """Between the fields there are zeros."""
    with Engine(config(key_file=key_file)) as engine:
        engine.feed(*arrays(traffic()))
        rows = [engine.observations()]
        engine.finish()
        rows.append(engine.records())
    for table in rows:
        assert table.size
        raw = np.frombuffer(table.tobytes(), np.uint8).reshape(table.size, -1).copy()
        fields = table.dtype.fields
        assert fields is not None
        for kind, offset in (entry[:2] for entry in fields.values()):
            raw[:, offset : offset + kind.itemsize] = 0
        assert not raw.any()


@pytest.mark.source
def test_the_program_in_the_docs(tmp_path: Path, demo_pcap: Path) -> None:
    page = ROOT / "docs" / "howto" / "embedding.md"
    program = tmp_path / "program.py"
    program.write_text(page.read_text("utf-8").split("```python\n")[1].split("```")[0], "utf-8")
    done = subprocess.run(
        [sys.executable, program, demo_pcap],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
    )
    report = zanon_net.run(
        demo_pcap,
        Config().replace(z=5, internal="10.0.0.0/8", format=["observations", "jsonl"]),
        out=tmp_path / "out",
    )
    text = (tmp_path / "out" / "observations.jsonl").read_text("utf-8")
    wanted = Counter((o["name"], o["name_source"]) for o in map(json.loads, text.splitlines()))
    assert Counter(tuple(line.split()[1:]) for line in done.stdout.splitlines()) == wanted
    records = report.manifest["counters"]["flow"]["records"]
    flows = map(json.loads, (tmp_path / "out" / "flows.jsonl").read_text("utf-8").splitlines())
    released = [flow for flow in flows if flow["name_status"] == "released"]
    assert done.stderr.startswith(f"{records} flows, {len(released)} with a released name, ")
    octets = sum(flow["s_bytes"] for flow in released)
    assert done.stderr.endswith(f"\n{octets} bytes from their servers\n")


def test_rows_say_which_names_are_labels(tmp_path: Path) -> None:
    """With levels, name_level is that of the logs: 0 if no name is shown."""
    (tmp_path / "rules.dat").write_text("test\n")
    frames = merged(visit(user(i), f"n{i}.d.test".encode(), START + i * SECOND) for i in range(4))
    frames = merged([frames, crowd(b"shared.test", 5, START + 60 * SECOND, first=90)])
    levels = config(levels="domain", suffixes=tmp_path / "rules.dat", z=3)
    with Engine(levels) as engine:
        engine.feed(*arrays(frames))
        seen = [(row["name"], NAME_LEVELS[row["name_level"]]) for row in engine.observations()]
        engine.finish()
        records = engine.records()
    assert seen == [(b"*.d.test", "domain")] * 2 + [(b"shared.test", "name")] * 3
    found = Counter((NAME_STATUSES[row["name_status"]], int(row["name_level"])) for row in records)
    assert found == {("suppressed", 0): 4, ("generalized", 2): 2, ("released", 1): 3}
