/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "build/build_ip.h"

#include <endian.h>

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define V4_VERSION_AND_LENGTH 0x45u
#define V4_DONT_FRAGMENT 0x4000u
#define V4_MORE_FRAGMENTS 0x2000u
#define V6_FRAGMENT 44u /* extension header, RFC 8200 4.5 */
#define V6_MORE_FRAGMENTS 1u
#define V4_ADDRESS 12u /* offset of an IPv4 address in a zn_addr */

/* Place of the next field, and the sum of 16-bit words since the last checksum began. Values are
 * summed as they are written, because the processor would wait for bytes that it reads back so
 * soon. */
typedef struct writer {
    uint8_t *at;
    uint64_t sum;
} writer;

static void put_be16(writer *w, uint32_t value)
{
    uint16_t big = htobe16((uint16_t)value);
    memcpy(w->at, &big, sizeof big);
    w->at += sizeof big;
    w->sum += (uint16_t)value;
}

static void put_be32(writer *w, uint32_t value)
{
    uint32_t big = htobe32(value);
    memcpy(w->at, &big, sizeof big);
    w->at += sizeof big;
    w->sum += value; /* fold adds the halves of the sum */
}

/* Writes an even number of bytes that no checksum covers, or that are in the sum already. */
static void put_bytes(writer *w, const uint8_t *bytes, size_t n)
{
    memcpy(w->at, bytes, n);
    w->at += n;
}

static uint32_t fold(uint64_t sum)
{
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint32_t)sum;
}

/* The sum does not depend on the order of the bytes in a word, which is swapped at the end (RFC
 * 1071 2). Carries of 32-bit words are summed in the upper half. */
uint32_t zn_build_sum(uint32_t sum, const uint8_t *p, size_t n)
{
    uint64_t total = 0;
    uint32_t word = 0;
    for (; n >= sizeof word; p += sizeof word, n -= sizeof word) {
        memcpy(&word, p, sizeof word);
        total += word;
    }
    if (n != 0) {
        word = 0;
        memcpy(&word, p, n);
        total += word;
    }
    return fold((uint64_t)be16toh((uint16_t)fold(total)) + sum);
}

uint16_t zn_build_checksum(uint32_t sum)
{
    return (uint16_t)~fold(sum);
}

static void set_checksum(uint8_t *at, uint16_t value)
{
    value = htobe16(value);
    memcpy(at, &value, sizeof value);
}

/* Writes an IPv4 header. addresses is the sum of both addresses. */
static void put_v4(writer *w, const zn_build_headers *h, uint32_t bytes, uint32_t addresses)
{
    uint8_t *checksum;
    w->sum = addresses;
    put_be16(w, V4_VERSION_AND_LENGTH << 8 | h->tos);
    put_be16(w, bytes);
    put_be16(w, h->datagram_bytes != 0 ? h->fragment_id : h->ip_id);
    put_be16(w, h->fragment_offset / 8u | (h->more_fragments ? V4_MORE_FRAGMENTS : 0u) |
                    (h->dont_fragment ? V4_DONT_FRAGMENT : 0u));
    put_be16(w, (uint32_t)h->ttl << 8 | h->proto);
    checksum = w->at;
    put_be16(w, 0);
    put_bytes(w, h->src.byte + V4_ADDRESS, 4);
    put_bytes(w, h->dst.byte + V4_ADDRESS, 4);
    set_checksum(checksum, (uint16_t)~fold(w->sum));
}

static void put_v6(writer *w, const zn_build_headers *h, uint32_t bytes)
{
    put_be32(w, UINT32_C(6) << 28 | (uint32_t)h->tos << 20);
    put_be16(w, bytes - 40u);
    put_be16(w, (h->datagram_bytes != 0 ? V6_FRAGMENT : (uint32_t)h->proto) << 8 | h->ttl);
    put_bytes(w, h->src.byte, sizeof h->src.byte);
    put_bytes(w, h->dst.byte, sizeof h->dst.byte);
    if (h->datagram_bytes == 0)
        return;
    put_be16(w, (uint32_t)h->proto << 8);
    put_be16(w, h->fragment_offset | (h->more_fragments ? V6_MORE_FRAGMENTS : 0u));
    put_be32(w, h->fragment_id);
}

/* Returns the sum of both addresses. */
static uint32_t addresses_sum(const zn_build_headers *h)
{
    size_t from = zn_addr_is_v4(&h->src) ? V4_ADDRESS : 0;
    uint32_t sum = zn_build_sum(0, h->src.byte + from, sizeof h->src.byte - from);
    return zn_build_sum(sum, h->dst.byte + from, sizeof h->dst.byte - from);
}

/* Writes a TCP or UDP header of a segment of `bytes` bytes. w->sum is the sum of both addresses and
 * of the payload. */
static void put_transport(writer *w, const zn_build_headers *h, uint32_t bytes)
{
    bool tcp = h->proto == ZN_PROTO_TCP;
    uint8_t *checksum;
    uint16_t value;
    w->sum += h->proto + bytes; /* pseudo-header (RFC 9293 3.1, RFC 8200 8.1) */
    put_be16(w, h->src_port);
    put_be16(w, h->dst_port);
    if (tcp) {
        put_be32(w, h->seq);
        put_be32(w, h->ack);
        put_be16(w, (20u + h->option_bytes) / 4 << 12 | h->tcp_flags);
        put_be16(w, h->window);
    } else {
        put_be16(w, bytes);
    }
    checksum = w->at;
    put_be16(w, 0);
    if (tcp)
        put_be16(w, 0);
    if (tcp && h->option_bytes != 0) {
        w->sum += zn_build_sum(0, h->options, h->option_bytes);
        put_bytes(w, h->options, h->option_bytes);
    }
    value = (uint16_t)~fold(w->sum);
    set_checksum(checksum, value == 0 && !tcp ? 0xffff : value); /* 0 means no checksum (RFC 768) */
}

uint8_t *zn_build_headers_put(const zn_build_headers *h, uint32_t sum, uint8_t *out)
{
    bool v4 = zn_addr_is_v4(&h->src);
    uint32_t bytes = zn_build_headers_bytes(h) - ZN_BUILD_ETHERNET_BYTES + h->payload_bytes;
    uint32_t addresses = addresses_sum(h);
    writer w = {out, 0};
    put_bytes(&w, h->mac[1], ZN_BUILD_MAC_BYTES);
    put_bytes(&w, h->mac[0], ZN_BUILD_MAC_BYTES);
    put_be16(&w, v4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
    if (v4)
        put_v4(&w, h, bytes, addresses);
    else
        put_v6(&w, h, bytes);
    w.sum = (uint64_t)sum + addresses;
    if (h->fragment_offset == 0 && (h->proto == ZN_PROTO_TCP || h->proto == ZN_PROTO_UDP))
        put_transport(&w, h,
                      h->datagram_bytes != 0 ? h->datagram_bytes : bytes - zn_build_ip_bytes(h));
    return w.at;
}
