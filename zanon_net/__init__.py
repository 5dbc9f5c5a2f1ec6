# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Network traffic as flow logs in which every name is shared by at least z users.

- `run(source, config, out=...)`: captures or interfaces to anonymized logs; returns a `Report`.
  Settings may also be given one by one: `run(source, z=10, window="1h")`. Inside `with
  Interruption()` a signal ends the reading, and the run finishes its output.
- `packets(source, "shared.pcapng", config)`: captures or interfaces to a capture of anonymized
  packets.
- `flows(source, config)`: the flows of `run` as a table for pandas, polars or Arrow, batch by
  batch.
- `Config`: its settings, in sections: `ZParams`, `AddressPolicy`, `Input`, `Output`, `Limits`,
  `LiveSettings`, `PacketSettings`, `CountSettings`.
- `read_log(path)`: logs of zanon_net or Tstat as a table for pandas, polars or Arrow.
- `filter(table, time=..., user=..., attribute=..., z=20, window="1h")`: the rows of a table of
  pandas, polars, pyarrow or DuckDB whose attribute z users share.
- `Engine(config)`: takes frames of your program and returns arrays of `RECORD_DTYPE` and
  `OBSERVATION_DTYPE`, whose numbers are indices into `NAME_LEVELS`, `NAME_SOURCES`,
  `NAME_STATUSES` and `DISCLOSURES`. `frames(path)`: the frames of a capture, as `Engine.feed` takes
  them.
- `ZTable`, `CryptoPan`: z-anonymity and pseudonyms standalone; `caps_for_bytes`: limits of a
  `ZTable`'s memory.
- `parse`: the parsers one by one. They anonymize nothing.

Times are integer nanoseconds since the Unix epoch, UTC. Every error is a `ZanonError` with a text
of one line that contains no name and no address. The documents are in docs/ of the sources.
"""

from importlib import import_module

from zanon_net._version import __version__

TYPE_CHECKING = False  # typing's own, without the time of importing typing
if TYPE_CHECKING:
    from zanon_net import parse
    from zanon_net._core import CryptoPan, ZTable, caps_for_bytes
    from zanon_net.config.sections import (
        AddressPolicy,
        CountSettings,
        Input,
        Limits,
        LiveSettings,
        Output,
        PacketSettings,
        ZParams,
    )
    from zanon_net.config.settings import Config
    from zanon_net.embedding import (
        DISCLOSURES,
        NAME_LEVELS,
        NAME_SOURCES,
        NAME_STATUSES,
        OBSERVATION_DTYPE,
        RECORD_DTYPE,
        Engine,
        PacketBatch,
    )
    from zanon_net.errors import (
        CapacityError,
        CaptureError,
        ConfigError,
        FormatError,
        OutputError,
        ZanonError,
    )
    from zanon_net.flow_batches import FlowBatch, flows
    from zanon_net.frame_batches import FrameBatch, frames
    from zanon_net.output.read_logs import read_log
    from zanon_net.pipeline.packet_runner import packets
    from zanon_net.pipeline.report import Report
    from zanon_net.pipeline.runner import run
    from zanon_net.rows.frames import filter
    from zanon_net.system.signals import Interruption

__all__ = [
    "DISCLOSURES",
    "NAME_LEVELS",
    "NAME_SOURCES",
    "NAME_STATUSES",
    "OBSERVATION_DTYPE",
    "RECORD_DTYPE",
    "AddressPolicy",
    "CapacityError",
    "CaptureError",
    "Config",
    "ConfigError",
    "CountSettings",
    "CryptoPan",
    "Engine",
    "FlowBatch",
    "FormatError",
    "FrameBatch",
    "Input",
    "Interruption",
    "Limits",
    "LiveSettings",
    "Output",
    "OutputError",
    "PacketBatch",
    "PacketSettings",
    "Report",
    "ZParams",
    "ZTable",
    "ZanonError",
    "__version__",
    "caps_for_bytes",
    "filter",
    "flows",
    "frames",
    "packets",
    "parse",
    "read_log",
    "run",
]


_PLACES = {  # the public names of each module
    "_core": "CryptoPan ZTable caps_for_bytes",
    "config.sections": (
        "AddressPolicy CountSettings Input Limits LiveSettings Output PacketSettings ZParams"
    ),
    "config.settings": "Config",
    "embedding": (
        "DISCLOSURES NAME_LEVELS NAME_SOURCES NAME_STATUSES OBSERVATION_DTYPE RECORD_DTYPE Engine"
        " PacketBatch"
    ),
    "flow_batches": "FlowBatch flows",
    "frame_batches": "FrameBatch frames",
    "output.read_logs": "read_log",
    "errors": "CapacityError CaptureError ConfigError FormatError OutputError ZanonError",
    "pipeline.packet_runner": "packets",
    "pipeline.report": "Report",
    "pipeline.runner": "run",
    "rows.frames": "filter",
    "system.signals": "Interruption",
}


def __getattr__(name: str) -> object:
    """Imports a public name at its first use.

    The command then hears Ctrl-C before it loads anything, and NumPy, which the engine needs, takes
    longer to import than all other modules.
    """
    if name == "parse":
        return import_module(f"zanon_net.{name}")
    for place, names in _PLACES.items():
        if name in names.split():
            return getattr(import_module(f"zanon_net.{place}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Returns the public names."""
    return sorted(__all__)
