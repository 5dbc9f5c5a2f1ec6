# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Arguments that the model refuses, in a line that begins with the argument's name."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.examples import each

from zanon_net import model
from zanon_net.errors import ConfigError

P = [0.2, 0.5]
PAIR = [[0.2, 0.5], [0.1, 0.3]]
NOT_CHANCES = [[0.2, float("nan")], [1.1], [-0.1], [float("inf")], "text", [[0.2]], 0.5]
NOT_COUNTS = [0, -1, 1.5, float("nan"), "2", True, None, 2**40]


@each("bad", NOT_CHANCES)
@each(
    "call",
    [
        lambda p: model.publish_probs(p, 10, 2),
        lambda p: model.k_anonymity(p, 10, 2),
        lambda p: model.k_anonymity_exact(p, 10, 2),
        lambda p: model.k_anonymity_pairwise(p, 10, 2),
        lambda p: model.entropy(p),
        lambda p: model.information_loss(P, p),
        lambda p: model.smallest_z(p, 10, 2, target=0.5),
        lambda p: model.sample_iid(p, 10, 2, seeds=1),
    ],
)
def test_chances(call: Callable[[Any], object], bad: object) -> None:
    with pytest.raises(ConfigError, match=r"^p[xy]: "):
        call(bad)


@pytest.mark.parametrize("bad", [[0.2], [[0.2, np.nan]], [[2.0, 0.1]]], ids=repr)
def test_chances_of_classes(bad: object) -> None:
    with pytest.raises(ConfigError, match=r"^py: "):
        model.k_anonymity_classes(bad, [5, 5], 2)
    with pytest.raises(ConfigError, match=r"^px: "):
        model.publish_probs_classes(bad, [5, 5], 2)


@pytest.mark.parametrize("bad", NOT_COUNTS, ids=repr)
def test_counts(bad: Any) -> None:
    for name, call in {
        "users": lambda: model.k_anonymity(P, bad, 2),
        "k": lambda: model.k_anonymity(P, 10, bad),
        "z": lambda: model.publish_probs(P, 10, bad),
        "periods": lambda: model.publish_probs(P, 10, 2, bad),
        "attributes": lambda: model.zipf_rates(bad, 0.2),
    }.items():
        with pytest.raises(ConfigError, match=f"^{name}: "):
            call()


@pytest.mark.parametrize("bad", [0, -1.0, float("nan"), float("inf"), "1", None], ids=repr)
def test_numbers(bad: Any) -> None:
    for name, call in {
        "window": lambda: model.exposure_probs([0.1], bad),
        "first": lambda: model.zipf_rates(3, bad),
        "width": lambda: model.k_anonymity(P, 10, 2, width=bad),
        "target": lambda: model.smallest_z(P, 10, 2, target=bad),
    }.items():
        with pytest.raises(ConfigError, match=f"^{name}: "):
            call()


@pytest.mark.parametrize("users", [[5], [5, 5, 5], 5, [5, 0], [5, 1.5]], ids=repr)
def test_sizes_of_classes(users: Any) -> None:
    with pytest.raises(ConfigError, match=r"^users: "):
        model.k_anonymity_classes(PAIR, users, 2)


@pytest.mark.parametrize("rates", [[-1], [np.nan], [np.inf], [[1]]], ids=repr)
def test_rates(rates: Any) -> None:
    with pytest.raises(ConfigError, match=r"^rates: "):
        model.exposure_probs(rates, 1)


def test_the_rest() -> None:
    for name, call in {
        "base": lambda: model.entropy(P, base=1),
        "px, py": lambda: model.information_loss(P, [0.1]),
        "py": lambda: model.k_anonymity_exact([0.3] * 23, 10, 2),
        "method": lambda: model.k_anonymity_classes(PAIR, [5, 5], 2, method="tree"),
        "mode": lambda: model.smallest_z(P, 10, 2, target=0.5, mode="last"),
        "target": lambda: model.smallest_z(P, 10, 2, target=1.0),
        "k": lambda: model.smallest_z(P, 10, 11, target=0.5),
        "seeds": lambda: model.simulate([0.1], 5, 1, 2, 2, seeds=[]),
        "rates": lambda: model.simulate([1e9], 1000, 1, 2, 2, seeds=1),
    }.items():
        with pytest.raises(ConfigError, match=f"^{name}: "):
            call()
    with pytest.raises(ConfigError, match="use mc"):
        model.k_anonymity_classes([[0.1, 0.2, 0.3]], [5, 5, 5], 2, method="grid")


def test_without_scipy_there_is_one_line() -> None:
    """A None among the modules is what Python itself leaves for one that must not be there."""
    code = (
        "import sys; sys.modules['scipy'] = None\n"
        "import zanon_net\n"
        "try:\n    import zanon_net.model\n"
        "except zanon_net.ZanonError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "the model needs SciPy; install it with: pip install 'zanon-net[model]'\n"
