/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pcapng: a sequence of blocks, each with its length before and after its body. A section header
 * sets the byte order and drops the interfaces; interface blocks give link type and time units;
 * packet blocks are frames. Blocks of other types are skipped by their length, without being held
 * in memory. A block whose numbers contradict each other ends the capture, as the blocks after it
 * cannot be found.
 */
#include "capture/format.h"
#include "util/arena.h"

#define BLOCK_SECTION 0x0a0d0d0au
#define BLOCK_INTERFACE 1u
#define BLOCK_PACKET 2u /* obsolete */
#define BLOCK_SIMPLE 3u
#define BLOCK_ENHANCED ZN_PCAPNG_ENHANCED
#define BLOCK_FRAME_BYTES 12u /* type and two lengths */
#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define MAJOR_VERSION 1
#define SECTION_BYTES 28 /* the shortest section header */
#define SECTION_START 12 /* type, length, byte order magic: enough to read the length */

#define OPTION_END 0
#define OPTION_TSRESOL 9
#define OPTION_TSOFFSET 14
#define TSRESOL_BINARY 0x80
#define TSRESOL_MICROSECONDS 6

#define INTERFACES_MAX 65536u
#define INTERFACES_BYTES (INTERFACES_MAX * sizeof(zn_interface))

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 unsigned_wide;

/* Reads the byte order of a section header; returns false if the mark is invalid. */
static bool read_byte_order(zn_cursor at, bool *big)
{
    zn_cursor again;
    zn_cursor_skip(&at, SECTION_START - 4);
    again = at;
    *big = zn_cursor_be32(&at) == BYTE_ORDER_MAGIC;
    return *big || zn_cursor_le32(&again) == BYTE_ORDER_MAGIC;
}

static bool is_pcapng(zn_span start)
{
    zn_cursor c = zn_cursor_over_span(start, true);
    return zn_cursor_be32(&c) == BLOCK_SECTION; /* the same in both byte orders */
}

/* Checks the section header that the capture starts with, without consuming it. */
static int pcapng_open(zn_reader *r, zn_error *err)
{
    zn_cursor at;
    uint16_t major;
    int rc = zn_reader_require(r, SECTION_BYTES, err);
    if (rc < 0)
        return rc;
    at = r->source.pending;
    if (rc == 0)
        return zn_fail(err, ZN_ERR_FORMAT, 0,
                       "%s is too short: %zu bytes, a pcapng section header has %d", r->source.name,
                       zn_cursor_left(&at), SECTION_BYTES);
    if (!read_byte_order(at, &r->big))
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is not a capture: pcapng without its byte order",
                       r->source.name);
    zn_cursor_skip(&at, SECTION_START);
    major = zn_reader_u16(r, &at);
    if (major != MAJOR_VERSION)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is a pcapng of version %u, which is not known",
                       r->source.name, major);
    r->may_prefetch = zn_pcap_prefetch_pays();
    r->interfaces = zn_block_alloc(INTERFACES_BYTES); /* uses memory only where it is touched */
    if (r->interfaces == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the interfaces of %s",
                       r->source.name);
    return 0;
}

static void pcapng_close(zn_reader *r)
{
    zn_block_free(r->interfaces, INTERFACES_BYTES);
    r->interfaces = NULL;
}

/* Sets how ticks of 10^-n or 2^-n seconds become nanoseconds. Ticks shorter than 10^-28 s give 0,
 * as 2^64 of them are less than a nanosecond. */
static void set_resolution(zn_interface *i, uint8_t resolution)
{
    unsigned n = resolution & (TSRESOL_BINARY - 1u);
    i->multiply = i->divide = 1;
    i->shift = 0;
    if ((resolution & TSRESOL_BINARY) != 0) {
        i->multiply = (uint64_t)ZN_NS_PER_S;
        i->shift = n;
        return;
    }
    for (; n < 9; n++)
        i->multiply *= 10;
    for (; n > 9 && n <= 28; n--)
        i->divide *= 10;
    if (n > 28)
        i->multiply = 0;
}

