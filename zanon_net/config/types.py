# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Types of settings: how a value is read, and how the documents and `--help` write it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from zanon_net._record import dataclass
from zanon_net.config import packet_views, parse, tunnel_ports
from zanon_net.config.listen_address import read_listen_address
from zanon_net.config.parse import reject

Parse = Callable[[str, Any], Any]
"""Function that takes a setting's name and a value as it was written, and returns the value as
`Config` has it.

Raises ConfigError with a text that starts with the name.
"""

RING_MIN, RING_MAX = 1 << 20, (1 << 31) - 1
HOLD_MEMORY_MIN, HOLD_MEMORY_MAX = 1 << 20, 1 << 36
SPLIT_STEP_NS = 60_000_000_000  # records with a suppressed name say the minute

TEXTS, PATH = "str | Sequence[str]", "str | os.PathLike[str]"
"""Annotations that several types share."""


def _in_folder(value: str, folder: Path) -> str:
    return str(folder / value)


def _in_folder_if_there(value: str, folder: Path) -> str:
    return str(folder / value) if parse.exists(folder / value) else value


def _in_folder_but_categories(value: str, folder: Path) -> str:
    return value if value.startswith("category:") else _in_folder(value, folder)


def _in_folder_but_included(value: str, folder: Path) -> str:
    return value if value == "included" else _in_folder(value, folder)


def _late(module: str, function: str) -> Parse:
    """Returns a reader that imports its module for the first value, because few runs have lists."""

    def read(name: str, value: object) -> object:
        found = import_module(f"zanon_net.config.{module}")
        return getattr(found, function)(name, value)

    return read


@dataclass(frozen=True, slots=True, kw_only=True)
class Type:
    """Properties that all settings of one type share.

    read: reads a value.
    annotation: the Python type of a written value, for the dataclasses that have such settings.
    unit: the unit of a number after it was read; empty: the value is no number.
    range: the values that are allowed, for people.
    metavar: the placeholder of the value in `--help`; None: the command line shows the words.
    words: the words that the command line offers, if there are few.
    number: the type as which the command line reads a number; None: text.
    many: true if the option may be repeated.
    switch: true if an option without a value turns it on.
    written: returns a default as `--help` has it.
    anchored: returns a text of a configuration file with the file's folder in front; None: it is no
        path.
    """

    read: Parse
    annotation: str = "str"
    unit: str = ""
    range: str = ""
    metavar: str | None = None
    words: Sequence[str] = ()
    number: type[int] | type[float] | None = None
    many: bool = False
    switch: bool = False
    written: Callable[[Any], str] = str
    anchored: Callable[[str, Path], str] | None = None


def whole_number(unit: str, low: int, high: int, metavar: str | None = "N") -> Type:
    """Returns the type of whole numbers from `low` to `high`, which count `unit`."""
    return Type(
        read=lambda name, value: parse.whole(name, value, low, high),
        annotation="int",
        unit=unit,
        range=f"{low} to {high}",
        metavar=metavar,
        number=int,
    )


def one_of(words: Sequence[str], phrase: str, *, offered: Sequence[str] = ()) -> Type:
    """Returns the type of a word of `words`; the error says `phrase`.

    offered: the words that the command line offers, if not all.
    """

    def read(name: str, value: object) -> object:
        if value not in words:
            reject(name, f"{phrase}, not {parse.shown(value)}")
        return value

    return Type(read=read, range=", ".join(words), words=offered or words)


def word_or_number(words: Sequence[str], phrase: str) -> Type:
    """Returns the type of a word of `words`, some of which a configuration file may have as
    numbers."""
    kind = one_of(words, phrase)
    return replace(
        kind,
        read=lambda name, value: kind.read(name, str(value) if type(value) is int else value),
        annotation="str | int",
    )


def some_of(words: Iterable[str], metavar: str | None = None) -> Type:
    """Returns the type of one or more of `words`: separated by commas, or with the option
    repeated."""
    known = tuple(words)
    return Type(
        read=lambda name, value: parse.words(name, value, known),
        annotation=TEXTS,
        range=f"one or more of {', '.join(known)}",
        metavar=metavar,
        words=() if metavar else known,
        many=metavar is None,
        written=",".join if metavar else " ".join,
    )


