# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""C programs and libraries that tests build from csrc/: the z-table in two layouts."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from support.paths import ROOT
from support.shared import kept_file

CSRC = ROOT / "csrc"
BASE = [CSRC / "util" / f"{name}.c" for name in ("arena", "clock", "hash", "error")]
ZTABLE = [*sorted((CSRC / "anonymity").glob("ztable*.c")), *BASE]

# With the smallest sizes, few users bring an attribute into each of its forms.
LAYOUTS: Mapping[str, list[str]] = {
    "default": [],
    "small": ["-DZN_ZRECORD_USERS_MAX=5", "-DZN_ZLIST_FROM=3", "-DZN_ZTRIM_MAX=2"],
}
FLAGS = [
    "-std=c11",
    "-D_GNU_SOURCE",
    "-DZN_DEBUG",
    "-DZN_TESTING",
    f"-I{CSRC}",
    f"-I{CSRC}/include",
    "-Wall",
    "-Wextra",
    "-Werror",
]
SANITIZE = ["-g", "-fno-wrapv", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def run(
    command: Sequence[str | Path],
    stdin: str = "",
    code: int = 0,
    cwd: Path | None = None,
    **variables: str,
) -> str:
    """The output of a command that ends with `code`."""
    # Python itself may run under a preloaded sanitizer, which other programs must not inherit.
    of_python = ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS")
    environment = {k: v for k, v in os.environ.items() if k not in of_python} | variables
    done = subprocess.run(
        command, cwd=cwd, input=stdin, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@cache
def compiler() -> str:
    """Returns the compiler's name and version, which decide if an object can be used again."""
    return run(["cc", "--version"])


def compile_c(out: Path, sources: Sequence[Path], *flags: str) -> Path:
    """Makes `out` from C sources. An earlier run may have compiled equal sources."""
    command = ["cc", *FLAGS, *flags, *sources, "-lm", "-o"]
    beside = {path for source in sources for path in source.parent.glob("*.[ch]")}
    texts = [compiler().encode(), repr([*FLAGS, *flags]).encode()]
    for path in (*sources, *sorted(beside), *sorted(CSRC.rglob("*.h"))):
        texts += [path.name.encode(), path.read_bytes()]
    return Path(shutil.copy(kept_file(texts, lambda made: run([*command, made])), out))


def use_installed_library(root: Path, folder: Path, capture: Path) -> list[str]:
    """Builds examples/c/monitor.c with a libzanon that is installed below `root`, and runs it.

    folder: the folder of libraries, relative to `root`. Returns the lines of the monitor at z = 5.
    """
    libraries = root / folder
    flags = run(
        ["pkg-config", "--cflags", "--libs", "zanon", "libpcap"],
        PKG_CONFIG_PATH=str(libraries / "pkgconfig"),
        PKG_CONFIG_SYSROOT_DIR=str(root),
    )
    assert f"-I{root}" in flags
    program = root / "monitor"
    run(["cc", ROOT / "examples" / "c" / "monitor.c", *shlex.split(flags), "-o", program])
    return run([program, "5", capture], LD_LIBRARY_PATH=str(libraries)).splitlines()