/* Sets plain_ticks: most ticks are microseconds or nanoseconds since 1970, which a multiplication
 * converts. */
static void set_plain(zn_interface *i)
{
    bool plain = i->divide == 1 && i->shift == 0 && i->multiply != 0 && i->offset_s == 0;
    i->plain_ticks = plain ? (uint64_t)INT64_MAX / i->multiply : 0;
}

static inline int64_t time_of(const zn_interface *i, uint64_t ticks)
{
    wide t;
    if (ZN_LIKELY(ticks <= i->plain_ticks && ticks != 0))
        return (int64_t)(ticks * i->multiply);
    t = (wide)((unsigned_wide)ticks * i->multiply / i->divide >> i->shift) +
        (wide)i->offset_s * ZN_NS_PER_S;
    return t >= 0 && t <= INT64_MAX ? (int64_t)t : -1;
}

/* Reads the options of an interface block; false when their lengths do not fit. */
static bool read_options(const zn_reader *r, zn_cursor *body, zn_interface *out)
{
    while (zn_cursor_left(body) != 0) {
        unsigned code = zn_reader_u16(r, body), bytes = zn_reader_u16(r, body);
        zn_cursor value = zn_cursor_sub(body, bytes);
        zn_cursor_skip(body, -bytes % 4);
        if (code == OPTION_END || !zn_cursor_ok(body))
            break;
        if (code == OPTION_TSRESOL) {
            if (bytes != 1)
                return false;
            set_resolution(out, zn_cursor_u8(&value));
        } else if (code == OPTION_TSOFFSET) {
            uint64_t first, second;
            if (bytes != 8)
                return false;
            first = zn_reader_u32(r, &value);
            second = zn_reader_u32(r, &value);
            out->offset_s = (int64_t)(r->big ? first << 32 | second : second << 32 | first);
        }
    }
    return zn_cursor_ok(body);
}

static zn_step read_interface(zn_reader *r, zn_cursor *body)
{
    zn_interface *i;
    if (r->interface_count == INTERFACES_MAX)
        return zn_reader_end(r, "more than %u interfaces in one section", INTERFACES_MAX);
    i = &r->interfaces[r->interface_count];
    i->link_type = zn_reader_u16(r, body);
    zn_cursor_skip(body, 2);
    i->snaplen = zn_reader_u32(r, body);
    i->offset_s = 0;
    set_resolution(i, TSRESOL_MICROSECONDS);
    if (!zn_cursor_ok(body))
        return zn_reader_end(r, "an interface block that is too short");
    if (!read_options(r, body, i))
        return zn_reader_end(r, "an interface block whose options do not fit together");
    set_plain(i);
    r->interface_count++;
    return ZN_STEP_NONE;
}

static zn_step read_section(zn_reader *r, zn_cursor *body)
{
    unsigned major;
    zn_cursor_skip(body, 4);
    major = zn_reader_u16(r, body);
    zn_cursor_skip(body, 10);
    if (!zn_cursor_ok(body))
        return zn_reader_end(r, "a section header that is too short");
    if (major != MAJOR_VERSION)
        return zn_reader_end(r, "a section of version %u, which is not known", major);
    r->interface_count = 0;
    return ZN_STEP_NONE;
}

/* Reads the frame of a packet block of any kind; its captured bytes are next in the body. */
static zn_step read_frame(zn_reader *r, zn_cursor *body, uint32_t interface, zn_frame *frame)
{
    zn_span data;
    if (!zn_cursor_ok(body))
        return zn_reader_end(r, "a packet block that is too short");
    if (interface >= r->interface_count)
        return zn_reader_end(r, "a packet of interface %u, which the section does not have",
                             interface);
    if (frame->captured > ZN_FRAME_MAX)
        return zn_reader_end(r, "a frame of %u bytes, more than %u", frame->captured, ZN_FRAME_MAX);
    data = zn_cursor_take(body, frame->captured);
    if (!zn_cursor_ok(body))
        return zn_reader_end(r, "a frame of %u bytes, more than its block has", frame->captured);
    frame->data = data.p;
    frame->link_type = r->interfaces[interface].link_type;
    if (frame->wire < frame->captured)
        frame->wire = frame->captured;
    return ZN_STEP_FRAME;
}

