# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Compares our Tstat logs with Tstat's own, column by column, over captures that Tstat logged.

Usage: python bench/tstat_compare.py CORPUS [--logs tstat.jsonl] [--show COLUMN] [--path TEXT]

CORPUS is a folder with captures and, in tstat.jsonl, what Tstat 3.3 logged for each. Every capture
is run with z = 1, so that nothing is withheld, with everything internal, as Tstat ran, and under a
known key: Tstat's addresses are encrypted with it, and each of its flows is looked up by 5-tuple,
and by start where a tuple was reused. Counts must be the same, times within a microsecond.

Prints the share of flows that agree for each column, and the number of other values in each class
of differences; docs/explanation/conformance.md says which side is right in each.
"""

import argparse
import base64
import hashlib
import ipaddress
import json
import os
import re
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tstat_classes import NAMES, Difference, class_of, is_decoding

from zanon_net import Config
from zanon_net._core import Capture, Keys, PacketEngine

LOGS = ("log_tcp_complete", "log_tcp_nocomplete", "log_udp_complete")
MICROSECOND_MS = 0.00125  # and the rounding of a double that holds ms since 1970
ROTATE_NS = 3650 * 86_400 * 10**9
SETS = "core,e2e,p2p,options,layer7"

# Ours are encrypted by construction.
NOT_COMPARED = {"c_ip", "c_port", "s_ip", "s_port", "c_iscrypto", "s_iscrypto", "dns_enc"}
ADDRESSES = {"dns_rslv"}
SECONDS = {"c_durat", "s_durat"}
MILLISECONDS = re.compile(
    r"first|last|durat|[cs]_(first|last|first_ack|first_abs)|[cs]_rtt_(avg|min|max|std)"
    r"|[cs]_last_handshakeT|[cs]_appdataT|re[qs]_tm"
)

Row = dict[str, str]


@dataclass(slots=True)
class Result:
    """The numbers of comparisons by (log, column), and every difference."""

    flows: Counter[tuple[str, str]] = field(default_factory=Counter)
    agree: Counter[tuple[str, str]] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    extra: Counter[str] = field(default_factory=Counter)
    raw: bool = False  # keeps the slips in Tstat's values

    def note(self, same: bool, difference: Difference) -> None:
        """Counts one comparison."""
        key = (difference.log, difference.column)
        self.flows[key] += 1
        if same:
            self.agree[key] += 1
        else:
            self.differences.append(difference)

    def share(self, log: str, column: str) -> float:
        """Returns the part of Tstat's flows that agree, 0 to 1."""
        key = (log, column)
        return self.agree[key] / self.flows[key] if self.flows[key] else 1.0

    def share_decoded_alike(self, log: str, column: str) -> float:
        """Returns the agreeing part, without the differences that come from decoding more, or less,
        of a frame."""
        key = (log, column)
        n = self.flows[key] - sum(
            (d.log, d.column) == key and is_decoding(d) for d in self.differences
        )
        return self.agree[key] / n if n else 1.0

    @property
    def columns(self) -> list[tuple[str, str]]:
        """Every (log, column) compared, in Tstat's order."""
        return list(self.flows)


# ---- reading ------------------------------------------------------------------------------------


def rows_of(lines: list[str]) -> list[Row]:
    """Returns the lines of a log by column name; the first line is its header."""
    if not lines:
        return []
    columns = [word.rpartition("#")[2].partition(":")[0] for word in lines[0].split(" ")]
    # Tstat's header of log_tcp_nocomplete names columns that its lines do not have.
    return [dict(zip(columns, line.split(" "), strict=False)) for line in lines[1:]]


def our_logs(path: Path, config: Config) -> dict[str, list[Row]]:
    """Our logs of a capture."""
    engine = PacketEngine(**config.engine_arguments())
    text = {log: engine.header(log) for log in LOGS}
    with Capture(str(path)) as capture:
        more = True
        while more:
            more = engine.run(capture, 16384) > 0
            for log in LOGS:
                text[log] += engine.take(log)
    engine.finish()
    for log in LOGS:
        text[log] += engine.take(log)
    engine.close()
    return {log: rows_of(text[log].decode("ascii").split("\n")[:-1]) for log in LOGS}


# ---- matching -----------------------------------------------------------------------------------


