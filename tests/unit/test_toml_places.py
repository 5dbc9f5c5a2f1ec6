# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Errors about a TOML file have the line and the column of the key or section at fault."""

import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zanon_net import Config
from zanon_net.config.toml_places import Keys, place_of, places
from zanon_net.errors import ConfigError

CONFUSING = '''\
# z = 1
"top" = """
[anonymity]
z = 2 """ # [live]
other = ['[x]', "y = 1", [ { a = 1, 'b c' = 2 },
  3 ] ]
dotted.key = 1
  [ anonymity ]
z = { in.side = 1, more = "}" }
window = \'\'\'
z = 7\'\'\'
[[addresses.list]]
d = 1979-05-27T07:32:00Z
'''


def keys_of(content: dict[str, Any]) -> Iterator[Keys]:
    for key, value in content.items():
        yield (key,)
        if isinstance(value, dict):
            yield from ((key, *below) for below in keys_of(value))


def test_each_key_is_where_it_stands() -> None:
    found = places(CONFUSING)
    content = tomllib.loads(CONFUSING)
    assert set(keys_of(content)) <= set(found)
    assert {keys: CONFUSING.count("\n", 0, at) + 1 for keys, at in found.items()} == {
        ("top",): 2,
        ("other",): 5,
        ("other", "a"): 5,
        ("other", "b c"): 5,
        ("dotted",): 7,
        ("dotted", "key"): 7,
        ("anonymity",): 8,
        ("anonymity", "z"): 9,
        ("anonymity", "z", "in"): 9,
        ("anonymity", "z", "in", "side"): 9,
        ("anonymity", "z", "more"): 9,
        ("anonymity", "window"): 10,
        ("addresses",): 12,
        ("addresses", "list"): 12,
        ("addresses", "list", "d"): 13,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[anonymity]\n\nz = 0", "[anonymity] z: must be from 1 to 2147483648, not 0 (at line 3,"),
        (
            "[anonymity]\nz = 5\nzz = 1\n",
            "unknown key 'zz'; did you mean 'z'? (at line 3, column 1",
        ),
        ("\n[anonimity]\n", "unknown section [anonimity]; did you mean 'anonymity'? (at line 2,"),
        ("[anonymity]\nz = 5\n  window = 3600", "(at line 3, column 3)"),
        ("# x\nz = 3", "z belongs under [anonymity] (at line 2, column 1)"),
        ("live = 3", "live is a section; write [live] and its keys below (at line 1, column 1)"),
        ("anonymity.z = 0", "not 0 (at line 1, column 1)"),
        ("[anonymity]\nz = = 1", "is not valid TOML: Invalid value (at line 2, column 5)"),
        ("[anonymity]\nz = [1,\n\n", "(at line 2, the end of the file)"),
    ],
)
def test_errors_have_a_line(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "zanon.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        Config.load(path)
    assert message in str(caught.value)


def test_a_pipe_is_not_read_again(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert place_of(tmp_path / "pipe", "anonymity") == ""
    assert place_of(tmp_path / "missing", "anonymity") == ""


NAMES = st.sampled_from(["z", "window", "a-b", "x_1", "7"])
VALUES = st.recursive(
    st.sampled_from(
        ["1", "-2.5e3", "true", '"a = 1"', "'[b]'", '"""\n[c]\nd = 1"""', "'''\n#\n'''"]
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.dictionaries(NAMES, inner, max_size=2).map(
            lambda items: "{" + ", ".join(f"{key} = {value}" for key, value in items.items()) + "}"
        )
    ),
    max_leaves=4,
)


@given(st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=3), max_size=4))
def test_all_keys_of_any_document_are_found(sections: dict[str, dict[str, str]]) -> None:
    text = ""
    expected = {}
    for section, keys in sections.items():
        expected[(section,)] = len(text)
        text += f"[{section}]\n"
        for key, value in keys.items():
            expected[(section, key)] = len(text)
            text += f"{key} = {value}  # {key} = 1\n"
    found = places(text)
    assert {keys: found.get(keys) for keys in expected} == expected
    assert set(keys_of(tomllib.loads(text))) <= set(found)
