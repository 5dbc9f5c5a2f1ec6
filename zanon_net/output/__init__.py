# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Outputs of a run: folders, standard output, files that appear whole or not at all."""
