# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Options and fixtures of the benchmark suite, and the ratios that follow its tables.

Each group has a peer or a limit: a test with the mark `peer`. After the tables, one line for each
group and function says how its time per item compares with the times of the group's peers.
"""

import ctypes
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

BENCH = Path(__file__).resolve().parent
# Source tree of the installed package. bench/compare.py sets it for an earlier revision.
SOURCE = Path(os.environ.get("ZANON_BENCH_SOURCE", BENCH.parent))
sys.path.append(str(BENCH))  # for the modules next to the tests

from measuring import Measure, Size  # noqa: E402

from zanon_net.bench.machine import describe_machine  # noqa: E402

ROUNDS, PEER_ROUNDS = 5, 2


def cpu_seconds() -> float:
    """Returns the CPU seconds of this process and of its children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the suite."""
    group = parser.getgroup("zanon_net benchmarks")
    group.addoption("--factor", type=float, default=1.0, help="factor of all sizes (%(default)s)")
    group.addoption("--rounds", type=int, default=0, help="rounds of each function; 0: the usual")


def pytest_configure(config: pytest.Config) -> None:
    """Declares the mark of peers."""
    config.addinivalue_line("markers", "peer: a program or a limit to compare a group with")


def pytest_benchmark_generate_machine_info() -> dict[str, str | int]:
    """Returns the machine for the file of figures. The usual description takes a second."""
    return describe_machine()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Measures CPU time, unless a test has a clock of its own."""
    for item in items:
        if item.get_closest_marker("benchmark") is None:
            item.add_marker(pytest.mark.benchmark(timer=cpu_seconds))


@pytest.fixture(scope="session")
def size(pytestconfig: pytest.Config) -> Size:
    """Returns the size that --factor sets."""
    return Size(pytestconfig.getoption("--factor"))


@pytest.fixture
def measure(benchmark: Any, request: pytest.FixtureRequest) -> Measure:
    """Returns the function that measures the one job of a test.

    It takes the group, the job, the number of items that the job processes, and a function that
    prepares the job's arguments before each round. Other facts are printed behind the ratio; a fact
    may be a function, which is called after the job. In the ratios a function has the name of the
    parameter `who`, or the test's own name.
    """
    peer = request.node.get_closest_marker("peer") is not None
    parameters = request.node.callspec.params if hasattr(request.node, "callspec") else {}
    who = parameters.get("who", request.node.originalname.removeprefix("test_"))
    rounds = request.config.getoption("--rounds") or (PEER_ROUNDS if peer else ROUNDS)

    def run(
        group: str,
        job: Callable[..., Any],
        items: int,
        *,
        prepare: Callable[[], tuple[Any, ...]] | None = None,
        who: str = who,
        **facts: Any,
    ) -> Any:
        benchmark.group = group
        known: dict[str, Any] = {}
        benchmark.extra_info |= {"who": who, "items": items, "peer": peer, "facts": known}
        setup = None if prepare is None else lambda: (prepare(), {})
        result = benchmark.pedantic(job, setup=setup, rounds=rounds)
        known |= {name: value() if callable(value) else value for name, value in facts.items()}
        return result

    return run


@pytest.fixture(scope="session")
def build_c(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., ctypes.CDLL]:
    """Returns the function that makes a library of a file of bench/ and of files of csrc/."""
    folder = tmp_path_factory.mktemp("libraries")

    def build(file: str, *sources: str) -> ctypes.CDLL:
        out = folder / f"{file}.so"
        csrc = SOURCE / "csrc"
        parts = [path for source in sources for path in sorted(csrc.glob(source))]
        flags = ["-O2", "-fPIC", "-shared", "-D_GNU_SOURCE", f"-I{csrc}", f"-I{csrc}/include"]
        compiler = ["c++", "-std=c++17"] if file.endswith(".cpp") else ["cc", "-std=c11"]
        command = [*compiler, *flags, BENCH / file, *parts, "-lcrypto", "-lm", "-o", out]
        if not out.exists():
            subprocess.run(command, check=True)
        return ctypes.CDLL(str(out))

    return build


@pytest.fixture(scope="session")
def memory() -> Path:
    """Returns a folder whose files lie in memory, if the system has one."""
    shared = Path("/dev/shm")
    return shared if os.access(shared, os.W_OK) else Path(tempfile.gettempdir())


def ratios(found: list[Any]) -> Iterator[str]:
    """Yields a line for each group and function: its least time per item, next to the peers'."""
    groups: dict[str, list[Any]] = defaultdict(list)
    for one in found:
        if one and not one.has_error:
            groups[one.group].append(one)

    def seconds(one: Any) -> float:
        return one.stats.min / one.extra_info["items"]

    for group, members in groups.items():
        peers = [one for one in members if one.extra_info["peer"]]
        for one in members:
            if one in peers:
                continue
            facts = [f"{seconds(one) * 1e9:,.0f} ns an item"]
            facts += [
                f"{seconds(one) / seconds(p):.3g} times the time of {p.extra_info['who']}"
                for p in peers
            ]
            facts += [f"{name} {value}" for name, value in one.extra_info["facts"].items()]
            yield f"{group}; {one.extra_info['who']}: {', '.join(facts)}"


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Prints the ratios behind the tables."""
    lines = list(ratios(config._benchmarksession.benchmarks))  # type: ignore[attr-defined]
    if lines:
        terminalreporter.section("ratios, by the least CPU time of an item")
        for line in lines:
            terminalreporter.write_line(line)
