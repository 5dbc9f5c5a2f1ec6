# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Traffic for the contract's model, and conversations for second readers such as tshark."""
