# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the one extension, zanon_net._core; all metadata is in pyproject.toml.

Five environment variables change the build: ZANON_MARCH=native (code for one machine),
ZANON_SANITIZE=address,undefined (implies a debug build), ZANON_DEBUG=1 (assertions, -O1 -g),
ZANON_COVERAGE=1 (counts for gcov), ZANON_TESTING=1 (what only tests use: allocations that fail,
probes).
ZANON_HOME=https://... is the project's address, for the package's page.
Cython's C cannot pass the warnings that csrc/ has to, so `make lint` compiles csrc/ with them.
"""

import os
import re
import runpy
import shlex
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from Cython.Build import cythonize
from setuptools import Extension, setup

INSTALL = "apt-get install -y libpcap-dev libssl-dev pkg-config"


def is_testing(environ: Mapping[str, str]) -> bool:
    """Whether what only tests use is built too."""
    return environ.get("ZANON_TESTING") == "1"


def binding(environ: Mapping[str, str]) -> str:
    """The root of the extension's Cython sources."""
    return "zanon_net/_core_testing.pyx" if is_testing(environ) else "zanon_net/_core.pyx"


def flags_from_env(environ: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Compiler and linker flags for the build variant that `environ` asks for."""
    cflags = ["-std=c11", "-O2", "-pthread", "-D_GNU_SOURCE", "-fvisibility=hidden", "-Wall"]
    ldflags = []
    if march := environ.get("ZANON_MARCH"):
        cflags += [f"-march={march}"]
    if environ.get("ZANON_DEBUG") == "1" or environ.get("ZANON_SANITIZE"):
        cflags += ["-O1", "-g", "-DZN_DEBUG"]
    if sanitize := environ.get("ZANON_SANITIZE"):
        # Python's own CFLAGS carry -fwrapv, which hides signed overflow from UBSan.
        cflags += [f"-fsanitize={sanitize}", "-fno-omit-frame-pointer", "-fno-wrapv"]
        ldflags += [f"-fsanitize={sanitize}"]
    if environ.get("ZANON_COVERAGE") == "1":
        cflags += ["-O1", "--coverage"]
        ldflags += ["--coverage"]
    if is_testing(environ):
        cflags += ["-DZN_TESTING"]
    return cflags, ldflags


def build_base(environ: Mapping[str, str]) -> str:
    """A folder for each variant: setuptools does not rebuild when only the flags have changed."""
    values = [environ.get(f"ZANON_{name}", "") for name in ("MARCH", "SANITIZE", "DEBUG")]
    values += ["coverage" if environ.get("ZANON_COVERAGE") == "1" else ""]
    values += ["testing" if is_testing(environ) else ""]
    return "build/" + ("-".join(re.findall(r"\w+", " ".join(values))) or "release")


def library_flags(kind: str) -> list[str]:
    """pkg-config's --cflags or --libs; where a header is missing, the line to type and the end."""
    command = ["pkg-config", kind, "libcrypto >= 3.0", "libpcap"]
    try:
        done = subprocess.run(command, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit(f"zanon-net needs libpcap's and OpenSSL 3's headers: {INSTALL}") from None
    return shlex.split(done.stdout)


def package_page(readme: str, home: str | None, version: str) -> dict[str, Any]:
    """What a package index shows: the project's address, and the README, of which a relative link
    leads nowhere there.

    home: the address, below which the files of a version are at blob/vVERSION; None: there is none,
    and relative links are their texts alone.
    """
    files = rf"[\1]({home}/blob/v{version}/\2)" if home else r"\1"
    page = re.sub(r"\[([^][]+)\]\((?![a-z]+:|#)([^)]+)\)", files, readme)
    about = {"long_description": page, "long_description_content_type": "text/markdown"}
    return {**about, "project_urls": {"Homepage": home}} if home else about


def main() -> None:
    """Run setuptools."""
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise SystemExit("zanon-net needs Python's headers: apt-get install -y python3-dev")
    cflags, ldflags = flags_from_env(os.environ)
    sources = sorted(path.as_posix() for path in Path("csrc").rglob("*.c"))
    core = Extension(
        "zanon_net._core",
        [binding(os.environ), *sources],
        include_dirs=["csrc", "csrc/include"],
        define_macros=[("ZN_API", "")],  # of the extension only PyInit__core is visible
        depends=sorted(path.as_posix() for path in Path("csrc").rglob("*.h")),
        extra_compile_args=library_flags("--cflags") + cflags,
        extra_link_args=[*library_flags("--libs"), "-lm", "-pthread", *ldflags],
    )
    directives = {"language_level": 3, "embedsignature": True, "binding": True}
    directives |= {"boundscheck": False, "wraparound": False}
    setup(
        ext_modules=cythonize(core, build_dir="build/cython", compiler_directives=directives),
        options={"build": {"build_base": build_base(os.environ)}},
        **package_page(
            Path("README.md").read_text("utf-8"),
            os.environ.get("ZANON_HOME", "").rstrip("/") or None,
            runpy.run_path("zanon_net/_version.py")["__version__"],
        ),
    )


if __name__ == "__main__":
    main()
