# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Division of captures among the shards of a run."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from zanon_net.config.settings import Config
from zanon_net.errors import CaptureError, ConfigError, FormatError
from zanon_net.pipeline.sources import OpenSource
from zanon_net.system.streams import STDIN, Source, check_sources


def divide(sources: Sequence[Source], config: Config, shards: int) -> list[Source]:
    """Returns the source of each shard: a capture, or a folder with captures.

    A shard reads its captures one after the other, so captures of equal times need a shard each. A
    single folder is replaced by the folders in it, or by the captures in it if it has no folders.
    Raises ConfigError or CaptureError.
    """
    check_sources(sources)
    if STDIN in sources:
        raise ConfigError("shards: standard input is one stream; name a capture for each shard")
    parts = list(sources)
    if len(parts) == 1 and Path(parts[0]).is_dir():
        parts = list(_parts_of(Path(parts[0]), config))
    if len(parts) != shards:
        raise ConfigError(
            f"shards: there are {shards}, and {len(parts)} sources; give each shard a capture, or a"
            " folder with the captures of one queue"
        )
    return parts


def _parts_of(folder: Path, config: Config) -> list[Path]:
    """Returns the folders in a folder, or the captures in it, in the order of their names."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise CaptureError(error.errno, f"{folder} cannot be read: {error.strerror}") from None
    folders = [entry for entry in entries if entry.is_dir()]
    return folders or [entry for entry in entries if _is_capture(entry, config)]


def _is_capture(path: Path, config: Config) -> bool:
    with ExitStack() as stack:
        source = OpenSource(str(path), config)
        stack.callback(source.close)
        try:
            source.open()
        except FormatError:
            return False
    return True
