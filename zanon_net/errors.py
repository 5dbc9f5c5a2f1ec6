# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Errors that this package raises on purpose. No message contains a hostname or an address."""


class ZanonError(Exception):
    """Base of all errors of this package; its text is one line a person can act on."""


class ConfigError(ZanonError, ValueError):
    """A setting, an option or a key file is wrong: nothing was read or written."""


class UnopenedError(ConfigError):
    """A file that settings name, or that contains settings, cannot be opened."""


class CaptureError(ZanonError, OSError):
    """A capture cannot be opened or read; `errno` is the system's reason, if it gave one."""

    def __str__(self) -> str:
        return super().__str__() if self.strerror is None else str(self.strerror)


class FormatError(ZanonError):
    """A source is not a capture, or not a capture that can be read."""


class CapacityError(ZanonError):
    """Memory or another resource ran out."""


class OutputError(ZanonError):
    """The output cannot be written: a full disk, a folder that refuses, a file in the way."""


class MissingExtraError(ZanonError, ImportError):
    """A package that only some commands need is not installed; the text has the line to type."""
