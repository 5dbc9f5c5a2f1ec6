# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""bench/address_closure.py, which reads many packets at once, finds what is found one by one."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from oracle.packet_addresses import Address, closure, held
from scenario import packet_canary
from support.packet_output import packets
from support.packet_run import write_pcap
from support.paths import ROOT

import zanon_net

pytestmark = pytest.mark.source


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(ROOT / "bench"), *sys.path])
    import address_closure

    return address_closure


@pytest.mark.family(1)
@pytest.mark.parametrize("z", [3, 1])
def test_the_same_addresses(fast: ModuleType, tmp_path: Path, demo_pcap: Path, z: int) -> None:
    canary = write_pcap(tmp_path / "canary.pcap", packet_canary.frames(), unit_ns=1000)
    out = tmp_path / "out.pcap"
    zanon_net.packets(
        [demo_pcap, canary], out, z=z, exact=True, evidence="any", encapsulation="keep"
    )
    frames = [frame.data for frame in packets(out.read_bytes())]
    peers: dict[Address, set[Address]] = {}
    for frame in frames:
        source, target = (one.address for one in list(held(frame))[:2])
        peers.setdefault(source, set()).add(target)
        peers.setdefault(target, set()).add(source)
    assert fast.peers_in(out) == peers
    for released in (set(), {*list(peers)[::2]}):
        found, number = fast.closure_in(out, released)
        expected = closure(frames, released)
        assert number == len(frames)
        assert found.places == expected.places
        assert {one for _n, one in found.others} == {one for _n, one in expected.others}
        assert all(one in held(frames[n]) for n, one in found.others)
    assert {place.partition(":")[0] for place in found.places} >= {"ip", "dns", "outer"}
