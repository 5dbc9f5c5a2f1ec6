# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a man page for each command of `zanon-net`, from the text of its --help.

Usage: python scripts/make_man_pages.py DIR. setup.py calls it when it builds a wheel.
"""

import re
import sys
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
from click_man.man import ManPage

from zanon_net._version import __version__
from zanon_net.cli.entry import cli
from zanon_net.cli.messages import COMMAND

VERBATIM = "\b"  # click's mark: the paragraph keeps its lines


def escape(text: str) -> str:
    """Escapes backslashes and dots at line starts, so that troff finds no command in the text."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^(?=[.'])", r"\\&", text, flags=re.MULTILINE)


def paragraphs(text: str) -> str:
    """Returns a help text as troff. Paragraphs are filled, except verbatim paragraphs of click."""
    parts = []
    for paragraph in re.split(r"\n\s*\n", cleandoc(text).strip()):
        if paragraph.startswith(VERBATIM):
            lines = escape(paragraph.removeprefix(VERBATIM).strip("\n"))
            parts.append(f".nf\n{lines}\n.fi")
        else:
            parts.append(escape(paragraph))
    return "\n.PP\n".join(parts)


def name_of(ctx: click.Context) -> str:
    """Returns the name of a command's page."""
    return ctx.command_path.replace(" ", "-")


def man_page(ctx: click.Context) -> str:
    """Returns the man page of one command."""
    command = ctx.command
    page = ManPage(ctx.command_path)
    page.version = __version__
    page.short_help = escape(command.get_short_help_str(limit=200).rstrip("."))
    page.synopsis = " ".join(command.collect_usage_pieces(ctx))
    page.description = paragraphs(command.help or "")
    options = (each for each in command.get_params(ctx) if isinstance(each, click.Option))
    records = (option.get_help_record(ctx) for option in options)
    page.options = [(option, escape(text)) for option, text in filter(None, records)]
    if isinstance(command, click.Group):
        page.commands = [
            (name, escape(child.get_short_help_str(limit=200)))
            for name, child in command.commands.items()
        ]
    title, name = ctx.command_path.upper(), name_of(ctx).upper()
    notes = f".SH NOTES\n{paragraphs(command.epilog)}\n" if command.epilog else ""
    return str(page).replace(title, name, 1) + notes


def contexts(
    command: click.Command, parent: click.Context | None = None
) -> Iterator[click.Context]:
    """Yields a context for a command and for each of its subcommands."""
    word = command.name if parent else COMMAND
    ctx = click.Context(command, parent, word, **command.context_settings)
    yield ctx
    if isinstance(command, click.Group):
        for name in command.commands:
            child = command.get_command(ctx, name)
            assert child is not None, name
            yield from contexts(child, ctx)


def main(folder: Path) -> None:
    """Writes all pages."""
    folder.mkdir(parents=True, exist_ok=True)
    for ctx in contexts(cli):
        (folder / f"{name_of(ctx)}.1").write_text(man_page(ctx), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
