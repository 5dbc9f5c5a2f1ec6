# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings: accepted values, errors about others, and the part of each in a manifest."""

import dataclasses
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path

import numpy as np
import pytest
from support.examples import each
from support.paths import ROOT

from zanon_net import AddressPolicy, Config, ConfigError, Input, Limits, Output, ZParams
from zanon_net._core import LIMITS, ROW_FORMATS, TIME_UNITS, PacketEngine
from zanon_net.config import filter_rows
from zanon_net.config.cap_rules import forged_users_text
from zanon_net.config.example import example
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.config.rules import Z_MAX
from zanon_net.config.run_rows import SNAPLEN_MAX, WORKERS_MAX
from zanon_net.config.schema import rows_of
from zanon_net.config.sections import KEYS, RUN, LiveSettings, PacketSettings

HOUR_NS = 3_600_000_000_000
KEY_TEXT = "rK3bSQ7z7VlyEJqYXKgP8n7AAjSes7tPeoJV9gyZ0v4="


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


# ---- names and other values ---------------------------------------------------------------------


def test_limits_are_those_of_the_core() -> None:
    """Settings are checked without the core, which must be able to do what they allow."""
    settings = {"z": Z_MAX, "workers": WORKERS_MAX, "snaplen": SNAPLEN_MAX}
    assert {name: LIMITS[name] for name in settings} == settings
    assert (filter_rows.ROW_FORMATS, filter_rows.TIME_UNITS) == (ROW_FORMATS, TIME_UNITS)


def test_settings_need_neither_the_core_nor_numpy() -> None:
    """They are read before the core is loaded, and documents are made of them without it."""
    code = "import sys, zanon_net.config.example, zanon_net.config.filter_settings\n"
    code += "print(*({'zanon_net._core', 'numpy', 'click', 'rich'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_suffixes(tmp_path: Path) -> None:
    text = "\ufeff# never\n*.Example.COM\n.example.org. # too\n_dmarc.net\nexample.com\n"
    never = write(tmp_path / "never", text)
    expected = ("example.com", "example.org", "_dmarc.net")
    assert ZParams(never=never).never == expected
    assert ZParams(never=Path(never)).never == expected
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


@pytest.mark.parametrize("kind", [np.int64, np.uint32])
def test_whole_numbers_of_another_type(kind: type) -> None:
    numbers = {"z": 5, "z_max": 9, "target_k": 3, "workers": 2, "max_flows": 64, "snaplen": 64}
    times = {"window": 10**9, "rotate": 60, "split_size": 1 << 20, "ring": 1 << 21}
    given = {name: kind(number) for name, number in (numbers | times).items()}
    config = Config().replace(target_p=0.5, **given)
    assert config == Config().replace(target_p=0.5, **numbers, **times)
    assert json.loads(json.dumps(config.to_dict()))["anonymity"]["window_ns"] == 10**9
    assert FilterConfig(z=kind(5), window=kind(60)) == FilterConfig(z=5, window=60)
    for value in (np.bool_(True), np.float64(5), np.array([5])):
        with pytest.raises(ConfigError, match=r"^z: must be a whole number"):
            Config().replace(z=value)


@pytest.mark.parametrize("pair", ["32", "0,64", "33,64", "32,129", "a,b", "32,64,1", (32,), 5])
def test_what_is_no_user_prefix(pair: object) -> None:
    with pytest.raises(ConfigError, match=r"^user_prefix: "):
        Config().replace(user_prefix=pair)


def test_user_prefixes() -> None:
    assert AddressPolicy(user_prefix="24, 56").user_prefix == (24, 56)
    assert AddressPolicy(user_prefix=[32, 128]).user_prefix == (32, 128)


