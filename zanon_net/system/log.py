# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The log of the package: the logger `zanon_net` of `logging`, or the printer of a command.

`logging` is imported when a record may be heard, because its import takes longer than a small run.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

INFO, NOTICE, WARNING = 20, 25, 30
"""Levels as in `logging`; NOTICE is for records that a person who began a run has to see once."""


class Log:
    """Sends records to a printer while a command has set one, and to `logging` otherwise."""

    def __init__(self) -> None:
        self.level = WARNING  # of the records that the printer gets
        self._printer: Callable[[str], None] | None = None
        self.forward: Callable[[int, str], None] | None = None
        """Function that gets the level and the text of every record in place of the printer, in a
        process whose records another process logs."""

    def info(self, text: str, *values: object) -> None:
        """Logs a record about the progress of a run. The text has a % format for each value."""
        self.log(INFO, text, *values)

    def notice(self, text: str, *values: object) -> None:
        """Logs a record of the level NOTICE."""
        self.log(NOTICE, text, *values)

    def warning(self, text: str, *values: object) -> None:
        """Logs a warning."""
        self.log(WARNING, text, *values)

    def log(self, level: int, text: str, *values: object) -> None:
        """Logs a record of a level."""
        if self.forward is not None:
            self.forward(level, text % values if values else text)
        elif self._printer is not None:
            if level >= self.level:
                self._printer(text % values if values else text)
        elif level >= WARNING or "logging" in sys.modules:  # a lower level needs `logging`
            import logging

            logging.getLogger("zanon_net").log(level, text, *values)

    @contextmanager
    def printing(self, printer: Callable[[str], None]) -> Iterator[None]:
        """Inside, `printer` gets the text of each record of `level` or above."""
        former = self._printer, self.level
        self._printer, self.level = printer, WARNING
        try:
            yield
        finally:
            self._printer, self.level = former


log = Log()
