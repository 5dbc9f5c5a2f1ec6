# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The figures and claims of the paper of 2020."""

from collections.abc import Callable, Sequence

import numpy as np
from paper_claims import KS, PROBABILITY, WIDTH, Claim, Figure, spread, y_by_rank

from zanon_net.model import (
    exposure_probs,
    k_anonymity,
    k_anonymity_pairwise,
    publish_probs,
    simulate,
    zipf_rates,
)
from zanon_net.model.charts import Line, Panel


def y20(z: int = 20, *, users: int = 50_000, attributes: int = 5000, periods: int = 24):
    """p^Y for the values of Table II of 2020, or others."""
    return publish_probs(exposure_probs(zipf_rates(attributes, 0.05), 1), users, z, periods)


def both(py: np.ndarray, users: int, k: int) -> tuple[float, float]:
    """p_k-anon by the formula of 2020, and by the model."""
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
    """Returns the share of 2-anonymous users in full streams at Table II, and its standard
    error."""
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
        Claim(
            "2020 Fig. 2",
            "the attribute of rank 300 is exposed with 1e-3",
            f"{px[299]:.1e}",
            px[299] > 5e-4,
        ),
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
    """Returns the number of attributes."""
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
            "at z = 20 a user has a twin with probability 0.8",
            f"formula {pairwise:.3f}, exact {exact:.3f}",
            abs(exact - 0.8) < 0.1,
        ),
        Claim(
            "2020 Fig. 4",
            "beyond z = 35 the probability is about 1 for k = 2, 3, 4",
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
            "at U = 22000 and z = 9 the probability is 0.5",
            f"formula {some[0]:.3f}, exact {some[1]:.3f}",
            abs(some[1] - 0.5) < 0.1,
        ),
        Claim(
            "2020 Fig. 5",
            "at U = 100000 the probability is very close to 1",
            f"formula {many[0]:.3f}, exact {many[1]:.3f}; exact {lines[1].y[-1]:.3f} at 10^6",
            many[1] > 0.95,
        ),
    ]
    panel = Panel("z = U/2500", "U (users)", PROBABILITY, lines, x_log=True, y_range=(0, 1.02))
    return Figure("2020-5", "More users, z in proportion.", [panel], claims)


def f20_6() -> Figure:
    """Returns the number of windows an attacker collects."""
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
            "p_k-anon falls only after N = 22, to 0 at N = 45",
            "; ".join(f"N = {n}: formula {a:.3f}, exact {b:.3f}" for n, (a, b) in at.items()),
            at[22][1] > 0.9 and at[45][1] < 0.05,
        ),
        Claim(
            "2020 Fig. 6b",
            "at z = 1 no user has a twin beyond N = 3",
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


FIGURES = (f20_2, f20_3, f20_4, f20_5, f20_6)
