# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the model's arguments: a wrong one raises ConfigError with a line that explains it."""

import math

import numpy as np
from numpy.typing import ArrayLike

from zanon_net.config.parse import whole
from zanon_net.config.rules import COUNT_MAX
from zanon_net.errors import ConfigError
from zanon_net.model.special import Floats


def count(name: str, value: object, low: int = 1, high: int = COUNT_MAX) -> int:
    """Checks a whole number from low to high."""
    return whole(name, value, low, high)


def positive(name: str, value: object) -> float:
    """Checks a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ConfigError(f"{name}: must be a number, not {value!r}")
    if not (math.isfinite(value) and value > 0):
        raise ConfigError(f"{name}: must be above 0 and finite, not {value}")
    return float(value)


def share(name: str, value: object) -> float:
    """Checks a probability above 0, at most 1."""
    number = positive(name, value)
    if number > 1:
        raise ConfigError(f"{name}: must be at most 1, not {value}")
    return number


def _array(name: str, values: ArrayLike, dimensions: int) -> Floats:
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ConfigError(f"{name}: must be an array of numbers") from None
    if array.ndim != dimensions:
        wanted = "one number an attribute" if dimensions == 1 else "the shape (attributes, classes)"
        raise ConfigError(f"{name}: must have {wanted}, not the shape {array.shape}")
    if np.isnan(array).any():
        raise ConfigError(f"{name}: holds a NaN at {int(np.flatnonzero(np.isnan(array))[0])}")
    return array


def probabilities(name: str, values: ArrayLike, dimensions: int = 1) -> Floats:
    """Checks probabilities: float64, of shape (A,), or (A, C) for two dimensions."""
    array = _array(name, values, dimensions)
    wrong = array[(array < 0) | (array > 1)]
    if wrong.size:
        raise ConfigError(f"{name}: holds {wrong[0]}, which is no probability")
    return array


def rates(values: ArrayLike) -> Floats:
    """Checks rates: float64 of shape (A,), finite and not negative."""
    array = _array("rates", values, 1)
    wrong = array[(array < 0) | ~np.isfinite(array)]
    if wrong.size:
        raise ConfigError(f"rates: holds {wrong[0]}; a rate is finite and not negative")
    return array


def class_sizes(users: ArrayLike, classes: int) -> tuple[int, ...]:
    """Checks the users of each class: `classes` whole numbers from 1."""
    sizes = np.asarray(users)
    if sizes.ndim != 1 or len(sizes) != classes or classes == 0:
        raise ConfigError(f"users: must have one number for each of the {classes} classes")
    return tuple(count("users", size) for size in sizes.tolist())


def seed_list(seeds: object) -> list[int]:
    """Checks seeds: their number (0, 1, ...), or the seeds themselves."""
    if isinstance(seeds, int | np.integer):
        return list(range(count("seeds", seeds)))
    try:
        chosen = [count("seeds", seed, 0, 2**63) for seed in seeds]  # type: ignore[attr-defined]
    except TypeError:
        raise ConfigError("seeds: must be a number of seeds, or the seeds themselves") from None
    if not chosen:
        raise ConfigError("seeds: there must be at least one")
    return chosen
