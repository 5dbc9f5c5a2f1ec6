# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Generated traffic, and the cost of each stage of the packet path on it."""
