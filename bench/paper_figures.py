# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Draws the figures of both z-anonymity papers from the model, and checks what they claim.

Usage: python bench/paper_figures.py [--out docs]

Writes OUT/paper.md and OUT/paper/*.svg. 2020 is Jha et al., "z-anonymity: Zero-Delay Anonymization
for Data Streams"; 2022 is Jha et al., "Practical Anonymization for Data Streams". Takes minutes.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from zanon_net.model import (
    entropy,
    exposure_probs,
    k_anonymity,
    k_anonymity_classes,
    k_anonymity_pairwise,
    publish_probs,
    publish_probs_classes,
    sample_iid,
    simulate,
    zipf_rates,
)
from zanon_net.model.charts import Line, Panel, draw

WIDTH = 1e-5
KS = (2, 3, 4)
PROBABILITY = "p_k-anon (probability)"
SEEDS, BIAS_SEEDS = 3000, 1000


@dataclass(frozen=True)
class Claim:
    """What a paper says, what comes out, and whether that is the same."""

    where: str
    says: str
    found: str
    holds: bool


@dataclass(frozen=True)
class Figure:
    """One figure: its file, caption, panels, and the claims around it."""

    name: str
    caption: str
    panels: Sequence[Panel]
    claims: Sequence[Claim]


def spread(low: float, high: float, points: int) -> list[int]:
    """Whole numbers, evenly on a logarithmic scale."""
    return sorted({round(x) for x in np.geomspace(low, high, points).tolist()})


# ---- 2022 ---------------------------------------------------------------------------------------


def rates22(attributes: int = 20) -> np.ndarray:
    """Table 2 of 2022."""
    return zipf_rates(attributes, 0.2)


def p22(
    z: int, *, k: int = 2, users: int = 1000, window: float = 12, attributes: int = 20
) -> float:
    """p_k-anon at the defaults of 2022, or off them."""
    py = publish_probs(exposure_probs(rates22(attributes), window), users, z)
    return k_anonymity(py, users, k, width=WIDTH).estimate


def y_by_rank(px: np.ndarray, users: int, zs: Iterable[int]) -> list[Line]:
    """p^Y over rank, one line a z."""
    ranks = spread(1, len(px), 120)
    lines = []
    for z in zs:
        py = publish_probs(px, users, z)
        shown = [r for r in ranks if py[r - 1] >= 1e-8]
        lines.append(Line(f"z = {z}", shown, [float(py[r - 1]) for r in shown]))
    return lines


def f22_2() -> Figure:
    """p^Y over rank."""
    px = exposure_probs(rates22(1000), 12)
    at_13 = float(publish_probs(px, 1000, 100)[12])
    later = int(np.argmax(publish_probs(px, 1000, 100) < 1e-6)) + 1
    panel = Panel(
        "A = 1000, U = 1000, Δt = 12",
        "attribute rank",
        "p^Y (probability)",
        y_by_rank(px, 1000, (1, 20, 50, 100, 200)),
        x_log=True,
        y_log=True,
        y_range=(1e-8, 1),
    )
    claim = Claim(
        "2022 Fig. 2",
        "at z = 100 the attribute of rank 13 is released below 1e-6, exposed with 0.1",
        f"released with {at_13:.3f}, exposed with {px[12]:.3f}; below 1e-6 from rank {later} on",
        at_13 < 1e-6,
    )
    return Figure("2022-2", "p^Y of each attribute: z cuts the tail off.", [panel], [claim])


def f22_3() -> Figure:
    """p_k-anon over z, with simulation."""
    zs, few = list(range(1, 401, 7)), list(range(1, 401, 57))
    lines = [Line(f"k = {k}", zs, [p22(z, k=k) for z in zs]) for k in KS]
    for k in KS:
        shares = [simulate(rates22(), 1000, 12, z, k, seeds=20).mean() for z in few]
        lines.append(Line(f"k = {k}, simulated", few, [float(s) for s in shares], joined=False))
    at = {z: p22(z) for z in (90, 130, 250, 350)}
    claims = [
        Claim(
            "2022 Fig. 3",
            "p_k-anon rises from z = 100 on",
            f"{at[90]:.4f} at 90, {at[130]:.3f} at 130",
            at[90] < 0.18 < at[130],
        ),
        Claim(
            "2022 Fig. 3",
            "z = 250: a twin with probability 0.8 already",
            f"{at[250]:.3f}; 0.8 is reached at z = 208",
            abs(at[250] - 0.8) < 0.05,
        ),
        Claim("2022 Fig. 3", "z > 350: about 1", f"{at[350]:.3f} at 350", at[350] > 0.98),
    ]
    panel = Panel("U = 1000, A = 20, Δt = 12", "z (users)", PROBABILITY, lines, y_range=(0, 1.02))
    return Figure("2022-3", "p_k-anon by z; marks: 20 simulated streams each.", [panel], claims)


def f22_4() -> Figure:
    """p_k-anon over the window."""
    windows = np.geomspace(0.5, 400, 90)
    lines = [
        Line(f"k = {k}", windows, [p22(150, k=k, window=w) for w in windows.tolist()]) for k in KS
    ]
    y = np.array(lines[0].y)
    low = int(np.argmin(y))
    claim = Claim(
        "2022 Fig. 4",
        "the larger Δt, the lower p_k-anon",
        f"falls to {y[low]:.3f} at Δt = {windows[low]:.0f}, then rises: {y[-1]:.3f} at 400, where"
        " nearly everyone exposes everything",
        bool((np.diff(y) <= 1e-4).all()),
    )
    panel = Panel("z = 150", "Δt (units of 1/λ)", PROBABILITY, lines, x_log=True, y_range=(0, 1.02))
    return Figure("2022-4", "p_k-anon by window.", [panel], [claim])


def f22_5() -> Figure:
    """The number of attributes."""
    sizes, zs = spread(1, 1000, 40), (1, 50, 100, 150, 200)
    alike, kept = [], []
    for z in zs:
        alike.append(Line(f"z = {z}", sizes, [p22(z, attributes=a) for a in sizes]))
        information = [
            entropy(publish_probs(exposure_probs(rates22(a), 12), 1000, z)) for a in sizes
        ]
        kept.append(Line(f"z = {z}", sizes, information))
    a, b = alike[0].y[-1], alike[3].y[-1]
    growth = kept[3].y[-1] - kept[3].y[len(sizes) // 2]
    claims = [
        Claim(
            "2022 Fig. 5a",
            "p_k-anon starts at 1; without z it goes to 0 with A, with z it settles",
            f"z = 1: {alike[0].y[0]:.3f} at A = 1, {a:.4f} at 1000; z = 150: {b:.3f} at 1000",
            alike[0].y[0] > 0.999 and a < 0.01 < b,
        ),
        Claim(
            "2022 Fig. 5b",
            "with z the entropy converges as A grows",
            f"z = 150: {kept[3].y[-1]:.2f} nats at A = 1000, {growth:.0e} more than at"
            f" {sizes[len(sizes) // 2]}",
            growth < 0.01,
        ),
    ]
    x = "A (attributes)"
    panels = [
        Panel("5a: p_k-anon, k = 2", x, PROBABILITY, alike, x_log=True, y_range=(0, 1.02)),
        Panel("5b: information", x, "entropy (nats)", kept, x_log=True),
    ]
    return Figure("2022-5", "More attributes.", panels, claims)


def f22_6() -> Figure:
    """The number of users."""
    sizes = spread(50, 10**6, 60)
    fixed = [
        Line(f"z = {z}", sizes, [p22(z, users=u) for u in sizes]) for z in (1, 50, 100, 150, 200)
    ]
    shares = [
        Line(f"k = {k}", sizes, [p22(max(u // 25, 1), k=k, users=u) for u in sizes]) for k in KS
    ]
    y = np.array(fixed[3].y)
    low, grown = int(np.argmin(y)), np.array(shares[0].y)
    claims = [
        Claim(
            "2022 Fig. 6a",
            "with U growing p_k-anon falls first, then rises",
            f"z = 150: 1 to {y[low]:.3f} at U = {sizes[low]}, {y[-1]:.3f} at 10^6",
            y[0] > 0.99 > y[-1] > y[low],
        ),
        Claim(
            "2022 Fig. 6b",
            "with z = U/25 p_k-anon grows with U, towards 1 for very large U",
            f"{grown[0]:.3f} at {sizes[0]}, {p22(40):.3f} at 1000, {grown[-1]:.3f} at 10^6",
            grown[-1] > 0.9,
        ),
    ]
    x = "U (users)"
    panels = [
        Panel("6a: z fixed, k = 2", x, PROBABILITY, fixed, x_log=True, y_range=(0, 1.02)),
        Panel("6b: z = U/25", x, PROBABILITY, shares, x_log=True, y_range=(0, 1.02)),
    ]
    return Figure("2022-6", "More users.", panels, claims)


def two_classes(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """p_k-anon of two classes of 500 users at z = 50."""
    px = np.stack([exposure_probs(first, 12), exposure_probs(second, 12)], axis=1)
    py = publish_probs_classes(px, [500, 500], 50)
    one, other = k_anonymity_classes(py, [500, 500], 2)
    return one.estimate, other.estimate


def f22_7() -> Figure:
    """Classes of activity."""
    ratios = np.geomspace(0.01, 100, 33)
    found = [
        two_classes(rates22() * 2 / (1 + r), rates22() * 2 * r / (1 + r)) for r in ratios.tolist()
    ]
    first, second = ([one[i] for one in found] for i in range(2))
    overall = [(a + b) / 2 for a, b in found]
    middle = overall[len(overall) // 2]
    claims = [
        Claim(
            "2022 Fig. 7",
            "p_k-anon benefits from strongly unbalanced classes",
            f"overall {overall[0]:.3f} at ratio 0.01, {middle:.3f} at 1",
            overall[0] > middle,
        ),
        Claim(
            "2022 Fig. 7",
            "equal rates give the value of Fig. 3",
            f"{middle:.4f} against {p22(50):.4f} at z = 50",
            abs(middle - p22(50)) < 1e-3,
        ),
        Claim(
            "2022 Fig. 7",
            "the more active class loses",
            f"class 1 at ratio 0.01: {first[0]:.3f} against {middle:.3f}",
            first[0] < middle,
        ),
    ]
    lines = [
        Line("class 1", ratios, first),
        Line("class 2", ratios, second),
        Line("overall", ratios, overall),
    ]
    x = "λ_2 / λ_1"
    panel = Panel("z = 50, U = 500 + 500", x, PROBABILITY, lines, x_log=True, y_range=(0, 1.02))
    return Figure("2022-7", "Classes of activity.", [panel], claims)


def f22_8() -> Figure:
    """Classes of interest."""
    separations = np.linspace(0, 1, 31)
    odd = np.arange(1, 21) % 2 == 1
    found = []
    for s in separations.tolist():
        eta = (s + 1) / 2
        weights = np.where(odd, 1 - eta, eta), np.where(odd, eta, 1 - eta)
        found.append(two_classes(rates22() * weights[0], rates22() * weights[1]))
    first, second = (np.array([one[i] for one in found]) for i in range(2))
    worst = np.minimum(first, second)
    worse = separations[worst < first[0] - 1e-3]
    down = f"{worse.min():.2f} to {worse.max():.2f}" if worse.size else "nowhere"
    claim = Claim(
        "2022 Fig. 8",
        "both classes benefit from separation",
        f"{first[0]:.3f} without; fully separated {first[-1]:.3f} and {second[-1]:.3f}; but one"
        f" class loses at separations of {down} (down to {worst.min():.3f})",
        worse.size == 0,
    )
    lines = [
        Line("class 1", separations, first.tolist()),
        Line("class 2", separations, second.tolist()),
        Line("overall", separations, ((first + second) / 2).tolist()),
    ]
    x = "class separation 2η - 1"
    panel = Panel("z = 50, U = 500 + 500", x, PROBABILITY, lines, y_range=(0, 1.02))
    return Figure("2022-8", "Classes of interest.", [panel], [claim])


def f22_c10() -> Figure:
    """Simulation beside the model."""
    shares = simulate(rates22(), 1000, 12, 150, 2, seeds=SEEDS)
    py = publish_probs(exposure_probs(rates22(), 12), 1000, 150)
    alone = sample_iid(py, 1000, 2, seeds=SEEDS)
    model = p22(150)
    error = shares.std() / SEEDS**0.5
    bias = shares.mean() - model
    claims = [
        Claim(
            "2022 Fig. C.10",
            "simulations average within 0.005 of the model",
            f"+{bias:.4f} ± {error:.4f} over {SEEDS} seeds: users share the counters' one"
            f" trajectory; independent users give {alone.mean() - model:+.4f}",
            abs(bias) < 0.005,
        ),
        Claim(
            "2022 Fig. C.10",
            "with a standard deviation of 0.04",
            f"{shares.std():.3f}",
            abs(shares.std() - 0.04) < 0.01,
        ),
    ]
    seeds = list(range(200))
    lines = [
        Line("mean of the streams", seeds, [float(shares.mean())] * 200),
        Line("model", seeds, [model] * 200),
        Line("one stream", seeds, shares[:200].tolist(), joined=False),
    ]
    panel = Panel("z = 150, the first 200 seeds", "seed", PROBABILITY, lines)
    return Figure("2022-C10", "Simulated streams.", [panel], claims)


# ---- 2020 ---------------------------------------------------------------------------------------


def y20(z: int = 20, *, users: int = 50_000, attributes: int = 5000, periods: int = 24):
    """p^Y at Table II of 2020, or off it."""
    return publish_probs(exposure_probs(zipf_rates(attributes, 0.05), 1), users, z, periods)


def both(py: np.ndarray, users: int, k: int) -> tuple[float, float]:
    """What the formula of 2020 gives, and what is right."""
    return k_anonymity_pairwise(py, users, k), k_anonymity(py, users, k, width=WIDTH).estimate


def compared(
    x: Sequence[int], k: int, label: str, at: Callable[[int], tuple[np.ndarray, int]]
) -> list[Line]:
    """Two lines: the formula of 2020, and the model."""
    values = [both(*at(one), k) for one in x]
    return [
        Line(f"{label}, 2020", x, [value[0] for value in values]),
        Line(f"{label}, exact", x, [value[1] for value in values]),
    ]


def streams20(z: int, seeds: int = 10, **more: int) -> tuple[float, float]:
    """The share of 2-anonymous users in full streams at Table II, and its standard error."""
    periods = more.get("periods", 24)
    rates = zipf_rates(more.get("attributes", 5000), 0.05)
    users = more.get("users", 50_000)
    shares = simulate(rates, users, 1, z, 2, periods=periods, seeds=seeds)
    return float(shares.mean()), float(shares.std() / seeds**0.5)


def simulated(x: Sequence[int], label: str, at: Callable[[int], tuple[float, float]]) -> Line:
    """Marks of full streams."""
    return Line(f"{label}, streams", x, [at(one)[0] for one in x], joined=False)


def f20_2() -> Figure:
    """p^Y over rank."""
    px = exposure_probs(zipf_rates(5000, 0.05), 1)
    at_300 = float(publish_probs(px, 50_000, 20)[299])
    claims = [
        Claim(
            "2020 Fig. 2",
            "at z = 20 the attribute of rank 300 is released below 1e-6",
            f"released with {at_300:.1e}",
            at_300 < 1e-6,
        ),
        Claim("2020 Fig. 2", "and exposed with 1e-3", f"{px[299]:.1e}", px[299] > 5e-4),
    ]
    panel = Panel(
        "A = 5000, U = 50000, Δt = 1",
        "attribute rank",
        "p^Y (probability)",
        y_by_rank(px, 50_000, (1, 10, 20, 50, 100)),
        x_log=True,
        y_log=True,
        y_range=(1e-8, 1),
    )
    return Figure("2020-2", "p^Y of each attribute.", [panel], claims)


def f20_3() -> Figure:
    """The number of attributes."""
    sizes = spread(10, 5000, 30)
    by_k = [
        line
        for k in KS
        for line in compared(sizes, k, f"k = {k}", lambda a: (y20(attributes=a), 50_000))
    ]
    by_z = [
        line
        for z in (1, 20, 40)
        for line in compared(sizes, 2, f"z = {z}", lambda a, z=z: (y20(z, attributes=a), 50_000))
    ]
    by_k.append(
        simulated([30, 100, 300, 1000, 5000], "k = 2", lambda a: streams20(20, 2, attributes=a))
    )
    pairwise, exact = both(y20(), 50_000, 2)
    mean, error = streams20(20)
    claim = Claim(
        "2020 Fig. 3, Table II",
        "p_k-anon settles at about 0.9 for A > 100 (k = 2, z = 20)",
        f"the paper's formula gives {pairwise:.4f}, the exact model {exact:.4f}, full streams"
        f" {mean:.3f} ± {error:.3f}",
        exact > 0.8,
    )
    x = "A (attributes)"
    panels = [
        Panel("3a: z = 20", x, PROBABILITY, by_k, x_log=True, y_range=(0, 1.02)),
        Panel("3b: k = 2", x, PROBABILITY, by_z, x_log=True, y_range=(0, 1.02)),
    ]
    return Figure("2020-3", "More attributes, U = 50000, N = 24.", panels, [claim])


def f20_4() -> Figure:
    """z."""
    zs = spread(1, 400, 50)
    lines = [line for k in KS for line in compared(zs, k, f"k = {k}", lambda z: (y20(z), 50_000))]
    lines.append(
        simulated([1, 5, 10, 20, 35, 60, 100, 200, 400], "k = 2", lambda z: streams20(z, 2))
    )
    pairwise, exact = both(y20(20), 50_000, 2)
    late = [both(y20(35), 50_000, k) for k in KS]
    claims = [
        Claim(
            "2020 Fig. 4",
            "z = 20: a twin with probability 0.8",
            f"formula {pairwise:.3f}, exact {exact:.3f}",
            abs(exact - 0.8) < 0.1,
        ),
        Claim(
            "2020 Fig. 4",
            "about 1 for k = 2, 3, 4 beyond z = 35",
            "formula " + ", ".join(f"{one[0]:.3f}" for one in late)
            + "; exact " + ", ".join(f"{one[1]:.3f}" for one in late),
            min(one[1] for one in late) > 0.9,
        ),
    ]  # fmt: skip
    panel = Panel("U = 50000", "z (users)", PROBABILITY, lines, x_log=True, y_range=(0, 1.02))
    return Figure("2020-4", "p_k-anon by z.", [panel], claims)


def f20_5() -> Figure:
    """Users, with z in proportion."""
    sizes = spread(2500, 10**6, 40)

    def at(users: int) -> tuple[np.ndarray, int]:
        return y20(max(round(users / 2500), 1), users=users), users

    lines = [line for k in KS for line in compared(sizes, k, f"k = {k}", at)]
    few = [2500, 10_000, 22_000, 50_000, 100_000]
    lines.append(simulated(few, "k = 2", lambda u: streams20(max(round(u / 2500), 1), 2, users=u)))
    some, many = both(y20(9, users=22_000), 22_000, 2), both(*at(100_000), 2)
    claims = [
        Claim(
            "2020 Fig. 5",
            "U = 22000, z = 9: 0.5",
            f"formula {some[0]:.3f}, exact {some[1]:.3f}",
            abs(some[1] - 0.5) < 0.1,
        ),
        Claim(
            "2020 Fig. 5",
            "very close to 1 at U = 100000",
            f"formula {many[0]:.3f}, exact {many[1]:.3f}; exact {lines[1].y[-1]:.3f} at 10^6",
            many[1] > 0.95,
        ),
    ]
    panel = Panel("z = U/2500", "U (users)", PROBABILITY, lines, x_log=True, y_range=(0, 1.02))
    return Figure("2020-5", "More users, z in proportion.", [panel], claims)


def f20_6() -> Figure:
    """How long an attacker collects."""
    short, long = list(range(1, 61, 2)), spread(1, 400, 40)
    by_k = [
        line
        for k in KS
        for line in compared(short, k, f"k = {k}", lambda n: (y20(periods=n), 50_000))
    ]
    by_z = [
        line
        for z in (1, 60, 120)
        for line in compared(long, 2, f"z = {z}", lambda n, z=z: (y20(z, periods=n), 50_000))
    ]
    by_k.append(simulated([1, 5, 11, 22, 45], "k = 2", lambda n: streams20(20, 2, periods=n)))
    at = {n: both(y20(periods=n), 50_000, 2) for n in (5, 22, 45)}
    open_ = both(y20(1, periods=4), 50_000, 2)
    kept = both(y20(120, periods=70), 50_000, 2)
    high = np.array(by_z[5].y)
    claims = [
        Claim(
            "2020 Fig. 6a",
            "falls only after N = 22, to 0 at N = 45",
            "; ".join(f"N = {n}: formula {a:.3f}, exact {b:.3f}" for n, (a, b) in at.items()),
            at[22][1] > 0.9 and at[45][1] < 0.05,
        ),
        Claim(
            "2020 Fig. 6b",
            "z = 1: none beyond N = 3",
            f"N = 4: formula {open_[0]:.3f}, exact {open_[1]:.3f}",
            open_[1] < 0.5,
        ),
        Claim(
            "2020 Fig. 6b",
            "z = 120 holds up to N = 70",
            f"N = 70: formula {kept[0]:.3f}, exact {kept[1]:.3f}",
            kept[1] > 0.9,
        ),
        Claim(
            "2020 Fig. 6b",
            "for large z it grows again with N",
            f"z = 120, exact: {high.min():.3f} at N = {long[int(np.argmin(high))]},"
            f" {high[-1]:.3f} at 400",
            high[-1] > high.min() + 0.05,
        ),
    ]
    x = "N (windows)"
    panels = [
        Panel("6a: z = 20", x, PROBABILITY, by_k, y_range=(0, 1.02)),
        Panel("6b: k = 2", x, PROBABILITY, by_z, x_log=True, y_range=(0, 1.02)),
    ]
    return Figure("2020-6", "An attacker who collects, U = 50000.", panels, claims)


# ---- the page -----------------------------------------------------------------------------------


def biases() -> str:
    """Both biases as a table: what formulas give, and streams in which nothing is assumed."""
    text = "| setting | formula of 2020 | model | streams | model less streams |\n"
    text += "|---|---:|---:|---:|---:|\n"
    for z in (10, 20, 35, 60):
        formula, exact = both(y20(z), 50_000, 2)
        mean, error = streams20(z)
        text += (
            f"| 2020 Table II, z = {z} | {formula:.4f} | {exact:.4f} | {mean:.4f} ± {error:.4f} |"
        )
        text += f" {exact - mean:+.4f} |\n"
    for z in (100, 150, 200, 250, 300):
        py = publish_probs(exposure_probs(rates22(), 12), 1000, z)
        formula, exact = both(py, 1000, 2)
        shares = simulate(rates22(), 1000, 12, z, 2, seeds=BIAS_SEEDS)
        error = shares.std() / BIAS_SEEDS**0.5
        text += f"| 2022 Table 2, z = {z} | {formula:.4f} | {exact:.4f} | {shares.mean():.4f}"
        text += f" ± {error:.4f} | {exact - shares.mean():+.4f} |\n"
    return text


FIGURES = (f20_2, f20_3, f20_4, f20_5, f20_6, f22_2, f22_3, f22_4, f22_5, f22_6, f22_7, f22_8,
           f22_c10)  # fmt: skip
HEAD = """# The papers, reproduced

Written by `python bench/paper_figures.py`: every figure of the two papers that the model can give,
drawn by `zanon_net.model`, and what the papers claim beside what comes out. *2020* is Jha et al.,
"z-anonymity: Zero-Delay Anonymization for Data Streams"; *2022* is Jha et al., "Practical
Anonymization for Data Streams". Figures 7 and 8 of 2020 need its data, which is not public.

Two biases run through all of it:

- **The formula of 2020** is g(E[p_y]): the chance of a twin if every set were as common as two
  users match on average. What is asked for is E[g(p_y)]. Most matches are among the few commonest
  sets, and g is concave for k = 2, so the formula is always above. In the figures "2020" is that
  formula and "exact" the model; full streams agree with the model (Fig. 3).
- **Independence.** The model takes the decisions on different users as independent, but they hang
  on the same counters. Simulated streams lie a little above the model for that reason (2022
  Fig. C.10).

How large they are, beside streams that pass through the z-table itself (k = 2; mean and standard
error of 10 streams for 2020, of 1000 for 2022):

BIASES
## Claims

| where | the paper says | what comes out | |
|---|---|---|---|
"""


def page(figures: Sequence[Figure], measured: str) -> str:
    """docs/paper.md."""
    text = HEAD.replace("BIASES", measured)
    for figure in figures:
        for claim in figure.claims:
            verdict = "holds" if claim.holds else "**does not hold**"
            text += f"| {claim.where} | {claim.says} | {claim.found} | {verdict} |\n"
    text += "\n## Figures\n"
    for figure in figures:
        year, number = figure.name.split("-")
        text += f"\n### {year}, figure {number}\n\n{figure.caption}\n\n"
        text += f"![{year} figure {number}](paper/{figure.name}.svg)\n\n"
        for claim in figure.claims:
            verdict = "Holds" if claim.holds else "**Does not hold**"
            text += f"- The paper: {claim.says}. {verdict}: {claim.found}.\n"
    return text


def main() -> None:
    """Draws and writes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("docs"), help="where paper.md goes")
    out = parser.parse_args().out
    (out / "paper").mkdir(parents=True, exist_ok=True)
    figures = []
    for make in FIGURES:
        figure = make()
        figures.append(figure)
        draw(out / "paper" / f"{figure.name}.svg", figure.caption, figure.panels)
        for claim in figure.claims:
            print(
                "holds  " if claim.holds else "DIFFERS", claim.where, "|", claim.found, flush=True
            )
    (out / "paper.md").write_text(page(figures, biases()), encoding="utf-8")


if __name__ == "__main__":
    main()
