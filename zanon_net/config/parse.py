# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Parses the texts that people write for settings.

Every function takes the setting's name first and raises `ConfigError` with a text that starts with
it. The message repeats a wrong value only if the value cannot be a key or a large part of a key:
see `shown`.
"""

import ipaddress
import operator
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

from zanon_net.errors import ConfigError, UnopenedError

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

UNITS_NS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
SIZE_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SIZE_MAX = 1 << 60
TEXT_MAX = 1 << 26  # characters of a file that is read at once
COLUMN_BYTES_MAX = 1000  # of a column's name
NULLS_MAX = 16  # as in csrc/rows/filter.c
PASSED_MAX = 16  # columns that the filter writes unchanged
DURATION_MAX_NS = 3650 * UNITS_NS["d"]
HOLD_MAX_NS = 10 * UNITS_NS["s"]
ANYWHERE = ("0.0.0.0/0", "::/0")
SUFFIX_MAX = 253  # bytes of a hostname
SHOWN_MAX = 20  # characters of a wrong value that a message may repeat

_IPV4_MAPPED = ipaddress.IPv6Network("::ffff:0:0/96")
# Patterns that are texts are compiled at their first use, because few settings need them.
_ZERO = re.compile(r"0 ?(ns|us|ms|s|m|h|d)?")
_DURATION = re.compile(r"([0-9]{1,19}(?:\.[0-9]{1,9})?) ?(ns|us|ms|s|m|h|d)")
_KEY = r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{43}=(?![A-Za-z0-9+/=])"
_KEY_OR_MOST_OF_IT = re.compile(
    r"[A-Za-z0-9+/]{43}=|(?=.*[0-9])(?=.*[a-z])(?=.*[A-Z])[A-Za-z0-9+/]{42,43}"
)
_WORDS = r"[a-z]+([ ,_-]+[a-z]+)*"
_SIZE = r"(?i)([0-9]{1,19}) ?([KMGT]?)i?B?"
_FILE_MODE = re.compile(r"0?6[04][04]")
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_SUFFIX = rf"{_LABEL}(?:\.{_LABEL})*"


def reject(name: str, problem: str) -> NoReturn:
    """Raises ConfigError about the setting `name`."""
    raise ConfigError(f"{name}: {problem}")


def is_harmless(text: str) -> bool:
    """Returns true if a message may repeat `text`: it is short, or has only words of small letters.

    A key has 44 characters; after SHOWN_MAX of them, more than 130 bits remain unknown.
    """
    return len(text) <= SHOWN_MAX or re.fullmatch(_WORDS, text) is not None


def shown(value: object) -> str:
    """Returns a wrong value for a message: the value if it is harmless, else its kind and size."""
    if isinstance(value, str):
        return repr(value) if is_harmless(value) else f"a text of {len(value):,} characters"
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {value.bit_length():,} bits"
    if value is None or isinstance(value, bool | int | float):
        return repr(value)
    return f"a {type(value).__name__}"


def refuse_key(name: str, value: object) -> None:
    """Raises ConfigError if `value`, or a text in it, is a key, before any message repeats it."""
    items = value if isinstance(value, list | tuple) else [value]
    for number, item in enumerate(items, start=1):
        texts = str(item).split(",") if isinstance(item, str | os.PathLike) else []
        if any(_KEY_OR_MOST_OF_IT.fullmatch(text.strip()) for text in texts):
            where = f"entry {number}: " if len(items) > 1 else ""
            reject(
                name,
                f"{where}this looks like a key itself; store a key in a file of its own, and give"
                " its path with --key-file or key_file",
            )


def without_keys(text: str) -> str:
    """Returns `text` with a placeholder for each key in it."""
    return re.sub(_KEY, "(a key)", text)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns the end of a message about the unknown `word`; empty if no known word is close to
    it."""
    import difflib  # late: only errors need it

    close = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def as_int(value: object) -> int | None:
    """Returns `value` as an int if it is of a type of whole numbers, such as NumPy's; else None.

    A bool and a float are no whole numbers, even if the float has no fraction.
    """
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def parse_duration(name: str, value: object) -> int:
    """Returns nanoseconds, 1 to ten years, from "1h", "90s", "500ms", "1.5d" or a whole number of
    ns.

    `name` is the setting the value belongs to. Raises ConfigError.
    """
    if isinstance(value, str):
        match = _DURATION.fullmatch(value.strip())
        if match is None:
            reject(name, f"{shown(value)} is not a duration; write it like 1h, 10m, 90s or 500ms")
        number, _point, fraction = match[1].partition(".")
        ns, rest = divmod(int(number + fraction) * UNITS_NS[match[2]], 10 ** len(fraction))
        if rest != 0:
            reject(name, f"{shown(value)} is not a whole number of nanoseconds")
        value = ns
    whole_ns = as_int(value)
    if whole_ns is None:
        reject(name, "not a duration; write it like '1h', or as a whole number of nanoseconds")
    if not 1 <= whole_ns <= DURATION_MAX_NS:
        reject(name, "must be longer than zero and at most 3650d")
    return whole_ns


