# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Which bits of a hash make two attributes, or two users, different ones."""

import ctypes
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

import pytest
from support.small_ztable import Config, Id, Observation, load

pytestmark = pytest.mark.source

WINDOW = 1000
BASE = Id(0x0123456789ABCDEF, 0xA5A5A5A5A5A5A5A5)
USER = 0x7B00000089ABCDEF


class Table:
    """A table that is given hashes as they are."""

    def __init__(self, layout: str, z: int, keep: int) -> None:
        self.c = load(layout)
        self.handle = ctypes.c_void_p()
        config = Config(ctypes.sizeof(Config), z, WINDOW, keep, 10_000, 10_000, 0, 256)
        assert self.c.zn_ztable_open(ctypes.byref(self.handle), ctypes.byref(config), None) == 0

    def observe(self, user: int, attribute: Id) -> bool:
        o = Observation(1, user, attribute)
        return bool(self.c.zn_ztable_observe(self.handle, ctypes.byref(o)) == 0)

    def check(self) -> None:
        assert self.c.zn_ztable_check(self.handle) is None

    def close(self) -> None:
        self.c.zn_ztable_close(self.handle)


Made = Callable[[], AbstractContextManager[Table]]


@pytest.fixture(params=[("default", 0), ("default", 5), ("small", 0), ("small", 5)])
def made(request: pytest.FixtureRequest) -> Made:
    """Makes an empty table, which is checked when it is closed."""
    layout, keep = request.param

    @contextmanager
    def made() -> Iterator[Table]:
        table = Table(layout, 5, keep)
        yield table
        table.check()
        table.close()

    return made


@pytest.fixture
def table(made: Made) -> Iterator[Table]:
    with made() as table:
        yield table


def test_each_of_112_bits_makes_another_attribute(made: Made) -> None:
    """All of the low half, 40 bits of the high half, and its upper eight, which the index
    compares."""
    for bit in (*range(64), *range(64, 64 + 40), *range(120, 128)):
        other = Id(BASE.lo ^ 1 << bit if bit < 64 else BASE.lo, BASE.hi ^ (1 << bit) >> 64)
        with made() as table:
            for i in range(4):
                assert not table.observe(i, BASE), bit
            assert not table.observe(4, other), bit  # the first of its own
            assert table.observe(4, BASE), bit


def test_each_of_forty_bits_makes_another_user(made: Made) -> None:
    for bit in (*range(32), *range(56, 64)):
        with made() as table:
            for i in range(3):
                assert not table.observe(USER + 1000 + i, BASE), bit
            assert not table.observe(USER, BASE), bit
            assert not table.observe(USER, BASE), bit
            assert table.observe(USER ^ 1 << bit, BASE), bit


def test_the_other_bits_of_a_user_can_only_suppress(table: Table) -> None:
    for bit in range(32, 56):
        assert not table.observe(USER ^ 1 << bit, BASE)


def test_attributes_of_one_bucket(table: Table) -> None:
    """Hundreds that an index cannot tell apart by what it looks at first: slower, but right."""
    crowd = [Id(BASE.lo, BASE.hi ^ i) for i in range(300)]
    for attribute in crowd:
        for user in range(4):
            assert not table.observe(user, attribute)
    table.check()
    assert all(table.observe(4, attribute) for attribute in crowd)