def any_of(words: Iterable[str], metavar: str) -> Type:
    """Returns the type of any number of `words`, each once, in their order; none by default."""
    known = tuple(words)
    kind = some_of(known, metavar)

    def read(name: str, value: object) -> object:
        chosen = () if value == () else parse.words(name, value, known, once=True)
        return tuple(word for word in known if word in chosen)

    return replace(kind, read=read, range=f"any of {', '.join(known)}")


def several(kind: Type) -> Type:
    """Returns the type of any number of values of `kind`: the option is repeated."""
    return replace(
        kind,
        read=lambda name, values: tuple(kind.read(name, value) for value in values),
        annotation=f"Sequence[{kind.annotation}]",
        many=True,
    )


def column_sets(known: Sequence[str]) -> Type:
    """Returns the type of column sets of flow logs; `core` comes first and is always among them."""
    sets = some_of(known, "SETS")

    def read(name: str, value: object) -> object:
        chosen = sets.read(name, value)
        if "core" not in chosen:
            reject(name, "core is always part of a log; write core,layer7")
        return chosen

    return replace(sets, read=read, range=f"core, and any of {', '.join(known[1:])}")


def _whole_minutes(name: str, value: object) -> int:
    ns = parse.parse_duration(name, value)
    if ns % SPLIT_STEP_NS != 0:
        reject(name, "must be whole minutes: others would disclose times that records suppress")
    return ns


def _ring_size(name: str, value: object) -> int:
    size = parse.parse_size(name, value)
    if not RING_MIN <= size <= RING_MAX:
        reject(name, "must be from 1M to just below 2G")
    return size


def _hold_memory(name: str, value: object) -> int:
    size = parse.parse_size(name, value)
    if not HOLD_MEMORY_MIN <= size <= HOLD_MEMORY_MAX:
        reject(name, "must be from 1M to 64G")
    return size


def _as_written(_name: str, value: object) -> object:
    return value


def _header(name: str, value: str) -> str:
    return parse.readable_text(name, value) if value else value


