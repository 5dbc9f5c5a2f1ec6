# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net audit` on logs that `filter --preset` wrote, next to an oracle of the same visits."""

import json
import shutil
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest
from support.cli import Captured, run_main
from support.dnstap import CLIENT_RESPONSE, NS, Message, stream
from support.filter import COMMAND, ENVIRONMENT
from support.logs import row_of, zeek_json, zeek_tsv

from zanon_net.audit import audit
from zanon_net.config.audit_rows import METRICS
from zanon_net.config.log_rules import PRESETS
from zanon_net.errors import FormatError

START = 1_700_000_000  # of a second; support.logs adds half a second to it
Z, WINDOW = 3, 600
SERVER = "198.51.100.7"
NAMES = [f"site{i}.example" for i in range(6)]
Visit = tuple[int, int, str]
"""Seconds after START, number of a client, name."""
VISITS: list[Visit] = [
    (20 * i, i * 7 % 60, NAMES[i * i % 6] if i % 9 else f"rare{i}.example") for i in range(360)
]


def released(z: int = Z) -> list[Visit]:
    """The visits of which z clients made an equal visit within the window."""
    return [
        (t, client, name)
        for i, (t, client, name) in enumerate(VISITS)
        if len({c for u, c, other in VISITS[: i + 1] if other == name and u >= t - WINDOW}) >= z
    ]


def client_of(number: int) -> str:
    return f"10.0.0.{number}"


def text_of(seconds: int, form: str) -> str:
    return datetime.fromtimestamp(START + seconds, UTC).strftime(form)


def zeek(preset: str, make: Callable[..., bytes] = zeek_tsv) -> bytes:
    """A log of Zeek. In the log of connections the server's address is the name."""
    servers = {name: f"203.0.113.{i}" for i, name in enumerate({visit[2] for visit in VISITS})}
    names = servers if preset == "zeek-conn" else {name: name for name in servers}
    rows = [row_of(preset, t, client_of(client), names[name]) for t, client, name in VISITS]
    return make(preset, rows)


def suricata() -> bytes:
    """Events of all kinds with a name, some of them with the server first."""
    lines = []
    for t, client, name in VISITS:
        ends = {"src_ip": client_of(client), "src_port": 50000, "dest_ip": SERVER, "dest_port": 443}
        if t % 40:
            ends = {"src_ip": SERVER, "src_port": 443, "dest_ip": client_of(client)}
            ends |= {"dest_port": 50000}
        part = {"tls": {"sni": name, "version": "TLS 1.3"}}
        if client % 2:
            part = {"http": {"hostname": name, "status": 200, "length": 1000}}
        timestamp = text_of(t + 7200, "%Y-%m-%dT%H:%M:%S.500000+0200")
        row = {"timestamp": timestamp, "event_type": next(iter(part)), "proto": "TCP"}
        lines.append(json.dumps(row | ends | part) + "\n")
    return "".join(lines).encode()


def nfstream() -> bytes:
    head = "id,src_ip,src_port,dst_ip,dst_port,protocol,bidirectional_first_seen_ms,"
    head += "src2dst_packets,src2dst_bytes,dst2src_packets,dst2src_bytes,requested_server_name\n"
    rows = [
        f"{i},{client_of(client)},5000,{SERVER},443,6,{START + t}500,3,300,4,4000,{name}\n"
        for i, (t, client, name) in enumerate(VISITS)
    ]
    return (head + "".join(rows)).encode()


def tstat() -> bytes:
    head = "#09#c_ip:1 c_port:2 c_pkts_all:3 c_bytes_all:4 s_ip:5 s_port:6 s_pkts_all:7"
    head += " s_bytes_all:8 first:9 last:10 c_iscrypto:11 s_iscrypto:12 c_tls_SNI:13\n"
    rows = [
        f"{client_of(client)} 5000 3 300 {SERVER} 443 4 4000 {(START + t) * 1000 + 500}.000000"
        f" {(START + t) * 1000 + 900}.000000 0 0 {name}\n"
        for t, client, name in VISITS
    ]
    return (head + "".join(rows)).encode()


