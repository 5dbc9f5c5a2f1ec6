# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Checks `addresses` and `hidden` of rows: no user, and no attribute that z users never shared, in
any text that is not a released attribute."""

import json
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.row_reader import lines_of, opened
from zanon_net.audit.raw.sums import MANIFEST
from zanon_net.audit.raw.traces import DEPTH, unpacked

PARTS = (re.compile(r"[,;\t|\"{}\[\]]+"), re.compile(r"[\s,;|\"'{}\[\]()<>=:]+"))
SHORT = 6  # characters: chance explains shorter texts, and plain words
TELLING = re.compile(r"[0-9.@:_/-]")


class Forbidden:
    """Texts of users, and attributes that z users never shared."""

    def __init__(self, users: Collection[str], hidden: Collection[str]) -> None:
        self._users, self._hidden = users, hidden

    def in_cell(self, data: bytes) -> list[tuple[str, str]]:
        """Returns (check, text) for each text that is the cell or a part of it."""
        text = data.decode("utf-8", "replace")
        parts = {text, *(part for part in PARTS[0].split(text) if part)}
        return sorted({*self._among(parts), *self.in_text(data)})

    def in_text(self, data: bytes, depth: int = DEPTH) -> Iterator[tuple[str, str]]:
        """Yields (check, text) for each telling part of a text, also in base64, in percent form
        and in hexadecimal digits."""
        text = data.decode("utf-8", "replace")
        parts = {part.strip() for pattern in PARTS for part in pattern.split(text)}
        parts.add(text.strip())
        telling = {one for one in parts if len(one) >= SHORT and TELLING.search(one)}
        yield from self._among(telling)
        for inner in unpacked(data) if depth else ():
            yield from self.in_text(inner, depth - 1)

    def _among(self, texts: Collection[str]) -> Iterator[tuple[str, str]]:
        for text in texts:
            if text in self._users:
                yield "addresses", text
            if text in self._hidden:
                yield "hidden", text


def in_folder(
    release: Path, manifest: Mapping[str, Any], forbidden: Forbidden
) -> tuple[list[Finding], int, bool]:
    """Searches the manifest, and the files that are not of the run.

    Returns the findings, the number of these files, and whether names of raw files disclose.
    """
    findings, others = [], 0
    for path in sorted(release.parent.rglob("*")):
        if path == release or not path.is_file() or path.name == MANIFEST:
            continue
        others += 1
        label = path.relative_to(release.parent).as_posix()
        for check, what in forbidden.in_text(label.encode()):
            label = "a file whose name discloses"
            findings.append(Finding(check, label, None, "name", 1, 0, what))
        with opened(path) as stream:
            for number, line in lines_of(stream):
                for check, what in set(forbidden.in_text(line)):
                    findings.append(Finding(check, label, number, "line", 1, 0, what))
    configuration = set(texts_in([manifest["configuration"], manifest["notes"]]))
    sources = {text for one in manifest["sources"] for text in texts_in(one["name"])}
    rest = {key: value for key, value in manifest.items() if key != "notes"}
    for text in sorted({*texts_in(rest)} - configuration - sources):
        for check, what in set(forbidden.in_text(json.dumps(text).encode())):
            findings.append(Finding(check, MANIFEST, None, "text", 1, 0, what))
    disclosed = any(True for name in sources for _found in forbidden.in_text(name.encode()))
    return findings, others, disclosed


def texts_in(value: Any) -> Iterator[str]:
    """Yields the texts of a value of JSON, with the names of its members."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, one in value.items():
            yield from (name, *texts_in(one))
    elif isinstance(value, list):
        for one in value:
            yield from texts_in(one)
