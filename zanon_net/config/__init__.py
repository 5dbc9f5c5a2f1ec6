# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings: one table of them, their readers, and the dataclasses that hold them."""

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
