# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Dataclasses that need no compiler, for modules that commands load at their start.

`dataclasses.dataclass` compiles up to six functions for each class, which takes most of the time
that the import of a small module takes. Here all classes share functions that read the fields.
"""

import dataclasses
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        init: bool = True,
        eq: bool = True,
        **options: bool,
    ) -> Any:
        """As `dataclasses.dataclass`, for classes without `field(init=False)` and the like."""

        def decorate(cls: type) -> type:
            cls = dataclasses.dataclass(init=False, repr=False, eq=False, **options)(cls)
            cls.__record_fields__ = dataclasses.fields(cls)
            cls.__record_defaults__ = tuple(
                (field.name, field.default, field.default_factory)
                for field in cls.__record_fields__
            )
            functions = {"__repr__": _repr}
            if eq:
                functions |= {"__eq__": _eq, "__hash__": _hash if frozen else None}
            if init:
                functions |= {"__init__": _init, "__signature__": _Signature()}
            if frozen:
                functions |= {"__setattr__": _refuse_value, "__delattr__": _refuse_deletion}
                functions |= {"__getstate__": _values, "__setstate__": _set_values}
            for name, function in functions.items():
                if cls.__dict__.get(name) is None:
                    setattr(cls, name, function)
            return cls

        return decorate if cls is None else decorate(cls)


_set = object.__setattr__
_MISSING = dataclasses.MISSING


def _init(self: Any, *values: Any, **named: Any) -> None:
    if values:
        known = self.__match_args__[: len(values)]
        if len(known) < len(values) or not named.keys().isdisjoint(known):
            _refuse_call(self, values, named)
        named |= zip(known, values, strict=True)
    used = 0
    for name, default, factory in self.__record_defaults__:
        if name in named:
            _set(self, name, named[name])
            used += 1
        elif default is not _MISSING:
            _set(self, name, default)
        elif factory is not _MISSING:
            _set(self, name, factory())
        else:
            _refuse_call(self, (), named)
    if used < len(named):
        _refuse_call(self, (), named)
    if hasattr(self, "__post_init__"):
        self.__post_init__()


def _refuse_call(self: Any, values: tuple[Any, ...], named: dict[str, Any]) -> None:
    """Raises TypeError for the arguments of a call that do not fit the fields."""
    try:
        type(self).__signature__.bind(*values, **named)
    except TypeError as error:
        raise TypeError(f"{type(self).__name__}(): {error}") from None


class _Signature:
    """Signature of a class, built when it is read."""

    def __get__(self, _instance: object, owner: Any) -> Signature:
        fields = sorted(owner.__record_fields__, key=lambda field: field.kw_only)
        return Signature(
            [
                Parameter(
                    field.name,
                    Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
                    default=_default(field),
                    annotation=field.type,
                )
                for field in fields
            ]
        )


def _default(field: "dataclasses.Field[Any]") -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return Parameter.empty if field.default is dataclasses.MISSING else field.default


def _values(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in self.__record_fields__]


def _set_values(self: Any, values: list[Any]) -> None:
    for field, value in zip(self.__record_fields__, values, strict=True):
        _set(self, field.name, value)


def _repr(self: Any) -> str:
    pairs = [f"{field.name}={getattr(self, field.name)!r}" for field in self.__record_fields__]
    return f"{type(self).__qualname__}({', '.join(pairs)})"


def _eq(self: Any, other: Any) -> bool:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _hash(self: Any) -> int:
    return hash(tuple(_values(self)))


def _refuse_value(_self: object, name: str, _value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
