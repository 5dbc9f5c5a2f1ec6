# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Generated traffic, and what each stage of the packet path costs on it."""
