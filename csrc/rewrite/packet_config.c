/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/packet_config.h"

#include "flow/flow.h"
#include "output/outputs.h"
#include "zanon/ztable.h"

#define PACKET_OUTPUTS (1u << ZN_OUTPUT_PACKETS | 1u << ZN_OUTPUT_PACKETS_NG)
#define VIEW_OUTPUTS ((2u << ZN_OUTPUT_VIEW3_PACKETS_NG) - (1u << ZN_OUTPUT_VIEW1_PACKETS))

bool zn_packet_config_is_wanted(const zn_engine_config *config)
{
    return (config->outputs & PACKET_OUTPUTS) != 0;
}

/* Rejects a view that would show more than the main output. */
static int check_view(const zn_engine_config *config, const zn_packet_view *view, zn_error *err)
{
    static const unsigned shows[] = {[ZN_PACKET_PAYLOAD_CUT] = 0,
                                     [ZN_PACKET_PAYLOAD_ZERO] = 1,
                                     [ZN_PACKET_PAYLOAD_KEEP_ENCRYPTED] = 2};
    if (view->payload > ZN_PACKET_PAYLOAD_KEEP_ENCRYPTED || view->times_ns < 1)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "a view's packets are of no known kind");
    if (view->z < config->z || view->z > ZN_ZTABLE_Z_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the z of a view must be %u to %u, not %u", config->z,
                       ZN_ZTABLE_Z_MAX, view->z);
    if (shows[view->payload] > shows[config->payload] ||
        (view->server_addresses != config->server_addresses &&
         (view->server_addresses != ZN_SERVER_ADDRESSES_WITHHELD ||
          config->server_addresses != ZN_SERVER_ADDRESSES_TESTED)) ||
        (view->fingerprints != config->fingerprints &&
         view->fingerprints != ZN_FINGERPRINTS_DROP) ||
        view->times_ns % config->packet_times_ns != 0 || (view->exact && !config->exact))
        return zn_fail(err, ZN_ERR_CONFIG, 0, "a view must not show more than what it is of");
    return 0;
}

static int check_views(const zn_engine_config *config, zn_error *err)
{
    int rc = 0;
    if (config->view_count > ZN_VIEWS_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "there may be %d views", ZN_VIEWS_MAX);
    if (config->view_count != 0 && (config->views == NULL || !zn_packet_config_is_wanted(config)))
        return zn_fail(err, ZN_ERR_CONFIG, 0, "views are of packets, and none are wanted");
    for (size_t i = 0; i < config->view_count && rc == 0; i++)
        rc = check_view(config, &config->views[i], err);
    return rc;
}

int zn_packet_config_check(const zn_engine_config *config, zn_error *err)
{
    if (config->hold_ns < 0 || config->hold_ns > ZN_FLOW_LEAST_IDLE_NS)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "hold_ns must be 0 to 10 s, the shortest time after which a flow is idle");
    if (config->payload > ZN_PACKET_PAYLOAD_KEEP_ENCRYPTED ||
        config->server_addresses > ZN_SERVER_ADDRESSES_LINKABLE ||
        config->macs > ZN_PACKET_MACS_ZERO || config->tcp_timestamps > ZN_TCP_TIMESTAMPS_KEEP ||
        config->fingerprints > ZN_FINGERPRINTS_KEEP)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "packets are of no known kind");
    if (config->exact && config->coarse_suppressed)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "exact measurements are not coarse: choose one");
    if (config->packet_times_ns < 1)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "packet_times_ns must be at least 1");
    return check_views(config, err);
}

uint32_t zn_packet_config_largest_z(const zn_engine_config *config)
{
    uint32_t z = config->z_max > config->z ? config->z_max : config->z;
    for (size_t i = 0; i < config->view_count; i++)
        z = config->views[i].z > z ? config->views[i].z : z;
    return z;
}

uint32_t zn_packet_config_outputs(const zn_engine_config *config)
{
    uint32_t outputs = config->outputs & ~VIEW_OUTPUTS;
    for (unsigned i = 1; i <= config->view_count; i++)
        outputs |= zn_packet_config_outputs_of(config, i);
    return outputs;
}

uint32_t zn_packet_config_outputs_of(const zn_engine_config *config, unsigned output)
{
    return (config->outputs & PACKET_OUTPUTS) << 2u * output;
}

zn_packet_view zn_packet_config_view(const zn_engine_config *config, unsigned output)
{
    if (output != 0)
        return config->views[output - 1];
    return (zn_packet_view){.z = 1,
                            .payload = config->payload,
                            .server_addresses = config->server_addresses,
                            .fingerprints = config->fingerprints,
                            .times_ns = config->packet_times_ns,
                            .exact = config->exact};
}
