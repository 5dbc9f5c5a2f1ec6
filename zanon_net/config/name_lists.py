# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Reads lists of hostname suffixes: the names of `--only` and `--skip`, categories, and the Public
Suffix List."""

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from zanon_net._record import dataclass
from zanon_net.config.parse import TEXT_MAX, is_path, reject, shown, suffix_in, suffix_of
from zanon_net.errors import UnopenedError

INCLUDED = "included"
"""Word of `--categories` for the list that this package includes."""
INCLUDED_FILE = Path(__file__).with_name("categories.tsv")
CATEGORY_PREFIX = "category:"
CATEGORY_BYTES_MAX = 64  # as in csrc/include/zanon/zanon.h
CATEGORIES_MAX = 65_534  # as in csrc/analyzer/name_lists.c
DEBIAN_SUFFIXES = Path("/usr/share/publicsuffix/public_suffix_list.dat")
PUBLIC, WILDCARD, EXCEPTION = 1, 2, 4
"""Bits of a suffix, as in csrc/include/zanon/zanon.h."""
NO_SUFFIX_LIST = "no suffix list found; install zanon-net[suffixes] or give --suffixes FILE"

# Patterns that are texts are compiled at their first use, because few runs have lists.
_ADDRESS = r"[0-9.]+|[0-9a-fA-F]*:[0-9a-fA-F:.]*(?:%\w+)?"
_CATEGORY = r"[!#-+\-.-9;-\[\]-~]+"  # 0x21 to 0x7e without " , : and \
_NDPI_FILE = r"[0-9]+_(.+)\.list"
_PLACE_BITS = 32


@dataclass(frozen=True, slots=True)
class ListFile:
    """File of a list.

    name: the name in manifests, without the folders above. rows: entries in the file. sha256:
    hexadecimal digest of its bytes.
    """

    path: Path
    name: str
    rows: int
    sha256: str

    def shown(self) -> dict[str, Any]:
        """Returns the manifest's entry."""
        return {"name": self.name, "rows": self.rows, "sha256": self.sha256}


@dataclass(frozen=True, slots=True)
class NameList:
    """Suffixes of hostnames from files.

    files: empty if the suffixes were given as texts. places: for each suffix the number of its
    file, shifted by _PLACE_BITS, and its line. values: the category of each suffix, or its bits in
    the Public Suffix List. categories: the categories that `--skip` names. is_default: true if the
    files were found and not named.
    """

    files: tuple[ListFile, ...] = ()
    places: Mapping[str, int] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    categories: tuple[str, ...] = ()
    is_default: bool = False

    def __bool__(self) -> bool:
        return bool(self.places or self.values or self.categories)

    def where(self, suffix: str) -> str:
        """Returns the file and line of a suffix."""
        return _where([file.path for file in self.files], self.places[suffix])

    def shown(self) -> list[dict[str, Any]]:
        """Returns the manifest's entries of the files."""
        return [file.shown() for file in self.files]


Rows = Iterator[tuple[str, Any, int]]
"""Suffixes, each with its value (None: no value) and its line."""
ReadRows = Callable[[str, Path, str], Rows]
"""Function that takes the setting's name, the path of a file and its text."""


def _where(paths: Sequence[Path], place: int) -> str:
    line = place & ((1 << _PLACE_BITS) - 1)
    return f"{paths[place >> _PLACE_BITS]} line {line}" if paths else f"entry {line}"


def read_bytes(name: str, path: Path) -> tuple[str, str]:
    """Returns the text of a file and the SHA-256 of its bytes. Raises ConfigError."""
    import hashlib  # late: few runs have lists

    try:
        with path.open("rb") as file:
            data = file.read(TEXT_MAX + 1)
    except OSError as error:
        raise UnopenedError(f"{name}: cannot read {path}: {error.strerror}") from None
    if len(data) > TEXT_MAX:
        reject(name, f"{path} cannot be read: it has more than {TEXT_MAX >> 20} MiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        reject(name, f"{path} is not a text file")
    return text, hashlib.sha256(data).hexdigest()


def lines_of(text: str, mark: str = "#") -> Iterator[tuple[int, str]]:
    """Yields the number and content of each line that is not empty, without its comment."""
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition(mark)[0].strip()
        if content:
            yield number, content


# ---- names that may vote, and names that may not -------------------------------------------------


def read_only(name: str, value: object) -> NameList:
    """Reads the names that may vote from a file, or from a sequence of texts."""
    if isinstance(value, NameList):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str):
        listed = _of_texts(name, value)
    else:
        listed = _of_files(name, [path_of(name, value)], _name_rows)
    if not listed.places:
        reject(name, "holds no hostname suffix, so no name could be released")
    return listed


