# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net audit` on released logs: formats, exit codes, errors, and no data in any text."""

import ast
import builtins
import csv
import gzip
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import pytest
import zstandard
from support.audit_logs import HOUR, Row, random_log, sets_log, write_log, write_manifest
from support.cli import DEMO, Captured, run_main
from support.examples import EVERY_CASE
from support.paths import ROOT

import zanon_net
from zanon_net.audit import Report, audit
from zanon_net.audit.page_html import audit_page
from zanon_net.audit.thresholds import wilson
from zanon_net.config.audit_rows import METRICS
from zanon_net.errors import CapacityError, FormatError

FORMATS = ("parquet", "csv", "jsonl", "tstat", "observations")
BARE = {"z": 5, "window": "1h", "rotate": "1h", "purpose": "internal"}
PATTERNS = ("flows", "flows.csv", "flows.jsonl", "*.out", "observations.jsonl")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo in every format. No test changes it."""
    out = tmp_path_factory.mktemp("audit") / "logs"
    own: dict[str, Any] = {"z": 5, "internal": "10.0.0.0/8", "format": FORMATS}
    zanon_net.run(DEMO, **own, attributes="alpn", purpose="internal", out=out)
    return out


def figures(report: Report) -> dict[str, Any]:
    return {metric.name: (metric.figure, metric.sample) for metric in report.metrics}


def test_formats_give_equal_figures(logs: Path) -> None:
    some = {} if EVERY_CASE else {"check": ["k", "marketer", "reid", "unicity"]}
    found = {path: audit(next(logs.glob(path)), **BARE, **some) for path in PATTERNS}
    expected = figures(found["flows"])
    assert figures(found["flows.csv"]) == expected
    assert figures(found["flows.jsonl"]) == expected
    facts = found["flows"].facts
    assert facts["records"] == facts["coarse_records"] + sum(
        row["complete"] != "" for row in csv.DictReader((logs / "flows.csv").open())
    )
    for name in ("k", "marketer", "reid", "unicity"):
        assert figures(found["*.out"])[name][1] > 0, name
    # Observations have other times than flows, and no pseudonym without a name.
    shown = {
        (line["t_ns"] // HOUR, line["client"])
        for line in map(json.loads, (logs / "observations.jsonl").open())
    }
    assert audit(logs).facts["attributes"] == ["alpn"]
    assert found["observations.jsonl"].facts["pseudonyms"] == len(shown)
    assert found["observations.jsonl"].facts["names"] == facts["names"]


def test_the_manifest_has_the_settings(logs: Path) -> None:
    report = audit(logs)
    assert report.purpose == "internal"
    assert report.facts["z"] == 5
    assert report.facts["rotate_ns"] == HOUR
    assert report.facts["formats"] == ["parquet"]
    assert report.promise == "not checked"
    assert [metric.name for metric in report.metrics] == list(METRICS)
    assert figures(report)["k"] == figures(audit(logs / "flows", **BARE, check=["k"]))["k"]


@pytest.mark.parametrize("pack", ["gz", "zst", "parts"])
def test_packed_and_split_logs(tmp_path: Path, pack: str) -> None:
    rows = random_log(5, users=60)
    chosen: dict[str, Any] = {"purpose": "partner", "check": ["k", "reid"]}
    expected = figures(audit(write_log(tmp_path / "plain", rows), **chosen))
    folder = write_log(tmp_path / "packed", rows, parts=3 if pack == "parts" else 1)
    if pack != "parts":
        data = (folder / "flows.csv").read_bytes()
        packed = gzip.compress(data) if pack == "gz" else zstandard.compress(data)
        (folder / "flows.csv").unlink()
        (folder / f"flows.csv.{pack}").write_bytes(packed)
        listed = {"file": f"flows.csv.{pack}", "bytes": len(packed), "records": len(rows)}
        write_manifest(folder, [listed])
    assert figures(audit(folder, **chosen)) == expected


def test_rows_of_filter(tmp_path: Path) -> None:
    lines = [f"{i},user{i % 60},item{i % 7}" for i in range(300)]
    (tmp_path / "rows.csv").write_text("\n".join(["time,user,attribute", *lines]) + "\n")
    out = tmp_path / "shared"
    out.mkdir()
    options = {"time": "time", "user": "user", "attribute": "attribute", "time_unit": "s"}
    settings = {"z": 3, "window_ns": HOUR, "rotate_ns": HOUR, "preset": None, **options}
    (out / "manifest.json").write_text(
        json.dumps({"name": "zanon-net filter", "configuration": settings})
    )
    (out / "shared.csv").write_bytes((tmp_path / "rows.csv").read_bytes())
    report = audit(out, purpose="internal")
    assert (report.facts["pseudonyms"], report.facts["names"], report.facts["z"]) == (60, 7, 3)
    (tmp_path / "rows.csv").write_text("\n".join(["time,user,attribute", "2024-05-14,u,a"]) + "\n")
    alone = audit(tmp_path / "rows.csv", **BARE)
    assert alone.facts["records"] == 1


def test_json_has_every_figure(tmp_path: Path, logs: Path, capfd: Captured) -> None:
    path = tmp_path / "risk.json"
    assert run_main("audit", logs, "--for", "internal", "--json", path) == 0
    text = capfd.readouterr().out
    assert "Three risks" in text
    assert len(text.splitlines()) < 70
    found = json.loads(path.read_text())
    assert (found["schema"], found["for"], found["exit_code"]) == (1, "internal", 0)
    assert [metric["name"] for metric in found["metrics"]] == list(METRICS)
    for metric in found["metrics"]:
        figure, low, high = metric["figure"], metric["low"], metric["high"]
        assert low is None or low <= figure <= high, metric["name"]
    assert set(found["risks"]) == {"singling out", "linking", "inference"}
    assert run_main("audit", logs, "--json", path) == 2
    assert "exists" in capfd.readouterr().err


def test_exit_codes(tmp_path: Path, capfd: Captured) -> None:
    crowd = write_log(tmp_path / "crowd", sets_log(["a"] * 400))
    arguments = ("audit", crowd, "-q", "--check", "k", "--check", "marketer")
    assert run_main(*arguments, "--for", "public") == 0
    alone = write_log(tmp_path / "alone", sets_log([chr(97 + i) for i in range(26)] * 2 + ["{"]))
    assert run_main("audit", alone, "-q", "--check", "reid", "--for", "internal") == 0
    assert run_main("audit", alone, "-q", "--check", "reid", "--for", "partner") == 4
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("purpose", ["internal", "partner", "public"])
def test_few_pseudonyms_are_no_figure(tmp_path: Path, purpose: str) -> None:
    report = audit(write_log(tmp_path / "logs", sets_log(["a"] * 49)), purpose=purpose)
    metrics = {metric.name: metric for metric in report.metrics}
    assert metrics["k"].figure is None
    assert metrics["k"].verdict == ("reported" if purpose == "internal" else "unknown")
    assert "too few" in metrics["k"].note
    assert report.exit_code == (0 if purpose == "internal" else 4)


def test_link_is_never_low_for_the_public(tmp_path: Path) -> None:
    rows = random_log(6, users=60)
    for purpose, settings, verdicts in (
        ("partner", {}, {"low", "unknown", "above"}),
        ("public", {}, {"unknown", "above"}),
        ("partner", {"addresses": {"pseudonyms": "crypto-pan"}}, {"unknown", "above"}),
    ):
        folder = write_log(tmp_path / f"{purpose}{len(settings)}", rows, settings)
        (link,) = audit(folder, purpose=purpose, check=["link"]).metrics
        assert link.verdict in verdicts
        assert "lower bound" in link.note


def test_an_exact_log_of_tstat_discloses_ends(tmp_path: Path) -> None:
    own: dict[str, Any] = {"z": 5, "internal": "10.0.0.0/8", "exact": True}
    found = {}
    for form in ("tstat", "csv"):
        zanon_net.run(DEMO, **own, format=form, out=tmp_path / form)
        report = audit(tmp_path / form, check=["order"])
        found[form] = [(metric.figure, metric.verdict) for metric in report.metrics]
        assert report.facts["coarse_records"] == 0
    assert found["tstat"] == found["csv"] == [(0.0, "above")]


def test_without_thresholds_the_worst_figure_is_shown(logs: Path) -> None:
    report = audit(logs, purpose="internal")
    worst = report.of_risk("singling out")[0]
    figures = {metric.name: metric.figure for metric in report.metrics}
    assert worst.name == "reid"
    assert (figures["reid"] or 0) > (figures["k"] or 0)


def test_a_small_sample_is_the_reason_of_unknown(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "logs", sets_log(["a"] * 60))
    (operator,) = audit(folder, purpose="public", check=["operator"]).metrics
    assert operator.verdict == "unknown"
    assert "sample is too small" in operator.note
    assert "lonely" in operator.note


def test_advice_that_does_not_suffice_says_so(logs: Path) -> None:
    report = audit(logs, purpose="public")
    assert report.advice is not None
    threshold = {metric.name: metric.threshold for metric in report.metrics}[report.advice.metric]
    assert report.advice.measured is not None
    assert threshold is not None
    assert report.advice.measured > threshold
    assert "still above its threshold" in " ".join(report.text().split())
    assert "still above its threshold" in audit_page(report).decode()


def test_advice_is_measured(tmp_path: Path) -> None:
    popular = [Row(f"10.0.0.{i}", "a.example", 0) for i in range(60)]
    rare = [Row(f"10.0.0.{i}", f"{i // 3}.example", 0) for i in range(60)]
    report = audit(write_log(tmp_path / "logs", [*popular, *rare]), check=["k", "marketer"])
    assert report.advice is not None
    assert report.advice.setting == "--z 4"
    assert report.advice.before == pytest.approx(20 / 60)
    assert report.advice.measured == pytest.approx(1 / 60)
    assert (report.advice.low, report.advice.high) == pytest.approx(wilson(1, 60))
    assert report.advice.effect == pytest.approx(19 / 60)
    text = " ".join(report.text().split())
    words = "falls from 33.3% to 1.7% (0.3 to 8.9%), by 31.7 percentage points (18.9 to 44.4)"
    assert f"marketer {words}" in text
    assert f"marketer {words}" in audit_page(report).decode()
    found = report.to_dict()["advice"]
    assert found["effect_low"] < found["effect"] < found["effect_high"]


# ---- errors -------------------------------------------------------------------------------------


def _of_two_lengths(folder: Path) -> list[object]:
    rows = sets_log(["a"] * 60)
    other = {"addresses": {"rotate_ns": 2 * HOUR}}
    return [write_log(folder / "one", rows), write_log(folder / "two", rows, other)]


def _without_manifest(folder: Path) -> list[object]:
    return [write_log(folder / "logs", sets_log(["a"] * 60), manifest=False)]


def _cut(folder: Path) -> list[object]:
    path = write_log(folder / "logs", sets_log(["a"] * 60)) / "flows.csv"
    path.write_bytes(path.read_bytes()[:-9])
    return [folder / "logs"]


def _cut_in_another_format(folder: Path) -> list[object]:
    logs = write_log(folder / "logs", sets_log(["a"] * 60))
    (logs / "observations.jsonl").write_text('{"t_ns":1')
    others = [{"file": "observations.jsonl", "records": 1}]
    write_manifest(logs, [{"file": "flows.csv", "records": 120}, *others])
    return [logs]


def _cut_gzip(folder: Path) -> list[object]:
    logs = write_log(folder / "logs", sets_log(["a"] * 60))
    data = gzip.compress((logs / "flows.csv").read_bytes())
    (logs / "flows.csv.gz").write_bytes(data[:-30])
    write_manifest(logs, [{"file": "flows.csv.gz", "records": 120}])
    return [logs]


def _missing_record(folder: Path) -> list[object]:
    path = write_log(folder / "logs", sets_log(["a"] * 60)) / "flows.csv"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    return [folder / "logs"]


def _missing_file(folder: Path) -> list[object]:
    (write_log(folder / "logs", sets_log(["a"] * 60)) / "flows.csv").unlink()
    return [folder / "logs"]


def _bad_value(folder: Path) -> list[object]:
    path = write_log(folder / "logs", sets_log(["a"] * 60)) / "flows.csv"
    path.write_text(path.read_text().replace(",443,", ",canary.example,"))
    return [folder / "logs"]


def _missing_column(folder: Path) -> list[object]:
    path = write_log(folder / "logs", sets_log(["a"] * 60)) / "flows.csv"
    path.write_text(path.read_text().replace("name_status", "status", 1))
    return [folder / "logs"]


def _outside(folder: Path) -> list[object]:
    logs = write_log(folder / "logs", sets_log(["a"] * 60))
    write_manifest(logs, [{"file": "../canary.example", "records": 120}])
    return [logs, "--raw", DEMO]


def _link_outside(folder: Path) -> list[object]:
    path = write_log(folder / "logs", sets_log(["a"] * 60)) / "flows.csv"
    path.rename(folder / "flows.csv")
    path.symlink_to(folder / "flows.csv")
    return [folder / "logs", "--raw", DEMO]


def _not_over(folder: Path) -> list[object]:
    logs = write_log(folder / "logs", sets_log(["a"] * 60), manifest=False)
    (logs / "manifest.json.partial").write_text("{}")
    return [logs]


def _damaged_manifest(folder: Path) -> list[object]:
    logs = write_log(folder / "logs", sets_log(["a"] * 60))
    (logs / "manifest.json").write_text('{"canary.example": ')
    return [logs]


def _empty(folder: Path) -> list[object]:
    (folder / "logs").mkdir()
    return [folder / "logs", "--z", 2, "--window", "1h", "--rotate", "1h"]


def _absent(folder: Path) -> list[object]:
    return [folder / "logs"]


def _bad_categories(folder: Path) -> list[object]:
    (folder / "file").write_text("clinic.example, health\ncanary.example\n")
    return [write_log(folder / "logs", sets_log(["a"] * 60)), "--sensitive", folder / "file"]


def _nothing_left(folder: Path) -> list[object]:
    logs = write_log(folder / "logs", sets_log(["a"] * 60))
    return [logs, "--check", "k", "--skip", "k"]


def _twice(folder: Path) -> list[object]:
    logs = write_log(folder / "logs", sets_log(["a"] * 60))
    return [logs, folder / "." / "logs"]


def _list_without_raw(folder: Path) -> list[object]:
    return [write_log(folder / "logs", sets_log(["a"] * 60)), "--list", folder]


def _ephemeral(folder: Path) -> list[object]:
    (folder / "key").write_text("fcTbKtemP7ohy4s7o/NmfsBEEdT4bkNS/MZXlR7iSSk=\n")
    (folder / "key").chmod(0o600)
    return [write_log(folder / "logs", sets_log(["a"] * 60)), "--key-file", folder / "key"]


def _little_memory(folder: Path) -> list[object]:
    return [write_log(folder / "logs", sets_log(["a"] * 60)), "--memory", "1M"]


def _pipe(folder: Path) -> list[object]:
    os.mkfifo(folder / "logs")
    return [folder / "logs"]


def _pipe_as_log(folder: Path) -> list[object]:
    (folder / "logs").mkdir()
    os.mkfifo(folder / "logs" / "flows.csv")
    return [folder / "logs", "--z", 2, "--window", "1h", "--rotate", "1h"]


def _pipe_as_manifest(folder: Path) -> list[object]:
    logs = write_log(folder / "logs", sets_log(["a"] * 60), manifest=False)
    os.mkfifo(logs / "manifest.json")
    return [logs]


def _pipe_as_capture(folder: Path) -> list[object]:
    os.mkfifo(folder / "out.pcap")
    (folder / "out.pcap.manifest.json").write_text("{}")
    return [folder / "out.pcap", "--raw", DEMO]


def _pipe_as_table(folder: Path) -> list[object]:
    os.mkfifo(folder / "table.csv")
    return [folder / "table.csv", "--quasi", "age"]


def _capture_and_logs(folder: Path) -> list[object]:
    return [write_log(folder / "logs", sets_log(["a"] * 60)), folder / "out.pcap"]


def _sealed(folder: Path) -> list[object]:
    (folder / "logs").mkdir()
    (folder / "logs" / "0.zns").write_bytes(b"canary.example")
    return [folder / "logs"]


def _sealed_file(folder: Path) -> list[object]:
    return [_sealed(folder)[0] / "0.zns"]  # type: ignore[operator]


def _same_file(folder: Path) -> list[object]:
    logs = write_log(folder / "logs", sets_log(["a"] * 60))
    return [logs, "--raw", DEMO, "--details", folder / "risk.json"]


def _no_folder(folder: Path) -> list[object]:
    logs = write_log(folder / "logs", sets_log(["a"] * 60))
    return [logs, "--raw", DEMO, "--details", folder / "none" / "details"]


ERRORS: dict[Callable[[Path], list[object]], tuple[int, str]] = {
    _of_two_lengths: (2, "epochs of two lengths"),
    _without_manifest: (2, "--z: "),
    _cut: (1, "ends in the middle of a line"),
    _cut_in_another_format: (1, "ends in the middle of a line"),
    _cut_gzip: (1, "cut or damaged"),
    _missing_record: (1, "it has 119 records, its manifest states 120"),
    _missing_file: (1, "missing"),
    _bad_value: (1, "cannot be read"),
    _missing_column: (1, "no column name_status"),
    _outside: (1, "lists a file outside of its folder"),
    _link_outside: (1, "lists a file that is a link out of its folder"),
    _not_over: (1, "the run has not ended"),
    _damaged_manifest: (1, "is no manifest, or damaged"),
    _empty: (1, "there is no log in it"),
    _absent: (1, "no such file or folder"),
    _nothing_left: (2, "--check and --skip leave nothing to audit"),
    _twice: (2, "a folder is given twice"),
    _list_without_raw: (2, "--list: it needs raw"),
    _ephemeral: (2, "had an ephemeral key, so no key file exists; leave it out"),
    _little_memory: (2, "--memory: must be at least 192M"),
    _pipe: (1, "there is no such file or folder"),
    _pipe_as_log: (1, "there is no log in it"),
    _pipe_as_manifest: (1, "is no file, so it is no manifest"),
    _pipe_as_capture: (1, "there is no such file"),
    _pipe_as_table: (1, "it is no file"),
    _capture_and_logs: (2, "captures and other logs are audited one by one"),
    _sealed: (1, "its rows are sealed; open them with `zanon-net unseal"),
    _sealed_file: (1, "its rows are sealed; open them with `zanon-net unseal"),
    _same_file: (2, "name the same file twice"),
    _no_folder: (1, "make the folder it is to lie in first"),
    _bad_categories: (2, "line 2: must be a suffix, a comma and a category"),
}


@pytest.mark.parametrize("make", ERRORS, ids=lambda make: make.__name__.strip("_"))
def test_an_error_is_one_line_without_data(
    tmp_path: Path, capfd: Captured, make: Callable[[Path], list[object]]
) -> None:
    code, words = ERRORS[make]
    out = tmp_path / "risk.json"
    assert run_main("audit", *make(tmp_path), "--for", "partner", "--json", out) == code
    found = capfd.readouterr()
    assert found.out == ""
    assert len(found.err.splitlines()) == 1
    assert words in found.err
    said = found.err.replace(str(tmp_path), "")
    assert "canary" not in said
    assert "10.0." not in said
    assert not out.exists()


def test_a_folder_of_others_is_one_line(tmp_path: Path, capfd: Captured) -> None:
    folder = write_log(tmp_path / "logs", sets_log(["a"] * 60))
    places = ((folder, "Permission denied"), (folder / "manifest.json", "cannot be read"))
    run_main("audit", folder)  # loads modules that only root may be able to read
    capfd.readouterr()
    for place, words in (*places, (folder / "flows.csv", "Permission denied")):
        mode = place.stat().st_mode
        place.chmod(0)
        with unprivileged(tmp_path):
            assert run_main("audit", folder) == 1
        place.chmod(mode)
        said = capfd.readouterr()
        assert (said.out, said.err.count("\n")) == ("", 1)
        assert words in said.err


@contextmanager
def unprivileged(folder: Path) -> Iterator[None]:
    """Makes root, which may read everything, nobody inside. Others may enter the folder and those
    of pytest above it."""
    for path in (folder, *folder.parents):
        if path == Path(tempfile.gettempdir()):
            break
        path.chmod(path.stat().st_mode | 0o055)
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_half_a_page_is_not_left(tmp_path: Path, capfd: Captured) -> None:
    folder = write_log(tmp_path / "logs", sets_log(["a"] * 60))
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, former[1]))
    try:
        files = "--html", tmp_path / "page.html", "--json", tmp_path / "risk.json"
        assert run_main("audit", folder, *files) == 1
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, former)
    said = capfd.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert "File too large" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["logs"]


def test_a_signal_in_a_query_ends_the_audit() -> None:
    """DuckDB makes an error of its own of the signal."""
    from zanon_net.audit.database import Database

    database, timer = Database(256 << 20, 1), Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        database.value("SELECT count(*) FROM range(1000000000000) AS t(i) WHERE hash(i) % 9 = 1")
    timer.join()
    database.close()


def test_memory_has_a_bound(tmp_path: Path) -> None:
    folder = write_log(tmp_path / "logs", random_log(1, users=200))
    from zanon_net.audit.database import Database

    database = Database(64 << 20, 1)
    with pytest.raises(CapacityError, match="more than 64M of memory; give --memory"):
        database.run("CREATE TABLE big AS SELECT hash(i) AS x, md5(i::VARCHAR) AS y FROM"
                     " range(30000000) AS t(i)")  # fmt: skip
    database.close()
    assert audit(folder, purpose="internal", memory="200M", check=["k"]).exit_code == 0


def test_a_missing_extra_has_the_line_to_type(
    tmp_path: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_log(tmp_path / "logs", sets_log(["a"] * 60))
    real = builtins.__import__

    def without(name: str, *arguments: Any) -> Any:
        if name.partition(".")[0] == "duckdb":
            raise ImportError(name)
        return real(name, *arguments)

    for module in [name for name in sys.modules if name.startswith("zanon_net.audit")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setattr(builtins, "__import__", without)
    assert run_main("audit", folder) == 1
    assert "pip install 'zanon-net[audit]'" in capfd.readouterr().err


# ---- hygiene ------------------------------------------------------------------------------------


def test_no_output_has_data(tmp_path: Path, logs: Path, capfd: Captured) -> None:
    rows = list(csv.DictReader((logs / "flows.csv").open()))
    secrets = {row[column] for row in rows for column in ("client", "name") if row[column]}
    assert len(secrets) > 100
    path, page = tmp_path / "risk.json", tmp_path / "audit.html"
    (tmp_path / "sensitive").write_text("search.example, search\n")
    arguments = ("audit", logs, "--sensitive", tmp_path / "sensitive", "--json", path)
    assert run_main(*arguments, "--html", page, "--for", "partner") == 4
    said = capfd.readouterr()
    for text in (said.out, said.err, path.read_text(), page.read_text(), repr(audit(logs))):
        assert not {secret for secret in secrets if secret in text}


def test_texts_of_a_manifest_are_not_repeated(tmp_path: Path) -> None:
    """Another program may have written the manifest."""
    settings = {
        "addresses": {"pseudonyms": "10.1.2.3", "key_mode": "<b>canary</b>"},
        "output": {"for": "Canary Example"},
    }
    report = audit(write_log(tmp_path / "logs", sets_log(["a"] * 60), settings))
    texts = [report.text(), audit_page(report).decode(), json.dumps(report.to_dict())]
    assert not [text for text in texts if "anary" in text or "10.1.2.3" in text]


def test_an_internal_error_has_no_data(
    logs: Path, capfd: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    released = importlib.import_module("zanon_net.audit.released")

    def fail(subject: Any) -> list[Any]:
        subject.database.run("SELECT cast('canary.example' AS INTEGER)")
        return []

    monkeypatch.setattr(released, "MEASURES", {fail: ("k",)})
    assert run_main("audit", logs, "--check", "k") == 1
    assert "canary" not in capfd.readouterr().err


# ---- imports ------------------------------------------------------------------------------------


def imports_of(module: str) -> Iterator[str]:
    """Returns the modules of this package that a module's text imports, at any place."""
    path = ROOT / (module.replace(".", "/") + ".py")
    path = path if path.exists() else ROOT / module.replace(".", "/") / "__init__.py"
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("zanon_net"):
            yield str(node.module)
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if (ROOT / (name.replace(".", "/") + ".py")).exists() or alias.name == "_core":
                    yield name
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("zanon_net"))


@pytest.mark.source
def test_the_audit_shares_no_code_with_the_engine() -> None:
    """Whatever the audit imports, and whatever that imports, is no core, model or filter."""
    engine = ("zanon_net._core", "zanon_net.model", "zanon_net.rows")
    package = ROOT / "zanon_net" / "audit"
    waiting = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in package.rglob("*.py")
    ]
    assert len(waiting) > 10
    seen: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module in seen or module == "zanon_net":
            continue
        seen.add(module)
        assert not module.startswith(engine), seen
        waiting += imports_of(module)
    assert "zanon_net.output.log_files" in seen


def test_a_damaged_parquet_file_is_refused(tmp_path: Path, logs: Path) -> None:
    data = next((logs / "flows").glob("tcp*.parquet")).read_bytes()
    (tmp_path / "tcp.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(FormatError, match=r"tcp\.parquet: it cannot be read"):
        audit(tmp_path / "tcp.parquet", **BARE)
