# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Frames out of an interface: each arrives as it was, or is counted."""

import errno
import fcntl
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from support import wire
from support.netns import Namespace, Receiver

from zanon_net import _core
from zanon_net.errors import CaptureError, ConfigError, OutputError
from zanon_net.output.sink import Parts, Sent
from zanon_net.output.wire import InterfaceSink

scapy = pytest.importorskip("scapy.all")

MTU = 1500
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
FIN, SYN, PSH, ACK, ECE, CWR = 0x01, 0x02, 0x08, 0x10, 0x40, 0x80
DONT_FRAGMENT = 0x4000
QUEUE = 16
NOTHING = {"sent": 0, "bytes": 0, "full": 0, "oversize": 0, "error": 0}


def records(frames: Sequence[bytes], wire_lengths: Sequence[int] | None = None) -> bytes:
    """The records of a capture file."""
    lengths = wire_lengths or [len(frame) for frame in frames]
    return b"".join(
        struct.pack("=IIII", 1_700_000_000, n, len(frame), length) + frame
        for n, (frame, length) in enumerate(zip(frames, lengths, strict=True))
    )


def numbered(n: int, sizes: Sequence[int] = (60,)) -> list[bytes]:
    """n frames that differ, of these sizes in turn."""
    return [
        wire.ethernet(wire.ipv4(wire.udp(i.to_bytes(4, "big") + bytes(size - 46)), wire.UDP))
        for i, size in ((i, sizes[i % len(sizes)]) for i in range(n))
    ]


def segment(
    payload: bytes,
    *,
    v6: bool = False,
    flags: int = ACK,
    options: int = 12,
    place: int = DONT_FRAGMENT,
) -> bytes:
    """A frame of a TCP segment, with checksums of nothing."""
    tcp = wire.tcp(payload, flags=flags, options=b"\1" * options)
    if v6:
        return wire.ethernet(wire.ipv6(tcp), wire.ETHERTYPE_IPV6)
    return wire.ethernet(wire.ipv4(tcp, place=place))


def sent(frames: Sequence[bytes], **more: int) -> dict[str, int]:
    return NOTHING | {"sent": len(frames), "bytes": sum(map(len, frames))} | more


@pytest.fixture
def sender(net: Namespace) -> Iterator[_core.PacketSender]:
    """Sends into b; what is sent arrives at a."""
    net.ip("link set dev b mtu 1500")
    with net.inside():
        opened = _core.PacketSender("b")
    yield opened
    opened.close()


@pytest.fixture
def arrived(net: Namespace) -> Iterator[Receiver]:
    receiver = Receiver(net, "a")
    yield receiver
    receiver.close()


class Tap:
    """An interface t whose cable ends here, with a queue of QUEUE frames."""

    def __init__(self, net: Namespace) -> None:
        with net.inside():
            try:
                self._fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
            except OSError as error:
                pytest.skip(f"there are no tap interfaces here: {error.strerror}")
            request = struct.pack("16sH14x", b"t", IFF_TAP | IFF_NO_PI)
            fcntl.ioctl(self._fd, TUNSETIFF, request)
        net.ip(f"link set dev t txqueuelen {QUEUE} mtu {MTU} arp off up")

    def frames(self) -> list[bytes]:
        """The frames that wait there."""
        found = []
        while True:
            try:
                found.append(os.read(self._fd, 1 << 17))
            except BlockingIOError:
                return found

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture
def tap(net: Namespace) -> Iterator[Tap]:
    made = Tap(net)
    yield made
    made.close()


# ---- what is sent -------------------------------------------------------------------------------


def test_frames_arrive_as_they_were(sender: _core.PacketSender, arrived: Receiver) -> None:
    """In their order, in calls of any number of them."""
    frames = numbered(5000, (60, 1514, 61, 590, 60, 1513))
    at = 0
    for n in (0, 1, 63, 64, 65, 1000, 5000):
        sender.send(records(frames[at : at + n]))
        at += n
    assert arrived.frames() == frames
    assert sender.counts == sent(frames)


def test_memory_of_an_engine_is_sent_in_place(
    sender: _core.PacketSender, arrived: Receiver
) -> None:
    frames = numbered(100)
    sender.send(memoryview(b"x" * 24 + records(frames))[24:])
    assert arrived.frames() == frames


def test_counts_stay_when_it_is_closed(sender: _core.PacketSender) -> None:
    frames = numbered(10)
    sender.send(records(frames))
    sender.close()
    sender.close()
    assert sender.counts == sent(frames)
    with pytest.raises(ValueError, match="the interface is closed"):
        sender.send(b"")


