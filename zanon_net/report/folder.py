# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Folder that a run has written: its manifest, and the files of records that are listed there."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from zanon_net._record import dataclass
from zanon_net.config.parse import TooLongError, read_text
from zanon_net.errors import FormatError, UnopenedError
from zanon_net.output.log_files import chosen, log_paths
from zanon_net.output.state_file import MANIFEST

WARNING = "zanon-net: warning: "
MANIFEST_MAX = 1 << 27  # characters; the manifest of a year of minutes takes less


@dataclass(frozen=True, slots=True)
class RunFolder:
    """A folder with the manifest of a run.

    manifest: the parsed manifest; its `outputs` are checked, and other keys may have any value.
    """

    path: Path
    manifest: Mapping[str, Any]

    @classmethod
    def open(cls, path: Path) -> "RunFolder":
        """Reads the manifest in a folder.

        Raises UnopenedError if there is no manifest, and FormatError if it is not of a run.
        """
        if not path.is_dir():
            raise UnopenedError(f"{path}: there is no such folder; give the --out of a run")
        return cls(path, checked(read_manifest(path), path / MANIFEST))

    def files(self) -> tuple[str, Sequence[Path]]:
        """Returns a format, and its files with records of flows or else with observations.

        The format is empty if the run wrote neither. Raises FormatError if a file is missing.
        """
        listed = [self.path / one["file"] for one in self.manifest["outputs"]]
        logs = chosen(log_paths(listed), None)
        missing = sum(not log.path.is_file() for log in logs)
        if missing:
            raise FormatError(
                f"{self.path}: {missing:,} of {len(logs):,} files of format {logs[0].form} are"
                f" missing that {MANIFEST} lists"
            )
        return logs[0].form if logs else "", [log.path for log in logs]


def read_manifest(path: Path) -> Any:
    """Returns the content of the manifest in a folder, which may be any JSON.

    Raises UnopenedError if there is no manifest, and FormatError if it is damaged.
    """
    place = path / MANIFEST
    try:
        if place.is_fifo():  # it may have no end
            raise FormatError(f"{place} is no file, so it is no manifest")
        text = read_text(place, MANIFEST_MAX)
        while text.startswith(WARNING):  # of `filter --json`, which prints both to stderr
            text = text.partition("\n")[2]
        return json.loads(text)
    except FileNotFoundError:
        partial = path / f"{MANIFEST}.partial"
        reason = "the run has not ended" if partial.exists() else "no run has written it"
        raise UnopenedError(f"{path}: there is no {MANIFEST}: {reason}") from None
    except OSError as error:
        problem = f"{path / MANIFEST} cannot be read: {error.strerror}"
        raise UnopenedError(problem) from None
    except (ValueError, RecursionError, TooLongError):
        raise FormatError(f"{path / MANIFEST} is no manifest, or damaged") from None


def checked(manifest: Any, place: object) -> Mapping[str, Any]:
    """Returns a manifest whose program and file names are as a run writes them.

    place: the file, for errors. Raises FormatError.
    """
    if not isinstance(manifest, Mapping) or manifest.get("name") != "zanon-net":
        raise FormatError(f"{place} is no manifest of zanon-net")
    try:
        paths = [PurePosixPath(one["file"]) for one in manifest["outputs"]]
    except (KeyError, TypeError):
        raise FormatError(f"{place} is damaged, or not of a run: it lists no files") from None
    if any(path.is_absolute() or ".." in path.parts for path in paths):
        raise FormatError(f"{place} is damaged: it lists a file outside of its folder")
    return manifest
