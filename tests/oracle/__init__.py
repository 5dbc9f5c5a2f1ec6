# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What the fast code must agree with: brute force, short enough to be seen to be right."""