@each(
    "name, value, message",
    [
        ("evidence", "some", "must be established or any"),
        ("dns_votes", "maybe", "must be own, all or no"),
        ("dns_votes", "yes", "say own or all"),
        ("dns_votes", "true", "say own or all"),
        ("dns_votes", True, "say own or all"),
        ("dns_votes", 1, "must be own, all or no"),
        ("exact", 1, "must be true or false"),
        ("format", "tstta", ".*did you mean 'tstat'"),
        ("format", (), "must be one or more"),
        ("format", 5, "must be one or more"),
        ("columns", "layer7", "core is always"),
        ("columns", "core,e3e", "'e3e' is not one of core, layer7, e2e, options, p2p, levels; did"),
        ("filter", "a\0b", "must be a BPF"),
        ("filter", "\udcff", "must be a BPF"),
        ("filter", None, "must be a BPF"),
        ("max_flows", 0, "must be from 1"),
        ("never", 5, "not a file"),
        ("internal", 5, "not a network list"),
        ("key_file", "", "must be the path"),
        ("key_file", 5, "must be the path"),
        ("key_file", "zanon.key\0", "must be the path"),
        ("never", "never\0", "must be the path"),
        ("popularity", "counts\0", "must be the path"),
        ("mode", 640, "must be one of the texts 600, 640"),
        ("mode", 0o640, "must be one of the texts 600, 640"),
        ("mode", "666", "must be one of the texts 600, 640"),
        ("mode", "400", "must be one of the texts 600, 640"),
        ("mode", "06000", "must be one of the texts 600, 640"),
        ("rotate", "0s", "must be longer than zero"),
        ("max_per_prefix", "24=4", "must be two prefix lengths and a number of users, such as"),
        ("max_per_prefix", 4, "must be two prefix lengths and a number of users, such as"),
        ("max_per_prefix", "33,48=4", "the prefix lengths must be 1 to 32"),
        ("max_per_prefix", "24,0=4", "the prefix lengths must be 1 to 32"),
        ("max_per_prefix", "24,48=0", "the number of users must be 1 to 2147483648"),
        ("max_per_prefix", "24,64=2", "its networks are smaller than users; .*at most 32,56"),
        ("max_names_per_user", 0, "must be from 1"),
        ("min_user_age", "0s", "must be longer than zero"),
        ("fail_on_loss", -1, "must be a number from 0 to 100, not -1"),
        ("fail_on_loss", 101, "must be a number from 0 to 100"),
        ("fail_on_loss", float("nan"), "must be a number from 0 to 100"),
        ("fail_on_loss", True, "must be a number from 0 to 100"),
        ("fail_on_loss", "1%", "must be a number from 0 to 100"),
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
    assert (config.anonymity.evidence, config.settings()["dns_votes"]) == ("established", "own")
    assert config.rotate_ns == HOUR_NS
    assert config.addresses.key_mode == "ephemeral"
    assert config.output.outputs == ("log_tcp_complete", "log_tcp_nocomplete", "log_udp_complete")


def test_settings_are_fixed_and_those_of_the_schema() -> None:
    config = Config()
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(config.anonymity, "z", 5)  # noqa: B010  (the checker knows it as well)
    sections = [field.name for field in dataclasses.fields(config)]
    fields = [
        (section, field.name)
        for section in sections
        for field in dataclasses.fields(getattr(config, section))
    ]
    assert fields == [(row.section, row.name) for row in RUN.values()]
    assert len(RUN) == len(rows_of("run"))
    names = [field.name for field in dataclasses.fields(FilterConfig)]
    assert names == [row.name for row in rows_of("filter")]


def test_settings_by_their_names() -> None:
    flat = Config(z=10, window="10m", format="jsonl")
    assert flat == Config().replace(z=10, window="10m", format="jsonl")
    assert flat == Config(ZParams(z=10, window=600 * 10**9), output=Output(format=["jsonl"]))
    assert Config(anonymity=ZParams(z=5, exact=True), z=6).anonymity == ZParams(z=6, exact=True)
    with pytest.raises(ConfigError, match=r"^zz: unknown setting; did you mean 'z'\?"):
        Config(zz=10)
    with pytest.raises(ConfigError, match=r"^window: 'soon' is not a duration"):
        Config(window="soon")
    with pytest.raises(TypeError, match="anonymity must be ZParams, not int"):
        Config(anonymity=5)  # type: ignore[arg-type]


def test_the_signature_has_every_setting() -> None:
    parameters = inspect.signature(Config).parameters
    assert list(parameters)[8:] == list(RUN)
    assert parameters["window"].default == "1h"
    defaults = {name: parameter.default for name, parameter in parameters.items()}
    assert Config(**defaults) == Config()


def test_durations_are_nanoseconds() -> None:
    config = Config(window="90s", rotate="1d", split="1h", status="10s")
    settings = config.settings()
    times = [settings[name] for name in ("window", "rotate", "split", "status")]
    assert times == [90 * 10**9, 24 * HOUR_NS, HOUR_NS, 10**10]
    assert config.to_dict()["anonymity"]["window"] == "90s"


def test_replace() -> None:
    config = Config().replace(z=5, window="10m", format=["jsonl"], dns_votes="no")
    assert (config.anonymity.z, config.rotate_ns) == (5, 600_000_000_000)
    assert config.anonymity.dns_votes == "no"
    assert config.replace(rotate="1d").rotate_ns == 24 * HOUR_NS
    assert config.replace(z=6).output.format == ("jsonl",)
    with pytest.raises(ConfigError, match=r"windw: unknown setting; did you mean 'window'\?"):
        config.replace(windw="1h")


@pytest.mark.parametrize("changes", [{}, {"internal": "10.0.0.0/8,::/0", "never": ["a.com"]}])
def test_the_core_takes_the_arguments(changes: dict[str, object]) -> None:
    arguments = Config().replace(max_flows=64, **changes).engine_arguments()
    PacketEngine(**arguments).close()


@pytest.mark.parametrize(
    ("size", "expected"), [("1", 1), (5, 5), ("2k", 2048), (" 3 MB ", 3 << 20), ("1G", 1 << 30)]
)
def test_sizes(size: str | int, expected: int) -> None:
    assert Output(split_size=size).size_limit == expected


@pytest.mark.parametrize("size", ["", "0", 0, -1, "1.5G", "k", "1P", True, 2.0, "9" * 19])
def test_wrong_sizes(size: object) -> None:
    with pytest.raises(ConfigError, match=r"^split_size: must be a number of bytes such as 500M"):
        Config().replace(split_size=size)


def test_what_output_settings_refuse() -> None:
    for wrong in ("59s", 1, "90s", "61s", "1.01h"):
        with pytest.raises(ConfigError, match=r"^split: must be whole minutes: others"):
            Output(split=wrong)
    with pytest.raises(ConfigError, match=r"^compress: must be none, gzip, zstd, not 'xz'"):
        Output(compress="xz")


# ---- TOML ---------------------------------------------------------------------------------------

PORTS = ["vxlan:4799", "hp-erm:7933"]


@each(
    "name, value",
    [("max_per_prefix", "24,48=2"), ("max_names_per_user", 2), ("min_user_age", "1h")],
)
def test_caps_go_with_votes_of_this_process(name: str, value: object, tmp_path: Path) -> None:
    key = {"key_file": write(tmp_path / "key", "")}
    probe = {"count_at": "tls://counter:1", "probe": "a"} | {
        f"count_tls_{part}": str(tmp_path / part) for part in ("cert", "key", "ca")
    }
    for settings, message in [
        ({"z": 1}, f"{name}: z is 1: every name is released"),
        ({**key, **probe}, f"{name}: a counter of probes has no caps"),
        ({**key, "shards": 2}, f"{name}: the counter of shards has no caps"),
        ({"window": "1831d"}, f"window: must be at most 1830d with {name}"),
    ]:
        with pytest.raises(ConfigError, match=f"^{message}"):
            Config(**{name: value}, **settings)
    assert Config(**{name: value}, window="1830d").to_dict()["anonymity"][name] is not None


@each(
    "settings, facts, text",
    [
        ({"z": 1}, {"name": 0}, "0 release"),
        ({"z": 2}, {"name": 1}, "1 release a name that one real user exposes"),
        (
            {"z": 20, "max_per_prefix": "24,48=4"},
            {"name": 19, "networks": 5, "prefixes": [24, 48]},
            ", from 5 networks (/24, /48)",
        ),
        (
            {"z": 20, "max_names_per_user": 2000, "min_user_age": "90m"},
            {"name": 19, "names": 2000, "age": "90m"},
            ", for 2,000 names in a window, 90m after they were first seen",
        ),
    ],
)
def test_forged_users(settings: dict[str, object], facts: dict[str, object], text: str) -> None:
    assert Config(**settings).forged_users == facts
    assert text in forged_users_text(facts)


def test_levels_with_caps(tmp_path: Path) -> None:
    networks = tmp_path / "networks.tsv"
    networks.write_text("198.51.100.0\t198.51.100.255\t64500\tIT\tEXAMPLE, Inc.\n")
    settings = {"z": 3, "levels": ("country",), "networks": (networks,)}
    facts = Config(**settings).forged_users
    assert facts == {"name": 2, "label": 2}
    assert forged_users_text(facts) == "2 release a name, or a label, that one real user exposes"
    facts = Config(**settings, max_per_prefix="24,48=1").forged_users
    assert facts == {"name": 2, "label": 2, "networks": 2, "prefixes": [24, 48]}


TOML = """
[anonymity]
z = 7
window = "30m"
evidence = "any"
dns_votes = false
never = "never.txt"
exact = true
dn_hunter = true
target_k = 3
target_p = 0.9
z_max = 50
max_names_per_user = 9
min_user_age = "2h"
levels = ["as", "domain"]
only = "top.csv"
skip = ["category:cdn"]
categories = "included"
suffixes = "rules.dat"
networks = ["networks.tsv"]
[addresses]
internal = "nets.txt"
user_prefix = [24, 56]
pseudonyms = "crypto-pan:24,64"
keep_client_port = true
rotate = "1h"
key_file = "secret/key"
[input]
filter = "host 10.1.2.3"
max_bytes = "2G"
tunnel_port = ["vxlan:4799", "hp-erm:7933"]
[output]
format = ["jsonl", "observations"]
columns = ["core"]
compress = "zstd"
split = "90m"
split_size = "2k"
mode = "640"
popularity = "popularity.json"
for = "public"
coarse_end = "floored"
coarse_steps = 4
coarse_client = "pseudonym"
order = "closing"
times = "90s"
sizes = "exact"
flush = "2s"
keep = "7d"
max_disk = "3k"
on_full = "wait"
partition = "none"
[limits]
max_flows = 1000
max_tuples = 2000
max_attributes = 3000
workers = 4
shards = 1
[live]
ring = "128M"
snaplen = 2048
promiscuous = false
status = "10s"
fail_on_loss = 0.5
drop_to = "nobody"
status_format = "json"
metrics = "127.0.0.1:9464"
metrics_anywhere = true
metrics_file = "zanon.prom"
on_lost = "wait"
[packets]
hold = "0s"
hold_memory = "1G"
payload = "keep-encrypted"
addresses = "wide"
server_address = "linkable"
mac = "pseudonym"
tcp_timestamps = "offset"
ttl = "keep"
encapsulation = "keep"
fingerprint = "drop"
timestamps = "us"
suppressed = "drop"
view = ["strict:z=50,payload=cut"]
"""


def load(folder: Path, text: str) -> Config:
    return Config.load(write(folder / "zanon.toml", text))


@pytest.fixture
def full(tmp_path: Path) -> Config:
    write(tmp_path / "never.txt", "private.example\n")
    write(tmp_path / "nets.txt", "10.1.0.0/16\n10.1.2.3/32\n")
    write(tmp_path / "top.csv", "1,shop.example\n")
    write(tmp_path / "rules.dat", "example\n")
    write(tmp_path / "networks.tsv", "198.51.100.0/24 64500 IT\n")
    return load(tmp_path, TOML)


@pytest.fixture
def lists(tmp_path: Path) -> Sequence[object]:
    """The settings about levels and lists in TOML, in their order."""
    only, rules, networks = (str(tmp_path / f) for f in ("top.csv", "rules.dat", "networks.tsv"))
    return ("domain", "as"), (), only, "category:cdn", "included", rules, [networks]


def test_a_file_with_every_setting(full: Config, tmp_path: Path, lists: Sequence[object]) -> None:
    assert full == Config(
        ZParams(
            *(7, "30m", "any", "no", ("private.example",), True, True, 3, 0.9, 50),
            *(*lists, None, 9, "2h"),
        ),
        AddressPolicy(
            ("10.1.0.0/16", "10.1.2.3/32"),
            (24, 56),
            "crypto-pan:24,64",
            True,
            HOUR_NS,
            str(tmp_path / "secret/key"),
        ),
        Input("host 10.1.2.3", 2 << 30, PORTS),
        Output(
            ("jsonl", "observations"),
            ("core",),
            "zstd",
            "90m",
            "2k",
            "640",
            str(tmp_path / "popularity.json"),
            "public",
            "floored",
            "4",
            "pseudonym",
            "closing",
            "90s",
            "exact",
            "2s",
            "7d",
            "3k",
            "wait",
            "none",
        ),
        Limits(1000, 2000, 3000, 4, 1),
        LiveSettings(
            *(128 << 20, 2048, False, "10s", 0.5, "nobody", "json"),
            *("127.0.0.1:9464", True, str(tmp_path / "zanon.prom"), "wait"),
        ),
        PacketSettings(
            0,
            1 << 30,
            "keep-encrypted",
            "wide",
            "linkable",
            "pseudonym",
            "offset",
            "keep",
            "keep",
            "drop",
            "us",
            "drop",
            ("strict:z=50,payload=cut",),
        ),
    )
    assert full.live.status_s == 10
    probe = {row.label for row in rows_of("run", "count")}  # which goes with few others
    few = probe | {"max_per_prefix", "attributes"}
    assert all(f"\n{key} = " in TOML for key in KEYS.keys() - few)


@pytest.mark.source
def test_the_documented_file(tmp_path: Path) -> None:
    page = ROOT / "docs" / "reference" / "configuration.md"
    whole = page.read_text(encoding="utf-8")
    text = whole.split("```toml\n")[1].split("```")[0]
    assert all(f"\n| `{key}` | " in whole for key in KEYS)
    write(tmp_path / "never.txt", "private.example\n")
    usual = {name: row.default for name, row in RUN.items() if not row.has_default}
    assert load(tmp_path, text).replace(**usual, format="tstat") == Config()


def test_a_byte_order_mark_is_no_setting(tmp_path: Path) -> None:
    """Editors of other systems put one there; lists of networks and suffixes may have it too."""
    assert load(tmp_path, "\ufeff[anonymity]\r\nz = 7\r\n").anonymity.z == 7


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    assert load(tmp_path, "") == Config()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[anonimity]", r"unknown section \[anonimity\]; did you mean 'anonymity'\?"),
        ("[anonymity]\nwindo = 1", r"\[anonymity\] unknown key 'windo'; did you mean 'window'\?"),
        ("[anonymity]\nqqq = 1", r"\[anonymity\] unknown key 'qqq' \(at line 2, column 1\)$"),
        ("[anonymity]\nrotate = '1h'", r"unknown key 'rotate'; it belongs under \[addresses\]"),
        ("z = 3", r"z belongs under \[anonymity\]"),
        ("anonymity = 3", r"write \[anonymity\]"),
        ("[anonymity]\nz = 0", r"\[anonymity\] z: must be from 1"),
        ("[anonymity]\nz = '5'", r"\[anonymity\] z: must be a whole number"),
        ("[anonymity]\nwindow = '0s'", r"\[anonymity\] window: must be longer than zero"),
        ("[anonymity]\nwindow = 3600", r"\[anonymity\] window: has no unit; write it like \"1h\""),
        ("[live]\nstatus = 0.5", r"\[live\] status: has no unit"),
        ("[output]\ntimes = 60", r"\[output\] times: has no unit"),
        ("[packets]\nhold = 0", r"\[packets\] hold: has no unit"),
        ("[anonymity]\nnever = 'absent'", r"\[anonymity\] never: cannot read"),
        ("[addresses]\ninternal = '10.0.0.0/99'", r"\[addresses\] internal: "),
        ("[addresses]\ninternal = [1]", r"\[addresses\] internal: not a network list"),
        ("[anonymity\n", "is not valid TOML"),
        ("[anonymity]\nz = 1\nz = 2", "is not valid TOML"),
        (f"z = {'[' * 100_000}", "holds lists in lists too deep"),
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
    assert shown["input"] == {"filtered": True, "max_bytes": 2 << 30, "tunnel_port": PORTS}
    assert not [word for word in ("secret", "10.1.2.3", "private.example") if word in str(shown)]
    assert json.loads(json.dumps(shown)) == shown


def test_a_manifest_says_what_internal_means() -> None:
    assert Config().to_dict()["addresses"]["internal"] == "private"
    assert Config().replace(internal="any").to_dict()["addresses"]["internal"] == "any"


def test_a_z_above_1000_can_override_that_of_a_file(tmp_path: Path) -> None:
    """The file named no largest z, so that there is none for the option to exceed."""
    (tmp_path / "zanon.toml").write_text("[anonymity]\ntarget_p = 0.9\n")
    anonymity = Config.load(tmp_path / "zanon.toml").replace(z=2000).anonymity
    assert (anonymity.z, anonymity.z_limit) == (2000, 2000)
    assert Config(anonymity=anonymity).replace(z=20).anonymity.z_limit == 1000


# ---- the example --------------------------------------------------------------------------------


def test_the_example_has_every_setting_and_its_default(tmp_path: Path) -> None:
    text = example()
    assert load(tmp_path, text) == Config()
    assert all(re.search(rf"^(# )?{key} = ", text, re.MULTILINE) for key in KEYS)


def test_what_the_example_leaves_out_can_be_put_in(tmp_path: Path) -> None:
    write(tmp_path / "never.txt", "private.example\n")
    write(tmp_path / "top.csv", "1,example.org\n")
    write(tmp_path / "public_suffix_list.dat", "org\n")
    write(tmp_path / "ip2asn-combined.tsv", "198.51.100.0/24 64500 IT\n")
    alone, probe = example().split("\n[count]\n")  # which excludes others of them
    alone = re.sub(r"^# (\w+ = )", r"\1", alone, flags=re.MULTILINE)
    excluded = r"^attributes = .*\n"
    config = load(tmp_path, re.sub(excluded, "", alone, flags=re.MULTILINE))
    load(tmp_path, re.sub(r"^(levels|networks) = .*\n", "", alone, flags=re.MULTILINE))
    text = "[addresses]\nkey_file = 'zanon.key'\n[count]\n" + probe
    load(tmp_path, re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE))
    assert (config.output.split, config.output.size_limit) == (HOUR_NS, 2 << 30)
    assert config.addresses.networks == (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))
