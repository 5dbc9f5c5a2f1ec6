# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The command `zanon-net`. stdout is data, stderr is for people; exit 0, 1 operational, 2 usage."""

import io
import logging
import os
import resource
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import click
from rich.console import Console

from zanon_net._text import printable
from zanon_net._version import __version__
from zanon_net.cli.bench import bench_command
from zanon_net.cli.configure import chosen, configure, naming_options, naming_origins
from zanon_net.cli.model import model_command, tune_command
from zanon_net.cli.options import (
    EPILOG,
    FILTER_EPILOG,
    HELP_OPTIONS,
    RUN_EPILOG,
    GroupedCommand,
    filter_options,
    run_options,
)
from zanon_net.config.example import example, write_example
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.errors import CapacityError, ConfigError, ZanonError
from zanon_net.keys import check_key, new_key
from zanon_net.pipeline.inspection import inspect
from zanon_net.pipeline.manifest import manifest_bytes
from zanon_net.pipeline.privileges import forbid_core_dumps
from zanon_net.pipeline.reader import Progress
from zanon_net.pipeline.report import Report
from zanon_net.pipeline.runner import run
from zanon_net.pipeline.status import Status
from zanon_net.rows.filtering import filter_rows
from zanon_net.system.file_errors import NO_ROOM, explanation
from zanon_net.system.signals import Interruption
from zanon_net.system.streams import STDIN, ClosedStdout

COMMAND = "zanon-net"
EXIT_OPERATIONAL, EXIT_USAGE = 1, 2
DEBUG_VARIABLE = "ZANON_DEBUG"

_log = logging.getLogger("zanon_net")


def _help_alone(ctx: click.Context) -> None:
    """A group by itself asks for nothing: that is a usage error with the help as its text."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(EXIT_USAGE)


@click.group(context_settings=HELP_OPTIONS, invoke_without_command=True, epilog=EPILOG)
@click.version_option(__version__, prog_name=COMMAND, message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Turn network traffic into flow logs in which every name is shared by at least z users."""
    _help_alone(ctx)


@cli.command("run", cls=GroupedCommand, params=run_options(), epilog=RUN_EPILOG)
def run_command(
    source: tuple[str, ...],
    out: str | None,
    config_file: str | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
    **options: Any,
) -> int:
    """Turn captures or live traffic into anonymized flow logs.

    SOURCE is a pcap, pcapng or snoop file, also compressed (.gz .zst .xz .lz4 .bz2), a folder of
    them, or - for standard input. Several are read as one stream, in the order of their
    first packets' times. Or it is one or more network interfaces, read until SIGINT or SIGTERM.
    """
    if quiet and verbose:
        raise click.UsageError("choose one of -q and -v")
    _log.setLevel(logging.INFO if verbose else logging.WARNING)
    config = configure(config_file, options)
    told = config.live.status is not None
    with (
        Interruption(rotates=True) as interruption,
        _progress_bar(quiet or told) as progress,
        _status_table(told) as tell,
        naming_origins(config_file, options),
    ):
        report = run(
            source,
            config,
            out=out,
            progress=progress,
            status=tell,
            interruption=interruption,
            started=None if quiet or as_json else _tell_memory,
        )
    for warning in report.warnings:
        _warn(f"{warning}; what comes before that is in the output")
    _finish(report, as_json, quiet)
    if report.interrupted:
        _say("interrupted: what had been read is complete")
        return EXIT_OPERATIONAL
    return 0


def _tell_memory(flows: int, memory_bytes: int) -> None:
    _say(f"the flow table holds up to {flows:,} flows, in up to {memory_bytes:,} bytes of memory")


def _finish(report: Report, as_json: bool, quiet: bool) -> None:
    if as_json:
        _print_manifest(report.manifest, report.speed(), err=report.out is None)
    elif not quiet:
        _heard_or_not(lambda: report.print_summary(Console(stderr=True)))