def is_special(text: str) -> bool:
    """Returns true if zanon_net's logs have "-" in place of the address."""
    address = ipaddress.ip_address(text)
    special = address.is_unspecified or address.is_loopback or address.is_link_local
    return special or address.is_multicast or text == "255.255.255.255"


class Mapper:
    """Encrypts real addresses as a run with these settings does, which keep no networks."""

    def __init__(self, config: Config) -> None:
        engine = PacketEngine(**config.engine_arguments())
        scope = engine.key_scope.encode("ascii")
        engine.close()
        self._keys = Keys(
            config.rotate_ns,
            os.fspath(config.addresses.key_file or ""),
            z=config.anonymity.z,
            window_ns=config.anonymity.window_ns,
            digest=hashlib.sha256(scope).digest(),
            user=tuple(config.addresses.user_prefix),
        )

    def __call__(self, text: str, t_ms: float) -> str:
        """Returns the address as our logs have it in a flow that began at t_ms."""
        if text == "-" or is_special(text):
            return "-"
        return self._keys.pseudonym(int(t_ms * 1e6), text)[0]


def start_ms(row: Mapping[str, str]) -> float:
    """Returns the start of a flow in ms since 1970."""
    return float(row["first" if "first" in row else "c_first_abs"])


class Ours:
    """Our flows of one capture by 5-tuple, each to be found once."""

    def __init__(self, logs: Mapping[str, list[Row]]) -> None:
        self._flows: defaultdict[tuple[str, ...], list[tuple[str, Row]]] = defaultdict(list)
        for log, rows in logs.items():
            for row in rows:
                self._flows[self._key(log, row)].append((log, row))

    @staticmethod
    def _key(log: str, row: Mapping[str, str]) -> tuple[str, ...]:
        return (log[4:7], row["c_ip"], row["c_port"], row["s_ip"], row["s_port"])

    def take(self, log: str, row: Mapping[str, str]) -> tuple[str, Row] | None:
        """Returns the flow of this tuple that began closest to this one."""
        same = self._flows.get(self._key(log, row))
        if not same:
            return None
        start = start_ms(row)
        best = min(same, key=lambda flow: abs(start_ms(flow[1]) - start))
        same.remove(best)
        return best

    def left(self) -> Iterator[tuple[str, Row]]:
        """Yields the flows that nothing was matched with."""
        for flows in self._flows.values():
            yield from flows


# ---- comparing ----------------------------------------------------------------------------------


def plain_name(text: str) -> str:
    """Returns a name as our logs have it: lower case, no port, no final dot; an IP literal is no
    name."""
    name = text.lower().rstrip(".")
    name = re.sub(r":[0-9]*$", "", name) if name.count(":") == 1 else name
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return name
    return "-"


def without_slips(column: str, theirs: str, flow: Mapping[str, str]) -> str:
    """Tstat's value with two slips of its arithmetic undone.

    It divides a sum of round-trip times by their number plus 0.0001, and holds an MSS in 16 bits
    with a sign.
    """
    if column.endswith("_rtt_avg"):
        n = float(flow[column.replace("avg", "cnt")])
        return f"{float(theirs) * (n + 1e-4) / n:.6f}" if n else theirs
    if column.endswith("_mss") and theirs.startswith("-"):
        return str(int(theirs) + (1 << 16))
    return theirs


def same(column: str, theirs: str, ours: str) -> bool:
    """Returns true if the values of a column agree."""
    if theirs == ours:
        return True
    if column in NAMES:
        cut = plain_name(theirs)
        return plain_name(ours) == cut or (len(theirs) == 79 and ours.startswith(cut))
    if MILLISECONDS.fullmatch(column):
        return abs(float(theirs) - float(ours)) <= MICROSECOND_MS
    if column in SECONDS:
        return abs(float(theirs) - float(ours)) <= 1.5e-6
    return False


def compare_flow(
    result: Result, path: str, flow: tuple[str, Row], found: tuple[str, Row] | None
) -> None:
    """Counts one of Tstat's flows and, if zanon_net has it, too, each of its columns."""
    log, row = flow
    mine = found[1] if found else {}
    other = found[0] if found else "-"
    result.note(found is not None, Difference(path, log, "(flow)", "there", other, row, mine))
    if found is None:
        return
    result.note(other == log, Difference(path, log, "(file)", log, other, row, mine))
    for column, theirs in row.items():
        if column in NOT_COMPARED or column not in mine:
            continue
        ours = mine[column]
        difference = Difference(path, log, column, theirs, ours, row, mine)
        plain = theirs if result.raw else without_slips(column, theirs, row)
        result.note(same(column, plain, ours), difference)


