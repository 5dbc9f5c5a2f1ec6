# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Oracles for the fast code: brute force, short enough to be checked by reading."""
