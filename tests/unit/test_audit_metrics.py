# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of `audit`: on paper, in plain Python, and under changes that must not matter."""

import math
import random
import statistics
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.audit_logs import (
    HOUR,
    Row,
    S,
    by_user,
    class_sizes,
    entropy_of,
    found_by_visits,
    linked_halves,
    lonely_share,
    random_log,
    renamed,
    sets_log,
    unique_by_all,
    write_log,
)

from zanon_net.audit import following, singling
from zanon_net.audit.coarse import coarse, coarse_sql, steps
from zanon_net.audit.inference import order_error
from zanon_net.audit.linking import joined_share, mean_bits
from zanon_net.audit.released import audit
from zanon_net.audit.result import BY_LENGTH, Metric, Report
from zanon_net.audit.thresholds import fall, wilson

ON_PAPER = ["a", "a", "ab", "ab", "c", ""]


def figures(report: Report) -> dict[str, Metric]:
    return {metric.name: metric for metric in report.metrics}


def audited(folder: Path, rows: list[Row], **settings: Any) -> dict[str, Metric]:
    return figures(audit(write_log(folder, rows), purpose="partner", **settings))


def test_classes_on_paper(tmp_path: Path) -> None:
    """{a}{a}{ab}{ab}{c}{} in each of nine epochs: k = 2, 2, 2, 2, 1, 1."""
    rows = [row for epoch in range(9) for row in sets_log(ON_PAPER, epoch)]
    found = audited(tmp_path / "logs", rows, check=["k", "prosecutor", "marketer", "entropy"])
    assert found["k"].figure == pytest.approx(2 / 6)
    assert found["k"].baseline == pytest.approx(1 / 6)
    assert found["k"].gain == pytest.approx((2 / 6 - 1 / 6) / (5 / 6))
    assert found["k"].sample == 54
    assert found["k"].parts["k<5"] == 1
    assert found["k"].parts["k<z"] == pytest.approx(2 / 6)
    assert found["k"].parts["median k"] == 2
    assert found["k"].parts["pseudonyms by power of 2 of k"] == {"0": 18, "1": 36}
    assert found["k"].verdict == "above"
    assert found["prosecutor"].figure == 1
    assert found["marketer"].figure == pytest.approx(4 / 6)
    assert found["entropy"].figure == pytest.approx(entropy_of([2, 2, 1, 1]))
    assert found["entropy"].parts["names"] == pytest.approx(entropy_of([4, 2, 1]))


def test_the_model_of_one_name_and_of_two(tmp_path: Path) -> None:
    """Half of 60 users show a and b. Independent names would give four sets of 15 users."""
    one = audited(tmp_path / "one", sets_log(["a"] * 30 + [""] * 30), check=["entropy"])["entropy"]
    model = one.parts["model"]
    for figure in (one.figure, model["sets"], model["least"], model["largest"], model["one set"]):
        assert figure == pytest.approx(math.log(2), abs=1e-6)
    pair = audited(tmp_path / "pair", sets_log(["ab"] * 30 + [""] * 30), check=["entropy"])
    model = pair["entropy"].parts["model"]
    assert pair["entropy"].figure == pytest.approx(math.log(2))
    assert pair["entropy"].parts["most"] == pytest.approx(math.log(60), abs=1e-6)
    assert model["one set"] == pytest.approx(2 * math.log(2), abs=1e-6)
    assert math.log(2) + 0.3 < model["sets"] < 2 * math.log(2)
    assert model["least"] < model["sets"] < model["largest"]


def test_the_model_of_the_audit_is_that_of_tune(tmp_path: Path) -> None:
    from zanon_net.model import entropy  # late: few tests need the model

    rows = [row for row in random_log(8, users=120) if row.epoch == 0]
    found = audited(tmp_path / "logs", rows, check=["entropy"])["entropy"].parts["model"]
    users = by_user(rows)
    shown = Counter(name for own in users.values() for name in {row.name for row in own})
    shares = [count / len(users) for count in shown.values()]
    assert found["one set"] == pytest.approx(entropy(shares), abs=1e-6)
    assert found["one set without z"] is None
    rng, drawn = random.Random(1), []
    for _ in range(200):
        sets = Counter(
            tuple(place)
            for place in zip(
                *(rng.sample([1] * n + [0] * (len(users) - n), len(users)) for n in shown.values()),
                strict=True,
            )
        )
        drawn.append((entropy_of(sets.values()), list(sets.values()).count(1) / len(users)))
    for kind, values in zip(("sets", "unique"), zip(*drawn, strict=True), strict=True):
        spread = statistics.stdev(values) * math.sqrt(1 / 20 + 1 / 200)
        assert found[kind] == pytest.approx(statistics.mean(values), abs=4 * spread), kind


