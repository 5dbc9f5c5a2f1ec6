# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The month: its clock, its runs one after the other, and the checks after each event."""

import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from support.metrics import Samples, samples, scrape
from support.netns import Namespace
from support.packets import DAY, HOUR, MINUTE, START, Frame

from month import checks
from month.broken import Broken, check_equal
from month.cable import RETRY_S, Cable
from month.checks import Manifest
from month.disk import Disk
from month.parts import Parts
from month.probe import Probe
from month.releases import Releases
from month.retention import LATE_S, Rule, Shelf
from month.stamps import build_library
from month.traffic import INTERNAL, Traffic, Visit, Z
from zanon_net.keys import new_key

DISK_BYTES, MAX_DISK = 64 << 20, 4 << 20
KEEP = DAY
METRICS_S = 20.0  # the age of the oldest metrics that may be served: 10 s, and a busy machine
SPAN = 30 * MINUTE  # of packet time, sent in one go


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the month came to."""

    runs: int
    sent: int
    read: int
    lost: int
    unread: int  # sent to a run that was killed, or had ended
    observations: int
    parts: int
    resident_first: int
    resident_last: int


class Month:
    """seconds_an_hour: of the clock, for an hour of packet time. visits: an hour of packet time."""

    def __init__(self, folder: Path, seed: int, seconds_an_hour: float, visits: int) -> None:
        self._folder, self._seconds_an_hour = folder, seconds_an_hour
        self._stack = ExitStack()
        self.traffic = Traffic(seed, visits)
        self.secrets = checks.Secrets(self.traffic)
        self.now_ns = START
        self.shelf = Shelf()
        slack_s = 2 * seconds_an_hour + LATE_S
        keep_s = KEEP / HOUR * seconds_an_hour
        self._rules = Rule(max_bytes=MAX_DISK), Rule(keep_s=keep_s, slack_s=slack_s)
        self.offset_ns = 0  # by which the clock that stamps frames is wrong
        self.runs = 0
        self.sent = self.read = self.lost = self.unread = self.observations = self.parts_over = 0
        self.resident_all: list[int] = []

    def __enter__(self) -> Self:
        self._library = build_library(self._folder)
        self.net = self._stack.enter_context(Namespace())
        self.cable = Cable(self.net)
        self.disk = Disk(self._folder / "disk", DISK_BYTES)
        self._stack.callback(self.disk.close)
        self.key = self._folder / "key"
        new_key(self.key)
        self.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: object, _where: TracebackType | None
    ) -> None:
        self.probe.close()
        self._stack.close()

    # ---- runs ----

    def start(self, on_full: str = "wait") -> None:
        """Starts a run, which makes a folder of its own as the service does. Every other one keeps
        parts for a day of packet time, the others as much as fits."""
        self.runs += 1
        self.rule = self._rules[self.runs % 2]
        options = ["--internal", INTERNAL, "--z", Z, "--key-file", self.key, "--split", "1h"]
        options += ["--on-lost", "wait", "--on-full", on_full, *self.rule.options()]
        said = self._folder / f"run{self.runs}.said"
        self.probe = Probe(self.net, self._library, self.disk.folder, said, options)
        self.out = self.probe.out
        self.releases = Releases()
        self.removed = (0, 0)  # bytes of its own files, and of earlier runs'
        self.parts = Parts(self.out, self.traffic.servers, self._appeared)
        self._sent_before, self._arrived_before = self.cable.sent, self.cable.arrived
        self.refused = 0  # frames sent while the link was down, or before a new one was opened
        self.unseen = 0  # of these, frames that may have arrived at the new one
        self.lost_on_purpose = 0  # frames without a name
        self.resident: list[int] = []
        self._scrapes: deque[tuple[float, int]] = deque([(time.monotonic(), 0)])
        self._last_scrape: Samples = {}
        self._said = 0
        self._collected_s = 0.0

    @property
    def sent_to_run(self) -> int:
        """Frames that this run should have read, or lost."""
        return self.cable.sent - self._sent_before - self.refused

    def stop(self) -> None:
        """Ends the run as an operator does, and checks all that it leaves."""
        self.check()
        self.probe.end()
        self.collect()
        manifest = self.probe.manifest()
        lost = sum(manifest["capture_drops"].values())
        unwritten = manifest["full_disk"]["records_lost"]
        was_away = manifest["sources"][0]["away"]["count"] > 0
        is_complete = lost == 0 and not any(unwritten.values()) and not was_away
        check_equal("whether a run is complete", manifest["complete"], is_complete)
        checks.check_accounts(manifest)
        self.releases.check_whole(unwritten.get("observations", 0), unwritten.get("jsonl", 0))
        self.parts.check_against(manifest)
        self.check_removed(manifest)
        last = samples(self.probe.metrics_file.read_text("ascii"))
        checks.check_last_metrics(last, manifest)
        self.leave(manifest["sources"][0]["frames"], lost)

    def leave(self, read: int, lost: int) -> None:
        """Looks at the messages of a run that has ended; its folder stays until later runs remove
        what is in it."""
        self.check_messages()
        self.shelf.look(self.rule, self.runs)  # what a run removed that was killed
        self.read += read
        self.lost += lost
        self.sent += self.sent_to_run
        self.unread += self.sent_to_run - read - lost
        self.observations += self.releases.observed
        self.parts_over += len(self.parts.bytes)
        self.resident_all += self.resident

    # ---- time ----

    def advance(self, length_ns: int) -> None:
        """Lets packet time go by, and looks at what has appeared."""
        until_ns = self.now_ns + length_ns
        while self.now_ns < until_ns:
            step_ns = min(SPAN, until_ns - self.now_ns)
            frames, visits = self.traffic.span(self.now_ns, step_ns)
            self.now_ns += step_ns
            self.send(frames, visits, self._seconds_an_hour * step_ns / HOUR)
            if self.probe.is_alive:
                self.resident.append(self.probe.resident())
                self._scrapes.append((time.monotonic(), self.probe.packets))
                self.collect()

    def miss(self, length_ns: int) -> None:
        """Lets packet time go by in which nothing arrives of what the users do."""
        self.traffic.span(self.now_ns, length_ns)
        self.now_ns += length_ns

    def send(self, frames: list[Frame], visits: list[Visit], seconds: float = 0.0) -> None:
        """Sends frames with the times that the clock has them stamped with."""
        by_ns = self.offset_ns
        self.releases.send([replace(visit, start_ns=visit.start_ns + by_ns) for visit in visits])
        self.cable.send([replace(frame, t_ns=frame.t_ns + by_ns) for frame in frames], seconds)

    def rush(self, count: int) -> None:
        """Visits of all users in turn, faster than usual."""
        frames, visits = self.traffic.rush(count, self.now_ns)
        self.now_ns = max(self.now_ns, frames[-1].t_ns + 1)
        self.send(frames, visits)

    def fill(self, count: int) -> None:
        """Sends datagrams without a name."""
        frames = self.traffic.fillers(count, self.now_ns)
        self.now_ns = frames[-1].t_ns + 1
        self.send(frames, [])

    def link_is_down(self, while_down: Callable[[], None], up: Callable[[], None]) -> None:
        """Does something while the link is down. up: brings it up. Then datagrams are sent until
        one arrives, as the far end learns of it a little later; others had no way to arrive."""
        sent, arrived = self.cable.sent, self.cable.arrived
        while_down()
        up()
        while self.cable.arrived == arrived:
            self.fill(1)
            time.sleep(RETRY_S)
        self.refused += self.cable.sent - sent - (self.cable.arrived - arrived)

    # ---- checks ----

    def _appeared(self, path: Path, size: int) -> None:
        self.shelf.add(path, size, self.runs, self._collected_s)

    def collect(self) -> None:
        """Reads the files that have appeared."""
        self._collected_s = time.monotonic()
        observations, flows = self.parts.collect()
        self.releases.observe(observations)
        self.releases.record(flows)

    def seen(self) -> int:
        """Frames that the run has read, or counted as lost."""
        status = self.probe.look()
        return int(status["packets"]) + sum(status["capture_drops"].values())

    def all_is_read(self) -> bool:
        """Whether each frame sent to the run is among them."""
        return self.seen() >= self.sent_to_run

    def new_text(self) -> bytes:
        """What the run has said since the last check."""
        return self.probe.text()[self._said :]

    def quiesce(self) -> None:
        """Waits until nothing is under way."""
        self.probe.until("it has read what was sent", self.all_is_read)

    def check(self) -> None:
        """All that holds while a run goes on."""
        self.quiesce()
        self.check_losses()
        self.collect()
        state = self.state_of_now()
        self.parts.check_against(state)
        self.parts.check_unchanged()
        self.releases.check_so_far(state["full_disk"]["records_lost"].get("observations", 0))
        self.shelf.check_removed(self.rule)
        self.probe.until("its manifest says what it has removed", self._removals_agree)
        checks.check_memory(self.resident)
        self.check_metrics()
        self.check_messages(str(state).encode())

    def check_losses(self) -> None:
        """Packets sent are those read and those counted as lost."""
        drops = self.probe.look()["capture_drops"]
        lost = drops["ring"] + drops["us"]
        if lost > self.lost_on_purpose:
            raise Broken("this machine is too busy: frames with names were lost", f"{lost} of them")
        check_equal("packets read and lost, of those sent", self.seen(), self.sent_to_run)
        arrived = self.cable.arrived - self._arrived_before
        if not self.sent_to_run - drops["interface"] <= arrived <= self.sent_to_run + self.unseen:
            raise Broken("packets that arrived", f"{arrived}, sent {self.sent_to_run}, {drops}")

    def state_of_now(self) -> Manifest:
        """The manifest so far, when it has come to the last status."""
        packets = self.probe.packets
        self.probe.until(
            "its manifest says what its status says",
            lambda: self.probe.state()["counters"]["read"]["frames"] == packets,
        )
        return self.probe.state()

    def _removals_agree(self) -> bool:
        return self._removals_differ(self.probe.state()) is None

    def check_removed(self, manifest: Manifest) -> None:
        """The manifest of a run that has ended says what it has removed."""
        problem = self._removals_differ(manifest)
        if problem is not None:
            raise Broken("what was removed", problem)

    def _removals_differ(self, manifest: Manifest) -> str | None:
        """Looks at what is gone; returns how the manifest differs from it."""
        own, earlier = self.shelf.look(self.rule, self.runs)
        self.removed = (self.removed[0] + own, self.removed[1] + earlier)
        removed = manifest["removed"]
        counted = (removed["bytes"], removed["earlier_runs"]["bytes"])
        lines = self.probe.text().count(b"zanon-net: removed ")
        parts = removed["parts"] + removed["earlier_runs"]["parts"]
        if (counted, parts) == (self.removed, lines):
            return None
        return f"{counted} bytes, {parts} parts; gone are {self.removed}, and {lines} lines say so"

    def check_metrics(self) -> None:
        """Scrapes the metrics."""
        while len(self._scrapes) > 1 and self._scrapes[1][0] < time.monotonic() - METRICS_S:
            self._scrapes.popleft()
        with self.net.inside():
            text = scrape(self.probe.port)
        now = samples(text)
        checks.check_scrape(self._last_scrape, now, self._scrapes[0][1], self.sent_to_run)
        self._last_scrape = now
        self.check_messages(text.encode())

    def check_messages(self, *more: bytes) -> None:
        """No name and no address in what it has said since the last time, nor in `more`."""
        said = self.new_text()
        self._said += len(said)
        written = [
            path.read_bytes()
            for path in (
                self.probe.metrics_file,
                self.out / "manifest.json",
                self.out / "manifest.json.partial",
            )
            if path.exists()
        ]
        if b"Traceback" in said:
            raise Broken("it shows a traceback", self.probe.last_words())
        self.secrets.check(self.probe.said.name, [said, *written, *more])

    def outcome(self) -> Outcome:
        """What it came to, after the last stop."""
        return Outcome(
            runs=self.runs,
            sent=self.sent,
            read=self.read,
            lost=self.lost,
            unread=self.unread,
            observations=self.observations,
            parts=self.parts_over,
            resident_first=self.resident_all[0],
            resident_last=self.resident_all[-1],
        )
