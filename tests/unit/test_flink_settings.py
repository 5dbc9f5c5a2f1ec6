# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The interval that a job of Flink announces to probes."""

from pathlib import Path

import pytest

from zanon_net.cli.configure import read_options
from zanon_net.count.folders import CounterFolder
from zanon_net.errors import ConfigError
from zanon_net.flink.client import _prepared

SECOND = 1_000_000_000


def settings(folder: Path, every: str) -> dict[str, object]:
    return dict(read_options("flink", {"votes": str(folder), "checkpoint_every": every}))


@pytest.mark.parametrize(("every", "interval_s"), [("1s", 33), ("10s", 42), ("23h", 82832)])
def test_probes_wait_for_a_job_that_starts_again(
    tmp_path: Path, every: str, interval_s: int
) -> None:
    _prepared(settings(tmp_path, every))
    welcome = CounterFolder(tmp_path).read_welcome()
    assert welcome is not None
    assert welcome.interval_ns == interval_s * SECOND


def test_no_probe_waits_for_a_day(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="checkpoint_every: must be less than a day"):
        _prepared(settings(tmp_path, "1d"))
    assert not (tmp_path / "counter.json").exists()
