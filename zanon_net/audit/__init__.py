# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Measures the attacks that released logs allow: singling out, linking and inference.

The package shares no code with the engine: it imports neither `_core` nor the model.
"""

from importlib import import_module

TYPE_CHECKING = False  # typing's own, without the time of importing typing
if TYPE_CHECKING:
    from zanon_net.audit.released import audit
    from zanon_net.audit.result import Metric, Report, Violation

__all__ = ["Metric", "Report", "Violation", "audit"]

_PLACES = {"audit": "released", "Metric": "result", "Report": "result", "Violation": "result"}


def __getattr__(name: str) -> object:
    """Imports a public name at its first use."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"zanon_net.audit.{_PLACES[name]}"), name)
