# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The page of `zanon-net report` in Chromium: it requests nothing, and everything is visible.

ZANON_PICTURES names a folder that gets the pictures.
"""

import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chromium import Browser, browser, needs_chromium
from support.cli import DEMO, run_main
from support.packets import MINUTE

pytestmark = needs_chromium

OUTSIDE = """[...document.querySelectorAll('svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(text => {
    const own = text.getBoundingClientRect();
    return own.left < box.left - 1 || own.right > box.right + 1;
  }).map(text => text.textContent);
})"""
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
HEIGHT_OF_ROWS = "getComputedStyle(document.querySelector('.rows')).maxHeight"
BACK = "getComputedStyle(document.querySelector('.zanon-report')).backgroundColor"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    counts = ["--popularity", folder / "popularity.json"]
    settings = ["--z", 5, "--format", "jsonl", "-q"]
    assert run_main("run", DEMO, *settings, *counts, "--out", folder / "logs") == 0
    place = folder / "logs" / "manifest.json"
    manifest = json.loads(place.read_bytes())
    start = manifest["time_range"]["first_ns"]
    steps = [(start + n * 10 * MINUTE, n % 5) for n in range(1, 16)]
    manifest["z_changes"] = [
        {"t_ns": t_ns, "old": 5 + (n + 4) % 5, "new": 5 + n, "reason": "target"}
        for t_ns, n in steps
    ]
    manifest["notes"] = ["this capture has 1 user; no name can reach z = 20"]
    place.write_text(json.dumps(manifest), "utf-8")
    assert run_main("report", folder / "logs", *counts, "--html", folder / "report.html") == 0
    return folder / "report.html"


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with browser(tmp_path_factory.mktemp("chromium")) as started:
        yield started


def size_of(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


def keep(name: str, picture: bytes) -> None:
    if "ZANON_PICTURES" in os.environ:
        Path(os.environ["ZANON_PICTURES"], f"{name}.png").write_bytes(picture)


def test_the_page_requests_nothing(page: Path, tab: Browser) -> None:
    tab.show(page, 1200)
    tab.picture()
    assert tab.requests == [page.as_uri()]
    assert tab.said == []
    assert tab.value("document.querySelectorAll('svg').length") >= 5


def test_a_page_that_requests_something_is_noticed(tmp_path: Path, tab: Browser) -> None:
    other = tmp_path / "other.html"
    (tmp_path / "icon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    other.write_text("<!doctype html><img src='icon.svg'><script>console.log('hello')</script>")
    tab.show(other, 1200)
    tab.picture()
    assert tab.requests == [other.as_uri(), (tmp_path / "icon.svg").as_uri()]
    assert len(tab.said) == 1


def test_the_policy_stops_what_a_text_would_load(page: Path, tmp_path: Path, tab: Browser) -> None:
    """Even if a text were not escaped, nothing would be requested and no script would run."""
    hostile = "<img src='icon.svg'><script>document.title = 'run'</script><h1>"
    other = tmp_path / "other.html"
    other.write_text(page.read_text("utf-8").replace("<h1>", hostile), "utf-8")
    tab.show(other, 1200)
    tab.picture()
    assert tab.value("document.title") != "run"
    assert all("Content Security Policy" in line for line in tab.said)
    assert len(tab.said) == 2


@pytest.mark.parametrize("width", [1200, 420])
@pytest.mark.parametrize("dark", [False, True])
def test_everything_is_inside(width: int, dark: bool, page: Path, tab: Browser) -> None:
    tab.show(page, width, dark=dark)
    picture = tab.picture()
    keep(f"{'dark' if dark else 'light'}-{width}", picture)
    wide, high = size_of(picture)
    assert wide == width
    assert high > 1500
    assert tab.value(TOO_WIDE) == 0
    assert tab.value(OUTSIDE) == []
    assert tab.value(BACK) == ("rgb(23, 27, 33)" if dark else "rgb(255, 255, 255)")


def test_print_shows_all_rows_on_white(page: Path, tab: Browser) -> None:
    tab.show(page, 800, dark=True, media="print")
    keep("print", tab.picture())
    assert tab.value(HEIGHT_OF_ROWS) == "none"
    assert tab.value(BACK) == "rgb(255, 255, 255)"
