# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The raw mode of the audit finds edits of a release by hand, in each format of flows."""

import base64
import csv
import json
from collections.abc import Callable
from ipaddress import IPv4Address
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.audit_copies import FRAMES, Checked, Copy, Line, Z, a_client, is_coarse, is_exact, run
from support.cli import run_main

from zanon_net._core import columns
from zanon_net.audit.raw.columns import columns_of
from zanon_net.audit.raw.flows import RESOLVER, SERVER
from zanon_net.audit.raw.networks import text_of
from zanon_net.config.rules import ATTRIBUTES

FORMATS = ("csv", "jsonl", "tstat", "parquet", "observations")
MAC = "00:1b:44:11:3a:b7"


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    return run(tmp_path_factory.mktemp("edits"), format=FORMATS)


def hidden_name(copy: Copy) -> str:
    """Returns a name that never had z users."""
    return next(
        str(name[1])
        for name, found in copy.seen.index.items()
        if name[0] == "name" and max(one.users for one in found) < Z
    )


def client_of_four(copy: Copy) -> str:
    """Returns the address of a client in IPv4."""
    ends = (flow.ends[flow.client][0] for flow in copy.seen.flows if flow.internal[0])
    return next(text_of(end) for end in ends if len(end) == 4)


def number_of(address: str) -> int:
    return int(IPv4Address(address))


def edit_json(copy: Copy, wanted: Callable[[Line], bool], change: Callable[[str], str]) -> None:
    """Changes the text of the first line of flows.jsonl that is wanted."""
    path = copy.folder / "flows.jsonl"
    lines = path.read_text().split("\n")
    at = next(at for at, line in enumerate(lines) if line and wanted(json.loads(line)))
    lines[at] = change(lines[at])
    path.write_text("\n".join(lines))


def is_exact_json(line: Line) -> bool:
    return line["name_status"] == "released" and line["complete"] == 1 and line["proto"] == 6


def with_versions(text: str) -> Callable[[str], str]:
    """Returns a change of a text column of a line of JSON."""

    def change(line: str) -> str:
        member = json.dumps(json.loads(line)["c_TLSvers"])
        assert f'"c_TLSvers":{member}' in line
        return line.replace(f'"c_TLSvers":{member}', f'"c_TLSvers":"{text}"')

    return change


def edit_tstat(copy: Copy, column: str, value: str) -> None:
    """Changes a cell of the first line of Tstat's log of complete connections."""
    path = next(copy.folder.glob("*.out/log_tcp_complete"))
    lines = [line.split(" ") for line in path.read_text().split("\n")]
    names = [word.rpartition("#")[2].partition(":")[0] for word in lines[0]]
    lines[1][names.index(column)] = value
    path.write_text("\n".join(" ".join(line) for line in lines))


# ---- csv ----------------------------------------------------------------------------------------


def capitals(copy: Copy) -> None:
    row = next(filter(is_exact, copy.rows()))
    copy.edit(lambda one: one == row, name=row["name"].upper())


def a_dot_at_the_end(copy: Copy) -> None:
    row = next(filter(is_exact, copy.rows()))
    copy.edit(lambda one: one == row, name=row["name"] + ".")


def percent_in_the_sni(copy: Copy) -> None:
    copy.edit(is_exact, c_tls_SNI=hidden_name(copy).replace(".", "%2E"))


def a_decimal_address(copy: Copy) -> None:
    copy.edit(is_exact, c_bytes_retx=str(number_of(client_of_four(copy))))


def a_client_as_itself(copy: Copy) -> None:
    flows = {flow.first_ns: flow for flow in copy.seen.flows}
    row = next(filter(is_exact, copy.rows()))
    own = text_of(flows[int(row["t_start_ns"])].known_as[0])
    copy.edit(lambda one: one == row, client=own)


def a_rare_server_as_a_pseudonym(copy: Copy) -> None:
    seen = copy.seen
    rare = {
        flow.first_ns: text_of(flow.server)
        for flow in seen.flows
        if not flow.internal[1]
        and max(seen.peak((space, flow.server)) for space in (SERVER, RESOLVER)) < Z
    }
    row = next(row for row in copy.rows() if not row["server"] and int(row["t_start_ns"]) in rare)
    copy.edit(lambda one: one == row, server=rare[int(row["t_start_ns"])], s_iscrypto="1")


def the_epoch_of_a_coarse_record(copy: Copy) -> None:
    copy.edit(is_coarse, epoch="2859462")


