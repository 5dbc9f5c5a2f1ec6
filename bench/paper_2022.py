# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The figures and claims of the paper of 2022."""

import numpy as np
from paper_claims import KS, PROBABILITY, SEEDS, WIDTH, Claim, Figure, spread, y_by_rank

from zanon_net.model import (
    entropy,
    exposure_probs,
    k_anonymity,
    k_anonymity_classes,
    publish_probs,
    publish_probs_classes,
    sample_iid,
    simulate,
    zipf_rates,
)
from zanon_net.model.charts import Line, Panel


def rates22(attributes: int = 20) -> np.ndarray:
    """Table 2 of 2022."""
    return zipf_rates(attributes, 0.2)


def p22(
    z: int, *, k: int = 2, users: int = 1000, window: float = 12, attributes: int = 20
) -> float:
    """p_k-anon for the defaults of 2022, or other values."""
    py = publish_probs(exposure_probs(rates22(attributes), window), users, z)
    return k_anonymity(py, users, k, width=WIDTH).estimate


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
            "at z = 250 a user already has a twin with probability 0.8",
            f"{at[250]:.3f}; 0.8 is reached at z = 208",
            abs(at[250] - 0.8) < 0.05,
        ),
        Claim(
            "2022 Fig. 3",
            "beyond z = 350 the probability is about 1",
            f"{at[350]:.3f} at 350",
            at[350] > 0.98,
        ),
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
    """Returns the number of attributes."""
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
    """Returns the number of users."""
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
            "simulations have a standard deviation of 0.04",
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


FIGURES = (f22_2, f22_3, f22_4, f22_5, f22_6, f22_7, f22_8, f22_c10)
