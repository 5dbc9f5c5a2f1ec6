# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The site of the documents: it is built without a warning, holds all pages, and loads nothing."""

import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from support.examples import EVERY_CASE
from support.paths import ROOT
from support.shared import made_once

import zanon_net
from zanon_net import microdata, model

pytestmark = [
    pytest.mark.source,
    pytest.mark.slow,
    pytest.mark.skipif(
        not EVERY_CASE and "ZANON_SITE" not in os.environ, reason="`make site` tests the site"
    ),
]

OUTSIDE = ("http:", "https:", "mailto:", "//")
OF_THE_THEME = {
    "https://www.sphinx-doc.org/",
    "https://pradyunsg.me",
    "https://github.com/pradyunsg/furo",
}
LOADED = {"src", "srcset", "data", "poster"}
LINKS_OF_STYLES = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch"}


def build(root: Path, out: Path) -> subprocess.CompletedProcess[str]:
    """What `make site` does, with doctrees of its own."""
    options = ["-W", "-n", "--keep-going", "-q", "-c", str(root / "docs" / "site")]
    options += ["-d", str(out.parent / f"{out.name}-doctrees")]
    command = [sys.executable, "-m", "sphinx", *options, str(root), str(out)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the site: of `make site`, or built for these tests."""
    if "ZANON_SITE" in os.environ:
        return ROOT / os.environ["ZANON_SITE"]

    def make(folder: Path) -> None:
        done = build(ROOT, folder / "site")
        assert done.returncode == 0, done.stderr

    return made_once(tmp_path_factory, "documents", make) / "site"


class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that links can name."""

    def __init__(self, text: str):
        super().__init__()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.places: set[str] = {""}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Sorts the attributes of a tag."""
        values = {name: value or "" for name, value in attrs}
        self.places.add(values.get("id", ""))
        self.loaded |= {value for name, value in values.items() if name in LOADED}
        if tag == "a" and "href" in values:
            self.links.add(values["href"])
        elif tag == "link" and set(values.get("rel", "").split()) & LINKS_OF_STYLES:
            self.loaded.add(values["href"])


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Every page by its file."""
    return {path: Page(path.read_text("utf-8")) for path in site.rglob("*.html")}


def places_of(path: Path, links: set[str]) -> Iterator[tuple[str, Path, str]]:
    """Links within the site, each with its file and its place there."""
    for link in links:
        if not link.startswith((*OUTSIDE, "data:")):
            parts = urlsplit(link)
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            yield link, target, unquote(parts.fragment)


def test_links_lead_to_pages_and_places(pages: dict[Path, Page]) -> None:
    assert len(pages) > 50
    for path, page in pages.items():
        for link, target, place in places_of(path, page.links):
            assert target.is_file(), f"{path.name}: {link} leads nowhere"
            known = target not in pages or place in pages[target].places
            assert known, f"{path.name}: {link}: no such place"


def test_pages_load_nothing_from_outside(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert not [one for one in page.loaded if one.startswith(OUTSIDE)], path.name
        for link, target, _ in places_of(path, page.loaded):
            assert target.is_file(), f"{path.name}: {link} is not there"
    for style in site.rglob("*.css"):
        text = style.read_text("utf-8")
        for loads in ("@import", "url(http", "url('http", 'url("http', "url(//"):
            assert loads not in text, style.name


def test_outside_links_are_listed(site: Path, pages: dict[Path, Page]) -> None:
    found = defaultdict(set)
    for path, page in pages.items():
        for link in page.links:
            if link.startswith(OUTSIDE) and link not in OF_THE_THEME:
                found[link].add(path.relative_to(site).with_suffix("").as_posix())
    lines = (site / "outside-links.txt").read_text("utf-8").splitlines()
    assert {line.split()[0]: set(line.split()[1:]) for line in lines} == found


def test_every_document_is_a_page(site: Path) -> None:
    documents = [*ROOT.glob("*.md")]
    for folder in ("bench", "csrc", "docs", "examples", "packaging", "pcaps", "tests", "zanon_net"):
        documents += (ROOT / folder).rglob("*.md")
    for document in documents:
        assert (site / document.relative_to(ROOT)).with_suffix(".html").is_file()


def test_files_that_documents_link_to_are_shown(site: Path) -> None:
    text = (site / "examples" / "c" / "monitor.c.html").read_text("utf-8")
    assert "pcap_dispatch" in text
    assert not (site / "_downloads").exists()


def test_every_drawing_is_shown(site: Path) -> None:
    drawings = {path.name for path in (ROOT / "docs").rglob("*.svg")}
    shown = {path.name for path in (site / "_images").glob("*.svg")}
    assert shown == drawings  # notebooks draw PNG files


def test_the_front_page_has_a_picture_and_two_commands_to_copy(site: Path) -> None:
    page = (site / "docs" / "README.html").read_text("utf-8")
    front, _tag, _rest = page.partition("<h2>")
    assert front.count("_images/demo.svg") == 1
    [block] = re.findall(r"<pre>(.*?)</pre>", front, re.DOTALL)
    assert len(re.sub(r"<[^>]+>", "", block).strip().splitlines()) == 2
    assert "copybutton.js" in page


def test_every_public_name_is_described(site: Path) -> None:
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="").data
    described = {name for kind, names in inventory.items() if kind[:3] == "py:" for name in names}
    for package in (zanon_net, microdata, model):
        for name in set(package.__all__) - {"__version__", "parse"}:
            places = (package.__name__, "zanon_net.embedding")
            assert {f"{place}.{name}" for place in places} & described, name


def test_search_needs_no_server(site: Path) -> None:
    assert "Search.setIndex" in (site / "searchindex.js").read_text("utf-8")


def test_links_that_lead_nowhere_end_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    shutil.copytree(ROOT / "docs" / "site", docs / "site")
    for name in ("python", "c"):
        (docs / "site" / f"{name}.rst").write_text("Title\n=====\n", encoding="utf-8")
    links = ["howto/gone.md", "README.md#gone", "../examples/gone.c", "../docs/", "gone.svg"]
    text = "\n".join(f"[a link]({link})" for link in links)
    (docs / "README.md").write_text(f"# Documents\n\n{text}\n", encoding="utf-8")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode == 1
    assert [link for link in links if link.split("#")[-1] not in done.stderr] == []


def test_notebooks_show_what_they_draw(site: Path) -> None:
    for name, drawn in (("capture-to-figures", 2), ("choosing-z", 1)):
        page = (site / "docs" / "notebooks" / f"{name}.html").read_text(encoding="utf-8")
        assert len(re.findall(r'<img [^>]*src="[^"]*/_images/', page)) == drawn
