# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Lists of names and networks of a run: which names may not be released, and which labels are
above a name or an address.

The files are recognized by the SHA-256 digests in the manifest. They are read here a second time,
from the description of their formats.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from importlib.util import find_spec
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

from zanon_net.errors import UnopenedError

HERE = Path(__file__).resolve().parents[2]
KNOWN = (HERE / "config" / "categories.tsv", Path("/usr/share/publicsuffix/public_suffix_list.dat"))
NDPI = re.compile(r"[0-9]+_(.+)\.list")
NO_COUNTRY = ("", "-", "None", "Unknown", "ZZ")
ROLES = ("only", "skip", "categories", "suffixes", "networks")
Span = tuple[int, int]
Chain = tuple[str, ...]
Ranges = tuple[Sequence[int], Sequence[str]]


def suffixes_of(text: str) -> Iterator[str]:
    """Yields a name and its suffixes, the longest first."""
    labels = text.split(".")
    yield from (".".join(labels[at:]) for at in range(len(labels)))


@dataclass(slots=True)
class Lists:
    """Lists of a run.

    missing: roles of lists whose file was not found. only: None if every name may vote.
    rules: of the Public Suffix List; a rule begins with "*." or "!", as in its file.
    systems, countries: starts of ranges of addresses, and the AS or country from there on; "" for
    none.
    """

    missing: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    only: set[str] | None = None
    skip: set[str] = field(default_factory=set)
    skipped: frozenset[str] = frozenset()  # categories
    categories: dict[str, str] = field(default_factory=dict)
    rules: set[str] = field(default_factory=set)
    systems: Ranges = ((), ())
    countries: Ranges = ((), ())
    never: tuple[str, ...] = ()
    _chains: dict[str | bytes, Chain] = field(default_factory=dict)

    def refuses(self, name: str) -> bool:
        """Returns whether a name may not be released, whatever its users."""
        texts = list(suffixes_of(name))
        if self.only is not None and not any(text in self.only for text in texts):
            return True
        if any(text in self.skip for text in texts):
            return True
        return bool(self.skipped) and self.category(name) in self.skipped

    def unchecked(self) -> list[str]:
        """Returns the roles of missing lists on which refusals depend."""
        roles = ["only", "skip", *(("categories", "suffixes") if self.skipped else ())]
        return [role for role in roles if role in self.missing]

    def domain(self, name: str) -> str | None:
        """Returns the registered domain of a name, or None."""
        texts = list(suffixes_of(name))
        for at, text in enumerate(texts):
            above = texts[at + 1] if at + 1 < len(texts) else ""
            if f"!{text}" in self.rules:
                return text
            if text in self.rules or f"*.{text}" in self.rules or f"*.{above}" in self.rules:
                return texts[at - 1] if at else None
        return None

    def category(self, name: str) -> str | None:
        """Returns the category of a name: of its registered domain, if it has one."""
        texts = suffixes_of(self.domain(name) or name)
        return next((self.categories[text] for text in texts if text in self.categories), None)

    def chain(self, what: str | bytes) -> Chain:
        """Returns the labels above a name or an address, the finest first."""
        found = self._chains.get(what)
        if found is None:
            chain = self._of_name(what) if isinstance(what, str) else self._of_address(what)
            found = self._chains[what] = tuple(chain)
        return found

    def _of_name(self, name: str) -> Iterator[str]:
        domain = self.domain(name) if "domain" in self.levels else None
        if domain is not None and not self._is_barred(domain):
            yield f"*.{domain}"
        category = self.category(name) if "category" in self.levels else None
        if category is not None:
            yield f"category:{category}"

    def _is_barred(self, domain: str) -> bool:
        """Returns whether a domain is above or below a name never to release."""
        return any(
            f".{domain}".endswith(f".{one}") or f".{one}".endswith(f".{domain}")
            for one in self.never
        )

    def _of_address(self, address: bytes) -> Iterator[str]:
        number = wide(address)
        for level, kind, (starts, values) in (
            ("as", "as", self.systems),
            ("country", "country", self.countries),
        ):
            at = bisect_right(starts, number) if level in self.levels else 0
            if at and values[at - 1]:
                yield f"{kind}:{values[at - 1]}"


def is_label(text: object) -> bool:
    """Returns whether a text in a column of names is a label, which no hostname can be."""
    return isinstance(text, str) and text.startswith(("*.", "category:", "as:", "country:"))


def wide(address: bytes) -> int:
    """Returns an address as a number of 128 bits; IPv4 as ::ffff:a.b.c.d."""
    return int.from_bytes(address if len(address) == 16 else b"\0" * 10 + b"\xff\xff" + address)


# ---- files --------------------------------------------------------------------------------------


