# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Counts of users per name (or attribute) and window, in a form coarse enough to keep.

For the operator, not for release: it holds no name and no user, yet it discloses more about few
users than the logs do. Counts have two significant digits, names are counted by powers of two of
their users, shares by level are in hundredths, and windows with fewer than z users are left out.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any, NamedTuple, Self

from zanon_net._record import dataclass
from zanon_net.config.parse import TooLongError, read_text
from zanon_net.errors import FormatError

FORMAT = "zanon_net popularity 1"
NOTICE = "for the operator, not for release"
COUNT_MAX = 1 << 31  # the z-table's own limits
WINDOWS_MAX = 1 << 18  # windows in a file: 30 years of hours, three days of seconds
LEVELS_MAX = 1 << 14  # windows in a file with shares by level: two years of hours
FILE_MAX = 1 << 27  # characters that are read, more than WINDOWS_MAX windows take


def two_digits(n: int) -> int:
    """Rounds n, not negative, to two significant digits; halves go up."""
    unit = rounding_unit(n)
    return (n + unit // 2) // unit * unit


def rounding_unit(n: int) -> int:
    """Returns the unit of n to two significant digits: a power of ten."""
    return int(10 ** max(len(str(int(n))) - 2, 0))


class LevelShares(NamedTuple):
    """Shares of a window's exposures that z users share, by the finest level at which they do.

    kept: share of the entropy of names that is left if an exposure shows this level only. All
    shares are 0 to 1.
    """

    z: int
    name: float
    domain: float
    category: float
    kept: float

    @property
    def nothing(self) -> float:
        """Share of exposures that z users share at no level."""
        return max(1.0 - self.name - self.domain - self.category, 0.0)

    def rounded(self) -> "LevelShares":
        """Returns the shares in hundredths."""
        return LevelShares(self.z, *(round(share, 2) for share in self[1:]))


@dataclass(frozen=True, slots=True)
class Exposures:
    """Counts of one attribute besides names in a window; the members are PopularityWindow's."""

    whole: bool
    users: int
    bins: tuple[int, ...]

    def to_dict(self) -> dict[str, object]:
        """Returns the counts as the file has them."""
        return {"whole": self.whole, "users": self.users, "bins": self.bins}

    def rounded(self) -> "Exposures":
        """Returns the counts with two significant digits."""
        return Exposures(self.whole, two_digits(self.users), tuple(map(two_digits, self.bins)))


@dataclass(frozen=True, slots=True)
class PopularityWindow:
    """One window of packet time.

    start_ns: its start, ns since the Unix epoch. whole: true if it was read from its start to its
    end. users: distinct users with at least one name. bins: number of names with 2^j to 2^(j+1) - 1
    distinct users, by j. exposures, levels: of a run with levels, the number of exposures, and
    their shares for each z up to the number of users; else 0 and empty. attributes: the counts of
    each attribute besides names that at least z users exposed, by its namespace.
    """

    start_ns: int
    whole: bool
    users: int
    bins: tuple[int, ...]
    exposures: int = 0
    levels: tuple[LevelShares, ...] = ()
    attributes: Mapping[str, Exposures] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Returns the window as the file has it."""
        facts: dict[str, object] = {
            "start_ns": self.start_ns,
            "whole": self.whole,
            "users": self.users,
            "bins": self.bins,
        }
        if self.levels:
            facts |= {"exposures": self.exposures, "levels": self.levels}
        if self.attributes:
            attributes = {word: counts.to_dict() for word, counts in self.attributes.items()}
            facts["attributes"] = attributes
        return facts

    def without_levels(self) -> "PopularityWindow":
        """Returns the window as a run without levels counts it."""
        return PopularityWindow(
            self.start_ns, self.whole, self.users, self.bins, attributes=self.attributes
        )

    def rounded(self) -> "PopularityWindow":
        """Returns the window with counts of two significant digits, and shares in hundredths."""
        return PopularityWindow(
            self.start_ns,
            self.whole,
            two_digits(self.users),
            tuple(map(two_digits, self.bins)),
            two_digits(self.exposures),
            tuple(shares.rounded() for shares in self.levels),
            {word: counts.rounded() for word, counts in self.attributes.items()},
        )


@dataclass(frozen=True, slots=True)
class Popularity:
    """The content of a file of --popularity.

    window_ns: the length of a window. omitted: number of windows that were left out.
    """

    z: int
    window_ns: int
    windows: tuple[PopularityWindow, ...]
    omitted: int = 0

    @classmethod
    def of(cls, z: int, window_ns: int, windows: Sequence[PopularityWindow]) -> Self:
        """Returns the windows rounded, and without windows of fewer than z users."""
        kept = tuple(window.rounded() for window in windows if window.users >= z)
        return cls(z, window_ns, kept, len(windows) - len(kept))

    def to_bytes(self) -> bytes:
        """Returns the file's content: a line for each window."""
        facts = {
            "format": FORMAT,
            "notice": NOTICE,
            "z": self.z,
            "window_ns": self.window_ns,
            "omitted": self.omitted,
        }
        windows = ",".join(f"\n  {json.dumps(window.to_dict())}" for window in self.windows)
        head = json.dumps(facts, indent=1).removesuffix("\n}")
        return f'{head},\n "windows": [{windows}\n ]\n}}\n'.encode("ascii")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Reads a file. Raises FormatError if it is not a popularity file, OSError as the system
        does."""
        try:
            data = json.loads(read_text(Path(path), FILE_MAX))
            return cls.from_dict(data)
        except TooLongError as error:
            raise FormatError(f"{path} cannot be read: {error}") from None
        except OSError as error:
            error.filename = os.fspath(path)  # an error of reading does not have it
            raise
        except (ValueError, KeyError, TypeError, RecursionError):
            raise FormatError(
                f"{path} is no popularity file; make one with --popularity FILE of 'zanon-net run'"
                " or 'zanon-net filter'"
            ) from None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Converts parsed JSON. Raises ValueError, KeyError or TypeError."""
        if data["format"] != FORMAT:
            raise ValueError(FORMAT)
        windows = tuple(map(_window, data["windows"]))
        z, window_ns = _count(data["z"]), _count(data["window_ns"])
        if z < 1 or window_ns < 1:
            raise ValueError("z and window_ns are at least 1")
        return cls(z, window_ns, windows, _count(data["omitted"]))


def _window(one: Mapping[str, Any]) -> PopularityWindow:
    counts = _exposures(one)
    window = PopularityWindow(
        _count(one["start_ns"]),
        counts.whole,
        counts.users,
        counts.bins,
        _count(one.get("exposures", 0)),
        tuple(map(_shares, one.get("levels", ()))),
        {str(word): _exposures(part) for word, part in one.get("attributes", {}).items()},
    )
    steps = [shares.z for shares in window.levels]
    if steps != sorted(set(steps)) or (steps and (steps[0] != 1 or window.exposures < 1)):
        raise ValueError("levels begin at z = 1, and z rises")
    return window


def _exposures(one: Mapping[str, Any]) -> Exposures:
    bins = tuple(_count(n, COUNT_MAX) for n in one["bins"])
    counts = Exposures(one["whole"] is True, _count(one["users"], COUNT_MAX), bins)
    used = max((j for j, n in enumerate(bins) if n), default=0)
    if counts.users < two_digits(1 << used) or sum(bins) > COUNT_MAX:
        raise ValueError("more users of a name than users, or too many names")
    return counts


def _shares(one: Sequence[Any]) -> LevelShares:
    z, *shares = one
    numbers = all(isinstance(share, int | float) and 0 <= share <= 1 for share in shares)
    if not numbers or len(shares) != 4 or sum(shares[:3]) > 1.03:  # 1, and rounding
        raise ValueError("not shares")
    return LevelShares(_count(z, COUNT_MAX), *map(float, shares))


def _count(value: object, high: int = 2**63 - 1) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= high:
        raise ValueError("not a count")
    return value
