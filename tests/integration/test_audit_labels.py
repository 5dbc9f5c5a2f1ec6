# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The raw mode of the audit on labels of `--levels`, and on names that a list refuses."""

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from support.capture_bytes import pcap_header, pcap_record
from support.cli import run_main
from support.packets import (
    ACK,
    CLIENT,
    NAMED_AFTER_NS,
    PSH,
    SECOND,
    START,
    SYN,
    Frame,
    Tcp,
    hello,
    merged,
    user,
    visit,
)

import zanon_net
from zanon_net import Config
from zanon_net.audit.raw.check import RawResult, check_files, read_captures
from zanon_net.audit.raw.lists import Lists, flat, network_rows, rules_in

needs_tshark = pytest.mark.usefixtures("needs_tshark")
Z = 3
LEVELS = ("domain", "category", "as", "country")
SUFFIXES = "// a comment\ntest\norg\n*.ck\n!www.ck\ngithub.io\nio\n"
CATEGORIES = "d2.test\tads\nads.d2.test\tnews\n"
CATEGORIES += "".join(f"d{n}.test\tnews\n" for n in (0, 1, 4, 5, 6, 7, 8))
NETWORKS = "198.51.0.0/23\t64500\tIT\n198.51.1.0/24\t64501\tFR\n198.51.2.0\t198.51.3.9\t64500\tFR\n"
NETWORKS += "".join(f"198.51.{n}.0/24\t{64500 + n}\tSE\n" for n in range(4, 9))
Visit = tuple[int, int, str, str]  # s, user, name, server
Line = dict[str, Any]


def some_visits() -> list[Visit]:
    """Visits to names of nine domains, popular and rare. A user reaches each server once, because
    tshark joins connections with equal ports."""
    rng, at, made = random.Random(3), 0, {}
    for _ in range(400):
        at += rng.choice((1, 2, 5))
        domain = min(rng.randrange(9), rng.randrange(9))
        host = min(rng.randrange(6), rng.randrange(6))
        server, who = f"198.51.{domain}.{1 + 9 * host + rng.randrange(9)}", rng.randrange(20)
        made.setdefault((server, who), (at, who, f"n{host}.d{domain}.test", server))
    return list(made.values())


@dataclass
class Case:
    """Run with the files of its lists, and the exposures in its capture."""

    folder: Path
    files: list[Path]
    manifest: Line
    seen: Any

    def copy(self, folder: Path) -> "Case":
        """A copy that a test changes."""
        shutil.copytree(self.folder, folder)
        return replace(self, folder=folder)

    def check(self) -> RawResult:
        return check_files(self.folder, self.manifest, self.seen)

    def lines(self) -> list[Line]:
        text = (self.folder / "observations.jsonl").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def write(self, lines: list[Line]) -> None:
        text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
        (self.folder / "observations.jsonl").write_text(text)

    def found(self) -> set[tuple[str, str]]:
        return {(one.check, one.column) for one in self.check().violations if one.check != "sums"}


