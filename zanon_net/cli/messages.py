# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The command's messages for people and machines, and the exit codes of errors.

stdout is data, stderr is for people; exit 0, 1 operational, 2 usage, 3 a promise not kept.
"""

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from zanon_net._text import printable, terminal_width
from zanon_net.errors import CapacityError, ConfigError, UnopenedError, ZanonError
from zanon_net.system.file_errors import NO_ROOM, explanation
from zanon_net.system.log import INFO, NOTICE, WARNING, log

if TYPE_CHECKING:
    from zanon_net.pipeline.report import Report
    from zanon_net.rows.report import RunReport

COMMAND = "zanon-net"
_above: list[Callable[[str], None]] = []
EXIT_OPERATIONAL, EXIT_USAGE, EXIT_PROMISE = 1, 2, 3


def set_verbosity(*, quiet: bool, verbose: bool) -> None:
    """Chooses which log records are printed: warnings, notices too, or all of them."""
    if quiet and verbose:
        raise click.UsageError("choose one of -q and -v")
    log.level = WARNING if quiet else INFO if verbose else NOTICE


def say(text: str) -> None:
    """Prints `text` on standard error as one line; other characters are made printable."""
    line = f"{COMMAND}: {printable(' '.join(text.split()))}"
    print_line = _above[-1] if _above else partial(click.echo, err=True)
    write_if_heard(lambda: print_line(line))


@contextmanager
def printing_above(print_line: Callable[[str], None]) -> Iterator[None]:
    """Inside, messages are printed by `print_line`, above what moves on the terminal."""
    _above.append(print_line)
    try:
        yield
    finally:
        _above.pop()


def write_if_heard(write: Callable[[], None]) -> None:
    """Calls `write`, which prints on standard error. A reader that went away ends no run."""
    try:
        write()
    except (OSError, SystemExit):  # rich raises the latter for a reader that went away
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 2)
            os.close(nowhere)


def warn(text: str) -> None:
    """Prints a warning."""
    say(f"warning: {text}")


def print_manifest(manifest: Mapping[str, Any], speed: Mapping[str, float], *, err: bool) -> None:
    """Prints a manifest and the run's speed as JSON.

    err: on standard error. Raises ZanonError when that stream is closed.
    """
    if err and sys.stderr is None:  # the exit code alone can say that the manifest is missing
        raise ZanonError("standard error is closed")
    from zanon_net.pipeline.manifest import manifest_bytes

    text = manifest_bytes({**manifest, "performance": speed}).decode("ascii")
    click.echo(text, nl=False, err=err)


def print_table(table: Callable[[int], str]) -> None:
    """Prints `table(width of the terminal)` on standard error."""
    write_if_heard(lambda: click.echo(table(terminal_width()), nl=False, err=True))


def conclude(report: "RunReport", *, as_json: bool, quiet: bool) -> int:
    """Prints what a run on rows came to, on standard error; returns the exit code."""
    for warning in report.warnings:
        warn(warning)
    if as_json:
        print_manifest(report.manifest, report.speed(), err=True)
    elif not quiet:
        print_table(report.summary)
    if report.interrupted:
        say("interrupted: every row written is complete")
        return EXIT_OPERATIONAL
    return 0


def finish_run(
    report: "Report", *, as_json: bool, quiet: bool, fail_on_loss: float | None, has_stdout: bool
) -> int:
    """Prints what a run came to; returns the exit code.

    fail_on_loss: the percentage of lost packets beyond which the code is that of a failure.
    has_stdout: standard output got the data, so that a manifest goes to standard error.
    """
    for warning in report.warnings if report.failure is None else ():
        warn(f"{warning}; what comes before that is in the output")
    if report.loss is not None:
        warn(report.loss.text())
    for doubt in report.doubts:
        warn(doubt)
    if report.sent is not None and (unsent := report.sent.warning()) is not None:
        warn(unsent)
    if as_json:
        print_manifest(report.manifest, report.speed(), err=has_stdout)
    elif not quiet:
        print_table(report.summary)
    if report.failure is not None:
        say(f"{report.failure}; what comes before that is in the output")
        return EXIT_OPERATIONAL
    if fail_on_loss is not None and report.loss is not None and report.loss.percent > fail_on_loss:
        say(f"more than {fail_on_loss:g} % of the packets were lost; the rest is whole")
        return EXIT_OPERATIONAL
    if report.interrupted:
        say("interrupted: what had been read is complete")
        return EXIT_OPERATIONAL
    return 0


def say_memory(flows: int, memory_bytes: int) -> None:
    """Says what the flow table may take; see Started."""
    say(f"the flow table holds up to {flows:,} flows, in up to {memory_bytes:,} bytes of memory")


def explain(error: BaseException) -> int:
    """Prints in one line what went wrong, never data that was read; returns the exit code."""
    match error:
        case BrokenPipeError() | SystemExit():  # rich raises the latter for the former
            pass  # the reader of our output has gone: nobody is left for a message
        case click.UsageError():
            path = error.ctx.command_path if error.ctx else COMMAND
            problem = _without_keys(error.format_message().removesuffix("."))
            say(f"{problem} (see '{path} --help')")
            return EXIT_USAGE
        case ConfigError():
            say(_without_keys(str(error)))
            return EXIT_OPERATIONAL if isinstance(error, UnopenedError) else EXIT_USAGE
        case KeyboardInterrupt():
            say("interrupted; only files that are whole are left")
        case MemoryError() | CapacityError():
            say(str(error) or "out of memory")
        case ZanonError():
            say(str(error))
        case OSError(filename=None) if error.errno in NO_ROOM:  # of a file it is an OutputError
            say(explanation("write", "standard output", error))
        case OSError():
            problem = error.strerror or "input or output error"
            say(f"{error.filename}: {problem}" if error.filename else problem)
        case _:
            say(f"internal error: {_described(error)}; please report it")
    return EXIT_OPERATIONAL


def _described(error: BaseException) -> str:
    try:
        from zanon_net.cli.internal_error import internal_error
    except ImportError:  # after --drop-to the user may not be able to read the module
        return type(error).__name__
    return internal_error(error)


def _without_keys(text: str) -> str:
    from zanon_net.config.parse import without_keys

    return without_keys(text)


def flush_stdout(failed: bool) -> int:
    """Flushes stdout while an error can still be printed; returns the exit code 1 if it fails.

    failed: the command failed already, perhaps by this very error, which left its bytes in the
    buffer: it is not explained twice.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        code = EXIT_OPERATIONAL if failed else explain(error)
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code
    return 0
