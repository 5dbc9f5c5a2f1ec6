# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings: what each accepts, what it says about the rest, and what a manifest shows of them."""

import dataclasses
import json
from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zanon_net import AddressPolicy, Config, ConfigError, Input, Limits, Output, ZParams
from zanon_net._core import Engine
from zanon_net.config import SECTION_OF
from zanon_net.live_settings import LiveSettings
from zanon_net.values import core_networks, format_duration, parse_duration, parse_network

HOUR_NS = 3_600_000_000_000
KEY_TEXT = "rK3bSQ7z7VlyEJqYXKgP8n7AAjSes7tPeoJV9gyZ0v4="


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


# ---- durations ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "ns"),
    [
        ("1h", HOUR_NS),
        ("90s", 90_000_000_000),
        ("500ms", 500_000_000),
        ("10m", 600_000_000_000),
        ("1d", 24 * HOUR_NS),
        ("7us", 7_000),
        ("1ns", 1),
        ("1.5h", HOUR_NS * 3 // 2),
        ("0.001us", 1),
        (" 2 h ", 2 * HOUR_NS),
        ("3650d", 3650 * 24 * HOUR_NS),
        (1, 1),
        (HOUR_NS, HOUR_NS),
    ],
)
def test_durations(value: int | str, ns: int) -> None:
    assert parse_duration("window", value) == ns
    assert ZParams(window=value).window_ns == ns


@pytest.mark.parametrize(
    "value",
    [
        *("", "1", "3600", "0", "h", "1y", "-1h", "1h30m", "1e3s", "0s", "0.5ns", "3651d", "1h\n2"),
        *("\u0663h", "9" * 19 + "d", "nan", "inf s"),
        *(0, -1, 3651 * 24 * HOUR_NS, True, 1.5, None, ["1h"]),
    ],
)
def test_what_is_no_duration(value: object) -> None:
    with pytest.raises(ConfigError, match=r"^window: "):
        Config().replace(window=value)


@given(st.integers(1, 3650 * 24 * HOUR_NS))
def test_a_duration_reads_back(ns: int) -> None:
    assert parse_duration("window", format_duration(ns)) == ns


# ---- networks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "network"),
    [
        ("10.0.0.0/8", "10.0.0.0/8"),
        ("130.192.0.0/255.255.0.0", "130.192.0.0/16"),
        ("130.192.7.9/255.255.254.0", "130.192.6.0/23"),
        ("192.168.1.7/24", "192.168.1.0/24"),
        ("10.1.2.3/32", "10.1.2.3/32"),
        ("0.0.0.0/0.0.0.0", "0.0.0.0/0"),
        (" fd00:: / 8 ", "fd00::/8"),
        ("2001:db8::/ffff:ffff::", "2001:db8::/32"),
        ("::/0", "::/0"),
    ],
)
def test_networks(text: str, network: str) -> None:
    assert str(parse_network(text)) == network


