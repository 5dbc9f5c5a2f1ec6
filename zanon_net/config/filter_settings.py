# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The settings of `zanon-net filter`, checked when they are made.

Its options and the fields here carry the same names. A wrong value raises `ConfigError` with a text
that starts with the field's name.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zanon_net._core import ROW_FORMATS, TIME_UNITS
from zanon_net.config.parse import (
    format_duration,
    key_path,
    new_file,
    parse_duration,
    reject,
    whole,
)
from zanon_net.config.settings import COUNT_MAX, Z_MAX, Limits

SUPPRESSED = ("drop", "blank")
PASS_MAX = 16
NAME_BYTES_MAX = 1000

_LIMITS = Limits()


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterConfig:
    """What is read, what is decided and what is written.

    z: users that must share an attribute, >= 1; 1 releases every attribute.
    window: for how long an exposure counts; "1h", or ns.
    suppressed: "drop" rows with a suppressed attribute, or "blank" the attribute.
    time, user, attribute: the columns' names.
    passed: further columns, written as they are: nothing protects what is in them.
    no_user: the user's column is left out.
    rotate: for how long one key makes the pseudonyms; "1h", or ns; None: as long as the window.
    key_file: a file made by `zanon-net key new`; None: a random key that nobody ever sees.
    format: "csv", "jsonl", or "auto": JSON Lines when the first character of all is "{".
    to: the output's format; "auto": the input's.
    time_unit: what a time counts from 1970 on: "s", "ms", "us", "ns"; or "iso", ISO 8601.
    delimiter: between CSV's columns, one character or "tab".
    header: the header line of CSV that has none, such as "time,user,attribute"; empty: it has one.
    strict: the first row that cannot be read ends the run.
    popularity: a file for counts of users per attribute and window, for the operator only.
    max_tuples, max_attributes: the z-table's caps, at which only more is suppressed.
    """

    z: int = 20
    window: int | str = "1h"
    suppressed: str = "drop"
    time: str = "time"
    user: str = "user"
    attribute: str = "attribute"
    passed: Sequence[str] = ()
    no_user: bool = False
    rotate: int | str | None = None
    key_file: str | os.PathLike[str] | None = None
    format: str = "auto"
    to: str = "auto"
    time_unit: str = "iso"
    delimiter: str = ","
    header: str = ""
    strict: bool = False
    popularity: str | os.PathLike[str] | None = None
    max_tuples: int = _LIMITS.max_tuples
    max_attributes: int = _LIMITS.max_attributes

    def __post_init__(self) -> None:
        object.__setattr__(self, "z", whole("z", self.z, 1, Z_MAX))
        parse_duration("window", self.window)
        if self.rotate is not None:
            parse_duration("rotate", self.rotate)
        key_path("key_file", self.key_file)
        new_file("popularity", self.popularity)
        for name in ("max_tuples", "max_attributes"):
            object.__setattr__(self, name, whole(name, getattr(self, name), 1, COUNT_MAX))
        _one_of("suppressed", self.suppressed, SUPPRESSED)
        _one_of("format", self.format, ROW_FORMATS)
        _one_of("to", self.to, ROW_FORMATS)
        _one_of("time_unit", self.time_unit, TIME_UNITS)
        self._check_columns()
        _check_delimiter(self.delimiter)
        if self.header:
            _utf8("header", self.header)
            if self.format == "jsonl":
                reject("header", "JSON Lines name their columns themselves; leave it out")

    def _check_columns(self) -> None:
        if len(self.passed) > PASS_MAX:
            reject("pass", f"at most {PASS_MAX} columns can be passed on")
        taken: set[str] = set()
        for name, column in self._named_columns():
            if not column or len(_utf8(name, column)) > NAME_BYTES_MAX:
                reject(name, "must be the name of a column")
            if column in taken:
                reject(name, f"{column!r} is named already; each column has one role")
            taken.add(column)

    def _named_columns(self) -> list[tuple[str, str]]:
        named = [("time", self.time), ("user", self.user), ("attribute", self.attribute)]
        return named + [("pass", column) for column in self.passed]

    @property
    def window_ns(self) -> int:
        """The window in nanoseconds."""
        return parse_duration("window", self.window)

    @property
    def rotate_ns(self) -> int:
        """How long an epoch lasts, in nanoseconds."""
        return self.window_ns if self.rotate is None else parse_duration("rotate", self.rotate)

    def sieve_arguments(self) -> dict[str, Any]:
        """The keyword arguments of `_core.Sieve`."""
        return {
            "z": self.z,
            "window_ns": self.window_ns,
            "rotate_ns": self.rotate_ns,
            "key_file": None if self.key_file is None else os.fspath(self.key_file),
            "max_tuples": self.max_tuples,
            "max_attributes": self.max_attributes,
            "with_user": not self.no_user,
            "keep_suppressed": self.suppressed == "blank",
            "columns": [column.encode() for _name, column in self._named_columns()],
            "format": self.format,
            "to": self.to,
            "unit": self.time_unit,
            "delimiter": b"\t" if self.delimiter == "tab" else self.delimiter.encode(),
            "header": self.header.encode(),
            "strict": self.strict,
            "popularity": self.popularity is not None,
        }

    def to_dict(self) -> dict[str, Any]:
        """The settings as the manifest has them; neither the key nor its path."""
        return {
            "z": self.z,
            "window": format_duration(self.window_ns),
            "window_ns": self.window_ns,
            "suppressed": self.suppressed,
            "time": self.time,
            "user": self.user,
            "attribute": self.attribute,
            "pass": list(self.passed),
            "no_user": self.no_user,
            "rotate": format_duration(self.rotate_ns),
            "rotate_ns": self.rotate_ns,
            "key_mode": "ephemeral" if self.key_file is None else "derived",
            "format": self.format,
            "to": self.to,
            "time_unit": self.time_unit,
            "delimiter": self.delimiter,
            "header": bool(self.header),
            "strict": self.strict,
            "popularity": self.popularity is not None,
            "max_tuples": self.max_tuples,
            "max_attributes": self.max_attributes,
        }


def _one_of(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        reject(name, f"must be one of {', '.join(known)}, not {value!r}")


def _utf8(name: str, text: str) -> bytes:
    """`text` as bytes; refused when it is no text, or steers a terminal."""
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        reject(name, "is not UTF-8")
    if any((ord(c) < 0x20 and c != "\t") or 0x7F <= ord(c) < 0xA0 for c in text):
        reject(name, "holds a control character")
    return encoded


def _check_delimiter(value: str) -> None:
    if value in ("tab", "\t"):
        return
    if len(value) != 1 or not value.isascii() or not value.isprintable() or value.isalnum():
        reject("delimiter", "must be one character such as ',' ';' '|', or the word tab")
    if value in "\"'":
        reject("delimiter", "a quote cannot part columns")
