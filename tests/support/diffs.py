# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Diffs in the documentation, applied to a copy of the source tree."""

import re
from pathlib import Path

from support.paths import ROOT


def documented(section: str) -> str:
    """The diff in that section of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split(f"\n## {section}\n")[1]
    return text.split("```diff\n")[1].split("```")[0]


def apply(diff: str, folder: Path) -> set[str]:
    """Applies a diff to the files in `folder`; returns their names. Each hunk fits one place."""
    changed = set()
    for part in re.split(r"^--- (?=a/|/dev/null)", diff, flags=re.MULTILINE)[1:]:
        head, *hunks = re.split(r"^@@.*\n", part, flags=re.MULTILINE)
        before, after = head.splitlines()
        name = after.removeprefix("+++ b/").strip()
        path = folder / name
        assert path.exists() == (before != "/dev/null"), name
        text = path.read_text("utf-8") if path.exists() else ""
        for hunk in hunks:
            lines = hunk.splitlines(keepends=True)
            old = "".join(line[1:] for line in lines if line[0] in " -")
            new = "".join(line[1:] for line in lines if line[0] in " +")
            if old:
                assert text.count(old) == 1, f"{name} is not as CONTRIBUTING.md has it:\n{old}"
            text = text.replace(old, new) if old else text + new
        path.write_text(text, "utf-8")
        changed.add(name)
    return changed
