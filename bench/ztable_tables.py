# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Formats the output of bench/ztable.py: cases as rows, and rows as tables."""

from collections.abc import Sequence
from dataclasses import dataclass

from ztable_contenders import Setting, Who
from ztable_measure import Case, Laboratory, Result
from ztable_streams import Stream

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of the options."""

    laboratory: Laboratory
    size: float
    repeats: int

    def scaled(self, n: int) -> int:
        """Returns a number of observations, names or users at this size."""
        return max(int(n * self.size), 100)

    def zipf(self, observations: int, names: int = MILLION) -> Stream:
        """Returns a stream with as many users as names."""
        ranks = self.scaled(names)
        return Stream(self.scaled(observations), ranks, ranks)

    def measure(self, case: Case) -> Result:
        """One case."""
        return self.laboratory.measure(case)


def table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table under a heading."""
    lines = [f"### {title}", "", "| " + " | ".join(header) + " |"]
    lines.append("|---" + "|---:" * (len(header) - 1) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def name_of(who: Who, setting: Setting) -> str:
    """Returns the name of a row."""
    if who not in (Who.BATCH, Who.SINGLE):
        return who.value
    return f"{who.value}, keep={setting.keep}" + (", reserved" if setting.reserve else "")


def goal(fastest: bool, value: float, wanted: float | None) -> str:
    """Returns a target and whether it was reached; an empty cell without one."""
    if wanted is None:
        return ""
    reached = value >= wanted if fastest else value <= wanted
    return f"{'>=' if fastest else '<='} {wanted:g}: {'yes' if reached else 'NO'}"


@dataclass(frozen=True, slots=True)
class Line:
    """A case and its goals."""

    case: Case
    rate: float | None = None  # million observations a second, at least
    bytes_each: float | None = None  # a live tuple, at most


SPEED_HEADER = (
    "table",
    "observations",
    "M obs/s (slowest-fastest)",
    "goal",
    "ns, of it kernel",
    "live tuples",
    "MB (process grew by)",
    "B a live tuple",
    "goal",
)


def speed_row(line: Line, result: Result) -> list[str]:
    """Returns the cells of one line."""
    name = name_of(line.case.who, line.case.setting)
    if result.missing:
        return [name, result.missing] + ["-"] * (len(SPEED_HEADER) - 2)
    slowest, fastest = result.range
    each = result.memory / result.live
    return [
        name,
        f"{result.observations:,}",
        f"{result.rate:.3g} ({slowest:.3g}-{fastest:.3g})",
        goal(True, result.rate, line.rate),
        f"{1e3 / result.rate:,.0f}, {result.kernel_ns:,.0f}",
        f"{result.live:,}",
        f"{result.memory / 1e6:.1f} ({result.resident / 1e6:.1f})",
        f"{each:.1f}",
        goal(False, each, line.bytes_each),
    ]


def ratios(lines: Sequence[Line], results: Sequence[Result]) -> str:
    """Our tables' speed as multiples of each peer's."""
    measured = [pair for pair in zip(lines, results, strict=True) if not pair[1].missing]
    ours = [(line, result) for line, result in measured if line.case.who is Who.BATCH]
    text = []
    for line, result in ours:
        peers = [
            f"{result.rate / peer_result.rate:.3g} x {peer.case.who.value}"
            for peer, peer_result in measured
            if peer.case.who is not Who.BATCH
        ]
        if peers:
            text.append(f"keep={line.case.setting.keep}: " + ", ".join(peers))
    return "".join(f"{one}.  \n" for one in text)


def speed(plan: Plan, title: str, lines: Sequence[Line]) -> str:
    """Returns the table of some lines, and the ratios."""
    results = [plan.measure(line.case) for line in lines]
    rows = [speed_row(line, result) for line, result in zip(lines, results, strict=True)]
    return table(title, SPEED_HEADER, rows) + "\n" + ratios(lines, results)
