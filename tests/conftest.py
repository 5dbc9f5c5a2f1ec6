# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all tests: captures, and a skip or a failure where one is missing."""

import base64
import gc
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import engine
from support.c_build import compiler
from support.examples import EVERY_CASE, examples, representatives
from support.paths import ROOT
from support.shared import KEPT, made_again, made_once, remember
from support.time_limits import (  # noqa: F401
    pytest_timeout_cancel_timer,
    pytest_timeout_set_timer,
    pytest_xdist_make_scheduler,
)

# No deadlines, because machines are busy and sanitizers slow. The source of a test determines its
# examples, so that every run tries the same examples.
PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("patient", derandomize=True, max_examples=examples(100), **PATIENT)
# `make test-random` tries other examples, by a seed.
settings.register_profile("random", derandomize=False, print_blob=True, **PATIENT)
# Under sanitizers C is several times slower; `make test` has tried more of the same.
settings.register_profile("sanitized", settings.get_profile("ci"), max_examples=30)
settings.load_profile("patient")

# Seconds for which Hypothesis makes a failing example smaller. Hypothesis has no setting for its
# default, 300, which is long for a run with several failing tests.
engine.MAX_SHRINKING_SECONDS = 60

# A shell has what it begins in the background ignore Ctrl-C, and the tests of it would wait for it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """Lets each worker begin with other folders, so that a module's assertions, which pytest
    rewrites and caches, are rewritten by one worker instead of all. The garbage collector is off
    meanwhile, and later passes over the collected tests, which stay until the end."""
    if "PYTEST_XDIST_WORKER" in os.environ and session.config.args == ["tests"]:
        worker = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
        tests = {path.parent for path in (ROOT / "tests").glob("*/test_*.py")}
        ignored = {Path(path).resolve() for path in session.config.option.ignore or ()}
        folders = [f"tests/{path.name}" for path in sorted(tests - ignored)]
        first = worker * len(folders) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        session.config.args = folders[first:] + folders[:first]
    gc.disable()
    yield
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Selects representatives of families. Several workers begin with the files that take long, so
    that none is left at the end. The other files have an order that looks random: tests that wait
    are in files with similar names, and the processors would be idle if these ran together."""
    if not EVERY_CASE:
        chosen = representatives(items)
        ids = {item.nodeid for item in chosen}
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in ids])
        items[:] = chosen
    if "PYTEST_XDIST_WORKER" in os.environ:
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        slow |= {item.path for item in items if "property" in item.path.parts}
        items.sort(key=lambda one: (one.path not in slow, crc32(one.path.name.encode()), one.path))


def found(path: Path) -> Path:
    """A file that comes with these tests. Missing, it skips the test, or fails it with CI=true."""
    if not path.exists():
        reason = f"{path.name} is missing beside the tests"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    return path


@pytest.fixture(scope="session", autouse=True)
def _folder_of_the_run(tmp_path_factory: pytest.TempPathFactory) -> None:
    remember(tmp_path_factory)


@pytest.fixture
def hangups_end() -> Iterator[None]:
    """SIGHUP has its usual effect on processes of the test, also if the tests run under nohup."""
    former = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, former)


@pytest.fixture(scope="session")
def demo_pcap() -> Path:
    """The demo's capture."""
    return found(ROOT / "pcaps" / "demo.pcap")


@pytest.fixture(scope="session")
def demo_truth() -> Path:
    """What the demo's capture shows."""
    return found(ROOT / "pcaps" / "demo.truth.jsonl")


@pytest.fixture(scope="session")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A key for tests that look for real addresses in the output.

    Crypto-PAn maps an address to itself with a probability of 2^-14 (half of its bits' blocks equal
    their neighbour's), so under random keys such a test would fail now and then.
    """
    path = tmp_path_factory.mktemp("keys") / "fixed"
    path.write_bytes(base64.b64encode(bytes(range(7, 39))) + b"\n")
    path.chmod(0o600)
    return str(path)


@pytest.fixture(scope="session")
def needs_tshark() -> None:
    """Skips the test if the audit finds no tshark."""
    from zanon_net.audit.raw import tshark

    if tshark.find() is None:
        pytest.skip("tshark is not installed: `make test` installs it from Debian")


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture of 20,000 lookups, 50 ms apart."""
    from support.parts import many_lookups  # with pyarrow, which few tests wait for

    def make(folder: Path) -> None:
        many_lookups(folder / "many.pcap")

    return made_once(tmp_path_factory, "many", make) / "many.pcap"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real captures; optional, because their licences keep them out of this tree."""
    folder = ROOT.parent / "shared" / "corpus"
    if not (folder / "truth.jsonl").exists():
        pytest.skip("the corpus of real captures is not beside this tree (../shared/corpus)")
    return folder


@pytest.fixture(scope="session")
def c_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The output of `make lib`: libzanon.a and .so, their headers, their pkg-config file. The next
    run compiles only the sources that changed."""
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    # A compiler does without the sanitizer that Python itself may run under, and this make without
    # what one around it may have told its own programs.
    without = ("LD_PRELOAD", "MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    environment = {k: v for k, v in os.environ.items() if k not in without}

    def make(folder: Path) -> None:
        done = subprocess.run(
            ["make", "-s", "-j2", "lib", f"BUILD={folder}", "OPTIMIZE=-O0"],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "warning" not in done.stderr

    sources = sorted(path.as_posix() for path in (ROOT / "csrc").rglob("*.[ch]"))
    key = "\n".join([compiler(), (ROOT / "Makefile").read_text("utf-8"), *sources])
    made_once(tmp_path_factory, "library", lambda _folder: made_again("library", key, make))
    return KEPT / "library"
