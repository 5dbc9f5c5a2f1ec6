# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A Unix socket that programs write rows or Frame Streams to, such as the dnstap of a resolver.

Source of the handshake: https://farsightsec.github.io/fstrm/
"""

import os
import socket
import stat
import struct
from contextlib import suppress
from pathlib import Path

from zanon_net._record import dataclass
from zanon_net.errors import FormatError, ZanonError
from zanon_net.rows.inputs import READ_BYTES, Input
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import read_stream, wait_for_bytes

PREFIX = "unix:"
CONTENT = b"protobuf:dnstap.Dnstap"
ACCEPT, STOP, READY, FINISH = 1, 3, 4, 5
CONTROL_BYTES_MAX = 512


def _control(kind: int, *contents: bytes) -> bytes:
    """Returns a control frame of Frame Streams."""
    fields = b"".join(struct.pack("!II", 1, len(content)) + content for content in contents)
    return struct.pack("!III", 0, 4 + len(fields), kind) + fields


@dataclass(slots=True)
class SocketInput(Input):
    """A socket that one program after the other writes to.

    path: of the socket, which is removed at the end.
    """

    path: Path = Path()
    listener: socket.socket | None = None
    connection: socket.socket | None = None
    tail: bytes = b""

    @classmethod
    def listening(cls, path: Path) -> "SocketInput":
        """Makes the socket. Raises ZanonError if it cannot be made, or another program has it."""
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _remove_unused(path)
            listener.bind(os.fspath(path))
            listener.listen()
        except OSError as error:
            listener.close()
            problem = error.strerror or str(error)
            raise ZanonError(f"{path}: the socket cannot be made: {problem}") from error
        return cls(path.name, None, path=path, listener=listener)

    def read(self, interruption: Interruption) -> bytes:
        """Returns bytes, none at the end of a connection. Raises as Input.read."""
        with interruption.reading():
            try:
                if self.connection is None:
                    data = self._accept()
                else:
                    data = read_stream(self.connection.fileno(), READ_BYTES)
            except OSError as error:
                raise ZanonError(f"cannot read {self.name}: {error.strerror}") from error
        self.bytes_read += len(data)
        self._answer_stop(data)
        return data

    def renew(self) -> bool:
        """Ends the connection, after which the next program is awaited."""
        self._end_connection()
        return True

    def close(self) -> None:
        """Closes and removes the socket."""
        self._end_connection()
        if self.listener is not None:
            self.listener.close()
            with suppress(OSError):
                self.path.unlink()

    def _open(self) -> None:
        """The socket is open already."""

    def _readable(self) -> int:
        waiting = self.connection or self.listener
        assert waiting is not None
        return waiting.fileno()

    def _end_connection(self) -> None:
        if self.connection is not None:
            self.connection.close()
        self.connection, self.tail = None, b""

    def _accept(self) -> bytes:
        """Waits for a program and shakes hands with it; returns the first bytes of its data."""
        assert self.listener is not None
        wait_for_bytes(self.listener.fileno())
        self.connection, _address = self.listener.accept()
        start = self._exactly(4)
        if start != bytes(4):
            return start
        head = start + self._exactly(8)
        size, kind = struct.unpack("!II", head[4:12] if len(head) == 12 else bytes(8))
        if not 4 <= size <= CONTROL_BYTES_MAX:
            return head
        head += self._exactly(size - 4)
        if kind != READY:
            return head
        if CONTENT not in head:
            raise FormatError(f"{self.name}: the program offers Frame Streams that are no dnstap")
        self.connection.sendall(_control(ACCEPT, CONTENT))
        return read_stream(self.connection.fileno(), READ_BYTES)

    def _exactly(self, size: int) -> bytes:
        """Reads `size` bytes, or fewer at the end of the connection."""
        data = b""
        assert self.connection is not None
        while len(data) < size and (
            more := read_stream(self.connection.fileno(), size - len(data))
        ):
            data += more
        return data

    def _answer_stop(self, data: bytes) -> None:
        """Answers the last control frame of a program that waits for the answer."""
        self.tail = (self.tail + data[-12:])[-12:]
        if self.tail == _control(STOP) and self.connection is not None:
            with suppress(OSError):  # a program that does not wait
                self.connection.sendall(_control(FINISH))


def _remove_unused(path: Path) -> None:
    """Removes a socket that no program listens on, which an earlier run left."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(os.fspath(path))
            except ConnectionRefusedError:
                path.unlink()