def hold(name: str, value: object) -> int:
    """Reads the time that a packet waits, in ns: 0, or a duration up to HOLD_MAX_NS."""
    is_zero = as_int(value) == 0 or (isinstance(value, str) and _ZERO.fullmatch(value.strip()))
    ns = 0 if is_zero else parse_duration(name, value)
    if ns > HOLD_MAX_NS:
        reject(name, "must be at most 10s, the time after which an idle flow may close")
    return ns


def rounded_times(name: str, value: object) -> str | int:
    """Reads "exact", or the length in ns to whose multiples times are rounded down."""
    return "exact" if value == "exact" else parse_duration(name, value)


def format_duration(ns: int) -> str:
    """Returns `ns` nanoseconds in the largest unit that gives a whole number, e.g. "90s"."""
    if ns == 0:
        return "0s"
    unit = next(unit for unit in reversed(UNITS_NS) if ns % UNITS_NS[unit] == 0)
    return f"{ns // UNITS_NS[unit]}{unit}"


def _prefix_length(address: ipaddress.IPv4Address | ipaddress.IPv6Address, text: str) -> int:
    """Returns the prefix length that `text` names, as "16" or "255.255.0.0"; -1 if it names no
    length."""
    bits = address.max_prefixlen
    if re.fullmatch("[0-9]{1,3}", text):
        return int(text) if int(text) <= bits else -1
    try:
        mask = ipaddress.ip_address(text)
    except ValueError:
        return -1
    host_part = int(mask) ^ ((1 << bits) - 1)
    if mask.version != address.version or host_part & (host_part + 1):
        return -1
    return bits - host_part.bit_length()


def parse_network(text: str) -> Network:
    """Reads one network as "net/length" or, as in Tstat's -N files, "net/mask"; clears host bits.

    Raises ConfigError with a message that does not contain `text`.
    """
    base, slash, rest = (part.strip() for part in text.partition("/"))
    try:
        if "%" in base:
            raise ValueError
        address = ipaddress.ip_address(base)
    except ValueError:
        raise ConfigError("not a network; write it like 10.0.0.0/8 or fd00::/8") from None
    if not slash:
        raise ConfigError(f"no prefix length; one host alone is ADDRESS/{address.max_prefixlen}")
    length = _prefix_length(address, rest)
    if length < 0:
        raise ConfigError(
            f"the text after '/' is no length from 0 to {address.max_prefixlen}, and no mask"
        )
    return ipaddress.ip_network(f"{address}/{length}", strict=False)


def core_networks(networks: Sequence[Network]) -> list[tuple[bytes, int]]:
    """Returns the networks as (16 bytes of prefix, bits): IPv4 as the IPv4-mapped part of IPv6.

    The IPv4-mapped part is cut out of a larger IPv6 network such as ::/0, which does not include
    IPv4.
    """
    if {str(network) for network in networks} >= set(ANYWHERE):
        return [(bytes(16), 0)]
    plain: list[tuple[bytes, int]] = []
    for network in networks:
        if isinstance(network, ipaddress.IPv4Network):
            mapped = _IPV4_MAPPED.network_address.packed[:12] + network.network_address.packed
            plain.append((mapped, 96 + network.prefixlen))
        elif _IPV4_MAPPED.subnet_of(network) and network != _IPV4_MAPPED:
            rest = sorted(network.address_exclude(_IPV4_MAPPED))
            plain += [(part.network_address.packed, part.prefixlen) for part in rest]
        else:
            plain.append((network.network_address.packed, network.prefixlen))
    return plain


class TooLongError(ValueError):
    """The file has more characters than may be read."""


def read_text(path: Path, most: int = TEXT_MAX) -> str:
    """Returns the text of a file, without a byte order mark.

    most: characters, a multiple of 2^20. Raises OSError, ValueError if the file is no text, and
    TooLongError if it has more characters or no end, as a device or a pipe.
    """
    with path.open(encoding="utf-8-sig") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise TooLongError(f"it has more than {most >> 20} MiB")
    return text


