/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/packet_file.h"

#include "output/format.h"

#define LINK_ETHERNET 1u
#define BLOCK_SECTION 0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET 6u
#define OPTION_RESOLUTION 9u  /* if_tsresol */
#define NANOSECONDS 9u        /* its value: 10^-9 */
#define OPTION_APPLICATION 4u /* shb_userappl */
#define APPLICATION "zanon-net"

static void put_u16(zn_text *out, uint16_t value)
{
    zn_text_bytes(out, (const char *)&value, sizeof value);
}

static void put_u32(zn_text *out, uint32_t value)
{
    zn_text_bytes(out, (const char *)&value, sizeof value);
}

static uint8_t *set_u32(uint8_t *at, uint32_t value)
{
    memcpy(at, &value, sizeof value);
    return at + sizeof value;
}

static size_t padding(size_t n)
{
    return (4 - n % 4) % 4;
}

/* ---- pcap ---- */

static void put_pcap_header(const zn_format_state *state, zn_text *out)
{
    (void)state;
    put_u32(out, 0xa1b23c4d); /* times in ns */
    put_u16(out, 2);
    put_u16(out, 4);
    put_u32(out, 0);
    put_u32(out, 0);
    put_u32(out, ZN_FRAME_MAX);
    put_u32(out, LINK_ETHERNET);
}

static uint8_t *set_pcap(const zn_packet_file_frame *frame, uint8_t *at)
{
    at = set_u32(at, (uint32_t)(frame->t_ns / ZN_NS_PER_S));
    at = set_u32(at, (uint32_t)(frame->t_ns % ZN_NS_PER_S));
    at = set_u32(at, frame->captured);
    return set_u32(at, frame->wire);
}

static uint32_t read_u32(zn_cursor *c)
{
    uint32_t value = 0;
    zn_span bytes = zn_cursor_take(c, sizeof value);
    if (bytes.n == sizeof value)
        memcpy(&value, bytes.p, sizeof value);
    return value;
}

bool zn_packet_file_next(zn_span records, size_t *at, zn_frame *out)
{
    zn_cursor c = zn_cursor_over_span(records, true);
    zn_span bytes;
    if (records.n == 0) /* there may be no text yet */
        return false;
    zn_cursor_skip(&c, *at);
    if (!zn_cursor_ok(&c) || zn_cursor_left(&c) == 0)
        return false;
    out->t_ns = (int64_t)read_u32(&c) * ZN_NS_PER_S;
    out->t_ns += read_u32(&c);
    out->captured = read_u32(&c);
    out->wire = read_u32(&c);
    bytes = zn_cursor_take(&c, out->captured);
    out->data = bytes.p;
    out->link_type = LINK_ETHERNET;
    *at = records.n - zn_cursor_left(&c);
    return zn_cursor_ok(&c);
}

#define PCAP_FORMAT(of)                                                                            \
    const zn_format zn_format_##of = {                                                             \
        .name = #of, .stem = "packets", .suffix = ".pcap", .header = put_pcap_header};

PCAP_FORMAT(packets)
PCAP_FORMAT(view1_packets)
PCAP_FORMAT(view2_packets)
PCAP_FORMAT(view3_packets)

/* ---- pcapng ---- */

static void put_pcapng_header(const zn_format_state *state, zn_text *out)
{
    const uint32_t text = sizeof APPLICATION - 1;
    const uint32_t section = 28 + 4 + text + (uint32_t)padding(text) + 4;
    const uint32_t interface = 20 + 8 + 4;
    (void)state;
    put_u32(out, BLOCK_SECTION);
    put_u32(out, section);
    put_u32(out, 0x1a2b3c4d);
    put_u16(out, 1);
    put_u16(out, 0);
    put_u32(out, UINT32_MAX); /* the section's length: not given */
    put_u32(out, UINT32_MAX);
    put_u16(out, OPTION_APPLICATION);
    put_u16(out, (uint16_t)text);
    zn_text_literal(out, APPLICATION);
    zn_text_bytes(out, "\0\0\0", padding(text));
    put_u32(out, 0); /* end of options */
    put_u32(out, section);
    put_u32(out, BLOCK_INTERFACE);
    put_u32(out, interface);
    put_u16(out, LINK_ETHERNET);
    put_u16(out, 0);
    put_u32(out, ZN_FRAME_MAX);
    put_u16(out, OPTION_RESOLUTION);
    put_u16(out, 1);
    zn_text_bytes(out, (const char[4]){NANOSECONDS, 0, 0, 0}, 4);
    put_u32(out, 0);
    put_u32(out, interface);
}

static uint8_t *set_pcapng(const zn_packet_file_frame *frame, uint8_t *at)
{
    uint32_t n = (uint32_t)zn_packet_file_bytes(true, frame->captured);
    size_t pad = padding(frame->captured);
    uint8_t *bytes;
    at = set_u32(at, BLOCK_PACKET);
    at = set_u32(at, n);
    at = set_u32(at, 0); /* the interface */
    at = set_u32(at, (uint32_t)((uint64_t)frame->t_ns >> 32));
    at = set_u32(at, (uint32_t)frame->t_ns);
    at = set_u32(at, frame->captured);
    bytes = set_u32(at, frame->wire);
    memset(bytes + frame->captured, 0, pad);
    (void)set_u32(bytes + frame->captured + pad, n);
    return bytes;
}

#define PCAPNG_FORMAT(of)                                                                          \
    const zn_format zn_format_##of = {                                                             \
        .name = #of, .stem = "packets", .suffix = ".pcapng", .header = put_pcapng_header};

PCAPNG_FORMAT(packets_ng)
PCAPNG_FORMAT(view1_packets_ng)
PCAPNG_FORMAT(view2_packets_ng)
PCAPNG_FORMAT(view3_packets_ng)

/* ---- both ---- */

size_t zn_packet_file_bytes(bool pcapng, uint32_t captured)
{
    size_t n = zn_packet_file_head(pcapng) + (size_t)captured;
    return pcapng ? n + padding(captured) + sizeof(uint32_t) : n;
}

uint8_t *zn_packet_file_put(bool pcapng, const zn_packet_file_frame *frame, uint8_t *at)
{
    return pcapng ? set_pcapng(frame, at) : set_pcap(frame, at);
}
