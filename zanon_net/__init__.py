# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Flow logs from network traffic whose every name is shared by at least z users.

`run(source, config)` turns captures into anonymized logs, `read_log` reads them and Tstat's own;
`Engine` takes frames from a program of yours; `ZTable` and `CryptoPan` are its two building blocks
by themselves, and `parse` has the parsers. Times are integer nanoseconds since the Unix epoch.
"""

from typing import TYPE_CHECKING, Any

from zanon_net import parse
from zanon_net._core import CryptoPan, ZTable, caps_for_bytes
from zanon_net._version import __version__
from zanon_net.config import AddressPolicy, Config, Input, Limits, Output, ZParams
from zanon_net.errors import (
    CapacityError,
    CaptureError,
    ConfigError,
    FormatError,
    OutputError,
    ZanonError,
)
from zanon_net.live_settings import LiveSettings
from zanon_net.pipeline import run
from zanon_net.reading import read_log
from zanon_net.report import Report

if TYPE_CHECKING:
    from zanon_net.embedding import OBSERVATION_DTYPE, RECORD_DTYPE, Engine

__all__ = [
    "OBSERVATION_DTYPE",
    "RECORD_DTYPE",
    "AddressPolicy",
    "CapacityError",
    "CaptureError",
    "Config",
    "ConfigError",
    "CryptoPan",
    "Engine",
    "FormatError",
    "Input",
    "Limits",
    "LiveSettings",
    "Output",
    "OutputError",
    "Report",
    "ZParams",
    "ZTable",
    "ZanonError",
    "__version__",
    "caps_for_bytes",
    "parse",
    "read_log",
    "run",
]


def __getattr__(name: str) -> Any:
    """What needs NumPy is imported when it is asked for: that takes longer than all the rest."""
    if name in ("OBSERVATION_DTYPE", "RECORD_DTYPE", "Engine"):
        from zanon_net import embedding

        return getattr(embedding, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
