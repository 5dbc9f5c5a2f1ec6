# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The files of parts that are over: each is whole and readable, and is what the manifest says."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from month.broken import Broken, check_equal
from month.traffic import MARK

Listed = dict[str, Any]


class Parts:
    """The finished files of one run's folder; each is read once, when it has appeared.

    servers: addresses that no file may have. appeared: called with each file and its bytes.
    """

    def __init__(
        self, folder: Path, servers: list[str], appeared: Callable[[Path, int], None]
    ) -> None:
        self.folder = folder
        self.bytes: dict[str, int] = {}  # of each that was read
        self.records: dict[str, int] = {}
        self._appeared = appeared
        self._secrets = [MARK.encode(), *(server.encode() for server in servers)]

    def collect(self) -> tuple[list[Listed], list[Listed]]:
        """(observations, flow records) of the files that have appeared since the last call."""
        observations: list[Listed] = []
        flows: list[Listed] = []
        for path in self._files():
            name = path.relative_to(self.folder).as_posix()
            is_open = any(part.endswith(".partial") for part in path.parts)
            if is_open or name == "manifest.json" or name in self.bytes:
                continue
            rows = self._read(path, name)
            if name.startswith("observations"):
                observations += rows
            elif name.endswith(".jsonl"):
                flows += rows
        return observations, flows

    def _files(self) -> list[Path]:
        """All files; os.walk passes over a folder that is removed meanwhile, rglob does not."""
        return sorted(Path(at, name) for at, _folders, names in os.walk(self.folder)
                      for name in names)  # fmt: skip

    def _read(self, path: Path, name: str) -> list[Listed]:
        content = path.read_bytes()
        self.bytes[name] = len(content)
        self._appeared(path, len(content))
        if name.endswith(".parquet"):
            table = pq.read_table(path)
            self.records[name] = table.num_rows
            self._search(name, str(table.to_pydict()).encode())
            return []
        self._search(name, content)
        if content and not content.endswith(b"\n"):
            raise Broken("the last line of a file is not whole", name)
        lines = content.splitlines()
        if name.endswith(".jsonl"):
            self.records[name] = len(lines)
            return [self._object(line, name) for line in lines]
        columns = {len(line.split(b" ")) for line in lines}
        check_equal("numbers of columns in a log of Tstat's", len(columns), 1, name)
        self.records[name] = len(lines) - 1
        return []

    def _search(self, name: str, content: bytes) -> None:
        if any(secret in content for secret in self._secrets):
            raise Broken("a file has a canary's name or server", name)

    @staticmethod
    def _object(line: bytes, name: str) -> Listed:
        try:
            found = json.loads(line)
        except ValueError:
            raise Broken("a line is no JSON", name) from None
        if not isinstance(found, dict):
            raise Broken("a line is no object", name)
        return found

    def check_listed(self, manifest: Listed) -> None:
        """What the manifest lists is what was read, and it is there."""
        for file in manifest["outputs"]:
            name = file["file"]
            if name not in self.bytes:
                raise Broken("a file of the manifest is not there", name)
            check_equal("bytes of a file", self.bytes[name], file["bytes"], name)
            check_equal("records of a file", self.records[name], file["records"], name)

    def check_against(self, manifest: Listed) -> None:
        """The manifest lists what was read, but for what was removed since."""
        self.check_listed(manifest)
        listed = {file["file"] for file in manifest["outputs"]}
        for name in self.bytes:
            if name not in listed and (self.folder / name).exists():
                raise Broken("a file is not in the manifest", name)

    def check_unchanged(self) -> None:
        """What is final is not touched again."""
        for name, size in self.bytes.items():
            with suppress(FileNotFoundError):  # it was removed
                now = (self.folder / name).stat().st_size
                check_equal("bytes of a file that was final", now, size, name)
