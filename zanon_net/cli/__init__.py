# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The command `zanon-net`."""

from zanon_net.cli.command import cli, main

__all__ = ["cli", "main"]