@cli.command("filter", cls=GroupedCommand, params=filter_options(), epilog=FILTER_EPILOG)
def filter_command(source: tuple[str, ...], as_json: bool, quiet: bool, **options: Any) -> int:
    """Release the observations whose attribute at least z users share.

    FILE is CSV or JSON Lines, or - for standard input, which is also read when there is none; give
    several in the order of their times. Standard output gets the time, the user's pseudonym and the
    attribute of each row, at once; all other columns are left out.
    """
    with naming_options():
        config = FilterConfig(**chosen(options))
    for column in config.passed:
        _warn(f"column {column!r} is written as it is: it is not anonymized")
    with Interruption() as interruption:
        report = filter_rows(source or (STDIN,), config, interruption=interruption, warn=_warn)
    for warning in report.warnings:
        _warn(warning)
    if as_json:
        _print_manifest(report.manifest, report.speed(), err=True)
    elif not quiet:
        _heard_or_not(lambda: report.print_summary(Console(stderr=True)))
    if report.interrupted:
        _say("interrupted: every row written is complete")
        return EXIT_OPERATIONAL
    return 0


def _print_manifest(manifest: Mapping[str, Any], speed: Mapping[str, float], *, err: bool) -> None:
    if err and sys.stderr is None:  # nobody hears why, but who asked for it does not have it
        raise ZanonError("standard error is closed")
    text = manifest_bytes({**manifest, "performance": speed}).decode("ascii")
    click.echo(text, nl=False, err=err)


@contextmanager
def _progress_bar(quiet: bool) -> Iterator[Progress | None]:
    """A bar on stderr where a person looks at it; None elsewhere."""
    console = Console(stderr=True)
    if quiet or not (console.is_terminal and os.isatty(2)):  # rich can be told that a pipe is one
        yield None
        return
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        BarColumn(),
        DownloadColumn(),
        TextColumn("{task.fields[rate]:,.0f} packets/s"),
        TimeRemainingColumn(),
    )
    bar = Bar(*columns, console=console, transient=True)
    task = bar.add_task("", total=None, rate=0.0)

    def show(bytes_read: int, bytes_total: int, packets: int) -> None:
        rate = packets / max(bar.tasks[0].elapsed or 0.0, 1e-9)
        bar.update(task, completed=bytes_read, total=bytes_total or None, rate=rate)

    _heard_or_not(bar.start)
    try:
        yield show
    finally:
        _heard_or_not(bar.stop)


@contextmanager
def _status_table(wanted: bool) -> Iterator[Callable[[Status], None]]:
    """What shows a status: a table that changes where a person looks at it; elsewhere a line."""
    console = Console(stderr=True)
    if not (wanted and console.is_terminal and os.isatty(2)):
        yield lambda status: _say(f"status: {status.line()}")
        return
    from rich.live import Live
    from rich.table import Table

    def table(status: Status) -> Table:
        shown = Table.grid(padding=(0, 2))
        for row in status.rows():
            shown.add_row(*row)
        return shown

    live = Live(console=console, auto_refresh=False, transient=True)
    _heard_or_not(live.start)
    try:
        yield lambda status: _heard_or_not(lambda: live.update(table(status), refresh=True))
    finally:
        _heard_or_not(live.stop)


@cli.group("key", invoke_without_command=True)
@click.pass_context
def key_group(ctx: click.Context) -> None:
    """Make or check a key file for --key-file."""
    _help_alone(ctx)


@key_group.command("new")
@click.argument("file")
def key_new(file: str) -> int:
    """Write a new random key to FILE, which must not exist.

    Whoever holds the key can undo the pseudonyms made with it: keep it apart from the logs.
    """
    new_key(file)
    _say(f"wrote a new key to {file}; keep it secret and apart from the logs")
    return 0


@key_group.command("check")
@click.argument("file")
def key_check(file: str) -> int:
    """Check that FILE holds a key and that nobody else can read it."""
    check_key(file)
    _say(f"{file} is a good key file")
    return 0


@cli.command("config")
@click.argument("file", required=False)
def config_command(file: str | None) -> int:
    """Write a configuration file with every setting and its default.

    To FILE, which must not exist, or to standard output.
    """
    if file is None:
        click.echo(example(), nl=False)
        return 0
    write_example(file)
    _say(f"wrote every setting to {file}; use it with run --config {file}")
    return 0


