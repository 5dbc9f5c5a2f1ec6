# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Writes the completion scripts of `zanon-net` for bash, zsh and fish, in the places of each shell.

Usage: python scripts/make_completions.py DIR   (such as /usr/share). setup.py calls it when it
builds a wheel.
"""

import sys
from pathlib import Path

from click.shell_completion import get_completion_class

from zanon_net.cli.completion import VARIABLE
from zanon_net.cli.entry import cli
from zanon_net.cli.messages import COMMAND

PATHS = {
    "bash": f"bash-completion/completions/{COMMAND}",
    "zsh": f"zsh/site-functions/_{COMMAND}",
    "fish": f"fish/vendor_completions.d/{COMMAND}.fish",
}


def main(folder: Path) -> None:
    """Writes a script for each shell."""
    for shell, name in PATHS.items():
        of_shell = get_completion_class(shell)
        assert of_shell is not None, shell
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(of_shell(cli, {}, COMMAND, VARIABLE).source(), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
