# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m month.scrapes`: requests of all kinds to the metrics of a run that reads traffic.

No answer, and nothing that the run says, has a name or an address of the traffic; the server
answers to the end, and its memory stays flat. The run reads a pipe, so that no rights are needed.
"""

import argparse
import gzip
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from support.capture_bytes import PCAP_NANOSECONDS, pcap_header, pcap_record
from support.metrics import HURRIED, SERVING, scrape, shapes, until
from support.packets import MINUTE, SECOND, START

from month.broken import Broken, check_equal
from month.checks import Secrets, check_memory
from month.requests import answer, request
from month.traffic import INTERNAL, Traffic, Z

VISITS = 2000  # an hour of packet time
SPAN, SPAN_S = 10 * MINUTE, 0.5  # of packet time, and of the clock
BATCH = 2000  # requests between two looks at the run
UNREAD = 0.01  # share of the clients that do not wait for the answer
WITH_PACKETS = "zanon_key_epoch_start_seconds"  # in all metrics from the first packet on
CHANGING = re.compile(rb"(?m)^(Date: .*|zanon_snapshot_age_seconds .*)$")


class Watched:
    """A run that reads traffic without end, and serves metrics of it."""

    def __init__(self, folder: Path, traffic: Traffic) -> None:
        self.said = folder / "said"
        self._traffic = traffic
        self._is_over = threading.Event()
        command = [*HURRIED, "run", "-", "-v", "--out", str(folder / "out"), "--z", str(Z)]
        command += ["--internal", INTERNAL, "--metrics", "127.0.0.1:0", "--format", "observations"]
        with self.said.open("wb") as stderr:
            self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=stderr)
        self._feeder = threading.Thread(target=self._feed)
        self._feeder.start()
        until(lambda: SERVING.search(self.said.read_text()) is not None)
        found = SERVING.search(self.said.read_text())
        assert found is not None
        self.port = int(found[1])

    def _feed(self) -> None:
        pipe, now_ns = self.process.stdin, START
        assert pipe is not None
        with suppress(BrokenPipeError):
            pipe.write(pcap_header("<", magic=PCAP_NANOSECONDS))
            while not self._is_over.is_set():
                for frame in self._traffic.span(now_ns, SPAN)[0]:
                    seconds, rest = divmod(frame.t_ns, SECOND)
                    pipe.write(pcap_record("<", seconds, rest, frame.data))
                pipe.flush()
                now_ns += SPAN
                self._is_over.wait(SPAN_S)
            pipe.close()

    def resident(self) -> int:
        """Bytes of memory that it has."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def end(self) -> int:
        """Ends the traffic; returns the run's exit code."""
        self._is_over.set()
        self._feeder.join()
        return self.process.wait(60)

    def close(self) -> None:
        self._is_over.set()
        self.process.kill()
        self.process.wait()
        self._feeder.join()


@contextmanager
def watched(traffic: Traffic) -> Iterator[Watched]:
    """A run that is left by no way."""
    with tempfile.TemporaryDirectory() as scratch:
        run = Watched(Path(scratch), traffic)
        try:
            yield run
        finally:
            run.close()


def plain(heard: bytes) -> bytes:
    """An answer without what changes each time, unpacked."""
    head, _, body = heard.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/"):  # HTTP/0.9 has no headers
        head, body = b"", heard
    if body.startswith(b"\x1f\x8b"):
        with suppress(EOFError, OSError, zlib.error):
            body = gzip.decompress(body)
    return CHANGING.sub(b"", head + b"\n" + body)


def ask(count: int, seed: int) -> str:
    """Asks so often; returns a line about it. Raises Broken."""
    draw, traffic = random.Random(seed), Traffic(seed, VISITS)
    secrets, codes, resident = Secrets(traffic), Counter[bytes](), list[int]()
    began, texts_seen = time.monotonic(), 0
    with watched(traffic) as run:
        until(lambda: WITH_PACKETS in shapes(scrape(run.port)))
        expected = shapes(scrape(run.port))
        for number in range(0, count, BATCH):
            texts = set()
            for _ in range(min(BATCH, count - number)):
                reads = draw.random() >= UNREAD
                text = plain(answer(run.port, request(draw), reads=reads))
                codes[text[9:12] if text.startswith(b"HTTP/1.") else b"HTTP/0.9 or nothing"] += 1
                texts.add(text)
            texts_seen += len(texts)
            secrets.check("an answer", texts)
            resident.append(run.resident())
            if run.process.poll() is not None:
                raise Broken("it ended", run.said.read_text()[-200:])
        check_equal("lines that came or went", shapes(scrape(run.port)) ^ expected, set())
        check_memory(resident)
        check_equal("exit code", run.end(), 0)
        said = run.said.read_bytes()
        if b"Traceback" in said:
            raise Broken("it shows a traceback", said[-200:].decode(errors="replace"))
        secrets.check("what it said", [said])
    told = ", ".join(f"{n:,} x {code.decode()}" for code, n in codes.most_common(8))
    return (
        f"{count:,} requests in {time.monotonic() - began:.0f} s: {told}; {texts_seen:,} texts,"
        f" memory {resident[0] / 2**20:.1f} to {resident[-1] / 2**20:.1f} MiB"
    )


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    print(f"seed {given.seed}", flush=True)
    try:
        print(ask(given.requests, given.seed))
    except (Broken, AssertionError, OSError) as error:
        print(f"scrapes: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
