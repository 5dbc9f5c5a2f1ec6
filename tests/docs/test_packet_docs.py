# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""docs/reference/packets.md: options, fates, keys, blocks and limits are those of the program."""

import re
from pathlib import Path

import pytest
from support.paths import ROOT

import zanon_net
from zanon_net import Config
from zanon_net._core import STAT_INFO
from zanon_net.config import packet_views, rules
from zanon_net.config.packet_rows import ROWS

pytestmark = pytest.mark.source

QUOTED = re.compile(r"`([^`]+)`")
OWN, ALL = "packets_dropped_", ("packets_passed", "packets_masked")
WORDS = {
    "payload": rules.PAYLOADS,
    "packet_addresses": rules.PACKET_ADDRESSES,
    "server_address": rules.SERVER_ADDRESSES,
    "mac": rules.MACS,
    "tcp_timestamps": rules.TCP_TIMESTAMPS,
    "ttl": rules.TTLS,
    "encapsulation": rules.ENCAPSULATIONS,
    "fingerprint": rules.FINGERPRINTS,
    "timestamps": tuple(rules.TIMESTAMPS),
    "suppressed": rules.SUPPRESSED,
}


@pytest.fixture(scope="module")
def page() -> str:
    return (ROOT / "docs" / "reference" / "packets.md").read_text(encoding="utf-8")


def rows(page: str, heading: str) -> list[list[str]]:
    """The cells of the first table whose header begins with `heading`."""
    lines = page[page.index(f"| {heading} |") :].splitlines()[2:]
    table = lines[: next((i for i, line in enumerate(lines) if not line), len(lines))]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table]


def section(page: str, heading: str) -> str:
    """What stands below a heading, up to the next one of its level."""
    level = heading.split(" ")[0]
    text = page[page.index(f"\n{heading}\n") + 1 :]
    return text.split(f"\n{level} ")[0]


def source(path: str) -> str:
    return (ROOT / "csrc" / path).read_text("utf-8")


def settings_of(page: str) -> dict[str, list[str]]:
    """The cells behind each option, by the name of its setting."""
    table = rows(page, "option | default")
    return {option.strip("`-").replace("-", "_"): cells for option, *cells in table}


def field(name: str) -> str:
    """The name that a setting has in Config."""
    return "packet_addresses" if name == "addresses" else name


def test_options(page: str) -> None:
    assert [field(name) for name in settings_of(page)] == [row.name for row in ROWS]


def test_defaults(page: str) -> None:
    shown = Config().to_dict()["packets"]
    shown["hold_memory"] = f"{shown['hold_memory'] >> 20}M"
    shown["view"] = shown["view"] or "none"
    assert {name: cells[0].strip("`") for name, cells in settings_of(page).items()} == shown


def test_values(page: str) -> None:
    """Each setting whose values are words has all of them."""
    told = {
        field(name): {default.strip("`"), *QUOTED.findall(others)}
        for name, (default, others, _what) in settings_of(page).items()
    }
    for name, values in WORDS.items():
        assert told.pop(name) == set(values)
    views = {"none", "NAME:KEY=VALUE,..."}
    assert told == {"hold": {"1s"}, "hold_memory": {"256M"}, "view": views}


def test_keys_of_a_view(page: str) -> None:
    told = rows(section(page, "## Views"), "key | values")
    assert tuple(key.strip("`") for key, *_rest in told) == packet_views.KEYS


def test_what_is_weaker(page: str) -> None:
    """The values that a summary names are those that the page names."""
    (told,) = re.findall(r"the manifest: `--exact`, and (.*?)\.", page.replace("\n", " "))
    weaker = {
        value
        for name, values in WORDS.items()
        for value in values
        if Config().replace(format=("pcapng",), **{name: value}).weaker_than["options"]
    }
    assert set(QUOTED.findall(told)) == weaker


def test_fates(page: str) -> None:
    """Each counter of a fate, by the word that the manifest has for it."""
    told = {row[1].strip("`"): row[0].strip("`") for row in rows(page, "fate | counter")}
    counters = [name for name, _group, _text in STAT_INFO if name.startswith(OWN)]
    expected = {name: name.removeprefix(OWN) for name in counters}
    expected |= {name: name.removeprefix("packets_") for name in ALL}
    assert {name: word for name, word in told.items() if name != "drop_..."} == expected


