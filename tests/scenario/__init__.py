# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Traffic for the model of the contract, and conversations for other readers."""
