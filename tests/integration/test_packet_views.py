# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Views of packets: files, fates, errors; tests/property/test_packets_oracle.py has their bytes."""

import gzip
import ipaddress
import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from oracle.packet_addresses import block_of
from oracle.packets import found_in
from support.cli import COMMAND, DEMO, ENVIRONMENT, Captured, limited, run_main
from support.packet_output import packets
from support.packet_run import emitted
from support.packets import MS, SECOND, SERVER_ADDRESS, START, Frame, Tcp, crowd, hello, user, visit

import zanon_net
from zanon_net import Config, ConfigError, Engine, OutputError
from zanon_net.pipeline import packet_fates

SETTINGS = ("--z", "2", "--internal", "10.0.0.0/8,fd00::/8")
STRICT = "--view=strict:z=20,payload=cut,server-address=withheld,fingerprint=drop,timestamps=ms"
MILLISECOND = 10**6


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def names(folder: str = ".") -> list[str]:
    """The names of what is in a folder."""
    return sorted(path.name for path in Path(folder).iterdir())


def manifest_of(path: str) -> dict[str, Any]:
    """The manifest, parsed."""
    found: dict[str, Any] = json.loads(Path(path).read_bytes())
    return found


def fates(part: dict[str, Any]) -> int:
    """The frames of which a manifest says what became of them."""
    return int(part["passed"] + part["masked"] + sum(part["dropped"].values()))


def test_a_view_has_no_coarse_packets(work: Path, key_file: str) -> None:
    more = ("-q", "--key-file", key_file, *SETTINGS, "--view=same:payload=zero")
    for name, how in (("coarse.pcap", "coarse"), ("usual.pcap", "drop")):
        assert run_main("packets", DEMO, name, *more, "--suppressed", how) == 0
    assert Path("coarse.same.pcap").read_bytes() == Path("usual.pcap").read_bytes()
    told = manifest_of("coarse.pcap.manifest.json")["packets"]
    assert told["masked"] > 100
    view = told["views"]["same"]
    assert view["masked"] == 0
    assert fates(view) == told["frames"]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_files_appear_beside_the_main_one(work: Path, key_file: str, workers: str) -> None:
    more = ("-q", "--key-file", key_file, "--workers", workers, *SETTINGS)
    assert run_main("packets", DEMO, "alone.pcap", *more) == 0
    assert run_main("packets", DEMO, "o.pcap", *more, STRICT, "--view=same:payload=zero") == 0
    assert names() == ["alone.pcap", "alone.pcap.manifest.json", "o.pcap", "o.pcap.manifest.json",
                       "o.same.pcap", "o.strict.pcap"]  # fmt: skip
    alone, main, same, strict = (
        Path(name).read_bytes() for name in ("alone.pcap", "o.pcap", "o.same.pcap", "o.strict.pcap")
    )
    assert alone == main == same
    floored = [frame.t_ns - frame.t_ns % MILLISECOND for frame in packets(main)]
    shown = [frame.t_ns for frame in packets(strict)]
    assert 0 < len(shown) < len(floored)
    assert set(shown) <= set(floored)
    assert max(len(frame.data) for frame in packets(strict)) <= 14 + 40 + 60


def test_the_manifest_has_the_fates_of_each_view(work: Path, capsys: Captured) -> None:
    assert run_main("packets", DEMO, "o.pcapng.gz", *SETTINGS, STRICT) == 0
    assert "view strict" in capsys.readouterr().err
    manifest = manifest_of("o.pcapng.gz.manifest.json")
    main = manifest["packets"]
    strict = main["views"]["strict"]
    assert fates(main) == fates(strict) == main["frames"]
    assert strict["passed"] < main["passed"]
    assert strict["names"]["by_vote"] < main["names"]["by_vote"]
    assert strict["addresses"]["released"] == 0 < main["addresses"]["released"]
    assert strict["z"] == 20
    assert (strict["payload"], strict["timestamps"], strict["exact"]) == ("cut", "ms", False)
    assert manifest["configuration"]["packets"]["view"] == [STRICT.partition("=")[2]]
    files = {one["file"]: one["records"] for one in manifest["outputs"]}
    assert files == {"o.pcapng.gz": main["passed"], "o.strict.pcapng.gz": strict["passed"]}
    assert len(gzip.decompress(Path("o.strict.pcapng.gz").read_bytes())) > 0


