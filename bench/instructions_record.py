# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Committed counts of instructions: their file, and their comparison with new counts."""

import json
import platform
import re
import ssl
import subprocess
import sysconfig
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

TOLERANCE = 0.01
# Start-up executes Python and other packages, whose releases change while this project does not.
TOLERANCES = {"start-up": 0.05}
UPDATE = "make instructions UPDATE=1"


@dataclass(frozen=True, slots=True)
class Figure:
    """Instructions for each unit, and a digest of the input."""

    instructions: float
    unit: str
    input: str


@dataclass(frozen=True, slots=True)
class Tools:
    """Tools that made figures. Figures are comparable if `fixed` is equal.

    `fixed` has the tools that decide which instructions the C code has. `others` is for readers.
    """

    fixed: dict[str, str]
    others: dict[str, str]


@dataclass(frozen=True, slots=True)
class Record:
    """Content of instructions.json."""

    tools: Tools
    figures: dict[str, Figure]

    def to_json(self) -> str:
        """Returns the text of the file."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @classmethod
    def read(cls, path: Path) -> "Record":
        """Reads the file."""
        fields: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        figures = {name: Figure(**figure) for name, figure in fields["figures"].items()}
        return cls(Tools(**fields["tools"]), figures)


def _first_line(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[0]


def processor() -> str:
    """Returns the architecture and its vector instructions under valgrind, which knows AVX2."""
    info = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    return platform.machine() + (" with AVX2" if re.search(r"\bavx2\b", info) else "")


def tools_here() -> Tools:
    """Returns the tools of this machine. Python names the compiler and the flags of extensions."""
    compiler = str(sysconfig.get_config_var("CC")).split()[0]
    fixed = {
        "processor": processor(),
        "compiler": _first_line(compiler, "--version"),
        "flags": str(sysconfig.get_config_var("CFLAGS")),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "valgrind": _first_line("valgrind", "--version"),
    }
    packages = {name: version(name) for name in ("numpy", "click", "rich")}
    others = {
        "python": platform.python_version(),
        "libc": " ".join(platform.libc_ver()),
        "openssl": ssl.OPENSSL_VERSION,
    }
    return Tools(fixed, others | packages)


def judge_figure(name: str, old: Figure | None, new: Figure | None) -> tuple[str, bool]:
    """Returns the remark on a figure, and true if the remark is a failure."""
    if old is None:
        return f"not in the file: {UPDATE}", True
    if new is None:
        return f"no longer counted: {UPDATE}", True
    if old.input != new.input:
        return f"the input differs from the committed input: {UPDATE}", True
    tolerance, ratio = TOLERANCES.get(name, TOLERANCE), new.instructions / old.instructions
    if ratio > 1 + tolerance:
        return f"more than {tolerance:.0%} above the committed figure", True
    if ratio < 1 - tolerance:
        return f"less by more than {tolerance:.0%}: commit the new figure, {UPDATE}", False
    return "", False


def _row(name: str, old: Figure | None, new: Figure | None, remark: str) -> str:
    was = f"{old.instructions:15,.1f}" if old else " " * 15
    now = f"{new.instructions:15,.1f}" if new else " " * 15
    ratio = f"{new.instructions / old.instructions:.4f}" if old and new else "      "
    unit = (new or old).unit  # type: ignore[union-attr]
    return f"{name:14} {unit:12} {was} {now}  {ratio}  {remark}".rstrip()


def _names(old: Record, new: Record) -> list[str]:
    return [*new.figures, *(name for name in old.figures if name not in new.figures)]


def _differing(old: Record, new: Record) -> list[str]:
    return [
        f"{name} {old.tools.fixed.get(name)!r}, here {here!r}"
        for name, here in new.tools.fixed.items()
        if old.tools.fixed.get(name) != here
    ]


def compare(old: Record, new: Record) -> list[str]:
    """Returns the lines of a table of figures and the figures that replace them."""
    lines = [f"{'instructions':14} {'for each':12} {'replaced':>15} {'written':>15}  ratio"]
    lines += [
        _row(name, old.figures.get(name), new.figures.get(name), "") for name in _names(old, new)
    ]
    if differing := _differing(old, new):
        lines.append(f"note: the replaced figures are of other tools: {'; '.join(differing)}")
    return lines


def judge(old: Record, new: Record, strict: bool) -> tuple[list[str], bool]:
    """Returns the lines of a table with remarks, and true if the comparison failed.

    strict: true if tools that differ from the recorded tools are a failure, as in CI.
    """
    lines = [f"{'instructions':14} {'for each':12} {'committed':>15} {'now':>15}  now/committed"]
    differing = _differing(old, new)
    failed = strict and bool(differing)
    for name in _names(old, new):
        pair = old.figures.get(name), new.figures.get(name)
        remark, wrong = ("", False) if differing else judge_figure(name, *pair)
        failed |= wrong
        lines.append(_row(name, *pair, remark))
    if differing:
        lines.append(
            f"{'error' if strict else 'warning'}: nothing was compared, because the committed"
            f" figures are of other tools: {'; '.join(differing)}. Check out the revision before"
            f" your change, run {UPDATE}, and compare your change with that file."
        )
    elif failed:
        lines.append(
            f"error: if the cost has a reason, commit it with the figures that {UPDATE} writes"
        )
    return lines, failed
