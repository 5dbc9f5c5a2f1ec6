# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The command, called in this process or in one of its own."""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryFile
from threading import Thread

import pytest

import zanon_net
from support.paths import ROOT
from zanon_net.cli import main

DEMO = ROOT / "pcaps" / "demo.pcap"
TRUTH = DEMO.with_name("demo.truth.jsonl")
# Child processes import the package that this one uses.
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(zanon_net.__file__).parents[1])}
COMMAND = (sys.executable, "-m", "zanon_net")
Captured = pytest.CaptureFixture[str]
LIMITING = """
import os, resource, sys
import zanon_net.cli.entry
octets = int(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (octets, octets))
os.execv(sys.argv[2], sys.argv[2:])
"""


def limited(octets: int, *command: str) -> list[str]:
    """The command under a limit on the size of files, in bytes."""
    return [sys.executable, "-c", LIMITING, str(octets), *command]


def run_main(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


@contextmanager
def _descriptor(number: int, target: int) -> Iterator[None]:
    """Inside, a descriptor of this process is another one."""
    before = os.dup(number)
    os.dup2(target, number)
    try:
        yield
    finally:
        os.dup2(before, number)
        os.close(before)


def _fill(descriptor: int, content: bytes) -> None:
    with suppress(BrokenPipeError), open(descriptor, "wb") as pipe:
        pipe.write(content)


def run_here(*arguments: object, stdin: bytes = b"") -> CompletedProcess[bytes]:
    """The command in this process, which costs less than a new one, with streams of its own."""
    reading, writing = os.pipe()
    writer = Thread(target=_fill, args=(writing, stdin))
    writer.start()
    before = sys.stdin, sys.stdout, sys.stderr
    with ExitStack() as stack:
        stack.callback(writer.join)
        source = stack.enter_context(open(reading))  # noqa: PTH123
        out, err = (stack.enter_context(TemporaryFile()) for _ in range(2))
        texts = [os.fdopen(os.dup(file.fileno()), "w") for file in (out, err)]
        for number, file in enumerate((source, out, err)):
            stack.enter_context(_descriptor(number, file.fileno()))
        sys.stdin, (sys.stdout, sys.stderr) = source, texts
        try:
            code = run_main(*arguments)
        finally:
            sys.stdin, sys.stdout, sys.stderr = before
            for text in texts:
                text.close()
        told = [os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0) for file in (out, err)]
    return CompletedProcess(arguments, code, *told)


def manifest_of(folder: str) -> dict[str, object]:
    manifest: dict[str, object] = json.loads(Path(folder, "manifest.json").read_bytes())
    return manifest
