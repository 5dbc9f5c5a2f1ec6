# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Generations of the hashes that a counter gets: which a time has, their keys, and their end."""

import hashlib
import hmac
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.memory import memory_of

from zanon_net import _core
from zanon_net._core import Keys
from zanon_net.errors import ConfigError

pytestmark = pytest.mark.source
MASTER = bytes(range(32))
KEY_LINE = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n"

periods = st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(0, 30)).map(
    lambda drawn: (drawn[0] + 2 * drawn[1] + drawn[2], drawn[0], drawn[1])
)


@pytest.fixture(scope="module")
def key_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("key") / "zanon.key"
    path.write_text(KEY_LINE)
    path.chmod(0o600)
    return path


@pytest.fixture(scope="module")
def keys(key_file: Path) -> Keys:
    return Keys(60, str(key_file))


def keyed(key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, hashlib.sha256).digest()


def count_key(generation: int) -> bytes:
    """K_count, by HKDF-SHA256."""
    info = b"zanon-net/1/count" + generation.to_bytes(8, "big")
    return keyed(keyed(bytes(32), MASTER), info + b"\1")


@given(periods, st.integers(0, 10**6))
def test_a_vote_counts_wherever_its_window_reaches(
    keys: Keys, chosen: tuple[int, int, int], t_ns: int
) -> None:
    length, window, _epoch = chosen
    generations = _core.CountGenerations(keys, *chosen)
    counted = {t // length + 1 for t in range(t_ns, t_ns + window + 1)}
    first, last = generations.of_vote(t_ns)
    assert set(range(first, last + 1)) == counted
    assert first == t_ns // length + 1
    assert last <= first + 1


@given(periods, st.integers(0, 10**6))
def test_a_client_is_known_to_all_votes_of_its_epoch_and_the_next(
    keys: Keys, chosen: tuple[int, int, int], t_ns: int
) -> None:
    _length, _window, epoch = chosen
    generations = _core.CountGenerations(keys, *chosen)
    begin = t_ns // epoch * epoch
    asked = {g for t in range(begin, begin + 2 * epoch) for g in generations.of_vote(t)}
    first, last = generations.of_client(t_ns)
    assert set(range(first, last + 1)) == asked
    assert last <= first + 1


def test_without_a_length_there_is_one_generation(keys: Keys) -> None:
    generations = _core.CountGenerations(keys, 0, 60, 60)
    for t_ns in (0, 10**18, (1 << 63) - 1):
        assert generations.of_vote(t_ns) == generations.of_client(t_ns) == (0, 0)
        assert generations.forget(t_ns) == 1


def test_the_end_of_time_has_a_generation(keys: Keys) -> None:
    generations = _core.CountGenerations(keys, 180, 60, 60)
    last = (1 << 63) - 1
    assert generations.of_vote(last) == generations.of_client(last) == (last // 180 + 1,) * 2


@pytest.mark.parametrize("generation", [0, 1, 2, 1 << 40])
def test_hashes_are_under_the_key_of_their_generation(keys: Keys, generation: int) -> None:
    generations = _core.CountGenerations(keys, 180, 60, 60)
    digest = keyed(count_key(generation), b"U" + bytes(16))
    halves = [int.from_bytes(digest[at : at + 8], "little") for at in (0, 8)]
    assert generations.id(generation, ord("U"), bytes(16)) == tuple(halves)


@pytest.mark.parametrize("length", [-1, 1, 179])
def test_generations_that_are_too_short_are_refused(keys: Keys, length: int) -> None:
    with pytest.raises(ConfigError, match="a window and two epochs"):
        _core.CountGenerations(keys, length, 60, 60)
    with pytest.raises(ConfigError, match="key file"):
        _core.CountGenerations(Keys(60), 180, 60, 60)


@given(periods, st.lists(st.integers(0, 400), min_size=1, max_size=40))
def test_few_keys_are_held_and_what_is_needed_again_is_the_same(
    keys: Keys, chosen: tuple[int, int, int], times: list[int]
) -> None:
    """Whether time goes on or is set back."""
    generations, known = _core.CountGenerations(keys, *chosen), {}
    for t_ns in times:
        for generation in {*generations.of_vote(t_ns), *generations.of_client(t_ns)}:
            found = generations.id(generation, ord("n"), b"a.example")
            assert known.setdefault(generation, found) == found
        assert generations.forget(t_ns) <= 3
    assert len(set(known.values())) == len(known)


PROGRAM = """
import sys
from zanon_net._core import CountGenerations, Keys
keys = Keys(60, sys.argv[1])
generations = CountGenerations(keys, 180, 60, 60)
generations.id(1, ord("n"), b"a.example")
print(generations.forget(0), flush=True)
sys.stdin.readline()
generations.id(2, ord("n"), b"a.example")
print(generations.forget(1000), flush=True)
sys.stdin.readline()
"""


@pytest.mark.skipif("ZANON_SANITIZE" in os.environ, reason="a sanitizer's own memory is endless")
def test_a_past_key_is_wiped(key_file: Path) -> None:
    """What HMAC starts from: the digest's state after the key's block. OpenSSL keeps the key."""
    command = [sys.executable, "-c", PROGRAM, str(key_file)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        held = []
        for _ in range(2):
            held.append(int(process.stdout.readline()))
            memory = b"".join(memory_of(process.pid))
            held.append(count_key(1) in memory)
            process.stdin.write("\n")
            process.stdin.flush()
    assert held == [1, True, 0, False]
