# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Network traffic as flow logs in which every name is shared by at least z users.

- `run(source, config, out=...)`: captures or interfaces to anonymized logs; returns a `Report`.
- `Config`: its settings, in sections: `ZParams`, `AddressPolicy`, `Input`, `Output`, `Limits`,
  `LiveSettings`.
- `read_log(path)`: such logs, and Tstat's own, as a table for pandas, polars or Arrow.
- `Engine(config)`: frames of a program of yours in, `RECORD_DTYPE` and `OBSERVATION_DTYPE` out.
- `ZTable`, `CryptoPan`: z-anonymity and pseudonyms by themselves; `caps_for_bytes`: limits of
  memory for the former.
- `parse`: the parsers one by one. They anonymize nothing.

Times are integer nanoseconds since the Unix epoch, UTC. Every error is a `ZanonError` with a text
of one line that holds no name and no address. The documents are in docs/ of the sources.
"""

from importlib import import_module

from zanon_net._version import __version__

TYPE_CHECKING = False  # as typing has it, without waiting for that
if TYPE_CHECKING:
    from zanon_net import parse
    from zanon_net._core import CryptoPan, ZTable, caps_for_bytes
    from zanon_net.config.sections import (
        AddressPolicy,
        Input,
        Limits,
        LiveSettings,
        Output,
        ZParams,
    )
    from zanon_net.config.settings import Config
    from zanon_net.embedding import OBSERVATION_DTYPE, RECORD_DTYPE, Engine
    from zanon_net.errors import (
        CapacityError,
        CaptureError,
        ConfigError,
        FormatError,
        OutputError,
        ZanonError,
    )
    from zanon_net.pipeline.report import Report
    from zanon_net.pipeline.runner import run
    from zanon_net.read_logs import read_log

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


_PLACES = {
    "_core": "CryptoPan ZTable caps_for_bytes",
    "config.sections": "AddressPolicy Input Limits LiveSettings Output ZParams",
    "config.settings": "Config",
    "embedding": "OBSERVATION_DTYPE RECORD_DTYPE Engine",
    "errors": "CapacityError CaptureError ConfigError FormatError OutputError ZanonError",
    "pipeline.report": "Report",
    "pipeline.runner": "run",
    "read_logs": "read_log",
}


def __getattr__(name: str) -> object:
    """What is asked for is imported then: the command hears Ctrl-C before it loads anything, and
    NumPy, which the engine needs, takes longer than all the rest."""
    if name == "parse":
        return import_module(f"zanon_net.{name}")
    for place, names in _PLACES.items():
        if name in names.split():
            return getattr(import_module(f"zanon_net.{place}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """What there is to ask for."""
    return sorted({*globals(), *__all__})
