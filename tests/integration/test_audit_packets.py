# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The audit of anonymized packets: nothing to find in the output, and each fault that is put in."""

import json
import re
import shutil
import struct
from collections import Counter
from ipaddress import ip_address
from pathlib import Path

import dpkt
import pytest
from support.cli import DEMO, run_main
from support.demo import first_frames
from support.packet_output import packets

from zanon_net.audit.raw.check import hidden_names, read_captures
from zanon_net.audit.raw.exposures import Exposures
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.flows import RESOLVER, SERVER
from zanon_net.audit.raw.packet_files import blocks_of, check_packets
from zanon_net.audit.raw.traces import Secrets

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
Z = 5
FRAMES = 3000
HOST = re.compile(rb"\r\nHost: (\S+)\r\n")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first frames of the demo: tshark reads each output of the tests."""
    return first_frames(tmp_path_factory.mktemp("raw") / "capture.pcap", FRAMES)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory, capture: Path) -> Path:
    path = tmp_path_factory.mktemp("packets") / "out.pcap"
    settings = ("--z", Z, "--internal", "10.0.0.0/8,fd00::/8", "-q")
    assert run_main("packets", capture, path, *settings) == 0
    return path


@pytest.fixture(scope="module")
def manifest(output: Path) -> dict[str, object]:
    loaded: dict[str, object] = json.loads(Path(f"{output}.manifest.json").read_text())
    return loaded


@pytest.fixture(scope="module")
def seen(manifest: dict[str, object], capture: Path) -> Exposures:
    return read_captures(manifest, [capture])


def checked(path: Path, manifest: dict[str, object], seen: Exposures) -> list[Finding]:
    return check_packets(path, manifest, seen, [])[0].violations


def changed(path: Path, source: Path, change: dict[int, bytes]) -> Path:
    """A copy of a capture, in which some frames are others."""
    with source.open("rb") as file, path.open("wb") as out:
        writer = dpkt.pcap.Writer(out, nano=True)
        for number, (time, frame) in enumerate(dpkt.pcap.Reader(file), 1):
            writer.writepkt(change.get(number, frame), time)
    return path


def frames_of(path: Path) -> list[bytes]:
    with path.open("rb") as file:
        return [frame for _time, frame in dpkt.pcap.Reader(file)]


def test_packets_keep_the_promise(
    capture: Path, output: Path, manifest: dict[str, object], seen: Exposures
) -> None:
    """What counts as a claim are the names and servers that are shown, not all packets."""
    result, count = check_packets(output, manifest, seen, [capture])
    assert (result.violations, result.unproven) == ([], [])
    assert 0 < result.claims < count == len(frames_of(output))


def test_a_token_of_many_labels_is_searched_within_bounds() -> None:
    """Who sends such bytes cannot keep the audit busy for hours."""
    secrets = Secrets(set(), {"b.c"}, set())
    assert secrets.hidden("a." * 100_000 + "b.c.a") == "b.c"
    assert secrets.hidden("a." * 100_000 + "c") is None
    assert secrets.secrets_in(b"%" * 1_000_000) == set()
    assert secrets.secrets_in(b"!" * 1_000_000 + b"%62%2ec") == {("hidden", "b.c")}


def test_raw_packets_break_it(capture: Path, manifest: dict[str, object], seen: Exposures) -> None:
    found = Counter(one.check for one in checked(capture, manifest, seen))
    assert set(found) == {"names", "addresses", "hidden"}
    assert found["names"] > 100


def test_a_wrong_checksum_is_found(
    tmp_path: Path, output: Path, manifest: dict[str, object], seen: Exposures
) -> None:
    frames = frames_of(output)
    number = next(n for n, frame in enumerate(frames, 1) if frame[12:14] == b"\x08\x00")
    frame = bytearray(frames[number - 1])
    frame[24] ^= 0xFF
    path = changed(tmp_path / "a.pcap", output, {number: bytes(frame)})
    (finding,) = checked(path, manifest, seen)
    assert (finding.check, finding.row, finding.column) == ("checksums", number, "ip.checksum")


def test_a_rare_server_is_found(
    tmp_path: Path, output: Path, manifest: dict[str, object], seen: Exposures
) -> None:
    """The address takes the place of another in a packet whose checksums are made again."""
    rare = next(
        end
        for flow in seen.flows
        for end, _port in flow.ends
        if len(end) == 4
        and not seen.rules.networks.hold(end)
        and max(seen.peak((space, end)) for space in (SERVER, RESOLVER)) < Z
    )
    frames = frames_of(output)
    number = next(n for n, frame in enumerate(frames, 1) if frame[12:14] == b"\x08\x00")
    packet = dpkt.ethernet.Ethernet(frames[number - 1])
    packet.data.dst = rare
    packet.data.sum = packet.data.data.sum = 0
    path = changed(tmp_path / "a.pcap", output, {number: bytes(packet)})
    found = [one for one in checked(path, manifest, seen) if one.check == "addresses"]
    assert [(one.row, one.column, one.needed) for one in found] == [(number, "ip.dst", Z)]


def test_a_name_in_the_bytes_is_found(
    tmp_path: Path, output: Path, manifest: dict[str, object], seen: Exposures
) -> None:
    """As text and as labels of DNS, where no dissector looks."""
    rare = min(hidden_names(seen, Z))
    labels = b"".join(bytes([len(one)]) + one.encode() for one in rare.split("."))
    frames = frames_of(output)
    for hidden in (rare.encode(), labels):
        frame = frames[0] + b"\0" + hidden + b"\0"
        path = changed(tmp_path / "a.pcap", output, {1: frame})
        found = checked(path, manifest, seen)
        assert [(one.check, one.detail) for one in found] == [("hidden", rare)]


def test_a_mac_address_is_found(
    tmp_path: Path, output: Path, manifest: dict[str, object], seen: Exposures
) -> None:
    frame = frames_of(output)[0]
    path = changed(tmp_path / "a.pcap", output, {1: b"\x00\x1b\x44\x11\x3a\xb7" + frame[6:]})
    found = [(one.check, one.row, one.column) for one in checked(path, manifest, seen)]
    assert found == [("addresses", 1, "eth.dst")]


def test_one_client_that_is_itself_is_found(
    tmp_path: Path, output: Path, manifest: dict[str, object], seen: Exposures
) -> None:
    """The packet keeps the address of its own client, which chance does not explain."""
    clients = {flow.first_ns: flow.ends[flow.client][0] for flow in seen.flows if flow.internal[0]}
    number, frame = next(
        (number, frame)
        for number, frame in enumerate(packets(output.read_bytes()), 1)
        if len(clients.get(frame.t_ns, b"")) == 4 and frame.data[12:14] == b"\x08\x00"
    )
    packet = dpkt.ethernet.Ethernet(frame.data)
    packet.data.src = clients[frame.t_ns]
    packet.data.sum = packet.data.data.sum = 0
    path = changed(tmp_path / "a.pcap", output, {number: bytes(packet)})
    found = [(one.check, one.column) for one in checked(path, manifest, seen)]
    assert found == [("addresses", "internal")]


def test_an_address_in_the_payload_is_found(
    tmp_path: Path, output: Path, manifest: dict[str, object], seen: Exposures
) -> None:
    client = next(flow.ends[flow.client][0] for flow in seen.flows if flow.internal[0])
    frame = frames_of(output)[0] + b"\0seen at " + str(ip_address(client)).encode() + b"\0"
    path = changed(tmp_path / "a.pcap", output, {1: frame})
    found = [(one.check, one.column) for one in checked(path, manifest, seen)]
    assert found == [("addresses", "bytes")]


def test_a_comment_in_a_pcapng_file_is_found(
    tmp_path: Path, capture: Path, manifest: dict[str, object], seen: Exposures
) -> None:
    path = tmp_path / "out.pcapng"
    assert run_main("packets", capture, path, "--z", Z, "-q") == 0
    data = path.read_bytes()
    assert list(blocks_of(path)) == []
    comment = struct.pack("=II", 5, 24) + bytes(12) + struct.pack("=I", 24)  # statistics
    path.write_bytes(data + comment)
    (finding,) = blocks_of(path)
    assert (finding.check, finding.column, finding.measured) == ("format", "blocks", 1)


def test_a_label_in_a_packet_is_found(
    tmp_path: Path, output: Path, manifest: dict[str, object], seen: Exposures
) -> None:
    """Labels of --levels are for logs."""
    frames = frames_of(output)
    number, head = next(
        (n, head) for n, frame in enumerate(frames, 1) if (head := HOST.search(frame)) is not None
    )
    label = b"*.example.org".ljust(len(head[1]))
    frame = frames[number - 1].replace(head[1], label[: len(head[1])])
    path = changed(tmp_path / "a.pcap", output, {number: frame})
    found = [one for one in checked(path, manifest, seen) if one.check == "names"]
    assert [(one.row, one.column, one.measured) for one in found] == [(number, "http.host", 0)]


def test_the_command_tells_kept_from_broken(
    tmp_path: Path, capture: Path, output: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The risks of packets are unknown, so a promise that is kept is not enough for a partner."""
    page, details = tmp_path / "page.html", tmp_path / "details"
    assert run_main("audit", output, "--raw", capture, "--for", "internal", "--html", page) == 0
    assert run_main("audit", output, "--raw", capture, "-q") == 4
    leak = tmp_path / "leak.pcap"
    shutil.copy(capture, leak)
    shutil.copy(f"{output}.manifest.json", f"{leak}.manifest.json")
    capfd.readouterr()
    assert run_main("audit", leak, "--raw", capture, "--details", details) == 3
    said = capfd.readouterr().out
    secrets = {json.loads(line)["detail"] for line in details.read_text().splitlines()}
    assert len(secrets) > 50
    assert not [secret for secret in secrets if secret in said + page.read_text()]
    assert details.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("name", "options", "code", "problem"),
    [
        ("out.pcap", (), 2, "--raw: a capture is checked against"),
        ("out.pcap", ("--raw", DEMO, "--z", 5), 2, "--z: is not for captures"),
        ("alone.pcap", ("--raw", DEMO), 1, "there is no manifest beside it"),
        ("odd.pcap", ("--raw", DEMO), 1, "the manifest is damaged"),
        ("text.pcap", ("--raw", DEMO), 1, "so it is no capture"),
    ],
)
def test_errors_are_one_line(
    tmp_path: Path,
    capture: Path,
    output: Path,
    capfd: pytest.CaptureFixture[str],
    name: str,
    options: tuple[object, ...],
    code: int,
    problem: str,
) -> None:
    manifest = Path(f"{output}.manifest.json").read_text()
    for file, text in (("out", manifest), ("odd", manifest[:99]), ("text", manifest)):
        (tmp_path / f"{file}.pcap.manifest.json").write_text(text)
    (tmp_path / "text.pcap").write_text("canary")
    short = [capture if option == DEMO else option for option in options]
    assert run_main("audit", tmp_path / name, *short) == code
    said = capfd.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert problem in said.err
    assert "canary" not in said.err


def test_a_view_has_its_own_z(tmp_path: Path, capture: Path) -> None:
    """The packets of the run show names of 3 users, which the view may not show."""
    own, strict = tmp_path / "out.pcap", tmp_path / "out.strict.pcap"
    assert run_main("packets", capture, own, "--z", 3, "--view", f"strict:z={Z}", "-q") == 0
    assert run_main("audit", strict, "--raw", capture, "--for", "internal", "-q") == 0
    shutil.copy(own, strict)
    assert run_main("audit", strict, "--raw", capture, "--for", "internal", "-q") == 3
