# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Helpers of tests: builders of inputs, and calls of the product."""
