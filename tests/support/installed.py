# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What an installation has outside the package: man pages, completion scripts, the unit."""

import subprocess
import sys
from pathlib import Path

from support.cli import ENVIRONMENT
from support.paths import ROOT


def share(tmp_path: Path) -> Path:
    """A folder like /usr/share: that of the installed wheel, or made anew beside the sources."""
    if not (ROOT / "setup.py").exists():
        return Path(sys.prefix, "share")
    for script, folder in (("make_man_pages.py", "man/man1"), ("make_completions.py", "")):
        command = [sys.executable, str(ROOT / "scripts" / script), str(tmp_path / folder)]
        subprocess.run(command, check=True, env=ENVIRONMENT)
    return tmp_path