def read_skip(name: str, value: object) -> NameList:
    """Reads the names that may not vote from files, and categories from `category:NAME,...`."""
    if isinstance(value, NameList):
        return value
    items = [value] if isinstance(value, str | os.PathLike) else value
    if not isinstance(items, Sequence):
        reject(name, f"must be files and category:NAME,..., not {shown(value)}")
    paths, categories = [], []
    for item in items:
        if isinstance(item, str) and item.startswith(CATEGORY_PREFIX):
            words = item.removeprefix(CATEGORY_PREFIX).split(",")
            categories += [_category(name, "", word.strip()) for word in words]
        else:
            paths.append(path_of(name, item))
    listed = _of_files(name, paths, _name_rows)
    return NameList(listed.files, listed.places, categories=tuple(dict.fromkeys(categories)))


def _of_texts(name: str, texts: Sequence[object]) -> NameList:
    places: dict[str, int] = {}
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            reject(name, f"entry {number} must be a text, not {shown(text)}")
        places.setdefault(suffix_of(name, f"entry {number}", text), number)
    return NameList(places=places)


def path_of(name: str, value: object) -> Path:
    """Returns the path of a file. Raises ConfigError for other values."""
    if not is_path(value):
        reject(name, "must be the path of a file")
    return Path(str(value))


def _name_rows(name: str, path: Path, text: str) -> Rows:
    """Yields the names of a plain list, of a list of ranks and names (Tranco), or of a hosts
    file."""
    for line, content in lines_of(text):
        for word in _names_in(content):
            yield suffix_in(word) or suffix_of(name, f"{path} line {line}", word), None, line


def _names_in(content: str) -> list[str]:
    """Returns the names in a line, without addresses."""
    if "," in content:
        rank, _comma, rest = content.partition(",")
        return [rest.partition(",")[0] if rank.isdigit() else content]
    words = content.split()
    if re.fullmatch(_ADDRESS, words[0]):
        return [word for word in words[1:] if not re.fullmatch(_ADDRESS, word)]
    return [content]


def _of_files(
    name: str, paths: Sequence[Path], read: ReadRows, names: Sequence[str] = ()
) -> NameList:
    """Reads the files of one list. names: the files' names in manifests. Raises ConfigError if one
    suffix has two values."""
    files: list[ListFile] = []
    places: dict[str, int] = {}
    values: dict[str, Any] = {}
    for number, path in enumerate(paths):
        text, digest = read_bytes(name, path)
        rows = 0
        for suffix, value, line in read(name, path, text):
            rows += 1
            place = places.setdefault(suffix, number << _PLACE_BITS | line)
            if value is not None and values.setdefault(suffix, value) != value:
                here = f"{path} line {line}"
                reject(name, f"{_where(paths, place)} and {here} give one suffix two categories")
        shown_as = names[number] if names else path.name
        files.append(ListFile(path, shown_as, rows, digest))
    return NameList(tuple(files), places, values)


# ---- categories ----------------------------------------------------------------------------------


def read_categories(name: str, value: object) -> NameList:
    """Reads categories from files `suffix<TAB>category`, from folders of UT1, from files of nDPI,
    and from the list of this package, whose name is INCLUDED."""
    if isinstance(value, NameList):
        return value
    items = [value] if isinstance(value, str | os.PathLike) else value
    if not isinstance(items, Sequence):
        reject(name, "must be files or folders of categories")
    if not items:
        return NameList()
    paths: list[Path] = []
    for item in items:
        paths += [INCLUDED_FILE] if item == INCLUDED else _category_files(name, path_of(name, item))
    names = [INCLUDED if path == INCLUDED_FILE else _shown_path(path) for path in paths]
    listed = _of_files(name, paths, _category_rows, names)
    if not listed.values:
        reject(name, "holds no hostname suffix")
    if len(set(listed.values.values())) > CATEGORIES_MAX:
        reject(name, f"must have at most {CATEGORIES_MAX:,} categories")
    return listed


