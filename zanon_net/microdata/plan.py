# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Plan of a release: its columns and the requirements of its classes, for tables and streams."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from zanon_net.config.parse import column_name, reject, shown, whole
from zanon_net.microdata.partition import Partition, partition_of

QUASI_MAX = 16  # as ZN_GROUPS_COLUMNS_MAX
SENSITIVE_MAX = 16  # as ZN_TUPLE_SENSITIVE_MAX
COUNT_MAX = 2**31
KINDS = ("distinct", "entropy", "recursive")
"""The kinds of l-diversity, by their numbers in csrc/microdata/diversity.h."""
UNKNOWN = ("error", "suppress", "top")

_RECURSIVE = re.compile(r"recursive:([0-9]{1,9}(?:\.[0-9]{1,9})?)")


class Recoding(Protocol):
    """Generalization of a column: a Hierarchy, Round, Prefix, Intervals, Dates or Flat."""

    def hierarchy(self, values: Any) -> Any:
        """Returns the Hierarchy of a column.

        values: the column as an Arrow array, or None if it is unknown, as in a stream.
        """


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The columns of a release and the requirements of each of its classes.

    quasi: the quasi-identifiers, in the order in which they are written, each with its
        generalization. None, or a sequence of names alone, leaves the generalization to the
        command.
    sensitive: the columns whose values must be diverse.
    user: the column of a row's user; None: each row is a user of its own.
    k: users that each class must have.
    l, l_kind: least diversity of each sensitive column: "distinct", "entropy" or "recursive:C".
    max_share: most that one sensitive value may have of a class; None: all of it.
    t: most that a class's sensitive values may differ from the whole's, 0 to 1; None: 1.
    passed: columns that are written as they are, unprotected.
    unknown: treatment of a value that a hierarchy lacks: "error"; "suppress" the row; "top" writes
        it as the hierarchy's root.

    A wrong value raises ConfigError with a text that begins with the field's name.
    """

    quasi: Mapping[str, Recoding | None] | Sequence[str]
    sensitive: str | Sequence[str] = ()
    user: str | None = None
    k: int = 1
    l: int = 1  # noqa: E741
    l_kind: str = "distinct"
    max_share: float | None = None
    t: float | None = None
    passed: Sequence[str] = ()
    unknown: str = "error"

    def __post_init__(self) -> None:
        keep = object.__setattr__
        keep(self, "quasi", _quasi(self.quasi))
        keep(self, "sensitive", _names("sensitive", self.sensitive, SENSITIVE_MAX))
        keep(self, "passed", _names("passed", self.passed, QUASI_MAX))
        if self.user is not None:
            _name("user", self.user)
        keep(self, "k", whole("k", self.k, 1, COUNT_MAX))
        keep(self, "l", whole("l", self.l, 1, COUNT_MAX))
        _kind_of(self.l_kind)
        _share("max_share", self.max_share, above=True)
        _share("t", self.t, above=False)
        if self.unknown not in UNKNOWN:
            reject("unknown", f"must be one of {', '.join(UNKNOWN)}, not {shown(self.unknown)}")
        self._check_roles()
        self._check_sensitive()

    def _check_roles(self) -> None:
        taken: set[str] = set()
        for role, names in (
            ("quasi", self.quasi_columns),
            ("sensitive", self.sensitive_columns),
            ("user", () if self.user is None else (self.user,)),
            ("passed", self.passed),
        ):
            for name in names:
                if name in taken:
                    reject(role, f"{shown(name)} is named already; each column has one role")
                taken.add(name)

    def _check_sensitive(self) -> None:
        if self.sensitive or not self.asks_for_diversity:
            return
        given = {
            "l": self.l > 1,
            "max_share": self.max_share is not None,
            "t": self.t is not None,
            "l_kind": True,
        }
        name = next(name for name, is_given in given.items() if is_given)
        reject(name, "is about sensitive values; name their column with sensitive")

    @property
    def quasi_columns(self) -> tuple[str, ...]:
        """The names of the quasi-identifiers."""
        return tuple(self.quasi)

    @property
    def sensitive_columns(self) -> tuple[str, ...]:
        """The names of the sensitive columns."""
        return tuple(self.sensitive)

    @property
    def written_columns(self) -> tuple[str, ...]:
        """The columns of a release, in their order."""
        return (*self.quasi_columns, *self.sensitive_columns, *self.passed)

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The columns that are read, in their order."""
        user = () if self.user is None else (self.user,)
        return (*self.quasi_columns, *self.sensitive_columns, *user, *self.passed)

    @property
    def recodings(self) -> dict[str, Recoding | None]:
        """The generalization of each quasi-identifier."""
        return dict(self.quasi)  # type: ignore[arg-type]

    @property
    def rule(self) -> dict[str, int | float]:
        """The requirements of each class, by the members of zn_class_rule (microdata/diversity.h).

        kind is an index into KINDS; 1 for max_share or t is no requirement.
        """
        kind, c = _kind_of(self.l_kind)
        return {
            "k": self.k,
            "l": self.l,
            "kind": kind,
            "c": c,
            "max_share": 1.0 if self.max_share is None else float(self.max_share),
            "t": 1.0 if self.t is None else float(self.t),
        }

    @property
    def asks_for_diversity(self) -> bool:
        """True if the plan has requirements on sensitive values."""
        rule = self.rule
        recursive = KINDS[int(rule["kind"])] == "recursive"
        return rule["l"] > 1 or recursive or rule["max_share"] < 1 or rule["t"] < 1

    def partition(self, table: Any, parts: int = 64) -> Partition:
        """Returns parts of a stream that can be released independently, by keys.

        table: rows like the rows of the stream. parts: most parts, of about as many rows. Parts
        that would see fewer than k users of the table are joined.

        Raises ConfigError if even one part has fewer.
        """
        return partition_of(table, self.recodings, user=self.user, k=self.k, parts=parts)

    def to_dict(self) -> dict[str, Any]:
        """Returns the plan as a manifest has it: names of columns and numbers."""
        return {
            "quasi": list(self.quasi_columns),
            "sensitive": list(self.sensitive_columns),
            "user": self.user,
            "k": self.k,
            "l": self.l,
            "l_kind": self.l_kind,
            "max_share": self.max_share,
            "t": self.t,
            "pass": list(self.passed),
            "unknown": self.unknown,
        }


