# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The hash that replaces a user or an attribute is SipHash-1-3 as published."""

import ctypes
import os
import random
import struct
import subprocess
import sys

import pytest
from oracle.siphash import MASK, START, blocks_of, rounds, siphash
from support.c_build import CSRC, SANITIZE, compile_c
from support.examples import each
from support.small_ztable import Id

pytestmark = pytest.mark.source

DICE = random.Random(13)
KEY = DICE.randbytes(16)
MESSAGES = [DICE.randbytes(n) for n in (*range(42), 253)]


def siphash128(key: bytes, blocks: list[int], n: tuple[int, int] = (1, 3)) -> tuple[int, int]:
    """The same with 128 bits, as its authors' program has them."""
    v = [word ^ k for word, k in zip(START, struct.unpack("<4Q", 2 * key), strict=True)]
    v[1] ^= 0xEE
    for block in blocks:
        v[3] ^= block
        rounds(v, n[0])
        v[0] ^= block
    halves = []
    for turn, constant in ((2, 0xEE), (1, 0xDD)):
        v[turn] ^= constant
        rounds(v, n[1])
        halves.append(v[0] ^ v[1] ^ v[2] ^ v[3])
    return halves[0], halves[1]


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """csrc/util/hash as a library."""
    out = tmp_path_factory.mktemp("hash") / "hash.so"
    flags = SANITIZE if "ZANON_SANITIZE" in os.environ else []
    sources = [CSRC / "util" / f"{name}.c" for name in ("hash", "error")]
    compile_c(out, sources, "-O1", "-fPIC", "-shared", *flags)
    library = ctypes.CDLL(str(out))
    handle, size = ctypes.c_void_p, ctypes.c_size_t
    library.zn_hash64.argtypes = [handle, ctypes.c_char_p, size]
    library.zn_hash64.restype = ctypes.c_uint64
    library.zn_hash_words.argtypes = [handle, handle, size]
    library.zn_hash_words.restype = ctypes.c_uint64
    library.zn_hash128.argtypes = [handle, ctypes.c_uint8, ctypes.c_char_p, size]
    library.zn_hash128.restype = Id
    return library


def test_the_oracle_has_the_published_values() -> None:
    """Those of SipHash-2-4: appendix A of the paper, and the first of vectors.h with 128 bits."""
    key = bytes(range(16))
    assert siphash(key, blocks_of(bytes(range(15))), (2, 4)) == 0xA129CA6149BE45E5
    wide = siphash128(key, blocks_of(b""), (2, 4))
    assert struct.pack("<2Q", *wide).hex() == "a3817f04ba25a8e66df67214c7550293"


@pytest.mark.skipif(sys.hash_info.algorithm != "siphash13", reason="this Python hashes otherwise")
def test_the_oracle_has_what_python_has() -> None:
    """Whose hash of bytes is SipHash-1-3, under a key of zeros where it is told so."""
    program = "import sys; print(*(hash(bytes.fromhex(text)) for text in sys.argv[1:]))"
    command = [sys.executable, "-c", program, *(message.hex() for message in MESSAGES[1:])]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    for message, told in zip(MESSAGES[1:], done.stdout.split(), strict=True):
        assert siphash(bytes(16), blocks_of(message)) == int(told) & MASK


@each("message", MESSAGES)
def test_of_bytes(c: ctypes.CDLL, message: bytes) -> None:
    assert c.zn_hash64(KEY, message, len(message)) == siphash(KEY, blocks_of(message))


@pytest.mark.parametrize("message", MESSAGES[::8], ids=len)
def test_of_words(c: ctypes.CDLL, message: bytes) -> None:
    assert c.zn_hash_words(KEY, message, len(message) // 8) == c.zn_hash64(
        KEY, message, len(message) // 8 * 8
    )


@each("message", MESSAGES)
def test_of_an_identity(c: ctypes.CDLL, message: bytes) -> None:
    """The namespace is a word in front, which the length does not count."""
    for domain in (0, 1, 255):
        found = c.zn_hash128(KEY, domain, message, len(message))
        assert (found.lo, found.hi) == siphash128(KEY, [domain, *blocks_of(message)])
