# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net unseal`: the observations in sealed rows that a counter released."""

from pathlib import Path

import click

from zanon_net.cli.messages import EXIT_OPERATIONAL, say, warn
from zanon_net.cli.options import INPUT_AND_OUTPUT, GroupedCommand, GroupedOption
from zanon_net.count.unsealing import Unsealed, unseal
from zanon_net.output.new_file import NewFile
from zanon_net.output.stdout import standard_output, write_whole
from zanon_net.system.file_errors import explained

EPILOG = """\b
Exit codes: 0 done, 1 could not be done, 2 wrong option, key file or source.

\b
Examples:
  zanon-net key new --reader reader.key
  zanon-net unseal --reader-key reader.key released/ --out observations.jsonl
"""


def _options() -> list[click.Parameter]:
    key = GroupedOption(
        ["--reader-key"],
        group=INPUT_AND_OUTPUT,
        required=True,
        metavar="FILE",
        help="The reader's secret key, of `key new --reader FILE`.",
    )
    out = GroupedOption(
        ["--out"],
        group=INPUT_AND_OUTPUT,
        metavar="FILE",
        help="A new file, which appears when it is whole, or '-' for standard output. [default: -]",
    )
    return [click.Argument(["sealed"], nargs=-1, required=True), key, out]


@click.command("unseal", cls=GroupedCommand, params=_options(), epilog=EPILOG)
def unseal_command(sealed: tuple[str, ...], reader_key: str, out: str | None) -> int:
    """Write the observations in sealed rows as JSON Lines.

    SEALED is a file of rows that `count --sealed-out` released, or a folder of them.
    """
    if out in (None, "-"):
        return _conclude(unseal(sealed, reader_key, _to_stdout, warn))
    with NewFile(Path(str(out))) as file:
        counts = unseal(sealed, reader_key, file.write, warn)
        if _is_of_use(counts):
            file.publish()
    return _conclude(counts)


def _to_stdout(data: bytes) -> None:
    with explained("write", "standard output"):
        write_whole(standard_output(), data)


def _conclude(counts: Unsealed) -> int:
    if counts.foreign:
        warn(f"{counts.foreign} rows were sealed to another reader, or were changed")
    if counts.refused:
        warn(f"{counts.refused} rows are no observations, and were left out")
    if counts.repeated:
        warn(f"{counts.repeated} rows came more than once, and were written once")
    say(f"{counts.written} observations of {counts.rows} rows")
    return 0 if _is_of_use(counts) else EXIT_OPERATIONAL


def _is_of_use(counts: Unsealed) -> bool:
    """Whether something could be read, or there was nothing to read."""
    return counts.written > 0 or (counts.rows == 0 and counts.damaged == 0)
