# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Table of the formats of a run's output.

The choices of `--format`, the rules of standard output, the manifest's accounts, and retention read
the table. The core has the name and the suffix of each output's files.
"""

from collections.abc import Iterable

from zanon_net._record import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A row of the table.

    name: the word of `--format`.
    outputs: the core's name of each output that the format needs.
    is_accounted: true if the manifest says what became of the record of each closed flow.
    left_out: the counter of closed flows whose records the format leaves out; empty: none.
    is_packets: true if the output is a capture of anonymized packets.
    compresses_itself: true if `--compress` compresses parts of a file and does not change its name.
    has_folder: true if its files lie in a folder of their own, and appear together.
    dataset: folder of its files, which contains no other file; empty: the run's folder.
    not_on_stdout: the reason why standard output cannot take the format; empty: it can.
    """

    name: str
    outputs: tuple[str, ...]
    is_accounted: bool = False
    left_out: str = ""
    is_packets: bool = False
    compresses_itself: bool = False
    has_folder: bool = False
    dataset: str = ""
    not_on_stdout: str = ""


_ROWS = (
    Format(
        name="tstat",
        outputs=("log_tcp_complete", "log_tcp_nocomplete", "log_udp_complete"),
        is_accounted=True,
        left_out="records_midstream",
        has_folder=True,
        not_on_stdout="tstat logs are three files",
    ),
    Format(name="jsonl", outputs=("jsonl",), is_accounted=True),
    Format(name="observations", outputs=("observations",)),
    Format(name="csv", outputs=("csv",), is_accounted=True),
    Format(
        name="parquet",
        outputs=("tcp_table", "udp_table"),
        is_accounted=True,
        compresses_itself=True,
        dataset="flows",
        not_on_stdout="parquet files are no stream",
    ),
    Format(name="pcap", outputs=("packets",), is_packets=True),
    Format(name="pcapng", outputs=("packets_ng",), is_packets=True),
)
FORMATS = {row.name: row for row in _ROWS}
"""The rows by their names."""
FORMAT_OF = {output: row for row in _ROWS for output in row.outputs}
"""The row of each output; outputs of views are not in it."""
PACKET_FORMATS = tuple(row.name for row in _ROWS if row.is_packets)
"""The names of the formats of anonymized packets."""
ON_STDOUT = tuple(row.name for row in _ROWS if not row.not_on_stdout)
"""The names of the formats that standard output can take."""
IN_FOLDER = frozenset(output for row in _ROWS if row.has_folder for output in row.outputs)
"""The outputs whose files lie in a folder of their own."""
DATASET_OF = {output: row.dataset for row in _ROWS if row.dataset for output in row.outputs}
"""The folder of each output whose files lie among no others."""
PACK_THEMSELVES = frozenset(
    output for row in _ROWS if row.compresses_itself for output in row.outputs
)
"""The outputs whose files `--compress` gives no further suffix."""


def outputs_of(names: Iterable[str]) -> tuple[str, ...]:
    """Returns the core's name of each output that the named formats need."""
    return tuple(output for name in names for output in FORMATS[name].outputs)
