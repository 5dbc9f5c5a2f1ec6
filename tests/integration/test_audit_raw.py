# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The raw mode of the audit: violations that are put into the output of one run, each found with
the right check named; and no finding in outputs that are untouched."""

import ast
import base64
import gzip
import json
import resource
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.audit_copies import (
    FRAMES,
    WINDOW_NS,
    Checked,
    Copy,
    Line,
    Z,
    a_client,
    is_coarse,
    is_exact,
    run,
)
from support.cli import run_main
from support.paths import ROOT

from zanon_net.audit.raw import tshark
from zanon_net.audit.raw.networks import text_of
from zanon_net.keys import new_key


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    return run(tmp_path_factory.mktemp("raw"))


def below_z(copy: Copy) -> None:
    """1: a name at z - 1."""
    name, one = next(
        (name, one)
        for name, found in copy.seen.index.items()
        for one in found
        if name[0] == "name" and one.users == Z - 1
    )
    lines = copy.observations()
    lines.append({**lines[-1], "t_ns": one.t_ns, "name": name[1], "name_source": "tls"})
    copy.write_observations(lines)


def past_its_window(copy: Copy) -> None:
    """2: a name that is released 1 ns after its window."""
    lines, seen = copy.observations(), copy.seen
    for line in lines:
        name = ("dns" if line["name_source"] == "dns" else "name", line["name"])
        t_ns = line["t_ns"]
        users = seen.users_in(name, t_ns - WINDOW_NS, t_ns)
        if len(users) != Z:
            continue
        before = [one for one in seen.index[name] if t_ns - WINDOW_NS <= one.t_ns <= t_ns]
        oldest = min(max(one.t_ns for one in before if one.user == user) for user in users)
        late = oldest + WINDOW_NS + 1
        if len(seen.users_in(name, late - WINDOW_NS, late)) == Z - 1:
            assert len(seen.users_in(name, late - WINDOW_NS - 1, late - 1)) == Z
            line["t_ns"] = late
            break
    else:
        pytest.fail("no name of the demo has exactly z users")
    copy.write_observations(lines)


def shared_then(copy: Copy, line: Line, t_ns: int) -> bool:
    """Returns whether z users shared the name of a line at another time."""
    name = ("dns" if line["name_source"] == "dns" else "name", line["name"])
    return len(copy.seen.users_in(name, t_ns - WINDOW_NS, t_ns)) >= Z


def between_packets(copy: Copy) -> None:
    """2: a name that z users share, at a time without a packet."""
    lines, seen = copy.observations(), copy.seen
    line = next(
        line
        for line in lines
        if shared_then(copy, line, line["t_ns"] + 1)
        and not seen.flows_at(line["t_ns"] + 1, line["t_ns"] + 1)
    )
    line["t_ns"] += 1
    copy.write_observations(lines)


def of_another_flow(copy: Copy) -> None:
    """2: a name that z users share, at the time of a flow that does not have it."""
    lines = copy.observations()
    one, other = next(
        (one, other)
        for one, other in pairwise(lines)
        if one["name"] != other["name"] and shared_then(copy, one, other["t_ns"])
    )
    one["t_ns"] = other["t_ns"]
    copy.write_observations(lines)


def address_in_agent(copy: Copy) -> None:
    """3: a raw address in a user agent."""
    copy.edit(
        lambda row: row["name_source"] == "quic" and row["name_status"] == "released",
        quic_UA=f"Agent%201.0%20{a_client(copy.seen)}",
    )


def address_in_base64(copy: Copy) -> None:
    """3: the same in base64."""
    text = base64.b64encode(f"user={a_client(copy.seen)}".encode()).decode()
    copy.edit(is_exact, c_TLSvers=text)


def address_in_dictionary(copy: Copy) -> None:
    """3: the same in a dictionary page of Parquet."""
    path = copy.folder / "flows" / "tcp.parquet"
    table = pq.read_table(path)
    at = table.schema.get_field_index("c_TLSvers")
    texts = table.column(at).cast(pa.string()).to_pylist()
    exact = table.column("complete").to_pylist().index(True)
    texts[exact] = a_client(copy.seen)
    table = table.set_column(at, "c_TLSvers", pa.array(texts).dictionary_encode())
    pq.write_table(table, path, use_dictionary=True)


def hidden_in_fqdn(copy: Copy) -> None:
    """4: a hidden name in fqdn."""
    name = next(
        name[1]
        for name, found in copy.seen.index.items()
        if name[0] == "name" and max(one.users for one in found) < Z
    )
    assert isinstance(name, str)
    copy.edit(is_exact, fqdn=name)


def bytes_off_the_grid(copy: Copy) -> None:
    """5: bytes of a coarse record."""
    copy.edit(is_coarse, c_bytes="1025")


def exact_time(copy: Copy) -> None:
    """6: the time of a coarse record."""
    row = next(row for row in copy.rows() if is_coarse(row))
    copy.edit(is_coarse, t_start_ns=str(int(row["t_start_ns"]) + 1))


def uncommon_port(copy: Copy) -> None:
    """7: the port of a coarse record."""
    copy.edit(is_coarse, server_port="8443")


def client_as_server(copy: Copy) -> None:
    """8: a client as a server."""
    copy.edit(is_exact, server=a_client(copy.seen), s_iscrypto="0")


def other_epoch(copy: Copy) -> None:
    """9: a pseudonym of another epoch of the same client."""
    rows = [row for row in copy.rows() if is_exact(row)]
    first = rows[0]
    other = next(row for row in rows if row["epoch"] != first["epoch"])
    copy.edit(lambda row: row == first, client=other["client"])


def two_with_one(copy: Copy) -> None:
    """10: two clients with one pseudonym."""
    rows = [row for row in copy.rows() if is_exact(row)]
    first = rows[0]
    other = next(
        row for row in rows if row["epoch"] == first["epoch"] and row["client"] != first["client"]
    )
    copy.edit(lambda row: row == first, client=other["client"])


def manifest_off_by_one(copy: Copy) -> None:
    """11: the manifest."""

    def change(manifest: Line) -> None:
        manifest["users"] += 1

    copy.manifest(change)


def cut_line(copy: Copy) -> None:
    """12: a cut last line."""
    path = copy.folder / "observations.jsonl"
    path.write_bytes(path.read_bytes()[:-20])


SEEDED: dict[Callable[[Copy], None], str] = {
    below_z: "names",
    past_its_window: "names",
    between_packets: "names",
    of_another_flow: "names",
    address_in_agent: "addresses",
    address_in_base64: "addresses",
    address_in_dictionary: "addresses",
    hidden_in_fqdn: "hidden",
    bytes_off_the_grid: "coarse",
    exact_time: "coarse",
    uncommon_port: "coarse",
    client_as_server: "addresses",
    other_epoch: "pseudonyms",
    two_with_one: "pseudonyms",
    manifest_off_by_one: "sums",
    cut_line: "format",
}
# Changes that a second check sees, too: each value must also be shared and have the form of its
# column, and each line is counted.
ALSO = {"names", "sums", "format"}


@pytest.mark.parametrize("seed", SEEDED, ids=lambda seed: seed.__name__)
def test_a_seeded_violation_is_found(
    seed: Callable[[Copy], None], checked: Checked, tmp_path: Path
) -> None:
    copy = Copy(checked, tmp_path / "out")
    seed(copy)
    found = checked.check(copy.folder).violations
    assert SEEDED[seed] in {one.check for one in found}
    assert {one.check for one in found} <= {SEEDED[seed], *ALSO}
    assert len(found) < 10


@pytest.mark.parametrize("keyed", [False, True])
def test_the_untouched_output_passes(checked: Checked, keyed: bool) -> None:
    key = checked.folder.parent / "key" if keyed else None
    result = checked.check(checked.folder, key_file=key)
    assert (result.violations, result.unproven) == ([], [])
    assert result.claims > FRAMES // 12


def test_packets_in_the_folder_have_an_audit_of_their_own(tmp_path: Path) -> None:
    checked = run(tmp_path, format=("csv", "pcap"))
    result = checked.check(checked.folder)
    assert (result.violations, [name for name, _why in result.left_out]) == ([], ["packets"])


def test_another_key_is_found(checked: Checked, tmp_path: Path) -> None:
    new_key(tmp_path / "other")
    result = checked.check(checked.folder, key_file=tmp_path / "other")
    assert {one.check for one in result.violations} == {"pseudonyms"}


def test_the_raw_mode_shares_no_code_with_the_engine() -> None:
    imported = {
        name
        for path in sorted((ROOT / "zanon_net" / "audit" / "raw").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or "relative"]
        )
        if name.startswith(("zanon_net", "relative"))
    }
    own = {name for name in imported if name.startswith("zanon_net.audit.raw")}
    assert imported - own == {"zanon_net.errors"}


def test_with_z_1_a_name_that_nobody_exposed_is_found(tmp_path: Path) -> None:
    checked = run(tmp_path, z=1, format=("observations",))
    copy = Copy(checked, tmp_path / "copy")
    lines = copy.observations()
    lines[0]["name"] = "nobody.example"
    copy.write_observations(lines)
    assert (checked.check(checked.folder).violations, len(lines) > 100) == ([], True)
    assert {one.check for one in checked.check(copy.folder).violations} == {"names"}


def test_packets_of_a_server_explain_no_name(tmp_path: Path) -> None:
    """The client of a flow that was not read sent no packet, so the flow has no name."""
    checked = run(tmp_path, more=5, format=("observations",))
    assert checked.check(checked.folder).violations == []
    assert [flow.packets for flow in checked.seen.flows if flow.unread] == [[5, 0]]
    copy = Copy(checked, tmp_path / "copy")

    def change(manifest: Line) -> None:
        manifest["decisions"]["observations"] += 1
        manifest["decisions"]["suppressed"]["below_z"] += 1

    copy.manifest(change)
    found = checked.check(copy.folder).violations
    assert [one.column for one in found] == ["decisions.observations"]


def test_without_tshark_nothing_is_broken_for_certain(
    checked: Checked, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tshark, "find", lambda: None)
    capture = checked.folder.parent / "capture.pcap"
    assert run_main("audit", checked.folder, "--raw", capture, "--for", "internal") == 3
    said = " ".join(capsys.readouterr().out.split())
    assert "tshark is missing or too old." in said
    assert "No place breaks the promise for certain." in said


# ---- the command --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [below_z, bytes_off_the_grid, cut_line])
def test_the_command_names_the_place_and_no_data(
    seed: Callable[[Copy], None],
    checked: Checked,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    copy, details = Copy(checked, tmp_path / "out"), tmp_path / "details"
    seed(copy)
    capture = checked.folder.parent / "capture.pcap"
    files = tmp_path / "report.json", tmp_path / "report.html"
    options = ["--raw", capture, "--check", SEEDED[seed], "--details", details]
    options += ["--json", files[0], "--html", files[1]]
    assert run_main("audit", copy.folder, *options) == 3
    said = capsys.readouterr().out + "".join(file.read_text() for file in files)
    report = json.loads(files[0].read_bytes())
    assert report["promise"] == "broken"
    assert {one["check"] for one in report["violations"]} == {SEEDED[seed]}
    assert details.stat().st_mode & 0o777 == 0o600
    found = [json.loads(line) for line in details.read_text().splitlines()]
    assert len(found) == len(report["violations"])
    secrets = {one["detail"] for one in found if one["detail"]}
    secrets |= {text_of(end) for flow in checked.seen.flows for end, _port in flow.ends}
    secrets |= {name[1] for name in checked.seen.index if "." in str(name[1])}
    assert not [secret for secret in secrets if str(secret) in said]


def test_a_kept_promise_leaves_the_exit_code_to_the_risks(
    checked: Checked, capsys: pytest.CaptureFixture[str]
) -> None:
    capture = checked.folder.parent / "capture.pcap"
    options = ["--raw", capture, "--check", "names", "--check", "compose"]
    assert run_main("audit", checked.folder, *options, "--for", "internal") == 0
    assert "kept" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--details", "{folder}/new"], 2, "it needs raw"),
        (["--raw", "{folder}/nothing.pcap"], 1, "nothing.pcap"),
        (["--raw", "{folder}/key"], 1, "key"),
        (["--raw", "{folder}/text"], 1, "text"),
        (["--raw", "{folder}/late.pcap"], 2, "of the log's time"),
        (["--raw", "{folder}/other.pcap"], 1, "no packet can be read"),
        (["--raw", "{folder}/capture.pcap"] * 2, 2, "a capture is given twice"),
        (["--raw", "{folder}/capture.pcap", "--list", "{folder}/none"], 1, "cannot be read"),
        (["--raw", "{folder}/capture.pcap", "--details", "{folder}/key"], 2, "exists"),
    ],
)
def test_bad_input_is_one_line(
    options: list[str],
    code: int,
    words: str,
    checked: Checked,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = checked.folder.parent
    data = (folder / "capture.pcap").read_bytes()
    size = int.from_bytes(data[32:36], "little")
    (folder / "late.pcap").write_bytes(data[:24] + data[24 : 40 + size])
    (folder / "text").write_text(
        "fcTbKtemP7ohy4s7o/NmfsBEEdT4bkNS/MZXlR7iSSk=\n"
    )  # JSON, to tshark
    first, frame = int.from_bytes(data[24:28], "little"), bytes(12) + b"\x88\xb5" + bytes(46)
    heads = (first.to_bytes(4, "little"), (first + 3500).to_bytes(4, "little"))
    rest = bytes(4) + len(frame).to_bytes(4, "little") * 2 + frame
    (folder / "other.pcap").write_bytes(data[:24] + b"".join(head + rest for head in heads))
    filled = [option.format(folder=folder) for option in options]
    assert run_main("audit", checked.folder, *filled) == code
    said = capsys.readouterr()
    assert not said.out
    assert words in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("file", ["flows.csv.gz", "flows/tcp.parquet"])
def test_a_damaged_file_is_one_line(
    file: str, checked: Checked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = Copy(checked, tmp_path / "out")
    path = copy.folder / file
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress((copy.folder / "flows.csv").read_bytes()))
    path.write_bytes(path.read_bytes()[:-500])
    keep = {"file": file, "records": len(copy.rows())}
    copy.manifest(lambda manifest: manifest.update(outputs=[keep]))
    capture = checked.folder.parent / "capture.pcap"
    assert run_main("audit", copy.folder, "--raw", capture) == 1
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert f"{file}: it cannot be read; is it whole?" in said.err


def test_half_of_the_details_is_not_left(
    checked: Checked, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, details = Copy(checked, tmp_path / "out"), tmp_path / "details"
    bytes_off_the_grid(copy)
    capture = checked.folder.parent / "capture.pcap"
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, former[1]))
    try:
        assert run_main("audit", copy.folder, "--raw", capture, "--details", details) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "File too large" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