def test_keys_of_the_manifest(page: str, demo_pcap: Path, tmp_path: Path) -> None:
    report = zanon_net.packets(demo_pcap, tmp_path / "out.pcapng", z=3, internal="10.0.0.0/8")
    kept = report.manifest["packets"]
    table = rows(section(page, "## The manifest"), "key | meaning")
    assert {key for row in table for key in QUOTED.findall(row[0])} == kept.keys()
    inner = {key for row in table for key in QUOTED.findall(row[1])}
    assert inner == {key for group in ("addresses", "names", "certificates") for key in kept[group]}


def test_blocks(page: str, demo_pcap: Path, tmp_path: Path) -> None:
    """All that pseudonyms may lie in, where public networks are internal, too."""
    told = set(re.findall(r"(?<![\w.:])[\da-f][\da-f.:]*/\d+", section(page, "## Addresses")))
    internal = "10.0.0.0/8,198.51.100.0/24,fc00::/8,2001:db8::/32"
    report = zanon_net.packets(demo_pcap, tmp_path / "out.pcap", internal=internal)
    blocks = set(report.manifest["packets"]["blocks"])
    assert {"fc00::/8", "fd00::/8"} <= blocks  # the halves of a range
    assert told == blocks - {"fc00::/8", "fd00::/8"} | {"fc00::/7"}


def test_networks_that_do_not_fit_are_refused(demo_pcap: Path, tmp_path: Path) -> None:
    internal = "10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,100.64.0.0/10,198.51.100.0/24"
    for networks in (internal, "any"):
        with pytest.raises(zanon_net.ConfigError, match="--addresses wide"):
            zanon_net.packets(demo_pcap, tmp_path / "out.pcap", internal=networks)


def test_protocols_without_names(page: str) -> None:
    """Each row of the table, and for each whether a word is awaited."""
    table = re.findall(r"^    X\((\w+), \w+, \w+, (\w+)\)", source("proto/nameless.h"), re.M)
    told = {
        name: len(cells) > 2 and cells[2] != ""
        for cells in rows(page, "rows of `csrc/proto/nameless.h` | opening")
        for name in QUOTED.findall(cells[0])
    }
    assert told == {name: word != "never" for name, word in table}


def test_local_ports(page: str) -> None:
    (cases,) = re.findall(r"switch \(port\) \{(.*?)return", source("release/packet_gate.c"), re.S)
    (told,) = re.findall(r"\((67, [\d, ]+)\)", page.replace("\n", " "))
    assert told.replace("  ", " ").split(", ") == re.findall(r"case (\d+):", cases)


def test_mac_addresses(page: str) -> None:
    (macs,) = re.findall(r"role_macs\[2\]\[.*?\] = \{(.*?)\};", source("rewrite/frame_builder.c"))
    pairs = [[int(n) for n in mac.split(", ")] for mac in re.findall(r"\{([\d, ]+)\}", macs)]
    written = [":".join(f"{n:02}" for n in mac) for mac in pairs]
    assert all(f"`{mac}`" in page for mac in written)


@pytest.mark.parametrize(
    ("path", "name", "told"),
    [
        ("build/build_dns.h", "ZN_BUILD_DNS_PARTS_MAX", "{} questions and records"),
        ("rewrite/emit_other.c", "ICMP_BYTES_MAX", "At most {} bytes of a message are built"),
        ("rewrite/packet_images.h", "ZN_IMAGE_SMALL", "its first {} bytes"),
        ("rewrite/packet_images.h", "ZN_IMAGE_SMALL", "of them up to {} bytes"),
        ("flow/reassembly.h", "ZN_STREAM_MAX", "larger ones, up to {};"),
        ("rewrite/packet_images.c", "IMAGES_MAX", "have room for {} pieces"),
        ("rewrite/packet_images.c", "SMALL_MAX", "pieces, {} of them"),
        ("rewrite/packet_images.c", "LARGE_MAX", "and {} larger ones"),
        ("release/coarse_positions.h", "ZN_COARSE_BYTES", "rounded up to multiples of {} bytes"),
        ("build/build_ip.h", "ZN_BUILD_FRAME_MIN", "less than {} bytes is filled up"),
    ],
)
def test_limits(page: str, path: str, name: str, told: str) -> None:
    text = page.replace("\n", " ")
    (value,) = re.findall(rf"#define {name} (.*?)(?: /\*.*)?$", source(path), re.MULTILINE)
    numbers = [int(n) for n in re.findall(r"\d+", value.replace("UINT32_C", ""))]
    amount = numbers[0] << numbers[1] if "<<" in value else numbers[0]
    assert told.format(f"{amount:,}") in text
