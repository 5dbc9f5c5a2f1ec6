# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""File of sensitive names: a suffix and a category in each line."""

import re
from pathlib import Path

from zanon_net.audit.database import Database
from zanon_net.config.parse import TooLongError, read_text
from zanon_net.errors import ConfigError, UnopenedError

SUFFIX = re.compile(r"[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*")
CATEGORY = re.compile(r"[\w -]{1,64}")
BATCH = 10_000


def read_categories(path: Path) -> dict[str, str]:
    """Returns the category of each suffix of names.

    Raises UnopenedError for a file that cannot be read, ConfigError for a line that is wrong.
    """
    try:
        text = read_text(path)
    except TooLongError:
        raise ConfigError(f"sensitive: {path} is too long for a file of suffixes") from None
    except UnicodeDecodeError:
        raise ConfigError(f"sensitive: {path} is not UTF-8 text") from None
    except OSError as error:
        raise UnopenedError(f"sensitive: {path}: {error.strerror}") from None
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.partition("#")[0].strip()
        if not words:
            continue
        suffix, _comma, category = (part.strip() for part in words.partition(","))
        suffix = suffix.lower().removeprefix("*.").strip(".")
        if not SUFFIX.fullmatch(suffix) or not CATEGORY.fullmatch(category):
            raise ConfigError(
                f"sensitive: {path}, line {number}: must be a suffix, a comma and a category"
            )
        found[suffix] = category
    if not found:
        raise ConfigError(f"sensitive: {path} has no suffix and category")
    return found


def category_of(name: str, categories: dict[str, str]) -> str | None:
    """Returns the category of the longest suffix of a name, or None."""
    while name:
        if name in categories:
            return categories[name]
        name = name.partition(".")[2]
    return None


def load_categories(database: Database, categories: dict[str, str]) -> None:
    """Makes the table `categories` (hash of a name, category) from the table `names`."""
    database.run("CREATE TABLE categories (name UBIGINT, category VARCHAR)")
    rows = database.rows("SELECT DISTINCT name, text FROM names")
    found = [(number, category_of(text, categories)) for number, text in rows]
    pairs = [(number, category) for number, category in found if category is not None]
    for begin in range(0, len(pairs), BATCH):
        part = pairs[begin : begin + BATCH]
        marks = ", ".join(["(?, ?)"] * len(part))
        database.run(
            f"INSERT INTO categories VALUES {marks}", [value for pair in part for value in pair]
        )
