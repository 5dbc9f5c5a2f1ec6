# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A key that was pasted where it does not belong is in no message, which journals keep."""

import os
from pathlib import Path

import pytest
from support.capture_bytes import pcap_header
from support.cli import Captured, run_main

from zanon_net import Config, ConfigError
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.parse import SHOWN_MAX, is_harmless, shown
from zanon_net.config.schema import rows_of
from zanon_net.config.sections import RUN

KEY = "rK3bSQ7z7VlyEJqYXKgP8n7AAjSes7tPeoJV9gyZ0v4="
PASTED = {  # how it may come
    "text": f'"{KEY}"',
    "with blanks": f'" {KEY}\\n"',
    "without its end": f'"{KEY[:-1]}"',
    "half": f'"{KEY[:30]}"',
    "named": f'"key={KEY}"',
    "list": f'["{KEY}"]',
    "in a list": f'["10.0.0.0/8", "{KEY}"]',
    "number": f"0x{'3b' * 32}",
}
FRAGMENT = SHOWN_MAX + 2


def repeats(text: str, secret: str) -> bool:
    """Whether `text` has more of the secret than a harmless echo."""
    parts = (secret[at : at + FRAGMENT] for at in range(len(secret) - FRAGMENT + 1))
    return any(part in text for part in parts)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap_header())
    return path


@pytest.mark.parametrize("name", RUN)
def test_no_setting_takes_or_repeats_a_key(source: Path, capsys: Captured, name: str) -> None:
    settings = source.with_name("settings.toml")
    for form in ("text", "with blanks", "without its end", "list", "in a list"):
        settings.write_text(f"[{RUN[name].section}]\n{RUN[name].label} = {PASTED[form]}\n")
        code = run_main("run", source, "--config", settings, "--out", "out")
        said = capsys.readouterr().err
        assert code == 2, form
        assert said.count("\n") == 1, form
        assert said.startswith(f"zanon-net: {settings}: [{RUN[name].section}] {RUN[name].label}: ")
        assert not repeats(said, KEY), form
        assert ("entry 2: this looks" in said) == (form == "in a list"), form
        files = sorted(path.name for path in source.parent.iterdir())
        assert files == ["settings.toml", "x.pcap"], form


PARSED = [  # settings whose wrong values were repeated
    name
    for name, row in RUN.items()
    if not row.type.anchored and name not in ("filter", "drop_to", "probe", "pseudonyms")
] + ["internal"]


@pytest.mark.parametrize("name", PARSED)
def test_no_part_of_a_key_is_repeated(source: Path, capsys: Captured, name: str) -> None:
    settings = source.with_name("settings.toml")
    for form in ("half", "named", "number"):
        settings.write_text(f"[{RUN[name].section}]\n{RUN[name].label} = {PASTED[form]}\n")
        assert run_main("run", source, "--config", settings, "--out", "out") == 2, form
        said = capsys.readouterr().err
        assert f"[{RUN[name].section}] {RUN[name].label}: " in said, form
        assert not repeats(said, KEY), form
        assert not repeats(said, str(int("3b" * 32, 16))), form


@pytest.mark.parametrize(
    "text",
    [
        f'["{KEY}"]\nz = 2',
        f'[anonymity]\n"{KEY}" = 2',
        f"[anonymity]\n{KEY[:20]}{KEY[21:43]} = 2",
        f'["{KEY}"]\n["{KEY}"]',
        f'[anonymity]\nz = {{"{KEY}" = 1, "{KEY}" = 2}}',
        f"[anonymity]\nz = {KEY}",
        f"{KEY}",
    ],
)
def test_a_key_in_a_wrong_place_of_the_file(source: Path, capsys: Captured, text: str) -> None:
    settings = source.with_name("settings.toml")
    settings.write_text(text + "\n")
    assert run_main("run", source, "--config", settings, "--out", "out") == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert not repeats(said, KEY)


@pytest.mark.parametrize("command", ["run", "filter"])
def test_no_option_repeats_a_key(source: Path, capsys: Captured, command: str) -> None:
    for row in rows_of(command):
        if row.heading and not (row.type.switch and not row.default):
            code = run_main(command, row.options[0], KEY, source)
            said = capsys.readouterr().err
            assert (code, said.count("\n")) == (2, 1), row.name
            assert not repeats(said, KEY), row.name


def test_values_that_are_no_secret_are_repeated() -> None:
    assert shown("1hour") == "'1hour'"
    assert shown(12) == "12"
    assert shown(1.5) == "1.5"
    assert shown(1 << 5000) == "a number of 5,001 bits"
    assert shown("x" * (SHOWN_MAX + 1) + "1") == f"a text of {SHOWN_MAX + 2} characters"
    assert is_harmless("a long row of words, which is no key")
    assert not is_harmless(KEY)


def test_a_key_is_refused_as_a_path_object_and_by_the_filter() -> None:
    for make in (lambda: Config(key_file=Path(KEY)), lambda: FilterConfig(user=KEY)):
        with pytest.raises(ConfigError, match="looks like a key itself") as caught:
            make()
        assert not repeats(str(caught.value), KEY)


def test_a_path_is_no_key() -> None:
    for path in (f"/srv/{'x' * 38}", "/usr/local/share/zanon/lists/never/Release1.txt"):
        assert os.fspath(Config(popularity=path).output.popularity or "") == path
