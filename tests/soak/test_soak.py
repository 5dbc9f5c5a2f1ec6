# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Ten million random observations, none released against an exact oracle; the oracle itself.

`make soak` runs a billion with the same program.
"""

import os
import random
from pathlib import Path

import pytest
from oracle.ztable import ZOracle
from support.c_build import LAYOUTS, SANITIZE, ZTABLE, compile_c, run
from support.examples import EVERY_CASE, each

pytestmark = pytest.mark.source

FOLDER = Path(__file__).resolve().parent
SOURCES = [*sorted(FOLDER.glob("*.c")), *ZTABLE]
WRONG = {"over-releases", "wrong", "broken-invariants"}


@pytest.fixture(scope="module", params=LAYOUTS)
def layout(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def program(layout: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("soak") / "soak_ztable"
    return compile_c(out, SOURCES, "-O2", *LAYOUTS[layout])


def numbers(printed: str) -> dict[str, str]:
    """What the program says of each thing it counts."""
    return dict(line.split(" ", 1) for line in printed.splitlines())


@pytest.mark.slow
@pytest.mark.skipif("ZANON_SANITIZE" in os.environ, reason="a program of its own, as without")
def test_millions_of_observations(
    program: Path, layout: str, capsys: pytest.CaptureFixture[str]
) -> None:
    n = 10_000_000 if EVERY_CASE else 1_500_000
    told = numbers(run([program, "-n", str(n), "-s", "1"]))
    with capsys.disabled():
        print(f"\n{layout} layout:", *(f"{name} {told[name]}" for name in ("observations", *WRONG)))
    assert told.pop("observations") == str(n)
    assert {name: told.pop(name) for name in WRONG} == dict.fromkeys(WRONG, "0")
    assert int(told.pop("rounds")) > n // 20_000
    assert int(told.pop("compared-both-ways")) > n // 10
    assert int(told.pop("released")) > n // 10
    assert len(told) == 9  # each order of time: some released, some suppressed
    for order, counts in told.items():
        released, observations = map(int, counts.split(" of "))
        assert 0.01 < released / observations < 0.9, order
        assert observations > n // 100, order


@pytest.mark.slow
@pytest.mark.sanitized
def test_under_sanitizers(layout: str, tmp_path: Path) -> None:
    program = compile_c(tmp_path / "soak", SOURCES, "-O1", *SANITIZE, *LAYOUTS[layout])
    told = numbers(run([program, "-n", "1000000", "-s", "2"]))
    assert {name: told[name] for name in WRONG} == dict.fromkeys(WRONG, "0")


def test_it_notices_a_window_that_is_a_nanosecond_too_long(program: Path) -> None:
    told = numbers(run([program, "-n", "1000000", "-s", "3", "-b"], code=1))
    assert int(told["over-releases"]) > 100
    assert told["broken-invariants"] == "0"


def test_the_same_seed_is_the_same_run(program: Path) -> None:
    first, again, other = (run([program, "-n", "20000", "-s", seed]) for seed in "445")
    assert first == again != other


@each("seed", range(40))
def test_its_oracle_is_brute_force(seed: int, program: Path) -> None:
    rng = random.Random(seed)
    window_ns = rng.choice([1, 2, 10, 100])
    oracle, t_ns = ZOracle(1, window_ns), 1000
    lines, expected = [], []
    for _ in range(400):
        t_ns = max(0, t_ns + rng.choice([0, 1, 1, 3, -1, -2, window_ns, -window_ns, 10, -10]))
        observation = t_ns, rng.randrange(12), rng.randrange(3)
        lines.append(" ".join(map(str, observation)) + "\n")
        oracle.observe(*observation)
        expected.append(oracle.users(t_ns, observation[2]))
    answers = run([program, "-o", str(window_ns)], "".join(lines))
    assert list(map(int, answers.split())) == expected
    assert len(set(expected)) > 3 or window_ns < 10
