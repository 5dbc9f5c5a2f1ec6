# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs whose metrics are renewed four times a second, and scrapes of them."""

import re
import sys
import time
import urllib.request
from collections.abc import Callable

from prometheus_client.parser import text_string_to_metric_families

PERIOD_S = 0.25
PATIENCE_S = 60.0
_SCRIPT = f"""
import sys
from zanon_net.pipeline import metrics_clock
metrics_clock.REFRESH_S = {PERIOD_S}
if sys.argv[1] == "count":
    from zanon_net.pipeline import counter_run
    counter_run.REFRESH_S = {PERIOD_S}
from zanon_net.cli import main
sys.exit(main())
"""
HURRIED = (sys.executable, "-c", _SCRIPT)
"""`zanon-net`, for tests that do not wait for ten seconds."""
SERVING = re.compile(r"serving metrics on port (\d+)")

Samples = dict[tuple[str, str], float]
"""By name and the value of the label, which is empty where there is none."""


def samples(text: str) -> Samples:
    """The samples of a scrape, or of a file."""
    return {
        (sample.name, next(iter(sample.labels.values()), "")): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def scrape(port: int, path: str = "/metrics") -> str:
    """What the server says."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=PATIENCE_S) as answer:
        assert answer.status == 200
        text: str = answer.read().decode()
        return text


def until(look: Callable[[], bool]) -> None:
    """Waits until it is so."""
    end = time.monotonic() + PATIENCE_S
    while not look():
        assert time.monotonic() < end
        time.sleep(PERIOD_S / 5)


def shapes(text: str) -> set[str]:
    """The lines of a scrape without their numbers, which come last."""
    lines = text.splitlines()
    return {line if line.startswith("#") else line.rpartition(" ")[0] for line in lines}
