# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Dataclasses of `_record` behave as the dataclasses of the standard library."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from zanon_net import _record


@_record.dataclass(frozen=True, slots=True)
class Fixed:
    """A class on the top level, which pickle finds by its name."""

    kind: ClassVar[str] = "fixed"

    number: int
    text: str = "x"
    items: list[int] = dataclasses.field(default_factory=list)


def made_by(dataclass: Any, **options: bool) -> Any:
    """The same class, made by one of two decorators."""

    @dataclass(**options)
    class Item:
        """An item."""

        kind: ClassVar[str] = "item"

        number: int
        text: str = "x"
        items: list[int] = dataclasses.field(default_factory=list)

        def __post_init__(self) -> None:
            if self.number < 0:
                raise ValueError(self.number)

    return Item


OPTIONS: list[dict[str, bool]] = [
    {"frozen": True, "slots": True},
    {"frozen": True},
    {"slots": True},
    {"slots": True, "eq": False},
    {},
    {"frozen": True, "slots": True, "kw_only": True},
]
USES: list[Callable[[Any], object]] = [
    lambda kind: kind(number=1),
    lambda kind: kind(1, "y", items=[2]),
    lambda kind: kind(),
    lambda kind: kind(1, number=2),
    lambda kind: kind(1, "y", [], 4),
    lambda kind: kind(number=1, size=3),
    lambda kind: kind(number=-1),
    lambda kind: kind(number=1) == kind(number=1, text="x"),
    lambda kind: kind(number=1) != kind(number=2),
    lambda kind: kind(number=1) == 1,
    lambda kind: hash(kind(number=1, items=())) == hash(kind(number=1, items=())),
    lambda kind: setattr(kind(number=1), "number", 2),
    lambda kind: delattr(kind(number=1), "number"),
    lambda kind: dataclasses.asdict(kind(number=1)),
    lambda kind: dataclasses.replace(kind(number=1), text="z"),
    lambda kind: [field.name for field in dataclasses.fields(kind)],
    lambda kind: copy.deepcopy(kind(number=1, items=[[2]])),
    lambda kind: kind(number=1).items is kind(number=1).items,
    lambda kind: list(inspect.signature(kind).parameters),
    lambda kind: kind.__match_args__,
    lambda kind: kind.__doc__,
]


def outcome(use: Callable[[Any], object], kind: Any) -> str:
    """The result of a use, or the kind of its error."""
    try:
        return repr(use(kind))
    except (AttributeError, TypeError, ValueError) as error:
        return type(error).__name__


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_each_use_has_the_result_of_a_dataclass(options: dict[str, bool]) -> None:
    ours, theirs = (made_by(module.dataclass, **options) for module in (_record, dataclasses))
    found = [outcome(use, ours) for use in USES]
    assert found == [outcome(use, theirs) for use in USES]
    assert len(set(found)) > 10


def test_a_call_that_does_not_fit_says_why() -> None:
    with pytest.raises(TypeError, match=r"^Fixed\(\): missing a required argument: 'number'$"):
        Fixed()  # type: ignore[call-arg]


def test_fixed_values_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(Fixed(1, items=[2]))) == Fixed(1, "x", [2])


def test_without_init_the_class_has_its_own() -> None:
    @_record.dataclass(frozen=True, init=False)
    class Own:
        number: int

        def __init__(self) -> None:
            object.__setattr__(self, "number", 7)

    assert repr(Own()).endswith("Own(number=7)")
