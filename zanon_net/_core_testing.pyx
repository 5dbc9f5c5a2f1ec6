# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled core and its additions for tests: zanon_net._core built with ZANON_TESTING=1."""

include "_core.pyx"
include "core/probes.pyx"
include "core/probe_name_lists.pyx"
include "core/probe_build_messages.pyx"
include "core/probe_build_tls.pyx"
include "core/build_icmp.pyx"
include "core/build_quic.pyx"
include "core/packet_keys.pyx"
