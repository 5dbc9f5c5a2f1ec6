# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The examples of the pages about rows give what the page says; only pseudonyms differ."""

import doctest
import re
import shlex
from pathlib import Path

import pytest
from support.paths import ROOT

import zanon_net
from zanon_net.cli import main

pytestmark = pytest.mark.source

BLOCK = re.compile(r"^```(\w+)(?: ([\w.]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PSEUDONYM = re.compile(r"\b[0-9a-f]{32}\b")


@pytest.mark.parametrize(
    ("page", "count"), [("filter.md", 4), ("filter-logs.md", 4), ("publish.md", 1)]
)
def test_examples(
    page: str,
    count: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "howto" / page).read_text(encoding="utf-8")
    examples = 0
    for language, name, content in BLOCK.findall(text):
        if name:
            Path(name).write_text(content, encoding="utf-8")
        elif language == "console":
            command, _, expected = content.partition("\n")
            words = shlex.split(command.removeprefix("$ "))
            assert words[0] == "zanon-net"
            assert main(words[1:]) == 0
            said = capsys.readouterr()
            aliases, shown = PSEUDONYM.findall(said.out), PSEUDONYM.findall(expected)
            assert PSEUDONYM.sub("?", said.out) == PSEUDONYM.sub("?", expected)
            assert [aliases.index(a) for a in aliases] == [shown.index(a) for a in shown]
            assert all(line.strip("`") in text for line in re.findall(r"line \d.*", said.err))
            examples += 1
    assert examples == count


@pytest.mark.parametrize("page", ["howto/filter.md", "reference/filter.md"])
def test_examples_in_python(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    code = "".join(content for language, _, content in BLOCK.findall(text) if language == "pycon")
    assert code
    example = doctest.DocTestParser().get_doctest(code, {}, page, None, None)
    found: list[str] = []
    assert doctest.DocTestRunner().run(example, out=found.append).failed == 0, "".join(found)


def test_example_of_the_function() -> None:
    (example,) = doctest.DocTestFinder(recurse=False).find(zanon_net.filter, "filter")
    found: list[str] = []
    assert doctest.DocTestRunner().run(example, out=found.append).failed == 0, "".join(found)
