# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The audit of payload in anonymized packets: each byte that is put in, and no false alarm."""

import json
import random
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import dpkt
import pytest
from support.cli import run_main
from support.demo import first_frames
from support.examples import EVERY_CASE
from support.fragments import framed, packet_of, pieces
from support.packet_output import packets
from support.packet_run import write_pcap
from support.packets import ACK, CLIENT, MS, SERVER, START, SYN, Frame, Tcp, Udp, hello

from zanon_net.audit.raw.packet_files import choice_of
from zanon_net.audit.raw.packet_payload import left_in, payload_of
from zanon_net.audit.raw.payload_forms import of_datagram, of_icmp
from zanon_net.audit.raw.payload_streams import Stream
from zanon_net.audit.raw.shown_packets import read_shown, secrets_in

pytestmark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
SECRET = random.Random(7).randbytes(600)
HELLO = hello(b"www.example.org")
REQUEST = (
    b"GET /private HTTP/1.1\r\nHost: www.example.org\r\nCookie: session=5f1d9ab3c7\r\n"
    b"Accept: text/html\r\n\r\n"
)
RECORD = b"\x17\x03\x03\x02\x00" + SECRET[:512]
SETTINGS = [
    ("--z", 1, "--evidence", "any"),
    ("--z", 2, "--exact"),
    ("--z", 2, "--suppressed", "coarse"),
    ("--z", 1, "--tcp-timestamps", "keep", "--fingerprint", "keep"),
    ("--z", 1, "--payload", "keep-encrypted"),
    ("--z", 1, "--payload", "cut"),
    ("--z", 1, "--encapsulation", "keep", "--timestamps", "ms"),
    ("--z", 1, "--hold", "0"),
    ("--z", 1, "--server-address", "linkable", "--hold", "10s", "--evidence", "any"),
]


def fast_open(client: str, t_ns: int) -> Tcp:
    talk = Tcp(client, t_ns=t_ns).segment(CLIENT, SYN, HELLO).segment(SERVER, SYN | ACK)
    return talk.segment(CLIENT, ACK).say(RECORD, SERVER).close()


def conversations() -> dict[str, list[Frame]]:
    """Frames by protocol. The times of no two frames are equal."""
    step = 1000 * MS
    tls = Tcp("10.7.0.1", t_ns=START).handshake().say(HELLO).say(RECORD, SERVER).close()
    http = Tcp("10.7.0.2", ports=(40000, 80), t_ns=START + step).handshake()
    http.say(REQUEST).say(
        b"HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\n" + SECRET, SERVER
    ).close()
    datagrams = Udp("10.7.0.3", ports=(40000, 9999), t_ns=START + 2 * step)
    datagrams.send(SECRET).send(SECRET[::-1], SERVER)
    parts = Udp("10.7.0.4", ports=(40000, 9999), t_ns=START + 3 * step).send(SECRET)
    fragments = framed(pieces(packet_of(parts.frames[0]), [240]), START + 3 * step, MS)
    lookup = Udp("10.7.0.5", t_ns=START + 5 * step).lookup(b"www.example.org")
    return {
        "tls": tls.frames,
        "http": http.frames,
        "udp": datagrams.frames,
        "fragment": fragments,
        "open": fast_open("10.7.0.6", START + 4 * step).frames,
        "dns": lookup.frames,
    }


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    frames = [frame for talk in conversations().values() for frame in talk]
    path = tmp_path_factory.mktemp("raw") / "capture.pcap"
    return write_pcap(path, sorted(frames, key=lambda frame: frame.t_ns))


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory, capture: Path) -> Path:
    path = tmp_path_factory.mktemp("packets") / "out.pcap"
    assert run_main("packets", capture, path, "--z", 1, "--evidence", "any", "-q") == 0
    return path


def payload(frame: bytes) -> tuple[int, bytes]:
    """Place of the payload in a frame of IPv4, and the payload."""
    protocol, fragment = frame[23], frame[21]
    start = 34 if fragment else 34 + (8 if protocol == 17 else 4 * (frame[46] >> 4))
    return start, frame[start:]


def with_payload(frame: bytes, data: bytes) -> bytes:
    """The frame with another payload and the right checksums."""
    start, old = payload(frame)
    packet = dpkt.ethernet.Ethernet(frame[:start] + data.ljust(len(old), b"\0")[: len(old)])
    packet.data.sum = 0
    if not isinstance(packet.data.data, bytes):
        packet.data.data.sum = 0
    return bytes(packet)


def random_of_hello(raw: bytes, built: bytes) -> bytes:
    return built[:11] + raw[11:43] + built[43:]


def cookie_of_head(raw: bytes, built: bytes) -> bytes:
    line = raw[raw.index(b"Cookie") : raw.index(b"Accept")]
    at = built.index(b"X-Padding")
    return built[:at] + line + built[at + len(line) :]


def all_of_it(raw: bytes, built: bytes) -> bytes:
    return raw


def some_of_it(raw: bytes, built: bytes) -> bytes:
    return built[:200] + raw[200:220] + built[220:]


LEAKS: list[tuple[str, int, Callable[[bytes, bytes], bytes], set[str]]] = [
    ("tls", 5, all_of_it, {"payload"}),
    ("tls", 5, some_of_it, {"payload"}),
    ("tls", 3, random_of_hello, {"payload", "tls.handshake.random"}),
    ("http", 3, cookie_of_head, {"payload"}),
    ("http", 5, some_of_it, {"payload"}),
    ("udp", 0, all_of_it, {"payload"}),
    ("udp", 1, some_of_it, {"payload"}),
    ("fragment", 1, some_of_it, {"payload"}),
    ("open", 0, random_of_hello, {"payload"}),
    ("open", 3, some_of_it, {"payload"}),
]


