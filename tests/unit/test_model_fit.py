# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Fitting: the parameters of generated streams are found again from their popularity."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from support.examples import EVERY_CASE, examples
from support.filter import open_row_filter

from zanon_net._core import ClosedWindow
from zanon_net.errors import ConfigError, FormatError
from zanon_net.model import Fit, exposure_probs, fit, k_anonymity, publish_probs, zipf_rates
from zanon_net.output.popularity_file import PopularityFile
from zanon_net.popularity import (
    COUNT_MAX,
    FILE_MAX,
    WINDOWS_MAX,
    Popularity,
    PopularityWindow,
    rounding_unit,
    two_digits,
)

RUNS, STREAMS = (200, 200) if "ZANON_SOAK" in os.environ else (examples(25), examples(10))
COVERED = 0.95
WINDOWS = 4


def bins_of(counts: np.ndarray) -> tuple[int, ...]:
    """Names with 2^j to 2^(j+1) - 1 users, by j."""
    seen = [int(count).bit_length() - 1 for count in counts if count > 0]
    return tuple(seen.count(j) for j in range(max(seen, default=-1) + 1))


def window(rng: np.random.Generator, users: int, px: np.ndarray, *, whole: bool = True):
    """A window of independent users."""
    active = rng.binomial(users, 1 - np.prod(1 - px))
    return PopularityWindow(0, whole, int(active), bins_of(rng.binomial(users, px)))


def popularity(rng: np.random.Generator, users: int, px: np.ndarray, windows: int) -> Popularity:
    return Popularity.of(1, 1000, [window(rng, users, px) for _ in range(windows)])


def test_a_fit_recovers_the_truth_within_its_uncertainty() -> None:
    """Exponent, size, rates, number of windows, z and k are drawn anew for each run."""
    rng = np.random.default_rng(20)
    covered, widths, false_alarms = [], [], 0
    for _ in range(RUNS):
        users, names = int(rng.integers(300, 3000)), int(rng.choice([20, 100, 300]))
        rates = zipf_rates(names, float(rng.uniform(0.3, 2.5)), float(rng.uniform(0.8, 1.3)))
        px = exposure_probs(rates, 1)
        found = fit(popularity(rng, users, px, int(rng.integers(1, 13))))
        z, k = int(users * rng.uniform(0.02, 0.3)), int(rng.integers(2, 5))
        bounds = found.k_anonymity(z, k)
        truth = k_anonymity(publish_probs(px, users, z), users, k).estimate
        covered.append(bounds.lower <= truth <= bounds.upper)
        widths.append(bounds.width)
        false_alarms += found.stationary is False
    assert np.mean(covered) >= COVERED
    assert np.mean(widths) < 0.2, "so wide that it says nothing"
    assert false_alarms <= 0.05 * RUNS


def test_a_fit_of_a_stream_that_was_filtered(tmp_path: Path) -> None:
    """From exposures, each a row of its own, to the file, to the fit: nothing but times, users and
    names goes in."""
    rng, second = np.random.default_rng(21), 1_000_000_000
    covered = []
    for run in range(STREAMS):
        users, names = int(rng.integers(200, 800)), int(rng.choice([20, 100]))
        rates = zipf_rates(names, float(rng.uniform(0.3, 2)), float(rng.uniform(0.8, 1.3)))
        n = rng.poisson(rates * users * WINDOWS)
        what = np.repeat(np.arange(names), n)
        when = np.sort(rng.integers(0, WINDOWS * second, n.sum()))
        rng.shuffle(what)
        who = rng.integers(0, users, n.sum())
        z, k = int(users * rng.uniform(0.02, 0.3)) + 1, int(rng.integers(2, 5))
        path = tmp_path / f"{run}.json"
        counts = PopularityFile(path, z, second)
        row_filter = open_row_filter(window=second, time_unit="ns", z=z, popularity=path)
        rows = zip(when.tolist(), who.tolist(), what.tolist(), strict=True)
        row_filter.feed(b"time,user,attribute\n" + b"".join(b"%d,u%d,a%d\n" % row for row in rows))
        row_filter.end()
        row_filter.finish()
        for closed in row_filter.windows():
            counts.add(closed)
        counts.publish()
        px = exposure_probs(rates, 1)
        truth = k_anonymity(publish_probs(px, users, z), users, k).estimate
        bounds = fit(path).k_anonymity(z, k)
        covered.append(bounds.lower <= truth <= bounds.upper)
    assert np.mean(covered) >= COVERED


def fitted(users: int = 1000, windows: int = 8) -> tuple[Fit, np.ndarray]:
    px = exposure_probs(zipf_rates(100, 0.2), 12)
    return fit(popularity(np.random.default_rng(3), users, px, windows)), px


