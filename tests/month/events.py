# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What happens to a probe in a month. Each event leaves a run that goes on."""

import signal
import threading
import time
from collections.abc import Callable

from support.packets import HOUR, MINUTE

from month.broken import Broken, check_equal
from month.checks import check_accounts
from month.probe import PATIENCE_S
from month.soak import Month
from zanon_net.keys import new_key

CROWD = 120  # visits in a rush: each user makes one at least
REBASE = 300  # visits too late, of which 256 in a row set the clock of the z-table back
PASSED = 50  # datagrams sent at once to an interface that is new
LEFT, RUSH_S = 256 << 10, 0.2  # bytes left on a disk that is filled up, and between two rushes
BURST = 12_000  # datagrams of 8 KB, of which the ring holds two thirds


def hangup(month: Month) -> None:
    """SIGHUP begins new files, also while nothing arrives."""
    month.quiesce()
    before = len(month.parts.bytes)

    def appeared() -> bool:
        month.collect()
        return len(month.parts.bytes) > before

    month.probe.send_signal(signal.SIGHUP)
    month.probe.until("new files after SIGHUP", appeared)


def new_key_at_once(month: Month) -> None:
    """A key file that is replaced does nothing before the run starts anew: not with SIGHUP, either.
    Then all pseudonyms are others."""
    month.rush(CROWD)
    month.key.unlink()
    new_key(month.key)
    hangup(month)
    month.rush(CROWD)  # the epoch's pseudonyms are compared with those before
    _start_anew(month, same_key=False)


def upgrade(month: Month) -> None:
    """A stop and a start: the key file's pseudonyms go on, users are counted anew."""
    month.rush(CROWD)
    _start_anew(month, same_key=True)


def _start_anew(month: Month, *, same_key: bool) -> None:
    before = month.releases
    month.stop()
    month.start()
    month.rush(CROWD)
    hangup(month)
    both = month.releases.shared_pseudonyms(before)
    if both[not same_key] > both.total() // 4 * (not same_key) or both.total() < CROWD // 4:
        raise Broken("pseudonyms after a start", f"{both[True]} of {both.total()} are the same")


def clock_forward(month: Month) -> None:
    """The clock that stamps frames jumps ahead: what was counted has left the window."""
    month.quiesce()
    month.offset_ns += 3 * HOUR


def clock_back(month: Month) -> None:
    """It is set back by less than the window: late observations are placed at their times."""
    month.quiesce()
    month.offset_ns -= 20 * MINUTE
    month.releases.clock_set_back()
    month.advance(10 * MINUTE)
    month.quiesce()
    if month.state_of_now()["decisions"]["late"] == 0:
        raise Broken("no observation is late", "after the clock was set back")


def clock_back_far(month: Month) -> None:
    """It is set back by more than the window: once enough packets agree, counting begins anew."""
    month.quiesce()
    jumps = month.state_of_now()["decisions"]["clock_jumps"]
    month.offset_ns -= 3 * HOUR
    month.releases.clock_set_back()
    month.rush(REBASE)
    month.quiesce()
    check_equal("clock jumps", month.state_of_now()["decisions"]["clock_jumps"], jumps + 1)


def link_down(month: Month) -> None:
    """The interface goes down and comes up. Nobody can count what was sent meanwhile."""
    month.quiesce()
    month.cable.pull()
    month.link_is_down(lambda: month.fill(100), month.cable.plug)


def link_removed(month: Month) -> None:
    """The interface is removed, and another one of its name takes its place. What passes that one
    before the run has opened it is lost, and counted as far as it came before the opening began.
    """
    month.quiesce()
    month.cable.remove()
    month.probe.until("it waits", lambda: _is_away(month))
    month.miss(HOUR)
    month.cable.bring_back()
    month.fill(PASSED)
    month.probe.until("it is back", lambda: not _is_away(month))
    month.fill(1)
    month.probe.next_statuses()
    unseen = month.sent_to_run - month.seen()
    if not 0 <= unseen < PASSED:
        raise Broken("frames that passed while it was away", f"{unseen} of {PASSED} in no count")
    month.refused += unseen
    month.unseen += unseen


