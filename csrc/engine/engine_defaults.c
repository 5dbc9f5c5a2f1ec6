/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/engine.h"

#include <string.h>

void zn_engine_config_init(zn_engine_config *out, size_t size)
{
    zn_engine_config config = {.size = size};
    config.z = 20;
    config.window_ns = config.rotate_ns = 3600 * ZN_NS_PER_S;
    config.established = true;
    config.dns_votes = ZN_DNS_VOTES_OWN;
    config.user_v4_bits = 32;
    config.user_v6_bits = 56;
    config.workers = 1;
    config.max_flows = UINT32_C(1) << 20;
    config.max_tuples = UINT32_C(1) << 26;
    config.max_attributes = UINT32_C(1) << 24;
    config.pseudonyms = ZN_PSEUDONYMS_NETWORKS;
    config.block_v4_bits = 32;
    config.block_v6_bits = 128;
    config.coarse_end = ZN_COARSE_END_NONE;
    config.coarse_steps = ZN_COARSE_STEPS_4;
    config.coarse_client = ZN_COARSE_CLIENT_NONE;
    config.order = ZN_ORDER_MINUTE;
    config.hold_ns = ZN_NS_PER_S;
    config.hold_bytes = UINT64_C(256) << 20;
    config.packet_times_ns = 1;
    memcpy(out, &config, size < sizeof config ? size : sizeof config);
}
