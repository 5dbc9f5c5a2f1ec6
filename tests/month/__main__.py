# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`python -m month`: prints what happened, and what the month came to; 1 at the first failure."""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from support.packets import DAY, HOUR, START

from month.broken import Broken
from month.events import EVENTS
from month.soak import Month

MINUTES_A_DAY = 2.0


def run_month(folder: Path, days: float, minutes: float, seed: int, visits: int) -> list[str]:
    """Runs it; returns the lines of its report. Raises Broken at the first check that fails."""
    draw, lines, hours = random.Random(seed), [], days * DAY / HOUR
    count = max(len(EVENTS), round(days))
    with Month(folder, seed, minutes * 60 / hours, visits) as month:
        for number in range(count):
            if number % len(EVENTS) == 0:
                events = draw.sample(EVENTS, len(EVENTS))
            event = events[number % len(EVENTS)]
            until_ns = START + round(days * DAY * (number + 0.8) / count)
            month.advance(max(HOUR, until_ns - month.now_ns))
            try:
                event(month)
                month.advance(HOUR)
                month.check()
            except Broken as broken:
                day = (month.now_ns - START) / DAY
                raise Broken(f"day {day:.2f}, {event.__name__}", str(broken)) from None
            lines.append(line_of(month, event.__name__))
            print(lines[-1], flush=True)
        month.advance(max(0, START + round(days * DAY) - month.now_ns))
        month.stop()
    return [*lines, *summary(month)]


def line_of(month: Month, event: str) -> str:
    status = month.probe.look()
    drops = status["capture_drops"]
    return (
        f"day {(month.now_ns - START) / DAY:6.2f}  {event:16}  sent {month.sent_to_run:9,}"
        f"  read {status['packets']:9,}  lost {'/'.join(map(str, drops.values())):>12}"
        f"  files {len(month.parts.bytes):5}  {month.resident[-1] / 2**20:6.1f} MiB"
    )


def summary(month: Month) -> list[str]:
    done = month.outcome()
    first, last = (n / 2**20 for n in (done.resident_first, done.resident_last))
    unread = f"sent to a run that was killed or had ended {done.unread:,}"
    return [
        f"runs {done.runs}, sent {done.sent:,}, read {done.read:,}, lost {done.lost:,}, {unread}",
        f"names released {done.observations:,}, files of parts {done.parts:,}",
        f"memory {first:.1f} MiB at first, {last:.1f} MiB at last",
    ]


def main() -> int:
    """Returns the exit code."""
    parser = argparse.ArgumentParser(description="A month of packet time in an hour.")
    parser.add_argument("--days", type=float, default=30.0)
    parser.add_argument("--minutes", type=float, help="of the clock; two a day by default")
    parser.add_argument("--visits", type=int, default=200, help="an hour of packet time")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    given = parser.parse_args()
    minutes = given.days * MINUTES_A_DAY if given.minutes is None else given.minutes
    print(f"{given.days:g} days in {minutes:g} minutes, seed {given.seed}", flush=True)
    try:
        with tempfile.TemporaryDirectory() as scratch:
            lines = run_month(Path(scratch), given.days, minutes, given.seed, given.visits)
    except (Broken, subprocess.CalledProcessError, OSError) as error:
        print(f"month: {error}", file=sys.stderr)
        return 1
    print("\n".join(lines[-3:]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