def test_nothing_is_received_and_the_mode_stays(net: Namespace, sender: _core.PacketSender) -> None:
    """It would fill a buffer that nobody reads, and see what others send."""
    net.send("a", numbered(100))
    sender.send(records(numbered(1)))
    with net.inside():
        shown = subprocess.run(["ip", "-d", "link", "show", "b"], capture_output=True, check=True)
    assert b"promiscuity 0" in shown.stdout
    table = _packet_sockets(net)  # the one that sent into a is there, too
    assert [(row["Proto"], row["Rmem"]) for row in table] == [("0000", "0")] * 2


def _packet_sockets(net: Namespace) -> list[dict[str, str]]:
    with net.inside():
        head, *lines = Path("/proc/thread-self/net/packet").read_text().splitlines()
    return [dict(zip(head.split(), line.split(), strict=True)) for line in lines]


def test_frames_that_are_no_frames_are_counted(
    sender: _core.PacketSender, arrived: Receiver
) -> None:
    """Cut ones, and those without a whole header; the others leave."""
    whole = numbered(3)
    frames = [whole[0], whole[0][:40], whole[1], bytes(13), b"", whole[2]]
    lengths = [60, 60, 60, 13, 0, 60]
    sender.send(records(frames, lengths))
    assert arrived.frames() == whole
    assert sender.counts == sent(whole, error=3)


def test_a_record_that_ends_early_is_not_sent(
    sender: _core.PacketSender, arrived: Receiver
) -> None:
    whole = numbered(2)
    data = records(whole)
    for n in (len(data) - 1, len(data) - 60, len(data) - 75):
        sender.send(data[:n])
    assert arrived.frames() == [whole[0]] * 3


# ---- the queue ----------------------------------------------------------------------------------


def test_what_finds_the_queue_full_is_counted(net: Namespace, tap: Tap) -> None:
    with net.inside():
        opened = _core.PacketSender("t")
    frames = numbered(500)
    opened.send(records(frames))
    first = tap.frames()
    opened.send(records(frames[-3:]))
    again = tap.frames()
    assert QUEUE <= len(first) <= QUEUE + 1
    assert first == frames[: len(first)]
    assert again == frames[-3:]
    assert opened.counts == sent(first + again, full=500 - len(first))
    opened.close()


def test_a_patient_one_waits_for_space(net: Namespace, tap: Tap) -> None:
    """Only while some leave: a queue that stays full does not hold up a run."""
    with net.inside():
        opened = _core.PacketSender("t", patience_ns=200_000_000)
    frames, read = numbered(500), list[bytes]()

    def consume() -> None:
        while len(read) < len(frames):
            time.sleep(0.002)
            read.extend(tap.frames())

    reader = threading.Thread(target=consume)
    reader.start()
    opened.send(records(frames))
    reader.join(timeout=10)
    assert read == frames
    assert opened.counts == sent(frames)
    before = time.monotonic()
    opened.send(records(frames))
    assert 0.2 <= time.monotonic() - before < 5
    assert opened.counts["full"] == 500 - len(tap.frames())
    opened.close()


def test_without_a_carrier_nothing_leaves(net: Namespace, sender: _core.PacketSender) -> None:
    net.ip("link set dev a down")
    sender.send(records(numbered(10)))
    assert sender.counts == NOTHING | {"full": 10}
    net.ip("link set dev a up")
    sender.send(records(numbered(10)))
    assert sender.counts == sent(numbered(10), full=10)


# ---- the MTU ------------------------------------------------------------------------------------


def test_a_change_of_the_mtu_is_seen(
    net: Namespace, sender: _core.PacketSender, arrived: Receiver
) -> None:
    (jumbo,), (full,), (longer,) = (numbered(1, (size,)) for size in (8000, 1514, 1515))
    sender.send(records([full, jumbo, longer]))
    net.ip("link set dev b mtu 9000")
    sender.send(records([jumbo]))
    assert arrived.frames() == [full, jumbo]
    assert sender.counts == sent([full, jumbo], oversize=2)


def test_a_tag_is_no_part_of_the_mtu(sender: _core.PacketSender, arrived: Receiver) -> None:
    """The system takes tags out of what arrives; a frame of 1518 bytes left."""
    (full,) = numbered(1, (1514,))
    tagged = full[:12] + b"\x81\x00\x00\x64" + full[12:]
    sender.send(records([tagged]))
    assert arrived.frames() == [full]
    assert sender.counts == sent([tagged])


def test_a_small_mtu_has_few_segments(
    net: Namespace, sender: _core.PacketSender, arrived: Receiver
) -> None:
    """A frame of more segments than one system call takes does not leave."""
    net.ip("link set dev b mtu 576")
    most = 64 * (576 - 20 - 20 - 12)
    sender.send(records([segment(bytes(most + 1)), segment(bytes(most))]))
    assert len(arrived.frames()) == 64
    assert sender.counts == sent([segment(bytes(most))], oversize=1)