def _shown_path(path: Path) -> str:
    return f"{path.parent.name}/{path.name}" if path.name == "domains" else path.name


def _category_files(name: str, path: Path) -> list[Path]:
    """Returns the files of a path: a file, a folder of one category of UT1, or a folder with such
    folders or with files of nDPI."""
    if not path.is_dir():
        return [path]
    if (path / "domains").exists():
        return [path / "domains"]
    files = [inner / "domains" for inner in sorted(path.iterdir()) if (inner / "domains").exists()]
    files += [inner for inner in sorted(path.iterdir()) if re.fullmatch(_NDPI_FILE, inner.name)]
    if not files:
        reject(name, f"{path} is a folder without */domains and without NUMBER_NAME.list")
    return files


def _category_rows(name: str, path: Path, text: str) -> Rows:
    ndpi = re.fullmatch(_NDPI_FILE, path.name)
    if path.name == "domains" or ndpi is not None:
        of_file = _category(name, str(path), ndpi[1] if ndpi else path.parent.name)
        for suffix, _value, line in _name_rows(name, path, text):
            yield suffix, of_file, line
        return
    for line, content in lines_of(text):
        suffix, tab, category = content.partition("\t")
        where = f"{path} line {line}"
        if not tab:
            reject(name, f"{where} is not a hostname suffix, a tab and a category")
        yield suffix_of(name, where, suffix), _category(name, where, category.strip()), line


def _category(name: str, where: str, category: str) -> str:
    """Returns the name of a category. Raises ConfigError if a label could not hold it."""
    if len(category) > CATEGORY_BYTES_MAX or re.fullmatch(_CATEGORY, category) is None:
        place = f"{where}: " if where else ""
        reject(
            name,
            f"{place}a category is 1 to {CATEGORY_BYTES_MAX} printable characters of ASCII without"
            " blanks, colons, commas, quotes and backslashes",
        )
    return category


# ---- the Public Suffix List ----------------------------------------------------------------------


def read_suffixes(name: str, value: object) -> NameList:
    """Reads a file in the format of the Public Suffix List, with its private section."""
    if isinstance(value, NameList):
        return value
    path = path_of(name, value)
    text, digest = read_bytes(name, path)
    values: dict[str, int] = {}
    rows = 0
    for line, content in lines_of(text, "//"):
        suffix, bit = _rule(name, f"{path} line {line}", content.split()[0])
        values[suffix] = values.get(suffix, 0) | bit
        rows += 1
    if not values:
        reject(name, f"{path} holds no rule of the Public Suffix List")
    return NameList((ListFile(path, path.name, rows, digest),), values=values)


def _rule(name: str, where: str, rule: str) -> tuple[str, int]:
    """Returns a rule as a suffix in A-labels, and its bit."""
    bit = EXCEPTION if rule.startswith("!") else WILDCARD if rule.startswith("*.") else PUBLIC
    text = rule.removeprefix("!").removeprefix("*.").lower()
    try:
        text = text if text.isascii() else text.encode("idna").decode("ascii")
    except UnicodeError:
        text = ""
    if not text or text[0] in ".*":
        reject(name, f"{where} is not a rule of the Public Suffix List")
    return suffix_of(name, where, text), bit


def default_suffixes() -> NameList:
    """Returns the Public Suffix List of the package publicsuffixlist, or else of Debian. Raises
    ConfigError if there is neither."""
    from importlib.util import find_spec  # late: few runs need it

    found = find_spec("publicsuffixlist")
    folders = [] if found is None else found.submodule_search_locations or []
    for path in (*(Path(folder) / DEBIAN_SUFFIXES.name for folder in folders), DEBIAN_SUFFIXES):
        if path.is_file():
            return replace(read_suffixes("suffixes", path), is_default=True)
    reject("levels", NO_SUFFIX_LIST)
