/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Byte 0 picks the link type, byte 1 how much the snapshot length cut off; then the frame. */
#include "proto/packet.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t links[] = {1, 113, 0, 108, 12, 14, 101, 228, 229, 9};
    static const zn_hash_key key = {1, 2};
    zn_cursor c = zn_cursor_over(data, size, true);
    uint32_t link = links[zn_cursor_u8(&c) % 10], missing = zn_cursor_u8(&c) * 8u;
    zn_span frame = zn_cursor_rest(&c);
    zn_packet packet = {0};
    zn_packet_input in = {frame, (uint32_t)frame.n + missing, link};
    if (zn_packet_decode(&in, &key, &packet) == ZN_STAT_COUNT)
        (void)zn_hash64(&key, packet.payload.p, packet.payload.n);
    return 0;
}
