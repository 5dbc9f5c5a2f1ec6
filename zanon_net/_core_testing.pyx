# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled core and what only its tests use: zanon_net._core built with ZANON_TESTING=1."""

include "_core.pyx"
include "core/probes.pyx"
