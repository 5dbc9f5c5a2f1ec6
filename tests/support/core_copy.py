# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Builds _core of a changed tree, with the objects of earlier builds where nothing changed."""

import filecmp
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from support.c_build import compiler
from support.c_build import run as output_of
from support.paths import ROOT
from support.shared import kept_file

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


def _object(tree: Path, source: Path, includes: Iterable[Path], *flags: str) -> Path:
    """Returns the object of a source. It is compiled unless an earlier run compiled the same."""
    command = ["gcc", *CFLAGS, "-w", *flags, "-c", str(source), "-o"]
    texts = [compiler().encode(), sys.version.encode(), repr([*CFLAGS, *flags]).encode()]
    for path in (source, *sorted(includes)):
        texts += [path.name.encode(), path.read_bytes()]
    return kept_file(texts, lambda out: output_of([*command, str(out)], cwd=tree))


def compile_objects(tree: Path, library: Path, out: Path) -> dict[str, Path]:
    """Returns the object of each source below csrc, and of BINDING.

    library: what `make lib` builds; its objects are used where nothing that they hold changed.
    out: folder for the binding in C.
    """
    seen: dict[str, set[str]] = {}
    objects: dict[str, Path] = {}
    changed: dict[str, tuple[Path, Iterable[Path], tuple[str, ...]]] = {}
    csrc = tree / "csrc"
    for path in sorted(csrc.rglob("*.c")):
        source = path.relative_to(csrc).as_posix()
        includes = _includes(tree, source, seen)
        is_for_tests = "ZN_TESTING" in path.read_text("utf-8")
        as_before = (is_as_before(tree, f"csrc/{name}") for name in (source, *includes))
        if not is_for_tests and all(as_before):
            objects[source] = (library / "lib" / "obj" / source).with_suffix(".o")
        else:
            changed[source] = (path, [csrc / name for name in includes], ())
    out.mkdir(exist_ok=True)
    headers = f"-I{sysconfig.get_path('include')}"
    changed[BINDING] = (_made_by_cython(tree, out), csrc.rglob("*.h"), (headers,))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        arguments = reversed(changed.items())  # the binding takes longest
        made = {
            name: pool.submit(_object, tree, source, includes, *flags)
            for name, (source, includes, flags) in arguments
        }
        return objects | {name: future.result() for name, future in made.items()}


def link_core(tree: Path, objects: Mapping[str, Path]) -> None:
    """Makes _core of the tree."""
    name = f"zanon_net/_core{sysconfig.get_config_var('EXT_SUFFIX')}"
    libraries = output_of(["pkg-config", "--libs", "libcrypto", "libpcap"]).split()
    link = ["gcc", "-shared", *map(str, objects.values()), *libraries, "-lm", "-pthread"]
    output_of([*link, "-o", name], cwd=tree)
