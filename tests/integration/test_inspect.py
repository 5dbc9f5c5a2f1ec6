# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net inspect`: counts and hints about a capture, without names and addresses."""

import ipaddress
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from frames.link import LINKS
from frames.no_tunnel import DROPPED
from frames.tunnel import TUNNELS
from support import wire
from support.capture_bytes import block, enhanced, interface, option, section, write_capture
from support.engine import run
from support.examples import each
from support.fragments import packet_of, pieces
from support.packets import (
    ACK,
    CLIENT,
    PSH,
    SERVER,
    SERVER_ADDRESS,
    Frame,
    Tcp,
    Udp,
    dns,
    hello,
    merged,
    request,
    user,
    visit,
)

from zanon_net._core import STAT_INFO
from zanon_net.cli import main
from zanon_net.pipeline.diagnostics import diagnose

Said = pytest.CaptureFixture[str]
NAME = wire.HOST
ETHERNET, START_S = 1, 1_700_000_000
STATUSES = [name for name, group, _text in STAT_INFO if group == "status"]


def save(path: Path, frames: Sequence[Frame], link: int = ETHERNET) -> Path:
    """A pcapng file of these frames."""
    blocks = [section(), interface(link_type=link)]
    blocks += [enhanced("<", frame.t_ns // 1000, frame.data, wire=frame.wire) for frame in frames]
    path.write_bytes(b"".join(blocks))
    return path


def facts_of(path: Path, said: Said) -> dict[str, Any]:
    """What --json prints."""
    said.readouterr()
    assert main(["inspect", str(path), "--json"]) == 0
    facts: dict[str, Any] = json.loads(said.readouterr().out)
    return facts


# ---- the status of names ------------------------------------------------------------------------

ECH = wire.extension(wire.ECH, bytes(40))
FORGED = hello(b"www.example.net")
UNKNOWN_QUIC = b"\xc3\x0a\x0a\x0a\x01\x08" + bytes(8) + b"\x04" + bytes(1190)


def conflicting() -> Tcp:
    talk = Tcp().handshake()
    at = hello(NAME).index(NAME) + len(NAME) - 3
    for start, data in (
        (0, hello(NAME)[: at + 1]),
        (at - 5, FORGED[at - 5 : at + 2]),
        (at + 1, hello(NAME)[at + 1 :]),
    ):
        talk.segment(CLIENT, PSH | ACK, data, seq=1001 + start)
    return talk


FLOWS: dict[str, tuple[str, Sequence[Frame]]] = {
    "tls": ("readable", visit(user(1), NAME, START_S)),
    "http": ("readable", Tcp(ports=(4000, 80)).handshake().say(request(NAME)).frames),
    "dns": ("readable", Udp().lookup(NAME).frames),
    "unconfirmed": ("readable", Udp().send(dns(NAME)).frames),
    "home": ("readable", Udp().lookup(b"7.2.0.192.in-addr.arpa").frames),
    "ech": ("ech", Tcp().handshake().say(hello(NAME, ECH)).frames),
    "cut": ("truncated", Tcp().handshake().say(hello(NAME)[:60]).close().frames),
    "invalid": ("invalid", Tcp().handshake().say(hello(b"no name!")).frames),
    "two-copies": ("invalid", conflicting().frames),
    "quic-version": ("unsupported", Udp(ports=(4000, 443)).send(UNKNOWN_QUIC).frames),
    "no-name": ("none", Tcp().handshake().say(hello(None)).frames),
    "address": ("none", Tcp(ports=(4000, 80)).handshake().say(request(b"192.0.2.1")).frames),
    "nothing": ("none", Tcp().handshake().close().frames),
    "invalid-then-valid": (
        "readable",
        Tcp(ports=(4000, 80)).handshake().say(request(b"no_name!")).say(request(NAME)).frames,
    ),
}


@each("name", FLOWS)
@each("z", [1, 20])
def test_status_of_a_flow(name: str, z: int) -> None:
    """Whatever is released: what could be read does not depend on z."""
    expected, frames = FLOWS[name]
    stats = run(frames, z=z, internal=None).stats
    assert {status: stats[status] for status in STATUSES if stats[status]} == {
        f"status_{expected}": 1
    }


def test_each_flow_has_one_status(demo_pcap: Path, capsys: Said) -> None:
    facts = facts_of(demo_pcap, capsys)
    assert sum(facts["status"].values()) == facts["flow"]["records"]
    assert main(["inspect", str(demo_pcap)]) == 0
    text = capsys.readouterr().out
    share = f"({facts['status']['status_readable'] / facts['flow']['records']:.1%})"
    assert share in next(line for line in text.splitlines() if "a name was read" in line)


# ---- what it says -------------------------------------------------------------------------------


def test_format_links_tunnels_time_and_drops(tmp_path: Path, capsys: Said) -> None:
    cases = [LINKS["ethernet"], LINKS["radiotap"], TUNNELS["vxlan"], TUNNELS["qinq"]]
    frames = [case.frame for case in cases] + [DROPPED["esp"][1]]
    path = tmp_path / "a.pcapng"
    write_capture(path, frames, [case.link for case in cases] + [ETHERNET])
    facts = facts_of(path, capsys)
    assert facts["sources"][0]["format"] == "pcapng"
    assert facts["sources"][0]["link_types"] == {"ETHERNET": 4, "IEEE802_11_RADIOTAP": 1}
    counted = {name: n for name, n in facts["encapsulation"].items() if n}
    assert counted == {"in_llc": 1, "in_wifi": 1, "in_vxlan": 1, "in_vlan": 1}
    assert facts["time_range"]["last_ns"] - facts["time_range"]["first_ns"] == 4 * 10**9
    assert {name: n for name, n in facts["drop"].items() if n} == {"drop_encrypted": 1}
    assert main(["inspect", str(path)]) == 0
    text = " ".join(capsys.readouterr().out.split())
    for expected in (
        "format pcapng",
        "1 frames of IEEE802_11_RADIOTAP",
        "inside 1 VXLAN (20.0%)",
        "dropped 1 encrypted below the transport layer (20.0%)",
        "time span 4.000 s",
        "hint 1 frames encrypted below TCP and UDP",
    ):
        assert expected in text


# ---- hints --------------------------------------------------------------------------------------


def halved(frames: Sequence[Frame], side: int) -> list[Frame]:
    """What one side sent."""
    own = ipaddress.ip_address(SERVER_ADDRESS).packed
    return [frame for frame in frames if (frame.data[26:30] == own) == (side == SERVER)]


VISITS = merged(visit(user(n), NAME, START_S + n) for n in range(4))
FRAGMENTED = pieces(packet_of(Udp().send(dns(NAME)).frames[0]), [24])
HINTED: dict[str, tuple[int, Sequence[Frame]]] = {
    "empty": (1, []),
    "snaplen": (4, [frame.cut(100) for frame in VISITS]),
    "one_direction": (4, halved(VISITS, CLIENT)),
    "no_handshakes": (4, merged(visit(user(n), NAME, START_S + n)[3:] for n in range(4))),
    "packets_lost": (1, FLOWS["cut"][1]),
    "fragments_lost": (1, [Frame(START_S, b"\0" * 12 + b"\x08\0" + FRAGMENTED[0], 58)]),
    "encrypted": (1, [Frame(START_S, DROPPED["esp"][1], len(DROPPED["esp"][1]))]),
    "ech": (1, FLOWS["ech"][1]),
    "versions": (1, FLOWS["quic-version"][1]),
}


@pytest.mark.parametrize("reason", HINTED)
def test_hints(reason: str, tmp_path: Path, capsys: Said) -> None:
    count, frames = HINTED[reason]
    found = facts_of(save(tmp_path / "a.pcapng", frames), capsys)["hints"]
    assert [(hint["reason"], hint["count"]) for hint in found] == [(reason, count)]
    assert main(["inspect", str(tmp_path / "a.pcapng")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert f"hint {count} {found[0]['text']}" in text


def test_a_link_type_that_is_not_read(tmp_path: Path, capsys: Said) -> None:
    found = facts_of(save(tmp_path / "a.pcapng", VISITS, 147), capsys)["hints"]
    assert [(hint["reason"], hint["count"]) for hint in found] == [("link_type", len(VISITS))]


def test_nothing_to_act_on(tmp_path: Path, capsys: Said) -> None:
    assert facts_of(save(tmp_path / "a.pcapng", VISITS), capsys)["hints"] == []
    cut_behind = [frame.cut(500) for frame in VISITS]
    assert facts_of(save(tmp_path / "b.pcapng", cut_behind), capsys)["hints"] == []
    few = merged([VISITS, halved(visit(user(9), NAME, START_S), CLIENT)])
    assert facts_of(save(tmp_path / "c.pcapng", few), capsys)["hints"] == []


@pytest.mark.parametrize(
    ("counter", "reason"),
    [
        ("drop_fragment_evicted", "fragments_crowded"),
        ("in_amsdu", "amsdu"),
        ("drop_timestamp", "timestamps"),
        ("clock_rebased", "timestamps"),
        ("drop_flow_table_full", "flow_table"),
        ("flows_evicted", "flow_table"),
    ],
)
def test_hints_from_counters(counter: str, reason: str) -> None:
    nothing = {name: 0 for name, _group, _text in STAT_INFO} | {"frames": 1}
    assert diagnose(nothing) == []
    (hint,) = diagnose(nothing | {counter: 7})
    assert (hint.reason, hint.count) == (reason, 7)


# ---- no name, no address ------------------------------------------------------------------------

SECRETS = [
    b"canary",
    b"10.7.",
    b"0a07",
    SERVER_ADDRESS.encode(),
    b"fd00",
    b"2001:db8",
    b"203.0.113",
]


def test_no_name_and_no_address(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of any status, also from what the capture's own blocks say."""
    canary = b"canary.example.org"
    talks: list[Sequence[Frame]] = [
        visit(user(1), canary, START_S),
        visit("fd00::7", canary, START_S, "2001:db8::1"),
        Tcp().handshake().say(hello(canary, ECH)).frames,
        Tcp().handshake().say(hello(canary + b"!")).frames,
        Tcp().handshake().say(hello(canary)[:-9]).frames,
        Tcp(ports=(4000, 80)).handshake().say(request(canary)).frames,
        Udp().lookup(canary).frames,
        [Frame(START_S, TUNNELS["gre"].frame, len(TUNNELS["gre"].frame))],
    ]
    comment = option("<", 1, canary + b" 10.7.0.1")
    blocks = [section(options=comment), interface(options=option("<", 2, canary))]
    blocks += [enhanced("<", f.t_ns // 1000, f.data, options=comment) for f in merged(talks)]
    resolution = b"\1\0\x16\0" + bytes([10, 7, 0, 1]) + canary  # a name resolution block
    blocks += [block("<", 4, resolution + bytes(-len(resolution) % 4)), b"\6\0\0\0" + canary]
    path = tmp_path / "a.pcapng"
    path.write_bytes(b"".join(blocks))
    for more in ([], ["--json"]):
        assert main(["inspect", str(path), *more]) == 0
        said = capfd.readouterr()
        assert "warning" in said.err
        assert "ECH" in said.out or "ech" in said.out
        assert not [secret for secret in SECRETS if secret.decode() in said.out + said.err]


def test_several_sources_are_counted_together_and_shown_alone_if_asked(
    tmp_path: Path, capfd: Said
) -> None:
    for name, host in (("a.pcapng", b"www.a.example"), ("b.pcapng", b"www.b.example")):
        save(tmp_path / name, Tcp().handshake().say(hello(host)).frames)
    one, two, folder = str(tmp_path / "a.pcapng"), str(tmp_path / "b.pcapng"), str(tmp_path)
    both = [table_of(capfd, folder), table_of(capfd, one, two)]
    assert both[0] == both[1]
    assert both[0][0].split() == ["sources", "2"]
    assert [line.split()[0] for line in both[0]].count("format") == 1
    total = sum((tmp_path / name).stat().st_size for name in ("a.pcapng", "b.pcapng"))
    assert f"{total:,}" in both[0][2]
    each = table_of(capfd, one, two, "-v")
    assert each[: len(both[0])] == both[0]
    last = [line.split() for line in each[len(both[0]) :]]
    assert [line[1] for line in last if line[0] == "source"] == ["a.pcapng", "b.pcapng"]
    assert "source" not in " ".join(table_of(capfd, one, "-v"))


def table_of(said: Said, *arguments: str) -> list[str]:
    assert main(["inspect", *arguments]) == 0
    return [line.rstrip() for line in said.readouterr().out.splitlines()]


def test_of_several_sources_the_one_that_is_cut_short_is_named(tmp_path: Path, capfd: Said) -> None:
    whole = save(tmp_path / "a.pcapng", Tcp().handshake().frames)
    (tmp_path / "b.pcapng").write_bytes(whole.read_bytes()[:-5])
    lines = table_of(capfd, str(tmp_path))
    assert [line.split()[2] for line in lines if line.startswith("cut short")] == ["b.pcapng:"]


def test_a_tunnel_on_a_port_that_is_given(tmp_path: Path, capsys: Said) -> None:
    frame = TUNNELS["vxlan"].frame
    other = frame[:36] + (4799).to_bytes(2) + frame[38:]
    path = save(tmp_path / "x", [Frame(START_S * 10**9, other, len(other))])
    assert facts_of(path, capsys)["encapsulation"].get("in_vxlan", 0) == 0
    ports = ["--tunnel-port", "vxlan:4799", "--tunnel-port", "geneve:9"]
    assert main(["inspect", str(path), "--json", *ports]) == 0
    assert json.loads(capsys.readouterr().out)["encapsulation"]["in_vxlan"] == 1
    assert main(["inspect", str(path), *ports]) == 0
    assert "window 1h" in capsys.readouterr().out


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_run_reads_a_tunnel_on_a_port_that_is_given(tmp_path: Path, workers: str) -> None:
    """Names in the tunnel are seen, and the manifest has the port."""
    frames = []
    for sent in visit(user(0), NAME, START_S * 10**9):
        vxlan = b"\x08\0\0\0\0\0\7\0" + sent.data
        inside = wire.udp(vxlan, ports=(50_000, 6784))
        outer = wire.ipv4(inside, wire.UDP, addresses=("192.0.2.1", "192.0.2.2"))
        data = bytes(12) + b"\x08\0" + outer
        frames.append(Frame(sent.t_ns, data, len(data)))
    path, nets = save(tmp_path / "x", frames), ["--internal", "10.0.0.0/8"]
    (tmp_path / "zanon.toml").write_text('[input]\ntunnel_port = ["vxlan:6784"]\n')
    by_option = ["--tunnel-port", "vxlan:6784"]
    by_file = ["--config", str(tmp_path / "zanon.toml")]
    for name, words, seen in (("a", [], 0), ("b", by_option, 1), ("c", by_file, 1)):
        out = tmp_path / name
        command = ["run", str(path), "--out", str(out), "--z", "1", "--workers", workers]
        assert main([*command, *nets, *words]) == 0
        manifest = json.loads((out / "manifest.json").read_text())
        assert manifest["counters"]["name"]["names_tls"] == seen
        assert manifest["configuration"]["input"]["tunnel_port"] == ["vxlan:6784"] * seen
