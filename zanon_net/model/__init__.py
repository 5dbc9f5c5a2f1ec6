# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The k-anonymity that a z gives, and its cost: the papers' model, with certified bounds.

Sources: Jha et al. 2020 ("z-anonymity: Zero-Delay Anonymization for Data Streams", cited as 2020)
and 2022 ("Practical Anonymization for Data Streams", cited as 2022, with its equation numbers).

Quantities, everywhere: U `users`, A attributes, `rates` λ_a (exposures of a per user and unit of
time), `window` Δt (in the rates' unit), `z` and `k` (users), `periods` N (windows an attacker
collects). Probabilities are float64 arrays of length A, or of shape (A, C) for C classes of users;
attributes need not be sorted. Wrong values raise ConfigError, which is a ValueError.

The model takes attributes and users as independent and rates as constant. docs/explanation/model.md
explains what it computes, and docs/explanation/paper.md compares the papers' claims with it.

Needs SciPy: `pip install 'zanon-net[model]'`.
"""

from zanon_net.model.bounds import Bounds
from zanon_net.model.classes import k_anonymity_classes, publish_probs_classes
from zanon_net.model.enumeration import k_anonymity_exact
from zanon_net.model.exposure import exposure_probs, publish_probs, zipf_rates
from zanon_net.model.fitting import Fit, fit
from zanon_net.model.information import entropy, information_loss
from zanon_net.model.simulation import sample_iid, simulate
from zanon_net.model.single import k_anonymity, k_anonymity_pairwise
from zanon_net.model.thresholds import smallest_z, z_by_window

__all__ = [
    "Bounds",
    "Fit",
    "entropy",
    "exposure_probs",
    "fit",
    "information_loss",
    "k_anonymity",
    "k_anonymity_classes",
    "k_anonymity_exact",
    "k_anonymity_pairwise",
    "publish_probs",
    "publish_probs_classes",
    "sample_iid",
    "simulate",
    "smallest_z",
    "z_by_window",
    "zipf_rates",
]