def _quasi(quasi: object) -> dict[str, Any]:
    if isinstance(quasi, str):
        quasi = (quasi,)
    if isinstance(quasi, Mapping):
        recodings = {_name("quasi", name): recoding for name, recoding in quasi.items()}
        for name, recoding in recodings.items():
            if recoding is not None and not callable(getattr(recoding, "hierarchy", None)):
                reject("quasi", f"{shown(name)} is not a Hierarchy, Round, Prefix or the like")
    else:
        recodings = dict.fromkeys(_names("quasi", quasi, QUASI_MAX))
    if not 1 <= len(recodings) <= QUASI_MAX:
        reject("quasi", f"name 1 to {QUASI_MAX} columns")
    return recodings


def _names(role: str, names: object, most: int) -> tuple[str, ...]:
    """Reads names of columns from one name or a sequence."""
    if isinstance(names, str):
        names = (names,)
    if not isinstance(names, Sequence):
        reject(role, "must be names of columns")
    found = tuple(_name(role, name) for name in names)
    if len(found) > most:
        reject(role, f"at most {most} columns can be named")
    for i, name in enumerate(found):
        if name in found[:i]:
            reject(role, f"{shown(name)} is named twice")
    return found


def _name(role: str, name: object) -> str:
    if not isinstance(name, str):
        reject(role, "must be names of columns")
    return column_name(role, name)


def _kind_of(l_kind: object) -> tuple[int, float]:
    """Returns the kind's number, and c."""
    if l_kind in ("distinct", "entropy"):
        return KINDS.index(str(l_kind)), 1.0
    match = _RECURSIVE.fullmatch(l_kind) if isinstance(l_kind, str) else None
    if match is None or float(match[1]) == 0:
        reject("l_kind", "must be distinct, entropy or recursive:C with a number C above 0")
    return KINDS.index("recursive"), float(match[1])


def _share(name: str, value: object, *, above: bool) -> None:
    """Checks for a number from 0 to 1, or None. above: true if 0 is refused."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        reject(name, f"must be a number from 0 to 1, not {shown(value)}")
    if not 0 <= value <= 1 or (above and value == 0):
        reject(name, f"must be {'above 0' if above else 'from 0'} and at most 1")