def test_a_run_writes_a_file_for_each_view_and_part(work: Path, key_file: str) -> None:
    more = ("-q", "--key-file", key_file, *SETTINGS, STRICT)
    assert run_main("run", DEMO, "--out", "o", "--format=pcap", "--format=csv", *more) == 0
    assert names("o") == ["flows.csv", "manifest.json", "packets.pcap", "packets.strict.pcap"]
    assert run_main("packets", DEMO, "o.pcap", *more) == 0
    for file in ("packets.pcap", "packets.strict.pcap"):
        assert Path("o", file).read_bytes() == Path(file.replace("packets", "o")).read_bytes()
    assert run_main("run", DEMO, "--out", "p", "--format=pcapng", "--split=1m", *more) == 0
    parts = [name for name in names("p") if name.startswith("packets-")]
    views = [name for name in names("p") if name.startswith("packets.strict-")]
    assert [name.replace(".strict", "") for name in views] == parts != []


def test_names_of_a_view_are_names_of_the_main_output(work: Path, key_file: str) -> None:
    """Of names that two users share and more do not, a view of z = 20 has none in its bytes."""
    more = ("-q", "--key-file", key_file, "--payload=zero", *SETTINGS)
    assert run_main("packets", DEMO, "o.pcap", "--view=v:z=20", *more) == 0
    assert (
        run_main("run", "o.pcap", "--out", "main", "--z", "1", "--format=observations", "-q") == 0
    )
    assert (
        run_main("run", "o.v.pcap", "--out", "view", "--z", "1", "--format=observations", "-q") == 0
    )
    seen = [
        {json.loads(line)["name"] for line in path.read_text().splitlines()}
        for path in (Path("view/observations.jsonl"), Path("main/observations.jsonl"))
    ]
    assert seen[0] < seen[1]
    assert seen[0]


def servers(frames: Sequence[Frame], since_ns: int) -> set[Any]:
    """The servers of flows of a second."""
    return {
        found_in(frame.data).target
        for frame in frames
        if since_ns <= frame.t_ns < since_ns + SECOND and found_in(frame.data).ports[1] == 443
    }


@pytest.mark.parametrize("how", ["coarse_suppressed", "exact"])
@pytest.mark.parametrize(("z", "server"), [(2, 1), (50, 0)])
def test_a_view_joins_nothing_to_a_server_that_is_shown(
    key_file: str, z: int, server: int, how: str
) -> None:
    """A visit to a rare name, and another of its user that the main output shows the server of:
    in a view that hides the address they have two pseudonyms."""
    later = START + 9 * SECOND
    frames = [
        *visit(user(0), b"rare.example", START),
        *crowd(b"shared.example", 3, START + 3 * SECOND, first=1),
        *visit(user(0), b"shared.example", later),
    ]
    views = [(z, 0, server, 0, 1, how == "exact")]
    run = emitted(frames, z=2, key_file=key_file, hold_ns=SECOND, views=views, **{how: True})
    (hidden,) = servers(run.frames, START)
    assert block_of(hidden) == "pair"
    assert servers(run.frames, later) == {ipaddress.ip_address(SERVER_ADDRESS)}
    assert hidden not in servers(run.views[0].frames, later)
    assert not servers(run.views[0].frames, START) & servers(run.views[0].frames, later)


