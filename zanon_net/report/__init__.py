# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Report of a run for people: its manifest and its released records, as a page or as tables."""
