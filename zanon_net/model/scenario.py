# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""A curator's questions: for a z and a window, the anonymity, the share released, the loss."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from zanon_net.config.parse import format_duration
from zanon_net.model import checks
from zanon_net.model.bounds import Bounds
from zanon_net.model.exposure import exposure_probs, over_periods, publish_probs, zipf_rates
from zanon_net.model.fitting import Estimate, Fit
from zanon_net.model.information import entropy
from zanon_net.model.single import k_anonymity
from zanon_net.model.special import Floats
from zanon_net.model.thresholds import Mode, smallest_z
from zanon_net.popularity import LevelShares

NS_PER_HOUR = 3_600_000_000_000


@dataclass(frozen=True, slots=True)
class Row:
    """Results for a z and a window.

    bounds: p_k-anon. fitted: p_k-anon with the uncertainty of a fit.
    released: the share of (user, attribute) pairs of a window that are released.
    before, after: information of one user's set over all periods, in nats, without and with z.
    levels: shares of exposures by level, for the window of a popularity file with such counts.
    """

    z: int
    window_ns: int
    bounds: Bounds
    fitted: Bounds | None
    released: float
    before: float
    after: float
    levels: LevelShares | None = None

    @property
    def kept(self) -> float:
        """The share of the information that is left; 1 if there was no information."""
        return self.after / self.before if self.before > 0 else 1.0

    def to_dict(self) -> dict[str, Any]:
        """Returns the results for JSON."""
        levels = {} if self.levels is None else {"levels": _levels(self.levels)}
        return {
            "z": self.z,
            "window": format_duration(self.window_ns),
            "window_ns": self.window_ns,
            "k_anonymity": self.bounds._asdict(),
            "k_anonymity_fitted": None if self.fitted is None else self.fitted._asdict(),
            "released_share": self.released,
            "entropy_before_nats": self.before,
            "entropy_after_nats": self.after,
            "information_loss_nats": self.before - self.after,
            **levels,
        }


def _levels(shares: LevelShares) -> dict[str, float]:
    """Returns shares by level for JSON."""
    return {
        "name_share": shares.name,
        "domain_share": shares.domain,
        "category_share": shares.category,
        "nothing_share": shares.nothing,
        "information_kept_share": shares.kept,
    }


