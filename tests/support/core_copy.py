# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Builds _core of a changed tree, with the objects of the last build where nothing changed."""

import filecmp
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.c_build import run as output_of
from support.paths import ROOT

CFLAGS = ["-std=c11", "-O0", "-fPIC", "-D_GNU_SOURCE", "-DZN_TESTING"]
CFLAGS += ["-Icsrc", "-Icsrc/include"]
CYTHON = (".pyx", ".pxd", ".pxi")
BINDING = "binding"


def python(tree: Path, *arguments: str) -> str:
    """Returns the output of the Python that uses the copy."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _includes(tree: Path, path: str, seen: dict[str, set[str]]) -> set[str]:
    """Returns the headers of ours that a file includes, also by others."""
    if path not in seen:
        seen[path] = set()
        for name in re.findall(r'#include "([^"]+)"', (tree / "csrc" / path).read_text("utf-8")):
            base = "include/" if (tree / "csrc/include" / name).exists() else ""
            seen[path] |= {base + name} | _includes(tree, base + name, seen)
    return seen[path]


def is_as_before(tree: Path, name: str) -> bool:
    """Returns true if the file of the tree is as in this tree."""
    return (ROOT / name).exists() and filecmp.cmp(ROOT / name, tree / name, shallow=False)


def _made_by_cython(tree: Path, out: Path) -> Path:
    """Returns the binding in C. The file of the last build is used if no source changed since."""
    last = ROOT / "build" / "cython" / "zanon_net" / "_core_testing.c"
    paths = [path for path in (tree / "zanon_net").rglob("*.p*") if path.suffix in CYTHON]
    names = [path.relative_to(tree).as_posix() for path in paths]
    if last.exists() and all(
        is_as_before(tree, name) and (ROOT / name).stat().st_mtime < last.stat().st_mtime
        for name in names
    ):
        return last
    made = out / "_core.c"
    command = [sys.executable, "-m", "cython", "-3", "-X", "binding=True"]
    output_of([*command, "zanon_net/_core.pyx", "-o", str(made)], cwd=tree)
    return made


def compile_objects(tree: Path, library: Path, out: Path) -> dict[str, Path]:
    """Returns the object of each source below csrc, and of BINDING.

    library: what `make lib` builds; its objects are used where nothing that they hold changed.
    out: folder of the other objects.
    """
    seen: dict[str, set[str]] = {}
    objects, commands = {BINDING: out / "_core.o"}, []
    for path in sorted((tree / "csrc").rglob("*.c")):
        source = path.relative_to(tree / "csrc").as_posix()
        used = {source, *_includes(tree, source, seen)}
        is_for_tests = "ZN_TESTING" in path.read_text("utf-8")
        if not is_for_tests and all(is_as_before(tree, f"csrc/{name}") for name in used):
            objects[source] = (library / "lib" / "obj" / source).with_suffix(".o")
        else:
            target = objects[source] = (out / source).with_suffix(".o")
            target.parent.mkdir(parents=True, exist_ok=True)
            commands.append(["gcc", *CFLAGS, "-w", "-c", f"csrc/{source}", "-o", str(target)])
    out.mkdir(exist_ok=True)
    headers = f"-I{sysconfig.get_path('include')}"
    made = str(_made_by_cython(tree, out))
    commands.insert(0, ["gcc", *CFLAGS, "-w", headers, "-c", made, "-o", str(objects[BINDING])])
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda command: output_of(command, cwd=tree), commands))
    return objects


def link_core(tree: Path, objects: Mapping[str, Path]) -> None:
    """Makes _core of the tree."""
    name = f"zanon_net/_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    libraries = output_of(["pkg-config", "--libs", "libcrypto", "libpcap"]).split()
    link = ["gcc", "-shared", *map(str, objects.values()), *libraries, "-lm", "-pthread"]
    output_of([*link, "-o", name], cwd=tree)