def run(
    folder: Path, visits: list[Visit], more: tuple[list[Frame], ...] = (), **settings: Any
) -> Case:
    """Runs visits, and more frames, with all levels and their lists, and reads them for the
    audit."""
    frames: list[Frame] = merged(
        [
            *(visit(user(u), n.encode(), START + s * SECOND, server) for s, u, n, server in visits),
            *more,
        ]
    )
    records = (pcap_record("<", f.t_ns // SECOND, f.t_ns % SECOND // 1000, f.data) for f in frames)
    (folder / "in.pcap").write_bytes(pcap_header() + b"".join(records))
    texts = {"suffixes": SUFFIXES, "categories": CATEGORIES, "networks": NETWORKS}
    words = (*settings.get("levels", LEVELS), *settings.get("skip", ()))
    if "as" not in words:
        del texts["networks"]
    if "category" not in words and "category:news" not in words:
        del texts["categories"]
    if "domain" not in words:
        del texts["suffixes"]
    files = {name: folder / name for name in texts}
    for name, text in texts.items():
        files[name].write_text(text)
    own: Line = {"z": Z, "window": "10m", "format": ("csv", "observations"), "levels": LEVELS}
    own |= {name: str(path) for name, path in files.items()} | settings
    zanon_net.run([folder / "in.pcap"], Config().replace(**own), out=folder / "out")
    manifest = json.loads((folder / "out" / "manifest.json").read_bytes())
    given = [*files.values(), *(path for path in [folder / "refused"] if path.exists())]
    seen = read_captures(manifest, [folder / "in.pcap"], files=given)
    return Case(folder / "out", given, manifest, seen)


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A run with all levels."""
    return run(tmp_path_factory.mktemp("labelled"), some_visits())


@needs_tshark
def test_labels_are_no_violation(labelled: Case) -> None:
    case = labelled
    result = case.check()
    assert (result.violations, result.unproven, result.left_out) == ([], [], [])
    published = case.manifest["levels"]["published"]
    assert published["domain"] > 20
    assert published["category"] > 5
    assert published["as"] > 5
    assert published["country"] > 0


def first_of_its_label(case: Case) -> None:
    """A label at the first exposure below it."""
    lines = case.lines()
    domain = next(line["name"] for line in lines if line["name_level"] == "domain")
    first = min(
        one.t_ns
        for (space, name), found in case.seen.index.items()
        if space == "name" and str(name).endswith(domain[1:])
        for one in found
    )
    case.write([{**lines[0], "t_ns": first, "name": domain, "name_level": "domain"}, *lines])


def domain_for_a_name(case: Case) -> None:
    """A label where the run published a name, which may be of another domain."""
    lines = case.lines()
    line = next(line for line in lines if line["name"].endswith(".d0.test"))
    case.write([{**line, "name": "*.d1.test", "name_level": "domain"}, *lines])


def label_of_no_list(case: Case) -> None:
    """A category that no list has."""
    lines = case.lines()
    line = next(line for line in lines if line["name_level"] == "category")
    line["name"] = "category:other"
    case.write(lines)


@needs_tshark
@pytest.mark.parametrize(
    "seed", [first_of_its_label, domain_for_a_name, label_of_no_list], ids=lambda one: one.__name__
)
def test_a_label_without_users_behind_it_is_found(
    seed: Callable[[Case], None], labelled: Case, tmp_path: Path
) -> None:
    case = labelled.copy(tmp_path / "copy")
    seed(case)
    assert case.found() == {("names", "name")}


@needs_tshark
def test_users_of_a_published_name_do_not_stand_behind_its_domain(tmp_path: Path) -> None:
    """The user of b is alone behind the domain, because five users have a, which is published."""
    visits = [(s, s, "a.example.org", "198.51.0.1") for s in range(5)]
    case = run(tmp_path, [*visits, (60, 9, "b.example.org", "198.51.0.2")])
    lines = case.lines()
    assert Counter(line["name"] for line in lines) == {"a.example.org": 3}
    t_ns = START + 60 * SECOND + NAMED_AFTER_NS
    case.write([*lines, {**lines[0], "t_ns": t_ns, "name": "*.example.org"}])
    found = [one for one in case.check().violations if one.check == "names"]
    assert [(one.measured, one.needed) for one in found] == [(1, Z)]


@needs_tshark
@pytest.mark.parametrize("with_packets", [True, False])
def test_a_name_that_only_packets_show_is_not_behind_a_label(
    tmp_path: Path, with_packets: bool
) -> None:
    """Users 0 to 2 share a.d0.test. User 3 sends its hello without a handshake, and packets show
    the name. A window after the log showed the name, users 10 to 12 have names of the domain."""
    crowd = [(s, s, "a.d0.test", "198.51.0.1") for s in range(Z)]
    later = 17 * 60
    rest = [(later + i, 10 + i, f"{name}.d0.test", "198.51.0.2") for i, name in enumerate("abc")]
    unproven = Tcp(user(3), t_ns=START + 9 * 60 * SECOND).segment(CLIENT, SYN)
    unproven.segment(CLIENT, PSH | ACK, hello(b"a.d0.test"))
    kinds = ("observations", "pcap") if with_packets else ("observations",)
    case = run(tmp_path, [*crowd, *rest], (unproven.frames,), format=kinds, levels=("domain",))
    assert case.check().violations == []
    lines = case.lines()
    labels = [line for line in lines if line["name"] == "*.d0.test"]
    assert bool(labels) != with_packets
    if not with_packets:
        return
    t_ns = START + (later + 2) * SECOND + NAMED_AFTER_NS
    case.write([*lines, {**lines[0], "t_ns": t_ns, "name": "*.d0.test", "name_level": "domain"}])
    found = [one for one in case.check().violations if one.check == "names"]
    assert [(one.measured, one.needed) for one in found] == [(Z - 1, Z)]
    (case.folder / "packets.pcap").unlink()
    result = case.check()
    assert not [one for one in result.violations if one.check == "names"]
    assert "only packets show" in dict(result.left_out)["names"]


@needs_tshark
def test_a_label_of_another_network_is_found(labelled: Case, tmp_path: Path) -> None:
    case = labelled.copy(tmp_path / "copy")
    log = case.folder / "flows.csv"
    text = log.read_text()
    assert ",as:64501," in text
    log.write_text(text.replace(",as:64501,", ",as:64502,", 1))
    assert case.found() == {("addresses", "server_label")}


@needs_tshark
def test_labels_without_their_lists_are_counted_as_not_checked(
    labelled: Case, tmp_path: Path
) -> None:
    copy, report = labelled.copy(tmp_path / "copy"), tmp_path / "report.json"
    first_of_its_label(copy)
    given = ["--list", labelled.files[1], "--list", labelled.files[2]]
    for files, code in (([], 0), (given, 0), ([*given, "--list", labelled.files[0]], 3)):
        arguments = ["--raw", labelled.folder.parent / "in.pcap", "--for", "internal", "-q"]
        arguments += ["--check", "names", "--json", report, *files]
        assert run_main("audit", copy.folder, *arguments) == code
        reasons = [one["reason"] for one in json.loads(report.read_text())["left_out"]]
        said = [reason.partition(" labels: ")[2] for reason in reasons if "labels" in reason]
        missing = "--suffixes" if files else "--categories or --suffixes or --networks"
        assert said == ([] if code else [f"give the files of {missing} (--list)"])
        report.unlink()


@needs_tshark
@pytest.mark.parametrize("skip", ["file", "category"])
def test_a_name_that_a_list_refuses_is_found(tmp_path: Path, skip: str) -> None:
    refused = tmp_path / "refused"
    refused.write_text("1,n0.d0.test\n0.0.0.0 n0.d2.test\n")
    settings = {"skip": [str(refused)] if skip == "file" else ["category:news"], "levels": ()}
    case = run(tmp_path, some_visits(), **settings)
    assert case.found() == set()
    lines = case.lines()
    assert not [line for line in lines if line["name"] == "n0.d0.test"]
    t_ns = max(t_ns for t_ns, _why in case.seen.barred["name", "n0.d0.test"])
    case.write([*lines, {**lines[0], "t_ns": t_ns, "name": "n0.d0.test"}])
    assert case.found() == {("reasons", "name"), ("hidden", "line")}


# ---- the lists ----------------------------------------------------------------------------------


def test_domains_and_categories_of_names() -> None:
    lists = Lists(
        levels=LEVELS,
        rules=set(rules_in(SUFFIXES)),
        categories={"d0.test": "news", "ads.d2.test": "ads", "alone": "cdn"},  # not d2.test
    )
    expected = {
        "a.b.d0.test": ("*.d0.test", "category:news"),
        "d0.test": ("*.d0.test", "category:news"),
        "ads.d2.test": ("*.d2.test",),
        "test": (),
        "x.alone": ("category:cdn",),
        "a.b.foo.ck": ("*.b.foo.ck",),
        "a.www.ck": ("*.www.ck",),
        "alice.github.io": ("*.alice.github.io",),
        "github.io": (),
    }
    assert {name: lists.chain(name) for name in expected} == expected


def test_networks_of_addresses() -> None:
    rows = list(network_rows(NETWORKS + "2001:db8::/32,AS64509,SE\n203.0.113.0/24 64510\n"))
    systems = flat([(span, number) for span, number, _country in rows if number])
    countries = flat([(span, country) for span, _number, country in rows if country])
    lists = Lists(levels=("as", "country"), systems=systems, countries=countries)
    expected = {
        "198.51.0.5": ("as:64500", "country:IT"),
        "198.51.1.5": ("as:64501", "country:FR"),
        "198.51.3.9": ("as:64500", "country:FR"),
        "198.51.3.10": (),
        "2001:db8::1": ("as:64509", "country:SE"),
        "203.0.113.1": ("as:64510",),
        "198.50.255.255": (),
    }
    assert {text: lists.chain(ip_address(text).packed) for text in expected} == expected
