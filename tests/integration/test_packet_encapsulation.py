# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Headers around packets that are kept: read back strictly, and by tshark."""

import ipaddress
import random
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from frames.link import LINKS, T4
from frames.tunnel import RAW_MACS, TUNNELS, on_ethernet, tags
from oracle.packet_addresses import closure
from oracle.packet_layers import Found, Layer, read
from scenario.crowd import CLIENTS, SERVERS, SERVERS6
from scenario.routes import ROUTES, Route, routed
from support import wire
from support.engine import nets
from support.examples import each
from support.fragments import pieces
from support.packet_run import Emitted, emitted, write_pcap
from support.packets import HOUR, SECOND, START, Frame, Tcp, Udp, merged, user, visit
from support.tunnel import WRAPS, tunnelled

from zanon_net import _core

pytestmark = pytest.mark.source

INTERNAL = nets("10.0.0.0/8", "fd00::/8", "2001::/32")
CASES = {f"link-{name}": case for name, case in LINKS.items() if case.link == 1} | TUNNELS
KEPT = {  # the headers of frames whose encapsulation leaves without some of it; others leave whole
    **dict.fromkeys(("pbb", "nsh", "nsh-of-scapy", "nsh-ethernet", "nsh-in-nsh", "gre-nsh"), ()),
    **dict.fromkeys(("macsec-clear", "macsec-clear-with-sender", "vn-tag", "e-tag", "r-tag"), ()),
    **dict.fromkeys(("hsr", "sgt", "edsa-ethertype", "fabricpath", "trill", "trill-options"), ()),
    **{name: () for name in TUNNELS if name.startswith("arista-")},
    "arista-before-vlan": ("vlan",),
    "hp-erm": (),
    "hp-erm-vlan": ("vlan",),
    "arista-mpls": ("mpls",),
    **dict.fromkeys(("gre-wccp", "gre-wccp2", "gre-aruba", "gre-frame-relay", "eoip"), ()),
    **dict.fromkeys(("pptp", "pptp-sequence", "pptp-both"), ()),
    **dict.fromkeys(("erspan-1", "erspan-2", "erspan-3", "erspan-3-platform"), ()),
    **dict.fromkeys(("ayiya", "ayiya-ipv4", "capwap-wifi", "capwap-wifi-swapped"), ()),
    **dict.fromkeys(("tzsp", "tzsp-tags", "tzsp-wifi", "vxlan-gpe-nsh", "vlan-llc"), ()),
    # addresses of loopback, which stay in their host
    **dict.fromkeys(("4in6in4", "four-ip-headers"), ()),
    **dict.fromkeys(("pbb-tagged", "vn-tag-vlan"), ("vlan",)),
    "nsh-mpls": ("mpls",),
    "mpls-ten-labels": ("mpls", "mpls"),  # eight headers at most
    "vxlan-in-vxlan-in-vxlan": ("ip", "udp", "vxlan", "ethernet"),
}
UNSEEN = ("jumbo-llc", "minimal-encapsulation", "minimal-encapsulation-source")  # not headers
FORMS = {"ah-tunnel", "ah-transport", "6in6-behind-options"}  # what IP has behind its header
HEURISTICS = re.compile("pseudowire|gpe|9200|edsa")  # that tshark reads by guesses, or not at all


def run(frames: Sequence[Frame], **more: Any) -> Emitted:
    """All leave, with what is around them."""
    given = {"z": 50, "exact": True, "established": False, "internal": INTERNAL}
    given |= {"keep_encapsulation": True}
    return emitted(frames, **given | more)


def as_frames(*data: bytes) -> list[Frame]:
    return [Frame(START + n * SECOND, one, len(one)) for n, one in enumerate(data)]


def names(found: Found) -> tuple[str, ...]:
    return tuple(layer.name for layer in found.layers)


@pytest.fixture(scope="module")
def left(key_file: str) -> dict[str, tuple[Found, Frame, Frame]]:
    """Of each frame what leaves with what is around it, read and as it is, and without that."""
    frames = as_frames(*(case.frame for case in CASES.values()))
    kept, bare = (
        {frame.t_ns: frame for frame in run(frames, key_file=key_file, **more).frames}
        for more in ({}, {"keep_encapsulation": False})
    )
    assert kept.keys() == bare.keys()
    return {
        name: (read(kept[frame.t_ns].data), kept[frame.t_ns], bare[frame.t_ns])
        for name, frame in zip(CASES, frames, strict=True)
        if frame.t_ns in kept
    }