def _read_lines(name: str, path: Path) -> Iterator[tuple[str, str]]:
    """Yields ("FILE line N", text) for each line that is not empty, without its comment."""
    try:
        text = read_text(path)
    except UnicodeDecodeError:
        reject(name, f"{path} is not a text file")
    except ValueError as error:
        reject(name, f"{path} cannot be read: {error}")
    except OSError as error:
        raise UnopenedError(f"{name}: cannot read {path}: {error.strerror}") from None
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if content:
            yield f"{path} line {number}", content


def exists(path: str | os.PathLike[str]) -> bool:
    """Returns true if a file has this name; false for a text that cannot be a path."""
    try:
        return Path(path).exists()
    except (OSError, ValueError):  # longer than a path can be, or with a zero byte
        return False


def _with_masks(lines: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Joins an address and the mask on the next line, as in Tstat's older files."""
    joined: list[tuple[str, str]] = []
    for where, text in lines:
        if text.startswith("255.") and joined and "/" not in joined[-1][1]:
            joined[-1] = (joined[-1][0], f"{joined[-1][1]}/{text}")
        else:
            joined.append((where, text))
    return joined


def _numbered(texts: Sequence[str]) -> list[tuple[str, str]]:
    """Returns ("entry N", text) for each text, so that messages repeat no address.

    A single text has no number.
    """
    if len(texts) == 1:
        return [("", texts[0])]
    return [(f"entry {number}", text) for number, text in enumerate(texts, start=1)]


def parse_networks(name: str, value: object) -> tuple[str, ...]:
    """Returns canonical networks from "any", a file, a comma-separated text or a sequence of
    texts."""
    if value == "any":
        return ANYWHERE
    hint = ""
    if value == "":
        reject(name, "names no network; write it like 10.0.0.0/8,fd00::/8")
    if isinstance(value, str) and exists(value):
        items = _with_masks(list(_read_lines(name, Path(value))))
    elif isinstance(value, str):
        items = _numbered(value.split(","))
        hint = " (and no file has this name)" if len(items) == 1 else ""
    elif isinstance(value, Sequence) and all(isinstance(text, str) for text in value):
        items = _numbered(value)
    else:
        reject(name, "not a network list; write it like '10.0.0.0/8,fd00::/8'")
    networks = []
    for where, text in items:
        try:
            networks.append(str(parse_network(text)))
        except ConfigError as error:
            reject(name, f"{where}{': ' if where else ''}{error}{hint}")
    if not networks:
        reject(name, "the file holds no network" if isinstance(value, str) else "names no network")
    return tuple(dict.fromkeys(networks))


@cache
def _suffix_pattern() -> re.Pattern[str]:
    return re.compile(_SUFFIX)


def suffix_in(text: str) -> str:
    """Returns `text` as a lower-case name without outer dots, or without "*." in front; empty if it
    is no name."""
    suffix = text.strip().removeprefix("*.").removeprefix(".").removesuffix(".").lower()
    return suffix if len(suffix) <= SUFFIX_MAX and _suffix_pattern().fullmatch(suffix) else ""


def suffix_of(name: str, where: str, text: str) -> str:
    """Returns the name that `suffix_in` finds. Raises ConfigError if there is none."""
    suffix = suffix_in(text)
    if not suffix:
        reject(name, f"{where} is not a hostname suffix such as example.com (IDNs as xn--...)")
    return suffix


class NeverList(tuple[str, ...]):
    """Suffixes of names that are never released.

    path: the file of the suffixes; None if they were given as texts.
    """

    path: Path | None = None


def parse_never(name: str, value: object) -> NeverList:
    """Reads suffixes from a file, or from a sequence of texts."""
    if isinstance(value, NeverList):
        return value
    if isinstance(value, str | os.PathLike) and not is_path(value):
        reject(name, "must be the path of a file with hostname suffixes, one a line")
    if isinstance(value, str | os.PathLike):
        items = _read_lines(name, Path(value))
    elif isinstance(value, Sequence) and all(isinstance(text, str) for text in value):
        items = ((f"entry {number}", text) for number, text in enumerate(value, start=1))
    else:
        reject(name, "not a file of hostname suffixes, one a line")
    suffixes = NeverList(dict.fromkeys(suffix_of(name, where, text) for where, text in items))
    suffixes.path = Path(value) if isinstance(value, str | os.PathLike) else None
    return suffixes


def whole(name: str, value: object, low: int, high: int) -> int:
    """Reads a whole number from `low` to `high`."""
    number = as_int(value)
    if number is None:
        reject(name, f"must be a whole number, not {shown(value)}")
    if not low <= number <= high:
        reject(name, f"must be from {low} to {high}, not {shown(number)}")
    return number


def parse_size(name: str, value: object) -> int:
    """Reads bytes from a whole number or a text such as "500M"; K, M, G and T are powers of
    1024."""
    match = re.fullmatch(_SIZE, value.strip()) if isinstance(value, str) else None
    if match is not None:
        value = int(match[1]) * SIZE_UNITS[match[2].upper()]
    size = as_int(value)
    if size is None or not 1 <= size <= SIZE_MAX:
        reject(name, f"must be a number of bytes such as 500M or 20G, not {shown(value)}")
    return size


def flag(name: str, value: object) -> bool:
    """Reads a truth value, also "yes" and "no" of the command line."""
    if isinstance(value, bool):
        return value
    if value not in ("yes", "no"):
        reject(name, f"must be true or false, not {shown(value)}")
    return value == "yes"


def words(name: str, value: object, known: Iterable[str], *, once: bool = False) -> tuple[str, ...]:
    """Reads distinct words out of `known` from a comma-separated text or a sequence. With `once`, a
    word that is there twice is an error."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or not parts or not all(isinstance(p, str) for p in parts):
        reject(name, f"must be one or more of {', '.join(known)}")
    chosen = [part.strip() for part in parts]
    for number, word in enumerate(chosen, start=1):
        if word not in known:
            where = "" if is_harmless(word) else f"entry {number}: "
            hint = did_you_mean(word, known)
            reject(name, f"{where}{shown(word)} is not one of {', '.join(known)}{hint}")
        if once and word in chosen[: number - 1]:
            reject(name, f"{word} is named twice")
    return tuple(dict.fromkeys(chosen))


def percentage(name: str, value: object) -> float:
    """Reads a number from 0 to 100."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        reject(name, f"must be a number from 0 to 100, not {shown(value)}")
    return value


def format_size(size: int) -> str:
    """Returns `size` >= 1 bytes in the largest unit that gives a whole number, e.g. "64M"."""
    unit = next(unit for unit in reversed(SIZE_UNITS) if size % SIZE_UNITS[unit] == 0)
    return f"{size // SIZE_UNITS[unit]}{unit}"


def prefix_pair(name: str, value: object) -> tuple[int, int]:
    """Reads the leading bits of IPv4 and of IPv6 addresses that tell users apart: "32,56" or a
    pair."""
    parts = value.split(",") if isinstance(value, str) else value
    problem = "must be two lengths, IPv4 1 to 32 and IPv6 1 to 128, such as 32,56"
    if not isinstance(parts, Sequence) or len(parts) != 2:
        reject(name, problem)
    lengths = [int(part) if re.fullmatch(" *[0-9]{1,3} *", str(part)) else 0 for part in parts]
    if not (1 <= lengths[0] <= 32 and 1 <= lengths[1] <= 128):
        reject(name, problem)
    return lengths[0], lengths[1]


_PSEUDONYMS = r"networks|random|crypto-pan(?::([0-9]{1,3}),([0-9]{1,3}))?"


DNS_VOTES = ("own", "all", "no")
"""Values in the order of the core's enumeration."""


def dns_votes(name: str, value: object) -> str:
    """Reads the records that DNS votes for: "own", "all" or "no"; "false" and False mean "no"."""
    if value is False or value == "false":
        return "no"
    if value is True or value in ("yes", "true"):
        reject(name, f"say own or all, not {shown(value)}")
    if not isinstance(value, str) or value not in DNS_VOTES:
        reject(name, f"must be {', '.join(DNS_VOTES[:-1])} or {DNS_VOTES[-1]}, not {shown(value)}")
    return value


def pseudonyms(name: str, value: object) -> str:
    """Reads what pseudonyms keep: "networks", "random", "crypto-pan", or "crypto-pan:P4,P6"."""
    problem = "must be networks, random, crypto-pan or crypto-pan:P4,P6"
    text = str(value)
    form = re.fullmatch(_PSEUDONYMS, text) if isinstance(value, str) else None
    if form is None:
        reject(name, problem)
    bits = tuple(int(part) for part in form.groups() if part is not None)
    if bits and not (1 <= bits[0] <= 32 and 1 <= bits[1] <= 128):
        reject(name, f"{problem}, with P4 from 1 to 32 and P6 from 1 to 128")
    return text


def is_path(value: object) -> bool:
    """Returns true if `value` can be the path of a file. The system would cut it at a zero byte."""
    text = str(value)
    return isinstance(value, str | os.PathLike) and text != "" and "\0" not in text


def key_path(name: str, value: object) -> object:
    """Returns the path of a key file; refuses other values."""
    if not is_path(value):
        reject(name, "must be the path of a file; make one with 'zanon-net key new FILE'")
    return value


def pem_path(name: str, value: object) -> object:
    """Returns the path of a file of certificates or a key; refuses other values."""
    if not is_path(value):
        reject(name, "must be the path of a file in PEM")
    return value


def counter_place(name: str, value: object) -> str:
    """Returns the place of a counter if the text can be one; only a connection shows whether it
    is."""
    if not isinstance(value, str) or not re.fullmatch(r"[a-z]+:[^\x00-\x20\x7f]+", value):
        reject(name, "must be the place of a counter, such as tls://HOST:PORT")
    return value


def probe_name(name: str, value: object) -> str:
    """Returns the name of a probe; refuses other values."""
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
        reject(name, "must be 1 to 64 letters, digits and . _ - of ASCII")
    return value


def capture_filter(name: str, value: object) -> str:
    """Returns a BPF expression; refuses other values, and text that is not UTF-8."""
    text = value.encode(errors="replace").decode() if isinstance(value, str) else None
    if text != value or text is None or "\0" in text:
        reject(name, "must be a BPF expression such as 'tcp port 443'")
    return text


def new_file(name: str, value: object) -> object:
    """Returns the path of a file to write; refuses other values."""
    if not is_path(value):
        reject(name, "must be the path of a file to write")
    return value


def file_mode(name: str, value: object) -> str:
    """Returns the permissions of a file in octal digits. Only the owner may write the file."""
    if not isinstance(value, str) or _FILE_MODE.fullmatch(value) is None:
        reject(name, "must be one of the texts 600, 640, 604 and 644")
    return value


def metrics_file(name: str, value: object) -> object:
    """Returns the path of a file for node_exporter, which reads only names that end in .prom."""
    if not is_path(value) or not str(value).endswith(".prom"):
        reject(name, "must be the path of a file that ends in .prom, as node_exporter wants it")
    return value


def user_name(name: str, value: object) -> str:
    """Returns the name of a user of this system; refuses other values."""
    if not isinstance(value, str) or not value:
        reject(name, "must be the name of a user, such as daemon")
    return value


def readable_text(name: str, text: object) -> str:
    """Returns `text`; refuses a value that is not text, cannot be encoded, or controls a
    terminal."""
    if not isinstance(text, str):
        reject(name, f"must be a text, not {shown(text)}")
    try:
        text.encode()
    except UnicodeEncodeError:
        reject(name, "is not UTF-8")
    if any((ord(c) < 0x20 and c != "\t") or 0x7F <= ord(c) < 0xA0 for c in text):
        reject(name, "holds a control character")
    return text


def column_name(name: str, column: str) -> str:
    """Returns the name of a column of rows."""
    if column == "" or len(readable_text(name, column).encode()) > COLUMN_BYTES_MAX:
        reject(name, "must be the name of a column")
    return column


def names_in(name: str, text: str) -> list[str]:
    """Returns the names in a text, separated by commas as in a line of CSV."""
    import csv  # late: few commands need it

    try:
        (names,) = csv.reader([text], skipinitialspace=True, strict=True)
    except (csv.Error, ValueError):
        reject(name, "a name with a comma is in double quotes, and a quote in it is doubled")
    return [part.strip() for part in names]


def column_names(name: str, columns: Sequence[str]) -> tuple[str, ...]:
    """Returns the names of at most PASSED_MAX columns of rows."""
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        reject(name, "must be a list of names")
    if len(columns) > PASSED_MAX:
        reject(name, f"at most {PASSED_MAX} columns can be passed on")
    return tuple(column_name(name, column) for column in columns)


def null_texts(name: str, texts: Sequence[str]) -> tuple[str, ...]:
    """Returns at most NULLS_MAX texts that mean no value."""
    if not isinstance(texts, list | tuple):
        reject(name, "must be a list of texts")
    if len(texts) > NULLS_MAX:
        reject(name, f"at most {NULLS_MAX} texts can mean no value")
    for text in texts:
        if not isinstance(text, str) or not text.isprintable() or not text:
            reject(name, f"must be a text of printable characters, not {shown(text)}")
    return tuple(texts)


def delimiter(name: str, value: str) -> str:
    """Returns the character between columns of CSV, which may be written as the word tab."""
    if not isinstance(value, str):
        reject(name, f"must be a text, not {shown(value)}")
    if value in ("tab", "\t"):
        return value
    if len(value) != 1 or not value.isascii() or not value.isprintable() or value.isalnum():
        reject(name, "must be one character such as ',' ';' '|', or the word tab")
    if value in "\"'\\":
        reject(name, "a quote or a backslash cannot separate columns")
    return value
