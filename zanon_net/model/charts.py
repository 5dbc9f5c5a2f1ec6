# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Figures that read in print and without colour vision: PNG, SVG, or HTML around an SVG."""

import html
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from zanon_net.errors import ConfigError, MissingExtraError, ZanonError

SUFFIXES = (".png", ".svg", ".html")
# Okabe and Ito's colours; dashes and marks distinguish lines in print without colour.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
MARKS = ("o", "s", "^", "D", "v", "P", "X")
DPI = 160


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a panel.

    band: lower and upper y of a shaded range. marked: draws a mark on each point, or marks alone.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    band: tuple[Sequence[float], Sequence[float]] | None = None
    marked: bool = False
    joined: bool = True


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes with its lines."""

    title: str
    x_label: str
    y_label: str
    lines: Sequence[Line]
    x_log: bool = False
    y_log: bool = False
    y_range: tuple[float, float | None] | None = None


def check_path(path: str, name: str = "plot") -> Path:
    """Checks a figure's path and that matplotlib is installed. name: of the setting, for errors.

    Raises ConfigError for an unknown suffix, MissingExtraError without matplotlib.
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"{name}: {path} must end in {', '.join(SUFFIXES)}")
    _figure_class()
    return target


def _figure_class() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError(
            "plots need matplotlib; install it with: pip install 'zanon-net[plot]'"
        ) from None
    return Figure


def draw(path: Path, title: str, panels: Iterable[Panel]) -> None:
    """Writes the panels side by side, whole or not at all. Raises ZanonError."""
    data = drawing(path.suffix, title, panels)
    partial = path.with_name(path.name + ".partial")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise ZanonError(f"cannot write {path}: {error.strerror}") from None


def drawing(suffix: str, title: str, panels: Iterable[Panel]) -> bytes:
    """Returns the content of a file with the panels side by side. suffix: one of SUFFIXES."""
    listed = list(panels)
    import matplotlib as mpl

    with mpl.rc_context({"svg.hashsalt": "zanon_net", "svg.fonttype": "none", "font.size": 9}):
        width = sum(6.0 if _many(panel) else 4.6 for panel in listed)
        figure = _figure_class()(figsize=(width, 3.6), layout="constrained")
        figure.suptitle(title, fontsize=10)
        for place, panel in enumerate(listed, start=1):
            _draw_panel(figure.add_subplot(1, len(listed), place), panel)
        return _rendered(figure, suffix.lower(), title)


def _draw_panel(axes: Any, panel: Panel) -> None:
    for number, line in enumerate(panel.lines):
        colour = COLOURS[number % len(COLOURS)]
        mark = MARKS[number % len(MARKS)] if line.marked or not line.joined else None
        dash = DASHES[number % len(DASHES)] if line.joined else "none"
        axes.plot(
            line.x,
            line.y,
            color=colour,
            linestyle=dash,
            marker=mark,
            markersize=4,
            label=line.label,
        )
        if line.band is not None:
            axes.fill_between(line.x, *line.band, color=colour, alpha=0.2, linewidth=0)
    axes.set_title(panel.title, fontsize=9)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    if panel.x_log:
        axes.set_xscale("log")
    if panel.y_log:
        axes.set_yscale("log")
    if panel.y_range is not None:
        axes.set_ylim(*panel.y_range)
    axes.grid(visible=True, linewidth=0.3)
    if _many(panel):
        axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.02, 1), borderaxespad=0)
    elif len(panel.lines) > 1:
        axes.legend(fontsize=8)


def _many(panel: Panel) -> bool:
    """Returns true if a legend inside the axes would hide some of the lines, because they are
    many."""
    return len(panel.lines) > 3


def _rendered(figure: Any, suffix: str, title: str) -> bytes:
    buffer = io.BytesIO()
    if suffix == ".png":
        figure.savefig(buffer, format="png", dpi=DPI)
        return buffer.getvalue()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    if suffix == ".svg":
        return buffer.getvalue()
    drawing = buffer.getvalue().decode("utf-8")
    drawing = drawing[drawing.index("<svg") :]
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title>'
    body = f"<html lang=en><head>{head}</head><body>\n{drawing}</body></html>"
    return f"<!doctype html>\n{body}\n".encode()
