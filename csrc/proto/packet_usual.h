/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What most frames are, decoded at one go: an Ethernet header with at most one VLAN tag, IPv4 without
 * options or IPv6 without extension headers, no fragment, and TCP, or UDP between ports that no tunnel
 * uses.
 */
#ifndef ZN_PROTO_PACKET_USUAL_H
#define ZN_PROTO_PACKET_USUAL_H

#include "proto/packet.h"

/* As zn_packet_decode when that would return ZN_STAT_COUNT for a frame of this kind. False, and *out
 * means nothing, for every other frame: also for one that something is wrong with. */
bool zn_packet_decode_usual(const zn_packet_input *in, const zn_hash_key *key, zn_packet *out);

#endif