def _is_away(month: Month) -> bool:
    """By the manifest so far: of one that flaps, messages come only at times."""
    return month.probe.state()["sources"][0]["warning"] is not None


def ring_full(month: Month) -> None:
    """The process stands still, and more arrives than the ring holds: all of it is counted."""
    month.quiesce()
    lost = month.probe.lost
    month.probe.send_signal(signal.SIGSTOP)
    month.fill(BURST)
    month.probe.send_signal(signal.SIGCONT)
    month.quiesce()
    month.lost_on_purpose += month.probe.lost - lost
    if month.probe.lost == lost:
        raise Broken("no packet is lost", "though the ring was full")
    month.probe.until("it warns of a loss", lambda: b"warning: so far" in month.new_text())


def killed(month: Month) -> None:
    """SIGKILL under load: the parts that were over are whole, and a new run goes on."""
    timer = threading.Timer(0.3, month.probe.process.kill)
    timer.start()
    month.advance(HOUR)
    month.probe.process.kill()
    timer.join()
    month.probe.wait(-signal.SIGKILL)
    month.collect()
    state, before = month.probe.state(), month.releases
    month.releases.check_so_far(state["full_disk"]["records_lost"].get("observations", 0))
    month.parts.check_listed(state)
    month.leave(state["counters"]["read"]["frames"], sum(state["capture_drops"].values()))
    month.start()
    month.rush(CROWD)
    hangup(month)
    both = month.releases.shared_pseudonyms(before)
    if both[False]:
        raise Broken("pseudonyms after a kill", f"{both[False]} of {both.total()} are others")


def disk_full(month: Month) -> None:
    """The disk is full while the run waits for space: it goes on reading, what it cannot write is
    counted, and a new part begins when there is space again."""
    month.disk.fill(LEFT)
    _rush_until(month, lambda: b"records are lost until there is space" in month.new_text())
    month.rush(CROWD)
    month.quiesce()
    month.disk.clear()
    month.probe.until("it writes again", lambda: b"there is space again" in month.new_text())
    month.rush(CROWD)
    month.quiesce()
    full = month.state_of_now()["full_disk"]
    if full["times"] == 0 or not full["records_lost"].get("observations"):
        raise Broken("no record is lost", "though the disk was full")


def disk_full_at_once(month: Month) -> None:
    """A run that is to stop ends with what it could write, and with a manifest of that."""
    month.stop()
    month.start("stop")
    month.disk.fill(LEFT)
    _rush_until(month, lambda: not month.probe.is_alive)
    month.probe.wait(1)
    month.disk.clear()
    month.collect()
    manifest = month.probe.manifest()
    if "No space left on device; free some space" not in month.probe.last_words():
        raise Broken("what it says of a full disk", month.probe.last_words())
    check_equal("whether a run is complete", manifest["complete"], False)
    check_accounts(manifest)
    month.parts.check_against(manifest)
    month.check_removed(manifest)
    month.releases.check_so_far()
    month.leave(manifest["sources"][0]["frames"], sum(manifest["capture_drops"].values()))
    month.start()


def _rush_until(month: Month, condition: Callable[[], bool]) -> None:
    """Lets the disk fill up."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        month.rush(CROWD)
        time.sleep(RUSH_S)
        if time.monotonic() > deadline:
            raise Broken("the disk is not full", month.probe.last_words())


EVENTS: tuple[Callable[[Month], None], ...] = (
    hangup,
    clock_forward,
    link_down,
    link_removed,
    ring_full,
    clock_back,
    killed,
    clock_back_far,
    upgrade,
    new_key_at_once,
    disk_full,
    disk_full_at_once,
)