def test_parameters_come_back() -> None:
    found, px = fitted()
    assert found.users[0] <= 1000 <= found.users[1]
    assert found.attributes[0] <= 100 <= found.attributes[1]
    assert found.stationary is True
    assert not found.problems
    assert found.px[:10] == pytest.approx(px[:10], rel=0.2)
    assert (np.diff(found.px) <= 0).all()


def test_bounds_of_each_rank() -> None:
    found, px = fitted()
    low, high = found.px_bounds()
    assert (low <= found.px).all()
    assert (found.px <= high).all()
    inside = (low[:80] <= px[:80]) & (px[:80] <= high[:80])
    assert inside.mean() >= 0.95
    assert np.mean(high[:10] - low[:10]) < 0.3


def test_names_seen_once_leave_the_number_open() -> None:
    px = exposure_probs(zipf_rates(2000, 0.2), 1)
    found = fit(popularity(np.random.default_rng(4), 1000, px, 4))
    assert found.attributes.upper == np.inf
    assert found.attributes.lower <= 2000
    assert found.k_anonymity(1, 2).lower == 0


def test_another_window_scales_the_rates() -> None:
    found, _px = fitted()
    half = exposure_probs(zipf_rates(100, 0.2), 6)
    truth = k_anonymity(publish_probs(half, 1000, 100), 1000, 2).estimate
    bounds = found.k_anonymity(100, 2, window_ns=500)
    assert bounds.lower <= truth <= bounds.upper


def test_silent_users_are_users() -> None:
    """Of 2000 users, half expose nothing in a window: the histograms show the other half."""
    px = exposure_probs(zipf_rates(200, 0.12), 1)
    found = fit(popularity(np.random.default_rng(4), 2000, px, 12))
    assert found.users[0] * 0.95 <= 2000 <= found.users[1] * 1.05


def test_a_seed_is_a_fit() -> None:
    first, second = fitted()[0], fitted()[0]
    assert first.k_anonymity(150, 2) == second.k_anonymity(150, 2)


# ---- assumptions --------------------------------------------------------------------------------


def test_users_that_come_and_go_are_noticed() -> None:
    rng, px = np.random.default_rng(5), exposure_probs(zipf_rates(100, 0.2), 12)
    windows = [window(rng, users, px) for users in (1000, 1000, 1600, 1000, 1600)]
    found = fit(Popularity.of(1, 1000, windows))
    assert found.stationary is False
    assert any("number of users is not constant: 1000 to 1600" in one for one in found.problems)


def test_popularity_that_changes_is_noticed() -> None:
    rng = np.random.default_rng(6)
    windows = [
        window(rng, 1000, exposure_probs(zipf_rates(100, rate), 12))
        for rate in (0.2, 0.2, 0.1, 0.2)
    ]
    found = fit(Popularity.of(1, 1000, windows))
    assert found.stationary is False
    assert any("popularity is not constant" in one for one in found.problems)


def test_users_that_act_together_are_noticed() -> None:
    """Half of the windows, all users do everything twice as often: no independent users do."""
    rng = np.random.default_rng(7)
    windows = [
        window(rng, 1000, exposure_probs(zipf_rates(300, rng.choice([0.1, 0.2])), 12))
        for _ in range(10)
    ]
    assert fit(Popularity.of(1, 1000, windows)).stationary is False


def test_few_or_cut_windows_are_said() -> None:
    rng, px = np.random.default_rng(8), exposure_probs(zipf_rates(100, 0.2), 12)
    two = fit(popularity(rng, 1000, px, 2))
    assert two.stationary is None
    assert "2 windows are too few" in two.problems[0]
    cut = fit(Popularity.of(1, 1000, [window(rng, 1000, px, whole=False)] * 4))
    assert cut.stationary is None
    assert "from its start to its end" in cut.problems[-1]


def test_cut_windows_are_left_out() -> None:
    rng, px = np.random.default_rng(9), exposure_probs(zipf_rates(100, 0.2), 12)
    windows = [window(rng, 1000, px) for _ in range(3)]
    cut = window(rng, 20, px, whole=False)
    assert fit(Popularity.of(1, 1000, [cut, *windows, cut])).windows == 3


# ---- the file -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "rounded"), [(0, 0), (7, 7), (99, 99), (101, 100), (105, 110), (995, 1000), (1249, 1200)]
)
def test_two_digits(n: int, rounded: int) -> None:
    assert two_digits(n) == rounded
    assert abs(two_digits(n) - n) <= rounding_unit(n) / 2


