# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Opens the rows that a counter released, with the key of their reader."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from zanon_net._core import RowOpener
from zanon_net.count.sealed_frames import SUFFIX, Place, SealedRow, is_observation, rows_in
from zanon_net.errors import FormatError, UnopenedError


@dataclass(slots=True)
class Unsealed:
    """Counts of rows and files. Rows are `written` as lines, `foreign` if they were changed or
    sealed to another reader, `refused` if they are no observation, and `repeated` if they came
    before. `damaged` counts files."""

    written: int = 0
    foreign: int = 0
    refused: int = 0
    repeated: int = 0
    damaged: int = 0

    @property
    def rows(self) -> int:
        """Number of all rows."""
        return self.written + self.foreign + self.refused + self.repeated


def unseal(
    sources: Sequence[str | os.PathLike[str]],
    key_file: str | os.PathLike[str],
    write: Callable[[bytes], object],
    warn: Callable[[str], None],
) -> Unsealed:
    """Writes the observations of all rows that open, a line each.

    sources: files, or folders of files. A file that is cut or damaged is read as far as it is
    whole, and said. Raises ConfigError for a key file or a source that cannot be used.
    """
    opener, counts, seen = RowOpener(key_file), Unsealed(), set[Place]()
    for path in [path for source in sources for path in _files_of(Path(source))]:
        for row in _rows_of(path, warn, counts):
            if row.place in seen:
                counts.repeated += 1
                continue
            line = _open(opener, row)
            if line is None:
                counts.foreign += 1
            elif not is_observation(line):
                counts.refused += 1
            else:
                seen.add(row.place)
                counts.written += 1
                write(line + b"\n")
    return counts


def _files_of(source: Path) -> list[Path]:
    if not source.is_dir():
        return [source]
    files = sorted(source.glob(f"*{SUFFIX}"))
    if not files:
        raise UnopenedError(f"{source} holds no file of sealed rows (*{SUFFIX})")
    return files


def _rows_of(path: Path, warn: Callable[[str], None], counts: Unsealed) -> Iterator[SealedRow]:
    try:
        with path.open("rb") as file:
            yield from rows_in(file)
    except OSError as error:
        raise UnopenedError(f"cannot read {path}: {error.strerror}") from None
    except FormatError as error:
        counts.damaged += 1
        warn(f"{path} {error}")


def _open(opener: RowOpener, row: SealedRow) -> bytes | None:
    probe, shard, sequence, number = row.place
    return opener.unseal(row.probe_key, probe, shard, sequence, number, row.sealed)