static zn_step read_enhanced(zn_reader *r, zn_cursor *body, bool obsolete, zn_frame *frame)
{
    uint32_t interface;
    uint64_t ticks;
    zn_step step;
    if (obsolete) {
        interface = zn_reader_u16(r, body);
        zn_cursor_skip(body, 2); /* frames dropped */
    } else {
        interface = zn_reader_u32(r, body);
    }
    ticks = (uint64_t)zn_reader_u32(r, body) << 32;
    ticks |= zn_reader_u32(r, body);
    frame->captured = zn_reader_u32(r, body);
    frame->wire = zn_reader_u32(r, body);
    step = read_frame(r, body, interface, frame);
    if (step == ZN_STEP_FRAME)
        frame->t_ns = time_of(&r->interfaces[interface], ticks);
    return step;
}

/* Reads a simple packet block: it has no time, and its interface's snapshot length says how many
 * bytes were captured. */
static zn_step read_simple(zn_reader *r, zn_cursor *body, zn_frame *frame)
{
    frame->t_ns = -1;
    frame->captured = frame->wire = zn_reader_u32(r, body);
    if (r->interface_count != 0) {
        uint32_t snaplen = r->interfaces[0].snaplen;
        if (snaplen != 0 && snaplen < frame->captured)
            frame->captured = snaplen;
    }
    return read_frame(r, body, 0, frame);
}

static zn_step read_body(zn_reader *r, uint32_t type, zn_cursor *body, zn_frame *frame)
{
    switch (type) {
    case BLOCK_ENHANCED:
        return read_enhanced(r, body, false, frame);
    case BLOCK_PACKET:
        return read_enhanced(r, body, true, frame);
    case BLOCK_SIMPLE:
        return read_simple(r, body, frame);
    case BLOCK_INTERFACE:
        return read_interface(r, body);
    default:
        return read_section(r, body);
    }
}

static zn_step length_mismatch(zn_reader *r, uint32_t before, uint32_t after)
{
    return zn_reader_end(r, "its length is %u at its start and %u at its end", before, after);
}

/* Skips the rest of a block, or as much of it as is pending. */
static zn_step skip_block(zn_reader *r)
{
    zn_cursor at = r->source.pending;
    uint32_t rest = r->block_bytes - 4 - r->skipped, length;
    if (zn_cursor_left(&at) < rest)
        rest = (uint32_t)zn_cursor_left(&at);
    zn_cursor_skip(&at, rest);
    r->source.pending = at;
    r->skipped += rest;
    if (r->skipped != r->block_bytes - 4)
        return zn_reader_want(r, r->block_bytes);
    length = zn_reader_u32(r, &at);
    if (!zn_cursor_ok(&at))
        return zn_reader_want(r, r->block_bytes);
    if (length != r->block_bytes)
        return length_mismatch(r, r->block_bytes, length);
    r->source.pending = at;
    r->skipped = 0;
    r->records++;
    return ZN_STEP_NONE;
}

static bool is_held(uint32_t type)
{
    return type == BLOCK_ENHANCED || type == BLOCK_PACKET || type == BLOCK_SIMPLE ||
           type == BLOCK_INTERFACE || type == BLOCK_SECTION;
}

