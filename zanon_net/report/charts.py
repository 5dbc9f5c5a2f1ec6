# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Charts of a report as SVG, without scripts and ids. Colours are classes of the page's style.

Lengths are in units of the drawing, which the page scales to its width.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape

from zanon_net._text import iso_time, short
from zanon_net.report.parts import Bars, Cells, Chart, Steps, TimeBars
from zanon_net.report.values import clock

WIDTH = 640
LEFT, RIGHT, TOP, BOTTOM = 52, 12, 12, 28
HEIGHT = 240
CELL = 36  # height of a cell of a grid with its gap
ROW = 26  # height of a horizontal bar with its gap
VALUE = 76  # width of the values of horizontal bars
LABEL_LENGTH = 36  # most characters of a label
CHARACTER = 7.1  # width of a character of a label
BODY = 384  # width of horizontal bars with their values, and of the cells of a grid
SMALL = 520  # width of a drawing that can be read on a narrow screen
TICKS = 4
GAP = 0.18  # share of a bin that stays empty next to its bar


def drawing(chart: Chart) -> str:
    """Returns a chart as an SVG element."""
    if isinstance(chart, Bars):
        return _bars(chart)
    if isinstance(chart, Cells):
        return _cells(chart)
    return _time_bars(chart) if isinstance(chart, TimeBars) else _steps(chart)


def _svg(height: float, title: str, about: str, parts: Iterator[str], width: float = WIDTH) -> str:
    small = ' class="small"' if width <= SMALL else ""
    head = (
        f'<svg{small} viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{escape(title)}">'
        f"<title>{escape(title)}</title><desc>{escape(about)}</desc>"
    )
    return "\n".join([head, *parts, "</svg>"])


def _text(x: float, y: float, text: str, kind: str = "") -> str:
    style = f' class="{kind}"' if kind else ""
    return f'<text{style} x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _box(kind: str, box: tuple[float, float, float, float], about: str) -> str:
    """Returns a filled box (x, y, width, height) that shows a text under the pointer."""
    x, y, width, height = (round(one, 2) for one in box)
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect class="{kind}" {place}><title>{escape(about)}</title></rect>'


def step_of(largest: int) -> int:
    """Returns the distance of about TICKS marks from 0 to a number: 1, 2 or 5 times a power of
    ten."""
    unit = 1
    while True:
        for factor in (1, 2, 5):
            if factor * unit * TICKS >= largest:
                return factor * unit
        unit *= 10