def has_right_checksums(packet: Any) -> bool:
    """Whether scapy, which computes them anew, comes to the same bytes."""
    again = packet.copy()
    for layer in again.layers():
        if "chksum" in again[layer].fields:
            del again[layer].chksum
    return bytes(again) == bytes(packet)


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("options", [0, 12, 40])
@pytest.mark.parametrize("n", [1461, 2896, 2897, 10_001, 65_000])
def test_long_segments_leave_as_several(
    sender: _core.PacketSender, arrived: Receiver, *, v6: bool, options: int, n: int
) -> None:
    """The same bytes of the stream in packets of the MTU, between others."""
    before, after = numbered(2)
    payload = os.urandom(n)
    frame = segment(payload, v6=v6, options=options, flags=ACK | PSH | FIN | ECE | CWR)
    sender.send(records([before, frame, after]))
    first, *parts, last = arrived.frames()
    most = MTU - (40 if v6 else 20) - 20 - options
    assert (first, last) == (before, after)
    assert [len(part) for part in parts[:-1]] == [14 + MTU] * ((n - 1) // most)
    stream, original = b"", scapy.Ether(frame)
    for number, part in enumerate(parts):
        packet = scapy.Ether(part)
        segment_of = packet[scapy.TCP]
        assert has_right_checksums(packet)
        assert segment_of.seq == original[scapy.TCP].seq + len(stream)
        is_first, is_last = number == 0, number == len(parts) - 1
        assert segment_of.flags == (
            ACK | ECE | (CWR if is_first else 0) | (PSH | FIN if is_last else 0)
        )
        stream += bytes(segment_of.payload)
        for field in ("seq", "flags", "chksum"):
            setattr(segment_of, field, getattr(original[scapy.TCP], field))
        assert bytes(segment_of)[: 20 + options] == bytes(original[scapy.TCP])[: 20 + options]
    assert stream == payload
    assert sender.counts == sent([before, frame, after])


@pytest.mark.parametrize("place", [0, DONT_FRAGMENT])
def test_segments_that_may_be_fragmented_have_ids(
    sender: _core.PacketSender, arrived: Receiver, place: int
) -> None:
    sender.send(records([segment(bytes(4000), place=place)]))
    ids = [scapy.Ether(part).id for part in arrived.frames()]
    assert ids == ([7, 7, 7] if place else [7, 8, 9])


def test_a_long_segment_of_which_a_part_finds_the_queue_full(net: Namespace, tap: Tap) -> None:
    """It counts once, whatever left of it; the next frame is another matter."""
    with net.inside():
        opened = _core.PacketSender("t")
    long, (short,) = segment(bytes(40_000)), numbered(1)
    opened.send(records([long, short]))
    assert QUEUE <= len(tap.frames()) <= QUEUE + 1
    assert opened.counts == NOTHING | {"full": 2}
    opened.send(records([short, long]))
    opened.close()
    assert opened.counts == sent([short], full=3)


def cut(frame: bytes, at: int, value: int) -> bytes:
    return frame[:at] + bytes([value]) + frame[at + 1 :]


UNCUT = {
    "a datagram": numbered(1, (4000,))[0],
    "a first fragment": segment(bytes(4000), place=0x2000),
    "a later fragment": segment(bytes(4000), place=1),
    "a SYN": segment(bytes(4000), flags=SYN),
    "bytes behind the packet": segment(bytes(4000)) + bytes(4),
    "a packet that ends later": segment(bytes(4000))[:-4],
    "no IP": cut(segment(bytes(4000)), 12, 0x88),
    "version 5": cut(segment(bytes(4000)), 14, 0x55),
    "no payload": segment(b"", options=0) + bytes(4000),
    "a short IP header": cut(segment(bytes(4000)), 14, 0x44),
    "a short TCP header": cut(segment(bytes(4000)), 14 + 20 + 12, 0x40),
    "IPv6 options": wire.ethernet(
        wire.ipv6(wire.ipv6_option_header(wire.TCP) + wire.tcp(bytes(4000)), 0),
        wire.ETHERTYPE_IPV6,
    ),
    "IPv6 of another length": cut(segment(bytes(4000), v6=True), 19, 0),
}


@pytest.mark.parametrize("frame", UNCUT.values(), ids=UNCUT)
def test_only_whole_segments_are_cut(
    sender: _core.PacketSender, arrived: Receiver, frame: bytes
) -> None:
    sender.send(records([frame]))
    assert sender.counts == NOTHING | {"oversize": 1}
    assert arrived.frames() == []


# ---- the interface ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("link set dev b down", "interface b went down: no packets can be sent there"),
        ("link delete dev b", "interface b is gone: no packets can be sent there"),
    ],
)
def test_an_interface_that_ends(
    net: Namespace, sender: _core.PacketSender, change: str, problem: str
) -> None:
    """What was to be sent then is counted; later calls say the same."""
    frames = numbered(200)
    sender.send(records(frames))
    net.ip(change)
    for turn in (1, 2):
        with pytest.raises(CaptureError, match=problem) as caught:
            sender.send(records(frames))
        assert caught.value.errno in (errno.ENETDOWN, errno.ENXIO)
        assert sender.counts == sent(frames, error=200 * turn)


