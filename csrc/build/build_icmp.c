/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "build/build_icmp.h"

#include "util/checksum.h"

#define TCP_HEADER_BYTES 20
#define TCP_HEADER_WORDS 0x50 /* length of the header without options */
/* Bytes behind these are zeros in every message. */
#define BUILT_MAX (ZN_ICMP_HEADER_BYTES + ZN_ICMP_V6_HEADER + TCP_HEADER_BYTES)

enum { CHECKSUM_V4 = 10, CHECKSUM_ICMP = 2, CHECKSUM_UDP = 6, CHECKSUM_TCP = 16 };
enum { FRAGMENT_DONT = 0x40, FRAGMENT_MORE = 0x20 }; /* flags in the first byte */

static void put_be16(uint8_t *out, uint16_t value)
{
    value = htobe16(value);
    memcpy(out, &value, sizeof value);
}

static void put_be32(uint8_t *out, uint32_t value)
{
    value = htobe32(value);
    memcpy(out, &value, sizeof value);
}

/* Returns the bytes of an address in its IP version. */
static zn_span addr_bytes(const zn_addr *addr, bool v6)
{
    return zn_span_after(zn_addr_span(addr), v6 ? 0 : 12);
}

static void put_addr(uint8_t *out, const zn_addr *addr, bool v6)
{
    zn_span bytes = addr_bytes(addr, v6);
    memcpy(out, bytes.p, bytes.n);
}

/* Returns the sum of a pseudo-header (RFC 9293 3.1, RFC 8200 8.1) for a message of n bytes. */
static uint64_t pseudo_header(const zn_addr *src, const zn_addr *dst, bool v6, uint32_t n,
                              uint8_t protocol)
{
    uint64_t sum = zn_checksum_add(0, addr_bytes(src, v6));
    sum = zn_checksum_add(sum, addr_bytes(dst, v6));
    return zn_checksum_add_be32(zn_checksum_add_be32(sum, n), protocol);
}

/* ---- the quoted packet ----------------------------------------------------------------------- */

static void put_header_v4(const zn_icmp_quote *in, const zn_build_icmp_quote *as, uint8_t *out)
{
    out[0] = 0x45; /* version 4, five words */
    out[1] = as->service;
    put_be16(out + 2, (uint16_t)(ZN_ICMP_V4_HEADER + in->length));
    put_be16(out + 4, as->id);
    out[6] = (uint8_t)((in->dont_fragment ? FRAGMENT_DONT : 0) |
                       (in->more_fragments ? FRAGMENT_MORE : 0));
    out[8] = as->hops;
    out[9] = in->protocol;
    put_addr(out + 12, &as->src, false);
    put_addr(out + 16, &as->dst, false);
    zn_checksum_end(zn_checksum_add(0, (zn_span){out, ZN_ICMP_V4_HEADER}), out + CHECKSUM_V4);
}

static void put_header_v6(const zn_icmp_quote *in, const zn_build_icmp_quote *as, uint8_t *out)
{
    put_be32(out, UINT32_C(6) << 28 | (uint32_t)as->service << 20);
    put_be16(out + 4, in->length);
    out[6] = in->protocol;
    out[7] = as->hops;
    put_addr(out + 8, &as->src, true);
    put_addr(out + 24, &as->dst, true);
}

/* Builds n bytes of a transport header, ZN_ICMP_QUOTED_BYTES or more. */
static void put_transport(const zn_icmp_quote *in, const zn_build_icmp_quote *as, size_t n, bool v6,
                          uint8_t *out)
{
    uint64_t sum = pseudo_header(&as->src, &as->dst, v6, in->length, in->protocol);
    if (in->kind == ZN_ICMP_QUOTED_ECHO) {
        out[0] = in->echo_type;
        put_be16(out + 4, as->echo_id);
        put_be16(out + 6, (uint16_t)in->sequence);
        sum = zn_checksum_add(v6 ? sum : 0, (zn_span){out, ZN_ICMP_QUOTED_BYTES});
        zn_checksum_end(sum, out + CHECKSUM_ICMP);
        return;
    }
    put_be16(out, as->port[0]);
    put_be16(out + 2, as->port[1]);
    if (in->kind == ZN_ICMP_QUOTED_UDP) {
        put_be16(out + 4, in->length);
        sum = zn_checksum_add(sum, (zn_span){out, ZN_ICMP_QUOTED_BYTES});
        zn_checksum_end(sum, out + CHECKSUM_UDP);
        if (out[CHECKSUM_UDP] == 0 && out[CHECKSUM_UDP + 1] == 0) /* RFC 768: no checksum */
            memset(out + CHECKSUM_UDP, 0xff, 2);
        return;
    }
    put_be32(out + 4, as->sequence);
    if (n < TCP_HEADER_BYTES)
        return;
    out[12] = TCP_HEADER_WORDS;
    sum = zn_checksum_add(sum, (zn_span){out, TCP_HEADER_BYTES});
    zn_checksum_end(sum, out + CHECKSUM_TCP);
}

static void put_quote(const zn_icmp *message, const zn_build_icmp_quote *as, uint8_t *out)
{
    const zn_icmp_quote *in = &message->quote;
    size_t header = message->v6 ? ZN_ICMP_V6_HEADER : ZN_ICMP_V4_HEADER;
    if (in->kind == ZN_ICMP_QUOTED_NOTHING || zn_addr_is_v4(&as->src) == message->v6 ||
        zn_addr_is_v4(&as->dst) == message->v6)
        return;
    if (message->v6)
        put_header_v6(in, as, out);
    else
        put_header_v4(in, as, out);
    if (in->kind != ZN_ICMP_QUOTED_IP)
        put_transport(in, as, in->bytes - header, message->v6, out + header);
}

/* ---- the message ----------------------------------------------------------------------------- */

static void put_error(const zn_icmp *message, const zn_build_icmp_choice *choice, uint8_t *out)
{
    put_be32(out + 4, message->v6 ? message->mtu | message->pointer : message->mtu);
    if (!message->v6)
        out[4] = (uint8_t)message->pointer;
    if (!zn_addr_is_unset(&message->gateway) && zn_addr_is_v4(&choice->gateway))
        put_addr(out + 4, &choice->gateway, false);
    if (choice->quote != NULL)
        put_quote(message, choice->quote, out + ZN_ICMP_HEADER_BYTES);
}

void zn_build_icmp(const zn_icmp *message, size_t n, const zn_build_icmp_choice *choice,
                   uint8_t *out)
{
    zn_span built = {out, n < BUILT_MAX ? n : BUILT_MAX};
    uint64_t sum = 0;
    ZN_ASSERT(message->kind == ZN_ICMP_OTHER || n >= ZN_ICMP_HEADER_BYTES + message->quote.bytes);
    if (n < 4)
        return;
    out[0] = message->type;
    out[1] = message->code;
    if (message->kind == ZN_ICMP_ECHO) {
        put_be16(out + 4, choice->echo_id);
        put_be16(out + 6, message->sequence);
    } else if (message->kind == ZN_ICMP_ERROR) {
        put_error(message, choice, out);
    }
    if (message->v6)
        sum = pseudo_header(&choice->src, &choice->dst, true, choice->wire, ZN_ICMP_V6_PROTOCOL);
    zn_checksum_end(zn_checksum_add(sum, built), out + CHECKSUM_ICMP);
}
