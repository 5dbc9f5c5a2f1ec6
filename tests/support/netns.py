# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Network namespaces for live tests; each disappears with the last descriptor of it.

All traffic stays between the two ends of a virtual cable inside one. Senders are bounded in count.
"""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Self

import pytest

CLONE_NEWNET = 0x40000000
ETH_P_ALL, SOL_PACKET, PACKET_AUXDATA = 3, 263, 8
SO_TIMESTAMPNS = 35
TP_STATUS_VLAN_VALID, TP_STATUS_VLAN_TPID_VALID = 0x10, 0x40
PROC_NET_DEV = Path("/proc/thread-self/net/dev")
COLUMNS = {"rx_packets": 1, "rx_drop": 3, "rx_fifo": 4, "tx_packets": 9}

libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


@contextmanager
def backlog_of_its_own() -> Iterator[None]:
    """Keeps out another test that fills the backlog, or that cannot stand a full one.

    The backlog of a processor is one for all namespaces: while it is full, frames of any cable are
    lost. A run also takes frames that it has read for lost ones if the system did not handle them.
    """
    with (Path(gettempdir()) / "zanon-net-backlog.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class Namespace:
    """A network namespace of its own. Raises OSError where the system does not permit one."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            _checked(libc.unshare(CLONE_NEWNET))
            try:
                self._fd = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
            finally:
                _checked(libc.setns(outside, CLONE_NEWNET))
        finally:
            os.close(outside)
        self._stack.callback(os.close, self._fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    @property
    def path(self) -> str:
        """A name of it for ip(8)."""
        return f"/proc/{os.getpid()}/fd/{self._fd}"

    @contextmanager
    def inside(self) -> Iterator[None]:
        """This thread, its sockets and the processes it starts are in the namespace."""
        outside = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        try:
            _checked(libc.setns(self._fd, CLONE_NEWNET))
            try:
                yield
            finally:
                _checked(libc.setns(outside, CLONE_NEWNET))
        finally:
            os.close(outside)

    def ip(self, command: str) -> None:
        """Runs ip(8) with a command such as "link set a up"."""
        with self.inside():
            subprocess.run(["ip", *command.split()], check=True, capture_output=True)

    def cable(self, name: str, far: str) -> None:
        """Makes a cable: frames sent into `far` arrive at `name`; the system itself sends none."""
        with self.inside():
            for where in ("all", "default"):
                Path(f"/proc/sys/net/ipv6/conf/{where}/disable_ipv6").write_text("1")
        self.ip(f"link add name {name} type veth peer name {far}")
        for end in (name, far):
            self.ip(f"link set dev {end} mtu 9000 arp off up")

    def counter(self, interface: str, column: str) -> int:
        """A counter of an interface; see COLUMNS."""
        with self.inside():
            lines = PROC_NET_DEV.read_text().splitlines()
        (found,) = (line for line in lines if line.strip().startswith(interface + ":"))
        return int(found.rpartition(":")[2].split()[COLUMNS[column]])

    def sender(self, interface: str) -> socket.socket:
        """A socket that sends whole frames into an interface."""
        with self.inside():
            raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        raw.bind((interface, 0))
        self._stack.callback(raw.close)
        return raw

    def send(self, interface: str, frames: Sequence[bytes]) -> None:
        """Sends the frames as fast as it goes."""
        raw = self.sender(interface)
        for frame in frames:
            raw.send(frame)

    def recorder(self, interface: str) -> "Recorder":
        """Records the frames of an interface from now on."""
        with self.inside():
            return Recorder(interface, self._stack)


def permitted_namespace() -> Namespace:
    """Returns a new namespace. Skips the test if the system permits none, but fails it in CI."""
    if sys.platform != "linux":
        pytest.skip("network namespaces are Linux's")
    try:
        return Namespace()
    except OSError as error:
        reason = f"network namespaces are not permitted here: {error.strerror}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


class Recorder:
    """A second reader of an interface, made of nothing but a socket, without libpcap.

    While it is open the system stamps each frame once, on arrival, so that every reader gets the
    same time.
    """

    def __init__(self, interface: str, stack: ExitStack) -> None:
        self._raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        stack.callback(self._raw.close)
        self._raw.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)  # SO_RCVBUFFORCE
        self._raw.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._raw.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        self._raw.bind((interface, ETH_P_ALL))
        self._raw.setblocking(False)

    def pcap(self) -> bytes:
        """The frames so far, as a capture with nanoseconds."""
        out = [struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 18, 1)]
        while True:
            try:
                data, ancillary, _flags, _address = self._raw.recvmsg(1 << 17, 256)
            except BlockingIOError:
                return b"".join(out)
            stamp, tag = (0, 0), b""
            for level, kind, value in ancillary:
                if (level, kind) == (socket.SOL_SOCKET, SO_TIMESTAMPNS):
                    stamp = struct.unpack("qq", value[:16])
                elif (level, kind) == (SOL_PACKET, PACKET_AUXDATA):
                    tag = _tag(value)
            frame = data[:12] + tag + data[12:]
            out.append(struct.pack("<IIII", *stamp, len(frame), len(frame)) + frame)


class Receiver:
    """What arrives at an interface."""

    def __init__(self, net: Namespace, interface: str) -> None:
        with net.inside():
            self._raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self._raw.setsockopt(socket.SOL_SOCKET, 33, 256 << 20)  # SO_RCVBUFFORCE
        self._raw.bind((interface, 3))
        self._raw.setblocking(False)

    def frames(self) -> list[bytes]:
        """The frames so far."""
        found = []
        while True:
            try:
                found.append(self._raw.recv(1 << 17))
            except BlockingIOError:
                return found

    def close(self) -> None:
        self._raw.close()


def _tag(auxdata: bytes) -> bytes:
    """The VLAN tag that the system took out of a frame."""
    status, _len, _snaplen, _mac, _net, tci, tpid = struct.unpack("IIIHHHH", auxdata[:20])
    if not status & TP_STATUS_VLAN_VALID:
        return b""
    return struct.pack(">HH", tpid if status & TP_STATUS_VLAN_TPID_VALID else 0x8100, tci)
