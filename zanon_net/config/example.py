# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A configuration file with every setting, its default and what it means."""

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path

from zanon_net.config.settings import Config
from zanon_net.errors import ConfigError
from zanon_net.system.file_errors import explained

_ABOUT = {
    "z": "users that must share a name before it is released; 1 releases every name",
    "window": "for how long a user's exposure to a name counts",
    "evidence": '"established": only clients that proved to be real count; "any": all',
    "dns_votes": "whether names in DNS queries count",
    "never": "a file with suffixes of names never to release, one a line",
    "exact": "exact measurements also in flows whose name is suppressed",
    "dn_hunter": "write in fqdn the name by which DNS gave the server, if z users share it",
    "target_k": "with target_p: how many users share these names, the user included; 2",
    "target_p": "z follows the stream; probability that others share a user's names",
    "z_max": "the largest z that it may take, z being the smallest; 1000",
    "internal": "the users' networks: a list, a file (such as Tstat's for -N) or \"any\"",
    "user_prefix": "leading bits of an IPv4 and of an IPv6 address that tell users apart",
    "keep_client_port": "client ports as they are, instead of 0",
    "rotate": "how long one key makes the pseudonyms; left out: as long as the window",
    "key_file": "made by `zanon-net key new zanon.key`; left out: a key that is never stored",
    "filter": "read only packets that match this capture filter, as of tcpdump",
    "max_bytes": "most unpacked of a source; left out: 200 times its size, at least 1G",
    "format": "tstat, csv, jsonl, parquet, observations",
    "columns": "core, and any of layer7, e2e, options, p2p",
    "compress": '"none", "gzip" or "zstd"; Parquet with none: snappy',
    "split": "new files at each multiple of this packet time; whole minutes only",
    "split_size": "new files when one reaches this size",
    "popularity": "counts of users per name and window, for the operator, not for release",
    "max_flows": "open flows at a time; beyond it those idle for longest are closed early",
    "max_tuples": "(user, name) pairs remembered; beyond it the oldest are forgotten",
    "max_attributes": "names and addresses remembered; beyond it the oldest are forgotten",
    "workers": "threads that share the work; what is written is the same for any number",
    "ring": "memory of each interface for frames that wait to be read",
    "snaplen": "bytes kept of each frame; a name beyond them is not seen",
    "promiscuous": "whether an interface takes frames for other hosts too",
    "status": "how often to report on the run; left out: never",
    "drop_to": "the user to go on as instead of root, once everything is open",
}

_EXAMPLES: dict[str, object] = {
    "never": "never.txt",
    "target_k": 2,
    "target_p": 0.95,
    "z_max": 1000,
    "internal": "10.0.0.0/8,fd00::/8",
    "rotate": "1h",
    "key_file": "zanon.key",
    "filter": "tcp port 443 or udp port 53",
    "max_bytes": "20G",
    "split": "1h",
    "split_size": "2G",
    "popularity": "popularity.json",
    "status": "10s",
    "drop_to": "nobody",
}


def example() -> str:
    """The file's text. Settings without a default are there as comments."""
    return "\n".join(_lines()) + "\n"


def write_example(path: str | os.PathLike[str]) -> None:
    """Writes the file.

    Raises ConfigError when there is something of this name already, OutputError when the system
    refuses; no part of it is left, which a run would take for all of the settings.
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
    config = Config()
    for section in dataclasses.fields(config):
        values = getattr(config, section.name)
        yield ""
        yield f"[{section.name}]"
        for field in dataclasses.fields(values):
            value = getattr(values, field.name)
            yield f"# {_ABOUT[field.name]}"
            if value in (None, "", ()):
                yield f"# {field.name} = {json.dumps(_EXAMPLES[field.name])}"
            else:
                yield f"{field.name} = {json.dumps(value)}"
