# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings: one table of all settings, readers of their values, and dataclasses of the values."""

from zanon_net.config.sections import (
    AddressPolicy,
    Input,
    Limits,
    LiveSettings,
    Output,
    PacketSettings,
    ZParams,
)
from zanon_net.config.settings import Config

__all__ = [
    "AddressPolicy",
    "Config",
    "Input",
    "Limits",
    "LiveSettings",
    "Output",
    "PacketSettings",
    "ZParams",
]
