# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The audit of a run with attributes besides names: the raw mode finds each value that may not be
shown, and the released-only mode counts each attribute as one more point of a user."""

import csv
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support import wire
from support.audit_logs import SETTINGS, sets_log, write_log
from support.handshake import flight, named
from support.packet_run import write_pcap
from support.packets import SECOND, SERVER, START, Frame, Tcp, Udp, hello, user

import zanon_net
from zanon_net import Config
from zanon_net.audit import audit
from zanon_net.audit.page_html import audit_page
from zanon_net.audit.raw import check, tshark
from zanon_net.audit.raw.attributes import READERS
from zanon_net.audit.raw.check import RawResult, check_files, read_captures, rules_of
from zanon_net.audit.raw.exposures import Exposures, collect
from zanon_net.audit.raw.packets import Read

Z = 3
ALL = tuple(READERS)
SHOWN = ("alpn", "ja4", "stun", "user-agent", "cert-issuer")
FORMATS = ("csv", "jsonl", "parquet", "tstat", "observations")
COMMON, OTHER, RARE = b"h2", b"http/1.1", b"acme-tls/1"
TLS_ALPN = 16
Line = dict[str, Any]


def offering(number: int, host: bytes, protocol: bytes, at: int) -> list[Frame]:
    """A connection of a user whose hello offers a protocol, `at` seconds after the start."""
    listed = wire.vector(2, wire.vector(1, protocol))
    ports = (40000 + at, 443)
    talk = Tcp(user(number), t_ns=START + at * SECOND + 1, ports=ports).handshake()
    talk.say(hello(host, wire.extension(TLS_ALPN, listed)))
    return talk.say(b"\x17\x03\x03\0\x04data", SERVER).close().frames


def asking(number: int, at: int) -> list[Frame]:
    """A request of HTTP with a program in it."""
    talk = Tcp(user(number), t_ns=START + at * SECOND + 1, ports=(40000 + at, 80)).handshake()
    talk.say(b"GET / HTTP/1.1\r\nHost: a.example.org\r\nUser-Agent: tool/1 (a, b)\r\n\r\n")
    return talk.say(b"HTTP/1.1 204 None\r\n\r\n", SERVER).close().frames


def certified(number: int, at: int) -> list[Frame]:
    """A connection whose server shows a certificate, in two segments."""
    talk = Tcp(user(number), t_ns=START + at * SECOND + 1, ports=(40000 + at, 443)).handshake()
    shown = wire.record(flight(named("a.example.org")))
    talk.say(hello(b"a.example.org")).say(shown[:300], SERVER).say(shown[300:], SERVER)
    return talk.close().frames


def calling(number: int, at: int) -> list[Frame]:
    """A question of STUN with a program in it, and its answer, over UDP or TCP."""
    where: dict[str, Any] = {"t_ns": START + at * SECOND + 1, "ports": (40000 + at, 3478)}
    software, transaction = b"\x80\x22\0\4call", bytes([at]) * 12
    asked, answered = (
        kind + b"\0\x08\x21\x12\xa4\x42" + transaction + software for kind in (b"\0\1", b"\1\1")
    )
    if number % 2:
        return Udp(user(number), **where).send(asked).send(answered, SERVER).frames
    talk = Tcp(user(number), **where).handshake().say(asked * 2)
    return talk.say(answered * 2, SERVER).close().frames


@dataclass(frozen=True)
class Checked:
    """A run, and the exposures in its capture."""

    folder: Path
    seen: Exposures

    def check(self, folder: Path) -> RawResult:
        manifest = json.loads((folder / "manifest.json").read_bytes())
        return check_files(folder, manifest, self.seen)


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture in which users share one name and two protocols. One protocol and one name are of
    one user each."""
    talks = [offering(i, b"a.example.org", COMMON, i) for i in range(6)]
    talks += [offering(i, b"a.example.org", OTHER, 10 + i) for i in range(4)]
    talks.append(offering(1, b"a.example.org", RARE, 20))
    talks.append(offering(2, b"rare.example.org", COMMON, 21))
    talks += [asking(i, 30 + i) for i in range(4)]
    talks += [calling(i, 40 + i) for i in range(4)]
    talks += [certified(i, 50 + i) for i in range(4)]
    path = tmp_path_factory.mktemp("capture") / "capture.pcap"
    return write_pcap(path, [frame for talk in talks for frame in talk])


