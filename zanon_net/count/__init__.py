# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Counting over many probes: one process that decides the votes of all, and its clients."""