@pytest.mark.parametrize(
    "text",
    [
        *("10.0.0.0", "fd00::", "10.0.0.0/", "/8", "", "host/8", "10.0.0/8", "010.0.0.0/8"),
        *("10.0.0.0/33", "10.0.0.0/-1", "fd00::/129", "10.0.0.0/8/8", "10.0.0.0/8 x"),
        *("10.0.0.0/0.0.0.255", "10.0.0.0/255.0.255.0", "10.0.0.0/ffff::", "fe80::%1/64"),
    ],
)
def test_what_is_no_network(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^internal: "):
        AddressPolicy(internal=[text])


def test_a_list_of_networks() -> None:
    policy = AddressPolicy(internal="10.0.0.0/8, fd00::/8,10.0.0.0/8")
    assert policy.internal == ("10.0.0.0/8", "fd00::/8")
    assert AddressPolicy(internal=policy.internal) == policy
    assert AddressPolicy().networks is None


def test_a_file_of_networks_as_tstat_has_them(tmp_path: Path) -> None:
    text = "# campus\n130.192.0.0/255.255.0.0\n\n 10.0.0.0/8 # labs\n2001:db8::/32\n"
    policy = AddressPolicy(internal=write(tmp_path / "nets", text))
    assert policy.internal == ("130.192.0.0/16", "10.0.0.0/8", "2001:db8::/32")


@pytest.mark.parametrize(
    ("text", "problem"),
    [("", "holds no network"), ("# only\n", "holds no network"), ("10.0.0.0/8\nx\n", "line 2: ")],
)
def test_a_wrong_file_of_networks(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        AddressPolicy(internal=write(tmp_path / "nets", text))


def test_a_file_of_networks_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="not a text file"):
        AddressPolicy(internal=str(tmp_path / "bytes"))
    with pytest.raises(ConfigError, match="cannot read"):
        AddressPolicy(internal=str(tmp_path))
    with pytest.raises(ConfigError, match="no file has this name"):
        AddressPolicy(internal=str(tmp_path / "missing"))


def contained(address: str, internal: str) -> bool:
    """What the core's rule, the first `bits` bits of 16 bytes, says of an address."""
    plain = ip_address(address)
    mapped = plain if plain.version == 6 else ip_address(f"::ffff:{plain}")
    networks = AddressPolicy(internal=internal).networks
    assert networks is not None
    for prefix, bits in core_networks(networks):
        assert len(prefix) == 16
        if (int(mapped) ^ int.from_bytes(prefix)) >> (128 - bits) == 0:
            return True
    return False


@pytest.mark.parametrize(
    ("address", "internal", "expected"),
    [
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("8.8.8.8", "0.0.0.0/0", True),
        ("2001:db8::1", "0.0.0.0/0", False),
        ("2001:db8::1", "::/0", True),
        ("::1", "::/0", True),
        ("8.8.8.8", "::/0", False),
        ("8.8.8.8", "::/64", False),
        ("8.8.8.8", "any", True),
        ("2001:db8::1", "any", True),
        ("2001:db8::1", "2001:db8::/32,10.0.0.0/8", True),
    ],
)
def test_networks_as_the_core_reads_them(address: str, internal: str, expected: bool) -> None:
    assert contained(address, internal) is expected


# ---- names and other values ---------------------------------------------------------------------


def test_suffixes(tmp_path: Path) -> None:
    text = "\ufeff# never\n*.Example.COM\n.example.org. # too\n_dmarc.net\nexample.com\n"
    never = write(tmp_path / "never", text)
    expected = ("example.com", "example.org", "_dmarc.net")
    assert ZParams(never=never).never == expected
    assert ZParams(never=Path(never)).suffixes == expected
    assert ZParams(never=expected).never == expected


@pytest.mark.parametrize(
    "text", ["a b", "-a.com", "a-.com", "a..b", "*", "*a.com", "münchen.de", "a" * 64, "x." * 130]
)
def test_what_is_no_suffix(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"^never: .* line 2 is not a hostname suffix"):
        ZParams(never=write(tmp_path / "never", f"ok.com\n{text}\n"))


@pytest.mark.parametrize("z", [0, -1, 2**31 + 1, True, "5", 1.0, None])
def test_what_is_no_z(z: object) -> None:
    with pytest.raises(ConfigError, match=r"^z: must be"):
        Config().replace(z=z)


@pytest.mark.parametrize("pair", ["32", "0,64", "33,64", "32,129", "a,b", "32,64,1", (32,), 5])
def test_what_is_no_user_prefix(pair: object) -> None:
    with pytest.raises(ConfigError, match=r"^user_prefix: "):
        Config().replace(user_prefix=pair)


def test_user_prefixes() -> None:
    assert AddressPolicy(user_prefix="24, 56").user_prefix == (24, 56)
    assert AddressPolicy(user_prefix=[32, 128]).user_prefix == (32, 128)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("evidence", "some", "must be established or any"),
        ("dns_votes", "maybe", "must be true or false"),
        ("exact", 1, "must be true or false"),
        ("format", "tstta", ".*did you mean 'tstat'"),
        ("format", (), "must be one or more"),
        ("format", 5, "must be one or more"),
        ("columns", "layer7", "core is always"),
        ("columns", "core,e2e", "'e2e' is not one of core, layer7"),
        ("filter", "a\0b", "must be a BPF"),
        ("filter", None, "must be a BPF"),
        ("max_flows", 0, "must be from 1"),
        ("never", 5, "not a file"),
        ("internal", 5, "not a network list"),
        ("key_file", "", "must be the path"),
        ("key_file", 5, "must be the path"),
        ("rotate", "0s", "must be longer than zero"),
    ],
)
def test_wrong_values(name: str, value: object, message: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: {message}"):
        Config().replace(**{name: value})


def test_a_key_in_place_of_its_file_is_not_repeated() -> None:
    with pytest.raises(ConfigError, match=r"^key_file: ") as caught:
        AddressPolicy(key_file=KEY_TEXT)
    assert KEY_TEXT not in str(caught.value)


# ---- the whole ----------------------------------------------------------------------------------


def test_defaults() -> None:
    config = Config()
    assert (config.anonymity.z, config.anonymity.window_ns) == (20, HOUR_NS)
    assert (config.anonymity.evidence, config.anonymity.dns_votes) == ("established", True)
    assert config.rotate_ns == HOUR_NS
    assert config.addresses.key_mode == "ephemeral"
    assert config.output.outputs == ("log_tcp_complete", "log_tcp_nocomplete", "log_udp_complete")


def test_settings_are_fixed_and_named_once() -> None:
    config = Config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(config.anonymity, "z", 5)  # noqa: B010  (the checker knows it as well)
    sections = [getattr(config, field.name) for field in dataclasses.fields(config)]
    names = [field.name for section in sections for field in dataclasses.fields(section)]
    assert sorted(names) == sorted(SECTION_OF)


def test_replace() -> None:
    config = Config().replace(z=5, window="10m", format=["jsonl"], dns_votes="no")
    assert (config.anonymity.z, config.rotate_ns) == (5, 600_000_000_000)
    assert not config.anonymity.dns_votes
    assert config.replace(rotate="1d").rotate_ns == 24 * HOUR_NS
    assert config.replace(z=6).output.format == ("jsonl",)
    with pytest.raises(ConfigError, match=r"windw: unknown setting; did you mean 'window'\?"):
        config.replace(windw="1h")


@pytest.mark.parametrize("changes", [{}, {"internal": "10.0.0.0/8,::/0", "never": ["a.com"]}])
def test_the_core_takes_the_arguments(changes: dict[str, object]) -> None:
    arguments = Config().replace(max_flows=64, **changes).engine_arguments()
    Engine(**arguments).close()


# ---- TOML ---------------------------------------------------------------------------------------

TOML = f"""
[anonymity]
z = 7
window = "30m"
evidence = "any"
dns_votes = false
never = "never.txt"
exact = true
[addresses]
internal = "nets.txt"
user_prefix = [24, 56]
keep_client_port = true
rotate = {HOUR_NS}
key_file = "secret/key"
[input]
filter = "host 10.1.2.3"
max_bytes = "2G"
[output]
format = ["jsonl", "observations"]
columns = ["core"]
[limits]
max_flows = 1000
max_tuples = 2000
max_attributes = 3000
[live]
ring = "128M"
snaplen = 2048
promiscuous = false
status = "10s"
drop_to = "nobody"
"""


def load(folder: Path, text: str) -> Config:
    return Config.load(write(folder / "zanon.toml", text))


@pytest.fixture
def full(tmp_path: Path) -> Config:
    write(tmp_path / "never.txt", "private.example\n")
    write(tmp_path / "nets.txt", "10.1.0.0/16\n10.1.2.3/32\n")
    return load(tmp_path, TOML)


def test_a_file_with_every_setting(full: Config, tmp_path: Path) -> None:
    assert full == Config(
        ZParams(7, "30m", "any", False, ("private.example",), True),
        AddressPolicy(
            ("10.1.0.0/16", "10.1.2.3/32"), (24, 56), True, HOUR_NS, str(tmp_path / "secret/key")
        ),
        Input("host 10.1.2.3", 2 << 30),
        Output(("jsonl", "observations"), ("core",)),
        Limits(1000, 2000, 3000),
        LiveSettings(128 << 20, 2048, False, "10s", "nobody"),
    )
    assert full.live.status_s == 10
    assert all(f"\n{name} = " in TOML for name in SECTION_OF)


@pytest.mark.source
def test_the_documented_file(tmp_path: Path) -> None:
    page = Path(__file__).parents[2] / "docs" / "configuration.md"
    text = page.read_text(encoding="utf-8").split("```toml\n")[1].split("```")[0]
    assert all(f"\n{name} = " in text for name in SECTION_OF)
    write(tmp_path / "never.txt", "private.example\n")
    chosen = ("never", "internal", "rotate", "key_file", "filter", "max_bytes", "format")
    chosen += ("status", "drop_to")
    usual = {name: getattr(getattr(Config(), SECTION_OF[name]), name) for name in chosen}
    assert load(tmp_path, text).replace(**usual) == Config()


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[anonimity]", r"unknown section \[anonimity\]; did you mean 'anonymity'\?"),
        ("[anonymity]\nwindo = 1", r"\[anonymity\] unknown key 'windo'; did you mean 'window'\?"),
        ("[anonymity]\nqqq = 1", r"\[anonymity\] unknown key 'qqq'$"),
        ("[anonymity]\nrotate = '1h'", r"unknown key 'rotate'; it belongs under \[addresses\]"),
        ("z = 3", r"z belongs under \[anonymity\]"),
        ("anonymity = 3", r"write \[anonymity\]"),
        ("[anonymity]\nz = 0", r"\[anonymity\] z: must be from 1"),
        ("[anonymity]\nz = '5'", r"\[anonymity\] z: must be a whole number"),
        ("[anonymity]\nwindow = 0", r"\[anonymity\] window: must be longer than zero"),
        ("[anonymity]\nnever = 'absent'", r"\[anonymity\] never: cannot read"),
        ("[addresses]\ninternal = '10.0.0.0/99'", r"\[addresses\] internal: "),
        ("[addresses]\ninternal = [1]", r"\[addresses\] internal: not a network list"),
        ("[anonymity\n", "is not valid TOML"),
        ("[anonymity]\nz = 1\nz = 2", "is not valid TOML"),
    ],
)
def test_a_wrong_file(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        load(tmp_path, text)
    assert str(tmp_path / "zanon.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*: No such file"):
        Config.load(tmp_path / "absent.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="is not valid TOML"):
        Config.load(tmp_path / "bytes.toml")


# ---- what a manifest shows ----------------------------------------------------------------------


def test_a_manifest_keeps_secrets_addresses_and_names(full: Config) -> None:
    shown = full.to_dict()
    assert shown["addresses"]["key_mode"] == "derived"
    assert shown["addresses"]["internal"] == {"networks": ["10.1.0.0/16"], "not_shown": 1}
    assert shown["anonymity"]["never_suffixes"] == 1
    assert shown["input"] == {"filtered": True, "max_bytes": 2 << 30}
    assert not [word for word in ("secret", "10.1.2.3", "private.example") if word in str(shown)]
    assert json.loads(json.dumps(shown)) == shown


def test_a_manifest_says_what_internal_means() -> None:
    assert Config().to_dict()["addresses"]["internal"] == "private"
    assert Config().replace(internal="any").to_dict()["addresses"]["internal"] == "any"