def a_column_more(copy: Copy) -> None:
    rows = copy.rows()
    with (copy.folder / "flows.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*rows[0], "mac"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(row | {"mac": MAC} for row in rows)


def a_column_twice(copy: Copy) -> None:
    path = copy.folder / "flows.csv"
    lines = path.read_text().splitlines()
    lines = [f"{lines[0]},name", *(f"{line},x" for line in lines[1:])]
    path.write_text("\n".join(lines) + "\n")


# ---- jsonl --------------------------------------------------------------------------------------


def a_mapped_address(copy: Copy) -> None:
    number = number_of(client_of_four(copy))
    edit_json(copy, is_exact_json, with_versions(f"::ffff:{number >> 16:x}:{number & 65535:x}"))


def escapes_of_json(copy: Copy) -> None:
    text = "".join(f"\\u{ord(one):04x}" for one in hidden_name(copy))
    edit_json(copy, is_exact_json, with_versions(text))


def percent_in_base64(copy: Copy) -> None:
    inner = quote(f"user={a_client(copy.seen)}").replace(".", "%2E")
    edit_json(copy, is_exact_json, with_versions(base64.b64encode(inner.encode()).decode()))


def hexadecimal_text(copy: Copy) -> None:
    edit_json(copy, is_exact_json, with_versions(a_client(copy.seen).encode().hex()))


def an_address_from_its_end(copy: Copy) -> None:
    name = ".".join(reversed(client_of_four(copy).split("."))) + ".in-addr.arpa"
    edit_json(copy, is_exact_json, with_versions(name))


def a_member_twice(copy: Copy) -> None:
    edit_json(copy, is_exact_json, lambda line: line.replace("{", '{"name":"first.example",', 1))


# ---- tstat, parquet, observations, manifest, and other files ------------------------------------


def a_hexadecimal_address(copy: Copy) -> None:
    edit_tstat(copy, "c_TLSvers", f"0x{number_of(client_of_four(copy)):08X}")


def a_text_among_numbers(copy: Copy) -> None:
    edit_tstat(copy, "c_rst_cnt", "someone")


def a_column_of_parquet(copy: Copy) -> None:
    path = copy.folder / "flows" / "tcp.parquet"
    table = pq.read_table(path)
    pq.write_table(table.append_column("user", pa.array(range(len(table)))), path)


def a_number_of_parquet(copy: Copy) -> None:
    path = copy.folder / "flows" / "tcp.parquet"
    table = pq.read_table(path)
    at = table.schema.get_field_index("c_bytes_all")
    values = table.column(at).to_pylist()
    values[0] = number_of(client_of_four(copy))
    kind = table.schema.field(at).type
    pq.write_table(table.set_column(at, "c_bytes_all", pa.array(values, kind)), path)


def more_in_an_observation(copy: Copy) -> None:
    lines = copy.observations()
    lines[3]["user"] = "someone"
    copy.write_observations(lines)


def an_address_in_the_manifest(copy: Copy) -> None:
    copy.manifest(lambda manifest: manifest.update(note=f"seen at {a_client(copy.seen)}"))


def a_name_in_another_file(copy: Copy) -> None:
    (copy.folder / "notes").write_text(f"ask {hidden_name(copy)}\n")


def an_address_as_the_name_of_a_file(copy: Copy) -> None:
    (copy.folder / f"{a_client(copy.seen)}.txt").write_text("\n")


EDITS: dict[Callable[[Copy], None], str] = {
    capitals: "names",
    a_dot_at_the_end: "names",
    percent_in_the_sni: "hidden",
    a_decimal_address: "addresses",
    a_client_as_itself: "addresses",
    a_rare_server_as_a_pseudonym: "addresses",
    the_epoch_of_a_coarse_record: "coarse",
    a_column_more: "format",
    a_column_twice: "format",
    a_mapped_address: "addresses",
    escapes_of_json: "hidden",
    percent_in_base64: "addresses",
    hexadecimal_text: "addresses",
    an_address_from_its_end: "addresses",
    a_member_twice: "format",
    a_hexadecimal_address: "addresses",
    a_text_among_numbers: "format",
    a_column_of_parquet: "format",
    a_number_of_parquet: "addresses",
    more_in_an_observation: "format",
    an_address_in_the_manifest: "addresses",
    a_name_in_another_file: "hidden",
    an_address_as_the_name_of_a_file: "addresses",
}
# Checks that see an edit next to the right check, because the edited cell breaks several rules.
ALSO = {"names", "format", "pseudonyms", "coarse"}


@pytest.mark.family(8)
@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_an_edit_is_found(edit: Callable[[Copy], None], checked: Checked, tmp_path: Path) -> None:
    copy = Copy(checked, tmp_path / "out")
    edit(copy)
    found = {one.check for one in checked.check(copy.folder).violations}
    assert EDITS[edit] in found
    assert found <= {EDITS[edit], *ALSO}


def test_without_edits_nothing_is_found(checked: Checked) -> None:
    result = checked.check(checked.folder)
    assert (result.violations, result.unproven) == ([], [])
    assert result.claims > FRAMES // 12


def test_the_name_of_a_capture_is_reported(checked: Checked, tmp_path: Path) -> None:
    """The operator chose the name, so it does not break the promise."""
    copy = Copy(checked, tmp_path / "out")
    name = f"{a_client(checked.seen)}.pcap"
    copy.manifest(lambda manifest: manifest["sources"][0].update(name=name))
    result = checked.check(copy.folder)
    assert result.violations == []
    assert [one for one, reason in result.left_out if "names of captures" in reason]


@pytest.mark.family(1)
@pytest.mark.parametrize("edit", [an_address_as_the_name_of_a_file, a_name_in_another_file])
def test_the_command_names_a_file_without_data(
    edit: Callable[[Copy], None],
    checked: Checked,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    copy = Copy(checked, tmp_path / "out")
    edit(copy)
    capture = checked.folder.parent / "capture.pcap"
    assert run_main("audit", copy.folder, "--raw", capture, "--check", EDITS[edit]) == 3
    said = capsys.readouterr().out
    assert "1 files that no manifest lists" in " ".join(said.split())
    assert a_client(checked.seen) not in said
    assert hidden_name(copy) not in said


def test_the_columns_are_those_of_the_engine() -> None:
    known = columns_of("flows", ATTRIBUTES) - {"t_ns"}
    assert known == {column.name for column in columns()}