@pytest.mark.family(4)
@pytest.mark.parametrize(("kind", "number", "leak", "columns"), LEAKS)
def test_bytes_of_the_raw_packet_are_found(
    tmp_path: Path,
    capture: Path,
    output: Path,
    kind: str,
    number: int,
    leak: Callable[[bytes, bytes], bytes],
    columns: set[str],
) -> None:
    raw = conversations()[kind][number]
    left = packets(output.read_bytes())
    row = next(at for at, frame in enumerate(left) if frame.t_ns == raw.t_ns)
    built = left[row].data
    data = with_payload(built, leak(payload(raw.data)[1], payload(built)[1]))
    assert data != built
    left[row] = Frame(raw.t_ns, data, len(data))
    path = write_pcap(tmp_path / "leak.pcap", left)
    shutil.copy(f"{output}.manifest.json", f"{path}.manifest.json")
    found = tmp_path / "found.json"
    options = ("--raw", capture, "--for", "internal", "--json", found, "-q")
    assert run_main("audit", path, *options) == 3
    places = [
        (one["check"], one["row"], one["column"])
        for one in json.loads(found.read_text())["violations"]
        if one["check"] != "checksums"  # of a datagram whose fragments are not whole here
    ]
    assert set(places) == {("hidden", row + 1, name) for name in columns}


def test_the_output_has_no_raw_bytes(capture: Path, output: Path) -> None:
    assert run_main("audit", output, "--raw", capture, "--for", "internal", "-q") == 0
    assert any(frame.data[-100:].strip(b"\0") for frame in packets(output.read_bytes()))


def alarms(capture: Path, out: Path, settings: Sequence[object]) -> list[object] | None:
    """Findings of the payload of a run's output, or None if the run refuses the capture."""
    if run_main("packets", capture, out, "-q", *settings) != 0:
        return None
    own = json.loads(Path(f"{out}.manifest.json").read_text())["configuration"]["packets"]
    found = [one.row for one in payload_of(out, [capture], choice_of(own))]
    secrets = [one for packet in read_shown(out) for one in secrets_in(packet)]
    return [*found, *secrets]


@pytest.mark.family(4)
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_no_false_alarm_in_the_demo(tmp_path: Path, settings: tuple[object, ...]) -> None:
    capture, out = first_frames(tmp_path / "capture.pcap", 3000), tmp_path / "out.pcap"
    assert alarms(capture, out, ("--internal", "10.0.0.0/8,fd00::/8", *settings)) == []
    own = json.loads(Path(f"{out}.manifest.json").read_text())["configuration"]["packets"]
    assert list(left_in(out, choice_of(own))) == []


def test_no_false_alarm_in_a_view(tmp_path: Path) -> None:
    capture, out = first_frames(tmp_path / "capture.pcap", 3000), tmp_path / "out.pcap"
    view = ("--z", 2, "--view", "strict:z=3,timestamps=ms,fingerprint=drop")
    assert alarms(capture, out, view) == []
    strict = tmp_path / "out.strict.pcap"
    assert run_main("audit", strict, "--raw", capture, "--for", "internal", "-q") == 0


def test_no_false_alarm_in_real_captures(corpus: Path, tmp_path: Path) -> None:
    lines = (corpus / "truth.jsonl").read_text("utf-8").splitlines()
    captures = [corpus / name for name in sorted(json.loads(line)["path"] for line in lines)]
    found = []
    for number, capture in enumerate(captures[:: 1 if EVERY_CASE else 80]):
        out = tmp_path / f"{number}.pcap"
        alarm = alarms(capture, out, SETTINGS[number % len(SETTINGS)])
        found += [] if alarm is None else [(capture.name, alarm)]
    assert [one for one in found if one[1]] == []
    assert len(found) > 5


def test_a_hole_in_a_stream_is_no_leak() -> None:
    """Behind a hole, bytes may belong to a message whose start is not in the output."""
    middle = b"\x16\x03\x03\x03\x00\x0b\0\x02\xfc\0\x02\xf9\0\x02\xf6" + SECRET
    stream = Stream(dns=False, kept=False)
    stream.start = stream.place_of(1)
    stream.take(1, 1, 0, middle[:50])
    stream.take(201, 2, 0, middle[200:])
    assert list(stream.unexplained()) == []
    other = Stream(dns=False, kept=False)
    other.start = other.place_of(1)
    other.take(1, 1, 0, SECRET[:50])
    other.take(201, 2, 0, SECRET[200:])
    assert [data for _part, data in other.unexplained()] == [SECRET[:50]]


def test_odd_datagrams_are_read_to_their_end() -> None:
    for size in range(1, 64):
        for data in (SECRET[:size], b"\xc0" + SECRET[:size], b"\x16\xfe\xfd" + SECRET[:size]):
            assert all(start < end for start, end in of_datagram(data, kept=False))
    assert of_datagram(b"\x40" + bytes(30), kept=False) == []
    assert of_datagram(b"\x40" + SECRET, kept=True) == []
    assert of_icmp(b"\x08\0\1\2\3\4\5\6" + bytes(8) + b"ping", 4) == [(16, 20)]
