/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Link to transport header. Bytes 0 and 1 are the link type, byte 2 is how many times eight bytes
 * the snapshot length cut off; then the frame. A fragment is read as if it were its whole datagram.
 */
#include "packet/decode.h"
#include "util/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const zn_bucket_key key = {{1, 2, 3, 4, 5, 6, 7, 8}};

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* Every byte that a result points to can be read, and lies in the frame. */
static void read_all(zn_span part, zn_span frame)
{
    require(part.n == 0 || (part.p >= frame.p && part.p + part.n <= frame.p + frame.n));
    (void)zn_hash64(&(zn_hash_key){1, 2}, part.p, part.n);
}

static void check_packet(const zn_packet *p, zn_span frame)
{
    require(p->payload.n <= p->payload_len && p->sender < 2);
    require(p->tuple.proto == ZN_PROTO_TCP || p->tuple.proto == ZN_PROTO_UDP);
    read_all(p->payload, frame);
    read_all(zn_packet_tcp_options(p), frame);
    require(zn_span_equal(zn_packet_start(p), zn_span_first(p->payload, ZN_PACKET_START)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    uint32_t link = zn_cursor_be16(&c), missing = zn_cursor_u8(&c) * 8u;
    zn_span frame = zn_cursor_rest(&c);
    zn_tunnel_ports ports = {.n = 0};
    zn_packet_outer outer = {.ports = &ports, .wants_layers = true};
    zn_packet packet = {.outer = &outer};
    zn_packet_input in = {frame, (uint32_t)frame.n + missing, link};
    zn_fragment fragment;
    zn_stat why;
    for (unsigned kind = ZN_TUNNEL_VXLAN; kind <= ZN_TUNNEL_GRE; kind++)
        require(zn_tunnel_ports_add(&ports, (uint16_t)(kind + 1), kind));
    why = zn_packet_decode(&in, &key, &packet, &fragment);
    for (int n = 0; n < 4 && why == ZN_STAT_FRAGMENTS; n++) {
        read_all(fragment.bytes, frame);
        why = zn_packet_decode_datagram(&fragment, &key, &packet, &fragment);
    }
    require(packet.tunnel_count <= ZN_TUNNELS_MAX);
    require(outer.layers.n <= ZN_LAYERS_MAX);
    for (uint32_t i = 0; i < outer.layers.n && packet.encapsulations != 0; i++)
        require(outer.layers.layer[i].at <= outer.layers.bytes.n);
    require(packet.encapsulations >> (ZN_STAT_IN_LAST - ZN_STAT_IN_FIRST) <= 1);
    if (why == ZN_STAT_COUNT) {
        check_packet(&packet, frame);
        zn_packet_copy_start(&packet);
        check_packet(&packet, frame);
    } else {
        require(why == ZN_STAT_FRAGMENTS ||
                (why >= ZN_STAT_DROP_LINK_TYPE && why <= ZN_STAT_DROP_TRANSPORT_MALFORMED));
    }
    return 0;
}
