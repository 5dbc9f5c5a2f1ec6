# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Profiles of generated traffic, each with a line for people.

`zanon_net.bench.trace_flows` has the numbers of each profile. This module stands apart because it
is imported without NumPy.
"""

TRAFFIC = {
    "isp": "browsing: TLS, QUIC, DNS, HTTP",
    "isplong": "browsing with more TLS, and three times as many packets a flow",
    "modern": "browsing with post-quantum hellos, more QUIC, half IPv6, in a VLAN",
    "min64": "the smallest packets, in few long flows",
    "storm": "a hello a flow, names mostly unique",
    "storm1": "a hello a flow and no other packet, names mostly unique",
}
# Profiles that `zanon-net bench` measures unless it is given others.
USUAL_TRAFFIC = ("isp", "modern", "min64", "storm")