@pytest.fixture(scope="module")
def packets(capture: Path) -> list[Read]:
    program = tshark.find()
    if program is None:
        pytest.skip("tshark is not installed: `make test` installs it from Debian")
    return list(tshark.read(program, capture, ALL))


def run(capture: Path, packets: Sequence[Read], out: Path, **settings: Any) -> Checked:
    """Runs the capture, and reads its packets for the audit."""
    own = {"z": Z, "attributes": ",".join(ALL), "format": FORMATS}
    zanon_net.run([capture], Config().replace(**(own | settings)), out=out)
    manifest = json.loads((out / "manifest.json").read_bytes())
    return Checked(out, collect(packets, rules_of(manifest), 1 << 30))


@pytest.fixture(scope="module")
def checked(
    capture: Path, packets: list[Read], tmp_path_factory: pytest.TempPathFactory
) -> Checked:
    return run(capture, packets, tmp_path_factory.mktemp("attributes") / "out")


@pytest.mark.parametrize("settings", [{}, {"z": 1}, {"exact": True}, {"times": "60s"}])
def test_the_untouched_output_passes(
    settings: Line, capture: Path, packets: list[Read], tmp_path: Path
) -> None:
    checked = run(capture, packets, tmp_path / "out", **settings)
    result = checked.check(checked.folder)
    assert (result.violations, result.unproven, result.left_out) == ([], [], [])
    shown = [flow for flow in checked.seen.flows if flow.attributes]
    assert len(shown) == 24
    counts = json.loads((checked.folder / "manifest.json").read_bytes())["attributes"]
    assert all(counts[word]["released"] > 1 for word in SHOWN)


# ---- seeded violations --------------------------------------------------------------------------


