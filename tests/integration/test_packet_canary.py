# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The canary: no anonymized packet, and nothing else a run leaves, holds what a frame disclosed.

One client sends a frame in each encapsulation and of each protocol. What is searched, and in which
notations, is in scenario/packet_canary.py.
"""

import subprocess
from pathlib import Path

import pytest
from scenario import packet_canary
from scenario.packet_canary import Sample, found_in, unsealed
from support.canary import Leftovers, zanon_net, zanon_net_here
from support.capture_bytes import write_capture
from support.packet_output import packets
from support.packet_run import write_pcap

MOST_FRAMES = 40  # as many at least must leave where nothing is withheld
NETWORKS = "10.0.0.0/8,fc00::/7"
AT_ONE = ("address", "mac", "secret")  # what stays hidden where names are shared by z = 1


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("canary") / "canary.pcapng"
    samples = packet_canary.samples()
    write_capture(path, [one.data for one in samples], [one.link for one in samples])
    return path


def searched(left: Leftovers) -> bytes:
    """All that a run left, what its QUIC packets protect included."""
    outputs = [path for path in left.folder.rglob("out.*") if path.suffix in (".pcap", ".pcapng")]
    inside = [
        unsealed(frame.data[at:])
        for path in outputs
        for frame in packets(path.read_bytes())
        for at in (42, 62)
    ]
    raw = [path.read_bytes() for path in outputs]
    return b"\n".join([left.everything(), *raw, *inside])


def test_every_sample_sings() -> None:
    """A canary that cannot sing is none."""
    assert len(packet_canary.samples()) >= 100
    assert len({one.name for one in packet_canary.samples()}) == len(packet_canary.samples())
    silent = [one.name for one in packet_canary.samples() if not found_in(heard(one))]
    assert silent == []
    everything = b"\n".join(map(heard, packet_canary.samples()))
    for kind in ("address", "server", "mac", "name", "secret"):
        assert found_in(everything, [kind])
    assert not found_in(bytes(range(256)) * 40)


def heard(one: Sample) -> bytes:
    return one.data + unsealed(one.data[42:])


@pytest.mark.family(15)
@pytest.mark.parametrize("name", ["out.pcap", "out.pcapng"])
@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--payload", "cut"],
        ["--hold", "0"],
        ["--exact"],
        ["--exact", "--payload", "cut", "--hold", "0"],
        ["--exact", "--evidence", "any", "--server-address", "linkable"],
        ["--suppressed", "coarse"],
        ["--suppressed", "coarse", "--hold", "0", "--tcp-timestamps", "offset"],
        ["--suppressed", "coarse", "--evidence", "any", "--payload", "keep-encrypted"],
        ["--z", "1"],
        ["--z", "1", "--evidence", "any"],
        ["--z", "1", "--evidence", "any", "--mac", "pseudonym", "--hold", "0"],
        ["--encapsulation", "keep"],
        ["--exact", "--encapsulation", "keep", "--ttl", "keep"],
        ["--z", "1", "--evidence", "any", "--encapsulation", "keep", "--mac", "pseudonym"],
    ],
    ids=" ".join,
)
def test_nothing_escapes(
    more: list[str], name: str, capture: Path, key_file: str, tmp_path: Path
) -> None:
    given = ["--internal", NETWORKS, "--key-file", key_file, "-v", *more]
    left = zanon_net_here(tmp_path, "packets", capture, name, *given)
    assert left.code == 0, left.stderr
    kinds = AT_ONE if "1" in more else ()
    assert found_in(searched(left), kinds) == set()
    frames = packets((tmp_path / name).read_bytes())
    if "--exact" in more:
        assert len(frames) >= MOST_FRAMES
    elif "--z" not in more:  # only flows that have no name
        assert frames


def test_nothing_escapes_without_internal_networks(
    capture: Path, key_file: str, tmp_path: Path
) -> None:
    """By default users are in the private ranges, and in a tunnel the innermost address is."""
    left = zanon_net(tmp_path, "packets", capture, "out.pcap", "--exact", "--key-file", key_file)
    assert left.code == 0, left.stderr
    assert found_in(searched(left)) == set()
    assert len(packets((tmp_path / "out.pcap").read_bytes())) >= MOST_FRAMES


def test_nothing_escapes_where_it_is_refused(capture: Path, tmp_path: Path) -> None:
    """Messages of runs that fail say nothing of the data."""
    (tmp_path / "there.pcap").write_bytes(b"")
    cut = tmp_path / "cut.pcapng"
    cut.write_bytes(capture.read_bytes()[:4001])
    for arguments in (
        (capture, "there.pcap"),
        (capture, "out.pcap", "--hold", "20s"),
        (cut, "cut-out.pcap", "--exact"),
    ):
        left = zanon_net(tmp_path, "packets", *arguments)
        assert found_in(left.stdout + left.stderr) == set()


def test_nothing_escapes_to_a_pipe(capture: Path, key_file: str, tmp_path: Path) -> None:
    left = zanon_net(
        *(tmp_path, "packets", "-", "-", "--exact", "--internal", NETWORKS),
        *("--key-file", key_file),
        stdin=capture.read_bytes(),
    )
    assert left.code == 0, left.stderr
    assert len(packets(left.stdout)) >= MOST_FRAMES
    assert found_in(left.stdout + left.stderr) == set()


def test_a_peer_lets_much_escape(capture: Path, tmp_path: Path) -> None:
    """The search finds what tcprewrite leaves, so its silence about our output says something."""
    editable, out = tmp_path / "in.pcap", tmp_path / "out.pcap"
    write_pcap(editable, packet_canary.frames())
    command = ["tcprewrite", "--seed=42", f"--infile={editable}", f"--outfile={out}"]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("tcprewrite is not installed (tcpreplay)")
    for kind in ("address", "server", "mac", "name", "secret"):
        assert found_in(out.read_bytes(), [kind])
