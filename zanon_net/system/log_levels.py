# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Levels of log records in addition to the levels of `logging`."""

NOTICE = 25
"""Level of records that a person who began a run has to see once; `logging` has INFO below and
WARNING above."""