def set_cell(folder: Path, row: Callable[[Sequence[Line]], Line], text: str) -> None:
    """Changes the attribute of a row of flows.csv."""
    with (folder / "flows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    row(rows)["alpn"] = text
    with (folder / "flows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def began(rows: Sequence[Line], at: int) -> Line:
    """The row of the flow that began so many seconds after the start."""
    return next(row for row in rows if row["t_start_ns"] == str(START + at * SECOND + 1))


def below_z(folder: Path) -> None:
    """A protocol that one user offered."""
    set_cell(folder, lambda rows: began(rows, 20), RARE.decode())


def of_another_flow(folder: Path) -> None:
    """A protocol that z users share, in the row of a flow that offered another one."""
    set_cell(folder, lambda rows: began(rows, 5), OTHER.decode())


def next_to_a_suppressed_name(folder: Path) -> None:
    """A protocol that z users share, next to a name of one user."""

    def row(rows: Sequence[Line]) -> Line:
        return [row for row in rows if row["name_status"] == "suppressed"][-1]

    set_cell(folder, row, COMMON.decode())


def observed_below_z(folder: Path) -> None:
    """An observation of the second user of a protocol."""
    observe(folder, after=11, at=1)


def observed_next_to_a_suppressed_name(folder: Path) -> None:
    """An observation of a protocol in the flow of a name of one user."""
    observe(folder, after=2, at=21)


def observe(folder: Path, *, after: int, at: int) -> None:
    """Repeats an observation of one second as another one of the common protocol, at another
    second, and counts it in the manifest."""
    path = folder / "observations.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    line = next(line for line in lines if line["t_ns"] // SECOND == START // SECOND + after)
    moved = {"t_ns": line["t_ns"] + (at - after) * SECOND}
    lines.append(line | moved | {"namespace": "alpn", "name": COMMON.decode()})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    manifest = json.loads((folder / "manifest.json").read_bytes())
    for one in manifest["outputs"]:
        one["records"] += one["file"] == path.name
    manifest["attributes"]["alpn"]["released"] += 1
    manifest["attributes"]["alpn"]["suppressed"] -= 1
    (folder / "manifest.json").write_text(json.dumps(manifest))


def manifest_off_by_one(folder: Path) -> None:
    """Another number of released protocols than the observations have."""
    manifest = json.loads((folder / "manifest.json").read_bytes())
    manifest["attributes"]["alpn"]["released"] += 1
    manifest["attributes"]["alpn"]["suppressed"] -= 1
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("seed", "found"),
    [
        (below_z, {"attributes"}),
        (of_another_flow, {"attributes"}),
        (next_to_a_suppressed_name, {"attributes", "coarse"}),
        (observed_below_z, {"attributes"}),
        (observed_next_to_a_suppressed_name, {"attributes"}),
        (manifest_off_by_one, {"sums"}),
    ],
)
def test_a_seeded_violation_is_found(
    seed: Callable[[Path], None], found: set[str], checked: Checked, tmp_path: Path
) -> None:
    shutil.copytree(checked.folder, tmp_path / "out")
    seed(tmp_path / "out")
    violations = checked.check(tmp_path / "out").violations
    assert {one.check for one in violations} == found
    assert len(violations) == len(found)


def test_an_exact_record_shows_none_next_to_a_suppressed_name(
    capture: Path, packets: list[Read], tmp_path: Path
) -> None:
    checked = run(capture, packets, tmp_path / "out", exact=True)
    next_to_a_suppressed_name(checked.folder)
    assert [one.check for one in checked.check(checked.folder).violations] == ["attributes"]


def test_what_the_reader_cannot_read_is_unproven(
    checked: Checked, capture: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tshark, "find", lambda: None)
    manifest = json.loads((checked.folder / "manifest.json").read_bytes())
    seen = read_captures(manifest, [capture])
    result = check_files(checked.folder, manifest, seen)
    assert result.violations == []
    assert {one.check for one in result.unproven} == {"attributes"}
    shown = sum(one["released"] for one in manifest["attributes"].values())
    assert len(result.unproven) == shown * len(FORMATS)
    assert result.left_out == [
        ("attributes", f"{word}: the audit cannot read it in the captures") for word in sorted(ALL)
    ]
    assert "attributes" in check.CHECKS


# ---- the released files alone -------------------------------------------------------------------


@pytest.mark.parametrize("stated", [True, False])
def test_an_attribute_is_one_more_point_of_a_user(stated: bool, tmp_path: Path) -> None:
    """60 users share a name. Three of them have a list of protocols that no other user has."""
    own = {"anonymity": SETTINGS["anonymity"] | {"attributes": ["alpn"]}}
    folder = write_log(tmp_path / "log", sets_log(["a"] * 60), own if stated else {})
    header, *lines = (folder / "flows.csv").read_text().splitlines()
    texts = ["", *["h2"] * 57, "h3", '"h2,h3"', "http/1.1"]  # a user has two records
    cells = [f"{line},{texts[max(at - 59, 0)]}" for at, line in enumerate(lines)]
    (folder / "flows.csv").write_text("\n".join([f"{header},alpn", *cells]) + "\n")
    report = audit(folder, purpose="internal")
    found = {metric.name: metric for metric in report.metrics}
    assert found["k"].figure == found["unicity"].figure == (3 / 60 if stated else 0)
    assert report.facts["attributes"] == (["alpn"] if stated else [])
    assert found["entropy"].parts["names"] == 0
    for page in (report.text(), audit_page(report).decode()):
        assert ("alpn; each can help to identify" in " ".join(page.split())) == stated