def test_an_interface_that_comes_up_again(
    net: Namespace, sender: _core.PacketSender, arrived: Receiver
) -> None:
    net.ip("link set dev b down")
    net.ip("link set dev b up")
    sender.send(records(numbered(10)))
    assert arrived.frames() == numbered(10)


def test_it_ends_while_it_sends(net: Namespace, sender: _core.PacketSender) -> None:
    """Every frame is counted, whenever it happens."""
    frames, offered, problems = numbered(2000), 0, list[str]()
    data = records(frames)
    later = threading.Timer(0.1, net.ip, ["link delete dev b"])
    later.start()
    until = time.monotonic() + 10
    while not problems and time.monotonic() < until:
        offered += len(frames)
        try:
            sender.send(data)
        except CaptureError as error:
            problems.append(str(error))
    later.join()
    assert len(problems) == 1
    counts = sender.counts
    assert counts["sent"] + counts["full"] + counts["oversize"] + counts["error"] == offered
    assert counts["sent"] > 0
    assert counts["error"] > 0


@pytest.mark.parametrize(
    ("name", "kind", "problem"),
    [
        ("nowhere", CaptureError, "there is no interface nowhere"),
        ("", CaptureError, "there is no interface "),
        ("x" * 40, CaptureError, "there is no interface x"),
        ("lo", ConfigError, "interface lo is not Ethernet: packets cannot be sent there"),
        ("e", CaptureError, "interface e is down; bring it up: ip link set dev e up"),
    ],
)
def test_refused(net: Namespace, name: str, kind: type[Exception], problem: str) -> None:
    net.ip("link add name e type veth peer name f")
    with net.inside(), pytest.raises(kind, match=problem):
        _core.PacketSender(name)
    assert _packet_sockets(net) == []


def test_without_the_capability(net: Namespace) -> None:
    code = "from zanon_net import _core\ntry: _core.PacketSender('b')\n"
    code += "except OSError as e: print(e.errno, e)"
    with net.inside():
        done = subprocess.run(
            ["setpriv", "--bounding-set", "-net_raw", sys.executable, "-c", code],
            capture_output=True,
            check=True,
        )
    assert done.stdout.decode().strip() == (
        "1 interface b cannot be opened: the capability CAP_NET_RAW is missing"
    )


# ---- the sink -----------------------------------------------------------------------------------


def parts_of(frames: Sequence[bytes]) -> Parts:
    """Packets as an engine is drained of them."""
    return [(None, {"packets": (records(frames), len(frames))}, {})]


def test_the_sink(net: Namespace, arrived: Receiver) -> None:
    with net.inside():
        sink = InterfaceSink("b")
        assert sink.warning is None
    frames = numbered(7)
    sink.take(parts_of(frames[:4]), {})
    sink.take([(None, {"jsonl": (b"{}", 1)}, {})], {})
    sink.take(parts_of(frames[4:]), {})
    sink.finish(1)
    sink.publish(b"")
    sink.discard()
    assert arrived.frames() == frames
    assert sink.written == {"packets": 7}
    assert sink.sent == Sent("b", 7, 7 * 60)
    assert sink.sent.warning() is None
    assert sink.files == []


def test_the_sink_of_an_interface_that_ends(net: Namespace) -> None:
    with net.inside():
        sink = InterfaceSink("b")
    net.ip("link delete dev b")
    with pytest.raises(OutputError, match="interface b is gone"):
        sink.take(parts_of(numbered(7)), {})
    assert sink.sent == Sent("b", error=7)
    assert sink.written == {"packets": 7}
    assert sink.sent.warning() == (
        "7 of 7 packets did not leave: 0 through b; dropped 0 as its queue was full, 0 above its"
        " MTU, 7 rejected"
    )
    sink.discard()


def test_an_address_is_told(net: Namespace) -> None:
    """A system with an address there answers what the monitor's side asks."""
    net.ip("address add 192.0.2.1/24 dev b")
    with net.inside():
        sink = InterfaceSink("b")
        warning = sink.warning
        assert warning is not None
        assert "interface b has an IP address" in warning
        assert "192.0.2" not in warning
    sink.discard()
