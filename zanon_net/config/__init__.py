# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings: one table of all settings, readers of their values, and dataclasses of the values."""
