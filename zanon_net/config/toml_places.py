# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The places of sections and keys in a TOML file, for errors about them."""

import re
from dataclasses import field
from pathlib import Path

from zanon_net._record import dataclass
from zanon_net.config.parse import read_text

Keys = tuple[str, ...]

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"{3,5}|'
    r"'''.*?'{3,5}|"
    r'"(?:\\.|[^"\\\n])*"|'
    r"'[^'\n]*'|#[^\n]*|[A-Za-z0-9_-]+|[^\S\n]+|.",
    re.DOTALL,
)
_KEY = re.compile(r"""[A-Za-z0-9_-]+|["'].*["']""", re.DOTALL)


def place_of(path: Path, *keys: str) -> str:
    """Returns the place of a section or of a key in it, such as " (at line 3, column 1)".

    Empty if the file does not name it, or cannot be read again.
    """
    try:
        if not path.is_file():  # to read a pipe again could wait for ever
            return ""
        text = read_text(path)
    except (OSError, ValueError):
        return ""
    at = places(text).get(keys)
    if at is None:
        return ""
    line = text.count("\n", 0, at) + 1
    return f" (at line {line}, column {at - text.rfind(chr(10), 0, at)})"


def places(text: str) -> dict[Keys, int]:
    """Returns the offset of the first mention of each section and key of a valid TOML file."""
    found: dict[Keys, int] = {}
    reading = _Reading(found)
    for match in _TOKEN.finditer(text):
        token = match[0]
        if (token.isspace() and token != "\n") or token.startswith("#"):
            continue
        reading.see(token, match.start())
    return found


@dataclass(slots=True)
class _Reading:
    """State of a reading, token by token.

    table: the keys of the table that is open.
    path, begin: the key being read, and its offset.
    outer: the path around each bracket of a value that is open.
    in_header: true between [ and ].
    in_value: true after an equals sign.
    """

    found: dict[Keys, int]
    table: Keys = ()
    path: Keys = ()
    begin: int = 0
    outer: list[tuple[str, Keys]] = field(default_factory=list)
    in_header: bool = False
    in_value: bool = False

    def see(self, token: str, at: int) -> None:
        """Takes a token that is neither blank nor a comment."""
        if self.in_value or token == "}":  # of an inline table without keys
            self._see_value(token)
        elif token == "\n":
            self.path, self.in_header = (), False
        elif token == "=":
            self._name(self.table + self.path)
            self.in_value = True
        elif token == "[" and not self.path:
            self.in_header, self.begin = True, at
        elif token == "]" and self.in_header:
            self.table = self.path
            self._name(self.table)
        elif _KEY.fullmatch(token):
            self.begin = self.begin if self.path or self.in_header else at
            self.path += (_unquoted(token),)

    def _see_value(self, token: str) -> None:
        if token == "{":
            self.outer.append((token, self.table))
            self.table, self.path, self.in_value = self.table + self.path, (), False
        elif token == "[":
            self.outer.append((token, self.path))
        elif token == "]":
            self.outer.pop()
        elif token == "," and self.outer and self.outer[-1][0] == "{":
            self.path, self.in_value = (), False
        elif token == "}":
            self.table, self.path, self.in_value = self.outer.pop()[1], (), True
        elif token == "\n" and not self.outer:
            self.path, self.in_value = (), False

    def _name(self, keys: Keys) -> None:
        for n in range(1, len(keys) + 1):
            self.found.setdefault(keys[:n], self.begin)


def _unquoted(key: str) -> str:
    import tomllib  # late, as in `load`

    return str(tomllib.loads(f"key = {key}")["key"]) if key[0] in "\"'" else key
