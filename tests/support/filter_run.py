# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net filter` on a few rows."""

import pytest

from zanon_net.cli import main

Captured = pytest.CaptureFixture[str]
HEADER = "time,user,attribute\n"
ROWS = HEADER + "1,ann,rare\n2,ann,tea\n3,bob,tea\n4,cat,tea\n"
SECRETS = ("ann", "bob", "cat", "rare", "hush")


def run_main(*arguments: object) -> int:
    return main(["filter", *map(str, arguments)])


def usual(*arguments: object) -> tuple[object, ...]:
    return ("--time-unit", "s", "--z", 2, *arguments)
