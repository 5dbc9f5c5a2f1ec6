# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A signal ends the reading of a stream that is silent, though it does not end the wait itself.

So it is with one that comes in the moment before the wait, and, which can be had when it is wanted,
with one that another thread gets: Python runs its handler where the first thread comes back.
"""

import os
import signal
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import zstandard
from support.capture_bytes import pcap_header, pcap_record
from support.packets import SECOND, START, merged, user, visit

import zanon_net
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.rows.filtering import filter_rows
from zanon_net.system.signals import Interruption

HANG_S = 60.0  # then the stream ends, and with it the test
FRAME = bytes.fromhex("450000280000400040060000c0a80001c0a80002") + bytes(20)
RECORD = pcap_record("<", 5, 0, bytes(12) + b"\x08\x00" + FRAME)


class Silent:
    """A named pipe with a writer, a thread that writes `start` and then does nothing.

    start: None: nobody opens the pipe to write.
    waits: until `begun` is called; else half a second.
    """

    def __init__(self, path: Path, start: bytes | None, *, waits: bool = False) -> None:
        os.mkfifo(path)
        self.path = path
        self._start = start
        self._ended, self._begun = threading.Event(), threading.Event()
        if not waits:
            self._begun.set()
        self.gave_up = False

    def begun(self, *_told: object) -> None:
        """What was written is being read."""
        self._begun.set()

    def end(self) -> None:
        """The writer closes the pipe."""
        self._ended.set()

    @contextmanager
    def calling(self, call: Callable[[], None]) -> Iterator[None]:
        """While entered, the writer is there, and calls that when somebody waits for more."""
        writer = threading.Thread(target=self._write, args=(call,))
        writer.start()
        try:
            yield
        finally:
            self.end()
            self.begun()
            reader = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)  # where nobody else came
            writer.join()
            os.close(reader)

    def signalled(self, number: signal.Signals) -> AbstractContextManager[None]:
        """While entered, the signal comes, to the writer, when somebody waits for more."""
        return self.calling(lambda: signal.pthread_kill(threading.get_ident(), number))

    def _write(self, call: Callable[[], None]) -> None:
        if self._start is None:
            self._call(call)
            if self.gave_up:
                self.path.write_bytes(b"")
            return
        with self.path.open("wb", buffering=0) as pipe:
            pipe.write(self._start)
            self._begun.wait(HANG_S)
            self._call(call)

    def _call(self, call: Callable[[], None]) -> None:
        self._ended.wait(0.5)
        call()
        self.gave_up = not self._ended.wait(HANG_S)


@pytest.mark.parametrize("packets", [0, 3])
def test_a_run_ends(tmp_path: Path, packets: int) -> None:
    pipe = Silent(tmp_path / "pipe", pcap_header() + packets * RECORD, waits=packets != 0)
    with Interruption() as interruption, pipe.signalled(signal.SIGTERM):
        report = zanon_net.run(
            pipe.path, out=tmp_path / "out", interruption=interruption, started=pipe.begun
        )
    assert report.interrupted
    assert report.manifest["counters"]["read"]["frames"] == packets
    assert not pipe.gave_up


def visits(names: int) -> bytes:
    """A capture of so many whole connections, each with a name of its own."""
    talks = (visit(user(n), b"s%d.example" % n, START + n * SECOND) for n in range(names))
    return pcap_header() + b"".join(
        pcap_record("<", frame.t_ns // SECOND, frame.t_ns % SECOND // 1000, frame.data)
        for frame in merged(talks)
    )


def await_all(conditions: Callable[[], bool]) -> None:
    until = time.monotonic() + HANG_S
    while not conditions() and time.monotonic() < until:
        time.sleep(0.02)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("packed", ["", "gzip", "zstd"])
def test_records_and_statuses_come_while_a_pipe_is_silent(
    tmp_path: Path, workers: int, packed: str
) -> None:
    """Records that were written can be read after --flush, without a further packet."""
    start = visits(3)
    if packed == "gzip":
        gzip = zlib.compressobj(wbits=31)
        start = gzip.compress(start) + gzip.flush(zlib.Z_SYNC_FLUSH)
    if packed == "zstd":
        zstd = zstandard.ZstdCompressor().compressobj()
        start = zstd.compress(start) + zstd.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
    pipe = Silent(tmp_path / "pipe", start, waits=True)
    statuses: list[int] = []
    lines: dict[str, int] = {}

    def see() -> bool:
        for path in (tmp_path / "out").glob("*.partial"):
            if "manifest" not in path.name:  # which is renamed as soon as it is written
                lines[path.name] = path.read_bytes().count(b"\n")
        return sorted(lines.values()) == [3, 3] and len(statuses) > 3

    def look() -> None:
        await_all(see)
        pipe.end()

    with Interruption() as interruption, pipe.calling(look):
        zanon_net.run(
            pipe.path,
            out=tmp_path / "out",
            interruption=interruption,
            started=pipe.begun,
            on_status=lambda status: statuses.append(status.packets),
            format="jsonl,observations",
            internal="10.0.0.0/8",
            z=1,
            flush="100ms",
            status="100ms",
            workers=workers,
        )
    assert sorted(lines.values()) == [3, 3]
    assert len(statuses) > 3
    assert not pipe.gave_up


@pytest.mark.parametrize(
    "start",
    [None, b"", pcap_header()[:10], pcap_header()],
    ids=["nobody", "nothing", "part", "header"],
)
def test_opening_ends(tmp_path: Path, start: bytes | None) -> None:
    """Of several sources the first packet is waited for, which tells their order."""
    pipe, other = Silent(tmp_path / "pipe", start), tmp_path / "other.pcap"
    other.write_bytes(pcap_header() + RECORD)
    with (
        Interruption() as interruption,
        pipe.signalled(signal.SIGTERM),
        pytest.raises(KeyboardInterrupt),
    ):
        zanon_net.run([pipe.path, other], out=tmp_path / "out", interruption=interruption)
    assert not pipe.gave_up


def test_a_hangup_does_not_end_the_opening(tmp_path: Path) -> None:
    """Nor is it an error: there is nothing to rotate yet."""
    pipe, other = Silent(tmp_path / "pipe", pcap_header()), tmp_path / "other.pcap"
    other.write_bytes(pcap_header() + RECORD)

    def hang_up() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGHUP)
        time.sleep(0.5)
        pipe.end()

    with Interruption(rotates=True) as interruption, pipe.calling(hang_up):
        report = zanon_net.run([pipe.path, other], out=tmp_path / "out", interruption=interruption)
    assert report.manifest["counters"]["read"]["frames"] == 1
    assert not report.interrupted


def test_filter_ends(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pipe = Silent(tmp_path / "pipe", b"time,user,attribute\n1,ann,tea\n")
    config = FilterConfig(time_unit="s", z=1, no_user=True)
    with Interruption() as interruption, pipe.signalled(signal.SIGTERM):
        report = filter_rows([pipe.path], config, interruption=interruption)
    assert report.interrupted
    assert capfd.readouterr().out == "time,attribute\n1,tea\n"
    assert not pipe.gave_up


def test_filter_ends_that_waits_for_a_writer(tmp_path: Path) -> None:
    pipe = Silent(tmp_path / "pipe", None)
    config = FilterConfig(time_unit="s", z=1)
    with (
        Interruption() as interruption,
        pipe.signalled(signal.SIGTERM),
        pytest.raises(KeyboardInterrupt),
    ):
        filter_rows([pipe.path], config, interruption=interruption)
    assert not pipe.gave_up