def lists_of(
    manifest: Mapping[str, Any], files: Sequence[Path], never: Sequence[str] = ()
) -> Lists:
    """Reads the lists of a run from files, which the manifest has the digests of.

    The list of categories and the Public Suffix Lists that are installed need not be given.
    """
    own = manifest["configuration"]["anonymity"]
    stated = {role: entries_of(own.get(role)) for role in ROLES}
    texts = texts_of(files)
    if not any(stated.values()) and not own.get("skip"):
        return Lists(never=tuple(never))
    wanted = {entry["sha256"] for entries in stated.values() for entry in entries}
    texts |= {} if wanted <= texts.keys() else texts_of(installed())
    found = {
        role: [(entry["name"], texts[entry["sha256"]]) for entry in entries]
        for role, entries in stated.items()
        if all(entry["sha256"] in texts for entry in entries)
    }
    rows = [row for _name, text in found.get("networks", ()) for row in network_rows(text)]
    only, skip = own.get("only"), own.get("skip") or {}
    return Lists(
        missing=tuple(role for role in ROLES if role not in found or unnamed(own.get(role))),
        levels=tuple(own.get("levels") or ()),
        only=set(names_in(found.get("only", ()))) if only and found.get("only") else None,
        skip=set(names_in(found.get("skip", ()))),
        skipped=frozenset(skip.get("categories", ())),
        categories=dict(categories_in(found.get("categories", ()))),
        rules={rule for _name, text in found.get("suffixes", ()) for rule in rules_in(text)},
        systems=flat([(span, number) for span, number, _country in rows if number]),
        countries=flat([(span, country) for span, _number, country in rows if country]),
        never=tuple(never),
    )


def entries_of(stated: Any) -> list[Mapping[str, Any]]:
    """Returns the files of a list in a manifest."""
    if isinstance(stated, Mapping):
        return list(stated["files"]) if "files" in stated else [stated]
    return list(stated or ())


def unnamed(stated: Any) -> bool:
    """Returns whether suffixes of a list were given as texts, so that no file has them."""
    return isinstance(stated, Mapping) and bool(stated.get("suffixes")) and not stated.get("files")


def installed() -> list[Path]:
    """Returns the lists that are installed."""
    found = find_spec("publicsuffixlist")
    folders = [] if found is None else found.submodule_search_locations or []
    paths = [*(Path(folder) / KNOWN[1].name for folder in folders), *KNOWN]
    return [path for path in paths if path.is_file()]


def texts_of(paths: Sequence[Path]) -> dict[str, str]:
    """Returns the texts of files, and of all files below folders, by their digests."""
    texts = {}
    for path in paths:
        try:
            files = sorted(one for one in path.rglob("*") if one.is_file()) or [path]
            for data in map(Path.read_bytes, files):
                texts[sha256(data).hexdigest()] = data.decode("utf-8-sig", "replace")
        except OSError as error:
            raise UnopenedError(f"{path} cannot be read: {error.strerror}") from None
    return texts


def lines_in(text: str, comment: str = "#") -> Iterator[str]:
    """Yields the lines of a list without comments."""
    lines = (line.partition(comment)[0].strip() for line in text.splitlines())
    yield from filter(None, lines)


def names_in(files: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Yields the names of plain lists, of lists with ranks, and of hosts files."""
    for _name, text in files:
        for line in lines_in(text):
            words = line.split()
            rank, comma, rest = line.partition(",")
            if comma and rank.isdigit():
                words = [rest.partition(",")[0]]
            elif len(words) > 1:
                words = words[1:]
            for word in words:
                if not is_address(word):
                    yield suffix(word)


def suffix(word: str) -> str:
    """Returns a suffix of names in the form of the log."""
    return word.strip().lower().removeprefix("*").removeprefix(".").removesuffix(".")


@lru_cache(maxsize=1 << 12)
def is_address(text: str) -> bool:
    """Returns whether a text is an address."""
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


def categories_in(files: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yields suffixes with their categories."""
    for name, text in files:
        folder, slash, _rest = name.rpartition("/domains")
        ndpi = NDPI.fullmatch(name)
        if slash or ndpi is not None:
            category = folder.rpartition("/")[2] if ndpi is None else ndpi[1]
            yield from ((one, category) for one in names_in([(name, text)]))
            continue
        for line in lines_in(text):
            one, _tab, category = line.partition("\t")
            yield suffix(one), category.strip()


def rules_in(text: str) -> Iterator[str]:
    """Yields the rules of a Public Suffix List, in A-labels."""
    for line in lines_in(text, "//"):
        rule = line.split()[0].lower()
        mark = next((mark for mark in ("*.", "!") if rule.startswith(mark)), "")
        yield mark + rule.removeprefix(mark).encode("idna").decode("ascii")


def network_rows(text: str) -> Iterator[tuple[Span, str, str]]:
    """Yields ranges of addresses, each with its AS and country, "" for none."""
    for line in lines_in(text):
        if line.startswith(";"):
            continue
        parts = line.split("\t") if "\t" in line else re.split("[, ]+", line)
        parts = [part.strip() for part in parts]
        if "/" in parts[0]:
            network = ip_network(parts.pop(0))
            bounds = network.network_address, network.broadcast_address
        else:
            bounds = ip_address(parts.pop(0)), ip_address(parts.pop(0))
        first, last = (wide(one.packed) for one in bounds)
        number = parts[0].upper().removeprefix("AS").lstrip("0")
        country = parts[1] if len(parts) > 1 and parts[1] not in NO_COUNTRY else ""
        yield (first, last), number, country


def flat(rows: Sequence[tuple[Span, str]]) -> Ranges:
    """Returns the addresses at which the value of the smallest range changes, and the values."""
    changes: dict[int, str] = {}
    around: list[tuple[Span, str]] = []

    def leave(until: int) -> None:
        while around and around[-1][0][1] < until:
            (_first, last), _value = around.pop()
            changes[last + 1] = around[-1][1] if around else ""

    for (first, last), value in sorted(rows, key=lambda row: (row[0][0], -row[0][1])):
        leave(first)
        around.append(((first, last), value))
        changes[first] = value
    leave(1 << 128 | 1)
    starts = sorted(changes)
    return starts, [changes[start] for start in starts]


__all__ = ["Lists", "is_label", "lists_of"]
