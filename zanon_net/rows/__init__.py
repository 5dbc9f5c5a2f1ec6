# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of observations through z-anonymity: `zanon-net filter`."""