def test_each_frame_leaves(left: dict[str, Any]) -> None:
    assert left.keys() == CASES.keys()


@each("name", CASES)
def test_the_packet_is_that_which_leaves_alone(
    left: dict[str, tuple[Found, Frame, Frame]], name: str
) -> None:
    found, kept, bare = left[name]
    alone = read(bare.data)
    assert alone.layers == []
    assert found.packet == alone.packet
    assert len(kept.data) == kept.wire >= 60
    if name in KEPT:
        assert names(found) == KEPT[name]
    elif name in UNSEEN or name.startswith("link-"):
        assert found.layers == []
    else:
        assert (found.layers == []) == (name == "ah-transport")


def protocols(path: Path) -> dict[int, str]:
    """What tshark finds in each frame, by its time; nothing else may be wrong with it."""
    options = [f"{name}.check_checksum:TRUE" for name in ("ip", "udp", "tcp")]
    told = [word for option in options for word in ("-o", option)]
    fields = ["frame.time_epoch", "frame.protocols", "_ws.malformed", "ip.checksum.status"]
    fields += ["udp.checksum.status", "tcp.checksum.status"]
    command = ["tshark", "-n", "-r", str(path), *told, "-d", "udp.port==8472,vxlan", "-T", "fields"]
    command += [word for field in fields for word in ("-e", field)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = {}
    for line in text.splitlines():
        time, seen, malformed, *sums = line.split("\t")
        wrong = bool(malformed) or any("0" in value.split(",") for value in sums)
        whole, _, part = time.partition(".")
        found[int(whole) * SECOND + int(part)] = "wrong" if wrong else plain(seen)
    return found


def plain(seen: str) -> str:
    """Without guesses about zeros of payload."""
    return re.sub("(:tls|:data|:tcp.segments)$", "", seen)


@pytest.mark.skipif(shutil.which("tshark") is None, reason="tshark is not installed")
def test_tshark_finds_the_same_headers(
    left: dict[str, tuple[Found, Frame, Frame]], tmp_path: Path
) -> None:
    whole = [
        name
        for name in CASES
        if name not in (*KEPT, *UNSEEN, *FORMS) and not HEURISTICS.search(name)
        if not name.startswith("link-")
    ]
    frames = [left[name][1] for name in whole]
    after = protocols(write_pcap(tmp_path / "out.pcap", frames))
    given = [Frame(f.t_ns, CASES[n].frame, 0) for n, f in zip(whole, frames, strict=True)]
    given = [Frame(f.t_ns, f.data, len(f.data)) for f in given]
    before = protocols(write_pcap(tmp_path / "in.pcap", given))
    for name, frame in zip(whole, frames, strict=True):
        expected = before[frame.t_ns]
        if expected != "wrong":  # scapy's checksums of some
            assert after[frame.t_ns] == expected, name
    assert len(whole) >= 70
    assert "wrong" not in after.values()


def test_addresses_and_numbers_around(left: dict[str, tuple[Found, Frame, Frame]]) -> None:
    """Each is in a block, and no number is what it was."""
    assert closure(kept.data for _, kept, _ in left.values()).others == []
    ids = {name: [layer.ids for layer in found.layers] for name, (found, *_) in left.items()}
    assert ids["vlan"] == [ids["qinq"][0]]  # one permutation of all tags
    assert ids["qinq"][0] != ids["qinq"][1]
    assert ids["mpls-three-labels"] == [(7,), (8,), (9,)]  # reserved
    assert ids["mpls"] != [(100,)]
    assert ids["gtp"] == ids["gtp-sequence"]
    assert ids["vxlan"][2] == ids["geneve"][2]
    assert ids["vxlan"][2] != (7,)
    source, target = ids["vxlan"][1]
    assert target == 4789
    assert source not in (40000 + 4789, 0)


# ---- conversations ------------------------------------------------------------------------------


def conversation(number: int, six: bool, route: Route) -> list[Frame]:
    """A visit on a route."""
    client = f"fd00:7::{number:x}" if six else user(number)
    server = SERVERS6[0] if six else SERVERS[0]
    talk = visit(client, b"a.example", START + number * SECOND, server)
    return routed(talk, route, client, number)


@pytest.mark.parametrize("seed", range(4))
def test_routes(key_file: str, seed: int) -> None:
    """The fates are those of packets that leave alone, and so are the packets."""
    dice = random.Random(seed)
    frames = merged([conversation(n, dice.random() < 0.3, dice.choice(ROUTES)) for n in range(60)])
    more = {"key_file": key_file, "internal": None}
    kept, bare = run(frames, **more), run(frames, keep_encapsulation=False, **more)
    assert kept.dropped() == bare.dropped()
    assert [frame.t_ns for frame in kept.frames] == [frame.t_ns for frame in bare.frames]
    around = 0
    for one, other in zip(kept.frames, bare.frames, strict=True):
        found = read(one.data)
        assert found.packet == read(other.data).packet
        around += len(found.layers)
    assert around > len(kept.frames) / 2
    assert closure(frame.data for frame in kept.frames).others == []
    for again in ({"workers": 2}, {"batch": 7}):
        assert run(frames, **more, **again).frames == kept.frames


def outer(frames: Sequence[Frame]) -> set[Layer]:
    return {layer for frame in frames for layer in read(frame.data).layers}


@pytest.mark.parametrize("wrap", WRAPS)
def test_who_is_who_in_a_tunnel(wrap: str) -> None:
    """An internal end has a client's pseudonym, another one that of the user's pair; two users have
    two of them."""
    client, far = "192.0.2.77", "198.51.100.99"
    found = []
    for near in ("10.7.0.3", "10.7.0.4"):
        talk = Tcp(client, SERVERS[0], t_ns=START).handshake().close().frames
        tunnel = tunnelled(talk, client, near, far, WRAPS[wrap])
        layers = outer(run(tunnel, internal=None).frames)
        there, back = sorted({layer.ends for layer in layers if layer.ends})
        assert there == back[::-1]
        assert there[0] in ipaddress.ip_network("10.0.0.0/8")
        assert there[1] in ipaddress.ip_network("240.0.0.0/5")
        found.append(there)
    assert found[0][1] != found[1][1]


def test_numbers_change_with_the_epoch(key_file: str) -> None:
    """Those of a flow are of the epoch in which it opened."""
    talks = []
    for epoch in range(3):
        talk = Udp(CLIENTS[0], SERVERS[0], (2000 + epoch, 9999), START + epoch * 3 * HOUR)
        for _ in range(3):
            talk.send(b"Aplain", 0)
        talks.append(routed(talk.frames, Route((), (0x8100,)), CLIENTS[0], epoch))
    frames = run(merged(talks), key_file=key_file, rotate_ns=HOUR, internal=None).frames
    seen = [{layer.ids for layer in outer([f for f in frames if within(f, n)])} for n in range(3)]
    assert [len(ids) for ids in seen] == [1, 1, 1]
    assert len(set.union(*seen)) > 1


def within(frame: Frame, epoch: int) -> bool:
    return epoch == (frame.t_ns - START) // (3 * HOUR)


# ---- limits -------------------------------------------------------------------------------------


def test_what_does_not_fit_is_stripped() -> None:
    """A length that a header cannot say: that of a session, and not of a tag, which says none."""
    frames = []
    for n, size in enumerate((65_499, 65_500, 65_507)):
        data = wire.udp(bytes(size), ports=(51_000 + n, 9_999))
        packet = wire.ipv4(data, wire.UDP, addresses=("10.9.0.1", "192.0.2.9"))
        session = b"\x11\0\0\7" + ((2 + len(packet)) & 0xFFFF).to_bytes(2) + b"\0\x21"
        frames.append(on_ethernet(0x8864, session + packet, packet, "pppoe").frame)
    frames.append(RAW_MACS + tags(0x8100) + b"\x08\0" + packet)
    done = run(as_frames(*frames))
    assert [names(read(one.data)) for one in done.frames] == [("pppoe", "ppp"), (), (), ("vlan",)]
    assert done.stats["packets_stripped"] == 2


def test_fragments_leave_without_what_is_around_them() -> None:
    data = wire.udp(bytes(600), ports=(51_000, 9_999))
    packet = wire.ipv4(data, wire.UDP, addresses=("10.9.0.1", "192.0.2.9"))
    parts = [RAW_MACS + tags(0x8100) + b"\x08\0" + one for one in pieces(packet, (160, 320), 7)]
    done = run([Frame(START + n, one, len(one)) for n, one in enumerate(parts)])
    assert len(done.frames) == 3
    assert all(frame.data[12:14] == b"\x08\0" for frame in done.frames)
    assert done.stats["packets_stripped"] == 3


def test_an_outer_packet_in_fragments_leaves_as_one_frame() -> None:
    whole = TUNNELS["vxlan-inner-vlan"].frame[14:]
    parts = [RAW_MACS + b"\x08\0" + one for one in pieces(whole, (24, 48), 7)]
    done = run([Frame(START + n, one, len(one)) for n, one in enumerate(parts)])
    assert [names(read(frame.data)) for frame in done.frames] == [("vlan",)]
    assert done.stats["packets_stripped"] == 1
    assert done.dropped() == {"fragment": 2}


def test_a_port_that_may_be_a_hash_does_not_stay() -> None:
    frames = tunnelled(visit(user(0), b"a.example", START), user(0), user(1), wrap=WRAPS["vxlan"])
    done = run(frames, keep_client_port=True, internal=nets("10.0.0.0/8"))
    ports = {one.data[34:36] for one in done.frames}
    assert len(done.frames) == len(frames)
    assert len(ports) == 1
    assert (50_000).to_bytes(2) not in ports


def test_a_port_that_was_given_to_a_tunnel_stays() -> None:
    """So tshark, and a run with the same setting, read what is inside."""
    at = TUNNELS["vxlan"].frame
    frame = at[:36] + (4799).to_bytes(2) + at[38:]
    for workers in (1, 2):
        done = run(as_frames(frame), tunnel_ports=[("vxlan", 4799)], workers=workers)
        (left,) = done.frames
        assert left.data[36:38] == (4799).to_bytes(2)
        assert left.data[34:36] != frame[34:36]
        inner = _core.decode_packet(left.data, 1, tunnel_ports=[("vxlan", 4799)])
        assert inner["encapsulations"] == ["in_vxlan"]
        assert (inner["proto"], inner["dport"]) == (wire.TCP, 443)
        assert done.stats["in_vxlan"] == 1
    assert run(as_frames(frame)).frames == []  # a datagram between two hosts outside


@pytest.mark.parametrize("n", [4, 5, 6])
def test_a_payload_that_was_taken_for_a_tunnel_is_no_header(n: int) -> None:
    """Tags in a datagram to VXLAN's port, before what is no packet: there are more headers than are
    noted, or not, and none of the payload's is around the packet."""
    inside = bytes(12) + tags(0x8100, 0x88A8) + b"\x08\0" + b"\x46\0\0\x14" + bytes(24)
    payload = b"\x08" + bytes(7) + inside
    data = wire.udp(payload, ports=(51_000, 4789))
    packet = wire.ipv4(data, wire.UDP, addresses=("10.9.0.1", "192.0.2.9"))
    done = run(as_frames(RAW_MACS + tags(*(0x8100,) * n) + b"\x08\0" + packet))
    assert names(read(done.frames[0].data)) in (("vlan",) * n, ())


def test_a_cut_payload_keeps_all_headers() -> None:
    frame = TUNNELS["vxlan"].frame
    (cut,) = run(as_frames(frame), payload=1).frames
    (whole,) = run(as_frames(frame)).frames
    assert cut.wire == whole.wire == len(whole.data)
    assert len(cut.data) == len(whole.data) - len(b"tcp4")


def test_priorities_stay_and_the_rest_is_a_class() -> None:
    tag, label = 0xB007, 0x00064 << 12 | 5 << 9 | 1 << 8 | 33
    data = RAW_MACS + b"\x81\0" + tag.to_bytes(2) + b"\x88\x47" + label.to_bytes(4) + T4
    for more, ttl in (({}, 64), ({"keep_ttl": True}, 33)):
        (frame,) = run(as_frames(data), **more).frames
        assert frame.data[14] >> 4 == 0xB
        entry = int.from_bytes(frame.data[18:22])
        assert (entry >> 8 & 0xF, entry & 0xFF) == (0xB, ttl)
