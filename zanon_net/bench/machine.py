# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The machine on which a figure was measured."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path

from zanon_net._version import __version__

CPU_INFO = Path("/proc/cpuinfo")


def cpu_model() -> str:
    """Returns the processor's name."""
    try:
        lines = CPU_INFO.read_text("ascii", "replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def describe_machine() -> dict[str, str | int]:
    """Returns date, processor, cores, and the versions of the system, Python and zanon_net."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "processor": cpu_model(),
        "cores": os.cpu_count() or 1,
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "zanon_net": __version__,
    }
