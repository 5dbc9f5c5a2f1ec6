/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte 0: whether the message is ICMPv6 (bit 0), and whether its quote is built (bit 1). Then the
 * message. What is built is read as the same message, with the fields that were chosen, has a valid
 * checksum, and is built as itself.
 */
#include "build/build_icmp.h"
#include "util/checksum.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static zn_addr addr_of(bool v6, uint8_t last)
{
    zn_addr v6_addr = {{0x3f, 0xff, [14] = 0x77, [15] = last}};
    return v6 ? v6_addr : zn_addr_from_v4((const uint8_t[]){240, 7, 7, last});
}

static void check_sum(const zn_build_icmp_choice *choice, bool v6, zn_span message)
{
    uint8_t end[2];
    uint64_t sum = zn_checksum_add(0, message);
    if (v6) {
        sum = zn_checksum_add(zn_checksum_add(sum, zn_addr_span(&choice->src)),
                              zn_addr_span(&choice->dst));
        sum = zn_checksum_add_be32(zn_checksum_add_be32(sum, choice->wire), ZN_ICMP_V6_PROTOCOL);
    }
    zn_checksum_end(sum, end);
    expect(end[0] == 0 && end[1] == 0);
}

static void check_quote(const zn_icmp_quote *in, const zn_icmp_quote *out,
                        const zn_build_icmp_quote *choice)
{
    expect(in->kind == out->kind && in->length == out->length && in->protocol == out->protocol);
    if (in->kind == ZN_ICMP_QUOTED_NOTHING)
        return;
    expect(zn_addr_equal(&out->src, &choice->src) && zn_addr_equal(&out->dst, &choice->dst));
    expect(out->hops == choice->hops && out->service == choice->service);
    if (out->kind == ZN_ICMP_QUOTED_TCP || out->kind == ZN_ICMP_QUOTED_UDP)
        expect(out->port[0] == choice->port[0] && out->port[1] == choice->port[1]);
    if (out->kind == ZN_ICMP_QUOTED_TCP)
        expect(out->sequence == choice->sequence);
    if (out->kind == ZN_ICMP_QUOTED_ECHO)
        expect(out->echo_id == choice->echo_id && out->sequence == in->sequence);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    uint8_t what = zn_cursor_u8(&c);
    zn_span message = zn_cursor_rest(&c);
    bool v6 = (what & 1) != 0;
    zn_build_icmp_quote quote = {addr_of(v6, 1), addr_of(v6, 2),       63,    0xb9, 0x1d1d,
                                 {1025, 9},      UINT32_C(0xabcd0123), 0x5eed};
    zn_build_icmp_choice choice = {addr_of(v6, 3), addr_of(v6, 4),    (uint32_t)message.n,
                                   0x5eed,         addr_of(false, 5), (what & 2) ? &quote : NULL};
    uint8_t *out = calloc(1, message.n + 1), *again = calloc(1, message.n + 1);
    zn_icmp in, built;
    expect(out != NULL && again != NULL);
    if (zn_icmp_parse(message, v6, &in) == ZN_DONE) {
        zn_build_icmp(&in, message.n, &choice, out);
        check_sum(&choice, v6, (zn_span){out, message.n});
        expect(zn_icmp_parse((zn_span){out, message.n}, v6, &built) == ZN_DONE);
        expect(in.kind == built.kind && in.type == built.type && in.code == built.code &&
               in.sequence == built.sequence && in.mtu == built.mtu && in.pointer == built.pointer);
        expect(in.kind != ZN_ICMP_ECHO || built.id == choice.echo_id);
        if (choice.quote != NULL)
            check_quote(&in.quote, &built.quote, &quote);
        zn_build_icmp(&built, message.n, &choice, again);
        expect(memcmp(out, again, message.n) == 0 && out[message.n] == 0);
    }
    free(out);
    free(again);
    return 0;
}