def compare_capture(
    result: Result, corpus: Path, entry: Mapping[str, object], config: Config, mapper: Mapper
) -> None:
    """Compares Tstat's logs of one capture; `entry` is a line of tstat.jsonl."""
    path = str(entry["path"])
    logs = entry["logs"]
    assert isinstance(logs, dict)
    ours = Ours(our_logs(corpus / path, config))
    theirs = [(log, row) for log in LOGS for row in rows_of(logs.get(log, []))]
    for log, row in sorted(theirs, key=lambda flow: start_ms(flow[1])):
        start = start_ms(row)
        real = {name: row[name] for name in ("c_ip", "s_ip", *ADDRESSES) if name in row}
        shown = row | {name: mapper(text, start) for name, text in real.items()}
        compare_flow(result, path, (log, shown), ours.take(log, shown))
    for log, _row in ours.left():
        result.extra[log] += 1


def compare(corpus: Path, logs: Path, only: str = "", *, raw: bool = False) -> Result:
    """Compares every capture whose path holds `only`; raw: without undoing Tstat's slips."""
    result = Result(raw=raw)
    with tempfile.TemporaryDirectory() as scratch:
        key_file = Path(scratch, "key")
        key_file.touch(mode=0o600)
        key_file.write_bytes(base64.b64encode(bytes(range(32))) + b"\n")
        config = Config().replace(
            z=1,
            evidence="any",
            internal="any",
            keep_client_port=True,
            key_file=os.fspath(key_file),
            rotate=ROTATE_NS,
            columns=SETS,
            dn_hunter=True,
            max_flows=1 << 16,
            max_tuples=1 << 16,
            max_attributes=1 << 16,
        )
        mapper = Mapper(config)
        for line in logs.read_text("utf-8").splitlines():
            entry = json.loads(line)
            if only in entry["path"]:
                compare_capture(result, corpus, entry, config, mapper)
    return result


# ---- printing -----------------------------------------------------------------------------------


def print_result(result: Result) -> None:
    """A line for each column, then the classes of differences."""
    print("| log | column | flows | agree % | differences |")
    print("|---|---|---:|---:|---|")
    classes: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for difference in result.differences:
        classes[difference.log, difference.column][class_of(difference)] += 1
    for log, column in result.columns:
        why = ", ".join(f"{n} {name}" for name, n in classes[log, column].most_common())
        share = 100 * result.share(log, column)
        print(f"| {log[4:]} | {column} | {result.flows[log, column]} | {share:.2f} | {why} |")
    print()
    total = Counter(class_of(difference) for difference in result.differences)
    for name, n in total.most_common():
        print(f"{n:6}  {name}")
    for log, n in result.extra.items():
        print(f"{n:6}  flows of ours in {log} that Tstat does not have")


def show(result: Result, column: str) -> None:
    """Prints every difference in a column that has no class."""
    for item in result.differences:
        if column in (item.column, "all") and class_of(item) == "not explained":
            print(item.path, item.log, item.column, *item.flow_ports, item.theirs, item.ours)


def main() -> int:
    """Reads the command line, compares, prints."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path, metavar="CORPUS")
    parser.add_argument("--logs", type=Path, help="default: CORPUS/tstat.jsonl")
    parser.add_argument("--path", default="", help="only captures whose path holds this")
    parser.add_argument("--show", help="a column, or all: list its unexplained differences")
    parser.add_argument("--raw", action="store_true", help="leave Tstat's arithmetic slips in")
    arguments = parser.parse_args()
    logs = arguments.logs or arguments.corpus / "tstat.jsonl"
    if not logs.exists():
        print(f"{logs} is not there: nothing to compare with", file=sys.stderr)
        return 1
    result = compare(arguments.corpus, logs, arguments.path, raw=arguments.raw)
    if arguments.show:
        show(result, arguments.show)
    else:
        print_result(result)
    return 0


if __name__ == "__main__":
    sys.exit(main())
