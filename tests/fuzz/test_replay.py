# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The corpora of the parsers' fuzz targets, replayed under ASan and UBSan and at guard pages."""

import os
import signal
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.c_build import LAYOUTS, SANITIZE, ZTABLE, compile_c
from support.paths import ROOT

pytestmark = [pytest.mark.source, pytest.mark.sanitized]

FOLDER = Path(__file__).resolve().parent
CSRC = ROOT / "csrc"
SOURCES = sorted(CSRC.rglob("*.c"))
FLAGS = ["-std=c11", "-O1", "-g1", "-D_GNU_SOURCE", "-DZN_DEBUG"]
FLAGS += [f"-I{CSRC}", f"-I{CSRC}/include"]
FLAGS += ["-Wall", "-Wextra", "-Werror"]
FLAGS += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
TARGETS = sorted(path.name for path in (FOLDER / "corpus").iterdir())
# Python itself may run under a preloaded sanitizer, which compilers do without, and whose options
# leave out leaks.
OF_PYTHON = ("LD_PRELOAD", "ASAN_OPTIONS", "UBSAN_OPTIONS")
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in OF_PYTHON}


def finished(command: Sequence[str | Path], folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )


def run(command: Sequence[str | Path], folder: Path) -> None:
    done = finished(command, folder)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All of csrc/, compiled once for all targets, of which each links what it needs."""
    folder = tmp_path_factory.mktemp("objects")

    def compiled(numbered: tuple[int, Path]) -> Path:
        number, source = numbered
        out = folder / f"{number}.o"  # files of two folders may have the same name
        run(["cc", *FLAGS, "-c", source, "-o", out], folder)
        return out

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, enumerate([*SOURCES, FOLDER / "replay.c"])))
    run(["ar", "rcs", "replay.a", *objects], folder)
    return folder / "replay.a"


@pytest.mark.parametrize("target", TARGETS)
def test_replay(target: str, library: Path, tmp_path: Path) -> None:
    program = tmp_path / "replay"
    libraries = ["-lcrypto", "-lpcap", "-lm"]
    run(["cc", *FLAGS, FOLDER / f"fuzz_{target}.c", library, "-o", program, *libraries], tmp_path)
    run([program, FOLDER / "corpus" / target], tmp_path)


def test_replay_with_small_records_and_early_lists(tmp_path: Path) -> None:
    """The z-table's inputs again, in the layout where few users make a list."""
    sources = [FOLDER / "replay.c", FOLDER / "fuzz_ztable.c", *ZTABLE]
    program = compile_c(tmp_path / "replay", sources, "-O1", *SANITIZE, *LAYOUTS["small"])
    run([program, FOLDER / "corpus" / "ztable"], tmp_path)


@pytest.mark.parametrize("offset", ["size", "-1L"])
def test_a_byte_too_many_does_not_pass(offset: str, tmp_path: Path) -> None:
    """What the guard pages are there for: no sanitizer looks on here."""
    target = tmp_path / "target.c"
    target.write_text(
        "#include <stddef.h>\n#include <stdint.h>\n"
        "int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);\n"
        "int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)\n"
        f"{{ (void)size; return *(const volatile uint8_t *)(data + {offset}); }}\n",
        encoding="ascii",
    )
    (tmp_path / "inputs").mkdir()
    (tmp_path / "inputs" / "one").write_bytes(bytes(100))
    plain = [flag for flag in FLAGS if "sanitize" not in flag]
    run(["cc", *plain, target, FOLDER / "replay.c", "-o", "replay"], tmp_path)
    done = finished([tmp_path / "replay", "inputs"], tmp_path)
    assert done.returncode == -signal.SIGSEGV