@dataclass(frozen=True, slots=True)
class Scenario:
    """Users, rates (exposures an hour, shape (A,)), given or fitted; k; an attacker's periods."""

    users: int
    rates: Floats
    k: int
    periods: int
    fit: Fit | None = None

    @classmethod
    def checked(cls, users: int, rates: Floats, k: int, periods: int) -> "Scenario":
        """Makes a scenario of users with `rates` exposures an hour. Raises ConfigError."""
        return cls(
            checks.count("users", users),
            checks.rates(rates),
            checks.count("k", k),
            checks.count("periods", periods),
        )

    @classmethod
    def zipf(cls, users: int, rates: tuple[int, float, float], k: int, periods: int) -> "Scenario":
        """Makes a scenario of Zipf rates: (attributes, exposures an hour of the first, exponent).

        Raises ConfigError.
        """
        return cls.checked(users, zipf_rates(*rates), k, periods)

    @classmethod
    def fitted(cls, fit: Fit, k: int, periods: int) -> "Scenario":
        """Makes a scenario with the parameters of a fit. Raises ConfigError."""
        rates = fit.exposures * (NS_PER_HOUR / fit.window_ns)
        scenario = cls.checked(int(fit.users.estimate), rates, k, periods)
        return cls(scenario.users, scenario.rates, scenario.k, scenario.periods, fit)

    def px(self, window_ns: int) -> Floats:
        """Returns p^X for a window of this length."""
        return exposure_probs(self.rates, window_ns / NS_PER_HOUR)

    def row(self, window_ns: int, z: int, *, with_fit: bool = True) -> Row:
        """Computes the row of a z. with_fit: if true, also the fit's uncertainty. Raises
        ConfigError."""
        px = self.px(window_ns)
        once = publish_probs(px, self.users, z)
        after = over_periods(once, self.periods)
        fitted = None
        if with_fit and self.fit is not None:
            fitted = self.fit.k_anonymity(z, self.k, periods=self.periods, window_ns=window_ns)
        exposed = float(np.sum(px))
        levels = None
        if self.fit is not None and self.fit.levels is not None and window_ns == self.fit.window_ns:
            levels = self.fit.levels.at(z)
        return Row(
            z=z,
            window_ns=window_ns,
            bounds=k_anonymity(after, self.users, self.k),
            fitted=fitted,
            released=float(np.sum(once)) / exposed if exposed > 0 else 1.0,
            before=entropy(over_periods(px, self.periods)),
            after=entropy(after),
            levels=levels,
        )

    def smallest_z(self, window_ns: int, target: float, mode: Mode) -> int:
        """Returns the smallest z for the target. Raises ConfigError."""
        return smallest_z(
            self.px(window_ns), self.users, self.k, target=target, mode=mode, periods=self.periods
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns the scenario for JSON."""
        about: dict[str, Any] = {
            "users": self.users,
            "attributes": len(self.rates),
            "k": self.k,
            "periods": self.periods,
        }
        if self.fit is not None:
            about["fit"] = {
                "users": _estimate(self.fit.users),
                "attributes": _estimate(self.fit.attributes),
                "windows": self.fit.windows,
                "stationary": self.fit.stationary,
                "problems": list(self.fit.problems),
            }
        return about


def _estimate(value: Estimate) -> dict[str, float | None]:
    """Returns an estimate for JSON, which has no infinity."""
    return {name: n if math.isfinite(n) else None for name, n in value._asdict().items()}


@dataclass(frozen=True, slots=True)
class Choice:
    """The smallest z for one window. stable: from there on every z reaches the target."""

    target: float
    k: int
    users: int
    first: Row
    stable: Row

    @classmethod
    def of(cls, scenario: Scenario, window_ns: int, target: float) -> "Choice":
        """Searches for the smallest z. target: of p_k-anon, 0 to 1. Raises ConfigError."""
        first, stable = (
            scenario.smallest_z(window_ns, target, mode) for mode in ("first", "stable")
        )
        rows = {z: scenario.row(window_ns, z) for z in (first, stable)}
        return cls(target, scenario.k, scenario.users, rows[first], rows[stable])

    @property
    def advice(self) -> str:
        """Advice in one sentence."""
        window = format_duration(self.stable.window_ns)
        if self.first.z > self.users:
            return (
                f"At a window of {window} only releasing nothing reaches {self.target:.4g}: take a"
                " shorter window, or a lower target."
            )
        chosen = self.stable if self.stable.z <= self.users else self.first
        others = "1 other" if self.k == 2 else f"{self.k - 1} others"
        text = (
            f"At a window of {window} take z = {chosen.z}: with probability"
            f" {chosen.bounds.lower:.4g} a user's released names are also those of at least"
            f" {others}, and {chosen.released:.0%} of what users expose is released"
        )
        if self.first.z != self.stable.z and chosen is self.stable:
            text += f"; z = {self.first.z} would do too, but not every z above it"
        elif chosen is self.first and self.first.z != self.stable.z:
            text += "; do not raise it without a look here, for some larger z miss the target"
        if chosen.fitted is not None and chosen.fitted.lower < self.target:
            between = f"{chosen.fitted.lower:.3g} to {chosen.fitted.upper:.3g}"
            text += f"; the fit leaves {between} possible"
        return text + "."

    def to_dict(self) -> dict[str, Any]:
        """Returns the choice for JSON."""
        return {
            "window": format_duration(self.stable.window_ns),
            "window_ns": self.stable.window_ns,
            "target": self.target,
            "first": self.first.to_dict(),
            "stable": self.stable.to_dict(),
            "advice": self.advice,
        }
