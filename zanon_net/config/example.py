# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a configuration file with every setting, its default and its meaning."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

from zanon_net.config.schema import rows_of
from zanon_net.config.sections import SECTIONS
from zanon_net.errors import ConfigError
from zanon_net.system.file_errors import explained


def example() -> str:
    """Returns the text of the file. Settings without a default are comments in it."""
    return "\n".join(_lines()) + "\n"


def write_example(path: str | os.PathLike[str]) -> None:
    """Writes the file.

    Raises ConfigError if the name is taken, and OutputError if the system refuses. No part of a
    file is left, because a run would take it for all of the settings.
    """
    if path == "":
        raise ConfigError("the file to write has no name; was it a variable that is not set?")
    path = Path(path)
    with explained("write", path):
        try:
            file = path.open("xb", buffering=0)
        except FileExistsError:
            raise ConfigError(f"{path} exists, and nothing is ever overwritten") from None
        try:
            with file:
                text = memoryview(example().encode())
                while text:
                    text = text[file.write(text) :]
                os.fsync(file.fileno())
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def _lines() -> Iterator[str]:
    yield "# Settings of `zanon-net run CAPTURE --config zanon.toml`; these are the defaults."
    yield "# Paths are relative to this file's folder. An option of `run` overrides a setting."
    for section in SECTIONS:
        yield ""
        yield f"[{section}]"
        for row in rows_of("run", section):
            yield f"# {row.meaning}"
            if row.has_default:
                yield f"{row.label} = {json.dumps(row.default)}"
            else:
                yield f"# {row.label} = {json.dumps(row.example)}"