@cli.command("inspect")
@click.argument("source")
@click.option("--json", "as_json", is_flag=True, help="JSON instead of a table.")
@click.option("--max-bytes", metavar="BYTES", help="Most bytes a compressed source may unpack to.")
def inspect_command(source: str, as_json: bool, max_bytes: str | None) -> int:
    """Show what a capture holds, in counts.

    SOURCE is what `run` reads: a pcap, pcapng or snoop file, also compressed, a folder of them, or
    - for standard input. No name and no address is printed.
    """
    config = configure(None, {"max_bytes": max_bytes})
    with Interruption() as interruption, _progress_bar(quiet=False) as progress:
        found = inspect(source, config, progress=progress, interruption=interruption)
    if as_json:
        click.echo(manifest_bytes(found.to_dict()).decode("ascii"), nl=False)
    else:
        found.print(Console())
    for facts in found.facts:
        if facts.warning is not None:
            _warn(f"{facts.name}: {facts.warning}")
    return EXIT_OPERATIONAL if found.interrupted else 0


cli.add_command(model_command)
cli.add_command(tune_command)
cli.add_command(bench_command)


def _say(text: str) -> None:
    line = printable(" ".join(text.split()))
    _heard_or_not(lambda: click.echo(f"{COMMAND}: {line}", err=True))


def _heard_or_not(say: Callable[[], None]) -> None:
    """Says something on stderr. Where nobody hears it any more, that ends no run."""
    try:
        say()
    except (OSError, SystemExit):  # rich turns a reader that went away into the latter
        with suppress(OSError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, 2)
            os.close(nowhere)


def _warn(text: str) -> None:
    _say(f"warning: {text}")


class _LogHandler(logging.Handler):
    """Writes records like every other message of the command."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record."""
        _say(record.getMessage())


def _harden() -> None:
    """No core dump, and as many files as the system lets us open."""
    forbid_core_dumps()
    with suppress(OSError, ValueError):  # a run may have more sources than the usual 1024 files
        _soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _explain(error: BaseException) -> int:
    """Says in one line what went wrong; returns the exit code. Never prints what was read."""
    match error:
        case BrokenPipeError() | SystemExit():  # rich turns the one into the other
            pass  # whoever read our output has gone; there is nobody to tell
        case click.UsageError():
            path = error.ctx.command_path if error.ctx else COMMAND
            _say(f"{error.format_message().removesuffix('.')} (see '{path} --help')")
            return EXIT_USAGE
        case ConfigError():
            _say(str(error))
            return EXIT_USAGE
        case KeyboardInterrupt():
            _say("interrupted; only files that are whole are left")
        case MemoryError() | CapacityError():
            _say(str(error) or "out of memory")
        case ZanonError():
            _say(str(error))
        case OSError(filename=None) if error.errno in NO_ROOM:  # files have their own errors
            _say(explanation("write", "standard output", error))
        case OSError():
            problem = error.strerror or "input or output error"
            _say(f"{error.filename}: {problem}" if error.filename else problem)
        case _:
            _say(f"internal error: {type(error).__name__}; please report it")
    return EXIT_OPERATIONAL


def _flush_stdout(told: bool) -> int:
    """Empties stdout's buffer while an error can still be told; returns 1 when it cannot be.

    told: an error was told already, which may be that very one: the buffer keeps what it has.
    """
    try:
        sys.stdout.flush()
    except OSError as error:
        code = EXIT_OPERATIONAL if told else _explain(error)
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return code
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code. No exception leaves it."""
    _harden()
    sys.stdout = sys.stdout or ClosedStdout()  # none when it was closed before
    if isinstance(sys.stdout, io.TextIOWrapper):  # what a locale cannot show is no error
        sys.stdout.reconfigure(errors="backslashreplace")  # as of standard error
    handler, level = _LogHandler(), _log.level
    _log.addHandler(handler)
    told = False
    try:
        # Not cli.main(): it prints and exits by itself on some errors.
        with cli.make_context(
            COMMAND, list(sys.argv[1:] if arguments is None else arguments)
        ) as ctx:
            code = cli.invoke(ctx)
    except click.exceptions.Exit as wish:
        code = wish.exit_code
    except BaseException as error:
        if os.environ.get(DEBUG_VARIABLE) == "1":
            traceback.print_exc()
        code, told = _explain(error), True
    finally:
        _log.removeHandler(handler)
        _log.setLevel(level)
    return _flush_stdout(told) or int(code or 0)
