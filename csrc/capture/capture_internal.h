/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the capture formats share. Each has a zn_format, which capture.c finds by the first bytes. A
 * step takes one record or block from the unread bytes, or leaves them untouched and says how many
 * it needs.
 */
#ifndef ZN_CAPTURE_CAPTURE_INTERNAL_H
#define ZN_CAPTURE_CAPTURE_INTERNAL_H

#include "capture/byte_source.h"
#include "capture/capture.h"
#include "capture/pcap_prefetch.h"

typedef enum zn_step {
    ZN_STEP_FRAME, /* *frame was filled */
    ZN_STEP_NONE,  /* something else was read: go on */
    ZN_STEP_MORE,  /* the record or block is not whole: c->wanted */
    ZN_STEP_END    /* the capture ends here: c->warning */
} zn_step;

/* An interface of a pcapng section, and how its ticks become nanoseconds. */
typedef struct zn_interface {
    uint32_t link_type;
    uint32_t snaplen; /* 0: no limit */
    uint64_t multiply, divide;
    uint32_t shift; /* ns = ticks * multiply / divide >> shift */
    int64_t offset_s;
    uint64_t plain_ticks; /* up to so many, ns = ticks * multiply; 0: not at all */
} zn_interface;

/* A capture format. */
typedef struct zn_format {
    const char *name;
    const char *unit; /* what it is a sequence of, in messages */
    bool one_link;    /* all frames of a capture are of the same link type */
    /* True when a capture that starts with these bytes (at least 4, but for a shorter one) is
     * one. */
    bool (*is)(zn_span start);
    /* Reads the header; 0 or a negative zn_err. */
    int (*open)(zn_capture *c, zn_error *err);
    zn_step (*step)(zn_capture *c, zn_frame *frame);
    /* Takes up to `max` records as `step` would, as long as they are plain frames and at hand, up
     * to zn_byte_source_pause; returns how many. NULL: there is no such short way. */
    int (*read)(zn_capture *c, zn_frame *frames, int max);
    void (*close)(zn_capture *c); /* frees what open has made; NULL: nothing */
} zn_format;

extern const zn_format zn_format_pcap, zn_format_pcapng, zn_format_snoop;

#define ZN_RECORD_CHOICES 3 /* lengths that a record's header can have */

struct zn_capture {
    zn_byte_source source;
    uint64_t number;         /* zn_capture_number */
    const zn_format *format; /* NULL until it is known */
    bool big;                /* numbers are big-endian */
    bool ended;
    bool peeked;   /* `next` was read ahead */
    bool unpacked; /* zn_capture_is_unpacked */
    zn_frame next;
    uint64_t records; /* records or blocks read whole */
    uint32_t wanted;  /* bytes the next record or block needs, counted from its start */

    /* pcap and snoop */
    uint32_t link_type;
    uint32_t fraction_ns;  /* ns in one unit of a timestamp's fraction */
    uint32_t record_bytes; /* a record's header; 0: to be chosen */
    uint8_t record_choices[ZN_RECORD_CHOICES];
    uint16_t minor_version;

    /* pcap and pcapng */
    bool may_prefetch;    /* zn_pcap_prefetch_pays */
    uint32_t mean_record; /* bytes of a record, of those that were taken together last */

    /* pcapng: the current section's interfaces, and the block that is being skipped */
    zn_interface *interfaces;
    uint32_t interface_count;
    uint32_t skipped; /* bytes of the block behind us; 0: none is being skipped */
    uint32_t block_bytes;

    char warning[192];
};

static inline uint16_t zn_capture_u16(const zn_capture *c, zn_cursor *at)
{
    return c->big ? zn_cursor_be16(at) : zn_cursor_le16(at);
}

static inline uint32_t zn_capture_u32(const zn_capture *c, zn_cursor *at)
{
    return c->big ? zn_cursor_be32(at) : zn_cursor_le32(at);
}

/* The next record or block needs this many bytes from its start on. */
static inline zn_step zn_capture_want(zn_capture *c, uint32_t bytes)
{
    c->wanted = bytes;
    return ZN_STEP_MORE;
}

/* Ends the capture at the current record or block, with a reason. */
zn_step zn_capture_end(zn_capture *c, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Where it pays, asks memory for the heads of what is read next: of `rest`, which is unread, up to
 * `pause`, and of more of it, unless that was done. Returns up to where memory was asked. */
const uint8_t *zn_capture_prefetch(const zn_capture *c, zn_prefetch_kind kind, zn_span rest,
                                   const uint8_t *pause);
/* Behind that: n records or blocks were taken, `rest` is unread now, and memory was asked up to
 * `fetched`. */
void zn_capture_took(zn_capture *c, int n, zn_span rest, const uint8_t *fetched);

/* Reads at least until n bytes are at hand, or the source ends: 1, 0, or a negative zn_err. */
int zn_capture_require(zn_capture *c, size_t n, zn_error *err);

#endif
