# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Shell commands of the how-to pages."""

import re

from support.paths import ROOT

HOWTOS = ROOT / "docs" / "howto"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(page: str) -> list[str]:
    """Returns the blocks of shell commands of a page, in their order."""
    return BLOCK.findall((HOWTOS / page).read_text(encoding="utf-8"))
