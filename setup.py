# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Builds the extension zanon_net._core, man pages and completion scripts.

All metadata is in pyproject.toml. Environment variables change the build.

ZANON_MARCH=native       code for one machine
ZANON_SANITIZE=address   sanitizers, with a debug build; several are separated by commas
ZANON_DEBUG=1            assertions, -O1 -g
ZANON_COVERAGE=1         counters for gcov
ZANON_TESTING=1          code for tests only, such as failing allocations and probes
ZANON_ABI3=1             one wheel for Python 3.11 and all later versions, with the limited API
ZANON_HOME=https://...   the project's address, for the package's page

Cython's C causes warnings that csrc/ must not have. So `make lint` compiles csrc/ without it.
"""

import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from Cython.Build import cythonize
from setuptools import Distribution, Extension, setup

MADE_BY_CYTHON = "build/cython"
INSTALL = "apt-get install -y libpcap-dev libssl-dev pkg-config"


def is_testing(environ: Mapping[str, str]) -> bool:
    """Returns true if the build includes the code for tests."""
    return environ.get("ZANON_TESTING") == "1"


def binding(environ: Mapping[str, str]) -> str:
    """Returns the root of the extension's Cython sources."""
    return "zanon_net/_core_testing.pyx" if is_testing(environ) else "zanon_net/_core.pyx"


def flags_from_env(environ: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Returns the compiler and linker flags of the build variant in `environ`."""
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


def binding_flags(environ: Mapping[str, str]) -> list[str]:
    """Returns further compiler flags for the C from Cython, which follow the others.

    That C is one file of 200,000 lines. With sanitizers, optimizing it takes minutes.
    """
    return ["-O0"] if environ.get("ZANON_SANITIZE") else []


def is_limited(environ: Mapping[str, str]) -> bool:
    """Returns true if the extension uses only Python's limited API."""
    return environ.get("ZANON_ABI3") == "1"


def build_base(environ: Mapping[str, str]) -> str:
    """Returns the build folder of the variant. setuptools does not rebuild if only flags change."""
    values = [environ.get(f"ZANON_{name}", "") for name in ("MARCH", "SANITIZE", "DEBUG")]
    values += ["coverage" if environ.get("ZANON_COVERAGE") == "1" else ""]
    values += ["testing" if is_testing(environ) else ""]
    values += ["abi3" if is_limited(environ) else ""]
    return "build/" + ("-".join(re.findall(r"\w+", " ".join(values))) or "release")


def library_flags(kind: str) -> list[str]:
    """Returns pkg-config's --cflags or --libs. Exits if headers are missing."""
    command = ["pkg-config", kind, "libcrypto >= 3.0", "libpcap"]
    try:
        done = subprocess.run(command, capture_output=True, check=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        raise SystemExit(f"zanon-net needs libpcap's and OpenSSL 3's headers: {INSTALL}") from None
    return shlex.split(done.stdout)


def package_page(readme: str, home: str | None, version: str) -> dict[str, Any]:
    """Returns the page on a package index: the README without relative links, and the address.

    home: the address. The files of a version are below it at blob/vVERSION, and pictures at
    raw/vVERSION. None: there is no address, so links become their texts and pictures are left out.
    """
    pictures = rf"![\1]({home}/raw/v{version}/\2)\n" if home else ""
    page = re.sub(r"!\[([^][]+)\]\((?![a-z]+:)([^)]+)\)\n", pictures, readme)
    files = rf"[\1]({home}/blob/v{version}/\2)" if home else r"\1"
    page = re.sub(r"\[([^][]+)\]\((?![a-z]+:|#)([^)]+)\)", files, page)
    about = {"long_description": page, "long_description_content_type": "text/markdown"}
    return {**about, "project_urls": {"Homepage": home}} if home else about


def made_of_the_command(package_root: str, folder: Path) -> list[tuple[str, list[str]]]:
    """Makes man pages and completion scripts with the built command. Returns them as data_files."""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([package_root, *sys.path])}
    for script, place in (("make_man_pages.py", "man/man1"), ("make_completions.py", "")):
        command = [sys.executable, f"scripts/{script}", str(folder / "share" / place)]
        subprocess.run(command, check=True, env=environ)
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return [(path.parent.relative_to(folder).as_posix(), [path.as_posix()]) for path in paths]


class BuildExtension(Distribution().get_command_class("build_ext")):
    """Compiles the C from Cython with flags of its own."""

    def build_extension(self, ext: Extension) -> None:
        """Build the extension."""
        compile_file = self.compiler._compile

        def compile_with_flags(made: str, source: str, *others: Any) -> None:
            suffix, cc_args, extra_args, pp_opts = others
            extra = binding_flags(os.environ) if source.startswith(MADE_BY_CYTHON) else []
            compile_file(made, source, suffix, cc_args, [*extra_args, *extra], pp_opts)

        self.compiler._compile = compile_with_flags
        super().build_extension(ext)


class InstallData(Distribution().get_command_class("install_data")):
    """Installs man pages and completion scripts, made with the built command."""

    def run(self) -> None:
        """Install the files."""
        build = self.get_finalized_command("build")
        is_editable = self.get_finalized_command("build_ext").inplace
        # Python cannot load a sanitizer's extension. A coverage build would count this run.
        if not is_editable and not os.environ.keys() & {"ZANON_SANITIZE", "ZANON_COVERAGE"}:
            folder = Path(build.build_temp, "command")
            shutil.rmtree(folder, ignore_errors=True)
            self.data_files += made_of_the_command(build.build_lib, folder)
        super().run()


def main() -> None:
    """Run setuptools."""
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        raise SystemExit("zanon-net needs Python's headers: apt-get install -y python3-dev")
    cflags, ldflags = flags_from_env(os.environ)
    sources = sorted(path.as_posix() for path in Path("csrc").rglob("*.c"))
    limited = is_limited(os.environ)
    core = Extension(
        "zanon_net._core",
        [binding(os.environ), *sources],
        include_dirs=["csrc", "csrc/include"],
        # Only PyInit__core is visible outside of the extension.
        define_macros=[("ZN_API", ""), *([("Py_LIMITED_API", "0x030b0000")] if limited else [])],
        py_limited_api=limited,
        depends=sorted(path.as_posix() for path in Path("csrc").rglob("*.h")),
        extra_compile_args=library_flags("--cflags") + cflags,
        extra_link_args=[*library_flags("--libs"), "-lm", "-pthread", *ldflags],
    )
    directives = {"language_level": 3, "embedsignature": True, "binding": True}
    directives |= {"boundscheck": False, "wraparound": False}
    options = {"build": {"build_base": build_base(os.environ)}}
    if limited:
        options["bdist_wheel"] = {"py_limited_api": "cp311"}
    setup(
        ext_modules=cythonize(core, build_dir=MADE_BY_CYTHON, compiler_directives=directives),
        cmdclass={"build_ext": BuildExtension, "install_data": InstallData},
        data_files=[
            (
                "lib/systemd/system",
                ["packaging/zanon-net.service", "packaging/zanon-net-counter.service"],
            )
        ],
        options=options,
        **package_page(
            Path("README.md").read_text("utf-8"),
            os.environ.get("ZANON_HOME", "").rstrip("/") or None,
            runpy.run_path("zanon_net/_version.py")["__version__"],
        ),
    )


if __name__ == "__main__":
    main()