def test_a_view_shows_no_server_that_the_main_output_hides(key_file: str) -> None:
    """A flow that leaves masked at first has a pseudonym of its server and no ports of its own, as
    in a view whose first packet of it is a later one that passes."""
    frames = crowd(b"shared.example", 3, first=1)
    ports, since_ns = (40_000, 8443), START + 5 * SECOND
    late = Tcp(user(0), ports=ports, t_ns=since_ns).handshake().wait(100 * MS)
    frames += late.say(hello(b"shared.example")).close().frames
    views = [(2, 0, 0, 0, 1, False)]
    more: dict[str, Any] = {"exact": True, "keep_client_port": True, "key_file": key_file}
    run = emitted(frames, z=2, hold_ns=10 * MS, views=views, **more)
    main, view = (
        {
            frozenset({(n.source, n.ports[0]), (n.target, n.ports[1])})
            for n in (found_in(frame.data) for frame in frames if frame.t_ns >= since_ns)
        }
        for frames in (run.frames, run.views[0].frames)
    )
    assert main == view
    (ends,) = view
    assert {block_of(address) for address, _port in ends} == {"client", "pair"}
    assert not {port for _address, port in ends} & set(ports)


REFUSED = [
    (["--view=Strict:z=50"], "--view: 'Strict' is not a name of a view"),
    (["--view=:z=50"], "--view: '' is not a name of a view"),
    (["--view=strict"], "--view: strict changes nothing"),
    (["--view=a:z=50", "--view=a:z=60"], "--view: two views are named a"),
    ([f"--view=v{n}:z=50" for n in range(4)], "--view: there may be 3, not 4"),
    (["--view=a:z"], "--view: a: 'z' is not one of z, payload"),
    (["--view=a:mac=zero"], "--view: a: 'mac=zero' is not one of z, payload"),
    (["--view=a:z=50,z=60"], "--view: a: z is there twice"),
    (["--view=a:z=1"], "--view: a: z: must be from 2 to"),
    (["--view=a:z=many"], "--view: a: z: must be a whole number"),
    (["--view=a:payload=none"], "--view: a: payload=none is not for a view"),
    (["--view=a:payload=keep-encrypted"], "payload=keep-encrypted would show more than the run"),
    (["--payload=cut", "--view=a:payload=zero"], "payload=zero would show more than the run"),
    (["--view=a:server-address=linkable"], "server-address=linkable is not for a view"),
    (
        ["--server-address=linkable", "--view=a:server-address=withheld"],
        "server-address=withheld is for a run with server-address tested",
    ),
    (["--view=a:fingerprint=keep"], "fingerprint=keep is not for a view"),
    (["--timestamps=ms", "--view=a:timestamps=us"], "timestamps=us would show more than the run"),
    (["--view=a:exact=yes"], "exact=yes is not for a view"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_what_is_refused(work: Path, capsys: Captured, options: list[str], message: str) -> None:
    """Before the source, which is not there, is looked for."""
    assert run_main("packets", "missing.pcap", "o.pcap", *SETTINGS, *options) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert names() == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["packets", "missing.pcap", "-"],
        ["packets", "missing.pcap", "--to", "lo"],
        ["run", "missing.pcap", "--out", "-", "--format", "pcap"],
        ["run", "missing.pcap", "--out", "o", "--format", "csv"],
    ],
)
def test_a_view_needs_a_file(work: Path, capsys: Captured, arguments: list[str]) -> None:
    assert run_main(*arguments, *SETTINGS, STRICT) == 2
    error = capsys.readouterr().err
    assert error.startswith("zanon-net: --view: ")
    assert error.count("\n") == 1
    assert names() == []