FLAG = Type(
    read=parse.flag,
    annotation="bool",
    range="true, false",
    switch=True,
    written=lambda value: "yes" if value else "no",
)
DURATION = Type(
    read=parse.parse_duration,
    annotation="int | str",
    unit="ns",
    range="1ns to 3650d",
    metavar="DURATION",
)
ROUNDED_TIMES = Type(
    read=parse.rounded_times,
    annotation="int | str",
    unit="ns",
    range="exact, or a duration",
    metavar="exact|DURATION",
)
WHOLE_MINUTES = replace(DURATION, read=_whole_minutes, range="whole minutes")
SIZE = Type(
    read=parse.parse_size,
    annotation="int | str",
    unit="bytes",
    range="1 to 2^60",
    metavar="SIZE",
    written=parse.format_size,
)
HOLD = replace(DURATION, read=parse.hold, range="0 to 10s")
HOLD_MEMORY = replace(SIZE, read=_hold_memory, range="1M to 64G")
PACKET_VIEWS = Type(
    read=packet_views.read_views,
    annotation=TEXTS,
    range=f"at most {packet_views.VIEWS_MAX}: a name, then any of {', '.join(packet_views.KEYS)}",
    metavar="NAME:KEY=VALUE,...",
    many=True,
)
TUNNEL_PORTS = Type(
    read=tunnel_ports.read_tunnel_ports,
    annotation=TEXTS,
    range=f"{', '.join(tunnel_ports.TUNNELS)}, each with a port from 1 to 65535",
    metavar="NAME:PORT",
    many=True,
)
RING_SIZE = replace(SIZE, read=_ring_size, range="1M to just below 2G")
# Numbers whose range depends on other settings; their rows, or the model, check them.
DEPENDENT_NUMBER = Type(
    read=_as_written,
    annotation="int",
    unit="users",
    range="z or more",
    metavar="N",
    number=int,
)
AT_LEAST_TWO = replace(DEPENDENT_NUMBER, range="2 or more", metavar="K")
PROBABILITY = Type(
    read=_as_written,
    annotation="float",
    unit="1",
    range="above 0 and below 1",
    metavar="P",
    number=float,
)
PERCENTAGE = Type(
    read=parse.percentage,
    annotation="float",
    unit="%",
    range="0 to 100",
    metavar="PCT",
    number=float,
)
RATE = Type(
    read=_as_written, annotation="float", unit="1/h", range="above 0, an hour", number=float
)
EXPONENT = Type(read=_as_written, annotation="float", unit="1", range="a number", number=float)
SUFFIXES = Type(
    read=parse.parse_never,
    annotation=f"{PATH} | Sequence[str]",
    range="a file with one a line, or a list",
    metavar="FILE",
    anchored=_in_folder,
)
ONLY_NAMES = replace(SUFFIXES, read=_late("name_lists", "read_only"))
SKIPPED_NAMES = Type(
    read=_late("name_lists", "read_skip"),
    annotation=TEXTS,
    range="files, and category:NAME,...",
    metavar="FILE|category:...",
    many=True,
    anchored=_in_folder_but_categories,
)
CATEGORIES = Type(
    read=_late("name_lists", "read_categories"),
    annotation=TEXTS,
    range="files, folders, included",
    metavar="FILE",
    many=True,
    anchored=_in_folder_but_included,
)
PUBLIC_SUFFIXES = Type(
    read=_late("name_lists", "read_suffixes"),
    annotation=PATH,
    range="a file",
    metavar="FILE",
    anchored=_in_folder,
)
NETWORK_TABLE = Type(
    read=_late("network_lists", "read_networks"),
    annotation=TEXTS,
    range="files",
    metavar="FILE",
    many=True,
    anchored=_in_folder,
)
NETWORKS = Type(
    read=parse.parse_networks,
    annotation=TEXTS,
    range="a list, a file with one a line, or any",
    metavar="NETS",
    anchored=_in_folder_if_there,
)
PREFIX_LENGTHS = Type(
    read=parse.prefix_pair,
    annotation="str | Sequence[int]",
    unit="bits",
    range="1 to 32, 1 to 128",
    metavar="BITS,BITS",
    written=lambda lengths: ",".join(map(str, lengths)),
)
DNS_VOTES = Type(
    read=parse.dns_votes,
    annotation="str | bool",
    range="own, all, no",
    metavar="own|all|no",
)
PSEUDONYMS = Type(
    read=parse.pseudonyms,
    range="networks, crypto-pan, crypto-pan:P4,P6, random",
    metavar="networks|crypto-pan[:P4,P6]|random",
)
KEY_FILE = Type(
    read=parse.key_path, annotation=PATH, range="a file", metavar="FILE", anchored=_in_folder
)
PEM_FILE = replace(KEY_FILE, read=parse.pem_path)
COUNTER = Type(read=parse.counter_place, range="a place such as tls://HOST:PORT", metavar="URL")
PROBE_NAME = Type(read=parse.probe_name, range="a name", metavar="NAME")
FILE = Type(read=_as_written, annotation=PATH, range="a file", metavar="FILE")
FILE_MODE = Type(read=parse.file_mode, range="600, 640, 604, 644", metavar="MODE")
NEW_FILE = Type(
    read=parse.new_file, annotation=PATH, range="a new file", metavar="FILE", anchored=_in_folder
)
METRICS_FILE = replace(NEW_FILE, read=parse.metrics_file, range="a file, NAME.prom")
LISTEN_ADDRESS = Type(read=read_listen_address, range="an address and a port", metavar="ADDR:PORT")
CAPTURE_FILTER = Type(read=parse.capture_filter, range="pcap-filter(7)", metavar="BPF")
USER = Type(read=parse.user_name, range="a user", metavar="USER")
COLUMN = Type(read=parse.column_name, range="a column", metavar="NAME")
COLUMNS = Type(
    read=parse.column_names,
    annotation="Sequence[str]",
    range="columns",
    metavar="NAME",
    many=True,
)
NULLS = Type(
    read=parse.null_texts,
    annotation="Sequence[str]",
    range="texts",
    metavar="TEXT",
    many=True,
)
DELIMITER = Type(read=parse.delimiter, range="one character, or tab", metavar="C")
HEADER = Type(read=_header, range="a line", metavar="LINE")
