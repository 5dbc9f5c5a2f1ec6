# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs the command: `python -m zanon_net` is `zanon-net`."""

import sys

from zanon_net.cli import main

if __name__ == "__main__":
    sys.exit(main())
