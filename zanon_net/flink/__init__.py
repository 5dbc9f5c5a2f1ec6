# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""z-anonymity over many probes, and publishers of rows, as jobs of Apache Flink.

Needs `pip install 'zanon-net[flink]'`, best in an environment of its own, and a JDK of Java 17.
"""
