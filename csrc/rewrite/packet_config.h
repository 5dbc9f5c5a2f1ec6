/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of packet output in the config of an engine. A view is a further output of the same
 * packets, which shows less than the main output.
 */
#ifndef ZN_REWRITE_PACKET_CONFIG_H
#define ZN_REWRITE_PACKET_CONFIG_H

#include "zanon/zanon.h"

/* Returns true if packets are among the outputs. */
bool zn_packet_config_is_wanted(const zn_engine_config *config);
/* Validates the settings of packets and their views. Returns 0, or -ZN_ERR_CONFIG with *err
 * filled. */
int zn_packet_config_check(const zn_engine_config *config, zn_error *err);
/* Returns the largest z that a name may need in any output. */
uint32_t zn_packet_config_largest_z(const zn_engine_config *config);
/* Returns the set of outputs that are written, as bits. It includes the outputs of all views if
 * packets are wanted, and no other outputs of views. */
uint32_t zn_packet_config_outputs(const zn_engine_config *config);
/* Returns the set of outputs, as bits, of an output of packets: 0 is the main output, and view i is
 * output i + 1. */
uint32_t zn_packet_config_outputs_of(const zn_engine_config *config, unsigned output);
/* Returns the settings of an output of packets in the form of a view. The z of the main output is
 * 1, because the gate tests its z. */
zn_packet_view zn_packet_config_view(const zn_engine_config *config, unsigned output);

#endif