@pytest.mark.parametrize("taken", ["o.strict.pcap", "o.strict.pcap.partial"])
def test_a_name_that_is_taken(work: Path, capsys: Captured, taken: str) -> None:
    Path(taken).write_bytes(b"precious")
    assert run_main("packets", "missing.pcap", "o.pcap", STRICT) == 2
    assert f"{taken} exists" in capsys.readouterr().err
    assert run_main("packets", "o.strict.pcap", "o.pcap", STRICT) == 2
    assert names() == [taken]


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_full_disk_leaves_nothing(work: Path, workers: str) -> None:
    more = (*SETTINGS, STRICT, "--workers", workers)
    command = limited(200_000, *COMMAND, "packets", str(DEMO), "o.pcap", *more)
    done = subprocess.run(command, capture_output=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 1
    assert names() == []


@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_file_that_gets_no_name_leaves_nothing(
    work: Path, monkeypatch: pytest.MonkeyPatch, nth: int
) -> None:
    """The main one, the view's, or the manifest. The first name is that of the state."""
    rename, uses = Path.rename, iter(range(9))

    def failing(path: Path, target: Path) -> Path:
        if next(uses) == nth:
            raise OSError(5, "Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", failing)
    assert run_main("packets", DEMO, "o.pcap", "-q", STRICT) == 1
    assert names() == []


def test_the_sum_of_fates_is_checked_for_each_view() -> None:
    counters = dict.fromkeys(Engine(max_flows=64).stats, 0) | {"frames": 3, "drop_not_ip": 1}
    view = dict.fromkeys(counters, 0) | {"packets_passed": 1, "packets_dropped_suppressed": 1}
    written = {"packets": 2, "view1_packets": 1, "view2_packets": 1}
    packet_fates.check_views(counters, [view, view], written)
    with pytest.raises(OutputError, match="of 3 frames 2 are accounted for"):
        packet_fates.check_views(counters, [view | {"packets_passed": 0}], written)
    with pytest.raises(OutputError, match="1 packets left and 2 were written"):
        packet_fates.check_views(counters, [view], {"view1_packets": 2})


def test_a_dry_run_counts_views(work: Path, capsys: Captured) -> None:
    assert run_main("packets", DEMO, "o.pcap", "--dry-run", "--json", *SETTINGS, STRICT) == 0
    part = json.loads(capsys.readouterr().out)["packets"]
    assert fates(part["views"]["strict"]) == part["frames"]
    assert names() == []


def test_a_view_follows_a_z_that_is_higher(work: Path) -> None:
    """Where z follows the stream, a view needs the higher of its own and the current one."""
    target = ("--target-p=0.999", "--z-max=1000", "--window=1m", "--evidence=any")
    assert run_main("packets", DEMO, "o.pcap", "-q", *SETTINGS, *target, "--view=v:z=2") == 0
    main = manifest_of("o.pcap.manifest.json")
    assert main["z_changes"]
    assert Path("o.v.pcap").read_bytes() == Path("o.pcap").read_bytes()


def test_a_configuration_file_names_views(work: Path) -> None:
    Path("c.toml").write_text('[packets]\nview = ["strict:z=20"]\n[anonymity]\nz = 2\n')
    assert Config.load("c.toml").packets.view == ("strict:z=20",)
    assert run_main("packets", DEMO, "o.pcap", "-q", "--config", "c.toml") == 0
    assert "o.strict.pcap" in names()


def test_arrays_of_an_engine(work: Path, key_file: str) -> None:
    settings: dict[str, Any] = {"z": 2, "internal": "10.0.0.0/8,fd00::/8", "key_file": key_file}
    settings["view"] = STRICT.partition("=")[2]
    zanon_net.packets(DEMO, "o.pcap", **settings)
    expected = [(frame.t_ns, frame.data) for frame in packets(Path("o.strict.pcap").read_bytes())]
    found: list[tuple[int, bytes]] = []
    with Engine(**settings, packets=True) as engine:

        def take() -> None:
            batch = engine.packets(view="strict")
            data = batch.data.tobytes()
            found.extend(
                (int(t_ns), data[at : at + n])
                for t_ns, at, n in zip(batch.t_ns, batch.offset, batch.length, strict=True)
            )

        for frames in zanon_net.frames(os.fspath(DEMO)):
            engine.feed(*frames)
            take()
        engine.finish()
        take()
        with pytest.raises(ConfigError, match=r"^view: the engine was opened without 'lax'"):
            engine.packets(view="lax")
    assert found == expected != []
