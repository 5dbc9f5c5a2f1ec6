# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net key`: makes and checks key files."""

import click

from zanon_net.cli.messages import say
from zanon_net.keys import check_key, new_key, new_reader_key


@click.command("new")
@click.argument("file")
@click.option(
    "--reader",
    is_flag=True,
    help="The keys of a reader of sealed rows: FILE is for `unseal`, FILE.pub for probes.",
)
def key_new(file: str, reader: bool) -> int:
    """Write a new random key to FILE, which must not exist.

    Whoever holds the key can undo the pseudonyms made with it, or open the rows sealed to it: keep
    it apart from the logs.
    """
    if reader:
        public = new_reader_key(file)
        say(f"wrote a reader's key to {file}, to keep secret, and {public}, to give to probes")
        return 0
    new_key(file)
    say(f"wrote a new key to {file}; keep it secret and apart from the logs")
    return 0


@click.command("check")
@click.argument("file")
def key_check(file: str) -> int:
    """Check that FILE holds a key and that nobody else can read it."""
    check_key(file)
    say(f"{file} is a good key file")
    return 0
