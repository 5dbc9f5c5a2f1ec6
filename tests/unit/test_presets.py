# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""--for: what it presets, what wins over it, and what is named as weaker."""

from pathlib import Path
from typing import Any

import pytest

from zanon_net import Config, ConfigError
from zanon_net.config.presets import PRESETS, PURPOSES, effective, weaker
from zanon_net.config.sections import RUN

MINUTE = 60 * 10**9
# The contract's table: internal, partner, public.
TABLE: dict[str, tuple[Any, Any, Any]] = {
    "pseudonyms": ("networks", "networks", "random"),
    "dns_votes": ("own", "own", "no"),
    "coarse_end": ("floored", "none", "none"),
    "coarse_steps": ("sqrt2", "4", "16"),
    "coarse_client": ("pseudonym", "none", "none"),
    "order": ("minute", "minute", "minute-all"),
    "times": ("exact", "exact", MINUTE),
    "sizes": ("exact", "exact", "2"),
}
WEAKEST = {
    "pseudonyms": "crypto-pan:24,64",
    "dns_votes": "all",
    "coarse_end": "floored",
    "coarse_steps": "sqrt2",
    "coarse_client": "pseudonym",
    "order": "closing",
    "times": "exact",
    "sizes": "exact",
}


def test_the_table_is_the_contracts() -> None:
    found = {
        name: tuple(preset.value(purpose) for purpose in PURPOSES)
        for name, preset in PRESETS.items()
        if name != "exact"
    }
    assert found == {name: row for name, row in TABLE.items() if name in RUN}
    assert all(RUN[name].default is None for name in found)


@pytest.mark.parametrize("purpose", PURPOSES)
def test_a_preset_sets_what_nobody_set(purpose: str) -> None:
    settings = Config(purpose=purpose).settings()
    column = PURPOSES.index(purpose)
    assert {name: settings[name] for name in PRESETS.keys() & TABLE.keys()} == {
        name: TABLE[name][column] for name in PRESETS.keys() & TABLE.keys()
    }
    assert Config(purpose=purpose).weaker_than == {"preset": purpose, "options": []}
    assert Config(purpose=purpose, z=1).weaker_than["options"] == []


def test_partner_is_the_default() -> None:
    assert Config().settings() == Config(purpose="partner").settings()


@pytest.mark.parametrize("name", [name for name in WEAKEST if name != "times"])
def test_what_is_set_wins_and_is_named_where_weaker(name: str) -> None:
    public = Config(**{"purpose": "public", name: WEAKEST[name]})
    assert public.settings()[name] == WEAKEST[name]
    assert public.weaker_than == {"preset": "public", "options": [name]}
    strongest = TABLE[name][2]
    assert Config(**{"purpose": "internal", name: strongest}).weaker_than["options"] == []


def test_exact_is_weaker_than_any_preset() -> None:
    for purpose in PURPOSES:
        assert Config(purpose=purpose, exact=True).weaker_than["options"] == ["exact"]


def test_times_are_weaker_the_shorter_they_are() -> None:
    for times, is_weaker in (("59s", True), ("60s", False), ("10m", False), ("exact", True)):
        config = Config(purpose="public", order="minute", times=times)
        assert config.weaker_than["options"] == ["order"] + ["times"] * is_weaker


def test_times_have_no_more_than_minutes_where_all_leave_with_theirs() -> None:
    for times, expected in (("exact", MINUTE), ("10s", MINUTE), ("10m", 10 * MINUTE)):
        assert Config(order="minute-all", times=times).settings()["times"] == expected


def test_a_preset_can_change_later() -> None:
    config = Config(purpose="public", coarse_steps=4)
    assert config.replace(purpose="internal").settings()["coarse_steps"] == "4"
    assert config.replace(purpose="internal").settings()["times"] == "exact"
    assert config.to_dict()["output"]["for"] == "public"
    assert config.to_dict()["output"]["times"] == "1m"
    assert weaker(effective(config.settings())) == ["coarse_steps"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("purpose", "friends"),
        ("coarse_end", "no"),
        ("coarse_steps", "2"),
        ("coarse_steps", 8),
        ("coarse_steps", True),
        ("coarse_client", "no"),
        ("order", "random"),
        ("times", "soon"),
        ("times", "0s"),
        ("sizes", "3"),
        ("sizes", 2.0),
    ],
)
def test_wrong_values(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"^{RUN[name].label}: "):
        Config(**{name: value})


@pytest.mark.parametrize("columns", ["core,e2e", "core,layer7,options"])
def test_exact_columns_do_not_go_with_rounded_ones(columns: str) -> None:
    cases: list[dict[str, Any]] = [{"purpose": "public"}, {"times": "1s"}, {"sizes": 2}]
    for settings in [*cases, {"order": "minute-all"}]:
        with pytest.raises(ConfigError, match=r"^columns: (e2e|options) discloses more than --"):
            Config(columns=columns, **settings)
    Config(columns=columns, purpose="public", order="minute", times="exact", sizes="exact")


def test_the_file_has_it_under_its_options_name(tmp_path: Path) -> None:
    path = tmp_path / "zanon.toml"
    path.write_text('[output]\nfor = "public"\ncoarse_steps = 4\nsizes = 2\n')
    config = Config.load(path)
    assert config == Config(purpose="public", coarse_steps="4", sizes="2")
    path.write_text('[output]\nfor = "me"\n')
    with pytest.raises(ConfigError, match=r"\[output\] for: must be internal, partner or public"):
        Config.load(path)
    path.write_text('[anonymity]\nfor = "public"\n')
    with pytest.raises(ConfigError, match=r"unknown key 'for'; it belongs under \[output\]"):
        Config.load(path)
    with pytest.raises(ConfigError, match=r"^for: unknown setting; in Python it is 'purpose'"):
        Config(**{"for": "public"})