def _marks(largest: int) -> list[int]:
    """Returns the marks of a vertical axis, the last one at or above the largest value."""
    step = step_of(max(largest, 1))
    return list(range(0, -(-max(largest, 1) // step) * step + 1, step))


def _axes(
    largest: int, starts: Sequence[int], width_ns: int, unit: str
) -> tuple[list[str], Callable[[float], float], Callable[[float], float]]:
    """Returns the axes of a chart over time, and the functions from bins to x, from values to y."""
    marks = _marks(largest)
    high = HEIGHT - TOP - BOTTOM
    wide = WIDTH - LEFT - RIGHT

    def x_of(place: float) -> float:
        return LEFT + wide * place / len(starts)

    def y_of(value: float) -> float:
        return TOP + high * (1 - value / marks[-1])

    parts = []
    for mark in marks:
        y = y_of(mark)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.2f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 8, y + 4, short(mark), "end"))
    label = clock([*starts, starts[-1] + width_ns])
    every = -(-len(starts) // 6)
    for place in range(0, len(starts), every):
        x = x_of(place)
        parts.append(f'<path class="axis" d="M{x:.2f} {HEIGHT - BOTTOM}v5"/>')
        parts.append(_text(x, HEIGHT - 8, label(starts[place]), "start"))
    parts.append(f'<path class="axis" d="M{LEFT} {HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>')
    parts.append(_text(LEFT, TOP - 2, unit, "start unit"))
    return parts, x_of, y_of


def _time_bars(chart: TimeBars) -> str:
    sums = [sum(values) for values in zip(*(one.values for one in chart.series), strict=True)]
    parts, x_of, y_of = _axes(max(sums), chart.starts, chart.width_ns, chart.unit)
    for place, start in enumerate(chart.starts):
        base = 0
        for one in chart.series:
            if not one.values[place]:
                continue
            top = base + one.values[place]
            x, width = x_of(place), (x_of(1) - x_of(0)) * (1 - GAP)
            box = (x, y_of(top), width, y_of(base) - y_of(top))
            about = f"{iso_time(start)[:16]}Z: {one.values[place]:,} {chart.unit}, {one.label}"
            parts.append(_box(one.kind, box, about))
            base = top
    about = ", ".join(f"{one.label}: {sum(one.values):,}" for one in chart.series)
    return _svg(HEIGHT, chart.title, f"{about} {chart.unit}", iter(parts))


def _steps(chart: Steps) -> str:
    parts, x_of, y_of = _axes(max(chart.values), chart.starts, chart.width_ns, chart.unit)
    path = f"M{x_of(0):.2f} {y_of(chart.values[0]):.2f}"
    for place, value in enumerate(chart.values):
        path += f"V{y_of(value):.2f}H{x_of(place + 1):.2f}"
    parts.append(f'<path class="line" d="{path}"/>')
    low, high = min(chart.values), max(chart.values)
    return _svg(HEIGHT, chart.title, f"from {low:,} to {high:,} {chart.unit}", iter(parts))


def _bars(chart: Bars) -> str:
    ranges = chart.ranges or [(0, 0)] * len(chart.rows)
    values = [value for _label, value, _text in chart.rows]
    largest = max([*values, *(high for _low, high in ranges)]) or 1
    left = _label_width(label for label, _value, _text in chart.rows)
    scale = (BODY - VALUE) / largest
    parts = []
    for place, ((label, value, shown), (low, high)) in enumerate(
        zip(chart.rows, ranges, strict=True)
    ):
        y = ROW * place
        width = max(scale * value, 1)
        parts.append(_text(left - 10, y + 17, _shortened(label), "end"))
        parts.append(_box(chart.kind, (left, y + 4, width, ROW - 8), f"{label}: {shown}"))
        if high:
            x, end = left + scale * low, left + scale * high
            ends = f"M{x:.2f} {y + 8}v10M{end:.2f} {y + 8}v10"
            parts.append(f'<path class="range" d="M{x:.2f} {y + 13}H{end:.2f}{ends}"/>')
            width = max(width, end - left)
        parts.append(_text(left + width + 8, y + 17, shown, "start"))
    about = ", ".join(f"{label}: {shown}" for label, _value, shown in chart.rows)
    return _svg(ROW * len(chart.rows), chart.title, about, iter(parts), left + BODY)


def _cells(chart: Cells) -> str:
    """Returns a grid whose cells are the darker the larger their share."""
    left, wide = _label_width(label for label, _shares in chart.rows), BODY / len(chart.columns)
    parts = [
        _text(left + wide * (place + 0.5), ROW - 10, column, "middle")
        for place, column in enumerate(chart.columns)
    ]
    for row, (label, shares) in enumerate(chart.rows):
        y = ROW + CELL * row
        middle = y + CELL / 2 + 2
        parts.append(_text(left - 10, middle, label, "end"))
        for place, share in enumerate(shares):
            x = left + wide * place
            shade = f'class="cell" opacity="{0.08 + 0.6 * share:.2f}"'
            parts.append(
                f'<rect {shade} x="{x + 2:g}" y="{y:g}" width="{wide - 4:g}" height="{CELL - 4}"/>'
            )
            parts.append(_text(x + wide / 2, middle, f"{share:.1%}", "middle"))
    about = "; ".join(
        f"{label}: {', '.join(f'{share:.1%}' for share in shares)}" for label, shares in chart.rows
    )
    return _svg(CELL * len(chart.rows) + ROW, chart.title, about, iter(parts), left + BODY)


def _label_width(labels: Iterable[str]) -> float:
    """Returns the width of the longest label with its gap."""
    longest = max(len(_shortened(label)) for label in labels)
    return round(CHARACTER * longest) + 14


def _shortened(label: str) -> str:
    return label if len(label) <= LABEL_LENGTH else f"{label[: LABEL_LENGTH - 3]}..."
