# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Caps against invented users, as a library built from csrc/anonymity with a z-table whose records
have five users at most."""

import ctypes
import os
import weakref
from functools import cache
from pathlib import Path

from oracle.user_caps import CappedVote

from support.c_build import CSRC, LAYOUTS, SANITIZE, ZTABLE, compile_c
from support.shared import built_once
from support.small_ztable import Error, Id, Observation, words

CAPS = ("none", "prefix", "names", "age", "full")  # zn_cap
SOURCES = [CSRC / "anonymity" / f"user_{name}.c" for name in ("caps", "ages")]
SOURCES += [*ZTABLE, *(CSRC / "util" / f"{name}.c" for name in ("addr", "text"))]


class Config(ctypes.Structure):
    """zn_user_caps_config."""

    _fields_ = (
        ("max_per_prefix", ctypes.c_uint32),
        ("prefix_v4_bits", ctypes.c_uint8),
        ("prefix_v6_bits", ctypes.c_uint8),
        ("max_names", ctypes.c_uint32),
        ("min_age_ns", ctypes.c_int64),
        ("window_ns", ctypes.c_int64),
        ("max_tuples", ctypes.c_uint32),
        ("max_attributes", ctypes.c_uint32),
        ("max_users", ctypes.c_uint32),
    )


class Vote(ctypes.Structure):
    """zn_capped_vote."""

    _fields_ = (
        ("observation", ctypes.POINTER(Observation)),
        ("user", ctypes.c_char_p),
        ("is_name", ctypes.c_bool),
    )


@cache
def load(layout: str) -> ctypes.CDLL:
    """The caps as a library with its symbols visible."""
    flags = [*(SANITIZE if "ZANON_SANITIZE" in os.environ else []), *LAYOUTS[layout]]

    def make(folder: Path) -> None:
        compile_c(folder / "caps.so", SOURCES, "-O1", "-fPIC", "-shared", *flags)

    library = ctypes.CDLL(str(built_once(f"user-caps-{layout}", make) / "caps.so"))
    handle = ctypes.c_void_p
    library.zn_user_caps_open.argtypes = [handle, ctypes.POINTER(Config), ctypes.POINTER(Error)]
    library.zn_user_caps_close.argtypes = [handle]
    library.zn_user_caps_vote.argtypes = [handle, ctypes.POINTER(Vote)]
    library.zn_user_caps_ask.argtypes = [handle, ctypes.POINTER(Vote)]
    library.zn_user_caps_is_new.argtypes = [handle, ctypes.c_uint64, ctypes.c_int64]
    library.zn_user_caps_is_new.restype = ctypes.c_bool
    library.zn_user_caps_memory.argtypes = [handle]
    library.zn_user_caps_memory.restype = ctypes.c_size_t
    return library


def hash_of(value: object) -> list[int]:
    return words(repr(value).encode(), 2)


class UserCaps:
    """Caps on users with IPv4 addresses: a network has eight bits, and a user sixteen."""

    def __init__(
        self,
        window_ns: int,
        *,
        max_per_prefix: int = 0,
        max_names: int = 0,
        min_age_ns: int = 0,
        max_tuples: int = 1 << 20,
        max_attributes: int = 1 << 18,
        max_users: int = 1 << 10,
        layout: str = "small",
    ) -> None:
        self.library, self.handle, error = load(layout), ctypes.c_void_p(), Error()
        config = Config(
            max_per_prefix, 8, 8, max_names, min_age_ns, window_ns, max_tuples, max_attributes,
            max_users,
        )  # fmt: skip
        rc = self.library.zn_user_caps_open(ctypes.byref(self.handle), config, error)
        assert rc == 0, error.msg
        weakref.finalize(self, self.library.zn_user_caps_close, self.handle)

    def vote(self, vote: CappedVote) -> str:
        """Returns the cap that refuses the vote."""
        return CAPS[self.library.zn_user_caps_vote(self.handle, self._struct(vote))]

    def ask(self, vote: CappedVote) -> str:
        """Returns the cap that would refuse the vote."""
        return CAPS[self.library.zn_user_caps_ask(self.handle, self._struct(vote))]

    def is_new(self, user: object, t_ns: int) -> bool:
        return bool(self.library.zn_user_caps_is_new(self.handle, hash_of(user)[0], t_ns))

    @property
    def memory(self) -> int:
        return int(self.library.zn_user_caps_memory(self.handle))

    def _struct(self, vote: CappedVote) -> Vote:
        """A vote of a user whose network and number are numbers below 256."""
        attribute, user = hash_of(("attribute", vote.attribute)), hash_of(vote.user)[0]
        self.kept = Observation(vote.t_ns, user, Id(*attribute))
        self.address = bytes(10) + b"\xff\xff" + bytes([vote.network, 0, 0, vote.user % 256])
        return Vote(ctypes.pointer(self.kept), self.address, vote.is_name)
