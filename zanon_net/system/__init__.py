# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The operating system: its signals, its standard streams, its errors about files."""
