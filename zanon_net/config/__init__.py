# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings: their types, defaults, checks, and how they are read."""

from zanon_net.config.live_section import LiveSettings
from zanon_net.config.settings import AddressPolicy, Config, Input, Limits, Output, ZParams

__all__ = ["AddressPolicy", "Config", "Input", "Limits", "LiveSettings", "Output", "ZParams"]
