# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The commands `model` and `tune`: what they print, draw, advise and refuse."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from zanon_net.cli import main, model_command
from zanon_net.model import exposure_probs, zipf_rates
from zanon_net.popularity import Popularity, PopularityWindow

Captured = pytest.CaptureFixture[str]
DEFAULTS = ("--users", "1000", "--attributes", "20", "--rate", "0.2", "--window", "12h")
FEWER = ("--users", "100", "--attributes", "10", "--rate", "0.2", "--window", "12h")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")


def run_json(capsys: Captured, *arguments: str) -> dict[str, Any]:
    assert main([*arguments, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.fixture
def popularity_file(tmp_path: Path) -> str:
    """Eight windows, each called 1 h, of what the paper has in 12."""
    rng, px = np.random.default_rng(1), exposure_probs(zipf_rates(20, 0.2), 12)
    windows = []
    for _ in range(8):
        seen = [int(n).bit_length() - 1 for n in rng.binomial(1000, px)]
        bins = tuple(seen.count(j) for j in range(10))
        windows.append(PopularityWindow(0, True, 1000, bins))
    path = tmp_path / "popularity.json"
    path.write_bytes(Popularity.of(20, 3_600_000_000_000, windows).to_bytes())
    return str(path)


@pytest.mark.parametrize("command", [["model", "--z", "150"], ["tune", "--target", "0.9"]])
def test_a_log_may_show_less_is_said(command: list[str], capsys: Captured) -> None:
    words = "may show less: at a z for which 0.951 was computed, 0.904"
    assert main([command[0], *DEFAULTS, *command[1:]]) == 0
    assert words in " ".join(capsys.readouterr().out.split())
    assert words in run_json(capsys, command[0], *DEFAULTS, *command[1:])["caveat"]


def test_model_has_the_numbers_of_the_paper(capsys: Captured) -> None:
    found = run_json(capsys, "model", *DEFAULTS, "--z", "150", "--z", "250")
    assert [row["z"] for row in found["rows"]] == [150, 250]
    assert found["rows"][0]["k_anonymity"]["estimate"] == pytest.approx(0.424691623, abs=1e-6)
    assert found["rows"][0]["entropy_after_nats"] == pytest.approx(8.045191291572616)
    assert found["rows"][1]["k_anonymity"]["lower"] > 0.93
    before = found["rows"][0]["entropy_before_nats"]
    lost = found["rows"][0]["information_loss_nats"]
    assert lost == pytest.approx(before - 8.045191291572616)


def test_released_is_a_share_of_what_is_exposed(capsys: Captured) -> None:
    rows = run_json(capsys, "model", *DEFAULTS, "--z", "1", "--z", "1001")["rows"]
    assert rows[0]["released_share"] == 1
    assert rows[0]["information_loss_nats"] == 0
    assert rows[1]["released_share"] == 0
    assert rows[1]["k_anonymity"] == {"lower": 1, "upper": 1, "estimate": 1}


def test_tune_finds_first_and_stable(capsys: Captured) -> None:
    found = run_json(capsys, "tune", *DEFAULTS, "--window", "24h", "--target", "0.9")
    assert [one["first"]["z"] for one in found["windows"]] == [236, 392]
    found = run_json(capsys, "tune", *DEFAULTS, "--target", "0.999")["windows"][0]
    assert (found["first"]["z"], found["stable"]["z"]) == (425, 496)
    assert "take z = 496" in found["advice"]
    assert "z = 425 would do too" in found["advice"]


def test_periods_need_a_larger_z(capsys: Captured) -> None:
    stream = ("--users", "50000", "--attributes", "500", "--rate", "0.05", "--target", "0.9")
    once = run_json(capsys, "tune", *stream)["windows"][0]["stable"]["z"]
    often = run_json(capsys, "tune", *stream, "--periods", "24")["windows"][0]["stable"]["z"]
    assert often > once


def test_advice_when_nothing_can_be_released(capsys: Captured) -> None:
    found = run_json(
        capsys, "tune", "--users", "5", "--attributes", "3", "--rate", "1", "--target", "0.9999",
        "--k", "5",
    )  # fmt: skip
    assert found["windows"][0]["first"]["z"] == 6
    assert "only releasing nothing" in found["windows"][0]["advice"]


@pytest.mark.parametrize("command", ["model", "tune"])
def test_tables(command: str, capsys: Captured) -> None:
    assert main([command, *DEFAULTS]) == 0
    out = capsys.readouterr().out
    assert "1000 users, 20 names, k = 2" in out
    assert "k-anonymous" in out
    assert "nats lost" in out
    assert "±" in out


def test_levels_are_lines_of_the_plot(
    popularity_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_command, "PLOT_POINTS", 3)  # each takes 0.1 s
    assert main(["model", "--popularity", popularity_file, "--z", "5", "--plot", "a.svg"]) == 0
    data = json.loads(Path(popularity_file).read_text())
    for window in data["windows"]:
        window |= {"exposures": 9, "levels": [[1, 1, 0, 0, 1], [64, 0.5, 0.2, 0.1, 0.6]]}
    Path(popularity_file).write_text(json.dumps(data))
    assert main(["model", "--popularity", popularity_file, "--z", "5", "--plot", "b.svg"]) == 0
    found = [
        "names, domains or categories" in Path(name).read_text() for name in ("a.svg", "b.svg")
    ]
    assert found == [False, True]


def test_fitted(popularity_file: str, capsys: Captured) -> None:
    """The file's window of 1 h holds what the paper's holds in 12."""
    rows = run_json(capsys, "model", "--popularity", popularity_file, "--z", "150")["rows"]
    between = rows[0]["k_anonymity_fitted"]
    assert between["lower"] <= 0.424691623 <= between["upper"]
    assert between["upper"] - between["lower"] < 0.6
    assert main(["tune", "--popularity", popularity_file, "--target", "0.9"]) == 0
    out = capsys.readouterr().out
    assert "fitted to 8 windows" in out
    assert "fitted, 95 %" in out


def test_what_does_not_hold_is_said(popularity_file: str, capsys: Captured) -> None:
    data = json.loads(Path(popularity_file).read_text())
    data["windows"][0]["users"] = 2000
    Path(popularity_file).write_text(json.dumps(data))
    assert main(["model", "--popularity", popularity_file]) == 0
    assert "but the number of users is not constant" in capsys.readouterr().out


@pytest.mark.family(3)
@pytest.mark.parametrize("suffix", ["png", "svg", "html"])
@pytest.mark.parametrize("command", ["model", "tune"])
def test_plots(command: str, suffix: str, popularity_file: str) -> None:
    path = Path(f"plot.{suffix}")
    source = ("--popularity", popularity_file) if suffix == "svg" else FEWER
    assert main([command, *source, "--plot", str(path)]) == 0
    data = path.read_bytes()
    if suffix == "png":
        assert data.startswith(b"\x89PNG")
    else:
        text = data.decode()
        assert text.startswith("<!doctype html>" if suffix == "html" else "<?xml")
        for label in ("exposures released", "information kept", "z (users)"):
            assert label in text
    assert not list(Path().glob("*.partial"))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("model", "--users", "0"), "--users: must be from 1"),
        (("model", "--z", "0"), "--z: must be from 1"),
        (("model", "--rate", "nan"), "--rate: must be above 0"),
        (("model", "--window", "12"), "--window: "),
        (("model", "--window", "1h", "--window", "2h"), "--window: give one"),
        (("model", "--plot", "a.pdf"), "--plot: a.pdf must end in .png, .svg, .html"),
        (("tune", "--target", "1"), "--target: must be below 1"),
        (("tune", "--k", "1001"), "--k: 1001 users cannot be alike among 1000"),
        (("tune", "--periods", "0"), "--periods: must be from 1"),
        (("tune", "--popularity", "p.json", "--rate", "1"), "--rate: is fitted"),
    ],
)
def test_what_is_refused(arguments: tuple[str, ...], said: str, capsys: Captured) -> None:
    assert main(list(arguments)) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not list(Path().iterdir())


def test_files_that_cannot_be_used(tmp_path: Path, capsys: Captured) -> None:
    assert main(["tune", "--popularity", "missing.json"]) == 1
    assert "missing.json: No such file" in capsys.readouterr().err
    (tmp_path / "x.json").write_text("{}")
    assert main(["tune", "--popularity", "x.json"]) == 1
    assert "is no popularity file" in capsys.readouterr().err
    assert main(["model", "--plot", "no/such/folder.png"]) == 1
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("missing", "arguments", "said"),
    [
        ("scipy", ["model"], "pip install 'zanon-net[model]'"),
        ("matplotlib", ["model", "--plot", "a.png"], "pip install 'zanon-net[plot]'"),
    ],
)
def test_without_an_extra_there_is_one_line(missing: str, arguments: list[str], said: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from zanon_net.cli import main; "
    done = subprocess.run(
        [sys.executable, "-c", code + f"sys.exit(main({arguments!r}))"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_other_commands_do_not_load_scipy() -> None:
    code = "import sys, zanon_net.cli.entry; sys.exit('scipy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
