# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""What a run writes: folders, standard output, files that appear whole or not at all."""
