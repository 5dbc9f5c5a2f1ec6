/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * snoop (RFC 1761): a header of 16 bytes, then records. A record has 24 bytes of header, the
 * captured bytes, and padding. All numbers are big-endian.
 */
#include "capture/format.h"

#define HEADER_BYTES 16u
#define VERSION 2u
#define RECORD_BYTES 24u
#define UNKNOWN_LINK 0x10000u /* and above: not in the pcap registry */

/* Datalink types (the RFC's list and IANA's) by their numbers in the pcap registry. */
static const struct {
    uint32_t type, link_type;
} links[] = {
    {0, 1},    /* IEEE 802.3 */
    {2, 6},    /* IEEE 802.5 */
    {4, 1},    /* Ethernet */
    {8, 10},   /* FDDI */
    {16, 122}, /* IP over Fibre Channel */
    {18, 123}, /* ATM, as Sun has it */
};

static bool is_snoop(zn_span start)
{
    zn_cursor c = zn_cursor_over_span(start, true);
    return zn_cursor_be32(&c) == 0x736e6f6f; /* "snoo", before "p" and three zero bytes */
}

static uint32_t link_type_of(uint32_t type)
{
    for (size_t i = 0; i < sizeof links / sizeof links[0]; i++)
        if (links[i].type == type)
            return links[i].link_type;
    return UNKNOWN_LINK + (type & 0xffff);
}

static int snoop_open(zn_reader *r, zn_error *err)
{
    zn_cursor at;
    uint32_t rest, version;
    int rc = zn_reader_require(r, HEADER_BYTES, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is too short: %zu bytes, a snoop header has %u",
                       r->source.name, zn_cursor_left(&r->source.pending), HEADER_BYTES);
    at = r->source.pending;
    zn_cursor_skip(&at, 4);
    rest = zn_cursor_be32(&at);
    version = zn_cursor_be32(&at);
    if (rest != 0x70000000)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is not a capture: neither pcap, pcapng nor snoop",
                       r->source.name);
    if (version != VERSION)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is a snoop of version %u, which is not known",
                       r->source.name, version);
    r->big = true;
    r->link_type = link_type_of(zn_cursor_be32(&at));
    r->source.pending = at;
    return 0;
}

static zn_step snoop_step(zn_reader *r, zn_frame *frame)
{
    zn_cursor at = r->source.pending;
    uint32_t wire = zn_cursor_be32(&at), captured = zn_cursor_be32(&at);
    uint32_t record = zn_cursor_be32(&at), seconds, microseconds;
    zn_span data;
    zn_byte_source_fetch(&r->source);
    zn_cursor_skip(&at, 4); /* frames dropped */
    seconds = zn_cursor_be32(&at);
    microseconds = zn_cursor_be32(&at);
    if (!zn_cursor_ok(&at))
        return zn_reader_want(r, RECORD_BYTES);
    if (captured > ZN_FRAME_MAX)
        return zn_reader_end(r, "a frame of %u bytes, more than %u", captured, ZN_FRAME_MAX);
    if (record < RECORD_BYTES + captured || record > ZN_BYTE_SOURCE_MAX)
        return zn_reader_end(r, "a record of %u bytes for a frame of %u", record, captured);
    data = zn_cursor_take(&at, captured);
    zn_cursor_skip(&at, record - RECORD_BYTES - captured);
    if (!zn_cursor_ok(&at))
        return zn_reader_want(r, record);
    r->source.pending = at;
    frame->data = data.p;
    frame->t_ns = (int64_t)seconds * ZN_NS_PER_S + (int64_t)microseconds * 1000;
    frame->captured = captured;
    frame->wire = wire < captured ? captured : wire;
    frame->link_type = r->link_type;
    return ZN_STEP_FRAME;
}

const zn_format zn_format_snoop = {.name = "snoop",
                                   .unit = "record",
                                   .one_link = true,
                                   .is = is_snoop,
                                   .open = snoop_open,
                                   .step = snoop_step};
