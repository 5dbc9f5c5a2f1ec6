# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of `zanon-net report` are the figures of the output, and a page has nothing else."""

import gzip
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.capture_bytes import pcap_header
from support.cli import DEMO, TRUTH, Captured, run_main
from support.demo import read_truth
from support.packets import MINUTE

import zanon_net
from zanon_net.errors import FormatError
from zanon_net.popularity import Popularity, PopularityWindow
from zanon_net.report.contents import contents_of
from zanon_net.report.folder import RunFolder
from zanon_net.report.page import page
from zanon_net.report.parts import Contents, Section
from zanon_net.report.records import BINS_MAX, bins, sums_of
from zanon_net.report.run_report import NO_RECORDS, report_of, text_of

Z = 5
SIZE_MAX = 1_000_000
FORMATS = ["parquet", "csv", "jsonl", "tstat", "observations"]
PATTERNS = {
    "parquet": "*.parquet",
    "csv": "*.csv",
    "jsonl": "flows*.jsonl",
    "tstat": "log_*",
    "observations": "observations*",
}
IPV4 = re.compile(r"\b\d{1,3}(\.\d{1,3}){3}\b")
SERVICES = {
    (6, 443): "HTTPS (TCP 443)",
    (17, 443): "QUIC (UDP 443)",
    (6, 80): "HTTP (TCP 80)",
    (17, 53): "DNS (UDP 53)",
}
OTHERS = {6: "TCP, other ports", 17: "UDP, other ports"}
Line = dict[str, Any]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo in every format. No test changes it."""
    out = tmp_path_factory.mktemp("report") / "logs"
    zanon_net.run(DEMO, z=Z, format=FORMATS, out=out)
    return out


@pytest.fixture(scope="module")
def lines(logs: Path) -> list[Line]:
    return [json.loads(line) for line in (logs / "flows.jsonl").open(encoding="utf-8")]


def copy(logs: Path, folder: Path, change: Callable[[Any], object]) -> Path:
    """A folder with JSON Lines alone, whose manifest is changed."""
    folder.mkdir()
    shutil.copy(logs / "flows.jsonl", folder)
    manifest = json.loads((logs / "manifest.json").read_bytes())
    manifest["outputs"] = [one for one in manifest["outputs"] if one["file"] == "flows.jsonl"]
    change(manifest)
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    return folder


def nothing(_manifest: Any) -> None:
    """Changes nothing."""


def section(contents: Contents, title: str) -> Section:
    (found,) = (one for one in contents.sections if one.title == title)
    return found


def rows(contents: Contents, title: str) -> list[tuple[str, ...]]:
    table = section(contents, title).table
    assert table is not None
    return [tuple(row) for row in table.rows]


# ---- figures ------------------------------------------------------------------------------------


def status_of(line: Line) -> str:
    if line["name"] is not None:
        return "released"
    return "none" if line["name_status"] == "none" else "suppressed"


def counted(logs: Path, kind: str) -> Any:
    manifest = json.loads((logs / "manifest.json").read_bytes())
    listed = [one["file"] for one in manifest["outputs"]]
    return sums_of(kind, [logs / name for name in listed if Path(name).match(PATTERNS[kind])])


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "tstat"])
def test_sums_over_flows(kind: str, logs: Path, lines: list[Line]) -> None:
    sums = counted(logs, kind)
    assert sums.records == len(lines)
    names = Counter(line["name"] for line in lines if line["name"] is not None)
    octets: Counter[str] = Counter()
    for line in lines:
        octets[line["name"]] += line["c_bytes"] + line["s_bytes"]
    expected = sorted(names.items(), key=lambda item: (-item[1], item[0]))[:25]
    assert sums.names == [(name, n, octets[name]) for name, n in expected]
    assert sums.distinct == len(names)
    services: Counter[str] = Counter()
    for line in lines:
        key = line["proto"], line["server_port"]
        services[SERVICES.get(key, OTHERS[line["proto"]])] += 1
    assert {name: n for name, n, _octets in sums.services} == services
    if kind != "tstat":
        assert sums.by_status == over_time(lines, sums.starts, sums.width_ns)
    else:
        assert sum(sums.by_status["released"]) == names.total()
        assert sums.by_status.keys() == {"released", "unknown"}


def over_time(lines: list[Line], starts: list[int], width_ns: int) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for line in lines:
        counts = found.setdefault(status_of(line), [0] * len(starts))
        counts[(line["t_end_ns"] // MINUTE * MINUTE - starts[0]) // width_ns] += 1
    return found


def test_sums_over_observations(logs: Path) -> None:
    text = (logs / "observations.jsonl").read_text("utf-8")
    observed = [json.loads(line) for line in text.splitlines()]
    sums = counted(logs, "observations")
    assert sums.records == sum(sums.by_status["released"]) == len(observed)
    assert {name: n for name, n, _octets in sums.services} == Counter(
        {"tls": "TLS", "quic": "QUIC", "http": "HTTP", "dns": "DNS"}[line["name_source"]]
        for line in observed
    )
    assert sums.names[0][:2] == Counter(line["name"] for line in observed).most_common(1)[0]


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("compress", ["none", "gzip", "zstd"])
def test_each_format_is_found(form: str, compress: str, logs: Path, tmp_path: Path) -> None:
    zanon_net.run(DEMO, z=Z, format=form, compress=compress, out=tmp_path / "out")
    contents = report_of(tmp_path / "out")
    every = report_of(logs)
    assert contents.tiles == every.tiles
    names = {row[0] for row in rows(contents, "Top released names")}
    assert names >= {row[0] for row in rows(every, "Top released names")[:10]}
    assert section(contents, "Released and suppressed over time").chart is not None


def test_parts_and_shards_are_added_up(logs: Path, tmp_path: Path) -> None:
    zanon_net.run(DEMO, z=Z, format="csv", split="30m", out=tmp_path / "parts")
    assert len(list((tmp_path / "parts").glob("flows-*"))) > 3
    folder = tmp_path / "shards"
    manifest = json.loads((tmp_path / "parts" / "manifest.json").read_bytes())
    for n, one in enumerate(manifest["outputs"]):
        target = folder / f"shard-{n % 2}" / one["file"]
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tmp_path / "parts" / one["file"], target)
        one["file"] = target.relative_to(folder).as_posix()
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    for place in ("parts", "shards"):
        contents = report_of(tmp_path / place)
        for title in ("Top released names", "Traffic by service"):
            assert rows(contents, title) == rows(report_of(logs), title)


def test_partitions_by_hour_are_added_up(logs: Path, tmp_path: Path) -> None:
    zanon_net.run(DEMO, z=Z, format="parquet", partition="day,hour", out=tmp_path / "out")
    contents = report_of(tmp_path / "out")
    assert rows(contents, "Top released names") == rows(report_of(logs), "Top released names")


@pytest.mark.parametrize("form", FORMATS)
def test_a_run_without_a_record(form: str, tmp_path: Path) -> None:
    zanon_net.run(DEMO, format=form, internal="192.0.2.0/24", out=tmp_path / "out")
    contents = report_of(tmp_path / "out")
    (sentence,) = section(contents, "Released and suppressed over time").text
    assert sentence in (NO_RECORDS, "There are no records.")
    assert "flows have no internal endpoint" in contents.notes[0]
    assert len(page(contents)) < SIZE_MAX


def test_a_capture_without_a_packet(tmp_path: Path) -> None:
    (tmp_path / "empty.pcap").write_bytes(pcap_header())
    zanon_net.run(tmp_path / "empty.pcap", out=tmp_path / "out")
    contents = report_of(tmp_path / "out")
    assert contents.period == "no packet"
    assert section(contents, "Reasons for suppression").chart is None
    assert "No name was suppressed." in page(contents).decode("utf-8")


def test_the_manifest_s_figures(logs: Path) -> None:
    contents, manifest = report_of(logs), json.loads((logs / "manifest.json").read_bytes())
    decisions = manifest["decisions"]
    listed = {row[0]: row[1] for row in rows(contents, "Reasons for suppression")}
    assert listed["exposed by fewer than z users"] == f"{decisions['suppressed']['below_z']:,}"
    assert len(listed) == sum(n > 0 for n in decisions["suppressed"].values()) + 1
    assert contents.tiles[0][1:] == ("39.8%", "487 of 1,223")
    losses = {row[0]: row[1] for row in rows(contents, "Losses")}
    assert losses["neither IPv4 nor IPv6"] == "12"
    words = dict(rows(contents, "Settings in words"))
    assert "at least 5 users exposed it within 1h" in words["Release"]


def test_names_by_level_are_sums(logs: Path, tmp_path: Path) -> None:
    """Each bar adds a level of the manifest; without levels there is no such section."""

    def change(manifest: Any) -> None:
        manifest["levels"] = {"published": {"domain": 100, "category": 20, "as": 7}}
        manifest["counters"]["dns"] |= {"dns_observations": 77, "dns_released": 13}

    contents = report_of(copy(logs, tmp_path / "levels", change))
    assert rows(contents, "Names by level") == [
        ("names only", "500", "38.5%"),
        ("with domains", "600", "46.2%"),
        ("with categories", "620", "47.7%"),
    ]
    assert "Names by level" not in [one.title for one in report_of(logs).sections]


@given(first=st.integers(0, 2**62), span=st.integers(0, 2**62))
def test_bins_cover_the_time(first: int, span: int) -> None:
    starts, width_ns = bins(first, first + span)
    assert 1 <= len(starts) <= BINS_MAX + 1
    assert starts[0] <= first < starts[0] + width_ns
    assert starts[-1] <= first + span < starts[-1] + width_ns


def test_z_over_time(logs: Path, tmp_path: Path) -> None:
    def change(manifest: Any) -> None:
        start = manifest["time_range"]["first_ns"]
        manifest["z_changes"] = [
            {"t_ns": start + minute * MINUTE, "old": old, "new": new, "reason": "target"}
            for minute, old, new in ((11, 5, 9), (12, 9, 7), (60, 7, 6))
        ]

    contents = report_of(copy(logs, tmp_path / "logs", change))
    found = rows(contents, "z over time")
    assert found[:4] == [
        ("09:00", "5", "5", "5"),
        ("09:05", "5", "5", "5"),
        ("09:10", "7", "5", "9"),
        ("09:15", "7", "7", "7"),
    ]
    assert found[-1] == ("11:40", "6", "6", "6")
    assert ("z", "5 to 9", "users that share a name within 1h") in contents.tiles


def test_users_per_name_begin_at_z(logs: Path, tmp_path: Path) -> None:
    windows = [PopularityWindow(n, True, 90, (80, 40, 20, 10, n, 2)) for n in range(2)]
    counts = tmp_path / "popularity.json"
    counts.write_bytes(Popularity(Z, 3600 * 10**9, tuple(windows)).to_bytes())
    found = rows(report_of(logs, counts), "Users per name")
    assert found == [("8 to 15", "10.0"), ("16 to 31", "0.5"), ("32 to 63", "2.0")]
    assert section(report_of(logs), "Users per name").table is None


# ---- what a page has ----------------------------------------------------------------------------


class Tags(HTMLParser):
    """The tags of a page, its attributes that load something, and its text."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.loads: list[str] = []
        self.text = ""
        self.feed(data.decode("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.loads += [name for name, _value in attrs if name in ("src", "href", "data", "style")]
        self.loads += [name for name, _value in attrs if name.startswith("on")]

    def handle_data(self, data: str) -> None:
        self.text += data + "\n"


def test_a_page_has_no_address_and_no_suppressed_name(logs: Path, lines: list[Line]) -> None:
    data = page(report_of(logs))
    assert len(data) < SIZE_MAX
    tags = Tags(data)
    assert not {"script", "img", "link", "iframe", "object", "a", "form"} & tags.tags.keys()
    assert tags.loads == []
    assert b"url(" not in data
    assert b"@import" not in data
    assert b"default-src &#x27;none&#x27;" in data
    released = {line["name"] for line in lines if line["name"]}
    truth = read_truth(TRUTH)
    suppressed = {line["name"] for line in truth} - released
    assert len(suppressed) > 100
    assert not [
        name for name in suppressed if re.search(rf"(?<![\w.-]){re.escape(name)}\b", tags.text)
    ]
    secrets = {line["client"] for line in truth} | {line[key] for line in lines for key in ENDS}
    assert not [address for address in secrets - {None} if address in tags.text]
    assert not IPV4.search(tags.text)


ENDS = ("client", "server")


def test_a_chart_has_words_and_a_table(logs: Path) -> None:
    text = page(report_of(logs)).decode("utf-8")
    drawings = re.findall(r"<svg .*?</svg>", text, re.DOTALL)
    assert len(drawings) == sum(one.chart is not None for one in report_of(logs).sections) == 4
    for drawing in drawings:
        assert re.match(
            r'<svg [^>]*role="img"[^>]*><title>[^<]+</title><desc>[^<]+</desc>', drawing
        )
    assert text.count("<table>") == len(drawings) + 2


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='x",
    "&lt;b&gt;",
    "\u202egnp.elif\x1b[31m\x07",
    "10.1.2.3",
    "fe80::1",
    "10.1.2.3.nip.example",
    "x" * 5000,
]


def test_texts_of_a_foreign_log_are_only_texts(logs: Path, tmp_path: Path) -> None:
    def change(manifest: Any) -> None:
        manifest["notes"] = [f"note {text}" for text in HOSTILE] * 50
        manifest["version"] = HOSTILE[0]
        manifest["configuration"]["anonymity"]["window"] = HOSTILE[1]
        manifest["configuration"]["addresses"]["rotate"] = HOSTILE[0]
        manifest["error"], manifest["complete"] = f"10.9.9.9: {HOSTILE[0]}", False

    folder = copy(logs, tmp_path / "logs", change)
    before = (folder / "flows.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in before]
    for n, record in enumerate(records):
        record["name"] = HOSTILE[n % len(HOSTILE)]
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    (folder / "flows.jsonl").write_text(text, "utf-8")
    contents = report_of(folder)
    data = page(contents)
    assert len(data) < SIZE_MAX
    tags = Tags(data)
    assert not {"script", "img", "b"} - {"b"} & tags.tags.keys()
    assert tags.tags["b"] == len(contents.tiles)
    assert tags.loads == []
    assert "<script>alert(1)</script>" in tags.text
    for shown in (data.decode("utf-8"), text_of(contents, 80)):
        for forbidden in ("10.1.2.3", "fe80::1", "10.9.9.9", "\x1b", "\x07", "\u202e"):
            assert forbidden not in shown
    assert "(address).nip.example" in tags.text
    assert "430 further notes" in tags.text


def test_a_page_stays_small(logs: Path, tmp_path: Path) -> None:
    def change(manifest: Any) -> None:
        first, year = manifest["time_range"]["first_ns"], 366 * 24 * 60
        changes = ((n, first + n * MINUTE) for n in range(0, year, 3))
        manifest["z_changes"] = [
            {"t_ns": t_ns, "old": n % 7 + 5, "new": (n + 3) % 7 + 5, "reason": "x"}
            for n, t_ns in changes
        ]

    folder = copy(logs, tmp_path / "logs", change)
    with (folder / "flows.jsonl").open("a", encoding="utf-8") as file:
        line = json.loads((logs / "flows.jsonl").read_text("utf-8").splitlines()[0])
        for n in range(5000):
            line |= {"name": f"{n}.{'long-label.' * 20}example", "t_end_ns": n * 10**15}
            file.write(json.dumps(line) + "\n")
    assert len(page(report_of(folder))) < SIZE_MAX


def test_the_terminal_has_the_facts_of_the_page(logs: Path) -> None:
    contents = report_of(logs)
    text = unescape(Tags(page(contents)).text)
    shown = " ".join(text_of(contents, 200).split())
    for one in contents.sections:
        assert one.title in text
        assert one.title in shown
        for sentence in one.text:
            assert sentence in shown
        for row in () if one.table is None else one.table.rows:
            for cell in row:
                assert cell in text
                assert cell in shown


# ---- uses ---------------------------------------------------------------------------------------


def test_the_command(logs: Path, tmp_path: Path, capsys: Captured) -> None:
    target = tmp_path / "report.html"
    assert run_main("report", logs, "--html", target) == 0
    assert capsys.readouterr() == ("", "")
    assert target.read_bytes() == page(report_of(logs))
    assert run_main("report", logs) == 0
    assert capsys.readouterr().out.startswith("2024-05-14 09:00 to 2024-05-14 11:42 UTC")
    assert run_main("report", logs, "--html", target) == 2
    assert "nothing is ever overwritten" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [target]


def test_the_report_of_a_run_shows_itself(logs: Path, tmp_path: Path) -> None:
    report = zanon_net.run(DEMO, z=Z, format="csv", out=tmp_path / "logs")
    html = report._repr_html_()
    assert "www.search.example" in html
    assert html.startswith("<main")
    (tmp_path / "logs" / "flows.csv").unlink()
    assert "The records cannot be read" in report._repr_html_()


def test_packets_have_a_report_of_their_counts(tmp_path: Path) -> None:
    html = zanon_net.packets(DEMO, tmp_path / "left.pcap", z=Z)._repr_html_()
    assert "no records of flows" in html
    assert "Reasons for suppression" in html


def test_without_pyarrow(logs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("zanon_net.report.run_report.find_spec", {}.get)
    contents = report_of(logs)
    (sentence,) = section(contents, "Released and suppressed over time").text
    assert "pip install 'zanon-net[parquet]'" in sentence
    assert contents.tiles == report_of(logs).tiles


# ---- bad input ----------------------------------------------------------------------------------


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5000])


BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (shutil.rmtree, "there is no such folder"),
    "no manifest": (lambda p: (p / "manifest.json").unlink(), "no run has written it"),
    "a run that goes on": (
        lambda p: (p / "manifest.json").rename(p / "manifest.json.partial"),
        "the run has not ended",
    ),
    "a folder as manifest": (
        lambda p: ((p / "manifest.json").unlink(), (p / "manifest.json").mkdir()),
        "cannot be read: Is a directory",
    ),
    "no JSON": (lambda p: truncated(p / "manifest.json"), "is no manifest, or damaged"),
    "no text": (lambda p: (p / "manifest.json").write_bytes(b"\xff\xfe\0"), "or damaged"),
    "deep": (lambda p: (p / "manifest.json").write_text("[" * 10**5), "or damaged"),
    "a list": (lambda p: (p / "manifest.json").write_text("[]"), "is no manifest of zanon-net"),
    "another program": (
        lambda p: (p / "manifest.json").write_text('{"name": "app", "icons": []}'),
        "is no manifest of zanon-net",
    ),
    "no outputs": (
        lambda p: (p / "manifest.json").write_text('{"name": "zanon-net"}'),
        "it lists no files",
    ),
    "not of a run": (
        lambda p: (p / "manifest.json").write_text('{"name": "zanon-net", "outputs": []}'),
        "not of a run of this version",
    ),
    "a path outside": (
        lambda p: (p / "manifest.json").write_text(
            '{"name": "zanon-net", "outputs": [{"file": "../flows.jsonl"}]}'
        ),
        "a file outside of its folder",
    ),
    "a missing file": (lambda p: (p / "flows.jsonl").unlink(), "1 of 1 files of format jsonl"),
    "a damaged file": (lambda p: truncated(p / "flows.jsonl"), "ends in the middle of a line"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_folders(case: str, logs: Path, tmp_path: Path, capsys: Captured) -> None:
    folder = copy(logs, tmp_path / "logs", nothing)
    change, problem = BAD[case]
    change(folder)
    for more in ((), ("--html", tmp_path / "report.html")):
        assert run_main("report", folder, *more) == 1
        said = capsys.readouterr()
        assert said.out == ""
        assert problem in said.err
        assert len(said.err.splitlines()) == 1
        assert not (tmp_path / "report.html").exists()


@pytest.mark.parametrize("form", ["parquet", "csv", "tstat", "observations"])
def test_damaged_records(form: str, tmp_path: Path) -> None:
    zanon_net.run(DEMO, z=Z, format=form, out=tmp_path / "out")
    kind, files = RunFolder.open(tmp_path / "out").files()
    assert kind == form
    data = files[0].read_bytes()
    late = data.replace(b"17156", b"99999999999")  # beyond 64 bits
    for damaged in (data[: len(data) // 2 - 7], b"\0" * 100, gzip.compress(data), late):
        if form == "parquet" and damaged is late:
            continue
        files[0].write_bytes(damaged)
        with pytest.raises(FormatError, match=re.escape(f"{files[0]}: ")):
            report_of(tmp_path / "out")


def test_wrong_arguments(logs: Path, tmp_path: Path, capsys: Captured) -> None:
    assert run_main("report") == 2
    assert run_main("report", logs, logs) == 2
    assert run_main("report", logs / "manifest.json") == 1
    assert run_main("report", logs, "--html", tmp_path / "none" / "report.html") == 1
    assert run_main("report", logs, "--popularity", logs / "manifest.json") == 1
    assert run_main("report", logs, "--popularity", tmp_path / "none.json") == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert len(said.err.splitlines()) == 6
    assert list(tmp_path.iterdir()) == []


def leaves(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found = [path] if path else []
    for key, item in inner:
        deeper = isinstance(item, dict | list)
        found += leaves(item, (*path, key)) if deeper else [(*path, key)]
    return found


@given(data=st.data())
def test_a_damaged_manifest_is_refused_or_shown(data: st.DataObject, logs: Path) -> None:
    manifest = json.loads((logs / "manifest.json").read_bytes())
    place = data.draw(st.sampled_from(leaves(manifest)))
    within = manifest
    for key in place[:-1]:
        within = within[key]
    values = [None, -1, 2**70, 1.5, "<b>10.1.2.3", [], {}, [[]], {"a": 1}, True]
    within[place[-1]] = data.draw(st.sampled_from(values))
    try:
        shown = page(contents_of(manifest, None, "none", None))
    except FormatError:
        return
    assert b"10.1.2.3" not in shown
    assert b"<b>(" not in shown