def test_a_file_reads_back(tmp_path: Path) -> None:
    data = Popularity.of(5, 1000, [PopularityWindow(0, True, 1234, (3, 456))] * 2)
    (tmp_path / "p.json").write_bytes(data.to_bytes())
    assert Popularity.load(tmp_path / "p.json") == data
    assert data.windows[0].users == 1200
    assert data.windows[0].bins == (3, 460)
    assert "not for release" in json.loads(data.to_bytes())["notice"]


def test_what_a_long_run_writes_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beyond 64 MiB no model took it, as of windows of a second after three days."""
    widest = PopularityWindow(2**63 - 1, False, COUNT_MAX, (COUNT_MAX // 32 - 1,) * 32)
    line = len(Popularity(1, 1, (widest,) * 1000).to_bytes()) / 1000
    assert line * WINDOWS_MAX < FILE_MAX
    most = WINDOWS_MAX if EVERY_CASE else WINDOWS_MAX // 20
    monkeypatch.setattr("zanon_net.output.popularity_file.WINDOWS_MAX", most)
    closed = ClosedWindow(0, 1, True, 12, (2, 4))
    counts = PopularityFile(tmp_path / "p.json", 2, 1)
    for start_ns in range(most + 3):
        counts.add(closed._replace(start_ns=start_ns))
    counts.publish()
    found = Popularity.load(tmp_path / "p.json")
    assert (len(found.windows), found.windows[0].start_ns, found.omitted) == (most, 3, 3)


def test_a_file_tells_two_digits(tmp_path: Path) -> None:
    """Beside other files, exact numbers could tell one user."""
    counts = PopularityFile(tmp_path / "p.json", 2, 1)
    counts.add(ClosedWindow(0, 1, True, 1234, (4321, 99, 101)))
    counts.publish()
    (window,) = Popularity.load(tmp_path / "p.json").windows
    assert (window.users, window.bins) == (1200, (4300, 99, 100))


def test_a_file_without_an_end_is_refused() -> None:
    with pytest.raises(FormatError, match=r"^/dev/zero cannot be read: it has more than 128 MiB$"):
        Popularity.load("/dev/zero")


def test_windows_of_few_users_are_left_out() -> None:
    small, large = PopularityWindow(0, True, 4, (9,)), PopularityWindow(1, True, 5, (9,))
    data = Popularity.of(5, 1000, [small, large])
    assert data.windows == (large,)
    assert data.omitted == 1


@pytest.mark.parametrize("text", ["", "{}", "[1]", "null", '{"format": "x"}', "\xff", "[" * 10**5])
def test_what_is_no_such_file(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.json").write_text(text, encoding="latin-1")
    with pytest.raises(FormatError, match="is no popularity file"):
        fit(tmp_path / "p.json")


@pytest.mark.parametrize(
    "window",
    [
        {"users": 0},
        {"users": 2**62},
        {"users": True},
        {"users": 5.0},
        {"users": -1},
        {"users": 31},
        {"bins": [10**18]},
        {"bins": [1] * 60},
        {"bins": 7},
        {"start_ns": None},
    ],
    ids=str,
)
def test_windows_that_cannot_be(tmp_path: Path, window: dict[str, object]) -> None:
    good = Popularity.of(1, 1000, [PopularityWindow(0, True, 32, (3, 0, 2, 0, 0, 1))])
    data = json.loads(good.to_bytes())
    data["windows"][0] |= window
    path = tmp_path / "p.json"
    path.write_text(json.dumps(data))
    with pytest.raises(FormatError, match="is no popularity file"):
        fit(path)


@pytest.mark.parametrize(("users", "bins"), [(2**31, (5, 3, *[0] * 28, 1)), (10**6, (10**7,))])
def test_too_much_to_fit(users: int, bins: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match=r"^popularity: .* too many to fit"):
        fit(Popularity.of(1, 1000, [PopularityWindow(0, True, users, bins)]))


def test_nothing_to_fit() -> None:
    with pytest.raises(ConfigError, match="nothing to fit"):
        fit(Popularity.of(5, 1000, []))
    with pytest.raises(ConfigError, match="nothing to fit"):
        fit(Popularity.of(1, 1000, [PopularityWindow(0, True, 5, (0, 0))]))


@pytest.mark.parametrize("bins", [(1,), (0, 0, 1), (5, 0, 0, 2), (0, 0, 0, 0, 0, 0, 3), (10**4,)])
@pytest.mark.parametrize("users", [1, 100])
def test_odd_histograms_still_give_bounds(bins: tuple[int, ...], users: int) -> None:
    found = fit(Popularity.of(1, 1000, [PopularityWindow(0, True, users, bins)] * 3))
    bounds = found.k_anonymity(2, 2)
    assert 0 <= bounds.lower <= bounds.estimate <= bounds.upper <= 1
    assert np.isfinite(found.px).all()