def test_the_command_that_shows_the_entropy_without_z(tmp_path: Path) -> None:
    for window, words in (
        (HOUR // 4, "--window 15m --periods 4 "),
        (HOUR // 7, "a multiple of the window only"),
    ):
        settings = {"anonymity": {"window_ns": window}}
        folder = write_log(tmp_path / str(window), random_log(1), settings)
        (entropy,) = audit(folder, check=["entropy"]).metrics
        assert "the entropy without z is unknown" in entropy.note
        assert words in entropy.note


def visits_log(shorter: bool) -> list[Row]:
    """Visits of 60 users each five minutes to a name that pairs of users share. In the middle half
    of the hour, the second quarter and the third have other names if `shorter`."""
    rows = []
    for user in range(60):
        for minute in range(0, 60, 5):
            name = f"{user // 2}.example"
            if shorter and 15 <= minute < 45:
                name = f"all{minute < 30}.example"
            rows.append(Row(f"10.0.0.{user}", name, minute * 60 * S))
    return rows


def test_linking_by_the_length_of_epochs(tmp_path: Path) -> None:
    """A name that a pair shares finds half of the users again, in parts that show the name."""
    found = audited(tmp_path / "all", visits_log(False), check=["link"])["link"]
    lengths = found.parts[BY_LENGTH]
    assert list(lengths) == ["450s", "15m", "30m", "1h"]
    for length in ("450s", "15m", "30m"):
        own = lengths[length]
        assert (own["share"], own["sample"]) == (pytest.approx(0.5), 60), length
        assert (own["low"], own["high"]) == pytest.approx(wilson(30, 60), abs=1e-6)
        assert own["baseline"] == pytest.approx(1 / 60, abs=1e-6)
    assert lengths["1h"] == {"at least": pytest.approx(wilson(30, 60)[0], abs=1e-6)}
    assert found.figure == pytest.approx(0.5)
    middle = audited(tmp_path / "middle", visits_log(True), check=["link"])["link"]
    lengths = middle.parts[BY_LENGTH]
    assert lengths["30m"]["share"] == pytest.approx(0.5)
    assert lengths["15m"]["share"] == pytest.approx(1 / 60, abs=1e-6)


def test_lengths_that_the_log_does_not_have_are_left_out(tmp_path: Path) -> None:
    rows = [row for row in visits_log(False) if row.at < 18 * 60 * S]
    lengths = audited(tmp_path / "short", rows, check=["link"])["link"].parts[BY_LENGTH]
    assert [key for key, own in lengths.items() if "share" in own] == ["225s", "450s"]
    assert list(lengths)[-1] == "1h"


def test_operator_on_paper(tmp_path: Path) -> None:
    """Users 0 to 29 visit in pairs in a second, users 30 to 59 alone."""
    rows = [Row(f"10.0.0.{i}", "a.example", (i // 2 if i < 30 else i) * S) for i in range(60)]
    found = audited(tmp_path / "logs", rows, check=["operator"])["operator"]
    assert found.figure == 0.5
    assert found.parts == {"1 largest": 0.5, "5 largest": 0.5}
    questions = [replace(row, dns=True) for row in rows]  # the operator sees none of them
    again = audited(tmp_path / "dns", [*rows, *questions], check=["operator"])["operator"]
    assert again.figure == 0.5
    assert (found.low, found.high) == pytest.approx(wilson(30, 60))


def test_reid_on_paper(tmp_path: Path) -> None:
    """Sixty users in groups of three, ten minutes apart: a visit finds one of three."""
    rows = [Row(f"10.0.0.{i}", "a.example", i // 3 * 150 * S) for i in range(60)]
    found = audited(tmp_path / "logs", rows, check=["reid"])["reid"]
    assert found.figure == pytest.approx(1 / 3)
    assert found.parts["1 visits, 1 s"] == pytest.approx({"@1": 1 / 3, "@5": 1.0})
    wide = 1 / (3 * 9)  # within ten minutes, four groups on either side
    assert found.parts["1 visits, 600 s"]["@1"] == pytest.approx(
        (12 * wide + sum(2 / (3 * n) for n in (5, 6, 7, 8))) / 20
    )


def test_order_on_paper(tmp_path: Path) -> None:
    """A coarse record between records that end 8 s apart ends 2 s from the middle (median)."""
    named = [Row(f"10.0.0.{i}", "a.example", i * S, end=i * 8 * S) for i in range(60)]
    hidden = Row(None, None, 0, end=0, hidden=True, coarse=True)
    place = replace(hidden, at=60 * S, end=60 * S)
    mixed = [*named[:9], place, *named[9:]]
    assert audited(tmp_path / "mixed", mixed, check=["order"])["order"].figure == 2.0
    after = [*named[:15], place, *named[15:]]  # after all records of its minute
    found = audited(tmp_path / "sorted", after, check=["order"])["order"]
    assert (found.figure, found.verdict) == (15.0, "low")
    minutes = [replace(row, at=0, end=(row.end or 0) // (60 * S) * 60 * S) for row in mixed]
    found = audited(tmp_path / "minutes", minutes, check=["order"])["order"]
    assert found.figure == 15.0  # all times are minutes, and so disclose no more
    exact = [*named, replace(hidden, coarse=False)]
    assert audited(tmp_path / "exact", exact, check=["order"])["order"].verdict == "above"


def test_unread_flows_count_as_suppressed(tmp_path: Path) -> None:
    named = [Row(f"10.0.0.{i}", "a.example", i * S, end=i * 8 * S) for i in range(60)]
    unread = Row(None, None, 60 * S, end=60 * S, hidden=True, unread=True, coarse=True)
    report = audit(write_log(tmp_path / "logs", [*named[:9], unread, *named[9:]]), check=["order"])
    assert report.facts["unread_records"] == 1
    assert figures(report)["order"].figure == 2.0


def test_compose_on_paper(tmp_path: Path) -> None:
    """Of two suppressed records, the other output names one."""
    users = [Row(f"10.0.0.{i}", "a.example", i * S) for i in range(60)]
    named = [Row("10.0.0.1", f"{n}.example", 90 * S, sizes=(5, 9, n * 1000, 70)) for n in (1, 7, 7)]
    hidden = [
        Row(None, None, 60 * S, sizes=(16, 16, 4**power, 256), hidden=True, coarse=True)
        for power in (5, 7)
    ]
    write_log(tmp_path / "strict", [*users, *hidden])
    write_log(tmp_path / "loose", [*users, *named], {"anonymity": {"z": 1}})
    outputs = [tmp_path / "strict", tmp_path / "loose"]
    report = audit(outputs, purpose="internal", check=["compose"])
    found = figures(report)["compose"]
    assert (found.figure, found.sample, found.verdict) == (0.5, 2, "above")
    assert report.exit_code == 4
    assert "different z; 1 is used" in report.notes[0]


def test_sensitive_on_paper(tmp_path: Path) -> None:
    """Of 30 users with a sensitive name, 10 are unique."""
    pairs = [f"{i}" for i in range(10) for _ in range(2)]
    sets = [*pairs, *(f"{i}" for i in range(10, 20)), *["z"] * 30]
    rows = []
    for user, own in enumerate(sets):
        rows.append(Row(f"10.0.0.{user}", f"{own}.example", user * S))
        if own != "z":
            rows.append(Row(f"10.0.0.{user}", "www.clinic.example", user * S))
    (tmp_path / "sensitive").write_text("# suffix, category\nclinic.example, health\n")
    found = audited(
        tmp_path / "logs",
        rows,
        sensitive=tmp_path / "sensitive",
        check=["sensitive", "disclosure"],
    )
    assert found["sensitive"].figure == pytest.approx(10 / 30)
    assert found["sensitive"].sample == 30
    assert found["sensitive"].verdict == "above"
    assert found["disclosure"].baseline == pytest.approx(0.5)
    assert found["disclosure"].figure == 1.0  # the names of a target tell its category


@pytest.mark.parametrize("seed", [1, 2])
def test_figures_equal_plain_python(tmp_path: Path, seed: int) -> None:
    rows = random_log(seed)
    found = audited(tmp_path / "logs", rows)
    users = by_user(rows)
    sizes = class_sizes(rows)
    assert found["k"].figure == pytest.approx(sizes.count(1) / len(sizes))
    assert found["marketer"].figure == pytest.approx(sum(1 / k for k in sizes) / len(sizes))
    risks = found["prosecutor"].parts["share above 1/11"]
    assert risks == pytest.approx(sum(k < 11 for k in sizes) / len(sizes))
    for kind, length in (("name", None), ("name and hour", HOUR), ("name and minute", 60 * S)):
        share = found["unicity"].parts[kind]["5"]
        assert share == pytest.approx(unique_by_all(rows, length)), kind
    for seconds in (1, 60, 600):
        first, fifth = found_by_visits(rows, seconds)
        part = found["reid"].parts[f"5 visits, {seconds} s"]
        assert part == pytest.approx({"@1": first, "@5": fifth}), seconds
    popular = Counter(name for own in users.values() for name in {row.name for row in own})
    largest = [name for name, _users in popular.most_common(5)]
    if popular.most_common(5)[4][1] > popular.most_common(6)[5][1]:  # else any of two is fifth
        share = found["operator"].parts["5 largest"]
        assert share == pytest.approx(lonely_share(rows, [str(name) for name in largest]))
    halves = [linked_halves(rows, epoch) for epoch in (0, 1)]
    trials = sum(half[1] for half in halves)
    assert found["link"].sample == trials
    assert found["link"].figure == pytest.approx(sum(half[0] for half in halves) / trials, abs=2e-3)
    chance = sum(half[1] / half[2] for half in halves) / trials
    assert found["link"].baseline == pytest.approx(chance)


CHANGED = {
    "renamed": renamed,
    "permuted": lambda rows: random.Random(7).sample(rows, len(rows)),
}


@pytest.mark.parametrize("change", CHANGED)
def test_names_and_order_do_not_matter(tmp_path: Path, change: str) -> None:
    rows = random_log(3)
    before = audited(tmp_path / "before", rows)
    after = audited(tmp_path / "after", CHANGED[change](rows))
    for name, metric in before.items():
        if change == "permuted" or name not in ("unicity", "reid", "suppressed"):
            assert after[name].figure == pytest.approx(metric.figure), name
        else:  # other points are drawn
            low, high = wilson((metric.figure or 0) * metric.sample, metric.sample)
            assert low <= (after[name].figure or 0) <= high, name


def test_splitting_files_does_not_matter(tmp_path: Path) -> None:
    rows = sorted(random_log(4), key=lambda row: row.start_ns)
    before = audited(tmp_path / "before", rows)
    after = figures(audit(write_log(tmp_path / "after", rows, parts=5), purpose="partner"))
    assert after == before


def test_batches_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_log(tmp_path / "logs", random_log(5))
    chosen: dict[str, Any] = {"purpose": "partner", "check": ["unicity", "reid", "link"]}
    before = figures(audit(folder, **chosen))
    monkeypatch.setattr(singling, "BATCH", 500)
    monkeypatch.setattr(following, "BLOCK", 700)
    assert figures(audit(folder, **chosen)) == before


def test_work_is_bounded_by_fewer_targets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_log(tmp_path / "logs", random_log(5))
    chosen: dict[str, Any] = {"purpose": "partner", "check": ["unicity", "reid", "link"]}
    whole = figures(audit(folder, **chosen))
    monkeypatch.setattr(singling, "MATCHES", 600)
    monkeypatch.setattr(following, "PRODUCTS", 1000)
    part = figures(audit(folder, **chosen))
    for name, metric in part.items():
        assert 0 < metric.sample < whole[name].sample, name
        low, high = metric.low, metric.high
        assert low is not None
        assert high is not None
        assert low <= (whole[name].figure or 0) <= high, name


def test_steps_are_those_of_the_documents() -> None:
    assert steps("4")[:4].tolist() == [1, 4, 16, 64]
    assert steps("16")[:3].tolist() == [1, 16, 256]
    assert steps("sqrt2")[:8].tolist() == [1, 2, 3, 4, 6, 8, 12, 16]
    assert coarse(np.array([0, 1, 5, 100]), "4").tolist() == [0, 1, 16, 256]


@pytest.mark.parametrize("base", ["sqrt2", "4", "16"])
def test_coarse_in_sql_equals_numpy(base: str) -> None:
    import duckdb

    below = [value for value in steps(base).tolist() if value < 1 << 48]
    near = {value + more for value in below for more in (-1, 0, 1)}
    values = np.array(sorted(near | {0}), dtype=np.int64)
    database = duckdb.connect()
    rows = database.execute(
        f"SELECT {coarse_sql('x', base)} FROM (SELECT unnest(?) AS x)", [values.tolist()]
    ).fetchall()
    assert [value for (value,) in rows] == coarse(values, base).tolist()


def test_wilson_equals_scipy() -> None:
    from scipy import stats  # takes a second, which collection would spend in each process

    for hits, trials in ((0, 10), (3, 10), (10, 10), (77, 1000)):
        expected = stats.binomtest(hits, trials).proportion_ci(method="wilson")
        assert wilson(hits, trials) == pytest.approx((expected.low, expected.high))


def test_the_fall_of_a_share_is_newcombes() -> None:
    """Examples a, b, c and f of Newcombe, Statistics in Medicine 17 (1998), table II, method 10."""
    for (hits, trials), (others, of), low, high in (
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
    ):
        shares = (
            (hits / trials, *wilson(hits, trials)),
            (others / of, *wilson(others, of)),
        )
        found = fall(*shares)
        assert found == pytest.approx((hits / trials - others / of, low, high), abs=1e-4)


def test_bits_that_known_hosts_disclose() -> None:
    known = np.array([0x0A000000, 0x0A00FF00], dtype=np.int64)
    others = np.array([0x0A000001, 0x0A000080, 0x0B000000], dtype=np.int64)
    assert mean_bits(known, others) == pytest.approx((32 + 25 + 8) / 3)


def test_windows_that_are_joined() -> None:
    assert joined_share(0.3, 1.0, 2) == pytest.approx(1 - 0.7**2)
    assert joined_share(0.3, 0.0, 24) == pytest.approx(0.3)
    assert joined_share(0.5, 0.5, 3) == pytest.approx(1 - 0.5 * 0.75 * 0.875)


def test_order_does_not_reach_into_another_file() -> None:
    file = np.array([0, 0, 1, 1])
    is_coarse = np.array([False, True, False, False])
    end_us = np.array([10, 60, 30, 61]) * 1_000_000
    assert order_error(file, is_coarse, end_us, np.array([1])) == (15.0, 1, 1)


def pairs_log(client: bool, names: int = 12, users: int = 240) -> list[Row]:
    """Visits in pairs of names, all of the same sizes: only the name next to a record, and nothing
    in the record, tells the name. client: coarse records have pseudonyms."""
    rows = []
    for user in range(users):
        who, own, at = f"10.0.0.{user}", user % names, (user % 50) * 60 * S
        rows.append(Row(who, f"page{own}.example", at))
        rows.append(Row(who, f"image{own}.example", at + S))
        end = at // (60 * S) * 60 * S
        sizes = (1, 1, 256, 1024)
        named = who if client else None
        rows.append(Row(named, None, end, end=end, sizes=sizes, hidden=True, coarse=True))
    return rows


@pytest.mark.parametrize("client", [True, False])
def test_the_names_next_to_a_record_disclose_its_name(tmp_path: Path, client: bool) -> None:
    found = audited(tmp_path / "logs", pairs_log(client), check=["suppressed"])["suppressed"]
    assert found.baseline is not None
    assert found.figure is not None
    assert (found.figure == 1.0) == client
    assert found.verdict == ("above" if client else "low")
    assert ("with context" in found.note) == client
    assert found.parts["guesses"]["name"] < 0.2


def test_the_category_of_a_suppressed_name_is_guessed(tmp_path: Path) -> None:
    """The sizes tell the category of a name, and not the name."""
    rows = []
    for user in range(300):
        own = user % 12
        sizes = (1, 1, 4 ** (4 + own % 2), 1000)
        rows.append(Row(f"10.0.0.{user}", f"n{own}.kind{own % 2}.example", user * S, sizes=sizes))
    rows.append(Row(None, None, 0, end=0, sizes=sizes, hidden=True, coarse=True))
    (tmp_path / "kinds").write_text("kind0.example, health\nkind1.example, faith\n")
    settings = {"sensitive": tmp_path / "kinds", "check": ["suppressed"]}
    found = audited(tmp_path / "logs", rows, **settings)["suppressed"]
    assert found.figure == found.parts["guesses"]["category"] == 1.0
    assert found.parts["guesses"]["name"] < 0.5
    assert found.baseline == pytest.approx(0.5, abs=0.1)
    assert "guessed: the category" in found.note
    assert found.verdict == "above"


def test_advice_takes_pseudonyms_out_of_coarse_records(tmp_path: Path) -> None:
    report = audit(write_log(tmp_path / "logs", pairs_log(True)), check=["suppressed"])
    assert report.advice is not None
    assert report.advice.setting == "--coarse-client none"
    assert report.advice.before == 1.0
    assert (report.advice.measured or 1.0) < 0.2


def test_the_finest_steps_of_all_outputs_count(tmp_path: Path) -> None:
    rows = random_log(3, users=200)
    hidden = Row(None, None, 0, end=0, hidden=True, coarse=True)
    found = []
    for order in (("16", "sqrt2"), ("sqrt2", "16")):
        folders = [
            write_log(
                tmp_path / f"{order[0]}{base}", [*rows, hidden], {"output": {"coarse_steps": base}}
            )
            for base in order
        ]
        (metric,) = audit(folders, purpose="partner", check=["suppressed"]).metrics
        found.append(metric.figure)
    assert found[0] == found[1]