def dnstap() -> bytes:
    return stream(
        Message(CLIENT_RESPONSE, (START + t) * NS + NS // 2, client_of(client), name).frame()
        for t, client, name in VISITS
    )


def bind(form: str) -> bytes:
    lines = [
        f"{text_of(t, form)} queries: info: client @0x7f {client_of(client)}#5353 ({name}): query:"
        f" {name} IN A +T ({SERVER})\n"
        for t, client, name in VISITS
    ]
    return "".join(lines).encode()


def unbound(form: str) -> bytes:
    lines = [
        f"{text_of(t, form)} unbound[9:1] reply: {client_of(client)} {name}. A IN NOERROR 0.1 1 9\n"
        for t, client, name in VISITS
    ]
    return "".join(lines).encode()


LOGS: dict[str, tuple[str, Callable[[], bytes]]] = {
    **{preset: (preset, partial(zeek, preset)) for preset in PRESETS if preset.startswith("zeek")},
    **{
        f"{preset}, JSON": (preset, partial(zeek, preset, zeek_json))
        for preset in PRESETS
        if preset.startswith("zeek")
    },
    "zeek-dns, commas": ("zeek-dns", partial(zeek, "zeek-dns", partial(zeek_tsv, separator=","))),
    "suricata-eve": ("suricata-eve", suricata),
    "nfstream": ("nfstream", nfstream),
    "tstat": ("tstat", tstat),
    "dnstap": ("dnstap", dnstap),
    "bind": ("bind", partial(bind, "%d-%b-%Y %H:%M:%S.500")),
    "bind, ISO": ("bind", partial(bind, "%Y-%m-%dT%H:%M:%S.500Z")),
    "unbound": ("unbound", partial(unbound, "[%s]")),
    "unbound, ISO": ("unbound", partial(unbound, "%Y-%m-%dT%H:%M:%S+00:00")),
    "unbound, ASCII": ("unbound", partial(unbound, "%b %d %H:%M:%S")),
}


def share(folder: Path, preset: str, content: bytes, *more: object) -> Path:
    """A folder with the log that the preset writes, and its manifest."""
    folder.mkdir()
    command = [*COMMAND, "--preset", preset, "--z", str(Z), "--window", f"{WINDOW}s", "--json"]
    command += ["--rotate", "1h", *map(str, more)]
    done = subprocess.run(command, input=content, capture_output=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    (folder / "shared.log").write_bytes(done.stdout)
    (folder / "manifest.json").write_bytes(done.stderr)
    return folder


@pytest.mark.family(10)
@pytest.mark.parametrize("log", LOGS)
def test_a_log_of_each_preset_is_read(tmp_path: Path, log: str) -> None:
    preset, make = LOGS[log]
    folder = share(tmp_path / "shared", preset, make(), "--suppressed", "blank")
    report = audit(folder, purpose="partner", check=["k"])
    found = released()
    facts = {
        "formats": [preset],
        "records": len(VISITS),
        "coarse_records": len(VISITS) - len(found),
        "records_with_a_name": len(found),
        "names": len({name for _t, _client, name in found}),
        "pseudonyms": len({((START + t) // 3600, client) for t, client, _name in found}),
        "z": Z,
        "pseudonym_kind": "networks",
    }
    assert {name: report.facts[name] for name in facts} == facts
    day = "1972-11-14" if "ASCII" in log else "2023-11-14"  # the filter's first year
    assert report.facts["time_range"]["first"] == f"{day}T22:13:00.000000000Z"


def test_every_metric_is_measured_or_unknown(tmp_path: Path) -> None:
    preset, make = LOGS["nfstream"]
    key = tmp_path / "zanon.key"  # pseudonyms decide which records are guessed, and whether enough
    key.write_text("Wlpa" * 10 + "Wlo=\n", encoding="ascii")
    key.chmod(0o600)
    more = ("--suppressed", "blank", "--key-file", key)
    report = audit(share(tmp_path / "shared", preset, make(), *more))
    metrics = {metric.name: metric for metric in report.metrics}
    assert list(metrics) == list(METRICS)
    without = {name for name, metric in metrics.items() if metric.figure is None}
    assert without == {"compose", "disclosure", "sensitive"}
    assert metrics["order"].figure == 15  # a minute's coarse rows follow its other rows
    assert metrics["bits"].note == "pseudonyms keep the network only"


def test_without_suppression_no_row_is_coarse(tmp_path: Path) -> None:
    row = row_of("zeek-dns", 1, client_of(1), "a.example")
    lines = [row, row | {"query": "-", "id.orig_h": client_of(2)}]
    folder = share(tmp_path / "shared", "zeek-dns", zeek_tsv("zeek-dns", lines), "--z", 1)
    facts = audit(folder, check=["k"]).facts
    assert (facts["records"], facts["records_with_a_name"], facts["coarse_records"]) == (2, 1, 0)


# ---- errors -------------------------------------------------------------------------------------


def _cut(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-9])


def _without_a_row(log: Path) -> None:
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-2]))


def _without_a_header(log: Path) -> None:
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[8:]))


def _other_fields(log: Path) -> None:
    log.write_bytes(log.read_bytes() + b"#fields\tts\tquery\n1700000000.5\tcanary.example\n")


def _other_tool(log: Path) -> None:
    log.write_bytes(b"src_ip,canary.example\n")


def _no_file(log: Path) -> None:
    log.unlink()


def _other_preset(log: Path) -> None:
    path = log.with_name("manifest.json")
    path.write_text(path.read_text().replace("zeek-dns", "canary.example"))


ERRORS: dict[Callable[[Path], None], str] = {
    _cut: "ends in the middle of a line",
    _without_a_row: "its manifest states",
    _without_a_header: "header of a log of Zeek",
    _other_fields: "cannot be read",
    _other_tool: "header of a log of Zeek",
    _no_file: "there is no log in it",
    _other_preset: "names no preset of this version",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return share(tmp_path_factory.mktemp("presets") / "shared", "zeek-dns", zeek("zeek-dns"))


@pytest.mark.parametrize("damage", ERRORS, ids=lambda damage: damage.__name__.strip("_"))
def test_an_error_is_one_line_without_data(
    shared: Path, tmp_path: Path, capfd: Captured, damage: Callable[[Path], None]
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(shared, folder)
    damage(folder / "shared.log")
    assert run_main("audit", folder) == 1
    said = capfd.readouterr().err
    assert ERRORS[damage] in said
    assert said.count("\n") == 1
    assert "canary" not in said


def test_a_key_file_cannot_be_checked(shared: Path, tmp_path: Path, capfd: Captured) -> None:
    assert run_main("key", "new", tmp_path / "key") == 0
    assert run_main("audit", shared, "--key-file", tmp_path / "key") == 2
    assert "leave it out" in capfd.readouterr().err


@pytest.mark.parametrize(
    "content", [b"", b"\0\0\0", b"\0\0\0\x05abc", b"\0\0\0\x02\x72\x05", b"\xff" * 40]
)
def test_a_damaged_tap_is_refused(tmp_path: Path, content: bytes) -> None:
    folder = share(tmp_path / "shared", "dnstap", dnstap())
    (folder / "shared.log").write_bytes((folder / "shared.log").read_bytes() + content)
    if not content:
        assert audit(folder, check=["k"]).facts["records"] == len(released())
        return
    with pytest.raises(FormatError, match="it is cut, or no log of dnstap"):
        audit(folder, check=["k"])
