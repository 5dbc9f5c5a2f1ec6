# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The page of `zanon-net audit --html`: what it says, and how Chromium shows it.

ZANON_PICTURES names a folder that gets the pictures.
"""

import os
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from support.audit_logs import random_log, write_log
from support.chromium import browser, needs_chromium
from support.cli import DEMO, run_main

import zanon_net
from zanon_net.audit import Metric, Report, Violation, audit
from zanon_net.audit.page_html import audit_page
from zanon_net.audit.result import AT_LEAST, BY_LENGTH, RISKS, UNWANTED

FACTS = {
    **{"folders": 1, "files": 2, "formats": ["csv"], "records": 10, "records_with_a_name": 6},
    **{"coarse_records": 4, "unread_records": 1, "names": 3, "pseudonyms": 5, "epochs": 1},
    **{"attributes": ["alpn"]},
    **{"z": 5, "window_ns": 3600 * 10**9, "rotate_ns": 3600 * 10**9, "key_mode": "derived"},
    **{"made_for": "partner", "time_range": None, "weaker_than_preset": ["exact"]},
}


CUT = """[...document.querySelectorAll('.rows, figure')].filter(
  part => part.scrollWidth > part.clientWidth).map(part => part.textContent.slice(0, 80))"""
"""Tables and charts of which a reader sees a part only."""


def text_of(page: bytes) -> str:
    """The text of a page, without its style."""
    return unescape(re.sub(r"<style>.*?</style>|<[^>]+>", " ", page.decode(), flags=re.DOTALL))


def metric(name: str, risk: str, verdict: str, figure: float | None) -> Metric:
    return Metric(
        name=name,
        risk=risk,
        attacker="knows <b>nothing</b>",
        verdict=verdict,  # type: ignore[arg-type]
        figure=figure,
        baseline=0.125,
        threshold=0.25,
        low=0.5,
        high=0.75,
    )


def report_of(verdict: str, promise: str = "kept", purpose: str = "partner") -> Report:
    metrics = [metric(f"m{place}", risk, verdict, 0.625) for place, risk in enumerate(RISKS)]
    return Report(purpose=purpose, promise=promise, facts=FACTS, metrics=metrics)


def test_each_risk_has_its_figures() -> None:
    page = audit_page(report_of("above"))
    text = text_of(page)
    for risk in RISKS:
        assert risk.capitalize() in text
    for figure in ("62.5%", "50.0 to 75.0%", "12.5%", "25.0%", "above its threshold"):
        assert figure in text
    assert "Not passed: 3 figures are above their thresholds, and 0 are unknown" in text
    assert "key file" in text
    assert re.search(r"Weaker than the preset\s+exact", text)
    assert b"<b>nothing" not in page


@pytest.mark.parametrize(
    ("verdict", "promise", "purpose", "state"),
    [
        (
            "low",
            "kept",
            "partner",
            "Passed: no figure is above its threshold. The promise is kept.",
        ),
        ("low", "not checked", "partner", "The promise was not checked."),
        ("unknown", "kept", "public", "Not passed: 0 figures are above"),
        ("unknown", "kept", "internal", "Passed"),
        ("low", "broken", "internal", "Not passed: the release breaks its promise."),
    ],
)
def test_the_state_is_that_of_the_exit_code(
    verdict: str, promise: str, purpose: str, state: str
) -> None:
    report = report_of(verdict, promise, purpose)
    text = text_of(audit_page(report))
    assert state in text
    assert (report.exit_code == 0) == ("Not passed" not in text)


@pytest.mark.parametrize(
    ("promise", "facts", "words"),
    [
        ("kept", {}, "found the promise kept"),
        ("broken", {}, "The promise counts as broken"),
        ("not checked", {}, "This is the statement of the operator. State: not checked"),
        ("kept", {"z": 1}, "There is no promise about names"),
        ("kept", {"exact": True}, "state exact times and sizes (--exact)"),
        ("kept", {"key_mode": ["derived", "ephemeral"]}, "No key of a finished run is left"),
        ("kept", {"key_mode": ["derived", "ephemeral"]}, "Whoever has the file can undo"),
        ("kept", {"made_for": "internal"}, "Recipient that the run was made for"),
    ],
)
def test_the_page_states_no_more_than_the_audit_knows(
    promise: str, facts: dict[str, object], words: str
) -> None:
    report = report_of("low", promise)
    page = Report(purpose="partner", promise=promise, facts=FACTS | facts, metrics=report.metrics)
    text = text_of(audit_page(page))
    assert words in text
    assert ("Each name" in text) is False


def test_the_page_names_what_was_left_out() -> None:
    report = report_of("low")
    left_out = [
        ("k", UNWANTED),
        ("reasons", "names never to release: give the run's file (--never)"),
    ]
    text = text_of(audit_page(replace(report, left_out=left_out)))
    assert "1 of the figures and checks was left out" in text
    assert "Some parts of the promise were not checked" in text
    sums = Violation(check="sums", file="manifest.json", row=None, column="", measured=1, needed=2)
    broken = replace(report, promise="broken", violations=[sums])
    assert "None" not in text_of(audit_page(broken)) + broken.text()


def test_a_table_has_no_keys_and_says_that_linking_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("age,disease\n" + "30,flu\n40,cold\n" * 60)
    report = audit(tmp_path / "rows.csv", quasi=["age"], purpose="public")
    text = text_of(audit_page(report))
    assert "as long as the original table exists" in text
    assert "rows of one person can be joined" in text
    assert "keys" not in text


def test_details_are_on_all_outputs(tmp_path: Path) -> None:
    report = audit(write_log(tmp_path / "logs", random_log(2)), purpose="partner")
    metrics = {metric.name: metric for metric in report.metrics}
    lengths, model = metrics["link"].parts[BY_LENGTH], metrics["entropy"].parts["model"]
    assert AT_LEAST in lengths["1h"]
    texts = (report.text(400), text_of(audit_page(report)))
    for text in (" ".join(text.split()) for text in texts):
        half = lengths["30m"]
        assert f"unknown, at least {lengths['1h'][AT_LEAST]:.1%}" in text
        for words in (f"{half['share']:.1%}", f"{100 * half['low']:.1f} to {half['high']:.1%}"):
            assert words in text
        assert f"{model['sets']:.2f} nats" in text
        assert f"{model['least']:.2f} to {model['largest']:.2f} nats" in text
    found = {metric["name"]: metric["parts"] for metric in report.to_dict()["metrics"]}
    assert found["link"][BY_LENGTH]["30m"]["sample"] == half["sample"]
    assert found["entropy"]["model"]["one set without z"] is None


def test_a_tile_has_the_verdict() -> None:
    tiles = text_of(audit_page(report_of("unknown", purpose="public")))
    assert "m0: unknown; at most 25.0%" in tiles


def test_places_of_violations_are_shown() -> None:
    violation = Violation(
        check="names", file="flows.csv", row=17, column="name", measured=4, needed=5
    )
    report = report_of("low", "broken")
    page = audit_page(
        Report(
            purpose=report.purpose,
            promise="broken",
            facts=FACTS,
            metrics=report.metrics,
            violations=[violation] * 12,
        )
    )
    assert text_of(page).count("flows.csv") >= 10


def test_files_are_new_and_two(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "there").write_text("")
    for options in (("--html", "there"), ("--html", "new", "--json", "new")):
        paths = [tmp_path / text if text[0] != "-" else text for text in options]
        assert run_main("audit", tmp_path, *paths) == 2
        assert capfd.readouterr().err.count("\n") == 1
    assert not (tmp_path / "new").exists()


@needs_chromium
def test_chromium_shows_all_and_requests_nothing(tmp_path: Path) -> None:
    zanon_net.run(DEMO, z=5, internal="10.0.0.0/8", format="parquet", out=tmp_path / "logs")
    path = tmp_path / "audit.html"
    path.write_bytes(audit_page(audit(tmp_path / "logs", purpose="public")))
    assert path.stat().st_size < 1 << 20
    with browser(tmp_path / "chromium") as tab:
        for name, width, dark, media in (
            ("light", 1280, False, "screen"),
            ("dark", 1280, True, "screen"),
            ("narrow", 400, False, "screen"),
            ("print", 800, False, "print"),
        ):
            tab.show(path, width, dark=dark, media=media)
            picture = tab.picture()
            assert tab.requests == [path.as_uri()], name
            assert tab.said == [], name
            assert tab.value("document.documentElement.scrollWidth") <= width, name
            assert tab.value(CUT) == [], name
            back = tab.value(
                "getComputedStyle(document.querySelector('.zanon-report')).backgroundColor"
            )
            assert back == ("rgb(23, 27, 33)" if dark else "rgb(255, 255, 255)"), name
            if "ZANON_PICTURES" in os.environ:
                Path(os.environ["ZANON_PICTURES"], f"audit-{name}.png").write_bytes(picture)
