# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net top`: a run's metrics and released names on a terminal, while it goes on."""