static zn_step pcapng_step(zn_reader *r, zn_frame *frame)
{
    zn_cursor at = r->source.pending, body;
    uint32_t type, length, after;
    zn_step step;
    if (r->skipped != 0)
        return skip_block(r);
    zn_byte_source_fetch(&r->source);
    type = zn_reader_u32(r, &at);
    if (type == BLOCK_SECTION) { /* the same in both byte orders */
        if (zn_cursor_left(&r->source.pending) < SECTION_START)
            return zn_reader_want(r, SECTION_START);
        if (!read_byte_order(r->source.pending, &r->big))
            return zn_reader_end(r, "a section header without its byte order");
    }
    length = zn_reader_u32(r, &at);
    if (!zn_cursor_ok(&at))
        return zn_reader_want(r, BLOCK_FRAME_BYTES);
    if (length < BLOCK_FRAME_BYTES || length % 4 != 0 || length > ZN_BYTE_SOURCE_MAX)
        return zn_reader_end(r, "a block of %u bytes, which cannot be", length);
    if (!is_held(type)) {
        r->source.pending = at;
        r->skipped = 8;
        r->block_bytes = length;
        return ZN_STEP_NONE;
    }
    body = zn_cursor_sub(&at, length - BLOCK_FRAME_BYTES);
    after = zn_reader_u32(r, &at);
    if (!zn_cursor_ok(&at))
        return zn_reader_want(r, length);
    if (after != length)
        return length_mismatch(r, length, after);
    step = read_body(r, type, &body, frame);
    if (step == ZN_STEP_END)
        return step;
    r->source.pending = at;
    r->records += step == ZN_STEP_NONE;
    return step;
}

/* Reads an enhanced packet block as nearly all are from the start of *rest, and moves that past it;
 * false for any other block, which pcapng_step reads. */
static inline bool read_block(const zn_reader *r, zn_span *rest, zn_frame *frame)
{
    zn_span block;
    uint32_t length, interface, captured, wire;
    if (rest->n < ZN_PCAPNG_BLOCK_BYTES)
        return false;
    length = zn_header_le32(*rest, 4);
    if (zn_header_le32(*rest, 0) != BLOCK_ENHANCED || length < ZN_PCAPNG_BLOCK_BYTES ||
        length % 4 != 0 || length > ZN_BYTE_SOURCE_MAX || length > rest->n)
        return false;
    block = zn_span_first(*rest, length);
    interface = zn_header_le32(block, 8);
    captured = zn_header_le32(block, 20);
    wire = zn_header_le32(block, 24);
    if (interface >= r->interface_count || captured > ZN_FRAME_MAX ||
        captured > length - ZN_PCAPNG_BLOCK_BYTES || zn_header_le32(block, length - 4) != length)
        return false;
    *rest = zn_span_after(*rest, length);
    frame->data = zn_span_part(block, ZN_PCAPNG_FRAME_AT, length).p;
    frame->t_ns = time_of(&r->interfaces[interface],
                          (uint64_t)zn_header_le32(block, 12) << 32 | zn_header_le32(block, 16));
    frame->captured = captured;
    frame->wire = wire < captured ? captured : wire;
    frame->link_type = r->interfaces[interface].link_type;
    return true;
}

static int pcapng_read(zn_reader *r, zn_frame *frames, int max)
{
    zn_cursor at = r->source.pending;
    zn_span rest = zn_cursor_rest(&at);
    const uint8_t *fetched, *pause = zn_byte_source_pause(&r->source);
    int n = 0;
    if (r->big || r->skipped != 0)
        return 0;
    fetched = zn_reader_prefetch(r, ZN_PREFETCH_PCAPNG, rest, pause);
    for (; n < max && rest.p < pause && read_block(r, &rest, &frames[n]); n++)
        fetched = zn_span_fetch(rest, ZN_BYTE_SOURCE_FETCHED, fetched);
    zn_reader_took(r, n, rest, fetched);
    return n;
}

const zn_format zn_format_pcapng = {.name = "pcapng",
                                    .unit = "block",
                                    .is = is_pcapng,
                                    .open = pcapng_open,
                                    .step = pcapng_step,
                                    .read = pcapng_read,
                                    .close = pcapng_close};
